//! A slow switch in every form: eight hosts on four switches, of which one is slow.

use std::borrow::Cow;

use ombx_links::verdict::LinkSweep;
use ombx_record::{event::Event, file, link::BENCH, verdict::Verdict};

use crate::{OpenMetrics, links::tests::*};

const GROUPS: &str = "switch:s0=n[0-1] switch:s1=n[2-3] switch:s2=n[4-5] switch:s3=n[6-7]";

/// Returns a run and its rows: 1 ms on a switch, 2 ms between switches, and twice as long to and from switch s2.
fn sweep() -> (Run, Vec<Measurement>) {
    let golden = ombx_testkit::golden();
    let place = |at: u32| Place { host: format!("n{at}"), ..golden.run.places[0].clone() };
    let mut run = Run { id: "r".into(), places: (0..8).map(place).collect(), ..golden.run.clone() };
    run.plan.insert("groups".into(), GROUPS.into());
    let row = |from: u32, to: u32| {
        let switches = [from / 2, to / 2];
        let far = if switches[0] == switches[1] { 1e6 } else { 2e6 };
        let slow = if far > 1e6 && switches.contains(&2) { 2.0 } else { 1.0 };
        let ns = far * slow * (1.0 + 0.01 * f64::from((from * 7 + to * 5) % 4));
        let axes =
            [("pattern", "semidirectional".into()), ("from", from.to_string()), ("to", to.to_string())];
        Measurement {
            bench: BENCH.into(),
            metric: Metric::Bandwidth,
            bytes: Some(1_000_000),
            axes: axes.into_iter().map(|(k, v): (_, String)| (k.to_owned(), v)).collect(),
            work: Some(Work { bytes: 2_000_000, ops: 2, legs: 2 }),
            summary: Summary::new(&[ns; 10]),
            trust: vec![Mark::with_advice("x", "x", "").at(Level::Caution)],
            ..golden.rows[0].clone()
        }
    };
    let pairs = (0..8).flat_map(|a| (0..8).map(move |b| (a, b))).filter(|(a, b)| a != b);
    (run, pairs.map(|(from, to)| row(from, to)).collect())
}

fn text_of(renderer: &mut dyn Renderer) -> String {
    let ((run, rows), mut out) = (sweep(), Vec::new());
    renderer.event(&mut out, &Event::Run(Cow::Borrowed(&run))).unwrap();
    rows.iter().for_each(|row| renderer.event(&mut out, &Event::row(row)).unwrap());
    renderer.event(&mut out, &Event::Verdict(Cow::Owned(record()))).unwrap();
    renderer.event(&mut out, &Event::End { outcome: RunOutcome::Complete, tally: Tally::default() }).unwrap();
    renderer.finish(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn record() -> Verdict {
    let (run, rows) = sweep();
    let mut sweep = LinkSweep::of_run(&run);
    rows.iter().for_each(|row| sweep.add(row));
    sweep.verdict()
}

#[test]
fn a_slow_switch_is_named_with_its_hosts() {
    let text = text_of(&mut Links::default());
    let verdict = text.lines().find(|line| line.starts_with("verdict: ")).unwrap();
    assert!(
        verdict.starts_with("verdict: switch s2 (n[4-5]) is slow: its links to other switches take "),
        "{text}"
    );
    assert!(text.contains("times as long as those of other switches"), "{text}");
    assert!(text.contains("against the median of 12 ordinary links"), "{text}");
    assert!(text.contains("besides, a link") && text.contains("so would a switch"), "{text}");
}

#[test]
fn the_verdict_is_a_record_that_is_read_as_it_was_written() {
    let record = record();
    let [part] = &record.slow[..] else { panic!("{record:?}") };
    assert_eq!((part.part.as_str(), part.name.as_deref()), ("group", Some("switch s2")));
    assert_eq!((part.hosts.join(" ").as_str(), part.bytes), ("n4 n5", 1_000_000));
    assert!((part.factor - 2.0).abs() < 0.1 && record.nameable.len() == 1, "{record:?}");
    let mut line = Vec::new();
    file::write(&mut line, &Event::Verdict(Cow::Owned(record.clone()))).unwrap();
    let line = String::from_utf8(line).unwrap();
    assert!(line.starts_with("{\"kind\":\"verdict\",\"conclusion\":\"slow\","), "{line}");
    assert_eq!(file::parse(&line, 1).unwrap(), Some(Event::Verdict(Cow::Owned(record))));
}

#[test]
fn csv_ends_with_the_verdict() {
    let text = text_of(&mut LinksCsv::default());
    let (header, last) = (text.lines().next().unwrap(), text.lines().last().unwrap());
    assert_eq!(text.lines().count(), 1 + 56 + 1, "{text}");
    let fields = |line: &str| line.split(',').count();
    assert_eq!((fields(header), fields(last)), (26, 26), "{last}");
    assert!(last.starts_with("r,,,,,,1000000,,") && last.contains(",slow,switch s2,n[4-5],"), "{last}");
}

#[test]
fn json_names_the_group() {
    let value: Value = serde_json::from_str(&text_of(&mut LinksSummary::new(LinksForm::Json))).unwrap();
    let part = &value["slow"][0];
    assert_eq!((part["kind"].as_str(), part["name"].as_str()), (Some("group"), Some("switch s2")));
    assert_eq!(part["hosts"], serde_json::json!(["n4", "n5"]));
}

#[test]
fn gauges_have_hosts_as_labels_and_nothing_of_the_run() {
    let text = text_of(&mut OpenMetrics::default());
    let line = |start: &str| {
        text.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{start}: {text}"))
    };
    let link = line("ombx_latency_seconds{");
    for label in ["from_host=\"n0\"", "to_host=\"n1\"", "from_local_rank=\"0\"", "bytes=\"1000000\""] {
        assert!(link.contains(label), "{link}");
    }
    assert!(!text.contains("run=") && !text.contains("id=") && !text.contains("started"), "{text}");
    assert!(
        line("ombx_slow_ratio{").contains("part=\"group\",name=\"switch s2\",hosts=\"n[4-5]\""),
        "{text}"
    );
    assert!(line("ombx_verdict{conclusion=\"slow\"").ends_with(" 1"), "{text}");
    assert!(line("ombx_verdict{conclusion=\"clear\"").ends_with(" 0"), "{text}");
    assert!(
        line("ombx_slow_parts{fabric=").ends_with(" 1") && line("ombx_complete{").ends_with(" 1"),
        "{text}"
    );
    assert_eq!(text.matches("ombx_doubts{").count(), 56 * 2, "a count for each level");
    assert!(line("ombx_doubts{").contains("level=\"caution\"} 1"), "{text}");
    // Another run has the same series.
    let mut both = OpenMetrics::default();
    let series = |text: &str| {
        text.lines().map(|line| line.rsplit_once(' ').unwrap_or((line, "")).0.to_owned()).collect::<Vec<_>>()
    };
    let (mut again, (mut run, rows)) = (Vec::new(), sweep());
    for id in ["r1", "r2"] {
        run.id = id.into();
        both.event(&mut again, &Event::Run(Cow::Borrowed(&run))).unwrap();
        rows.iter().for_each(|row| both.event(&mut again, &Event::row(row)).unwrap());
        both.event(&mut again, &Event::Verdict(Cow::Owned(record()))).unwrap();
        let end = Event::End { outcome: RunOutcome::Complete, tally: Tally::default() };
        both.event(&mut again, &end).unwrap();
    }
    both.finish(&mut again).unwrap();
    assert_eq!(series(&String::from_utf8(again).unwrap()), series(&text));
}
