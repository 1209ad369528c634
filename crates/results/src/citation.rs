//! How to cite ombx.

use ombx_core::{fact::Fact, result::Run};

/// Title and authors, as `CITATION.cff` has them.
const TITLE: &str = "ombx: trustworthy communication micro-benchmarks for clusters";
const AUTHORS: &str = "The ombx developers";

/// Returns the entry of ombx for BibTeX, with the version that measured.
pub fn bibtex(run: &Run) -> String {
    let commit = run.software.get("commit").and_then(Fact::known);
    let note =
        commit.map(|commit| format!("  note    = {{commit {}}},\n", braced(commit))).unwrap_or_default();
    let year = run.started.get(..4).filter(|year| year.chars().all(|c| c.is_ascii_digit()));
    let year = year.map(|year| format!("  year    = {{{year}}},\n")).unwrap_or_default();
    format!(
        "@software{{ombx,\n  author  = {{{{{AUTHORS}}}}},\n  title   = {{{TITLE}}},\n  version = {{{}}},\n{year}{note}}}\n",
        braced(&run.version)
    )
}

/// Removes what would end a value of BibTeX.
fn braced(text: &str) -> String {
    text.chars().filter(|c| !"{}\\%".contains(*c) && !c.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::golden;

    #[test]
    fn the_citation_has_the_version_and_the_commit_and_agrees_with_its_file() {
        let entry = {
            let mut run = golden().run;
            run.software = [("commit".to_owned(), Fact::Known("abc123".into()))].into();
            bibtex(&run)
        };
        let expected = "@software{ombx,\n  author  = {{The ombx developers}},\n  title   = {ombx: trustworthy communication \
                        micro-benchmarks for clusters},\n  version = {0.1.0},\n  year    = {2026},\n  note    = {commit abc123},\n}\n";
        assert_eq!(entry, expected);
        let file = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../CITATION.cff")).unwrap();
        for part in [TITLE, AUTHORS, concat!("version: ", env!("CARGO_PKG_VERSION"))] {
            assert!(file.contains(part), "{part}");
        }
        let mut evil = golden().run;
        evil.version = "1}\n\\input{x}".into();
        assert!(bibtex(&evil).contains("version = {1inputx}"));
    }
}
