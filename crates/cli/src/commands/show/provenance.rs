//! Where, when and how the rows of files were measured, a paragraph about the method, and a citation.

use std::io::{self, Write};

use comfy_table::{ContentArrangement, Table, presets};
use ombx_core::error::{Error, Result};
use ombx_results::{
    citation,
    estimate::Cases,
    file::RunWithRows,
    methods,
    provenance::{self, Section},
    render::{plain, wrapped},
    verdict,
};

use crate::output::{stdout::print, terminal};

/// Prints the provenance of runs. The launches of one setup are one result; sweeps over links are shown one by one.
pub(super) fn show(runs: Vec<RunWithRows>) -> Result<u8> {
    let (links, benchmarks): (Vec<_>, Vec<_>) = runs.into_iter().partition(verdict::is_sweep);
    let mut cases = Cases::default();
    benchmarks.iter().for_each(|launch| cases.launch(launch));
    let results: Vec<RunWithRows> = cases.groups().iter().map(RunWithRows::from).chain(links).collect();
    if results.is_empty() {
        return Err(Error::usage("--provenance: the files have no runs"));
    }
    let width = terminal::columns();
    let mut text = Vec::new();
    write(&mut text, &results, width).map_err(|e| Error::storage(format!("standard output: {e}")))?;
    print(text)
}

fn write(out: &mut dyn Write, results: &[RunWithRows], width: Option<usize>) -> io::Result<()> {
    for (at, result) in results.iter().enumerate() {
        if at > 0 {
            writeln!(out)?;
        }
        for Section { title, values } in provenance::sections(result) {
            writeln!(out, "{title}\n{}\n", table(&values, width))?;
        }
        let paragraph = plain(&methods::paragraph(result));
        // A pipe gets it in one line.
        let paragraph = width.map_or(paragraph.clone(), |width| wrapped(&paragraph, width).join("\n"));
        writeln!(out, "Methods, for a publication\n\n{paragraph}\n")?;
        write!(out, "Citation\n\n{}", citation::bibtex(&result.run))?;
    }
    Ok(())
}

/// Returns names and values in two columns, as wide as the terminal.
fn table(values: &[(String, String)], width: Option<usize>) -> String {
    if values.is_empty() {
        return "  none".into();
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    if let Some(width) = width {
        table
            .set_content_arrangement(ContentArrangement::Dynamic)
            .set_width(u16::try_from(width).unwrap_or(u16::MAX));
    }
    for (name, value) in values {
        table.add_row([format!(" {}", plain(name)), plain(value)]);
    }
    let lines = table.to_string();
    lines.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_wrapped_to_the_terminal_and_nowhere_else() {
        let values =
            [("kernel command line".to_owned(), "quiet ".repeat(30)), ("cpu".to_owned(), "a\x1b[2Jb".into())];
        let narrow = table(&values, Some(60));
        assert!(
            narrow.lines().count() > 3 && narrow.lines().all(|line| line.chars().count() <= 60),
            "{narrow}"
        );
        let free = table(&values, None);
        assert_eq!(free.lines().count(), 2, "{free}");
        assert!(!free.contains('\x1b'), "{free}");
    }
}
