//! Tests of the crates below `examples`, which are outside the workspace. They link only the features that they select.

use std::{
    env, fs,
    path::{Path, PathBuf},
    time::Duration,
};

use ombx_tests::{Files, Job, mpi, results};

/// Time limit of a debug build of the command line. It may wait for another build in the same target directory.
const BUILD: Duration = Duration::from_secs(3600);

/// Builds a copy of a directory of `examples` with the dependency versions of the workspace. Returns the binary.
fn build(example: &str, binary: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let (example, copy) = (root.join("examples").join(example), Files::default());
    fs::create_dir(copy.path("src")).unwrap();
    for entry in fs::read_dir(example.join("src")).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, copy.path("src").join(path.file_name().unwrap())).unwrap();
    }
    let manifest = fs::read_to_string(example.join("Cargo.toml")).unwrap();
    assert!(manifest.contains("[workspace]"), "the example is outside the workspace");
    copy.write("Cargo.toml", manifest.replace("../../crates", root.join("crates").to_str().unwrap()));
    fs::copy(root.join("Cargo.lock"), copy.path("Cargo.lock")).unwrap();
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let cargo = Job::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into())).limit(BUILD);
    let cargo = cargo.env("CARGO_TARGET_DIR", target).args(["build", "--quiet", "--manifest-path"]);
    let done = cargo.arg(copy.path("Cargo.toml")).run().expect(0);
    assert!(!done.stderr.contains("warning"), "{done}");
    target.join("debug").join(binary)
}

#[test]
fn a_program_reads_and_compares_files() {
    let acme = build("results", "acme-results");
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("crates/record/tests/golden");
    let files = ["one_launch.jsonl", "three_launches.jsonl"].map(|name| golden.join(name));
    let done = Job::new(&acme).args(&files).run().expect(0);
    assert!(done.stdout.contains("p2p.latency/bytes=8: 357.7 ns (357.2 to 360.1)"), "{done}");
    assert!(done.stdout.contains("p2p.latency/bytes=8: +56.7 % undecided"), "{done}");
}

#[test]
fn a_benchmark_of_another_crate() {
    let acme = build("third-party", "acme-bench");
    let ombx = |arguments: &str| {
        Job::new(&acme).env("OMBX_MPIEXEC", mpi::mpiexec()).args(arguments.split_whitespace())
    };

    let list = ombx("list --format json").run().expect(0);
    let list: serde_json::Value = serde_json::from_str(&list.stdout).unwrap();
    let names: Vec<&str> = list.as_array().unwrap().iter().map(|e| e["name"].as_str().unwrap()).collect();
    assert_eq!(names[..2], ["acme.copy", "acme.request"]);
    assert!(names.contains(&"p2p.latency"), "{names:?}");
    let foreign = |name: &&&str| !name.starts_with("acme.") && !name.starts_with("p2p.");
    assert_eq!(names.iter().find(foreign), None, "{names:?}");

    // The program contains no one-sided benchmarks. The same search finds them in ombx.
    let has =
        |program: &Path, word: &[u8]| fs::read(program).unwrap().windows(word.len()).any(|part| part == word);
    for word in [b"ombx_rma".as_slice(), b"rma.rget_latency", b"MPI_Put Latency"] {
        assert!(has(mpi::ombx(), word) && !has(&acme, word), "{:?}", String::from_utf8_lossy(word));
    }
    let done = ombx("run rma.put_bw").run().expect(2);
    assert!(done.sentence().contains("rma.put_bw"), "{done}");
    ombx("run p2p.latency --sync lock").run().expect(2).sentence();

    // The benchmark has the options, format and verification of the built-in ones.
    let files = Files::default();
    let job =
        ombx("run acme.copy p2p.latency -n 2 --sizes 4K,64K --max-time 20ms --quick -o").arg(files.path("r"));
    let done = job.run().expect(0);
    let run = results::run_of(&files.path("r"));
    assert_eq!(run.rows.len(), 4, "{done}");
    let copy = &run.rows[0];
    assert_eq!((copy.bench.as_str(), copy.samples.len()), ("acme.copy", 2), "both ranks are timed\n{done}");
    assert!(run.rows.iter().all(|row| row.check == ombx_record::result::Check::Passed), "{done}");

    // Its own parameter makes rows, and its own figure is in them.
    let job = ombx("run acme.request --answer empty,equal --sizes 64 --max-time 20ms --quick -o");
    let done = job.arg(files.path("q")).run().expect(0);
    let run = results::run_of(&files.path("q"));
    let keys: Vec<&str> = run.rows.iter().map(|row| row.key.as_str()).collect();
    assert_eq!(keys, ["acme.request/answer=empty,bytes=64", "acme.request/answer=equal,bytes=64"], "{done}");
    for row in &run.rows {
        assert_eq!(row.check, ombx_record::result::Check::Passed, "{done}");
        assert!(row.figures.contains_key("requests"), "{done}");
    }
}
