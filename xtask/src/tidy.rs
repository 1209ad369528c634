//! `cargo xtask tidy`: the rules of the house that neither the compiler nor clippy can check.

mod attribute;
mod file;
mod graph;
mod module;
mod path;
mod registry;
mod room;
mod source;
mod tree;

use std::{
    fmt,
    path::{Path, PathBuf},
    process::ExitCode,
    time::SystemTime,
};

use crate::{
    codegen,
    failure::{Failure, Result},
    mpi::Flavour,
    workspace::Workspace,
};
use source::Source;

/// Check the rules of the house: who depends on whom, where unsafe code, clocks and printing may be
///
/// Prints every violation as file:line and fails when there is any. Needs no MPI and no network; the names of
/// benchmarks are checked against a built binary when there is one.
#[derive(clap::Args)]
#[command(after_help = "Example: cargo xtask tidy")]
pub(crate) struct Options {}

/// One rule broken in one place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Violation {
    path: String,
    line: usize,
    what: String,
}

impl Violation {
    fn new(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, what: what.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.what)
    }
}

pub(crate) fn main(_: &Options) -> Result<ExitCode> {
    Ok(match check(&Workspace::read()?)? {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

/// Prints all violations and says how many there are.
pub(crate) fn check(workspace: &Workspace) -> Result<usize> {
    let files = tree::files(&workspace.root)?;
    let mut violations = graph::check(&workspace.packages, |manifest, dependency| {
        let text = files.iter().find(|(path, _)| path == manifest).map_or("", |(_, text)| text);
        line_of(text, dependency)
    });
    let mut sources = Vec::new();
    for (path, text) in &files {
        violations.extend(path::check(path, text));
        if path.ends_with(".rs") {
            violations.extend(file::check(path, text));
            match Source::parse(path, text) {
                Ok(source) => sources.push(source),
                Err(violation) => violations.push(violation),
            }
        }
    }
    violations.extend(module::check(&sources));
    for source in &sources {
        violations.extend(room::check(source));
        violations.extend(attribute::check(source));
    }
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

/// The line of a manifest that names a dependency.
fn line_of(manifest: &str, dependency: &str) -> usize {
    let names =
        |line: &str| line.strip_prefix(dependency).is_some_and(|rest| rest.starts_with(['.', ' ', '=']));
    manifest.lines().position(names).map_or(1, |line| line + 1)
}

/// The newest binary of ombx.
fn built(workspace: &Workspace) -> Option<(PathBuf, SystemTime)> {
    let targets = Flavour::ALL.map(|flavour| workspace.target.join(flavour.key()));
    let targets = targets.into_iter().chain([workspace.target.clone()]);
    targets
        .flat_map(|target| ["debug", "release"].map(|profile| target.join(profile).join("ombx")))
        .filter_map(|binary| modified(&binary).map(|when| (binary, when)))
        .max_by_key(|(_, when)| *when)
}

/// When the crates were last edited.
fn edited(root: &Path, sources: &[Source]) -> Option<SystemTime> {
    sources
        .iter()
        .filter(|source| source.is_crate())
        .filter_map(|source| modified(&root.join(&source.path)))
        .max()
}

fn modified(path: &Path) -> Option<SystemTime> {
    path.metadata()
        .and_then(|file| file.modified())
        .map_err(|source| Failure::File { path: path.into(), source })
        .ok()
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

    #[test]
    fn a_violation_is_shown_as_a_place_that_editors_understand() {
        assert_eq!(Violation::new("a.rs", 3, "too long").to_string(), "a.rs:3: too long");
    }
}
