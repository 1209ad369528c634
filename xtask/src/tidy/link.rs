//! Links of documents: each names a file of the repository, and a heading that this file has.

use std::{collections::BTreeSet, path::Path};

use super::violation::Violation;

/// Checks the relative links of all Markdown files. `files` are path and text of each text file; `exists` says whether another path is there.
pub(super) fn check(files: &[(String, String)], exists: impl Fn(&str) -> bool) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (path, text) in files.iter().filter(|(path, _)| is_document(path)) {
        for (line, target) in links(text) {
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            let file = if file.is_empty() { path.clone() } else { joined(path, file) };
            let known = files.iter().find(|(name, _)| *name == file);
            if known.is_none() && !exists(&file) {
                violations.push(Violation::new(path, line, format!("the link to {target} names no file")));
            } else if !heading.is_empty() && !known.is_some_and(|(_, text)| anchors(text).contains(heading)) {
                violations.push(Violation::new(path, line, format!("{file} has no heading #{heading}")));
            }
        }
    }
    violations
}

fn is_document(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|end| end == "md")
}

/// Returns the relative targets of links outside of code blocks, with their lines.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut is_code = false;
    for (at, line) in text.lines().enumerate() {
        is_code ^= line.starts_with("```");
        // A code span may contain brackets.
        let prose = line.split('`').step_by(2).filter(|_| !is_code);
        for part in prose {
            let targets = part.split("](").skip(1).filter_map(|rest| rest.split(')').next());
            let relative = targets.filter(|target| !target.contains("://") && !target.contains(' '));
            found.extend(relative.map(|target| (at + 1, target)));
        }
    }
    found
}

/// Returns the path of a link in a file, relative to the root.
fn joined(from: &str, link: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." | "" => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Returns the anchors that GitHub makes of headings.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut is_code = false;
    let headings = text.lines().filter(|line| {
        is_code ^= line.starts_with("```");
        !is_code && line.starts_with('#')
    });
    let anchor = |heading: &str| -> String {
        let kept = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = kept.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(anchor).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> usize {
        let other = "# A page\n\n## All pairs: `ombx links`\n```\n# no heading\n```\n";
        let files = [("docs/a.md", text), ("b.md", other)];
        let files = files.map(|(path, text)| (path.to_owned(), text.to_owned()));
        check(&files, |path| path == "packaging/reframe").len()
    }

    #[test]
    fn links_name_files_and_headings() {
        for right in [
            "[b](../b.md)",
            "[b](../b.md#all-pairs-ombx-links)",
            "# Own\n[a](#own)",
            "[r](../packaging/reframe)",
            "[web](https://example.org/x)",
            "`[code](absent.md)`",
            "```\n[code](absent.md)\n```",
        ] {
            assert_eq!(found(right), 0, "{right}");
        }
        for wrong in ["[b](b.md)", "[b](../b.md#no-heading)", "[a](#absent)", "x [a](y.md) `code` [b](z.md)"]
        {
            assert_eq!(found(wrong), wrong.matches("](").count(), "{wrong}");
        }
    }
}
