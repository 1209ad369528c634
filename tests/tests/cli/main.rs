//! What a user types and reads: lists, help, mistakes, files. Almost none of it starts a rank.

mod cluster;
mod comparing;
mod doctor;
mod files;
mod kit;
mod list;
mod mistakes;
mod mistakes_odd;
mod mistakes_of_options;
mod scripts;
mod suites;
mod third_party;

use std::{
    ffi::OsStr, fmt::Debug, fs, os::unix::fs::PermissionsExt, path::PathBuf, sync::OnceLock, time::Duration,
};

use ombx_tests::{Done, Files, Job, mpi, shim, tell};

/// A mistake may take so many times as long as `ombx --version`, and a bit more.
const LONGER: u32 = 5;
const SLACK: Duration = Duration::from_millis(100);

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

    /// One mistake: exit 2 and one line that a terminal can show, nothing printed, no process started at all. Says what is wrong, or
    /// how long it took.
    fn judge<W: AsRef<OsStr>>(&self, words: &[W]) -> Result<Duration, String> {
        static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
        let library = LIBRARY.get_or_init(|| shim::library("starts", env!("CARGO_TARGET_TMPDIR")));
        let note = self.files.path("processes");
        let _ = fs::remove_file(&note);
        let job = Job::ombx("").args(words).env("OMBX_MPIEXEC", &self.launcher).env("LD_PRELOAD", library);
        let done = job.env("OMBX_STARTS", &note).directory(self.files.root()).run();
        let line = done.stderr.strip_suffix('\n').unwrap_or_default();
        let one = done.stderr.starts_with("ombx: ") && line.len() > 10 && !line.contains(char::is_control);
        let told = |what: &str| Err(format!("{what}: {done}"));
        match () {
            () if done.code != Some(2) => told("it does not exit with 2"),
            () if !one => told("it does not say one line"),
            () if line.len() > 8000 => told("it says too much"),
            () if !done.stdout.is_empty() => told("it prints"),
            () if self.started() || note.exists() => {
                told(&format!("it starts {:?}", fs::read_to_string(&note)))
            }
            () => Ok(done.elapsed),
        }
    }

    /// Judges many mistakes. None takes much longer than the quickest thing that this program can do, however busy the machine.
    fn judge_all<W: AsRef<OsStr> + Debug>(&self, lines: &[Vec<W>]) {
        let version = || Job::ombx("--version").run().expect(0).elapsed;
        let late = |took: Duration, quick: Duration| took > quick * LONGER + SLACK;
        let (mut wrong, mut slowest, mut quick) = (Vec::new(), (Duration::ZERO, String::new()), version());
        for words in lines {
            let shown: String = format!("{words:?}").chars().take(200).collect();
            let mut judged = self.judge(words);
            for _ in 0..5 {
                // Between one look and the next the machine may have become busy.
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
        tell(&format!("{} mistakes, the slowest {:.0?}: {}", lines.len(), slowest.0, slowest.1));
        assert!(wrong.is_empty(), "{} mistakes are told badly:\n{}", wrong.len(), wrong.join("\n"));
    }
}

/// Runs the same five times: the fastest is at once, unless the machine is busy with something else all the time.
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
