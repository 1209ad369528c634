//! `cargo xtask fuzz`: runs the fuzz targets of `fuzz/` with libFuzzer.
#![expect(clippy::print_stdout, reason = "a program that reports to a person or to a CI log")]

use std::{
    fs,
    path::Path,
    process::{Command, ExitCode},
    time::Duration,
};

use clap::Parser as _;
use ombx_record::unit::parse_duration;
use ombx_toolchain::{
    Failure, Mpi, Places, Result, Step, Summary, Workspace, cargo, consent, exit_code, failed_if, installed,
    succeeds,
};

/// Time limit of an input.
const SLOWEST: Duration = Duration::from_secs(10);
/// Memory limit of an input, in MiB.
const MEMORY: u32 = 1024;
/// Length limit of an input, in bytes.
const LONGEST: u32 = 8192;

/// Fuzz the readers of command lines, suites, host files, results and frames
///
/// Needs a C++ compiler and cargo-fuzz, which it installs with consent. The corpus and inputs that fail are in target/fuzz. Move a
/// failed input to fuzz/seeds once it is fixed: `cargo test` calls the same functions with all seeds and with variations of them.
#[derive(clap::Parser)]
#[command(bin_name = "cargo xtask fuzz", after_help = "Example: cargo xtask fuzz --time 5m results suites")]
struct Options {
    /// Names of targets, as in fuzz/fuzz_targets [default: all]
    targets: Vec<String>,
    /// Time per target
    #[arg(long, default_value = "10s", value_parser = parse_duration)]
    time: Duration,
    /// Install cargo-fuzz without asking
    #[arg(long)]
    yes: bool,
}

fn main() -> ExitCode {
    exit_code(run(&Options::parse()))
}

fn run(options: &Options) -> Result<ExitCode> {
    let workspace = Workspace::read()?;
    let known = targets(&workspace.root)?;
    if let Some(wrong) = options.targets.iter().find(|name| !known.contains(name)) {
        return Err(Failure::Usage(format!(
            "there is no fuzz target {wrong}; targets are {}",
            known.join(", ")
        )));
    }
    if Places::here().program("c++").is_none() {
        return Err(Failure::Missing("no C++ compiler for libFuzzer. Install one (Debian: g++)".into()));
    }
    has_cargo_fuzz(options.yes)?;
    let mpi = installed(None)?.remove(0);
    Step::run("fuzz targets", &mut fuzz(&workspace, &mpi, "build")).built()?;
    let chosen = if options.targets.is_empty() { known } else { options.targets.clone() };
    let steps = chosen.iter().map(|target| step(&workspace, &mpi, target, options.time));
    let steps = steps.collect::<Result<Vec<_>>>()?;
    println!("\n{}", Summary(&steps));
    Ok(failed_if(steps.iter().any(Step::failed)))
}

/// Returns the names of the programs of `fuzz/`.
fn targets(root: &Path) -> Result<Vec<String>> {
    let directory = root.join("fuzz/fuzz_targets");
    let entries = fs::read_dir(&directory).map_err(Failure::file(directory))?;
    let names = entries.flatten().filter_map(|entry| Some(entry.path().file_stem()?.to_str()?.to_owned()));
    let mut names: Vec<String> = names.collect();
    names.sort();
    Ok(names)
}

fn has_cargo_fuzz(yes: bool) -> Result<()> {
    if succeeds(cargo().args(["fuzz", "--version"])) {
        return Ok(());
    }
    println!("cargo-fuzz is missing. To install it:\n  cargo install --locked cargo-fuzz");
    consent::ask(yes)?;
    Step::run("cargo-fuzz", cargo().args(["install", "--locked", "cargo-fuzz"])).built()
}

/// Returns a command of cargo-fuzz without a sanitizer: the code is safe Rust, and stable Rust has no sanitizers.
fn fuzz(workspace: &Workspace, mpi: &Mpi, what: &str) -> Command {
    let mut command = cargo();
    mpi.build_with(&mut command, &workspace.target);
    command.env_remove("CARGO_TARGET_DIR").current_dir(&workspace.root);
    command.args(["fuzz", what, "--fuzz-dir", "fuzz", "--sanitizer", "none", "--target-dir"]);
    command.arg(workspace.target.join("fuzz"));
    command
}

fn step(workspace: &Workspace, mpi: &Mpi, target: &str, time: Duration) -> Result<Step> {
    let directory = workspace.target.join("fuzz");
    let (corpus, found) = (directory.join("corpus").join(target), directory.join("found"));
    for directory in [&corpus, &found] {
        fs::create_dir_all(directory).map_err(Failure::file(&**directory))?;
    }
    let mut command = fuzz(workspace, mpi, "run");
    command.arg(target).arg(corpus).arg(workspace.root.join("fuzz/seeds").join(target)).arg("--");
    command.arg(format!("-max_total_time={}", time.as_secs().max(1)));
    command.arg(format!("-timeout={}", SLOWEST.as_secs()));
    command.arg(format!("-rss_limit_mb={MEMORY}")).arg(format!("-max_len={LONGEST}"));
    command.arg(format!("-artifact_prefix={}/{target}-", found.display()));
    command.args(["-print_final_stats=1", "-verbosity=0"]);
    Ok(Step::run(target, &mut command))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the root of the repository.
    fn root() -> &'static Path {
        Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap()
    }

    #[test]
    fn every_target_has_seeds_and_is_built() {
        let manifest = fs::read_to_string(root().join("fuzz/Cargo.toml")).unwrap();
        for target in targets(root()).unwrap() {
            assert!(
                manifest.contains(&format!("name = \"{target}\"\n")),
                "{target} is not in fuzz/Cargo.toml"
            );
            let seeds = fs::read_dir(root().join("fuzz/seeds").join(&target));
            assert!(seeds.unwrap().count() > 0, "{target} has no seeds");
        }
    }
}
