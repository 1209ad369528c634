//! Tests of the command line: lists, help, mistakes and files. Few of them start ranks.

mod check;
mod cluster;
mod comparing;
mod doctor;
mod files;
mod history;
mod hosts;
mod installed;
mod list;
mod mistakes;
mod monitoring;
mod node_sets;
mod recipes;
mod scripts;
mod shells;
mod signals;
mod starts;
mod suites;
mod terminals;
mod test_kit;

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf};

use ombx_tests::{Done, Files, Job, mpi};

/// Launcher that works, and creates a file when it starts ranks.
struct StartRecorder {
    files: Files,
    launcher: PathBuf,
}

impl StartRecorder {
    fn new() -> StartRecorder {
        let files = Files::default();
        let (note, real) = (files.path("started"), mpi::mpiexec());
        let script = format!(
            "#!/bin/sh\n[ \"$1\" = --version ] || touch '{}'\nexec '{}' \"$@\"\n",
            note.display(),
            real.display()
        );
        let launcher = files.write("mpiexec", script);
        fs::set_permissions(&launcher, fs::Permissions::from_mode(0o755)).unwrap();
        StartRecorder { files, launcher }
    }

    fn run(&self, words: &[&str]) -> Done {
        Job::new(mpi::ombx()).args(words).env("OMBX_MPIEXEC", &self.launcher).run()
    }

    fn started(&self) -> bool {
        self.files.path("started").exists()
    }

    /// Runs a wrong command line. Checks that it gives exit code 2 and one error line, and that it prints and starts nothing.
    #[track_caller]
    fn refuses(&self, words: &[&str]) -> Done {
        let done = self.run(words).expect(2);
        done.sentence();
        assert!(done.stdout.is_empty() && !self.started(), "{done}");
        done
    }
}

#[test]
fn the_recorder_records_a_start() {
    let recorder = StartRecorder::new();
    recorder.run(&["run", "p2p.latency", "--sizes", "8", "--iterations", "10"]).expect(0);
    assert!(recorder.started());
}
