//! The answer of a comparison and its Markdown, for cases with known factors.

use std::collections::{BTreeMap, BTreeSet};

use ombx_compare::{Change, OutlyingTurn, Power, StateOfSides, Unit};
use ombx_record::result::Metric;

use crate::compare::*;

/// Returns a case of this size whose time changed to this factor, with an interval of 5 % around it.
fn case(bench: &str, bytes: u64, factor: f64, verdict: Verdict) -> CaseComparison {
    let level = |median: f64| UnitMedians { median, values: vec![median; 6], marks: BTreeSet::new() };
    CaseComparison {
        id: CaseId {
            bench: bench.into(),
            key: format!("{bench}/bytes={bytes}"),
            metric: Metric::Latency,
            unit: "us",
            bytes: Some(bytes),
            depth: None,
            pairs: 1,
            axes: BTreeMap::new(),
        },
        base: level(1.0),
        new: level(factor),
        change: Change { estimate: factor - 1.0, ci90: Some([factor / 1.05 - 1.0, factor * 1.05 - 1.0]) },
        p_adjusted: Some(0.01),
        p_beyond: Some(0.01),
        is_not_slower: verdict == Verdict::Same,
        power: None,
        verdict,
        outlying_turn: None,
        instructions: None,
    }
}

fn comparison(cases: Vec<CaseComparison>) -> Comparison {
    let side = |label: &str| SideInfo {
        label: label.into(),
        name: format!("{label}.jsonl"),
        runs: vec!["r".into()],
        launches: 36,
        commands: 6,
        libraries: BTreeSet::from(["MPI".into()]),
    };
    Comparison {
        base: side("A"),
        new: side("B"),
        margin: 0.05,
        unit: Unit::Run,
        state: StateOfSides { core_to_core_ns: Some(51.4), units: [6, 6], of: [6, 6] },
        cases,
        unmatched: Vec::new(),
        broken: Vec::new(),
        notes: Vec::new(),
    }
}

/// Returns an undecided case whose instructions changed to this factor.
fn by_instructions(bytes: u64, factor: f64, verdict: Verdict) -> CaseComparison {
    let counted = case("p2p.latency", bytes, factor, verdict);
    let open = case("p2p.latency", bytes, 1.0, Verdict::Undecided(Reason::Scatter));
    CaseComparison { instructions: Some(Box::new(counted)), ..open }
}

#[test]
fn instructions_decide_where_times_do_not() {
    let comparison = comparison(vec![
        same(8),
        by_instructions(64, 1.01, Verdict::Worse),
        by_instructions(512, 1.0, Verdict::Same),
    ]);
    let text = sentence(&comparison);
    assert!(
        text.contains(
            "by instructions: B has 1.0% more than A for 64 bytes, the same within 0.5% in 1 of 3 cases"
        ),
        "{text}"
    );
    let mut out = Vec::new();
    table(&mut out, &comparison, Paint::Plain, None).unwrap();
    let table = String::from_utf8(out).unwrap();
    assert!(table.contains("more instructions") && table.contains("same instructions"), "{table}");
    let json = comparison_json(&comparison);
    let decided = |case: usize| json["cases"][case]["decided_by"].as_str().map(str::to_owned);
    assert_eq!([decided(0).as_deref(), decided(1).as_deref()], [Some("time"), Some("instructions")]);
    assert_eq!(json["cases"][1]["verdict"], "undecided");
}

fn same(bytes: u64) -> CaseComparison {
    case("p2p.latency", bytes, 1.0, Verdict::Same)
}

#[test]
fn one_case_has_its_factor_and_interval() {
    let mut cases = vec![case("p2p.latency", 8, 1.0 / 1.08, Verdict::Better)];
    cases.extend((0..21).map(|at| same(16 << at)));
    cases.push(case("p2p.latency", 64, 1.1, Verdict::Undecided(Reason::Scatter)));
    assert_eq!(
        sentence(&comparison(cases)),
        "B is 1.08 times faster than A (1.03 to 1.13) for 8 bytes; same within 5% in 21 of 23 cases; \
         undecided in 1 of 23 cases: about 4 runs a side could decide it; all with cores 51 ns apart"
    );
    let slower = comparison(vec![case("p2p.latency", 8, 2.0, Verdict::Worse)]);
    assert_eq!(
        sentence(&slower),
        "B is 2.00 times slower than A (1.90 to 2.10) for 8 bytes; all with cores 51 ns apart"
    );
}

#[test]
fn several_cases_have_the_range_of_factors_and_the_largest_one() {
    let cases = vec![
        case("p2p.bw", 64, 2.0, Verdict::Worse),
        case("p2p.latency", 8, 1.5, Verdict::Worse),
        case("p2p.latency", 64, 0.1, Verdict::Better),
        same(128),
    ];
    assert_eq!(
        sentence(&comparison(cases)),
        "B is 1.50 to 2.00 times slower than A in 2 of 4 cases, most for 64 bytes of p2p.bw (1.90 to 2.10); \
         it is 10.0 times faster than A (9.52 to 10.5) for 64 bytes of p2p.latency; same within 5% in 1 of 4 cases; \
         all with cores 51 ns apart"
    );
}

#[test]
fn sides_that_do_not_differ_are_the_same() {
    assert_eq!(
        sentence(&comparison(vec![same(8), same(16)])),
        "B and A are the same within 5% in both cases; all with cores 51 ns apart"
    );
    let mut broken = comparison(vec![same(8)]);
    broken.broken.push(("p2p.bw/bytes=8".into(), "MPI_ERR".into()));
    assert_eq!(
        sentence(&broken),
        "1 case failed only in B; B and A are the same within 5% in the only case; \
         all with cores 51 ns apart"
    );
}

#[test]
fn a_turn_that_prevents_verdicts_is_named() {
    let undecided = Verdict::Undecided(Reason::Scatter);
    let mut found = comparison(vec![
        case("p2p.latency", 8, 1.0, undecided.clone()),
        case("p2p.latency", 64, 1.0, undecided),
    ]);
    found.cases[0].outlying_turn = Some(OutlyingTurn { number: 7, slower: 0.5 });
    found.cases[1].outlying_turn = Some(OutlyingTurn { number: 7, slower: 0.25 });
    let text = summary(&found);
    let [base, new] = [&found.base.label, &found.new.label];
    let expected = format!(
        "turn 7, in which {base} took up to 4.00 times as long as {new}, alone keeps 2 cases from a verdict"
    );
    assert!(text.contains(&expected), "{text}");
}

#[test]
fn markdown_has_the_answer_and_a_line_for_each_case() {
    let mut comparison = comparison(vec![case("p2p.latency", 8, 2.0, Verdict::Worse), same(16)]);
    comparison.base.name = "a|b_c.jsonl".into();
    comparison.notes.push(Note { code: "library", text: "library: base x, new y".into() });
    let text = markdown(&comparison);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[0],
        "**B is 2.00 times slower than A (1.90 to 2.10) for 8 bytes; same within 5% in 1 of 2 cases; \
         all with cores 51 ns apart.**"
    );
    assert_eq!(lines[2], "- A: a\\|b\\_c.jsonl · 6 runs, 36 launches · MPI");
    assert_eq!(lines[5], "| case | bytes | A | B | unit | time | 90% interval | verdict |");
    assert_eq!(lines[7], "| p2p.latency | 8 | 1.000 | 2.000 | us | +100.0% | +90.5% .. +110.0% | worse |");
    assert_eq!(lines[10], "- library: base x, new y");
    assert!([5, 7, 8].iter().all(|at| lines[*at].matches(" | ").count() == 7), "{text}");
    assert!(text.ends_with("new y\n"));
}

#[test]
fn a_table_fits_into_a_narrow_terminal() {
    let mut comparison = comparison(vec![case("p2p.latency", 8, 2.0, Verdict::Worse), same(16)]);
    comparison.notes.push(Note { code: "x", text: "a note of many words ".repeat(9) });
    comparison.cases[0].power = Some(Power { detectable: 0.1, units_to_decide: None });
    let written = |columns| {
        let mut out = Vec::new();
        table(&mut out, &comparison, Paint::Plain, columns).unwrap();
        String::from_utf8(out).unwrap()
    };
    let narrow = written(Some(60));
    assert!(narrow.lines().all(|line| line.chars().count() <= 60), "{narrow}");
    assert!(narrow.contains("60 columns are too few for: finds"), "{narrow}");
    assert!(
        written(Some(80)).contains(" finds ") && written(None).contains("words a note of many words a note")
    );
}

#[test]
fn hosts_of_a_large_sweep_have_one_table() {
    let of_host = |host: &str, factor: f64| {
        let mut case = case("links", 8, factor, Verdict::Same);
        case.id.axes =
            [("ends", "between"), ("host", host)].map(|(k, v)| (k.to_owned(), v.to_owned())).into();
        case
    };
    let mut text = Vec::new();
    let all = comparison(vec![of_host("n01", 1.0), of_host("n02", 1.01)]);
    table(&mut text, &all, Paint::Plain, Some(100)).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert_eq!(text.matches("links · ends=between\n").count(), 1, "{text}");
    for start in ["host  bytes", " n01      8", " n02      8"] {
        assert!(text.contains(start), "{start}: {text}");
    }
}
