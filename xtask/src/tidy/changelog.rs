//! Form of CHANGELOG.md: Keep a Changelog 1.1.0.

use super::violation::Violation;

pub(super) const PATH: &str = "CHANGELOG.md";
/// Kinds of changes, as Keep a Changelog names them.
const KINDS: [&str; 6] = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"];

/// Checks the headings: changes that are not released come first, then versions with their dates, newest first.
pub(super) fn check(text: &str) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut versions: Vec<[u64; 3]> = Vec::new();
    let mut sections = 0;
    let mut kinds: Vec<&str> = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let mut wrong = |what: &str| violations.push(Violation::new(PATH, at + 1, what));
        if at == 0 && line != "# Changelog" {
            wrong("the first line is not `# Changelog`");
        } else if let Some(heading) = line.strip_prefix("## ") {
            sections += 1;
            kinds.clear();
            match (heading, version(heading)) {
                ("[Unreleased]", _) if sections == 1 => {}
                ("[Unreleased]", _) => wrong("`[Unreleased]` is not the first section"),
                (_, None) => wrong("the heading has not the form `## [1.2.3] - 2026-01-31`"),
                (_, Some(version)) => {
                    if versions.last().is_some_and(|newer| *newer <= version) {
                        wrong("versions are not listed newest first");
                    }
                    versions.push(version);
                }
            }
        } else if let Some(kind) = line.strip_prefix("### ") {
            if !KINDS.contains(&kind) {
                wrong(&format!("{kind} is no kind of change; there are {}", KINDS.join(", ")));
            } else if kinds.contains(&kind) {
                wrong(&format!("this version has two sections {kind}"));
            }
            kinds.push(kind);
        }
    }
    if sections == 0 {
        violations.push(Violation::new(PATH, 1, "no section of a version"));
    }
    violations
}

/// Returns the version of a heading such as `[1.2.3] - 2026-01-31`.
fn version(heading: &str) -> Option<[u64; 3]> {
    let (version, date) = heading.strip_prefix('[')?.split_once("] - ")?;
    let date: Vec<&str> = date.split('-').collect();
    let widths: Vec<usize> = date.iter().map(|part| part.len()).collect();
    let digits = date.iter().all(|part| part.bytes().all(|byte| byte.is_ascii_digit()));
    let numbers: Option<Vec<u64>> = version.split('.').map(|part| part.parse().ok()).collect();
    if widths == [4, 2, 2] && digits { numbers?.try_into().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<usize> {
        check(text).iter().map(|violation| violation.line).collect()
    }

    #[test]
    fn versions_are_dated_and_descend() {
        let good = "# Changelog\n## [Unreleased]\n### Fixed\n## [0.10.0] - 2026-12-01\n### Added\n\
                    ### Fixed\n## [0.9.1] - 2026-11-30\n";
        assert!(lines(good).is_empty());
        assert_eq!(lines(&good.replace("0.10.0", "0.9.0")), [7]);
        assert_eq!(lines(&good.replace(" - 2026-12-01", "")), [4]);
        assert_eq!(lines(&good.replace("2026-12-01", "1.12.2026")), [4]);
        assert_eq!(lines("# Changelog\n## [0.1.0] - 2026-12-01\n## [Unreleased]\n"), [3]);
    }

    #[test]
    fn changes_have_known_kinds_once_each() {
        let good = "# Changelog\n## [Unreleased]\n### Added\n### Changed\n";
        assert!(lines(good).is_empty());
        assert_eq!(lines(&good.replace("Changed", "Improved")), [4]);
        assert_eq!(lines(&good.replace("Changed", "Added")), [4]);
    }

    #[test]
    fn a_page_without_versions_is_no_changelog() {
        assert_eq!(lines("# News\n"), [1, 1]);
        assert_eq!(lines(""), [1]);
    }
}
