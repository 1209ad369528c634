//! No file names a directory that exists on one machine only.

use super::Violation;

/// Written in pieces, or this file would break its own rule.
const PRIVATE: &[&str] = &[concat!("/", "work/"), concat!("/", "root/")];

pub(super) fn check(path: &str, text: &str) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for private in PRIVATE {
            if line.match_indices(private).any(|(at, _)| begins_a_path(&line[..at])) {
                violations.push(Violation::new(
                    path,
                    number + 1,
                    format!("a path of one machine: {private}.."),
                ));
            }
        }
    }
    violations
}

/// Whether what stands before does not make it the middle of another path.
fn begins_a_path(before: &str) -> bool {
    !before.ends_with(|c: char| c.is_alphanumeric() || "_-.}*~)".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_paths_are_found_and_others_pass() {
        let text = format!("ok\nexe = \"{}main/ombx\"\nfile://{}x\n", PRIVATE[0], PRIVATE[1]);
        let lines: Vec<usize> = check("a.md", &text).iter().map(|violation| violation.line).collect();
        assert_eq!(lines, [2, 3]);
        let text = format!("$HOME{}x target{}y ${{top}}{}z", PRIVATE[0], PRIVATE[0], PRIVATE[1]);
        assert!(check("a.md", &text).is_empty(), "{text}");
    }
}
