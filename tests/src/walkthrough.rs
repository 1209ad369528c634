//! Commands of a document, as a user would type them.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
};

use crate::{Files, Job, mpi};

/// A command, the exit codes that the document expects, and the output that it shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Command line of a shell.
    pub command: String,
    /// Expected exit codes.
    pub codes: Vec<i32>,
    /// Lines of the output, as far as they are shown.
    pub shown: Vec<String>,
}

/// Returns the commands of a walkthrough of docs/GUIDE.md, by its heading.
///
/// # Panics
/// The document has no such heading.
pub fn steps(heading: &str) -> Vec<Step> {
    let text = fs::read_to_string(root().join("docs/GUIDE.md")).expect("the document");
    let (_, section) = text.split_once(&format!("\n### {heading}\n")).expect("the heading");
    let section = section.split("\n##").next().unwrap_or_default();
    let mut steps: Vec<Step> = Vec::new();
    for block in section.split("```console\n").skip(1) {
        for line in block.split("```").next().unwrap_or_default().lines() {
            match (line.strip_prefix("$ "), steps.last_mut()) {
                (Some(typed), _) => steps.push(step(typed)),
                (None, Some(step)) => step.shown.push(line.to_owned()),
                (None, None) => panic!("{line:?} is before the first command"),
            }
        }
    }
    steps
}

fn step(typed: &str) -> Step {
    let (command, codes) = typed.split_once("  # exit ").unwrap_or((typed, "0"));
    let codes = codes.replace(" or ", ", ");
    let codes = codes.split(", ").map(|code| code.parse().expect("an exit code")).collect();
    Step { command: command.to_owned(), codes, shown: Vec::new() }
}

impl Step {
    /// Checks that the output has what is shown: each line up to `..`, if it has no figures; figures differ in each run. A comparison of
    /// debug builds has no intervals, and so another heading.
    ///
    /// # Panics
    /// A shown line is missing.
    pub fn check_shown(&self, output: &str) {
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let output: Vec<String> = output.lines().map(words).collect();
        let is_debug = output.iter().any(|line| line.starts_with("both sides are debug builds"));
        for line in self.shown.iter().filter(|line| !(is_debug && line.trim_start().starts_with("bytes"))) {
            let start = words(line.split("..").next().unwrap_or_default());
            let is_figure =
                |word: &str| word.trim_start_matches(['+', '-']).starts_with(|c: char| c.is_ascii_digit());
            let has_figures = start.split(' ').any(is_figure) && !start.starts_with("bytes");
            let found = start.is_empty() || has_figures || output.iter().any(|line| line.starts_with(&start));
            assert!(found, "{}: no line starts with {start:?}:\n{}", self.command, output.join("\n"));
        }
    }
}

/// Returns a directory with `ombx` and the `mpiexec` under test, for `PATH`.
///
/// # Panics
/// The links cannot be created.
pub fn programs(files: &Files) -> PathBuf {
    let bin = files.path("programs");
    fs::create_dir(&bin).expect("a directory");
    symlink(mpi::ombx(), bin.join("ombx")).expect("a link");
    let launcher = bin.join("mpiexec");
    fs::write(&launcher, format!("#!/bin/sh\nexec '{}' \"$@\"\n", mpi::mpiexec().display()))
        .expect("a script");
    fs::set_permissions(&launcher, fs::Permissions::from_mode(0o755)).expect("a script");
    bin
}

/// Returns a job of a shell in this directory that finds the programs of [`programs`].
pub fn shell(command: &str, programs: &Path, directory: &Path) -> Job {
    let path = std::env::var("PATH").unwrap_or_default();
    let job = Job::new("sh").args(["-c", command]).directory(directory);
    job.env("PATH", format!("{}:{path}", programs.display())).env("OMBX_MPIEXEC", mpi::mpiexec())
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace")
}
