//! Tests of `ombx links`, which measures every pair of ranks.

use std::collections::BTreeSet;

use ombx_core::{benchmark::payload::Check, result::Outcome};
use ombx_results::file;
use ombx_tests::{Job, results};

use crate::Kept;

const SHORT: &str = "--iterations 20 --batch 1 --retest 0 --fail-on nothing";

/// Runs to success and returns the rows as (from, to, bytes), all of them verified.
fn swept(options: &str) -> Vec<(u32, u32, u64)> {
    let kept = Kept::new();
    let job = Job::ombx("links").args(options.split_whitespace()).arg("-o").arg(kept.out());
    let done = job.run().expect(0);
    let run = results::run_of(&kept.out());
    let (outcome, tally) = run.end.expect("an end record");
    assert_eq!((outcome, tally.cases as usize), (file::RunOutcome::Complete, run.rows.len()), "{done}");
    let keys: BTreeSet<&str> = run.rows.iter().map(|row| row.key.as_str()).collect();
    assert_eq!(keys.len(), run.rows.len(), "keys are unique\n{done}");
    let of = |row: &ombx_core::result::Measurement| {
        assert!(row.outcome == Outcome::Ok && row.check == Check::Passed, "{}\n{done}", row.key);
        assert_eq!((row.bench.as_str(), row.ranks), ("links", 2));
        let rank = |axis: &str| row.axes[axis].parse().unwrap();
        assert_eq!(row.samples[0].rank, rank("from"), "{}", row.key);
        (rank("from"), rank("to"), row.bytes.unwrap())
    };
    run.rows.iter().map(of).collect()
}

#[test]
fn every_ordered_pair_is_measured_once_at_each_size() {
    for ranks in 2..=5 {
        let rows = swept(&format!("-n {ranks} --sizes 8,4K {SHORT}"));
        assert_eq!(rows.len() as u32, ranks * (ranks - 1) * 2, "{ranks} ranks");
        assert_eq!(rows.iter().collect::<BTreeSet<_>>().len(), rows.len(), "{ranks} ranks");
    }
}

#[test]
fn each_pattern_and_order_works() {
    for options in
        ["--pattern bidirectional", "--pattern unidirectional --window 4", "--serial", "--randomize 7"]
    {
        assert_eq!(swept(&format!("-n 3 --sizes 64 {options} {SHORT}")).len(), 6, "{options}");
    }
    let rows = swept(&format!("-n 5 --bisection --sizes 8 {SHORT}"));
    assert_eq!(
        rows.iter().copied().collect::<BTreeSet<_>>(),
        [(0, 2, 8), (2, 0, 8), (1, 3, 8), (3, 1, 8)].into()
    );
}

#[test]
fn the_slowest_links_are_measured_again() {
    let kept = Kept::new();
    let job = Job::ombx("links -n 2 --sizes 8 --max-time 5ms --retest 1 -o").arg(kept.out());
    // Two ranks have one link, about which nothing can be said.
    let done = job.run().expect(10);
    for words in
        ["links, 8 bytes, semidirectional", "slowest of their kind", "\n1 pair: min", "\nno verdict: "]
    {
        assert!(done.stdout.contains(words), "{words}\n{done}");
    }
    assert!(!done.stdout.contains("bisection"), "all pairs are no bisection\n{done}");
    assert!(done.stdout.find("no verdict") < done.stdout.find("links, 8"), "the verdict comes first\n{done}");
    let again = results::run_of(&kept.out()).rows.into_iter().filter(|row| row.axes.contains_key("retest"));
    assert!(again.count() >= 1, "{done}");
    let shown = Job::ombx("show").arg(kept.out()).run().expect(0);
    assert_eq!(shown.stdout, done.stdout);
    let csv = Job::ombx("show --format csv").arg(kept.out()).run().expect(0);
    assert!(csv.stdout.starts_with("run,from,to,from_host,to_host,"), "{csv}");
}

#[test]
fn links_run_under_an_explicit_launcher() {
    let done = Job::mpiexec(3, &format!("links --sizes 8 --format csv {SHORT}")).run().expect(0);
    assert_eq!(done.stdout.lines().count(), 1 + 6, "{done}");
}

#[test]
fn a_bisection_is_called_one() {
    let done = Job::ombx(&format!("links -n 4 --bisection --sizes 64 {SHORT}")).run().expect(0);
    assert!(done.stdout.contains("\nbisection, 2 pairs at the same time: min"), "{done}");
}

/// Two ranks fit on two CPUs, so that expectations and a reference are judged.
#[test]
fn expectations_and_a_reference_decide_the_exit_code() {
    let kept = Kept::new();
    let job = |options: &str| Job::ombx(&format!("links -n 2 --max-time 5ms {options}"));
    let done = job("--sizes 8,64K --expect latency<10ms --expect bw>1MB/s -o").arg(kept.out()).run();
    if done.stdout.contains("ranks share CPUs") {
        done.expect(10);
        return;
    }
    let done = done.expect(0);
    assert!(done.stdout.contains("verdict: latency<10ms: met by 1 link at 8 bytes"), "{done}");
    assert!(done.stdout.contains("verdict: bw>1MB/s: met by 1 link at 64K bytes"), "{done}");
    let shown = Job::ombx("show").arg(kept.out()).run().expect(0);
    assert_eq!(shown.stdout, done.stdout, "the file keeps the expectations");
    let done = job("--format csv --expect latency<1ns").run().expect(9);
    assert!(done.stderr.contains("ombx: verdict: latency<1ns: missed by 1 of 1 link"), "{done}");
    job("--expect latency<1ns --fail-on nothing").run().expect(0);
    // A reference that is a thousand times faster than any link.
    let slow = |line: &str| {
        let mut record: serde_json::Value = serde_json::from_str(line).unwrap();
        if let Some(summary) = record.get_mut("summary").and_then(|summary| summary.as_object_mut()) {
            summary.remove("ci95_ns");
            for figure in ["median_ns", "min_ns"] {
                summary.insert(figure.into(), 1e-3.into());
            }
        }
        format!("{record}\n")
    };
    let text = std::fs::read_to_string(kept.out()).unwrap();
    let faster = kept.out().with_extension("faster");
    std::fs::write(&faster, text.lines().map(slow).collect::<String>()).unwrap();
    let done = job("--sizes 8,64K --reference").arg(&faster).run().expect(9);
    assert!(done.stdout.contains("links are slower than in "), "{done}");
    let done = job("--sizes 16 --reference").arg(&faster).run().expect(2);
    assert!(done.stderr.contains("no links at 16 bytes"), "{done}");
    job("--sizes 8,64K --pattern bidirectional --reference").arg(&faster).run().expect(2);
}
