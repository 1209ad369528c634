//! Results of proofs: the short one in docs/EVIDENCE.md, all tables in the target directory.

use std::fs;

use crate::{
    failure::{Failure, Result},
    workspace::Workspace,
};

/// Page of all proofs. Text outside of the sections is written by hand.
const PAGE: &str = "docs/EVIDENCE.md";
/// Folder of the full tables, below the target directory.
const TABLES: &str = "evidence";

/// Renews the section of a proof in docs/EVIDENCE.md, and writes its full tables to `target/evidence/NAME.md`.
///
/// The section lies between the lines `<!-- NAME: begin -->` and `<!-- NAME: end -->`.
pub fn write(workspace: &Workspace, name: &str, section: &str, tables: &str) -> Result<()> {
    let path = workspace.root.join(PAGE);
    let page = fs::read_to_string(&path).map_err(Failure::file(&path))?;
    let missing = || Failure::Missing(format!("{PAGE} has no lines {} and {}", begin(name), end(name)));
    fs::write(&path, renewed(&page, name, section).ok_or_else(missing)?).map_err(Failure::file(&path))?;
    let folder = workspace.target.join(TABLES);
    let file = folder.join(format!("{name}.md"));
    fs::create_dir_all(&folder).and_then(|()| fs::write(&file, tables)).map_err(Failure::file(&file))?;
    println!("Written: the section {name} of {PAGE}, and {}", file.display());
    Ok(())
}

fn begin(name: &str) -> String {
    format!("<!-- {name}: begin -->\n")
}

fn end(name: &str) -> String {
    format!("<!-- {name}: end -->\n")
}

/// Returns the page with a section replaced; `None` if it has no such section.
fn renewed(page: &str, name: &str, section: &str) -> Option<String> {
    let (begin, end) = (begin(name), end(name));
    let (before, rest) = page.split_once(&begin)?;
    let (_, after) = rest.split_once(&end)?;
    Some(format!("{before}{begin}{}\n{end}{after}", section.trim_end()))
}

#[cfg(test)]
mod tests {
    #[test]
    fn only_the_named_section_is_replaced() {
        let page =
            "# E\n<!-- a: begin -->\nold\n<!-- a: end -->\ntext\n<!-- b: begin -->\nkept\n<!-- b: end -->\n";
        let renewed = |name| super::renewed(page, name, "new\n\n");
        let expected = page.replace("old", "new");
        assert_eq!(renewed("a"), Some(expected));
        assert_eq!(renewed("c"), None);
    }
}
