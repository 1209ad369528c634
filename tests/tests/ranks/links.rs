//! Tests of `ombx links`, which measures every pair of ranks.

use std::collections::BTreeSet;

use ombx_core::{benchmark::payload::Check, result::Outcome};
use ombx_results::file;
use ombx_tests::{Job, results};

use crate::Kept;

const SHORT: &str = "--iterations 20 --batch 1 --retest 0";

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
    let done = job.run().expect(0);
    for words in ["links, 8 bytes, semidirectional", "slowest of their kind", "bisection", "verdict"] {
        assert!(done.stdout.contains(words), "{words}\n{done}");
    }
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
