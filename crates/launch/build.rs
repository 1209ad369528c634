//! Records the commit and the compiler of this build, which results keep.

use std::{env, fs, process::Command};

fn main() {
    println!("cargo::rerun-if-env-changed=OMBX_COMMIT");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-env=OMBX_BUILD_COMMIT={}", commit().unwrap_or_default());
    println!("cargo::rustc-env=OMBX_BUILD_COMPILER={}", compiler());
}

/// Returns the commit of the sources, with `-dirty` if they differ from it. Packages without a repository set `OMBX_COMMIT`.
fn commit() -> Option<String> {
    if let Ok(commit) = env::var("OMBX_COMMIT") {
        return Some(commit);
    }
    // The sources may be a copy inside another repository.
    git(&["ls-files", "--error-unmatch", "build.rs"])?;
    // The sources change the state, and a commit changes the log of HEAD.
    for path in ["logs/HEAD", "HEAD"] {
        println!("cargo::rerun-if-changed={}", git(&["rev-parse", "--git-path", path])?);
    }
    for directory in fs::read_dir("..").into_iter().flatten().flatten() {
        println!("cargo::rerun-if-changed={}", directory.path().join("src").display());
    }
    git(&["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"])
}

fn git(words: &[&str]) -> Option<String> {
    let output = Command::new("git").args(words).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    output.status.success().then_some(text)
}

/// Returns the compiler, the target and the flags of this build in one line.
fn compiler() -> String {
    let variable = |name: &str| env::var(name).unwrap_or_default();
    let version = Command::new(variable("RUSTC")).arg("--version").output().ok();
    let version = version.and_then(|output| String::from_utf8(output.stdout).ok()).unwrap_or_default();
    let flags = variable("CARGO_ENCODED_RUSTFLAGS");
    // Replaced paths change no code, and would name directories of the machine that builds.
    let flags: Vec<&str> =
        flags.split('\u{1f}').filter(|flag| !flag.starts_with("--remap-path-prefix")).collect();
    let mut words = vec![version.trim().to_owned(), variable("TARGET"), flags.join(" ")];
    words.retain(|word| !word.is_empty());
    words.join(", ")
}
