//! Written records are read back, also with unknown fields and records added.

use std::borrow::Cow;

use ombx_record::{
    event::Event,
    file,
    result::{Measurement, Tally},
};
use proptest::prelude::*;
use serde_json::Value;

use crate::{
    json, line, read,
    records::{any_end, any_record, any_row, any_run},
};

proptest! {
    #![proptest_config(ombx_testkit::seeded())]
    #[test]
    fn any_record_reads_back(record in any_record()) {
        let written = line(&record);
        prop_assert_eq!(written.iter().filter(|b| **b == b'\n').count(), 1, "one record, one line");
        let text = std::str::from_utf8(&written).unwrap();
        prop_assert_eq!(file::parse(text, 1).unwrap(), Some(record));
    }

    #[test]
    fn any_file_reads_back(
        run in any_run(),
        rows in prop::collection::vec(any_row(), 0..4),
        end in prop::option::of(any_end()),
    ) {
        let end = end.map(|end| match end {
            Event::End { outcome, tally } => Event::End { outcome, tally: Tally { cases: rows.len() as u64, ..tally } },
            other => other,
        });
        // Figures must follow from samples, and random ones do not.
        let rows: Vec<Measurement> = rows.into_iter().map(|row| Measurement { samples: Vec::new(), ..row }).collect();
        let mut bytes = line(&Event::Run(Cow::Owned(run.clone())));
        rows.iter().for_each(|row| bytes.extend(line(&Event::Row(Cow::Owned(row.clone())))));
        end.iter().for_each(|end| bytes.extend(line(end)));
        let twice = read([bytes.clone(), bytes.clone()].concat()).unwrap();
        prop_assert_eq!(twice.runs.len(), 2, "files can be joined");
        let file = read(bytes).unwrap();
        prop_assert_eq!(&twice.runs[1], &file.runs[0]);
        prop_assert!(!file.cut_off);
        prop_assert_eq!(&file.runs[0].run, &run);
        prop_assert_eq!(&file.runs[0].rows, &rows);
        prop_assert_eq!(file.runs[0].end.map(|(outcome, tally)| Event::End { outcome, tally }), end);
    }

    #[test]
    fn fields_of_later_minor_versions_are_skipped(record in any_record(), depth in 1usize..100) {
        let mut later = json(std::str::from_utf8(&line(&record)).unwrap());
        widen(&mut later);
        let nested = format!("{{\"later\":{}{},", "[".repeat(depth), "]".repeat(depth));
        let text = later.to_string().replacen('{', &nested, 1);
        prop_assert_eq!(file::parse(&text, 1).unwrap(), Some(record));
    }
}

/// Adds a field to every object with fixed fields.
fn widen(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields.iter_mut() {
                if !["plan", "env", "axes", "figures", "software", "facts"].contains(&name.as_str()) {
                    widen(field);
                }
            }
            fields.insert(
                "a_later_field".into(),
                serde_json::json!({"of": ["any", null, 1e300, {"shape": true}]}),
            );
        }
        Value::Array(items) => items.iter_mut().for_each(widen),
        _ => {}
    }
}

#[test]
fn records_of_later_minor_versions_are_skipped() {
    let golden = include_str!("../../../record/tests/golden/one_launch.jsonl");
    let mut lines: Vec<String> = golden.lines().map(str::to_owned).collect();
    lines[0] = lines[0].replace("\"minor\":0", "\"minor\":9");
    for at in (0..=lines.len()).rev() {
        lines.insert(at, r#"{"kind":"heartbeat","at_ns":12,"samples":"none"}"#.to_owned());
    }
    assert_eq!(read(lines.join("\n")).unwrap(), read(golden).unwrap());
}

#[test]
fn invalid_rows_are_not_written() {
    let row = read(include_str!("../../../record/tests/golden/one_launch.jsonl"))
        .unwrap()
        .runs
        .remove(0)
        .rows
        .remove(0);
    let mut nonsense = row.clone();
    nonsense.summary.as_mut().unwrap().mean = f64::NAN;
    let mut out = Vec::new();
    let error = file::write(&mut out, &Event::Row(Cow::Owned(nonsense))).unwrap_err();
    assert_eq!(error.to_string(), "p2p.latency/bytes=8: mean_ns is NaN, which is not a time");
    assert!(out.is_empty());
}
