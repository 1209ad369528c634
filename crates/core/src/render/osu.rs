//! The OSU format: header lines and columns that existing parsers read.

use std::io::{Result, Write};

use super::Renderer;
use crate::{
    kernel::Metric,
    registry::Osu,
    result::{Measurement, Outcome as CaseOutcome, Run, Tally},
    wire::Outcome,
};

/// The OSU version whose columns these are.
const LIKE: &str = "v7.4";

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

    fn heading(&self, row: &Measurement) -> String {
        let title =
            (self.titles)(&row.bench).map_or_else(|| format!("ombx {}", row.bench), |osu| osu.title.into());
        let mut lines = format!("# {title} {LIKE} (ombx {})\n", self.version);
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
        lines += "# Datatype: MPI_CHAR.\n";
        lines += match (row.metric, axis("sync")) {
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
        let heading = self.heading(row);
        if heading != self.heading {
            let gap = if self.heading.is_empty() { "" } else { "\n" };
            write!(out, "{gap}{heading}")?;
            self.heading = heading;
        }
        match (&row.outcome, &row.summary, row.bytes) {
            (CaseOutcome::Ok, Some(summary), Some(bytes)) => {
                let figure = match (row.metric, row.work) {
                    (Metric::Bandwidth, Some(work)) if summary.mean > 0.0 => {
                        format!("{:.2}", work.bytes as f64 / (summary.mean * work.legs as f64) * 1e3)
                    }
                    (Metric::Latency, _) => format!("{:.2}", summary.mean / 1e3),
                    _ => "n/a".into(),
                };
                writeln!(out, "{bytes:<10}{figure:>18}")?;
            }
            (CaseOutcome::Skipped(why) | CaseOutcome::Failed(why), _, bytes) => {
                writeln!(
                    out,
                    "# {} not measured: {why}",
                    bytes.map_or(row.bench.clone(), |b| b.to_string())
                )?;
            }
            _ => {}
        }
        out.flush()
    }

    fn end(&mut self, out: &mut dyn Write, _: Outcome, _: &Tally) -> Result<()> {
        out.flush()
    }
}
