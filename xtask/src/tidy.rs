//! `cargo xtask tidy`: rules of the repository that the compiler, Cargo and clippy cannot check.

mod architecture;
mod changelog;
mod dependency;
mod file;
mod identity;
mod link;
mod module;
mod place;
mod violation;

use std::process::ExitCode;

use ombx_toolchain::{Result, Workspace, failed_if};

use self::violation::Violation;
use crate::{identity::IDENTITY, repository, source::Source};

/// Check rules of the repository: dependencies, files, ARCHITECTURE.md, links of documents, addresses, unsafe code, clocks
///
/// Prints every violation as file:line and fails when there is any. Needs no MPI, no network and no build of ombx.
#[derive(clap::Args)]
#[command(after_help = "Example: cargo xtask tidy")]
pub(crate) struct Options {}

pub(crate) fn main(_: &Options) -> Result<ExitCode> {
    Ok(failed_if(check(&Workspace::read()?)? > 0))
}

/// Prints all violations and returns their number.
pub(crate) fn check(workspace: &Workspace) -> Result<usize> {
    let files = repository::files(&workspace.root, repository::NOT_IGNORED)?;
    let line = |manifest: &str, dependency: &str| {
        let text = files.iter().find(|(path, _)| path == manifest).map_or("", |(_, text)| text);
        line_of(text, dependency)
    };
    let mut violations = dependency::check(&workspace.packages, line);
    violations.extend(dependency::unused(&workspace.packages, &files, line));
    let mut sources = Vec::new();
    for (path, text) in files.iter().filter(|(path, _)| path.ends_with(".rs")) {
        violations.extend(file::check(path, text));
        match Source::parse(path, text) {
            Ok(source) => sources.push(source),
            Err(line) => violations.push(Violation::new(path, line, "is not Rust")),
        }
    }
    let text = |path: &str| files.iter().find(|(name, _)| name == path).map(|(_, text)| text.as_str());
    let page = text("ARCHITECTURE.md").unwrap_or_default();
    violations.extend(architecture::check(page, &workspace.packages, text));
    violations.extend(changelog::check(text(changelog::PATH).unwrap_or_default()));
    violations.extend(identity::check(&files, &IDENTITY));
    violations.extend(link::check(&files, |path| workspace.root.join(path).exists()));
    violations.extend(module::check(&sources));
    violations.extend(sources.iter().flat_map(place::check));
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
