//! Results over time on the page: changes, charts and hosts, and text of files that stays text.

use ombx_compare::history::{DatedResult, DatedRow, History, Selection};
use ombx_record::result::Metric;
use ombx_report::{Report, Source, Timeline, page};

use crate::{file, run, sweep};

/// Returns 30 sweeps over three hosts. Links of the third host are slower from the 16th on, with another kernel.
fn sweeps(key: &str, host: &str, kernel: &str) -> History {
    let hosts = ["n01", "n02", host];
    let row = |day: usize, [from, to]: [usize; 2]| DatedRow {
        key: key.to_owned(),
        ends: Some([from, to].map(|at| hosts[at].to_owned())),
        ranks: 2,
        metric: Metric::Latency,
        value: (if day >= 16 && from + to >= 2 { 15.0 } else { 10.0 }) + 0.1 * (day * 7 % 5) as f64,
        ci95: None,
        invalid: false,
        core_to_core_ns: None,
    };
    let result = |day: usize| DatedResult {
        run: format!("r{day}"),
        started: format!("2026-03-{day:02}T02:00:00Z"),
        fabric: "mpi".into(),
        hosts: "n[01-03]".into(),
        facts: [("kernel".to_owned(), if day < 16 { "6.1" } else { kernel }.to_owned())].into(),
        rows: [[0, 1], [0, 2], [1, 2]].map(|ends| row(day, ends)).to_vec(),
        launches: Vec::new(),
        is_large_sweep: false,
    };
    History::new((1..=30).map(result).collect(), Selection::default(), |_| true)
}

#[test]
fn changes_have_a_finding_a_line_in_charts_and_their_hosts() {
    let history = sweeps("links/bytes=8", "n03", "6.2");
    let timeline = Some(Timeline { name: "nightly", history: &history });
    let html = page(&Report { history: timeline, ..Report::default() });
    for part in [
        "<title>ombx: Results of nightly</title>",
        "30 results from 2026-03-01 to 2026-03-30",
        "Since 2026-03-16 02:00 2 cases are slower, most ",
        "kernel: 6.1 -&gt; 6.2.",
        "Hosts of which several links changed: n03.",
        "n01 -&gt; n02, 8 bytes",
        ">no change<",
        ">2026-03-12</text>",
    ] {
        assert!(html.contains(part), "{part}: {html}");
    }
    assert_eq!(html.matches("<svg class=\"trend\"").count(), 3);
    assert_eq!(html.matches("<path class=\"slower\"").count(), 2, "one line per change");
    for absent in ["id=\"rows\"", "id=\"answer\"", "id=\"provenance\""] {
        assert!(!html.contains(absent), "{absent} has no files");
    }
    let newest = file(run(&["a", "b"]), sweep("p2p.latency", &[]));
    let sources = [Source { name: "30.jsonl", file: &newest.into() }];
    let both = page(&Report { sources: &sources, history: timeline, ..Report::default() });
    let place = |id: &str| both.find(&format!("id=\"{id}\"")).unwrap_or_else(|| panic!("{id}"));
    assert!(place("answer") < place("changes") && place("history") < place("rows"));
}

#[test]
fn text_of_dated_results_is_escaped() {
    const EVIL: &str = "\"'><script>alert(1)</script><img src=x>";
    let history = sweeps(EVIL, EVIL, EVIL);
    let html =
        page(&Report { history: Some(Timeline { name: EVIL, history: &history }), ..Report::default() });
    assert_eq!((html.matches("<script").count(), html.matches("<img").count()), (1, 0));
    assert!(html.contains("&lt;img src=x") && !html.contains("\"'>"));
}

#[test]
fn a_long_history_has_joined_runs_and_few_charts() {
    let mut results = sweeps("a/bytes=8", "n03", "6.2").results;
    let rows: Vec<DatedRow> = (0..100)
        .map(|i| DatedRow { key: format!("p2p.x/bytes={i}"), ends: None, ..results[0].rows[0].clone() })
        .collect();
    results.truncate(1);
    let result = |minute: usize| DatedResult {
        run: format!("r{minute}"),
        started: format!("2026-03-{:02}T{:02}:{:02}:00Z", 1 + minute / 1440, minute / 60 % 24, minute % 60),
        rows: if minute.is_multiple_of(100) { rows.clone() } else { rows[..1].to_vec() },
        launches: Vec::new(),
        ..results[0].clone()
    };
    let history = History::new((0..2000).map(result).collect(), Selection::default(), |_| true);
    let html =
        page(&Report { history: Some(Timeline { name: "d", history: &history }), ..Report::default() });
    assert_eq!(html.matches("<svg class=\"trend\"").count(), 60);
    assert!(html.contains("The table has 40 cases without a chart."));
    assert!(html.len() < 400_000, "{} bytes", html.len());
}
