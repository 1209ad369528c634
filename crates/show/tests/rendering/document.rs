//! Tables for documents.

use ombx_record::result::{Level, Mark, Outcome};
use ombx_show::{Document, Markup, Shown};

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
    assert!(
        tables[0][0].starts_with("| bytes | µs | 95% within this launch (µs) | p99 iteration (µs) |"),
        "{text}"
    );
    assert!(tables[0][2].starts_with("| 8 | 1.00") && tables[0][3].starts_with("| 64 | 1.5"), "{text}");
    assert!(text.contains("**p2p.latency**") && text.contains("sync=pscw win=allocate"), "{text}");
}

#[test]
fn latex_has_booktabs_and_escapes_what_it_reads() {
    let mut marked = latency(8, &around(2000, 400));
    marked.trust.push(Mark::with_advice("odd", "50% of a_b & {c} < d", "").at(Level::Caution));
    let text = complete(&mut Document::new(Markup::Latex), &[marked]);
    for part in ["\\toprule", "\\midrule", "\\bottomrule", "\\begin{tabular}{r", "\\caption{p2p.latency."] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(text.contains("50\\% of a\\_b \\& \\{c\\} $<$ d \\\\"), "{text}");
    let row = text.lines().find(|line| line.trim_start().starts_with("8 &")).unwrap();
    assert_eq!(row.matches(" & ").count(), 5, "an interval has two columns: {text}");
}

#[test]
fn columns_of_launches_and_failures_are_those_of_the_text_table() {
    let run = of_launches();
    let (outcome, _) = run.end.unwrap();
    let text = rendered(&mut Document::new(Markup::Markdown), &run.run, &run.rows, outcome);
    assert!(
        text.contains(
            "95% within this run (µs) | p99 iteration (µs) | min launch (µs) | max launch (µs) | launches |"
        ),
        "{text}"
    );
    let mut failed = latency(8, &around(2000, 400));
    failed.outcome = Outcome::Failed("wrong".into());
    let mut skipped = latency(64, &around(2000, 400));
    skipped.outcome = Outcome::Skipped("too few ranks".into());
    let text = complete(&mut Document::new(Markup::Markdown), &[failed, skipped]);
    assert!(text.contains("| 8 | FAILED |") && text.contains("Skipped, 1 times: too few ranks"), "{text}");
}

#[test]
fn latex_tables_have_labels_units_and_aligned_points() {
    let rows = [
        latency(8, &around(900, 400)),
        latency(64, &[2000, 2010]),
        bandwidth(8, &around(2000, 400)),
        latency(8, &around(123_456, 400)),
    ];
    let text = complete(&mut Document::new(Markup::Latex), &rows);
    for part in [
        "% needs \\usepackage{booktabs,siunitx}",
        "\\label{tab:p2p-latency}",
        "\\label{tab:p2p-latency--2}",
        "\\label{tab:rma-put-bw-sync-pscw-win-allocate-window-64}",
        "{p99 iteration}",
        "\\multicolumn{2}{c}{95\\% within this launch}",
        " & {} & \\multicolumn{2}{c}{($\\mu$s)} & {($\\mu$s)} & ",
        "]@{ to }S[table-format=",
        " & \\multicolumn{2}{c}{n/a} & {n/a} & ",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let chosen =
        Shown { columns: ["us", "p99", "bytes", "us"].map(str::to_owned).into(), ..Shown::default() };
    let text = complete(&mut Document::new(Markup::Markdown).showing(chosen), &rows[..1]);
    assert!(text.contains("\n| µs | p99 iteration (µs) | bytes |\n| ---: | ---: | ---: |\n"), "{text}");
}

#[test]
fn a_table_without_a_chosen_column_keeps_its_figure() {
    let rows = [latency(8, &around(2000, 400)), bandwidth(8, &around(2000, 400))];
    let titles = |columns: &[&str]| {
        let columns = columns.iter().map(|name| (*name).to_owned()).collect();
        let shown = Shown { columns, ..Shown::default() };
        let text = complete(&mut Document::new(Markup::Markdown).showing(shown), &rows);
        let tables = text.split("\n\n").filter(|part| part.starts_with('|'));
        tables.map(|table| table.lines().next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(titles(&["bytes", "us"]), ["| bytes | µs |", "| bytes | MB/s |"]);
    assert_eq!(titles(&["MB/s", "bytes"]), ["| µs | bytes |", "| MB/s | bytes |"]);
    assert_eq!(titles(&["us", "p99"]), ["| µs | p99 iteration (µs) |", "| MB/s | p1 iteration (MB/s) |"]);
    assert_eq!(titles(&["bytes", "kmsg/s"]), ["| bytes | µs |", "| bytes | kmsg/s |"]);
    assert_eq!(titles(&["bytes"]), ["| bytes |"; 2]);
}

#[test]
fn latex_leaves_out_what_a_page_is_too_narrow_for() {
    let mut marked = latency(8, &around(2000, 400));
    marked.trust.push(
        Mark::with_advice("odd", "a mark with so many words that they need two lines", "").at(Level::Caution),
    );
    let text = complete(&mut Document::new(Markup::Latex), &[marked.clone()]);
    let note =
        "% Too wide for one column of article: min sample, max sample, p99 iteration. ombx show --columns";
    assert!(text.contains(note), "{text}");
    assert!(text.contains("@{ to }S[table-format=1.5]rp{"), "{text}");
    assert!(text.contains("a mark with so many words that they need two lines \\\\"), "{text}");
    let shown = Shown { columns: vec!["us".into(), "max sample".into()], ..Shown::default() };
    let text = complete(&mut Document::new(Markup::Latex).showing(shown), &[marked]);
    assert!(text.contains("{max sample}") && !text.contains("Too wide"), "{text}");
}
