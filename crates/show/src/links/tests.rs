//! Links of four hosts, of which one link is slow, in every form.

mod groups;

use std::borrow::Cow;

use ombx_record::{
    result::{Level, Mark, MarkCode, Metric, Place, Work},
    stats::Summary,
    verdict::{Conclusion, Verdict},
};
use serde_json::Value;

use crate::{LinksCsv, LinksForm, LinksSummary, links::*, links_status, monitoring::Status};

/// Renderer that gets the verdict on its links before their last launch ends, as in a job.
struct Judged<'a> {
    renderer: &'a mut dyn Renderer,
    sweep: LinkSweep,
}

impl<'a> Judged<'a> {
    fn new(renderer: &'a mut dyn Renderer) -> Judged<'a> {
        Judged { renderer, sweep: LinkSweep::default() }
    }
}

/// Renders four hosts with one rank each: 1 ms for 1 MB, and 2 ms between ranks 1 and 3.
fn rendered(renderer: &mut dyn Renderer, trust: &[Mark]) -> String {
    let golden = ombx_testkit::golden();
    let place = |at: u32| Place { host: format!("n{at}"), ..golden.run.places[0].clone() };
    let run = Run { id: "r".into(), places: (0..4).map(place).collect(), ..golden.run.clone() };
    let mut out = Vec::new();
    launch(&mut Judged::new(renderer), &mut out, &run, trust, 1.0);
    renderer.finish(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// Renders a launch with times that are this factor longer.
fn launch(judged: &mut Judged<'_>, out: &mut Vec<u8>, run: &Run, trust: &[Mark], factor: f64) {
    let all = (0u32..4).flat_map(|a| (0u32..4).map(move |b| (a, b))).filter(|(a, b)| a != b);
    launch_of(judged, out, run, trust, (factor, all));
}

/// Renders a launch of some links.
fn launch_of(
    Judged { renderer, sweep }: &mut Judged<'_>,
    out: &mut Vec<u8>,
    run: &Run,
    trust: &[Mark],
    (factor, links): (f64, impl Iterator<Item = (u32, u32)>),
) {
    let golden = ombx_testkit::golden();
    renderer.event(out, &Event::Run(Cow::Borrowed(run))).unwrap();
    sweep.begin(run);
    for (from, to) in links {
        let ns = factor * if from.min(to) == 1 && from.max(to) == 3 { 2e6 } else { 1e6 };
        let axes =
            [("pattern", "semidirectional".into()), ("from", from.to_string()), ("to", to.to_string())];
        let round = ("round", ((from + to) % 3).to_string());
        let row = Measurement {
            metric: Metric::Bandwidth,
            bytes: Some(1_000_000),
            axes: axes.into_iter().chain([round]).map(|(k, v)| (k.to_owned(), v)).collect(),
            work: Some(Work { bytes: 2_000_000, ops: 2, legs: 2 }),
            summary: Summary::new(&[ns; 10]),
            trust: trust.to_vec(),
            ..golden.rows[0].clone()
        };
        renderer.event(out, &Event::row(&row)).unwrap();
        sweep.add(&row);
    }
    if sweep.is_last() {
        renderer.event(out, &Event::Verdict(Cow::Owned(sweep.verdict()))).unwrap();
    }
    renderer.event(out, &Event::End { outcome: RunOutcome::Complete, tally: Tally::default() }).unwrap();
}

#[test]
fn launches_are_printed_once_with_the_median_of_each_link() {
    let golden = ombx_testkit::golden().run;
    let run = |launch: u32| {
        let options = [("launch", launch), ("launches", 3), ("randomize", launch)];
        let mut plan = golden.plan.clone();
        plan.extend(options.map(|(name, value)| (name.to_owned(), value.to_string())));
        let place = |at: u32| Place { host: format!("n{at}"), ..golden.places[0].clone() };
        Run { places: (0..4).map(place).collect(), plan, ..golden.clone() }
    };
    let (mut renderer, mut out) = (Links::default().on_screen(Some(1000)), Vec::new());
    let mut judged = Judged::new(&mut renderer);
    for (number, factor) in [(1, 1.0), (2, 9.0), (3, 2.0)] {
        assert!(!String::from_utf8_lossy(&out).contains("links, "), "only the last launch is printed");
        launch(&mut judged, &mut out, &run(number), &[], factor);
    }
    let text = String::from_utf8(out.clone()).unwrap();
    assert_eq!((text.matches("verdict:").count(), text.matches("ombx ").count()), (1, 1), "{text}");
    assert!(text.contains("averaged; each the median of 3 launches"), "{text}");
    assert!(text.contains("fastest 2000 us (500.0 MB/s)"), "{text}");
    renderer.finish(&mut out).unwrap();
    assert_eq!(text.len(), out.len(), "nothing is left to print");
    // A sweep of which a launch is missing is printed at the end.
    let (mut renderer, mut out) = (Links::default(), Vec::new());
    launch(&mut Judged::new(&mut renderer), &mut out, &run(1), &[], 1.0);
    renderer.finish(&mut out).unwrap();
    assert!(String::from_utf8(out).unwrap().contains("fastest 1000 us (1000 MB/s)"));
}

#[test]
fn a_histogram_and_steps_show_known_figures() {
    let text = rendered(&mut Links::default(), &[]);
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let lines: Vec<Vec<String>> = text.lines().map(words).collect();
    let bar = "█".repeat(LONGEST_BAR);
    let short = "█".repeat(LONGEST_BAR / 5);
    for line in [
        // Ranges from 1 to 2 ms: five links of 1 ms, one of 2 ms.
        format!("1000 1189 840.9 1000 5 {bar}"),
        "1189 1414 707.1 840.9 0".into(),
        format!("1682 2000 500.0 594.6 1 {short}"),
        // The lower ranks of round 1: from 0 to 1 and from 1 to 3.
        "3 2 1000 1500 2000 500.0 750.0 1000".into(),
    ] {
        assert!(lines.contains(&words(&line)), "{line}\n{text}");
    }
    assert!(text.contains("histogram of 6 links:") && text.contains("same time, 6 steps:"), "{text}");
}

/// Few links have no map and no histogram, but what they carry together is the result.
#[test]
fn a_bisection_of_few_links_has_its_sum() {
    let golden = ombx_testkit::golden().run;
    let place = |at: u32| Place { host: format!("n{at}"), ..golden.places[0].clone() };
    let mut run = Run { places: (0..4).map(place).collect(), ..golden.clone() };
    let of_mode = |run: &Run| {
        let (mut renderer, mut out) = (Links::default(), Vec::new());
        launch_of(
            &mut Judged::new(&mut renderer),
            &mut out,
            run,
            &[],
            (1.0, [(0, 3), (3, 0), (1, 2), (2, 1)].into_iter()),
        );
        renderer.finish(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    assert!(!of_mode(&run).contains("pairs at the same time"), "{}", of_mode(&run));
    run.plan.insert("links".into(), "bisection".into());
    let text = of_mode(&run);
    // Both links of each direction have 1000 MB/s.
    let sum = "\nbisection, 2 pairs at the same time: min 2000, avg 2000, max 2000 MB/s over 2 steps\n";
    assert!(text.contains(sum), "{text}");
}

#[test]
fn the_map_and_the_verdict_show_the_slow_link() {
    let text = rendered(&mut Links::default().on_screen(Some(1000)), &[]);
    assert!(text.contains("n1 1  · ·█\n"), "{text}");
    assert!(text.contains("fastest 1000 us (1000 MB/s)"), "{text}");
    assert!(text.contains("verdict: the link between n1 and n3 is slow"), "{text}");
    assert_eq!(text.matches("verdict:").count(), 1, "{text}");
    assert!(text.find("verdict:") < text.find("links, "), "the verdict comes first: {text}");
    assert!(!text.contains("bisection"), "all pairs are no bisection: {text}");
}

#[test]
fn the_verdict_is_repeated_below_tables_that_are_longer_than_the_screen() {
    let text = rendered(&mut Links::default().on_screen(Some(1000)), &[]);
    let tables = text.lines().skip_while(|line| !line.starts_with("links, ")).count() + 1;
    let last = |rows: usize| {
        let text = rendered(&mut Links::default().on_screen(Some(rows)), &[]);
        text.lines().last().unwrap().to_owned()
    };
    assert!(
        last(tables - 1).starts_with("verdict: the link between n1 and n3 is slow"),
        "{}",
        last(tables - 1)
    );
    assert!(!last(tables).contains("verdict:"), "{}", last(tables));
}

#[test]
fn ranks_that_share_cpus_get_no_verdict() {
    let notice = Mark::with_advice(MarkCode::Oversubscribed, "x", "y");
    let text = rendered(&mut Links::default(), &[notice]);
    assert!(text.contains("no verdict: ranks share CPUs"), "{text}");
}

#[test]
fn evidence_names_slow_and_ordinary_links() {
    let text = rendered(&mut Links::default(), &[]);
    let evidence = "  evidence: n1-n3 2.00 x, against the median of 5 ordinary links (such as n0-n1, \
                    n0-n2, n0-n3: 1000 us); measured once\n";
    assert!(text.contains(evidence), "{text}");
}

#[test]
fn doubts_are_one_line_without_codes_and_unfold() {
    let mark = Mark::with_advice(MarkCode::NotConverged, "x", "raise --max-time").at(Level::Caution);
    let text = rendered(&mut Links::default().on_screen(Some(1000)), std::slice::from_ref(&mark));
    assert!(text.ends_with("\ndoubts: precision not reached (12 rows); -v says what to do\n"), "{text}");
    let text = rendered(&mut Links::default().on_screen(Some(1000)).with_advice(), &[mark]);
    assert!(
        text.ends_with("\ndoubts:\n  precision not reached, 12 rows: raise --max-time\n")
            && !text.contains("not_conv"),
        "{text}"
    );
}

#[test]
fn json_has_the_verdict_its_evidence_and_the_figures() {
    let mark = Mark::with_advice(MarkCode::NotConverged, "x", "y").at(Level::Caution);
    let text = rendered(&mut LinksSummary::new(LinksForm::Json), &[mark]);
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&json["conclusion"], &json["rows"]["all"]), (&"slow".into(), &12.into()), "{text}");
    assert!(json["sentences"][0]["text"].as_str().unwrap().starts_with("the link between n1 and n3 is slow"));
    let slow = &json["slow"][0];
    assert_eq!((&slow["kind"], &slow["ranks"]), (&"link".into(), &serde_json::json!([1, 3])), "{text}");
    assert_eq!(slow["hosts"], serde_json::json!(["n1", "n3"]), "{text}");
    assert!((slow["factor"].as_f64().unwrap() - 2.0).abs() < 1e-6, "{text}");
    assert_eq!((&slow["ordinary"]["count"], &slow["ordinary"]["median_us"]), (&5.into(), &1000.0.into()));
    let size = &json["sizes"][0];
    assert_eq!((&size["bytes"], &size["slowest"]["us"]), (&1_000_000.into(), &2000.0.into()), "{text}");
    assert_eq!(size["median"]["mb_per_s"], 1000.0, "{text}");
    assert_eq!(json["marks"], serde_json::json!([{"code": "not_converged", "advice": "y", "rows": 12}]));
}

#[test]
fn the_line_for_monitoring_has_status_verdict_and_figures() {
    let monitoring = || LinksSummary::new(LinksForm::Monitoring);
    let text = rendered(&mut monitoring(), &[]);
    assert!(text.starts_with("OMBX LINKS WARNING - the link between n1 and n3 is slow: "), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    let figures = text.trim_end().split_once(" | ").unwrap().1;
    assert_eq!(
        figures,
        "slow=1;;;0 missed=0;;;0 links=6;;;0 median_1000000=1000us;;;0 slowest_1000000=2000us;;;0 \
         slowest_1000000_mb_per_s=500;;;0"
    );
    let shared = rendered(&mut monitoring(), &[Mark::with_advice(MarkCode::SharedCpu, "x", "y")]);
    assert!(shared.starts_with("OMBX LINKS UNKNOWN - no verdict: ranks share CPUs"), "{shared}");
    // An incomplete sweep has no line: the error that ended it has.
    let (mut renderer, mut out) = (monitoring(), Vec::new());
    renderer.event(&mut out, &Event::Run(Cow::Borrowed(&ombx_testkit::golden().run))).unwrap();
    renderer.event(&mut out, &Event::End { outcome: RunOutcome::Broken, tally: Tally::default() }).unwrap();
    renderer.finish(&mut out).unwrap();
    assert!(out.is_empty());
}

#[test]
fn demands_and_failures_are_critical_for_monitoring() {
    let none = Verdict::incomplete("x");
    let clear = Verdict { conclusion: Conclusion::Clear, ..none.clone() };
    let missed = Verdict { conclusion: Conclusion::Slow, missed: 1, ..none.clone() };
    let [errors, unsteady] =
        [Conclusion::Errors, Conclusion::Unsteady].map(|conclusion| Verdict { conclusion, ..none.clone() });
    let failed = Tally { failed: 1, ..Tally::default() };
    let skipped = Tally { skipped: 1, ..Tally::default() };
    for (verdict, tally, expected) in [
        (&clear, Tally::default(), Status::Ok),
        (&clear, failed, Status::Critical),
        (&clear, skipped, Status::Unknown),
        (&missed, Tally::default(), Status::Critical),
        (&errors, Tally::default(), Status::Warning),
        (&unsteady, Tally::default(), Status::Warning),
        (&none, Tally::default(), Status::Unknown),
        (&none, failed, Status::Critical),
    ] {
        assert_eq!(links_status(verdict, tally), expected, "{verdict:?} {tally:?}");
    }
}

#[test]
fn csv_has_a_line_for_each_direction() {
    let text = rendered(&mut LinksCsv::default(), &[]);
    // The header, twelve rows, and the slow link of the verdict.
    assert_eq!(text.lines().count(), 14);
    assert!(
        text.lines()
            .nth(1)
            .unwrap()
            .starts_with("r,0,1,n0,n1,semidirectional,1000000,,1,,ok,passed,10,1000000,"),
        "{text}"
    );
}

#[test]
fn lines_fit_into_a_narrow_terminal() {
    let text = rendered(
        &mut Links::default().fitting(Some(60)),
        &[Mark::with_advice("x", "x", "advice").at(Level::Caution)],
    );
    let wide: Vec<&str> = text.lines().filter(|line| line.chars().count() > 60).collect();
    assert!(wide.is_empty() && text.contains("verdict:"), "{wide:#?}");
}
