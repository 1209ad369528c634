//! Source files that no `mod` names: they are not compiled.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::Source;

use super::violation::Violation;

/// Checks every file below a `src` except the roots of crates.
pub(super) fn check(sources: &[Source]) -> Vec<Violation> {
    let named: BTreeMap<&str, BTreeSet<&str>> =
        sources.iter().map(|source| (source.path.as_str(), named(source))).collect();
    let below = |path: &str| path.contains("/src/") && !path.contains("/src/bin/");
    let roots = ["/lib.rs", "/main.rs", "/build.rs"];
    let files = sources.iter().map(|source| source.path.as_str()).filter(|path| below(path));
    let files = files.filter(|path| !roots.iter().any(|root| path.ends_with(root)));
    let lost = files.filter(|path| {
        let Some((directory, file)) = path.rsplit_once('/') else { return false };
        // A root may have a module in braces for the directory.
        let above = directory.rsplit_once('/').map_or("", |(above, _)| above);
        let parents = [
            format!("{directory}.rs"),
            format!("{directory}/lib.rs"),
            format!("{directory}/main.rs"),
            format!("{above}/lib.rs"),
        ];
        let name = file.trim_end_matches(".rs");
        !parents.iter().any(|parent| named.get(parent.as_str()).is_some_and(|all| all.contains(name)))
    });
    lost.map(|path| Violation::new(path, 1, "no `mod` names this file: it is not compiled")).collect()
}

/// Returns the names of `mod NAME;` in a file.
fn named(source: &Source) -> BTreeSet<&str> {
    let tokens = source.tokens.windows(3);
    let declared = tokens.filter(|next| next[0].text == "mod" && next[2].text == ";");
    declared.map(|next| next[1].text.as_str()).collect()
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
    }
}
