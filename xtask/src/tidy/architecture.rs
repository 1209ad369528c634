//! The lists of ARCHITECTURE.md, checked against the code: dependencies between crates, and the way of one case.

use std::collections::{BTreeMap, BTreeSet};

use ombx_toolchain::{Kind, Package};

use super::violation::Violation;

/// The page that is checked.
const PAGE: &str = "ARCHITECTURE.md";
/// Times that a case may enter a file.
const MAX_ENTRIES: usize = 2;

type Edges<'a> = BTreeSet<(&'a str, &'a str)>;

/// Checks the page. `source` returns the text of a file of the repository.
pub(super) fn check<'a>(
    page: &'a str,
    packages: &'a [Package],
    source: impl Fn(&str) -> Option<&'a str>,
) -> Vec<Violation> {
    [crates(page, packages), first_looks(page, &source), way_of_a_case(page, source)].concat()
}

/// Checks that the files of the tables exist.
fn first_looks<'a>(page: &str, source: impl Fn(&str) -> Option<&'a str>) -> Vec<Violation> {
    let rows = (1..).zip(page.lines()).filter(|(_, line)| line.starts_with("| "));
    let paths = rows.flat_map(|(number, line)| {
        let quoted = line.split('`').filter(|word| word.starts_with("crates/") && word.ends_with(".rs"));
        quoted.map(move |path| (number, path))
    });
    let missing = paths.filter(|(_, path)| source(path).is_none());
    missing.map(|(number, path)| Violation::new(PAGE, number, format!("{path} does not exist"))).collect()
}

/// Compares the arrows of the picture with the dependencies that do not follow from others.
fn crates(page: &str, packages: &[Package]) -> Vec<Violation> {
    let drawn: Edges<'_> = page.lines().filter_map(|line| line.trim().split_once(" --> ")).collect();
    let real = direct(packages);
    let wrong = drawn.difference(&real).map(|(from, to)| format!("{from} --> {to} is no direct dependency"));
    let missing = real.difference(&drawn).map(|(from, to)| format!("the arrow {from} --> {to} is missing"));
    wrong.chain(missing).map(|what| Violation::new(PAGE, 1, what)).collect()
}

/// Returns the dependencies between crates without those that others imply.
fn direct(packages: &[Package]) -> Edges<'_> {
    let name = |package: &'_ str| packages.iter().find(|p| p.name == package).and_then(crate_name);
    let edges: Edges<'_> = packages
        .iter()
        .filter_map(|package| Some((crate_name(package)?, package)))
        .flat_map(|(from, package)| {
            let normal = package.dependencies.iter().filter(|dependency| dependency.kind == Kind::Normal);
            normal.filter_map(move |dependency| Some((from, name(&dependency.name)?)))
        })
        .collect();
    let implied = |(from, to): &(&str, &str)| {
        edges.iter().any(|(start, middle)| start == from && middle != to && reaches(&edges, middle, to))
    };
    edges.iter().filter(|edge| !implied(edge)).copied().collect()
}

fn crate_name(package: &Package) -> Option<&str> {
    package.manifest.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")
}

fn reaches(edges: &Edges<'_>, from: &str, to: &str) -> bool {
    edges.iter().any(|(start, end)| *start == from && (*end == to || reaches(edges, end, to)))
}

/// Checks that the numbered files exist and define the named functions. One of the files before must call the first function.
fn way_of_a_case<'a>(page: &str, source: impl Fn(&str) -> Option<&'a str>) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut entries: BTreeMap<&str, usize> = BTreeMap::new();
    let mut callers: Vec<&str> = Vec::new();
    for (number, line) in (1..).zip(page.lines()) {
        let Some((path, functions)) = step(line) else {
            // After text between the steps another process continues.
            if !line.is_empty() {
                callers.clear();
            }
            continue;
        };
        let mut wrong = |what: String| violations.push(Violation::new(PAGE, number, what));
        *entries.entry(path).or_default() += 1;
        let Some(text) = source(path) else {
            wrong(format!("{path} does not exist"));
            continue;
        };
        for function in &functions {
            if !text.contains(&format!("fn {function}(")) && !text.contains(&format!("fn {function}<")) {
                wrong(format!("{path} defines no function {function}"));
            }
        }
        let called = functions[0];
        if !callers.is_empty() && !callers.iter().any(|caller| calls(caller, called)) {
            wrong(format!("no file before {path} calls {called}"));
        }
        callers.push(text);
    }
    let often = entries.iter().filter(|(_, times)| **times > MAX_ENTRIES);
    violations.extend(
        often.map(|(path, times)| Violation::new(PAGE, 1, format!("{path} is entered {times} times"))),
    );
    violations
}

/// Returns whether a text calls a function of this name.
fn calls(text: &str, function: &str) -> bool {
    ["(", "::<"].iter().any(|end| {
        text.match_indices(&format!("{function}{end}")).any(|(at, _)| {
            let before = &text[..at];
            !before.ends_with("fn ") && !before.ends_with(|c: char| c.is_alphanumeric() || c == '_')
        })
    })
}

/// Parses a step: `1. `path`: `function`, `function` text`.
fn step(line: &str) -> Option<(&str, Vec<&str>)> {
    let (number, rest) = line.split_once(". `")?;
    number.parse::<u32>().ok()?;
    let (path, rest) = rest.split_once("`: `")?;
    let functions = rest.split("`, `").map(|part| part.split('`').next().unwrap_or_default()).collect();
    Some((path, functions))
}

#[cfg(test)]
mod tests {
    use ombx_toolchain::Dependency;

    use super::*;

    fn package(name: &str, dependencies: &[&str]) -> Package {
        let dependency = |name: &&str| Dependency { name: format!("ombx-{name}"), kind: Kind::Normal };
        Package {
            name: format!("ombx-{name}"),
            manifest: format!("crates/{name}/Cargo.toml"),
            dependencies: dependencies.iter().map(dependency).collect(),
        }
    }

    #[test]
    fn the_picture_has_the_direct_dependencies() {
        let packages = [package("core", &[]), package("mpi", &["core"]), package("p2p", &["core", "mpi"])];
        let found = |page: &str| crates(page, &packages).len();
        assert_eq!(found("p2p --> mpi\nmpi --> core\n"), 0);
        assert_eq!(found("mpi --> core\n"), 1);
        assert_eq!(found("p2p --> mpi\nmpi --> core\np2p --> core\n"), 1);
    }

    #[test]
    fn files_of_tables_exist() {
        let source = |path: &str| (path == "crates/a.rs").then_some("");
        let found = |page: &str| first_looks(page, source).len();
        assert_eq!(found("| a question | `crates/a.rs` |\n"), 0);
        assert_eq!(found("| two | `crates/a.rs`; `crates/b.rs` |\n| a folder | `crates/c` |\n"), 1);
    }

    #[test]
    fn steps_call_each_other() {
        let files = [("a.rs", "fn first() { second(1) }"), ("b.rs", "fn second(x: u8) {}")];
        let source = |path: &str| files.iter().find(|(name, _)| *name == path).map(|(_, text)| *text);
        let found = |page: &str| way_of_a_case(page, source).len();
        assert_eq!(found("1. `a.rs`: `first`\n2. `b.rs`: `second` with a reason\n"), 0);
        assert_eq!(found("1. `b.rs`: `second`\n2. `a.rs`: `first`\n"), 1);
        assert_eq!(found("1. `b.rs`: `second`\n\nAnother process:\n\n2. `a.rs`: `first`\n"), 0);
        assert_eq!(found("1. `c.rs`: `x`\n"), 1);
        assert_eq!(found("1. `a.rs`: `third`\n"), 1);
        assert_eq!(found(&"1. `b.rs`: `second`\n\ntext\n".repeat(3)), 1);
    }
}
