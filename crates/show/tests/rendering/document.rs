//! Tables for documents.

use ombx_record::result::{Level, Mark, Outcome};
use ombx_show::{Document, Markup};

use crate::{around, bandwidth, complete, latency, of_launches, rendered};

#[test]
fn markdown_has_a_table_per_benchmark() {
    let rows =
        [latency(8, &around(2000, 400)), latency(64, &around(3000, 400)), bandwidth(8, &around(2000, 400))];
    let text = complete(&mut Document::new(Markup::Markdown), &rows);
    let tables: Vec<Vec<&str>> = text
        .split("\n\n")
        .filter(|part| part.starts_with('|'))
        .map(|table| table.lines().collect())
        .collect();
    assert_eq!(tables.iter().map(Vec::len).collect::<Vec<_>>(), [4, 3], "{text}");
    for table in &tables {
        let columns = |line: &str| line.matches('|').count();
        assert!(table.iter().all(|line| columns(line) == columns(table[0])), "{text}");
        assert!(table[1].chars().all(|c| "|-: ".contains(c)), "{text}");
    }
    assert!(tables[0][0].starts_with("| bytes | µs | 95% within this launch |"), "{text}");
    assert!(tables[0][2].starts_with("| 8 | 1.00") && tables[0][3].starts_with("| 64 | 1.5"), "{text}");
    assert!(text.contains("**p2p.latency**") && text.contains("sync=pscw win=allocate"), "{text}");
}

#[test]
fn latex_has_booktabs_and_escapes_what_it_reads() {
    let mut marked = latency(8, &around(2000, 400));
    marked.trust.push(Mark::with_advice("odd", "50% of a_b & {c} < d", "").at(Level::Caution));
    let text = complete(&mut Document::new(Markup::Latex), &[marked]);
    for part in
        ["\\toprule", "\\midrule", "\\bottomrule", "\\begin{tabular}{rrrrrrrl}", "\\caption{p2p.latency."]
    {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(text.contains("50\\% of a\\_b \\& \\{c\\} $<$ d \\\\"), "{text}");
    let row = text.lines().find(|line| line.trim_start().starts_with("8 &")).unwrap();
    assert_eq!(row.matches(" & ").count(), 7, "{text}");
}

#[test]
fn columns_of_launches_and_failures_are_those_of_the_text_table() {
    let run = of_launches();
    let (outcome, _) = run.end.unwrap();
    let text = rendered(&mut Document::new(Markup::Markdown), &run.run, &run.rows, outcome);
    assert!(text.contains("95% within this run | p99 | min launch | max launch | launches |"), "{text}");
    let mut failed = latency(8, &around(2000, 400));
    failed.outcome = Outcome::Failed("wrong".into());
    let mut skipped = latency(64, &around(2000, 400));
    skipped.outcome = Outcome::Skipped("too few ranks".into());
    let text = complete(&mut Document::new(Markup::Markdown), &[failed, skipped]);
    assert!(text.contains("| 8 | FAILED |") && text.contains("Skipped, 1 times: too few ranks"), "{text}");
}
