//! Recipes of other package managers in `packaging`: they name this version, and the one for Spack can be loaded.

use std::{fs, path::PathBuf};

use ombx_tests::{Files, Job, missing, skipped};

fn packaging(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../packaging")).join(name)
}

#[test]
fn recipes_have_the_version_of_the_workspace() {
    let version = env!("CARGO_PKG_VERSION");
    for (file, line) in [
        ("spack/package.py".to_owned(), format!("version(\"{version}\")")),
        (format!("easybuild/ombx-{version}.eb"), format!("version = '{version}'")),
        ("conda/recipe.yaml".to_owned(), format!("version: \"{version}\"")),
        ("openhpc/ombx.spec".to_owned(), format!("Version:   {version}")),
    ] {
        let text = fs::read_to_string(packaging(&file)).unwrap();
        assert!(text.lines().any(|found| found.trim() == line), "{file} has no {line}");
        // EasyBuild's reviewers and conda-forge refuse recipes that leave out steps or tests.
        assert!(!text.contains("skipsteps"), "{file}");
        assert!(text.contains("list p2p.latency") || text.contains("\"list\", \"p2p.latency\""), "{file}");
    }
}

#[test]
fn the_recipe_of_spack_needs_any_mpi_and_no_llvm() {
    if !missing(&["python3"]).is_empty() {
        return skipped("python3 is not installed");
    }
    let files = Files::default();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/recipes.py");
    let sources = files.path("sources");
    fs::create_dir(&sources).unwrap();
    let done =
        Job::new("python3").arg(script).arg(packaging("spack/package.py")).arg(&sources).run().expect(0);
    let done: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(done["versions"].as_array().unwrap().len(), 1);
    let rust = format!("rust@{}:", env!("CARGO_PKG_RUST_VERSION"));
    assert_eq!(done["depends_on"], serde_json::json!(["c", rust, "mpi"]));
    assert_eq!(done["set"]["MPICC"], "/mpi/bin/mpicc");
    assert_eq!(done["libclang"], serde_json::json!(["libclang.so"]));
    let cargo = &done["commands"][1];
    assert_eq!((&cargo[0], &cargo[1], &cargo[7]), (&"cargo".into(), &"install".into(), &"--root".into()));
    for resource in done["resources"].as_array().unwrap() {
        let checksum = resource["sha256"].as_str().unwrap();
        assert!(checksum.len() == 64 && resource["url"].as_str().unwrap().ends_with(".whl"), "{resource}");
    }
}
