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
mod mistakes_in_options;
mod mistakes_odd;
mod monitoring;
mod node_sets;
mod scripts;
mod shells;
mod suites;
mod terminals;
mod test_kit;
mod third_party;

use std::{
    ffi::OsStr, fmt::Debug, fs, os::unix::fs::PermissionsExt, path::PathBuf, sync::OnceLock, time::Duration,
};

use ombx_tests::{Done, Files, Job, mpi, print_note, shim};

/// Time limit of an error, as a multiple of the time of `ombx --version`.
const LONGER: u32 = 5;
/// Time that is added to this limit.
const SLACK: Duration = Duration::from_millis(100);

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
        Job::of(mpi::ombx()).args(words).env("OMBX_MPIEXEC", &self.launcher).run()
    }

    fn started(&self) -> bool {
        self.files.path("started").exists()
    }

    /// Checks one mistake: exit code 2, one error line without control characters, no output, no started process.
    /// Returns the time that the command took, or what is wrong.
    fn judge<W: AsRef<OsStr>>(&self, words: &[W]) -> Result<Duration, String> {
        static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
        let library = LIBRARY.get_or_init(|| shim::library("starts", env!("CARGO_TARGET_TMPDIR")));
        let note = self.files.path("processes");
        for old in [&note, &self.files.path("started")] {
            let _ = fs::remove_file(old);
        }
        let job =
            Job::of(mpi::ombx()).args(words).env("OMBX_MPIEXEC", &self.launcher).env("LD_PRELOAD", library);
        let done = job.env("OMBX_STARTS", &note).directory(self.files.root()).run();
        let line = done.stderr.strip_suffix('\n').unwrap_or_default();
        let one = done.stderr.starts_with("ombx: ") && line.len() > 10 && !line.contains(char::is_control);
        let failure = |what: &str| Err(format!("{what}: {done}"));
        match () {
            () if done.code != Some(2) => failure("the exit code is not 2"),
            () if !one => failure("standard error is not one error line"),
            () if line.len() > 8000 => failure("the error line is too long"),
            () if !done.stdout.is_empty() => failure("standard output is not empty"),
            () if self.started() || note.exists() => {
                failure(&format!("processes were started: {:?}", fs::read_to_string(&note)))
            }
            () => Ok(done.elapsed),
        }
    }

    /// Checks many mistakes. Each must end almost as soon as `ombx --version`, which allows for a busy machine.
    fn judge_all<W: AsRef<OsStr> + Debug>(&self, lines: &[Vec<W>]) {
        let version = || Job::ombx("--version").run().expect(0).elapsed;
        let late = |took: Duration, quick: Duration| took > quick * LONGER + SLACK;
        let (mut wrong, mut slowest, mut quick) = (Vec::new(), (Duration::ZERO, String::new()), version());
        for words in lines {
            let shown: String = format!("{words:?}").chars().take(200).collect();
            let mut judged = self.judge(words);
            for _ in 0..5 {
                // The machine may have become busy since `--version` was timed.
                if !judged.as_ref().is_ok_and(|took| late(*took, quick)) {
                    break;
                }
                (quick, judged) = (version(), self.judge(words));
            }
            match judged {
                Err(why) => wrong.push(format!("{shown}: {why}")),
                Ok(took) if late(took, quick) => wrong.push(format!("{shown} takes {took:?}")),
                Ok(took) if took > slowest.0 => slowest = (took, shown),
                Ok(_) => {}
            }
        }
        print_note(&format!("{} mistakes, the slowest {:.0?}: {}", lines.len(), slowest.0, slowest.1));
        assert!(wrong.is_empty(), "{} mistakes have wrong errors:\n{}", wrong.len(), wrong.join("\n"));
    }
}

/// Runs a command five times and returns the fastest run, which must take less than a second.
fn at_once(run: impl Fn() -> Done) -> Done {
    let runs: Vec<Done> = (0..5).map(|_| run()).collect();
    let fastest = runs.into_iter().min_by_key(|done| done.elapsed).expect("five runs");
    assert!(fastest.elapsed < Duration::from_secs(1), "{fastest}");
    fastest
}

#[test]
fn the_recorder_records_a_start() {
    let recorder = StartRecorder::new();
    recorder.run(&["run", "p2p.latency", "--sizes", "8", "--iterations", "10"]).expect(0);
    assert!(recorder.started());
}
