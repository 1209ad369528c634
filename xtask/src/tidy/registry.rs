//! Names of benchmarks: each is a literal in exactly one source file, so that a search finds it. The cli and tests may repeat it.

use crate::source::Source;

use super::violation::Violation;

/// Checks the names that the built binary lists.
pub(super) fn check(names: &[String], sources: &[Source]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for name in names {
        let literal = format!("\"{name}\"");
        let pattern = [literal.as_str()];
        let places: Vec<(&Source, usize)> = sources
            .iter()
            .filter(|source| source.is_crate() && !source.path.starts_with("crates/cli/"))
            .filter(|source| !source.path.ends_with("/tests.rs"))
            .filter_map(|source| {
                source.find(&pattern).find(|token| !token.test).map(|token| (source, token.line))
            })
            .collect();
        if places.is_empty() {
            let what = format!("the benchmark {name} is in no source file as a string literal");
            violations.push(Violation::new("crates", 0, what));
        }
        for (source, line) in places.iter().skip(1) {
            let what = format!("{literal} is also in {}:{}", places[0].0.path, places[0].1);
            violations.push(Violation::new(&source.path, *line, what));
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<Violation> {
        let sources: Vec<Source> =
            files.iter().map(|(path, text)| Source::parse(path, text).unwrap()).collect();
        check(&["rma.put_bw".to_owned()], &sources)
    }

    const REGISTERED: (&str, &str) =
        ("crates/rma/src/op/put.rs", "submit! { bandwidth::<Put>(\"rma.put_bw\") }");

    #[test]
    fn one_literal_is_permitted_and_tests_are_ignored() {
        let test =
            ("crates/cli/src/select.rs", "#[cfg(test)]\nmod tests { const N: &str = \"rma.put_bw\"; }");
        assert!(found(&[REGISTERED, test, ("tests/list.rs", "const N: &str = \"rma.put_bw\";")]).is_empty());
    }

    #[test]
    fn the_cli_and_files_of_tests_may_name_one() {
        let name = "const N: &str = \"rma.put_bw\";";
        let files =
            [REGISTERED, ("crates/cli/src/links.rs", name), ("crates/core/src/registry/tests.rs", name)];
        assert!(found(&files).is_empty());
        assert_eq!(found(&files[1..]).len(), 1, "neither is where it is registered");
    }

    #[test]
    fn a_name_that_is_put_together_is_found() {
        assert_eq!(found(&[("crates/rma/src/a.rs", "submit! { concat!(\"rma.\", \"put_bw\") }")]).len(), 1);
    }

    #[test]
    fn a_second_file_is_found_at_its_line() {
        let second = found(&[REGISTERED, ("crates/rma/src/z.rs", "\nconst N: &str = \"rma.put_bw\";")]);
        assert_eq!((second[0].path.as_str(), second[0].line), ("crates/rma/src/z.rs", 2));
    }
}
