//! Who may know whom: the dependencies between the crates of the workspace, and the libraries kept out of them.

use super::Violation;
use crate::workspace::{Kind, Package};

/// Which crates of the workspace a crate may depend on.
const EDGES: &[(&str, &[&str])] = &[
    ("ombx-core", &[]),
    ("ombx-results", &["ombx-core"]),
    ("ombx-links", &["ombx-core", "ombx-results"]),
    ("ombx-mpi", &["ombx-core"]),
    ("ombx-p2p", &["ombx-core", "ombx-mpi"]),
    ("ombx-collective", &["ombx-core", "ombx-mpi"]),
    ("ombx-rma", &["ombx-core", "ombx-mpi"]),
    ("ombx-sockets", &["ombx-core"]),
    ("ombx-report", &["ombx-core", "ombx-results"]),
    (
        "ombx-cli",
        &[
            "ombx-core",
            "ombx-results",
            "ombx-links",
            "ombx-mpi",
            "ombx-p2p",
            "ombx-collective",
            "ombx-rma",
            "ombx-sockets",
            "ombx-report",
        ],
    ),
    ("ombx-tests", &["ombx-collective", "ombx-core", "ombx-results", "ombx-links", "ombx-mpi"]),
    ("xtask", &["ombx-core", "ombx-results", "ombx-links", "ombx-report"]),
];

const FAMILIES: &[&str] = &["ombx-p2p", "ombx-collective", "ombx-rma", "ombx-sockets"];

/// The only packages that read a command line.
const ARGUMENT_READERS: &[&str] = &["ombx-cli", "xtask"];

/// Packages that must build where there is no MPI.
const WITHOUT_MPI: &[&str] =
    &["ombx-core", "ombx-results", "ombx-links", "ombx-sockets", "ombx-report", "xtask"];

const ASYNC_RUNTIMES: &[&str] = &["tokio", "async-std", "smol", "futures"];

/// `line` finds the line of a manifest that names a dependency.
pub(super) fn check(packages: &[Package], line: impl Fn(&str, &str) -> usize) -> Vec<Violation> {
    let mut violations = Vec::new();
    for package in packages {
        for dependency in &package.dependencies {
            if let Some(why) = forbidden(packages, &package.name, &dependency.name, dependency.kind) {
                let line = line(&package.manifest, &dependency.name);
                violations.push(Violation::new(&package.manifest, line, why));
            }
        }
        if !EDGES.iter().any(|(name, _)| *name == package.name) {
            let why = format!("{} has no place in the graph of xtask/src/tidy/graph.rs", package.name);
            violations.push(Violation::new(&package.manifest, 1, why));
        }
    }
    violations
}

fn forbidden(packages: &[Package], from: &str, to: &str, kind: Kind) -> Option<String> {
    let inside = packages.iter().any(|package| package.name == to);
    let allowed =
        EDGES.iter().find(|(name, _)| *name == from).is_none_or(|(_, allowed)| allowed.contains(&to));
    if inside && !allowed {
        return Some(format!("{from} may not depend on {to}"));
    }
    let is =
        |name: &str| to == name || to.strip_prefix(name).is_some_and(|rest| rest.starts_with(['_', '-']));
    if is("mpi") && WITHOUT_MPI.contains(&from) {
        return Some(format!("{from} must build without an MPI, and depends on {to}"));
    }
    // A test may use what the code may not.
    if kind == Kind::Dev {
        return None;
    }
    if is("clap") && !ARGUMENT_READERS.contains(&from) {
        return Some(format!(
            "only {} read a command line; {from} depends on {to}",
            ARGUMENT_READERS.join(" and ")
        ));
    }
    if is("serde") && FAMILIES.contains(&from) {
        return Some(format!("a family measures and writes nothing; {from} depends on {to}"));
    }
    if from == "ombx-core" && ASYNC_RUNTIMES.iter().any(|name| is(name)) {
        return Some(format!("ombx-core is not async, and depends on {to}"));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Dependency;

    fn package(name: &str, dependencies: &[(&str, Kind)]) -> Package {
        let dependencies =
            dependencies.iter().map(|&(name, kind)| Dependency { name: name.into(), kind }).collect();
        Package { name: name.into(), manifest: format!("{name}/Cargo.toml"), dependencies }
    }

    fn found(name: &str, dependency: &str, kind: Kind) -> usize {
        let packages = [
            package("ombx-core", &[]),
            package("ombx-mpi", &[("ombx-core", Kind::Normal), ("mpi", Kind::Normal)]),
            package(name, &[(dependency, kind)]),
            package("ombx-rma", &[("ombx-core", Kind::Normal), ("ombx-mpi", Kind::Normal)]),
        ];
        check(&packages, |_, _| 7).len()
    }

    #[test]
    fn the_graph_as_it_is_meant_passes() {
        assert_eq!(found("ombx-p2p", "ombx-mpi", Kind::Normal), 0);
        assert_eq!(found("ombx-cli", "clap", Kind::Normal), 0);
        assert_eq!(found("ombx-core", "serde_json", Kind::Normal), 0);
        assert_eq!(found("ombx-p2p", "serde_json", Kind::Dev), 0);
    }

    #[test]
    fn families_do_not_know_each_other_not_even_in_tests() {
        assert_eq!(found("ombx-p2p", "ombx-rma", Kind::Normal), 1);
        assert_eq!(found("ombx-p2p", "ombx-rma", Kind::Dev), 1);
    }

    #[test]
    fn families_know_neither_arguments_nor_formats() {
        for dependency in ["clap", "clap_complete", "serde", "serde_json"] {
            assert_eq!(found("ombx-p2p", dependency, Kind::Normal), 1, "{dependency}");
        }
    }

    #[test]
    fn core_knows_no_mpi_no_arguments_and_no_runtime() {
        for dependency in ["mpi", "mpi-sys", "ombx-mpi", "clap", "tokio"] {
            assert_eq!(found("ombx-core", dependency, Kind::Normal), 1, "{dependency}");
        }
        assert_eq!(found("ombx-sockets", "mpi", Kind::Build), 1);
    }

    #[test]
    fn a_package_without_a_place_is_found() {
        assert_eq!(found("ombx-new", "serde", Kind::Normal), 1);
    }
}
