//! Comparison as a Markdown document: the answer, the sides, and one table.

use super::{describe, heading, percent, sentence, verdict};
use crate::{
    compare::{CaseComparison, Comparison},
    number::figure,
    render::{
        plain,
        table::fit::{interval, size},
    },
};

/// Returns the Markdown text of a comparison.
pub fn markdown(comparison: &Comparison) -> String {
    let sides = [&comparison.base, &comparison.new];
    let [base, new] = sides.map(|side| cell(&side.label));
    let mut lines = vec![format!("**{}.**", cell(&sentence(comparison))), String::new()];
    lines.extend(sides.map(|side| format!("- {}: {}", cell(&side.label), cell(&describe(side)))));
    lines.extend([
        String::new(),
        format!("| case | bytes | {base} | {new} | unit | time | 90% interval | verdict |"),
        "|:---|---:|---:|---:|:---|---:|---:|:---|".into(),
    ]);
    lines.extend(comparison.cases.iter().map(|case| row(case, comparison.margin)));
    let remarks: Vec<String> = comparison
        .broken
        .iter()
        .map(|(key, why)| format!("- failed only in {new}: {}", cell(&format!("{key}: {why}"))))
        .chain(comparison.notes.iter().map(|note| format!("- {}", cell(&note.text))))
        .collect();
    if !remarks.is_empty() {
        lines.push(String::new());
        lines.extend(remarks);
    }
    lines.join("\n") + "\n"
}

fn row(case: &CaseComparison, margin: f64) -> String {
    let cells = [
        cell(&heading(&case.id)),
        size(case.id.bytes),
        figure(case.base.median),
        figure(case.new.median),
        case.id.unit.to_owned(),
        percent(case.change.estimate),
        interval(case.change.ci90, percent),
        cell(&verdict(&case.verdict, margin)),
    ];
    format!("| {} |", cells.join(" | "))
}

/// Escapes what Markdown would read as markup: text of a file stays text.
fn cell(text: &str) -> String {
    plain(text)
        .chars()
        .flat_map(|c| ['\\'].into_iter().filter(move |_| "\\|`*_<>[]#".contains(c)).chain([c]))
        .collect()
}
