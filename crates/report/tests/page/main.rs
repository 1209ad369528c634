//! Text of the page: contents, order, and escaping of all text of result files.

mod escaping;
mod history;
mod links;

use std::collections::{BTreeMap, BTreeSet};

use ombx_compare::{Comparison, Settings, SideResults};
use ombx_estimate::number::{RateUnit, TimeUnit, Units};
use ombx_links::verdict::{LinkSweep, SweptFile};
use ombx_record::{
    fact::{Fact, Facts, HostFacts},
    file::{self, ResultFile, RunWithRows},
    result::{
        Check, ClockFacts, Figure, Level, Mark, MarkCode, Measurement, Metric, Mismatch, Outcome,
        OverLaunches, Place, Run, RunOutcome, Samples, Tally, Work,
    },
    stats::Summary,
    unit::Rank,
};
use ombx_report::{Report, Source, page};

use self::links::links;

/// Value of all samples. It must not appear on the page.
const SAMPLE: u64 = 987_654_321;

/// Facts about a host whose memory differs from that of the others.
fn facts_of(host: &str) -> HostFacts {
    let facts = [
        ("cpu", Fact::Known("Xeon 1".into())),
        ("memory", Fact::Known(format!("memory of {host}"))),
        ("governor", Fact::Unknown { reason: "no cpufreq".into() }),
    ];
    HostFacts { hosts: vec![host.into()], facts: facts.map(|(name, fact)| (name.to_owned(), fact)).into() }
}

fn run(hosts: &[&str]) -> Run {
    let place = |host: &&str| Place {
        host: (*host).into(),
        cpus: "0".into(),
        online: 2,
        governor: None,
        quota: None,
    };
    Run {
        id: "run-1".into(),
        argv: vec!["ombx".into(), "run".into(), "rma.*".into()],
        started: "2026-01-01T00:00:00Z".into(),
        version: "0.1.0".into(),
        profile: "release".into(),
        fabric: "mpi".into(),
        library: "MPI 4.1, a long story".into(),
        places: hosts.iter().map(place).collect(),
        clock: ClockFacts { source: "tsc".into(), resolution_ns: 1, overhead_ns: 9 },
        plan: BTreeMap::from([("precision".into(), "1%".into())]),
        env: BTreeMap::from([("UCX_TLS".into(), "rc".into())]),
        software: Facts::from([("commit".into(), Fact::Known("abc123".into()))]),
        hosts: hosts.iter().map(|host| facts_of(host)).collect(),
        loaded: None,
        launched: None,
    }
}

fn row(bench: &str, axes: &[(&str, &str)], bytes: u64, ns: f64) -> Measurement {
    let axes: BTreeMap<String, String> = axes.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
    let own: Vec<String> = axes.iter().map(|(name, value)| format!("{name}={value},")).collect();
    Measurement {
        bytes: Some(bytes),
        axes,
        work: Some(Work { bytes: 2 * bytes, ops: 2, legs: 2 }),
        check: Check::Passed,
        samples: vec![Samples { batch: 1, elapsed_ns: vec![SAMPLE; 20], ..Samples::default() }],
        summary: Summary::new(&(0..20).map(|i| ns + f64::from(i % 3)).collect::<Vec<_>>()),
        ..Measurement::new(bench, format!("{bench}/{}bytes={bytes}", own.concat()), Metric::Latency, 2)
    }
}

fn file(run: Run, rows: Vec<Measurement>) -> ResultFile {
    let end = Some((RunOutcome::Complete, Tally { cases: rows.len() as u64, ..Tally::default() }));
    let mut sweep = LinkSweep::of_run(&run);
    rows.iter().for_each(|row| sweep.add(row));
    let verdict = Some(Box::new(sweep.verdict()));
    vec![RunWithRows { rows, end, verdict, ..RunWithRows::new(run) }].into()
}

fn sweep(bench: &str, axes: &[(&str, &str)]) -> Vec<Measurement> {
    [1u64, 64, 4096, 1 << 18]
        .iter()
        .map(|bytes| row(bench, axes, *bytes, 500.0 + *bytes as f64 / 10.0))
        .collect()
}

/// Returns the page without the drawings for phones, which repeat the others.
fn rendered(files: &[(&str, &ResultFile)]) -> String {
    without_phones(&whole(files))
}

fn whole(files: &[(&str, &ResultFile)]) -> String {
    let files: Vec<(&str, SweptFile)> =
        files.iter().map(|(name, file)| (*name, (*file).clone().into())).collect();
    let sources: Vec<Source<'_>> = files.iter().map(|(name, file)| Source { name, file }).collect();
    page(&Report { sources: &sources, ..Report::default() })
}

fn without_phones(html: &str) -> String {
    let mut parts = html.split("<svg class=\"phone\"");
    let first = parts.next().unwrap().to_owned();
    parts.fold(first, |page, part| page + part.split_once("</svg>").unwrap().1)
}

fn of_rows(rows: Vec<Measurement>) -> String {
    rendered(&[("x.jsonl", &file(run(&["a", "b"]), rows))])
}

/// Returns the values of an attribute in order.
fn attributes<'a>(html: &'a str, name: &str) -> Vec<&'a str> {
    let begin = format!(" {name}=\"");
    let parts = html.split(begin.as_str()).skip(1);
    parts.filter_map(|rest| rest.split('"').next()).collect()
}

#[test]
fn failures_come_first_and_doubts_are_one_line_that_unfolds() {
    let mut rows = sweep("p2p.latency", &[]);
    rows[0].trust =
        vec![Mark::with_advice(MarkCode::Preempted, "preempted 3x", "free the CPUs").at(Level::Caution)];
    rows[1].outcome = Outcome::Failed("data arrived wrong".into());
    rows[1].check = Check::Failed(Mismatch { rank: Rank(1), slot: 2, byte: 3, expected: 4, actual: 5 });
    rows[2].outcome = Outcome::Failed("MPI_ERR_X".into());
    rows[3].outcome = Outcome::Skipped("needs 4 ranks".into());
    let html = of_rows(rows);
    let at = |part: &str| html.find(part).unwrap_or_else(|| panic!("{part} is missing"));
    let order = [
        "Data arrived wrong: rank 1, message 2, byte 3",
        "MPI_ERR_X",
        "<details class=\"doubts\"><summary>Doubts: 0 of 3 rows are fit to publish; 3 not: ",
        "; 1 row skipped.</summary>",
        "needs 4 ranks",
        "Preempted ranks: 1 row",
        "free the CPUs",
        "</details>",
        "id=\"curves\"",
    ];
    assert!(order.windows(2).all(|pair| at(pair[0]) < at(pair[1])), "{:?}", order.map(at));
    for (what, n) in [("rows", 4), ("measured", 1), ("wrong data", 1), ("failed", 1), ("skipped", 1)] {
        assert!(html.contains(&format!("<b>{n}</b> {what}<")), "{n} {what}");
    }
    assert!(html.contains("href=\"#r0\"") && html.contains("id=\"r0\""));
    assert!(html.contains(">p2p.latency, 1 byte</a>"), "rows have names that people read: {html}");
}

#[test]
fn the_answer_has_the_main_figure_of_each_series() {
    let html = of_rows(sweep("p2p.latency", &[("mode", "a")]));
    assert!(html.contains("<dt>p2p.latency · mode=a</dt><dd>0.50"), "{html}");
    assert!(html.contains(" for 1 byte</dd>") && html.find("<dd>") < html.find("id=\"curves\""), "{html}");
    let names: Vec<String> = (0..20).map(|i| format!("v{i}")).collect();
    let many = of_rows(names.iter().flat_map(|name| sweep("rma.put_latency", &[("sync", name)])).collect());
    assert_eq!(many.matches("<dd>").count(), 8, "{many}");
    assert!(many.contains("The charts show 12 more series."), "{many}");
}

#[test]
fn a_chart_is_drawn_again_for_phones() {
    let html = whole(&[("x", &file(run(&["a"]), sweep("p2p.latency", &[])))]);
    let narrow = html.split("<svg class=\"phone\"").nth(1).unwrap().split_once("</svg>").unwrap().0;
    assert!(narrow.starts_with(" viewBox=\"0 0 380 "), "{narrow}");
    assert_eq!(narrow.matches("class=\"mark\"").count(), 4, "{narrow}");
    assert_eq!(without_phones(&html).matches("class=\"mark\"").count(), 4 + 1, "and the legend");
}

#[test]
fn notes_are_folded_and_rows_that_are_fit_to_publish_are_counted() {
    let mut rows = over_launches(12).runs.remove(0).rows;
    rows[0].trust = vec![Mark::with_advice(MarkCode::Governor, "governor powersave", "set the governor")];
    let html = of_rows(rows.clone());
    let line = "<details class=\"doubts\"><summary>No doubts: 4 of 4 rows are fit to publish.</summary>";
    assert!(html.contains(line), "{html}");
    let folded = html.find("<details><summary>1 note</summary>").expect("notes are folded");
    assert!(html.find("set the governor").is_some_and(|at| at > folded));
    rows[1].trust = vec![Mark::with_advice(MarkCode::Bimodal, "bimodal", "look at the samples")];
    let html = of_rows(rows);
    assert!(html.contains(
        "<summary>Doubts: 3 of 4 rows are fit to publish; 1 not: samples in two groups (1).</summary>"
    ));
    let folded = html.find("<details><summary>1 note</summary>").expect("notes are folded");
    assert!(html.find("look at the samples").is_some_and(|at| at < folded));
    let well = of_rows(over_launches(12).runs.remove(0).rows);
    assert!(well.contains("<p class=\"doubts\">No doubts: 4 of 4 rows are fit to publish.</p>"), "{well}");
}

#[test]
fn incomplete_runs_are_reported() {
    let mut killed = file(run(&["a"]), sweep("x.y", &[]));
    killed.runs[0].end = None;
    assert!(rendered(&[("k.jsonl", &killed)]).contains("k.jsonl after 4 rows: the run has no end record"));
    killed.cut_off = true;
    assert!(rendered(&[("k.jsonl", &killed)]).contains("ends inside a record"));
    killed.runs[0].end = Some((RunOutcome::Interrupted, Tally::default()));
    killed.cut_off = false;
    assert!(rendered(&[("k.jsonl", &killed)]).contains("interrupted"));
}

#[test]
fn curves_have_a_symbol_per_measured_row() {
    let mut rows = sweep("p2p.latency", &[]);
    rows.extend(sweep("p2p.other", &[("mode", "a")]));
    rows.push(row("p2p.latency", &[], 0, 400.0));
    rows[1].outcome = Outcome::Failed("x".into());
    let html = of_rows(rows);
    let charts = html.matches("<svg class=\"plot\"").count();
    assert_eq!(charts, 1, "one family, one chart");
    assert_eq!(html.matches("class=\"line\"").count(), 4, "two curves, and two in the legend");
    let marks = html.matches("<title>p2p.").count();
    assert_eq!(marks, 8, "nine rows, one of them failed");
    assert_eq!(html.matches("class=\"ci\"").count(), 8);
    assert!(html.contains(">256K</text>") && html.contains("both axes logarithmic"));
    assert_eq!(html.matches("type=\"checkbox\" checked").count(), 2);
}

#[test]
fn rows_of_one_size_are_dot_plots() {
    let rows = ["fence", "lock"].map(|sync| row("rma.put_latency", &[("sync", sync)], 8, 700.0));
    let html = of_rows(rows.to_vec());
    assert!(html.contains(">sync=fence</text>") && html.contains(">sync=lock</text>"), "{html}");
    assert!(html.contains("rma.put_latency · 8 bytes"));
}

#[test]
fn many_series_are_split_into_several_charts() {
    let names: Vec<String> = (0..20).map(|i| format!("v{i}")).collect();
    let rows = names.iter().flat_map(|name| sweep("rma.put_latency", &[("sync", name)])).collect();
    let html = of_rows(rows);
    assert_eq!(html.matches("<svg class=\"plot\"").count(), 3);
    assert!(
        html.contains("rma.put_latency: latency, 17 to 20 of 20") && !html.contains("class=\"series s8\"")
    );
}

/// Returns a sweep over launches whose medians differ by up to 10 %.
fn over_launches(count: usize) -> ResultFile {
    let mut rows = sweep("p2p.latency", &[]);
    for row in &mut rows {
        let median = row.summary.as_ref().unwrap().median;
        let medians_ns = (0..count).map(|i| median * (1.0 + 0.1 * i as f64 / count as f64)).collect();
        let coverage = if count < 6 { 0.75 } else { 0.961 };
        row.samples.clear();
        row.checked = 600;
        row.launches = Some(OverLaunches::of_one_state(medians_ns, 1.0, None, coverage));
    }
    let mut run = run(&["a", "b"]);
    run.plan.insert("launches".into(), count.to_string());
    file(run, rows)
}

#[test]
fn launches_are_dots_of_one_curve_and_files_are_two_curves() {
    let launches = over_launches(12);
    let html = rendered(&[("base", &launches), ("new", &launches)]);
    assert_eq!(html.matches("type=\"checkbox\"").count(), 2, "one key for each file");
    assert_eq!(html.matches("<title>base, ").count(), 4, "one mark for each size");
    assert_eq!(html.matches("path class=\"launches\"").count(), 8, "and the dots of its launches");
    assert_eq!(html.matches("95 % interval ").count(), 8 + 2, "8 marks and 2 paragraphs: {html}");
    assert!(html.contains("<b>12</b> launches<") && html.contains("the first of 12 launches"), "{html}");
    assert!(html.contains("max launch") && !html.contains("1 launch:"), "{html}");
    let dots = attributes(&html, "d").into_iter().find(|path| path.contains("h0M")).unwrap();
    assert_eq!(dots.matches("h0").count(), 12);
}

#[test]
fn many_launches_have_no_dots() {
    let html = rendered(&[("x", &over_launches(200))]);
    assert!(!html.contains("class=\"launches\"") && html.contains("class=\"ci\""), "{html}");
}

#[test]
fn few_launches_name_their_coverage_and_one_says_so() {
    let few = rendered(&[("x", &over_launches(3))]);
    assert!(few.contains("75 % interval ") && few.contains("(75%)") && !few.contains("1 launch:"), "{few}");
    let one = of_rows(sweep("p2p.latency", &[]));
    assert!(one.contains("<b>1</b> launch<") && one.contains("95% within this launch"), "{one}");
    assert_eq!(one.matches("1 launch: variation between launches unknown").count(), 1, "{one}");
    let of_both = rendered(&[("a", &over_launches(9)), ("b", &file(run(&["a"]), sweep("p2p.bw", &[])))]);
    assert!(of_both.contains("<b>1 to 9</b> launches<") && of_both.contains("b: 1 launch:"), "{of_both}");
    let sweeps_only = rendered(&[("l", &links(&[]))]);
    assert!(!sweeps_only.contains("</b> launch") && !sweeps_only.contains("1 launch:"), "{sweeps_only}");
}

#[test]
fn a_pipeline_is_drawn_from_its_figures() {
    let mut pipeline = row(
        "sockets.pipeline",
        &[("source", "memory"), ("sink", "file"), ("nodes", "2"), ("phases", "3")],
        1 << 18,
        1e9,
    );
    for node in 0..2 {
        pipeline.figures.insert(format!("node{node}_mb_per_s"), Figure::Value(123.0));
        for (phase, what) in (1..4).flat_map(|p| ["data", "room"].map(|what| (p, what))) {
            let name = format!("node{node}_phase{phase}_waited_for_{what}_ms");
            pipeline.figures.insert(name, Figure::Value(f64::from(phase)));
        }
    }
    pipeline.figures.insert("buffer_p99_us".into(), Figure::Unresolved("too few buffers".into()));
    let html = of_rows(vec![pipeline]);
    assert_eq!(html.matches("class=\"stage ").count(), 6);
    assert_eq!(html.matches("class=\"tcp\"").count(), 4 + 1, "two crossings between phases, and the legend");
    assert!(
        html.contains("123.00 MB/s") && html.contains("to file") && html.contains("n/a: too few buffers")
    );
}

#[test]
fn two_sides_are_compared() {
    let slower = |factor: f64| {
        let mut rows = sweep("p2p.latency", &[]);
        for (at, row) in rows.iter_mut().enumerate() {
            let elapsed = (0..60).map(|i| ((1000.0 + f64::from(i * 7 % 13)) * factor) as u64).collect();
            row.samples[0].elapsed_ns = elapsed;
            row.summary = Summary::new(&Measurement::combine(&row.samples, 2));
            row.key = format!("p2p.latency/bytes={at}");
        }
        rows
    };
    let (base, new) = (file(run(&["a", "b"]), slower(1.0)), file(run(&["a", "b"]), slower(3.0)));
    let mut sides = [("base.jsonl", "old"), ("new.jsonl", "fresh")]
        .map(|(name, label)| SideResults::named(name).labelled(Some(label.into())));
    for (side, file) in sides.iter_mut().zip([&base, &new]) {
        (0..4).for_each(|_| side.run(&file.runs[0]));
    }
    let comparison = Comparison::new(&sides[0], &sides[1], Settings::default());
    let sources = [
        Source { name: "base.jsonl", file: &base.clone().into() },
        Source { name: "new.jsonl", file: &new.clone().into() },
    ];
    let html = page(&Report { sources: &sources, comparison: Some(&comparison), ..Report::default() });
    let answer = "fresh is 3.00 times slower than old in all 4 cases";
    assert!(html.find(answer) < html.find("id=\"comparison\""), "{:?}", comparison.cases);
    assert!(html.contains(answer) && html.contains("<h1>fresh compared with old</h1>"), "{html}");
    assert!(html.contains("Time in fresh against old") && html.contains("+200.0 %"));
    assert!(html.contains("p2p.latency · 64 bytes"), "cases have names that people read: {html}");
}

#[test]
fn a_page_has_the_chosen_units() {
    let mut rows = sweep("p2p.latency", &[]);
    let rates = sweep("p2p.bw", &[]).into_iter();
    rows.extend(rates.map(|row| Measurement { metric: Metric::Bandwidth, ..row }));
    let (rows, links) = (file(run(&["a", "b"]), rows), links(&[]));
    let sources = [Source { name: "x", file: &rows.into() }, Source { name: "l", file: &links.into() }];
    let units = Units { time: Some(TimeUnit::Ns), rate: Some(RateUnit::GigaBits) };
    let html = page(&Report { sources: &sources, units, ..Report::default() });
    let (style, sections) = html.split_once("<main").unwrap();
    let sections = sections.split("<script").next().unwrap();
    assert!(!style.contains("µs"));
    for part in ["time in ns", "bandwidth in Gbit/s", "measured again alone, ns", ">Gbit/s</th>"] {
        assert!(sections.contains(part), "{part}: {sections}");
    }
    for unit in ["µs", "MB/s"] {
        assert!(!sections.contains(unit), "{unit}: {sections}");
    }
}

#[test]
fn the_page_loads_nothing() {
    let mut rows = sweep("p2p.latency", &[]);
    rows[0].trust = vec![Mark::with_advice(MarkCode::Clock, "clock", "x")];
    let html = rendered(&[("x.jsonl", &file(run(&["a", "b"]), rows)), ("l", &links(&[]))]);
    for outside in ["http:", "https:", "//", "url(", "@import", " src=", "fetch("] {
        let scripted =
            html.matches(outside).count() - html.matches("  // ").count() * usize::from(outside == "//");
        assert_eq!(scripted, 0, "{outside}");
    }
    assert!(html.contains("default-src 'none'"));
    let ids = attributes(&html, "id");
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "{ids:?}");
    let named = attributes(&html, "aria-labelledby").into_iter().flat_map(str::split_whitespace);
    let linked =
        attributes(&html, "href").into_iter().map(|href| href.strip_prefix('#').expect("within the page"));
    for target in named.chain(linked) {
        assert!(ids.contains(&target), "nothing has the id {target}");
    }
    assert!(!html.contains(&SAMPLE.to_string()), "raw samples are not part of the page");
    for part in ["run-1", "ombx run &#39;rma.*&#39;", "UCX_TLS", "precision", "9 ns per reading"] {
        assert!(html.replace("'", "&#39;").contains(part), "{part}");
    }
}

#[test]
fn a_file_without_rows_gives_a_page() {
    let html = rendered(&[("x", &file(run(&[]), vec![]))]);
    assert!(html.contains("The files have no rows.") && !html.contains("id=\"curves\""));
    assert!(page(&Report::default()).contains("no files"));
}

#[test]
fn odd_figures_are_drawn_or_left_out() {
    let mut rows = sweep("p2p.latency", &[]);
    for (row, ns) in rows.iter_mut().zip([0.0, 1e-30, 1e30, f64::MAX]) {
        let summary = row.summary.as_mut().unwrap();
        (summary.median, summary.ci95) = (ns, Some([0.0, f64::MAX]));
    }
    let html = of_rows(rows);
    assert!(!html.contains("NaN") && !html.contains(">inf") && !html.contains("\"inf"), "{html}");
}
