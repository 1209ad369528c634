//! Lines of the log, and the table of all commands.

use std::fmt;

use ombx_core::stats::median;
use ombx_toolchain::{mpi::Flavour, table};

use super::{Invocation, Job, Series, Verdict};
use crate::document::with_interval;

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} --sizes {}", self.bench, self.size)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Verdict::Met => "met",
            Verdict::Low => "below the goal",
            Verdict::TooLow => "TOO LOW",
        })
    }
}

/// Returns an invocation with all its launches, separated by tabs.
pub(super) fn line(flavour: Flavour, job: Job, invocation: &Invocation) -> String {
    let Invocation { seconds, launches, headline, interval: [low, high], range: _ } = invocation;
    let launches: Vec<String> = launches.iter().map(|launch| format!("{launch:.4}")).collect();
    let launches = launches.join(" ");
    format!("{flavour}\t{job}\t{seconds:.2} s\t{headline:.4}\t{low:.4} .. {high:.4}\t{launches}")
}

/// Returns a line for each command.
pub(super) fn table(all: &[Series]) -> String {
    let head = "MPI | ombx run | interval covers, % | range confirmed, % | half width, % | goal";
    let line = |series: &Series| {
        let middle = |figure: fn(&Invocation) -> f64| median(&series.all(figure)).unwrap_or(f64::NAN);
        let share = |[hits, of]: [u64; 2]| with_interval(hits, of);
        let [covered, confirmed] = [series.covered(), series.confirmed()];
        vec![
            series.flavour.to_string(),
            format!("`{}`", series.job),
            share(covered),
            share(confirmed),
            format!("{:.1}", middle(|one| (one.interval[1] - one.interval[0]) / 2.0 / one.headline) * 100.0),
            series.verdict().to_string(),
        ]
    };
    table::table(head, all.iter().map(line).collect())
}
