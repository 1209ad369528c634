//! `cargo xtask tidy`: rules of the repository that the compiler, Cargo and clippy cannot check.

mod cycle;
mod dependency;
mod file;
mod module;
mod place;
mod registry;
mod violation;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::SystemTime,
};

use ombx_toolchain::{
    failure::{Result, failed_if},
    mpi::Flavour,
    workspace::Workspace,
};

use self::violation::Violation;
use crate::{codegen, repository, source::Source};

/// Check rules of the repository: dependencies, import cycles, files, places of unsafe code and clocks, benchmark names
///
/// Prints every violation as file:line and fails when there is any. Needs no MPI and no network. Names of benchmarks are checked
/// against a built binary when there is one.
#[derive(clap::Args)]
#[command(after_help = "Example: cargo xtask tidy")]
pub(crate) struct Options {}

pub(crate) fn main(_: &Options) -> Result<ExitCode> {
    Ok(failed_if(check(&Workspace::read()?)? > 0))
}

/// Prints all violations and returns their number.
pub(crate) fn check(workspace: &Workspace) -> Result<usize> {
    let files = repository::files(&workspace.root)?;
    let mut violations = dependency::check(&workspace.packages, |manifest, dependency| {
        let text = files.iter().find(|(path, _)| path == manifest).map_or("", |(_, text)| text);
        line_of(text, dependency)
    });
    let mut sources = Vec::new();
    for (path, text) in files.iter().filter(|(path, _)| path.ends_with(".rs")) {
        violations.extend(file::check(path, text));
        match Source::parse(path, text) {
            Ok(source) => sources.push(source),
            Err(line) => violations.push(Violation::new(path, line, "is not Rust")),
        }
    }
    violations.extend(module::check(&sources));
    violations.extend(cycle::check(workspace, &sources));
    violations.extend(sources.iter().flat_map(place::check));
    match built(workspace) {
        None => println!("Names of benchmarks: not checked, no binary of ombx is built."),
        Some((binary, when)) if edited(&workspace.root, &sources).is_some_and(|edit| edit > when) => {
            println!("Names of benchmarks: not checked, {} is older than its sources.", binary.display());
        }
        Some((binary, _)) => violations.extend(registry::check(&codegen::names(&binary)?, &sources)),
    }

    violations.sort();
    for violation in &violations {
        println!("{violation}");
    }
    println!("tidy: {} files, {} violation(s)", files.len(), violations.len());
    Ok(violations.len())
}

/// Returns the line of a manifest that names a dependency.
fn line_of(manifest: &str, dependency: &str) -> usize {
    let names =
        |line: &str| line.strip_prefix(dependency).is_some_and(|rest| rest.starts_with(['.', ' ', '=']));
    manifest.lines().position(names).map_or(1, |line| line + 1)
}

/// Returns the newest binary of ombx.
fn built(workspace: &Workspace) -> Option<(PathBuf, SystemTime)> {
    let targets = Flavour::ALL.map(|flavour| workspace.target.join(flavour.key()));
    let targets = targets.into_iter().chain([workspace.target.clone()]);
    targets
        .flat_map(|target| ["debug", "release"].map(|profile| target.join(profile).join("ombx")))
        .filter_map(|binary| modified(&binary).map(|when| (binary, when)))
        .max_by_key(|(_, when)| *when)
}

/// Returns when the crates were last edited.
fn edited(root: &Path, sources: &[Source]) -> Option<SystemTime> {
    let crates = sources.iter().filter(|source| source.is_crate());
    crates.filter_map(|source| modified(&root.join(&source.path))).max()
}

fn modified(path: &Path) -> Option<SystemTime> {
    path.metadata().and_then(|file| file.modified()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dependency_is_found_in_its_manifest() {
        let manifest = "[dependencies]\nserde_json.workspace = true\nserde = \"1\"\n";
        assert_eq!(line_of(manifest, "serde"), 3);
        assert_eq!(line_of(manifest, "serde_json"), 2);
        assert_eq!(line_of(manifest, "clap"), 1);
    }
}
