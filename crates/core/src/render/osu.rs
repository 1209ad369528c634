//! The OSU format: header lines and columns that existing parsers read.

use std::io::{Result, Write};

use super::{Renderer, plain};
use crate::{
    kernel::Metric,
    registry::Osu,
    result::{Measurement, Outcome as CaseOutcome, Rate, Run, Tally},
    stats::Summary,
    wire::Outcome,
};

/// The OSU version whose columns these are.
const LIKE: &str = "v7.4";
/// The program that prints message rates beside bandwidth.
const MESSAGE_RATE: &str = "osu_mbw_mr";

/// Writes each benchmark as the OSU program would; the figure is the mean, which is what its columns say.
pub struct OsuTable {
    titles: fn(&str) -> Option<Osu>,
    version: String,
    heading: String,
}

impl OsuTable {
    /// `titles` gives the OSU program of a benchmark.
    pub fn new(titles: fn(&str) -> Option<Osu>) -> OsuTable {
        OsuTable { titles, version: String::new(), heading: String::new() }
    }

    /// Whether this is the row of a program that prints message rates.
    fn rates_messages(&self, row: &Measurement) -> bool {
        (self.titles)(&row.bench).is_some_and(|osu| osu.name == MESSAGE_RATE)
    }

    fn heading(&self, row: &Measurement) -> String {
        let mut lines = match (self.titles)(&row.bench) {
            Some(osu) => format!("# {} {LIKE} (ombx {})\n", osu.title, plain(&self.version)),
            None => format!("# {} (ombx {})\n", plain(&row.bench), plain(&self.version)),
        };
        let axis = |name: &str| row.axes.get(name).map(String::as_str);
        if let Some(window) = axis("win") {
            let call = match window {
                "create" => "MPI_Win_create",
                "dynamic" => "MPI_Win_create_dynamic",
                _ => "MPI_Win_allocate",
            };
            lines += &format!("# Window creation: {call}\n");
        }
        if let Some(sync) = axis("sync") {
            let calls = match sync {
                "pscw" => "MPI_Win_post/start/complete/wait",
                "fence" => "MPI_Win_fence",
                "lock" => "MPI_Win_lock/unlock",
                "lock_all" => "MPI_Win_lock_all/unlock_all",
                "flush_local" => "MPI_Win_flush_local",
                _ => "MPI_Win_flush",
            };
            lines += &format!("# Synchronization: {calls}\n");
        }
        if self.rates_messages(row) {
            lines += &format!("# [ pairs: {} ] [ window size: {} ]\n", row.pairs, row.depth.unwrap_or(1));
        }
        lines += "# Datatype: MPI_CHAR.\n";
        lines += match (row.metric, axis("sync")) {
            (Metric::Bandwidth, _) if self.rates_messages(row) => {
                "# Size                  MB/s        Messages/s\n"
            }
            (Metric::Bandwidth, _) => "# Size      Bandwidth (MB/s)\n",
            (Metric::Latency, Some(_)) => "# Size          Latency (us)\n",
            (Metric::Latency, None) => "# Size       Avg Latency(us)\n",
        };
        lines
    }
}

impl Renderer for OsuTable {
    fn run(&mut self, _: &mut dyn Write, run: &Run) -> Result<()> {
        self.version.clone_from(&run.version);
        Ok(())
    }

    fn case(&mut self, out: &mut dyn Write, row: &Measurement) -> Result<()> {
        let size = row.bytes.map_or_else(|| plain(&row.bench), |b| b.to_string());
        // A row without a size has no columns to head.
        if row.bytes.is_some() {
            let heading = self.heading(row);
            if heading != self.heading {
                let gap = if self.heading.is_empty() { "" } else { "\n" };
                write!(out, "{gap}{heading}")?;
                self.heading = heading;
            }
        }
        match (&row.outcome, &row.summary) {
            (CaseOutcome::Ok, Some(summary)) => {
                let mut figures = vec![headline(row, summary)];
                if self.rates_messages(row) {
                    figures.push(two_decimals(at_mean(row.messages_per_s(), summary)));
                }
                let columns: String = figures.iter().map(|figure| format!("{figure:>18}")).collect();
                writeln!(out, "{size:<10}{columns}")?;
            }
            (CaseOutcome::Ok, None) => writeln!(out, "# {size} not measured: nothing was sampled")?,
            (CaseOutcome::Skipped(why), _) => writeln!(out, "# {size} skipped: {}", plain(why))?,
            (CaseOutcome::Failed(why), _) => writeln!(out, "# {size} FAILED: {}", plain(why))?,
        }
        out.flush()
    }

    fn end(&mut self, out: &mut dyn Write, outcome: Outcome, tally: &Tally) -> Result<()> {
        if outcome != Outcome::Complete {
            writeln!(out, "# not complete: the run ended after {} rows", tally.cases)?;
        }
        out.flush()
    }
}

fn headline(row: &Measurement, summary: &Summary) -> String {
    two_decimals(match row.metric {
        Metric::Latency => Some(summary.mean / 1e3),
        Metric::Bandwidth => at_mean(row.mb_per_s(), summary),
    })
}

/// The rate at the mean time, which is all of the bytes by all of the time.
fn at_mean(rate: Option<Rate>, summary: &Summary) -> Option<f64> {
    rate.map(|rate| rate.median * summary.median / summary.mean)
}

fn two_decimals(figure: Option<f64>) -> String {
    figure.filter(|x| x.is_finite() && *x > 0.0).map_or_else(|| "n/a".into(), |x| format!("{x:.2}"))
}
