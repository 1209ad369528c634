//! Expectations and references.

use ombx_record::{
    result::{Measurement, Work},
    stats::Summary,
    verdict::Conclusion,
};

use crate::verdict::criteria::*;

/// Builds the rows of hosts with one rank each: 8 bytes and 1 MB, with these times.
fn rows(hosts: u32, ns: impl Fn(u32, u32) -> f64) -> Vec<Measurement> {
    let golden = ombx_testkit::golden();
    let ends = (0..hosts).flat_map(|a| (0..hosts).map(move |b| (a, b))).filter(|(a, b)| a != b);
    let row = |(from, to): (u32, u32), bytes: u64| {
        let axes =
            [("pattern", "semidirectional".into()), ("from", from.to_string()), ("to", to.to_string())];
        Measurement {
            bench: ombx_record::link::BENCH.into(),
            bytes: Some(bytes),
            axes: axes.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            work: Some(Work { bytes: 2 * bytes, ops: 2, legs: 2 }),
            summary: Summary::new(&[ns(from.min(to), from.max(to)) * (1.0 + bytes as f64 / 1e4); 10]),
            trust: vec![],
            ..golden.rows[0].clone()
        }
    };
    ends.flat_map(|ends| [row(ends, 8), row(ends, 1_000_000)]).collect()
}

fn run(hosts: u32, ns: impl Fn(u32, u32) -> f64) -> RunWithRows {
    let golden = ombx_testkit::golden();
    let place =
        |at: u32| ombx_record::result::Place { host: format!("h{at}"), ..golden.run.places[0].clone() };
    let run = ombx_record::result::Run { places: (0..hosts).map(place).collect(), ..golden.run.clone() };
    RunWithRows {
        rows: rows(hosts, ns),
        end: Some((RunOutcome::Complete, Default::default())),
        ..RunWithRows::new(run)
    }
}

/// Judges a run under expectations, and against a reference.
fn judged(now: &RunWithRows, expect: &[&str], reference: Option<&RunWithRows>) -> (Conclusion, String) {
    let mut plan = BTreeMap::new();
    let expectations = expect.iter().map(|text| text.parse().unwrap()).collect();
    Criteria { expectations, ..Criteria::default() }.describe(&mut plan);
    let mut sweep = LinkSweep::of_run(&ombx_record::result::Run { plan, ..now.run.clone() });
    now.rows.iter().for_each(|row| sweep.add(row));
    let sizes = [Bytes(8), Bytes(1_000_000)];
    let of = |run: &RunWithRows| {
        let choices = [("pattern", Some("semidirectional")), ("transport", None)];
        Reference::from_runs("old.jsonl", std::slice::from_ref(run), &choices, &sizes).unwrap()
    };
    let verdict = sweep.against(reference.map(|run| Arc::new(of(run))));
    let verdict = verdict.verdict();
    for sentence in verdict.sentences.iter().filter(|sentence| sentence.text.contains(": missed by ")) {
        let number = format!(": missed by {} of ", sentence.about.len());
        assert!(sentence.text.contains(&number), "all links that miss it are named: {sentence:?}");
    }
    let text: Vec<String> = verdict.lines();
    (verdict.conclusion, text.join("\n"))
}

#[test]
fn expectations_are_figures_with_units() {
    let limit = |text: &str| text.parse::<Expectation>().map(|expectation| expectation.limit);
    assert_eq!(limit("latency<2us"), Ok(Limit::Latency(2e3)));
    assert_eq!(limit("latency < 1.5 ms"), Ok(Limit::Latency(1.5e6)));
    assert_eq!(limit("latency<800ns"), Ok(Limit::Latency(800.0)));
    assert_eq!(limit("bw>11GB/s"), Ok(Limit::Bandwidth(11e3)));
    assert_eq!(limit("bw>900MB/s"), Ok(Limit::Bandwidth(900.0)));
    for wrong in [
        "",
        "latency",
        "latency>2us",
        "bw<1GB/s",
        "latency<2",
        "latency<2GB/s",
        "bw>2us",
        "latency<-1us",
        "latency<0us",
    ] {
        assert!(limit(wrong).unwrap_err().contains("latency<2us"), "{wrong}");
    }
}

#[test]
fn expectations_judge_links_that_are_slow_everywhere() {
    // Two hosts have nothing to be compared with; an expectation needs no comparison.
    let two = run(2, |_, _| 3000.0);
    let (conclusion, text) = judged(&two, &["latency<2us"], None);
    assert_eq!(conclusion, Conclusion::Slow, "{text}");
    assert!(text.contains("latency<2us: missed by 1 of 1 link at 8 bytes: h0-h1 has 3.00"), "{text}");
    // 1 MB in 303 us.
    let (conclusion, text) = judged(&two, &["latency<4us", "bw>3GB/s"], None);
    assert_eq!(conclusion, Conclusion::Clear, "{text}");
    assert!(!text.contains("no verdict"), "{text}");
    let (conclusion, text) = judged(&two, &["latency<4us", "bw>3.5GB/s"], None);
    assert_eq!(conclusion, Conclusion::Slow, "{text}");
    assert!(text.contains("bw>3.5GB/s: missed"), "{text}");
}

#[test]
fn a_reference_judges_each_link_and_all_links() {
    let before = run(3, |_, _| 1000.0);
    let (conclusion, text) = judged(&run(3, |_, _| 1100.0), &[], Some(&before));
    assert_eq!(conclusion, Conclusion::Clear, "{text}");
    let (conclusion, text) = judged(&run(3, |_, _| 2000.0), &[], Some(&before));
    assert_eq!(conclusion, Conclusion::Slow, "{text}");
    assert!(text.contains("2.00 times as long (median of 3 links"), "{text}");
    let one = run(3, |a, b| if (a, b) == (0, 2) { 1600.0 } else { 1000.0 });
    let (conclusion, text) = judged(&one, &[], Some(&before));
    assert_eq!(conclusion, Conclusion::Slow, "{text}");
    assert!(text.contains("1 of 3 links are slower than in old.jsonl"), "{text}");
    assert!(text.contains("h0-h2 takes 1.60 times as long"), "{text}");
    // A host that the reference does not know cannot be cleared by it.
    let (conclusion, text) = judged(&run(3, |_, _| 1000.0), &[], Some(&run(2, |_, _| 1000.0)));
    assert_eq!(conclusion, Conclusion::None, "{text}");
}

#[test]
fn a_second_measurement_clears_a_link() {
    let mut now = run(2, |_, _| 3000.0);
    let mut again = now.rows[0].clone();
    again.axes.insert(ombx_record::link::RETEST.into(), ombx_record::link::ALONE.into());
    again.summary = Summary::new(&[1000.0; 10]);
    now.rows.push(again);
    assert_eq!(judged(&now, &["latency<2us"], None).0, Conclusion::Clear);
}

#[test]
fn a_file_that_cannot_be_the_reference_is_refused() {
    let run = run(2, |_, _| 1000.0);
    let of = |pattern, transport, bytes| {
        let choices = [("pattern", Some(pattern)), ("transport", transport), ("memory", None)];
        Reference::from_runs("f", std::slice::from_ref(&run), &choices, &[Bytes(bytes)]).map(|_| ())
    };
    assert_eq!(of("semidirectional", None, 8), Ok(()));
    assert!(of("unidirectional", None, 8).unwrap_err().contains("--pattern semidirectional"));
    assert!(of("semidirectional", Some("tcp"), 8).unwrap_err().contains("--fabric mpi"));
    assert!(of("semidirectional", None, 64).unwrap_err().contains("64 bytes"));
    let on_device = [("pattern", Some("semidirectional")), ("memory", Some("cuda"))];
    let refusal = Reference::from_runs("f", std::slice::from_ref(&run), &on_device, &[Bytes(8)]).unwrap_err();
    assert!(refusal.contains("--pattern semidirectional. Give"), "{refusal}");
    assert!(Reference::from_runs("f", &[], &[], &[]).unwrap_err().contains("no complete run"));
}

#[test]
fn the_verdict_names_hosts_that_are_left_out() {
    let mut now = run(5, |_, _| 1000.0);
    let left_out = ["n07", "n08"].map(str::to_owned).to_vec();
    Criteria { left_out, ..Criteria::default() }.describe(&mut now.run.plan);
    let mut sweep = LinkSweep::of_run(&now.run);
    now.rows.iter().for_each(|row| sweep.add(row));
    let text = &sweep.verdict().sentences[0].text;
    assert!(text.ends_with("; without n[07-08], which could not be reached"), "{text}");
}
