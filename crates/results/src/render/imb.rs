//! Output of the Intel MPI Benchmarks: the headers, tables and widths that parsers of IMB read.

mod columns;

use std::io::{Result, Write};

use super::{Renderer, plain};
use crate::file::RunOutcome;
use ombx_core::{
    benchmark::{ElementType, Preset, payload::Check},
    result::{Measurement, Outcome, Run, Tally},
};

pub use columns::ImbClass;

/// Version of IMB that has these columns.
const LIKE: &str = "2021.11";
/// Width of a column.
const WIDTH: usize = 13;

/// A program of IMB, and what it was asked to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImbProgram {
    /// Name, such as `IMB-MPI1`.
    pub name: &'static str,
    /// Name of its part in the first line, such as `MPI-1 part`.
    pub part: &'static str,
    /// Command line.
    pub calling: String,
    /// Smallest and largest message in bytes.
    pub sizes: [u64; 2],
    /// Element type of reductions.
    pub reduced: ElementType,
    /// Number of ranks of the job; `None` if the launcher does not publish it.
    pub ranks: Option<u32>,
    /// Benchmarks, in order.
    pub benchmarks: Vec<ImbBenchmark>,
}

/// A benchmark of IMB and its counterpart in ombx.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImbBenchmark {
    /// Name in IMB.
    pub name: &'static str,
    /// Name in ombx.
    pub bench: &'static str,
    /// Columns of its table.
    pub class: ImbClass,
    /// Mode of one-sided benchmarks, such as `NON-AGGREGATE`.
    pub mode: Option<&'static str>,
    /// Values on axes that its rows name.
    pub axes: Preset,
    /// Number of processes, if it is fixed and the benchmark of ombx takes any.
    pub ranks: Option<u32>,
}

/// Writes each benchmark like the program of IMB. Figures are means.
pub struct ImbTable {
    program: ImbProgram,
    /// Benchmark and number of ranks of the table that is open.
    open: Option<(ImbBenchmark, u32)>,
}

impl ImbTable {
    /// Creates the output of a program.
    pub fn new(program: ImbProgram) -> ImbTable {
        ImbTable { program, open: None }
    }

    /// Returns the first line of `-help` and `-list`.
    pub fn title() -> String {
        format!("Intel(R) MPI Benchmarks {LIKE}")
    }

    fn header(&self, run: &Run) -> String {
        let ImbProgram { part, calling, sizes: [least, most], reduced, benchmarks, .. } = &self.program;
        let reduced = match reduced {
            ElementType::Char => "MPI_SIGNED_CHAR",
            ElementType::Int32 => "MPI_INT",
            ElementType::Double => "MPI_DOUBLE",
            _ => "MPI_FLOAT",
        };
        let rule = format!("#{}", "-".repeat(64));
        let library = plain(run.library.lines().next().unwrap_or_default());
        let system = |name: &str| {
            let facts = run.hosts.first().map(|host| &host.facts);
            facts.and_then(|facts| facts.get(name)?.known()).map(plain).unwrap_or_default()
        };
        let mut text = format!(
            "{rule}\n#    {}, {part}\n{rule}\n# Date                  : {}\n# Machine               : {}\n\
             # System                : Linux\n# Release               : {}\n# Version               : ombx {}\n\
             # MPI Version           : {library}\n# MPI Thread Environment: \n\n\n\
             # Calling sequence was: \n\n# {} \n\n\
             # Minimum message length in bytes:   {least}\n# Maximum message length in bytes:   {most}\n#\n\
             # MPI_Datatype                   :   MPI_BYTE \n# MPI_Datatype for reductions    :   {reduced} \n\
             # MPI_Op                         :   MPI_SUM  \n# \n# \n\n# List of Benchmarks to run:\n\n",
            ImbTable::title(),
            plain(&run.started),
            std::env::consts::ARCH,
            system("kernel"),
            plain(&run.version),
            plain(calling),
        );
        let mut last = "";
        for benchmark in benchmarks.iter().filter(|b| std::mem::replace(&mut last, b.name) != b.name) {
            text += &format!("# {}\n", benchmark.name);
        }
        text
    }

    /// Returns the lines above the rows of a benchmark.
    fn heading(&self, benchmark: ImbBenchmark, ranks: u32) -> String {
        let titles = benchmark.class.titles();
        let rule = format!("#{}\n", "-".repeat(WIDTH * titles.len() - 1));
        let mut text = format!("\n{rule}# Benchmarking {} \n# #processes = {ranks} \n", benchmark.name);
        let idle = self.program.ranks.unwrap_or(ranks).saturating_sub(ranks);
        if idle > 0 {
            let processes = if idle == 1 { "process" } else { "processes" };
            text += &format!("# ( {idle} additional {processes} waiting in MPI_Barrier)\n");
        }
        text += &rule;
        if let Some(mode) = benchmark.mode {
            text += &format!("#\n#    MODE: {mode} \n#\n");
        }
        text + &line(titles)
    }
}

fn line(cells: impl IntoIterator<Item = impl std::fmt::Display>) -> String {
    let cells = cells.into_iter().map(|cell| format!("{:>WIDTH$}", cell.to_string()));
    cells.collect::<String>() + "\n"
}

impl Renderer for ImbTable {
    fn run(&mut self, out: &mut dyn Write, run: &Run) -> Result<()> {
        out.write_all(self.header(run).as_bytes())
    }

    fn case(&mut self, out: &mut dyn Write, row: &Measurement) -> Result<()> {
        let is_named = |(axis, value): &(&str, &str)| row.axes.get(*axis).is_some_and(|named| named == value);
        let matching =
            |benchmark: &&ImbBenchmark| benchmark.bench == row.bench && benchmark.axes.iter().all(is_named);
        // The default of such an axis has no name in rows.
        let found =
            self.program.benchmarks.iter().filter(matching).max_by_key(|benchmark| benchmark.axes.len());
        let found = found.copied();
        let Some(benchmark) = found else { return Ok(()) };
        let table = Some((benchmark, row.ranks));
        if self.open != table {
            out.write_all(self.heading(benchmark, row.ranks).as_bytes())?;
            self.open = table;
        }
        let size = row.bytes.map_or_else(String::new, |bytes| format!(" {bytes}"));
        let is_wrong = matches!(row.check, Check::Failed(_));
        match (&row.outcome, &row.summary) {
            (Outcome::Failed(why), _) => writeln!(out, "#{size} FAILED: {}", plain(why))?,
            (Outcome::Skipped(why), _) => writeln!(out, "#{size} skipped: {}", plain(why))?,
            (Outcome::Ok, None) => writeln!(out, "#{size} not measured: nothing was sampled")?,
            (Outcome::Ok, Some(_)) => {}
        }
        // IMB prints figures of wrong data too; a line with the failure is above them.
        if let Some(summary) = row.summary.as_ref().filter(|_| row.outcome == Outcome::Ok || is_wrong) {
            out.write_all(line(benchmark.class.cells(row, summary)).as_bytes())?;
        }
        out.flush()
    }

    fn end(&mut self, out: &mut dyn Write, outcome: RunOutcome, tally: &Tally) -> Result<()> {
        match outcome {
            RunOutcome::Complete => write!(out, "\n\n# All processes entering MPI_Finalize\n\n")?,
            _ => writeln!(out, "# not complete: the run ended after {} rows", tally.cases)?,
        }
        out.flush()
    }
}
