//! What a user types and reads: lists, help, mistakes, files. Almost none of it starts a rank.

mod files;
mod list;
mod mistakes;
mod scripts;
mod third_party;

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf};

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

#[test]
fn the_tripwire_works() {
    let wire = Tripwire::new();
    wire.run(&["run", "p2p.latency", "--sizes", "8", "--iterations", "10"]).expect(0);
    assert!(wire.started());
}
