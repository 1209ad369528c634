//! Comparison and output of arbitrary files end in text or a typed error, never in a panic.

use std::{borrow::Cow, fs};

use ombx_compare::{Comparison, Settings, SideResults};
use ombx_record::{
    event::Event,
    file::{self, Records, RunWithRows},
    result::{Measurement, RunOutcome, Tally},
};
use ombx_show::{self, OpenMetrics, Paint, Renderer};
use proptest::prelude::*;

use crate::records::{any_row, any_run};

const GOLDEN: &str = include_str!("../../../record/tests/golden/one_launch.jsonl");

fn side(runs: &[RunWithRows]) -> SideResults {
    let mut side = SideResults::named("a\u{1b}[31m\"side\"");
    runs.iter().for_each(|run| side.run(run));
    side
}

/// Compares two sides and checks all output formats.
fn printed(base: &SideResults, new: &SideResults) -> Comparison {
    let comparison = Comparison::new(base, new, Settings::default());
    let mut out = Vec::new();
    ombx_show::compare::table(&mut out, &comparison, Paint::Plain, None).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
    let json = ombx_show::compare::comparison_json(&comparison).to_string();
    let read: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(read["cases"].as_array().unwrap().len(), comparison.cases.len());
    assert!(!has_null(&read), "{json}");
    comparison
}

fn has_null(value: &serde_json::Value) -> bool {
    match value {
        serde_json::Value::Null => true,
        serde_json::Value::Array(items) => items.iter().any(has_null),
        serde_json::Value::Object(fields) => fields.values().any(has_null),
        _ => false,
    }
}

/// Checks the OpenMetrics grammar: known comments, samples after their family, unique series, and an end.
fn assert_open_metrics(text: &str) {
    let lines: Vec<&str> = text.split_terminator('\n').collect();
    assert_eq!(lines.last(), Some(&"# EOF"), "{text}");
    let (mut families, mut seen) = (std::collections::BTreeSet::new(), std::collections::BTreeSet::new());
    let mut family = String::new();
    for line in &lines[..lines.len() - 1] {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            family = rest.strip_suffix(" gauge").expect("a gauge").to_owned();
            assert!(families.insert(family.clone()), "{family} stands in two places");
        } else if let Some(rest) = line.strip_prefix("# UNIT ") {
            let (name, unit) = rest.split_once(' ').unwrap();
            assert!(name == family && name.ends_with(&format!("_{unit}")), "{line}");
        } else if let Some(rest) = line.strip_prefix("# HELP ") {
            assert!(rest.starts_with(&format!("{family} ")), "{line}");
        } else {
            let (series, value) = line.rsplit_once(' ').unwrap();
            assert!(value.parse::<f64>().unwrap().is_finite(), "{line}");
            assert!(seen.insert(series.to_owned()), "twice: {line}");
            let labels = series.strip_prefix(&family).unwrap_or_else(|| panic!("{line} is not of {family}"));
            assert_labels(labels);
        }
    }
}

fn assert_labels(labels: &str) {
    if labels.is_empty() {
        return;
    }
    let mut rest = labels.strip_prefix('{').and_then(|l| l.strip_suffix('}')).expect("braces");
    loop {
        let (name, value) = rest.split_once("=\"").expect("a label");
        assert!(!name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{labels}");
        let mut escaped = false;
        let end = value.char_indices().find(|(_, c)| {
            let closes = *c == '"' && !escaped;
            assert!(!escaped || "\\\"n".contains(*c), "{labels}");
            escaped = *c == '\\' && !escaped;
            closes
        });
        rest = &value[end.expect("a closing quote").0 + 1..];
        match rest.strip_prefix(',') {
            Some(more) => rest = more,
            None => return assert!(rest.is_empty(), "{labels}"),
        }
    }
}

fn open_metrics(runs: &[RunWithRows]) -> String {
    let (mut out, mut renderer) = (Vec::new(), OpenMetrics::default());
    for run in runs {
        renderer.event(&mut out, &Event::Run(Cow::Borrowed(&run.run))).unwrap();
        run.rows.iter().for_each(|row| renderer.event(&mut out, &Event::row(row)).unwrap());
        renderer
            .event(&mut out, &Event::End { outcome: RunOutcome::Complete, tally: Tally::default() })
            .unwrap();
    }
    renderer.finish(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

proptest! {
    #![proptest_config(ombx_testkit::seeded())]
    #[test]
    fn any_two_sides_are_compared(
        run in any_run(),
        rows in prop::collection::vec(any_row(), 0..4),
        other in prop::collection::vec(any_row(), 0..3),
        launches in 1usize..7,
    ) {
        let named = |row: &Measurement, from: &Measurement| Measurement { key: from.key.clone(), ..row.clone() };
        let mixed: Vec<Measurement> = other.iter().zip(&rows).map(|(row, from)| named(row, from)).collect();
        let of = |rows: &[Measurement]| RunWithRows { run: run.clone(), rows: rows.to_vec(), rounds: Vec::new(), grown: Vec::new(), end: None, verdict: None };
        let base = vec![of(&rows); launches];
        printed(&side(&base), &side(&[of(&mixed), of(&rows)]));
        let same = printed(&side(&base), &side(&base));
        let counts = same.counts();
        prop_assert_eq!((counts.worse, counts.better), (0, 0));
        assert_open_metrics(&open_metrics(&base));
    }

    #[test]
    fn damaged_files_are_compared_or_refused(at in 0..GOLDEN.len(), byte in any::<u8>(), cut in 0..GOLDEN.len()) {
        let mut bytes = GOLDEN.as_bytes().to_vec();
        bytes[at] = byte;
        let mut damaged = SideResults::named("damaged");
        let records = Records::new(&bytes[..bytes.len() - cut.min(at)]);
        records.map_while(Result::ok).for_each(|event| damaged.event(&event));
        let whole = side(&file::read(GOLDEN.as_bytes()).unwrap().runs);
        printed(&damaged, &whole);
        printed(&whole, &damaged);
    }
}

#[test]
fn the_golden_file_as_open_metrics() {
    let text = open_metrics(&file::read(GOLDEN.as_bytes()).unwrap().runs);
    assert_open_metrics(&text);
    for line in [
        "# TYPE ombx_latency_seconds gauge\n# UNIT ombx_latency_seconds seconds\n# HELP ombx_latency_seconds ",
        "ombx_latency_seconds{bench=\"p2p.latency\",key=\"p2p.latency/bytes=8\",bytes=\"8\",axes=\"\",fabric=\"mpi\",from_host=\"n01\",to_host=\"n02\"} 0.0000003576875\n",
        "axes=\"sync=pscw,win=allocate\"",
        "ombx_complete{fabric=\"mpi\"} 1\n",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
}

#[test]
fn a_file_is_opened_by_its_path() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../record/tests/golden/one_launch.jsonl");
    assert_eq!(file::open(path).unwrap(), file::read(GOLDEN.as_bytes()).unwrap());
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("text"), "no result\n").unwrap();
    // Whatever is wrong with a file, the error has its path, and its source the reason.
    for (name, reason) in [
        ("absent.jsonl", "No such file or directory (os error 2)"),
        ("", "Is a directory (os error 21)"),
        ("text", "line 1 is not a record of ombx results"),
    ] {
        let path = directory.path().join(name);
        let why = file::open(&path).unwrap_err();
        assert!(matches!(&why, file::ReadError::File { path: of, .. } if *of == path), "{why:?}");
        let source = std::error::Error::source(&why).expect("a source").to_string();
        assert!(source.contains(reason), "{source}");
        assert_eq!(why.to_string(), format!("{}: {source}", path.display()));
    }
}
