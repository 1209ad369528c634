//! `cargo xtask fuzz`: what reads what others wrote, called with any bytes by libFuzzer.

use std::{
    fs,
    path::Path,
    process::{Command, ExitCode, Stdio},
    time::Duration,
};

use ombx_core::unit::parse_duration;

use crate::{
    consent::{self, Consent},
    failure::{Failure, Result},
    mpi::{Mpi, Places, Which},
    setup,
    step::{Step, Summary},
    workspace::{Workspace, cargo},
};

/// An input that takes longer is one that hangs.
const SLOWEST: Duration = Duration::from_secs(10);
/// The most memory for an input, in MiB.
const MEMORY: u32 = 1024;
/// The longest input, in bytes: what is read is lines and short files.
const LONGEST: u32 = 8192;

/// Call what reads what others wrote with any bytes: command lines, suites, host files, results, frames
///
/// Needs cargo-fuzz, which it installs when allowed to, and a C++ compiler. What it learns is kept in target/fuzz. An input
/// that fails is a file there too; once its reason is mended it belongs in fuzz/seeds, where it is a test: `cargo test` calls
/// the same functions with all seeds and changes of them.
#[derive(clap::Args)]
#[command(after_help = "Example: cargo xtask fuzz --time 5m results suites")]
pub(crate) struct Options {
    /// Targets, as the files of fuzz/fuzz_targets are called [default: all]
    targets: Vec<String>,
    /// Time for each
    #[arg(long, default_value = "10s", value_parser = parse_duration)]
    time: Duration,
    /// Install cargo-fuzz without asking
    #[arg(long)]
    yes: bool,
}

pub(crate) fn main(options: &Options) -> Result<ExitCode> {
    let workspace = Workspace::read()?;
    let known = targets(&workspace.root)?;
    if let Some(wrong) = options.targets.iter().find(|name| !known.contains(name)) {
        return Err(Failure::Usage(format!(
            "no fuzz target is called {wrong}; there are {}",
            known.join(", ")
        )));
    }
    if Places::here().program("c++").is_none() {
        return Err(Failure::Missing("no C++ compiler, of which libFuzzer is built (Debian: g++)".into()));
    }
    has_cargo_fuzz(options.yes)?;
    let mpis = setup::Facts::gather(Which::All.flavours()).mpis();
    let mpi =
        mpis.first().ok_or_else(|| Failure::Missing("no MPI to build with: cargo xtask setup".into()))?;
    let build = Step::run("build", &mut fuzz(&workspace, mpi, "build"));
    if build.failed() {
        return Ok(ExitCode::FAILURE);
    }
    let chosen = if options.targets.is_empty() { known } else { options.targets.clone() };
    let steps = chosen.iter().map(|target| run(&workspace, mpi, target, options.time));
    let steps = steps.collect::<Result<Vec<_>>>()?;
    println!("\n{}", Summary(&steps));
    Ok(if steps.iter().any(Step::failed) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The programs of `fuzz/`.
fn targets(root: &Path) -> Result<Vec<String>> {
    let directory = root.join("fuzz/fuzz_targets");
    let entries = fs::read_dir(&directory).map_err(Failure::file(directory))?;
    let names = entries.flatten().filter_map(|entry| Some(entry.path().file_stem()?.to_str()?.to_owned()));
    let mut names: Vec<String> = names.collect();
    names.sort();
    Ok(names)
}

fn has_cargo_fuzz(yes: bool) -> Result<()> {
    let mut ask = cargo();
    ask.args(["fuzz", "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
    if ask.status().is_ok_and(|status| status.success()) {
        return Ok(());
    }
    println!("cargo-fuzz is missing. To install it:\n  cargo install --locked cargo-fuzz");
    match consent::ask(yes) {
        Ok(Consent::Given) => {}
        Ok(Consent::Refused) => return Err(Failure::NotInstalled("not agreed to".into())),
        Ok(Consent::NoTerminal) => {
            return Err(Failure::NotInstalled("no terminal to ask on (--yes agrees)".into()));
        }
        Err(source) => return Err(Failure::Run { program: "the question".into(), source }),
    }
    match Step::run("cargo-fuzz", cargo().args(["install", "--locked", "cargo-fuzz"])).failed() {
        true => Err(Failure::Missing("cargo-fuzz was not installed (see above)".into())),
        false => Ok(()),
    }
}

/// Everything is safe Rust: a sanitizer, which stable Rust does not have, would find nothing here.
fn fuzz(workspace: &Workspace, mpi: &Mpi, what: &str) -> Command {
    let mut command = cargo();
    mpi.build_with(&mut command, &workspace.target);
    command.env_remove("CARGO_TARGET_DIR").current_dir(&workspace.root);
    command.args(["fuzz", what, "--fuzz-dir", "fuzz", "--sanitizer", "none", "--target-dir"]);
    command.arg(workspace.target.join("fuzz"));
    command
}

fn run(workspace: &Workspace, mpi: &Mpi, target: &str, time: Duration) -> Result<Step> {
    let room = workspace.target.join("fuzz");
    let (corpus, found) = (room.join("corpus").join(target), room.join("found"));
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

    /// The root of the repository, by this package.
    fn root() -> &'static Path {
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
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
