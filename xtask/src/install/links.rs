//! Links with the names of the OSU benchmarks and of the Intel MPI Benchmarks (IMB).

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::Command,
};

use ombx_toolchain::registry::{self, Bench};
use ombx_toolchain::{Failure, Result, output};

/// Folder where OMB installs its MPI programs, below a prefix.
const OMB: &str = "libexec/osu-micro-benchmarks/mpi";
/// Script of OMB that starts a program with its number on the host, below a prefix, and what it holds here.
const LOCAL_RANK: &str = "libexec/osu-micro-benchmarks/get_local_rank";
const LOCAL_RANK_SCRIPT: &str = include_str!("../../../packaging/get_local_rank.sh");
/// Folder of the programs of IMB. IMB installs nothing itself.
const IMB: &str = "libexec/intel-mpi-benchmarks";
/// Program that a link starts, below a prefix.
const PROGRAM: &str = "bin/ombx";
/// Programs that OMB has in a folder of their own.
const STARTUP: [&str; 2] = ["osu_init", "osu_hello"];

/// Creates a link for each OSU and IMB name that this build of ombx has. Replaces files of the same names.
pub(crate) fn create(prefix: &Path, build: &Path) -> Result<()> {
    let mut paths = of_osu(&registry::read(build)?);
    // These links of ombx itself are absolute and start the build.
    let imb = prefix.join(IMB);
    output(Command::new(build).args(["imb", "--install-links"]).arg(&imb))?;
    for entry in fs::read_dir(&imb).map_err(Failure::file(&imb))? {
        paths.push(Path::new(IMB).join(entry.map_err(Failure::file(&imb))?.file_name()));
    }
    paths.iter().try_for_each(|path| create_one(prefix, path))?;
    let script = prefix.join(LOCAL_RANK);
    fs::write(&script, LOCAL_RANK_SCRIPT).map_err(Failure::file(&script))?;
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).map_err(Failure::file(&script))
}

/// Creates a relative link to the program at a path below the prefix.
fn create_one(prefix: &Path, path: &Path) -> Result<()> {
    let link = prefix.join(path);
    let directories = path.components().count() - 1;
    let program = "../".repeat(directories) + PROGRAM;
    if let Some(directory) = link.parent() {
        fs::create_dir_all(directory).map_err(Failure::file(directory))?;
    }
    if fs::symlink_metadata(&link).is_ok() {
        fs::remove_file(&link).map_err(Failure::file(&link))?;
    }
    symlink(program, &link).map_err(Failure::file(&link))
}

/// Returns the paths of the OSU names of benchmarks.
fn of_osu(benches: &[Bench]) -> Vec<PathBuf> {
    let names = benches.iter().flat_map(|bench| bench.osu.iter().map(|name| (&bench.name, name)));
    names.filter_map(|(bench, name)| Some(Path::new(OMB).join(folder(bench, name)?).join(name))).collect()
}

/// Returns OMB's folder of a program.
fn folder(benchmark: &str, osu: &str) -> Option<&'static str> {
    if STARTUP.contains(&osu) {
        return Some("startup");
    }
    match benchmark.split('.').next()? {
        "p2p" => Some("pt2pt"),
        "rma" => Some("one-sided"),
        "collective" => Some("collective"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Program in place of a build. It answers as ombx does.
    const BUILD: &str = r#"#!/bin/sh
case "$*" in
"list --format json")
    echo '[{"name": "p2p.latency", "osu": ["osu_latency"]},'
    echo ' {"name": "rma.put_bw", "osu": ["osu_put_bw", "osu_passive_put_bw"]},'
    echo ' {"name": "collective.ibarrier", "osu": ["osu_ibarrier"]},'
    echo ' {"name": "sockets.latency", "osu": []}]' ;;
"imb --install-links "*) mkdir -p "$3" && ln -sf /elsewhere/ombx "$3/IMB-MPI1" ;;
*) exit 2 ;;
esac
"#;

    #[test]
    fn links_are_relative_and_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let prefix = directory.path().join("prefix");
        fs::create_dir_all(prefix.join("bin")).unwrap();
        fs::write(prefix.join("bin/ombx"), "the program").unwrap();
        let build = directory.path().join("build");
        fs::write(&build, BUILD).unwrap();
        fs::set_permissions(&build, fs::Permissions::from_mode(0o755)).unwrap();
        for _ in 0..2 {
            create(&prefix, &build).unwrap();
        }
        for name in [
            "osu-micro-benchmarks/mpi/pt2pt/osu_latency",
            "osu-micro-benchmarks/mpi/one-sided/osu_passive_put_bw",
            "osu-micro-benchmarks/mpi/collective/osu_ibarrier",
            "intel-mpi-benchmarks/IMB-MPI1",
        ] {
            let link = prefix.join("libexec").join(name);
            assert!(fs::read_link(&link).unwrap().starts_with(".."), "{name}");
            assert_eq!(fs::read_to_string(&link).unwrap(), "the program", "{name}");
        }
        let mut started = Command::new(prefix.join(LOCAL_RANK));
        let started = started.args(["sh", "-c", "echo $LOCAL_RANK $1", "sh", "D"]);
        let started = started.env_remove("OMPI_COMM_WORLD_LOCAL_RANK").env("MPI_LOCALRANKID", "3").output();
        assert_eq!(started.unwrap().stdout, b"3 D\n");
    }

    #[test]
    fn programs_that_start_mpi_only_have_their_own_folder() {
        assert_eq!(folder("p2p.init", "osu_init"), Some("startup"));
        assert_eq!(folder("p2p.link", "osu_latency"), Some("pt2pt"));
        assert_eq!(folder("sockets.latency", "osu_x"), None);
    }
}
