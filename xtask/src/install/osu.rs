//! Links with the names of the OSU benchmarks, in the folders where OMB installs its programs.

use std::{fs, os::unix::fs::symlink, path::Path};

use ombx_toolchain::failure::{Failure, Result};
use serde_json::Value;

/// Folder of OMB's MPI programs, below a prefix.
const OMB: &str = "libexec/osu-micro-benchmarks/mpi";
/// The program that a link starts, as seen from a folder of OMB.
const PROGRAM: &str = "../../../../bin/ombx";
/// Programs that OMB has in a folder of their own.
const STARTUP: [&str; 2] = ["osu_init", "osu_hello"];

/// Creates a link for each OSU name of the benchmarks that `ombx list --json` describes.
pub(crate) fn link(prefix: &Path, benchmarks: &[Value]) -> Result<()> {
    for benchmark in benchmarks {
        for name in benchmark["osu"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            let Some(folder) = folder(benchmark["name"].as_str().unwrap_or_default(), name) else { continue };
            let directory = prefix.join(OMB).join(folder);
            let link = directory.join(name);
            fs::create_dir_all(&directory).map_err(Failure::file(&directory))?;
            if fs::symlink_metadata(&link).is_ok() {
                fs::remove_file(&link).map_err(Failure::file(&link))?;
            }
            symlink(PROGRAM, &link).map_err(Failure::file(&link))?;
        }
    }
    Ok(())
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
    use serde_json::json;

    use super::*;

    #[test]
    fn links_are_relative_and_replaced() {
        let prefix = tempfile::tempdir().unwrap();
        fs::create_dir_all(prefix.path().join("bin")).unwrap();
        fs::write(prefix.path().join("bin/ombx"), "the program").unwrap();
        let listed = [
            json!({"name": "p2p.latency", "osu": ["osu_latency"]}),
            json!({"name": "rma.put_bw", "osu": ["osu_put_bw", "osu_passive_put_bw"]}),
            json!({"name": "collective.ibarrier", "osu": ["osu_ibarrier"]}),
            json!({"name": "sockets.latency", "osu": []}),
        ];
        for _ in 0..2 {
            link(prefix.path(), &listed).unwrap();
        }
        for name in ["pt2pt/osu_latency", "one-sided/osu_passive_put_bw", "collective/osu_ibarrier"] {
            let link = prefix.path().join(OMB).join(name);
            assert_eq!(fs::read_link(&link).unwrap(), Path::new(PROGRAM));
            assert_eq!(fs::read_to_string(&link).unwrap(), "the program");
        }
    }

    #[test]
    fn programs_that_start_mpi_only_have_their_own_folder() {
        assert_eq!(folder("p2p.init", "osu_init"), Some("startup"));
        assert_eq!(folder("p2p.link", "osu_latency"), Some("pt2pt"));
        assert_eq!(folder("sockets.latency", "osu_x"), None);
    }
}
