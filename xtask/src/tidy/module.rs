//! Source files that no `mod` names: they are not compiled.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::Source;

use super::violation::Violation;

/// Checks every file below a `src` except the roots of crates.
pub(super) fn check(sources: &[Source]) -> Vec<Violation> {
    let named: BTreeMap<&str, BTreeSet<String>> =
        sources.iter().map(|source| (source.path.as_str(), named(source))).collect();
    let files = sources.iter().map(|source| source.path.as_str());
    let files = files.filter(|path| path.contains("/src/") && !is_root(path));
    let lost = files.filter(|path| {
        let Some((directory, file)) = path.rsplit_once('/') else { return false };
        let name = file.trim_end_matches(".rs");
        // A root may have a module in braces for the directory.
        let (above, last) = directory.rsplit_once('/').unwrap_or(("", directory));
        let parents = [
            (format!("{directory}.rs"), name.to_owned()),
            (format!("{directory}/lib.rs"), name.to_owned()),
            (format!("{directory}/main.rs"), name.to_owned()),
            (format!("{above}/lib.rs"), format!("{last}::{name}")),
        ];
        !parents.iter().any(|(parent, name)| named.get(parent.as_str()).is_some_and(|all| all.contains(name)))
    });
    lost.map(|path| Violation::new(path, 1, "no `mod` names this file: it is not compiled")).collect()
}

/// Returns whether a file is the root of a crate.
fn is_root(path: &str) -> bool {
    let (directory, file) = path.rsplit_once('/').unwrap_or(("", path));
    ["lib.rs", "main.rs", "build.rs"].contains(&file) || directory.ends_with("/src/bin")
}

/// Returns the paths of `mod NAME;` in a file, such as `op::get` for `mod op { mod get; }`.
fn named(source: &Source) -> BTreeSet<String> {
    let tokens: Vec<&str> = source.tokens.iter().map(|token| token.text.as_str()).collect();
    let mut paths = BTreeSet::new();
    // What each open brace belongs to: a module, or something else.
    let mut open: Vec<Option<&str>> = Vec::new();
    for (at, text) in tokens.iter().enumerate() {
        let before = |back: usize| at.checked_sub(back).map(|at| tokens[at]);
        let module = before(1).filter(|_| before(2) == Some("mod"));
        match *text {
            "{" => open.push(module),
            "}" => drop(open.pop()),
            ";" => paths.extend(module.map(|name| {
                let names: Vec<&str> = open.iter().copied().flatten().chain([name]).collect();
                names.join("::")
            })),
            _ => {}
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(files: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<Source> =
            files.iter().map(|(path, text)| Source::parse(path, text).unwrap()).collect();
        check(&sources).into_iter().map(|violation| violation.path).collect()
    }

    #[test]
    fn a_file_that_is_named_nowhere_is_found() {
        let root = ("crates/a/src/lib.rs", "pub mod op;\nmod x { }");
        let op = ("crates/a/src/op.rs", "mod put;");
        let put = ("crates/a/src/op/put.rs", "");
        assert!(lost(&[root, op, put, ("crates/a/tests/t.rs", "")]).is_empty());
        assert_eq!(lost(&[root, op, put, ("crates/a/src/op/get.rs", "")]), ["crates/a/src/op/get.rs"]);
        assert_eq!(lost(&[root, op, put, ("crates/a/src/x.rs", "")]), ["crates/a/src/x.rs"]);
        let inline = ("crates/a/src/lib.rs", "mod op { mod get; }");
        assert!(lost(&[inline, ("crates/a/src/op/get.rs", "")]).is_empty());
        assert_eq!(lost(&[inline, ("crates/a/src/x/get.rs", "")]), ["crates/a/src/x/get.rs"]);
    }

    #[test]
    fn a_program_of_several_has_a_root_of_its_own() {
        let programs = [("verify/a/src/bin/b.rs", ""), ("verify/a/src/bin/c/main.rs", "mod d;")];
        let [b, c] = programs;
        assert!(lost(&[b, c, ("verify/a/src/bin/c/d.rs", "")]).is_empty());
        assert_eq!(lost(&[b, c, ("verify/a/src/bin/c/e.rs", "")]), ["verify/a/src/bin/c/e.rs"]);
    }
}
