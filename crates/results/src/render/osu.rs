//! The OSU format: header lines and columns that existing parsers read.

mod columns;

use std::io::{Result, Write};

use super::{Renderer, plain};
use crate::file::RunOutcome;
use ombx_core::{
    benchmark::{payload::Check, preset::Osu},
    result::{Measurement, Outcome, Run, Tally},
};

use columns::Column;

/// The OSU version whose columns these are.
const LIKE: &str = "v7.4";
/// The program that prints message rates beside bandwidth.
const MESSAGE_RATE: &str = "osu_mbw_mr";
/// Programs that say how many threads or processes there are.
const THREADS: &str = "osu_latency_mt";
const PROCESSES: &str = "osu_latency_mp";
/// The program that does not name its data type.
const NO_DATATYPE: &str = "osu_get_acc_latency";
/// Programs of this operation move no data: neither size nor data type.
const NO_SIZE: &str = "barrier";

/// What the options of an OSU program add to its columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OsuColumns {
    /// The program that was asked for, where a benchmark has several.
    pub program: Option<Osu>,
    /// `-f`: minimum, maximum and iterations too.
    pub full: bool,
    /// `-c`: whether data arrived right.
    pub validation: bool,
    /// `-z`: percentiles of single iterations.
    pub percentiles: Vec<u8>,
    /// `-R 1`: message rates, where the program has them.
    pub rate: bool,
}

impl Default for OsuColumns {
    fn default() -> OsuColumns {
        OsuColumns { program: None, full: false, validation: false, percentiles: Vec::new(), rate: true }
    }
}

/// Writes each benchmark as the OSU program would; the figure is the mean, which is what its columns say.
pub struct OsuTable {
    titles: fn(&str) -> Option<Osu>,
    columns: OsuColumns,
    version: String,
    heading: String,
}

impl OsuTable {
    /// `titles` gives the OSU program of a benchmark.
    pub fn new(titles: fn(&str) -> Option<Osu>) -> OsuTable {
        OsuTable::with(titles, OsuColumns::default())
    }

    /// The same with the columns that options ask for.
    pub fn with(titles: fn(&str) -> Option<Osu>, columns: OsuColumns) -> OsuTable {
        OsuTable { titles, columns, version: String::new(), heading: String::new() }
    }

    /// The first line of an OSU program: its title, the version that it looks like, and who it is.
    pub fn title(osu: &Osu, version: &str) -> String {
        format!("# {} {LIKE} (ombx {})\n", osu.title, plain(version))
    }

    fn program(&self, row: &Measurement) -> Option<Osu> {
        self.columns.program.or_else(|| (self.titles)(&row.bench))
    }

    fn heading(&self, row: &Measurement, columns: &[Column]) -> String {
        let osu = self.program(row);
        let name = osu.map_or("", |osu| osu.name);
        let mut lines = match name {
            THREADS => {
                let threads = row.axes.get("threads").map_or("1:1", String::as_str);
                let (senders, receivers) = threads.split_once(':').unwrap_or((threads, threads));
                format!(
                    "# Number of Sender threads: {} \n# Number of Receiver threads: {}\n",
                    plain(senders),
                    plain(receivers)
                )
            }
            PROCESSES => {
                "# Number of forked processes in sender: 1\n# Number of forked processes in receiver: 1\n"
                    .into()
            }
            _ => String::new(),
        };
        lines += &match &osu {
            Some(osu) => OsuTable::title(osu, &self.version),
            None => format!("# {} (ombx {})\n", plain(&row.bench), plain(&self.version)),
        };
        lines += &one_sided(row);
        if columns::overlaps(row) {
            lines += "# Overall = Coll. Init + Compute + MPI_Test + MPI_Wait\n";
        }
        if name == MESSAGE_RATE {
            lines += &format!("# [ pairs: {} ] [ window size: {} ]\n", row.pairs, row.depth.unwrap_or(1));
        }
        if name != NO_DATATYPE && !name.contains(NO_SIZE) {
            lines += "# Datatype: MPI_CHAR.\n";
        }
        let size = if name.contains(NO_SIZE) { None } else { Some("# Size") };
        lines + &line(size, columns, |column| (&column.title, column.width))
    }
}

/// What the header of a one-sided program says beside its title.
fn one_sided(row: &Measurement) -> String {
    let axis = |name: &str| row.axes.get(name).map(String::as_str);
    let mut lines = String::new();
    if let Some(window) = axis("win") {
        let call = match window {
            "create" => "MPI_Win_create",
            "dynamic" => "MPI_Win_create_dynamic",
            "shared" => "MPI_Win_allocate_shared",
            _ => "MPI_Win_allocate",
        };
        lines += &format!("# Window creation: {call}\n");
    }
    if let Some(sync) = axis("sync") {
        let calls = match sync {
            "pscw" => "MPI_Win_post/start/complete/wait",
            "fence" => "MPI_Win_fence",
            "lock" | "lock_exclusive" => "MPI_Win_lock/unlock",
            "lock_all" => "MPI_Win_lock_all/unlock_all",
            "flush_local" => "MPI_Win_flush_local",
            _ => "MPI_Win_flush",
        };
        lines += &format!("# Synchronization: {calls}\n");
    }
    lines
}

/// A line of columns: the size on the left where there is one, else the first column is as wide as its title.
fn line(size: Option<&str>, columns: &[Column], cell: impl Fn(&Column) -> (&String, usize)) -> String {
    let mut text = size.map(|size| format!("{size:<10}")).unwrap_or_default();
    for (at, column) in columns.iter().enumerate() {
        let (cell, width) = cell(column);
        if at == 0 && size.is_none() {
            let title = format!("# {}", column.title);
            text += &format!("{:>1$}", if *cell == column.title { &title } else { cell }, title.len());
        } else {
            text += &format!("{cell:>width$}");
        }
    }
    text + "\n"
}

impl Renderer for OsuTable {
    fn run(&mut self, _: &mut dyn Write, run: &Run) -> Result<()> {
        self.version.clone_from(&run.version);
        Ok(())
    }

    fn case(&mut self, out: &mut dyn Write, row: &Measurement) -> Result<()> {
        let name = self.program(row).map_or("", |osu| osu.name);
        let columns = columns::of(row, name, &self.columns);
        let size = row.bytes.map_or_else(|| plain(&row.bench), |b| b.to_string());
        // A row without a size has no columns to head.
        if row.bytes.is_some() {
            let heading = self.heading(row, &columns);
            if heading != self.heading {
                let gap = if self.heading.is_empty() { "" } else { "\n" };
                write!(out, "{gap}{heading}")?;
                self.heading = heading;
            }
        }
        // OMB prints the figure of wrong data: so does its drop-in, after a line that says so.
        let asked = self.columns.validation || self.columns.program.is_some();
        let told = asked && matches!(row.check, Check::Failed(_));
        match (&row.outcome, &row.summary) {
            (Outcome::Failed(why), _) => writeln!(out, "# {size} FAILED: {}", plain(why))?,
            (Outcome::Skipped(why), _) => writeln!(out, "# {size} skipped: {}", plain(why))?,
            (Outcome::Ok, None) => writeln!(out, "# {size} not measured: nothing was sampled")?,
            (Outcome::Ok, Some(_)) => {}
        }
        if row.summary.is_some() && (row.outcome == Outcome::Ok || told) {
            let size = Some(size.as_str()).filter(|_| !name.contains(NO_SIZE));
            write!(out, "{}", line(size, &columns, |column| (&column.text, column.figure)))?;
        }
        out.flush()
    }

    fn end(&mut self, out: &mut dyn Write, outcome: RunOutcome, tally: &Tally) -> Result<()> {
        if outcome != RunOutcome::Complete {
            writeln!(out, "# not complete: the run ended after {} rows", tally.cases)?;
        }
        out.flush()
    }
}
