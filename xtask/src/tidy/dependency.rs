//! Dependencies between the packages of the workspace, and external crates that some packages must not have.

use ombx_toolchain::{Kind, Package};

use super::violation::Violation;

/// Packages of the workspace on which a package may depend.
const EDGES: &[(&str, &[&str])] = &[
    ("ombx-record", &[]),
    ("ombx-host", &["ombx-record"]),
    ("ombx-estimate", &["ombx-record"]),
    ("ombx-links", &["ombx-record", "ombx-host", "ombx-estimate"]),
    ("ombx-compare", &["ombx-record", "ombx-host", "ombx-estimate", "ombx-links", "ombx-core"]),
    ("ombx-draw", &["ombx-record", "ombx-estimate", "ombx-links", "ombx-compare"]),
    (
        "ombx-show",
        &[
            "ombx-record",
            "ombx-host",
            "ombx-estimate",
            "ombx-links",
            "ombx-compare",
            "ombx-draw",
            "ombx-drop-in",
            "ombx-core",
        ],
    ),
    (
        "ombx-drop-in",
        &["ombx-record", "ombx-host", "ombx-estimate", "ombx-show", "ombx-core", "ombx-accelerator"],
    ),
    (
        "ombx-report",
        &["ombx-record", "ombx-estimate", "ombx-links", "ombx-compare", "ombx-draw", "ombx-show"],
    ),
    ("ombx-core", &["ombx-record", "ombx-host"]),
    ("ombx-sweep", &["ombx-record", "ombx-links", "ombx-core"]),
    ("ombx-accelerator", &["ombx-core"]),
    ("ombx-mpi", &["ombx-host", "ombx-core", "ombx-accelerator"]),
    ("ombx-p2p", &["ombx-core", "ombx-mpi"]),
    ("ombx-collective", &["ombx-core", "ombx-mpi"]),
    ("ombx-rma", &["ombx-core", "ombx-mpi"]),
    ("ombx-io", &["ombx-core", "ombx-mpi"]),
    ("ombx-sockets", &["ombx-record", "ombx-host", "ombx-core"]),
    ("ombx-fleet", &["ombx-record", "ombx-host", "ombx-links"]),
    (
        "ombx-launch",
        &[
            "ombx-record",
            "ombx-host",
            "ombx-estimate",
            "ombx-links",
            "ombx-compare",
            "ombx-draw",
            "ombx-show",
            "ombx-drop-in",
            "ombx-fleet",
            "ombx-core",
            "ombx-sweep",
            "ombx-accelerator",
            "ombx-mpi",
            "ombx-sockets",
        ],
    ),
    (
        "ombx-check",
        &[
            "ombx-record",
            "ombx-host",
            "ombx-estimate",
            "ombx-links",
            "ombx-show",
            "ombx-core",
            "ombx-accelerator",
            "ombx-launch",
        ],
    ),
    ("ombx-cluster", &["ombx-record", "ombx-host", "ombx-links", "ombx-fleet", "ombx-sweep"]),
    (
        "ombx-cli",
        &[
            "ombx-record",
            "ombx-host",
            "ombx-estimate",
            "ombx-links",
            "ombx-compare",
            "ombx-draw",
            "ombx-show",
            "ombx-drop-in",
            "ombx-report",
            "ombx-core",
            "ombx-sweep",
            "ombx-mpi",
            "ombx-p2p",
            "ombx-collective",
            "ombx-rma",
            "ombx-io",
            "ombx-sockets",
            "ombx-launch",
            "ombx-check",
            "ombx-cluster",
        ],
    ),
    (
        "ombx-tests",
        &[
            "ombx-record",
            "ombx-host",
            "ombx-estimate",
            "ombx-links",
            "ombx-core",
            "ombx-mpi",
            "ombx-collective",
            "ombx-toolchain",
        ],
    ),
    // Contains the timed loops of all families over MPI, and plain C loops beside them.
    (
        "ombx-fidelity",
        &[
            "ombx-record",
            "ombx-host",
            "ombx-core",
            "ombx-mpi",
            "ombx-p2p",
            "ombx-collective",
            "ombx-rma",
            "ombx-io",
            "ombx-toolchain",
        ],
    ),
    (
        "ombx-cost",
        &[
            "ombx-record",
            "ombx-host",
            "ombx-estimate",
            "ombx-links",
            "ombx-show",
            "ombx-core",
            "ombx-sweep",
            "ombx-sockets",
            "ombx-toolchain",
        ],
    ),
    (TESTKIT, &["ombx-record", "ombx-host", "ombx-core"]),
    ("ombx-toolchain", &[]),
    ("ombx-hosts", &["ombx-record", "ombx-cluster", "ombx-toolchain"]),
    ("xtask", &["ombx-toolchain"]),
];
/// Packages of the workspace on which the verification programs may depend.
const VERIFY: &[&str] = &[
    "ombx-record",
    "ombx-host",
    "ombx-estimate",
    "ombx-links",
    "ombx-compare",
    "ombx-core",
    TESTKIT,
    "ombx-toolchain",
];

/// Support of tests, on which the tests of every package may depend.
const TESTKIT: &str = "ombx-testkit";

const FAMILIES: &[&str] = &["ombx-p2p", "ombx-collective", "ombx-rma", "ombx-io", "ombx-sockets"];

/// Crates that link an MPI library.
const MPI_BINDINGS: [&str; 2] = ["mpi", "mpi-sys"];

/// Packages below `crates/` that read a command line.
const ARGUMENT_READERS: &[&str] = &["ombx-cli", "ombx-cluster"];

const ASYNC_RUNTIMES: &[&str] = &["tokio", "async-std", "smol", "futures"];

/// Checks all packages. `line` finds the line of a manifest that names a dependency.
pub(super) fn check(packages: &[Package], line: impl Fn(&str, &str) -> usize) -> Vec<Violation> {
    let mut violations = Vec::new();
    for package in packages {
        let Some(allowed) = allowed(package) else {
            let what = format!("{} is not in the table of xtask/src/tidy/dependency.rs", package.name);
            violations.push(Violation::new(&package.manifest, 1, what));
            continue;
        };
        for dependency in &package.dependencies {
            let inside = packages.iter().any(|package| package.name == dependency.name);
            let is_allowed = allowed.contains(&&*dependency.name)
                || dependency.name == TESTKIT && dependency.kind == Kind::Dev;
            let what = if !inside {
                forbidden(package, &dependency.name, dependency.kind)
            } else if is_allowed {
                None
            } else {
                Some(format!("{} may not depend on {}", package.name, dependency.name))
            };
            let line = || line(&package.manifest, &dependency.name);
            violations.extend(what.map(|what| Violation::new(&package.manifest, line(), what)));
        }
    }
    violations
}

/// Finds dependencies that no file of their package names. `files` are all files of the repository with their texts.
pub(super) fn unused(
    packages: &[Package],
    files: &[(String, String)],
    line: impl Fn(&str, &str) -> usize,
) -> Vec<Violation> {
    let mut violations = Vec::new();
    for package in packages {
        let directory = package.manifest.trim_end_matches("Cargo.toml");
        let code = || files.iter().filter(|(path, _)| path.starts_with(directory) && path.ends_with(".rs"));
        for dependency in &package.dependencies {
            let name = dependency.name.replace('-', "_");
            if !code().any(|(_, text)| names(text, &name)) {
                let what = format!("{} does not use {}: remove it", package.name, dependency.name);
                let at = line(&package.manifest, &dependency.name);
                violations.push(Violation::new(&package.manifest, at, what));
            }
        }
    }
    violations
}

/// Returns whether a text has a name as a word of its own.
fn names(text: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(name)
        .any(|(at, _)| !text[..at].ends_with(is_part) && !text[at + name.len()..].starts_with(is_part))
}

fn allowed(package: &Package) -> Option<&'static [&'static str]> {
    let listed = EDGES.iter().find(|(name, _)| *name == package.name).map(|(_, allowed)| *allowed);
    listed.or(package.manifest.starts_with("verify/").then_some(VERIFY))
}

/// Returns what is wrong with a dependency on an external crate.
fn forbidden(package: &Package, to: &str, kind: Kind) -> Option<String> {
    let from = &*package.name;
    let is =
        |name: &str| to == name || to.strip_prefix(name).is_some_and(|rest| rest.starts_with(['_', '-']));
    if MPI_BINDINGS.contains(&to) && from != "ombx-mpi" {
        return Some(format!("only ombx-mpi links an MPI; {from} depends on {to}"));
    }
    // A test may use what the code may not.
    if kind == Kind::Dev {
        return None;
    }
    if is("clap") && package.manifest.starts_with("crates/") && !ARGUMENT_READERS.contains(&from) {
        let readers = ARGUMENT_READERS.join(" and ");
        return Some(format!("only {readers} read a command line; {from} depends on {to}"));
    }
    // Ranks over sockets exchange messages that serde encodes.
    if is("serde") && FAMILIES.contains(&from) && from != "ombx-sockets" {
        return Some(format!("a family of benchmarks writes no files; {from} depends on {to}"));
    }
    if from == "ombx-core" && ASYNC_RUNTIMES.iter().any(|name| is(name)) {
        return Some(format!("ombx-core is not asynchronous; it depends on {to}"));
    }
    None
}

#[cfg(test)]
mod tests {
    use ombx_toolchain::Dependency;

    use super::*;

    fn package(directory: &str, name: &str, dependencies: &[(&str, Kind)]) -> Package {
        let dependencies =
            dependencies.iter().map(|&(name, kind)| Dependency { name: name.into(), kind }).collect();
        Package { name: name.into(), manifest: format!("{directory}/{name}/Cargo.toml"), dependencies }
    }

    fn found(name: &str, dependency: &str, kind: Kind) -> usize {
        found_in("crates", name, dependency, kind)
    }

    fn found_in(directory: &str, name: &str, dependency: &str, kind: Kind) -> usize {
        let packages = [
            package("crates", "ombx-core", &[]),
            package("crates", "ombx-mpi", &[("ombx-core", Kind::Normal), ("mpi", Kind::Normal)]),
            package(directory, name, &[(dependency, kind)]),
            package("crates", "ombx-rma", &[("ombx-core", Kind::Normal), ("ombx-mpi", Kind::Normal)]),
        ];
        check(&packages, |_, _| 7).len()
    }

    #[test]
    fn the_intended_dependencies_pass() {
        assert_eq!(found("ombx-p2p", "ombx-mpi", Kind::Normal), 0);
        assert_eq!(found("ombx-cli", "clap", Kind::Normal), 0);
        assert_eq!(found("ombx-core", "serde_json", Kind::Normal), 0);
        assert_eq!(found("ombx-p2p", "serde_json", Kind::Dev), 0);
        assert_eq!(found_in("verify", "ombx-anything", "ombx-core", Kind::Normal), 0);
        assert_eq!(found_in("verify", "ombx-anything", "clap", Kind::Normal), 0);
    }

    #[test]
    fn families_do_not_depend_on_each_other() {
        assert_eq!(found("ombx-p2p", "ombx-rma", Kind::Normal), 1);
        assert_eq!(found("ombx-p2p", "ombx-rma", Kind::Dev), 1);
    }

    #[test]
    fn families_read_no_arguments_and_write_no_files() {
        for dependency in ["clap", "clap_complete", "serde", "serde_json"] {
            assert_eq!(found("ombx-p2p", dependency, Kind::Normal), 1, "{dependency}");
        }
    }

    #[test]
    fn core_has_no_mpi_no_arguments_and_no_runtime() {
        for dependency in ["mpi", "mpi-sys", "ombx-mpi", "clap", "tokio"] {
            assert_eq!(found("ombx-core", dependency, Kind::Normal), 1, "{dependency}");
        }
        assert_eq!(found("ombx-sockets", "mpi", Kind::Build), 1);
        assert_eq!(found_in("verify", "ombx-anything", "ombx-mpi", Kind::Normal), 1);
    }

    #[test]
    fn a_dependency_that_no_file_names_is_found() {
        let packages = [package("crates", "ombx-p2p", &[("serde-json", Kind::Normal)])];
        let found = |path: &str, text: &str| unused(&packages, &[(path.into(), text.into())], |_, _| 1).len();
        assert_eq!(found("crates/ombx-p2p/src/lib.rs", "use serde_json::Value;"), 0);
        assert_eq!(found("crates/ombx-p2p/src/lib.rs", "use my_serde_json;"), 1);
        assert_eq!(found("crates/ombx-rma/src/lib.rs", "use serde_json::Value;"), 1);
    }

    #[test]
    fn a_package_that_is_not_listed_is_found() {
        assert_eq!(found("ombx-new", "serde", Kind::Normal), 1);
    }
}
