//! Runs of `ombx links` with a result file.

use std::{borrow::Cow, collections::BTreeSet};

use ombx_record::result::{Check, Measurement, Outcome, RunOutcome};

use crate::{Done, Job, kept::Kept};

/// Runs to success and returns the rows as (from, to, bytes), all of them verified.
///
/// # Panics
/// The run fails, or a row is wrong.
pub fn swept(options: &str) -> Vec<(u32, u32, u64)> {
    let kept = Kept::new();
    let job = Job::ombx("links --retest 0 --fail-on nothing").args(options.split_whitespace());
    let done = job.arg("-o").arg(kept.out()).run().expect(0);
    let run = kept.run();
    let (outcome, tally) = run.end.expect("an end record");
    let rows: Vec<Measurement> = run.each_row().map(Cow::into_owned).collect();
    assert_eq!((outcome, tally.cases as usize), (RunOutcome::Complete, rows.len()), "{done}");
    let keys: BTreeSet<&str> = rows.iter().map(|row| row.key.as_str()).collect();
    assert_eq!(keys.len(), rows.len(), "keys are unique\n{done}");
    let of = |row: &Measurement| {
        assert!(row.outcome == Outcome::Ok && row.check == Check::Passed, "{}\n{done}", row.key);
        assert_eq!((row.bench.as_str(), row.ranks), ("links", 2));
        let rank = |axis: &str| row.axes[axis].parse().unwrap();
        (rank("from"), rank("to"), row.bytes.unwrap())
    };
    rows.iter().map(of).collect()
}

/// Maximum number of sweeps until the ranks of one do not wait for a CPU.
const MOST_SWEEPS: usize = 30;

/// Runs a sweep over links until its ranks did not wait for a CPU, which other programs decide. Such rows miss no demand.
pub fn undisturbed(job: impl Fn() -> Job) -> Done {
    let waited = |done: &Done| (done.stdout.clone() + &done.stderr).contains("ranks waited for a CPU");
    (1..MOST_SWEEPS).map(|_| job().run()).find(|done| !waited(done)).unwrap_or_else(|| job().run())
}
