//! Length, name and first line of each file.

use super::violation::Violation;

/// Maximum number of lines of a file.
const LONGEST: usize = 400;

/// Most lines of a file of one RMA operation, which has only what differs from other operations.
const LONGEST_OPERATION: usize = 40;

/// File names that do not say what is inside.
const NAMELESS: &[&str] =
    &["utils.rs", "util.rs", "helpers.rs", "helper.rs", "common.rs", "misc.rs", "mod.rs"];

pub(super) fn check(path: &str, text: &str) -> Vec<Violation> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let lines = text.lines().count();
    let longest = if path.starts_with("crates/rma/src/op/") { LONGEST_OPERATION } else { LONGEST };
    let mut violations = Vec::new();
    if lines > longest {
        violations.push(Violation::new(path, longest + 1, format!("{lines} lines, more than {longest}")));
    }
    if NAMELESS.contains(&name) {
        violations.push(Violation::new(path, 1, format!("the file name {name} does not say what is inside")));
    }
    if is_source(path) && !text.starts_with("//!") {
        violations.push(Violation::new(
            path,
            1,
            "the first line is not a `//!` sentence that says what the file is",
        ));
    }
    violations
}

/// Returns whether a path is below the `src` of a crate.
fn is_source(path: &str) -> bool {
    let mut parts = path.split('/');
    match (parts.next(), parts.next(), parts.next()) {
        (Some("crates" | "verify"), Some(_), third) => third == Some("src"),
        (Some("xtask"), second, _) => second == Some("src"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, lines: usize) -> usize {
        check(path, &"//! A file.\n".repeat(lines)).len()
    }

    #[test]
    fn long_files_are_found() {
        assert_eq!((found("tests/a.rs", 400), found("tests/a.rs", 401)), (0, 1));
        assert_eq!((found("crates/rma/src/op/put.rs", 40), found("crates/rma/src/op/put.rs", 41)), (0, 1));
    }

    #[test]
    fn names_without_a_subject_are_found() {
        assert_eq!(found("crates/core/src/utils.rs", 1), 1);
        assert_eq!(found("crates/core/src/render/mod.rs", 1), 1);
        assert_eq!(found("crates/core/src/unit.rs", 1), 0);
    }

    #[test]
    fn sources_begin_with_a_doc_comment() {
        assert_eq!(check("crates/core/src/unit.rs", "use x;\n").len(), 1);
        assert_eq!(check("xtask/src/unit.rs", "\n//! Late.\n").len(), 1);
        assert!(check("crates/core/build.rs", "fn main() {}\n").is_empty());
    }
}
