//! Name and first line of each file.

use super::violation::Violation;

/// File names that do not say what is inside.
const NAMELESS: &[&str] =
    &["utils.rs", "util.rs", "helpers.rs", "helper.rs", "common.rs", "misc.rs", "mod.rs"];

pub(super) fn check(path: &str, text: &str) -> Vec<Violation> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let mut violations = Vec::new();
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

    fn found(path: &str) -> usize {
        check(path, "//! A file.\n").len()
    }

    #[test]
    fn names_without_a_subject_are_found() {
        assert_eq!(found("crates/core/src/utils.rs"), 1);
        assert_eq!(found("crates/core/src/render/mod.rs"), 1);
        assert_eq!(found("crates/record/src/unit.rs"), 0);
    }

    #[test]
    fn sources_begin_with_a_doc_comment() {
        assert_eq!(check("crates/record/src/unit.rs", "use x;\n").len(), 1);
        assert_eq!(check("xtask/src/unit.rs", "\n//! Late.\n").len(), 1);
        assert!(check("crates/core/build.rs", "fn main() {}\n").is_empty());
    }
}
