//! CSV.

use std::{borrow::Cow, collections::HashMap};

use ombx_estimate::number::{RateUnit, TimeUnit};
use ombx_record::{
    event::Event,
    file,
    result::{Mark, MarkCode, Outcome, RunOutcome},
};
use ombx_show::{Csv, Renderer};

use crate::{allreduce, around, bandwidth, complete, golden, latency, nine_launches, rendered, shown};

fn records(text: &str) -> Vec<HashMap<String, String>> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    reader.deserialize().map(|record| record.unwrap()).collect()
}

#[test]
fn of_the_golden_run() {
    let file::RunWithRows { run, rows, .. } = golden();
    insta::assert_snapshot!(rendered(&mut Csv::default(), &run, &rows, RunOutcome::Complete));
}

#[test]
fn the_header_is_written_once() {
    let mut csv = Csv::default();
    let rows =
        [latency(8, &around(2000, 400)), bandwidth(8, &around(2000, 400)), latency(8, &around(2000, 10))];
    let text = complete(&mut csv, &rows) + &complete(&mut csv, &rows);
    assert_eq!(text.matches("run,bench,key").count(), 1, "{text}");
    assert_eq!(records(&text).len(), 6);
    let mut nothing = Vec::new();
    Csv::default().event(&mut nothing, &Event::Run(Cow::Owned(golden().run))).unwrap();
    assert!(nothing.is_empty(), "no header before it is known that there are rows");
}

#[test]
fn missing_values_are_empty() {
    let text = complete(&mut Csv::default(), &golden().rows);
    let records = records(&text);
    assert_eq!(records.len(), 4);
    assert_eq!((records[0]["iteration_p99_ns"].as_str(), records[0]["mb_per_s"].as_str()), ("", ""));
    assert_eq!(
        (records[1]["iteration_p99_ns"].as_str(), records[1]["iteration_p999_ns"].as_str()),
        ("354788", "")
    );
    assert_eq!(records[1]["axes"], "sync=pscw;win=allocate");
    assert_eq!((records[2]["bytes"].as_str(), records[2]["n"].as_str()), ("", ""));
    assert_eq!(records[2]["reason"], "needs 4 ranks, has 2; start it with -n 4");
    assert_eq!((records[3]["outcome"].as_str(), records[3]["check"].as_str()), ("failed", "failed"));
    assert!(records[1]["mb_per_s"].parse::<f64>().unwrap() > 11957.0);
}

#[test]
fn quoted_text_is_unquoted_unchanged() {
    let file::RunWithRows { mut run, mut rows, .. } = golden();
    run.library = "one, \"two\" three;four".into();
    rows[0].trust[0].code = "a;b,c\"d".into();
    let text = rendered(&mut Csv::default(), &run, &rows, RunOutcome::Complete);
    let records = records(&text);
    assert_eq!(records.len(), 4);
    assert_eq!(records[0]["library"], run.library);
    assert_eq!(records[0]["trust"], "a;b,c\"d");
    assert_eq!(records[0]["levels"], "caution");
}

#[test]
fn every_column_is_documented() {
    let document = include_str!("../../../../FORMAT.md");
    let section = document.split("## CSV").nth(1).unwrap();
    let text = complete(&mut Csv::default(), &golden().rows);
    let columns: Vec<&str> = text.lines().next().unwrap().split(',').collect();
    let mut rest = section;
    for column in columns {
        let at = rest
            .find(&format!("`{column}`"))
            .unwrap_or_else(|| panic!("FORMAT.md lacks {column}, or its place"));
        rest = &rest[at..];
    }
}

#[test]
fn each_mark_has_its_level_and_notes_do_not_prevent_publishing() {
    let file::RunWithRows { run, mut rows, .. } = golden();
    rows.iter_mut().for_each(|row| (row.launches, row.checked) = (nine_launches(357.0), 576));
    rows[0].trust =
        vec![Mark::with_advice(MarkCode::Governor, "g", "a"), Mark::with_advice(MarkCode::Unbound, "u", "a")];
    rows[1].trust = vec![
        Mark::with_advice(MarkCode::Governor, "g", "a"),
        Mark::with_advice(MarkCode::SharedCpu, "s", "a"),
    ];
    let records = records(&rendered(&mut Csv::default(), &run, &rows, RunOutcome::Complete));
    let of = |row: usize| [&*records[row]["trust"], &*records[row]["levels"], &*records[row]["publishable"]];
    assert_eq!(of(0), ["governor;unbound", "note;note", "true"]);
    assert_eq!(of(1), ["governor;shared_cpu", "note;invalid", "false"]);
    assert_eq!(of(2)[2], "false", "a skipped row");
}

#[test]
fn no_cell_is_a_formula_or_has_control_characters() {
    let file::RunWithRows { mut run, mut rows, .. } = golden();
    run.library = "=HYPERLINK(\"http://x\")".into();
    rows[0].outcome = Outcome::Skipped("@SUM(A1)\u{1b}[2J".into());
    let text = rendered(&mut Csv::default(), &run, &rows, RunOutcome::Complete);
    assert!(text.contains("'=HYPERLINK") && text.contains(",'@SUM(A1) [2J,"), "{text}");
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
}

#[test]
fn units_are_in_the_names_of_columns() {
    let of = around(2000, 400);
    let rows = [latency(8, &of), bandwidth(8, &of), allreduce(8, &of)];
    let canonical = records(&complete(&mut Csv::default(), &rows));
    let chosen = shown((Some(TimeUnit::Ms), Some(RateUnit::GigaBits)), "50,99,99.99");
    let found = records(&complete(&mut Csv::default().showing(chosen), &rows));
    let number = |record: &HashMap<String, String>, column: &str| record[column].parse::<f64>().unwrap();
    for (row, other) in found.iter().zip(&canonical) {
        for column in ["median", "sample_min", "iteration_p95_low", "iteration_p99"] {
            let ns = number(other, &format!("{column}_ns"));
            assert_eq!(number(row, &format!("{column}_ms")), ns / 1e6, "{column}");
        }
        assert!(!row.keys().any(|column| column.ends_with("_ns") || column.contains("mb_per_s")));
        assert_eq!(
            (row["iteration_p99_99_ms"].as_str(), row["messages_per_s"].as_str()),
            ("", &*other["messages_per_s"])
        );
        assert!(number(row, "iteration_p50_low_ms") <= number(row, "iteration_p50_ms"));
        assert_eq!(row.keys().filter(|column| *column == "iteration_p99_ms").count(), 1);
    }
    assert_eq!(number(&found[1], "gbit_per_s"), number(&canonical[1], "mb_per_s") * 8.0 / 1e3);
    let gbit_per_s = number(&found[2], "bus_gbit_per_s");
    assert_eq!(gbit_per_s, number(&canonical[2], "bus_mb_per_s") * 8.0 / 1e3);
    assert!((gbit_per_s / number(&found[2], "algorithm_gbit_per_s") - 1.5).abs() < 1e-9);
    assert!(number(&found[2], "bus_gbit_per_s_low") <= gbit_per_s);
    assert_eq!((found[0]["bus_gbit_per_s"].as_str(), found[1]["algorithm_gbit_per_s"].as_str()), ("", ""));
}
