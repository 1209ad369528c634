//! What a user types and reads: lists, help, mistakes, files. Almost none of it starts a rank.

mod files;
mod kit;
mod list;
mod mistakes;
mod scripts;
mod third_party;

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf, time::Duration};

use ombx_tests::{Done, Files, Job, mpi};

/// A launcher that works, and leaves a note when it is told to start anything.
struct Tripwire {
    files: Files,
    launcher: PathBuf,
}

impl Tripwire {
    fn new() -> Tripwire {
        let files = Files::default();
        let (note, real) = (files.path("started"), mpi::mpiexec());
        let script = format!(
            "#!/bin/sh\n[ \"$1\" = --version ] || touch '{}'\nexec '{}' \"$@\"\n",
            note.display(),
            real.display()
        );
        let launcher = files.write("mpiexec", script);
        fs::set_permissions(&launcher, fs::Permissions::from_mode(0o755)).unwrap();
        Tripwire { files, launcher }
    }

    fn run(&self, words: &[&str]) -> Done {
        Job::ombx("").args(words).env("OMBX_MPIEXEC", &self.launcher).run()
    }

    fn started(&self) -> bool {
        self.files.path("started").exists()
    }
}

/// Runs the same until it takes less than a second, as it does unless the machine is busy with something else.
fn at_once(run: impl Fn() -> Done) -> Done {
    let runs: Vec<Done> = (0..5).map(|_| run()).collect();
    let fastest = runs.into_iter().min_by_key(|done| done.elapsed).expect("five runs");
    assert!(fastest.elapsed < Duration::from_secs(1), "{fastest}");
    fastest
}

#[test]
fn the_tripwire_works() {
    let wire = Tripwire::new();
    wire.run(&["run", "p2p.latency", "--sizes", "8", "--iterations", "10"]).expect(0);
    assert!(wire.started());
}
