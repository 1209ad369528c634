//! Truncated files, newer versions, and other files: a typed error, never a panic.

use ombx_record::{
    event::Event,
    file::{self, ReadError},
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{json, read};

const GOLDEN: &str = include_str!("../../../record/tests/golden/one_launch.jsonl");

#[test]
fn a_file_cut_anywhere_keeps_every_complete_row() {
    let whole = read(GOLDEN).unwrap();
    let ends: Vec<usize> = GOLDEN.match_indices('\n').map(|(at, _)| at).collect();
    for cut in 0..=GOLDEN.len() {
        // A line is complete at its last brace, even without a line end.
        let complete = ends.iter().filter(|end| **end <= cut).count();
        let file = match read(&GOLDEN[..cut]) {
            Err(ReadError::NotAResult { line: 1, .. }) if complete == 0 => continue,
            other => other.unwrap_or_else(|e| panic!("cut at {cut}: {e}")),
        };
        if cut == 0 {
            // The run was killed before its first record.
            assert!(file.runs.is_empty() && file.cut_off);
            continue;
        }
        let rows = complete - 1 - usize::from(complete == ends.len());
        assert_eq!(file.runs[0].rows, whole.runs[0].rows[..rows], "cut at {cut}");
        assert_eq!(file.runs[0].end.is_some(), complete == ends.len(), "cut at {cut}");
        let between = cut == 0 || cut == GOLDEN.len() || ends.iter().any(|end| cut == *end || cut == end + 1);
        assert_eq!(file.cut_off, !between, "cut at {cut}");
    }
}

#[test]
fn a_file_cut_inside_a_utf8_character_is_cut_off() {
    let text = GOLDEN.replace("p2p.mbw_mr", "p2p.müon");
    let cut = text.find('ü').unwrap() + 1;
    // The argument vector of the run has the letter too. The cut is at the next one.
    let cut = text[cut + 1..].find('ü').unwrap() + cut + 2;
    let file = read(&text.as_bytes()[..cut]).unwrap();
    assert!(file.cut_off);
    assert_eq!(file.runs[0].rows.len(), 2);
}

#[test]
fn zeros_after_a_crash_are_cut_off() {
    let file = read([GOLDEN.as_bytes(), &[0; 512]].concat()).unwrap();
    assert!(file.cut_off && file.runs[0].end.is_some());
}

#[test]
fn the_number_of_a_broken_line_is_reported() {
    let mut lines: Vec<&str> = GOLDEN.lines().collect();
    lines[2] = &lines[2][..100];
    let error = read(lines.join("\n")).unwrap_err();
    assert!(matches!(error, ReadError::NotAResult { line: 3, .. }), "{error}");
}

#[test]
fn a_later_major_version_is_reported() {
    let later = GOLDEN.replace("\"major\":1", "\"major\":2");
    let error = read(later).unwrap_err();
    assert!(matches!(error, ReadError::NewerVersion { found: 2, known: 1 }), "{error}");
    assert_eq!(
        error.to_string(),
        "the file has version 2 of the result format, but this ombx reads up to version 1: use a newer ombx"
    );
    // The version is checked before all other fields.
    let bare = r#"{"kind":"run","schema":{"name":"ombx.result","major":18446744073709551615}}"#;
    assert!(matches!(read(bare), Err(ReadError::NewerVersion { found: u64::MAX, known: 1 })));
}

#[test]
fn other_files_give_the_reason() {
    for (text, why) in [
        ("\n\n \n", "no run record"),
        ("hello\n", "expected value"),
        ("[]\n", "invalid"),
        ("{}\n", "missing field `kind`"),
        ("{\"kind\":7}\n", "invalid type"),
        ("{\"kind\":\"run\"}\n", "missing field `schema`"),
        ("{\"kind\":\"run\",\"schema\":{\"name\":\"other\",\"major\":1}}\n", "its schema is \"other\""),
        ("{\"kind\":\"run\",\"schema\":{\"name\":\"ombx.result\",\"major\":0}}\n", "version 0"),
        ("{\"kind\":\"run\",\"schema\":{\"name\":\"ombx.result\",\"major\":-1}}\n", "invalid value"),
        ("{\"kind\":\"heartbeat\"}\n", "no run record"),
        ("\u{feff}{}\n", "expected value"),
    ] {
        let error = read(text).unwrap_err().to_string();
        assert!(error.contains(why), "{text:?}: {error}");
    }
    assert!(matches!(read([0xff, 0xfe, b'\n']), Err(ReadError::NotAResult { line: 1, .. })));
}

#[test]
fn rows_are_between_run_and_end_records() {
    let lines: Vec<&str> = GOLDEN.lines().collect();
    for (order, line, why) in [
        (vec![1, 0], 1, "must come first"),
        (vec![5], 1, "must come first"),
        (vec![0, 1, 2, 3, 4, 5, 5], 7, "follows the end record"),
        (vec![0, 1, 2, 4, 5], 5, "counts 4 rows, but its run has 3: lines are missing"),
    ] {
        let text: String = order.into_iter().flat_map(|at: usize| [lines[at], "\n"]).collect();
        match read(text).unwrap_err() {
            ReadError::NotAResult { line: found, why: said } => {
                assert!(found == line && said.contains(why), "{found}: {said}");
            }
            other => panic!("{other}"),
        }
    }
}

/// Parses the latency row of the golden file with one value replaced. `pointer` is a JSON pointer without its first slash.
fn spoilt(pointer: &str, value: Value) -> Result<Option<Event<'static>>, ReadError> {
    let mut row = json(GOLDEN.lines().nth(1).unwrap());
    *row.pointer_mut(&format!("/{pointer}")).unwrap_or_else(|| panic!("{pointer}")) = value;
    file::parse(&row.to_string(), 2)
}

#[test]
fn impossible_values_are_refused() {
    for (pointer, value) in [
        ("summary/n", json!(0)),
        ("summary/n", json!(-1)),
        ("summary/n", json!(1.5)),
        ("summary/n", Value::Null),
        ("summary/median_ns", Value::Null),
        ("summary/median_ns", json!("NaN")),
        ("summary/median_ns", json!(-1.0)),
        ("summary/median_ns", json!(1e9)),
        ("summary/min_ns", json!(1e9)),
        ("summary/mean_ns", json!(-0.5)),
        ("summary/mad_ns", json!(-0.5)),
        ("summary/ci95_ns", json!([360.0, 357.0])),
        ("summary/ci95_ns", json!([-1.0, 357.0])),
        ("summary/ci95_ns", json!([357.0])),
        ("summary/ci95_ns", json!([357.0, 358.0, 359.0])),
        ("summary/lag1", json!("0")),
        ("work/legs", json!(0)),
        ("work/bytes", json!(-8)),
        ("work/ops", json!(1e30)),
        ("samples/0/batch", json!(0)),
        ("samples/0/batch", json!("20")),
        ("samples/0/elapsed_ns", json!([-5])),
        ("samples/0/elapsed_ns", json!([1.5])),
        ("samples/0/elapsed_ns", json!({"0": 5})),
        ("samples", json!({})),
        ("ranks", json!(0)),
        ("ranks", json!(4_294_967_296u64)),
        ("pairs", json!(0)),
        ("bytes", json!(-1)),
        ("axes", json!({"sync": 1})),
        ("metric", json!("volume")),
        ("across", json!("nowhere")),
        ("outcome", json!("skipped")),
        ("outcome", json!("splendid")),
        ("check", json!("failed")),
        ("trust", json!(["all is well"])),
        ("bench", json!(["p2p.latency"])),
    ] {
        let read = spoilt(pointer, value.clone());
        assert!(matches!(read, Err(ReadError::NotAResult { line: 2, .. })), "{pointer} = {value}: {read:?}");
    }
    for (from, to) in [
        ("\"median_ns\":357.6875", "\"median_ns\":NaN"),
        ("\"median_ns\":357.6875", "\"median_ns\":Infinity"),
        ("\"median_ns\":357.6875", "\"median_ns\":1e999"),
        ("\"bytes\":8", "\"bytes\":99999999999999999999999999"),
        ("\"bytes\":8", "\"bytes\":8,\"bytes\":9"),
        ("\"legs\":2", "\"legs\":02"),
    ] {
        let row = GOLDEN.lines().nth(1).unwrap();
        assert!(row.contains(from), "{from}");
        let read = file::parse(&row.replacen(from, to, 1), 2);
        assert!(matches!(read, Err(ReadError::NotAResult { .. })), "{to}: {read:?}");
    }
    let ranks = GOLDEN.lines().next().unwrap().replace("\"host\":\"n02\"", "\"host\":7");
    assert!(file::parse(&ranks, 1).unwrap_err().to_string().contains("invalid type: integer"));
    let end = GOLDEN.lines().last().unwrap().replace("\"cases\":4", "\"cases\":-4");
    assert!(file::parse(&end, 6).is_err());
}

#[test]
fn a_failed_check_needs_a_failed_row() {
    let row = GOLDEN.lines().nth(4).unwrap();
    assert!(file::parse(row, 5).is_ok());
    let read = file::parse(&row.replace("\"outcome\":\"failed\"", "\"outcome\":\"skipped\""), 5);
    assert!(read.unwrap_err().to_string().contains("a failed check needs the outcome failed"));
    // A row that is ok has no reason, and others have one.
    assert!(file::parse(&row.replace("\"outcome\":\"failed\"", "\"outcome\":\"ok\""), 5).is_err());
    assert!(file::parse(&row.replace("\"reason\":", "\"other\":"), 5).is_err());
    assert!(file::parse(&row.replace("\"mismatch\":", "\"other\":"), 5).is_err());
}

#[test]
fn deep_nesting_does_not_overflow_the_stack() {
    for depth in [100, 1000, 200_000] {
        let (open, close) = ("[".repeat(depth), "]".repeat(depth));
        let (inner, outer) = (r#"{"a":"#.repeat(depth), "}".repeat(depth));
        assert!(read(format!("{open}{close}\n")).is_err());
        assert!(read(format!("{{\"kind\":{open}{close}}}\n")).is_err());
        assert!(read(format!("{{\"kind\":\"run\",\"schema\":{inner}1{outer}}}\n")).is_err());
        let known = GOLDEN.replacen("\"elapsed_ns\":[", &format!("\"elapsed_ns\":[{open}"), 1);
        assert!(read(known).is_err());
    }
}

proptest! {
    #![proptest_config(ombx_testkit::seeded())]
    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = read(&bytes);
        let _ = read([GOLDEN.as_bytes(), &bytes].concat());
    }

    #[test]
    fn text_that_looks_like_json_never_panics(text in r#"([{}\[\]:,"\\0-9eE+.-]|"kind":|"case"|null|true|\n){0,60}"#) {
        let _ = read(&text);
        let _ = file::parse(&text, 1);
    }

    #[test]
    fn damage_never_panics(at in 0..GOLDEN.len(), byte in any::<u8>(), remove in 0usize..30) {
        let mut bytes = GOLDEN.as_bytes().to_vec();
        bytes[at] = byte;
        let _ = read(&bytes);
        bytes.drain(at..(at + remove).min(GOLDEN.len()));
        let _ = read(&bytes);
    }

    #[test]
    fn any_value_in_any_place_never_panics(line in 0usize..6, place in any::<prop::sample::Index>(), value in any_value()) {
        let mut record = json(GOLDEN.lines().nth(line).unwrap());
        let mut pointers = Vec::new();
        places(&record, String::new(), &mut pointers);
        let pointer: &String = place.get(&pointers);
        *record.pointer_mut(pointer).unwrap() = value;
        let _ = file::parse(&record.to_string(), 1);
    }
}

fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        Just(json!([])),
        Just(json!({})),
        Just(json!([[0, 1], {"kind": "end"}])),
    ]
}

/// Collects the JSON pointers of all values inside a value.
fn places(value: &Value, at: String, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, v)| places(v, format!("{at}/{name}"), found)),
        Value::Array(items) => {
            items.iter().take(3).enumerate().for_each(|(i, v)| places(v, format!("{at}/{i}"), found));
        }
        _ => {}
    }
    found.push(at);
}
