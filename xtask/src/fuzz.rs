//! `cargo xtask fuzz`: runs the fuzz targets of `fuzz/` with libFuzzer.

use std::{
    fs,
    path::Path,
    process::{Command, ExitCode},
    time::Duration,
};

use ombx_toolchain::{
    Failure, Mpi, Places, Result, Step, Summary, Workspace, cargo, consent, failed_if, installed, succeeds,
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
#[derive(clap::Args)]
#[command(after_help = "Example: cargo xtask fuzz --time 5m results suites")]
pub(crate) struct Options {
    /// Names of targets, as in fuzz/fuzz_targets [default: all]
    pub(crate) targets: Vec<String>,
    /// Time per target
    #[arg(long, default_value = "10s", value_parser = parse_time)]
    pub(crate) time: Duration,
    /// Install cargo-fuzz without asking
    #[arg(long)]
    pub(crate) yes: bool,
}

pub(crate) fn main(options: &Options) -> Result<ExitCode> {
    Ok(failed_if(failures(options)? > 0))
}

/// Fuzzes the targets and prints a summary. Returns the number of targets that failed.
pub(crate) fn failures(options: &Options) -> Result<usize> {
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
    Ok(steps.iter().filter(|step| step.failed()).count())
}

/// Reads a time with a unit: `20s`, `5m`, `1h`.
fn parse_time(text: &str) -> std::result::Result<Duration, String> {
    let split = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let seconds = match unit {
        "s" => Some(1.0),
        "m" | "min" => Some(60.0),
        "h" => Some(3600.0),
        _ => None,
    };
    let time = number.parse::<f64>().ok().zip(seconds).map(|(number, seconds)| number * seconds);
    let time = time.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    time.filter(|time| !time.is_zero()).ok_or_else(|| "give a time such as 20s, 5m or 1h".into())
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
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
    }

    #[test]
    fn a_time_has_a_unit() {
        assert_eq!(parse_time("20s"), Ok(Duration::from_secs(20)));
        assert_eq!(parse_time("1.5m"), Ok(Duration::from_secs(90)));
        for wrong in ["", "20", "s", "0s", "-1s", "1e9h", "5 parsecs"] {
            assert!(parse_time(wrong).is_err(), "{wrong}");
        }
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
