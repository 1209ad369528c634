//! Output of the Intel MPI Benchmarks: the headers, tables and widths that parsers of IMB read.

pub mod options;
pub mod plan;
pub mod programs;
pub mod threads;
pub mod types;

use std::io::{Result, Write};

use ombx_core::benchmark::{ElementType, Preset, RankMatrix};
use ombx_estimate::text::plain;
use ombx_record::{
    event::Event,
    result::{AcrossRanks, Measurement, Outcome, Run, RunOutcome, Samples, Tally},
    stats::Summary,
};
use ombx_show::Renderer;

use crate::osu;

/// Version of IMB that has these columns.
const LIKE: &str = "2021.10";
/// Number of ranks on a line.
const RANKS_PER_LINE: usize = 16;
/// Width of a column.
const WIDTH: usize = 13;

/// A program of IMB, and what it was asked to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImbProgram {
    /// Name, such as `IMB-MPI1`.
    pub name: &'static str,
    /// Name of its part in the first line, such as `MPI-1 part`.
    pub part: &'static str,
    /// Lines before the first table.
    pub header: ImbHeader,
    /// Command line.
    pub calling: String,
    /// Smallest and largest message in bytes; `None` if the user lists the sizes.
    pub sizes: Option<[u64; 2]>,
    /// Element type of messages, and of reductions.
    pub types: [ElementType; 2],
    /// How the figures of several groups of processes are shown; `None` if one group runs at a time.
    pub groups: Option<ImbGroups>,
    /// Number of ranks of the job; `None` if the launcher does not publish it.
    pub ranks: Option<u32>,
    /// Matrix by which the processes are numbered anew.
    pub matrix: Option<RankMatrix>,
    /// Benchmarks, in order.
    pub benchmarks: Vec<ImbBenchmark>,
}

/// Lines before the first table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImbHeader {
    /// Title, system, command line and benchmarks.
    System,
    /// Title of the program with several threads.
    Title,
    /// None.
    Nothing,
}

/// How the figures of groups of processes that run at the same time are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImbGroups {
    /// Over the processes of all groups.
    Together,
    /// Each group on a line of its own.
    Separate,
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
    /// How its operations are completed, if IMB has several modes for it.
    pub mode: Option<ImbMode>,
    /// Values on axes that its rows name.
    pub axes: Preset,
    /// Number of processes, if it is fixed and the benchmark of ombx takes any.
    pub ranks: Option<u32>,
}

/// How the operations of a benchmark are completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImbMode {
    /// Several together.
    Aggregate,
    /// Each by itself.
    Single,
}

/// Writes each benchmark like the program of IMB. Figures are means.
pub struct ImbTable {
    program: ImbProgram,
    /// Table that is open.
    open: Option<Table>,
}

/// A table of a benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Table {
    benchmark: ImbBenchmark,
    /// Number of ranks of all groups.
    ranks: u32,
    groups: u32,
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
        match self.program.header {
            ImbHeader::System if self.is_of_pairs() => self.system_of_pairs(run),
            ImbHeader::System => self.system(run),
            ImbHeader::Title => {
                let rule = format!("#{}\n", "-".repeat(66));
                format!("{rule}#    {}, {}    \n{rule}#\n", ImbTable::title(), self.program.part)
            }
            ImbHeader::Nothing => String::new(),
        }
    }

    fn system(&self, run: &Run) -> String {
        let ImbProgram { part, calling, sizes, types, benchmarks, .. } = &self.program;
        let [moved, reduced] = types.map(|element| match element {
            ElementType::Byte => "MPI_BYTE",
            ElementType::Char => "MPI_SIGNED_CHAR",
            ElementType::Int32 => "MPI_INT",
            ElementType::Double => "MPI_DOUBLE",
            _ => "MPI_FLOAT",
        });
        let what = if self.program.name == "IMB-IO" { "io portion" } else { "message length" };
        let sizes = sizes.map_or_else(
            || "# Message lengths were user defined\n".to_owned(),
            |[least, most]| {
                format!("# Minimum {what} in bytes:   {least}\n# Maximum {what} in bytes:   {most}\n")
            },
        );
        // The parts of IMB end these lines with blanks or without.
        let [of_type, of_line] = match self.program.name {
            "IMB-NBC" => ["", ""],
            "IMB-RMA" => ["", " "],
            _ => [" ", " "],
        };
        let sizes = match self.program.name {
            "IMB-IO" => format!("{sizes}#\n#\n#"),
            _ => format!(
                "{sizes}#\n# MPI_Datatype                   :   {moved} \n\
                 # MPI_Datatype for reductions    :   {reduced}{of_type}\n\
                 # MPI_Op                         :   MPI_SUM  \n#{of_line}\n#{of_line}"
            ),
        };
        let rule = format!("#{}", "-".repeat(64));
        let mut text = format!(
            "{rule}\n#    {}, {part}\n{rule}\n{}# MPI Thread Environment: \n\n\n\
             # Calling sequence was: \n\n# {} \n\n{sizes}\n\n# List of Benchmarks to run:\n\n",
            ImbTable::title(),
            facts(run),
            plain(calling),
        );
        let mut last = "";
        for benchmark in benchmarks.iter().filter(|b| std::mem::replace(&mut last, b.name) != b.name) {
            text += &format!("# {}\n", benchmark.name);
            text.extend(notes(benchmark.name).iter().map(|note| format!("#     {note}\n")));
        }
        text
    }

    /// Returns the lines before the first table of IMB-P2P, which has a form of its own.
    fn system_of_pairs(&self, run: &Run) -> String {
        let ImbProgram { part, calling, sizes, benchmarks, .. } = &self.program;
        let rule = format!("#{}\n", "-".repeat(60));
        let names: String = benchmarks.iter().map(|benchmark| format!("# {}\n", benchmark.name)).collect();
        let [least, most] = sizes.unwrap_or_default();
        format!(
            "{rule}#    {}, {part}\n{rule}{}# MPI Thread Environment:\n#\n# Calling sequence was:\n#\n# {}\n#\n\
             # List of Benchmarks to run:\n#\n{names}#\n# Minimum message length in bytes:   {least}\n\
             # Maximum message length in bytes:   {most}\n#\n",
            ImbTable::title(),
            facts(run),
            plain(calling),
        )
    }

    /// Returns whether this is IMB-P2P.
    fn is_of_pairs(&self) -> bool {
        self.program.name == "IMB-P2P"
    }

    fn is_separate(&self) -> bool {
        self.program.groups == Some(ImbGroups::Separate)
    }

    /// Returns what follows the number of processes: a blank, or the numbers that all processes had before.
    fn order(&self, ranks: u32) -> String {
        let Some(matrix) = self.program.matrix.filter(|matrix| matrix.ranks() == ranks) else {
            return " ".into();
        };
        let before: Vec<u32> = matrix.order().into_iter().map(|rank| rank.0).collect();
        let rows = before.chunks(matrix.columns() as usize);
        let rows: Vec<String> = rows.map(|row| format!("# {}\n# ", numbers(row))).collect();
        format!("; rank order (rowwise): \n{}", rows.join("\n"))
    }

    /// Returns the lines above the rows of a benchmark.
    fn heading(&self, table: Table, row: &Measurement) -> String {
        let Table { benchmark, ranks, groups } = table;
        if benchmark.class.has_threads() {
            return heading_of_threads(benchmark, row);
        }
        if self.is_of_pairs() {
            let rule = format!("#{}\n", "-".repeat(64));
            let titles = line(benchmark.class.titles());
            return format!(
                "\n{rule}# Benchmarking {}\n# #processes = {ranks}\n{rule}{titles}",
                benchmark.name
            );
        }
        let group = self.is_separate().then_some("Group");
        let titles: Vec<&str> = group.into_iter().chain(benchmark.class.titles().iter().copied()).collect();
        let rule = format!("#{}\n", "-".repeat(WIDTH * titles.len() - 1));
        let name = benchmark.name;
        let mut text = match groups {
            1 => format!("\n{rule}# Benchmarking {name} \n# #processes = {ranks}{}\n", self.order(ranks)),
            _ => format!("\n{rule}# Benchmarking Multi-{name} \n{}", processes_of_groups(ranks, groups)),
        };
        let idle = self.program.ranks.unwrap_or(ranks).saturating_sub(ranks);
        if idle > 0 {
            let processes = if idle == 1 { "process" } else { "processes" };
            text += &format!("# ( {idle} additional {processes} waiting in MPI_Barrier)\n");
        }
        text += &rule;
        if let Some(mode) = benchmark.mode {
            let mode = match mode {
                ImbMode::Aggregate => "AGGREGATE",
                ImbMode::Single => "NON-AGGREGATE",
            };
            text += &format!("#\n#    MODE: {mode} \n#\n");
        }
        text + &line(titles)
    }
}

/// Returns the lines about the system.
fn facts(run: &Run) -> String {
    let system = |name: &str| {
        let facts = run.hosts.first().map(|host| &host.facts);
        facts.and_then(|facts| facts.get(name)?.known()).map(plain).unwrap_or_default()
    };
    format!(
        "# Date                  : {}\n# Machine               : {}\n# System                : Linux\n\
         # Release               : {}\n# Version               : ombx {}\n# MPI Version           : {}\n",
        plain(&run.started),
        std::env::consts::ARCH,
        system("kernel").trim_start_matches("Linux "),
        plain(&run.version),
        plain(run.library.lines().next().unwrap_or_default()),
    )
}

/// Returns what IMB says below the names of some benchmarks.
fn notes(benchmark: &str) -> &'static [&'static str] {
    match benchmark {
        "Compare_and_swap" => &["Uses MPI_INT data type"],
        "Truly_passive_put" => &[
            "The benchmark measures execution time of MPI_Put for 2 cases:",
            "1) The target is waiting in MPI_Barrier call (t_pure value)",
            "2) The target performs computation and then enters MPI_Barrier routine (t_ovrl value)",
        ],
        _ => &[],
    }
}

/// Returns the lines above the rows of a benchmark of several threads.
fn heading_of_threads(benchmark: ImbBenchmark, row: &Measurement) -> String {
    let rule = format!("#{}\n", "-".repeat(77));
    let threads = row.axes.get("threads").map_or("1", String::as_str);
    let mut text = format!(
        "\n{rule}# Benchmarking {}\n# #processes = {} (threads: {threads})\n",
        benchmark.name, row.ranks
    );
    if let Some(depth) = row.depth {
        text += &format!("# window_size = {depth}\n");
    }
    text + &rule + &line(benchmark.class.titles())
}

/// Returns an empty line and a line with the figures of each group.
fn lines_of_groups(table: Table, row: &Measurement, summary: &Summary) -> String {
    let Table { benchmark, ranks, groups } = table;
    let mut text = "\n".to_owned();
    for group in 0..groups {
        let is_member = |samples: &&Samples| samples.rank / (ranks / groups).max(1) == group;
        let samples = row.samples.iter().filter(is_member).cloned().collect();
        let row = Measurement { samples, ..row.clone() };
        text += &line([group.to_string()].into_iter().chain(benchmark.class.cells(&row, summary)));
    }
    text
}

/// Returns the ranks of each group.
fn processes_of_groups(ranks: u32, groups: u32) -> String {
    let each = ranks / groups;
    let mut text = format!("# ( {groups} groups of {each} processes each running simultaneous ) \n");
    for group in 0..groups {
        let ranks: Vec<u32> = (group * each..(group + 1) * each).collect();
        text += &format!("# Group  {group}: {}\n# \n", numbers(&ranks));
    }
    text
}

/// Returns ranks in columns, on several lines if they are many.
fn numbers(ranks: &[u32]) -> String {
    let line = |ranks: &[u32]| ranks.iter().map(|rank| format!(" {rank:4}")).collect::<String>();
    ranks.chunks(RANKS_PER_LINE).map(line).collect::<Vec<_>>().join("\n# ")
}

fn line(cells: impl IntoIterator<Item = impl std::fmt::Display>) -> String {
    let cells = cells.into_iter().map(|cell| format!("{:>WIDTH$}", cell.to_string()));
    cells.collect::<String>() + "\n"
}

impl Renderer for ImbTable {
    fn event(&mut self, out: &mut dyn Write, event: &Event<'_>) -> Result<()> {
        match event {
            Event::Run(run) => out.write_all(self.header(run).as_bytes()),
            Event::End { outcome, tally } => self.end(out, *outcome, tally),
            _ => event.rows().try_for_each(|row| self.case(out, &row)),
        }
    }
}

impl ImbTable {
    fn case(&mut self, out: &mut dyn Write, row: &Measurement) -> Result<()> {
        let is_named = |(axis, value): &(&str, &str)| row.axes.get(*axis).is_some_and(|named| named == value);
        let matching = |benchmark: &&ImbBenchmark| {
            benchmark.bench == row.bench
                && benchmark.axes.iter().all(is_named)
                && benchmark.ranks.is_none_or(|ranks| ranks == row.ranks)
        };
        // The default of such an axis has no name in rows.
        let exact = |benchmark: &&ImbBenchmark| (benchmark.axes.len(), benchmark.ranks.is_some());
        let found = self.program.benchmarks.iter().filter(matching).max_by_key(exact).copied();
        let Some(benchmark) = found else { return Ok(()) };
        let groups = row.axes.get("groups").and_then(|groups| groups.parse().ok()).unwrap_or(1);
        let table = Table { benchmark, ranks: row.ranks, groups };
        if self.open != Some(table) {
            out.write_all(self.heading(table, row).as_bytes())?;
            self.open = Some(table);
        }
        // No word is a number where parsers look for a figure.
        let size = row.bytes.map_or_else(String::new, |bytes| format!(" at size {bytes}"));
        match (&row.outcome, &row.summary) {
            (Outcome::Failed(why), _) => writeln!(out, "# FAILED{size}: {}", plain(why))?,
            (Outcome::Skipped(why), _) => writeln!(out, "# skipped{size}: {}", plain(why))?,
            (Outcome::Ok, None) => writeln!(out, "# not measured{size}: nothing was sampled")?,
            (Outcome::Ok, Some(summary)) => {
                let text = if self.is_separate() {
                    lines_of_groups(table, row, summary)
                } else {
                    line(benchmark.class.cells(row, summary))
                };
                out.write_all(text.as_bytes())?;
            }
        }
        out.flush()
    }

    fn end(&mut self, out: &mut dyn Write, outcome: RunOutcome, tally: &Tally) -> Result<()> {
        match outcome {
            RunOutcome::Complete if self.program.header != ImbHeader::System => writeln!(out)?,
            RunOutcome::Complete => write!(out, "\n\n# All processes entering MPI_Finalize\n\n")?,
            _ => writeln!(out, "# not complete: the run ended after {} rows", tally.cases)?,
        }
        out.flush()
    }
}

/// Kinds of tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImbClass {
    /// One time and its bandwidth.
    Single,
    /// Time of rank 0, which accesses all others, and the bandwidth over all of them.
    OneToAll,
    /// Bandwidth and message rate of windows of messages.
    Rate,
    /// Time of a message, and bandwidth and message rate of all messages of all ranks.
    Messages,
    /// Minimum, maximum and mean over ranks, and the bandwidth of this many messages per rank.
    Parallel(u64),
    /// Minimum, maximum and mean over ranks, and the bandwidth of bytes that all ranks share.
    Divided,
    /// Minimum, maximum and mean over ranks.
    Collective,
    /// The same without message sizes.
    Barrier,
    /// Nonblocking collective with its overlap.
    Overlap,
    /// The same without message sizes.
    OverlapBarrier,
    /// Nonblocking access to a file of one process with its overlap, the figures of the slowest process.
    SingleOverlap,
    /// The same of bytes that all processes share.
    DividedOverlap,
    /// Times of rank 0 while its target waits, and while it computes.
    Passive,
    /// Minimum, maximum and mean over threads, and the bandwidth of this many messages of each thread.
    Threads(u64),
    /// Mean over threads of the time of a message, and bandwidth and message rate of all of them.
    ThreadRate,
    /// Minimum, maximum and mean over threads.
    ThreadCollective,
    /// The same without message sizes.
    ThreadBarrier,
}

const BYTES: &str = "#bytes";
const REPETITIONS: &str = "#repetitions";
const T_MIN: &str = "t_min[usec]";
const T_MAX: &str = "t_max[usec]";
const T_AVG: &str = "t_avg[usec]";
const MB_PER_S: &str = "Mbytes/sec";
const MSG_PER_S: &str = "Msg/sec";
const T_OVRL: &str = "t_ovrl[usec]";
const T_PURE: &str = "t_pure[usec]";
const T_CPU: &str = "t_CPU[usec]";
const OVERLAP: &str = "overlap[%]";

impl ImbClass {
    /// Returns the titles of the columns.
    fn titles(self) -> &'static [&'static str] {
        match self {
            ImbClass::Single | ImbClass::OneToAll => &[BYTES, REPETITIONS, "t[usec]", MB_PER_S],
            ImbClass::Rate => &[BYTES, REPETITIONS, MB_PER_S, MSG_PER_S],
            ImbClass::Messages => &[BYTES, REPETITIONS, "t[usec]", MB_PER_S, MSG_PER_S],
            ImbClass::Parallel(_) | ImbClass::Divided | ImbClass::Threads(_) => {
                &[BYTES, REPETITIONS, T_MIN, T_MAX, T_AVG, MB_PER_S]
            }
            ImbClass::Collective | ImbClass::ThreadCollective => &[BYTES, REPETITIONS, T_MIN, T_MAX, T_AVG],
            ImbClass::Barrier | ImbClass::ThreadBarrier => &[REPETITIONS, T_MIN, T_MAX, T_AVG],
            ImbClass::Overlap | ImbClass::SingleOverlap | ImbClass::DividedOverlap => {
                &[BYTES, REPETITIONS, T_OVRL, T_PURE, T_CPU, OVERLAP]
            }
            ImbClass::OverlapBarrier => &[REPETITIONS, T_OVRL, T_PURE, T_CPU, OVERLAP],
            ImbClass::ThreadRate => &[BYTES, REPETITIONS, T_AVG, MB_PER_S, MSG_PER_S],
            ImbClass::Passive => &[BYTES, REPETITIONS, T_PURE, T_OVRL],
        }
    }

    /// Returns whether its figures are those of threads.
    const fn has_threads(self) -> bool {
        matches!(
            self,
            ImbClass::Threads(_)
                | ImbClass::ThreadRate
                | ImbClass::ThreadCollective
                | ImbClass::ThreadBarrier
        )
    }

    /// Returns how many of these processes share the bytes of a row.
    pub fn portions(self, processes: u32) -> u32 {
        if matches!(self, ImbClass::Divided | ImbClass::DividedOverlap) { processes } else { 1 }
    }

    /// Returns the cells of a row.
    fn cells(self, row: &Measurement, summary: &Summary) -> Vec<String> {
        let bytes = row.bytes.unwrap_or(0) * u64::from(self.portions(row.ranks));
        // A window of one-sided operations is one iteration with as many repetitions as operations.
        let operations = if self == ImbClass::Rate { 1 } else { row.depth.unwrap_or(1) };
        let timed = row.samples.first().map_or(0, |s| s.elapsed_ns.len() as u64 * s.batch);
        let mut cells = vec![(timed * u64::from(operations)).to_string()];
        if self.titles()[0] == BYTES {
            cells.insert(0, bytes.to_string());
        }
        let mean = osu::mean(row, summary);
        match self {
            ImbClass::Single => {
                let slowest = row.across_ranks().map_or(mean, |ranks| ranks.max);
                let each = slowest / f64::from(operations);
                cells.extend([microseconds(each), bandwidth(bytes, each)]);
            }
            ImbClass::OneToAll => {
                let first = row.samples.iter().find(|samples| samples.rank == 0).map_or(mean, mean_of);
                let each = first / f64::from(operations);
                let others = u64::from(row.ranks.saturating_sub(1));
                cells.extend([microseconds(each), bandwidth(others * bytes, each)]);
            }
            ImbClass::Rate => {
                let messages = row.work.map_or(0, |work| work.ops) as f64;
                cells.extend([bandwidth(bytes, mean / messages), format!("{:.0}", messages * 1e9 / mean)]);
            }
            ImbClass::Messages => {
                let (messages, legs) = row.work.map_or((0, 1), |work| (work.ops, work.legs));
                let (messages, one) = (messages as f64, AcrossRanks { mean, min: mean, max: mean });
                let AcrossRanks { mean, max, .. } = row.across_ranks().unwrap_or(one);
                // Times are those of a leg. The time of a message is that of all ranks over all messages.
                let slowest = max * legs as f64;
                cells.push(microseconds(mean * f64::from(row.ranks) / messages));
                cells.push(bandwidth(bytes, slowest / messages));
                cells.push(format!("{:.0}", messages * 1e9 / slowest));
            }
            ImbClass::Parallel(_) | ImbClass::Divided | ImbClass::Collective | ImbClass::Barrier => {
                let one = AcrossRanks { mean, min: mean, max: mean };
                let AcrossRanks { mean, min, max } = row.across_ranks().unwrap_or(one);
                cells.extend([min, max, mean].map(|ns| microseconds(ns / f64::from(operations))));
                match self {
                    ImbClass::Parallel(messages) => cells.push(bandwidth(messages * bytes, max)),
                    ImbClass::Divided => cells.push(bandwidth(bytes, max / f64::from(operations))),
                    _ => {}
                }
            }
            ImbClass::Passive => {
                let first = row.samples.iter().find(|samples| samples.rank == 0).map_or(mean, mean_of);
                cells.extend([osu::resolved(row, "pure_us", None), microseconds(first)]);
            }
            ImbClass::Overlap
            | ImbClass::OverlapBarrier
            | ImbClass::SingleOverlap
            | ImbClass::DividedOverlap => {
                let is_file = matches!(self, ImbClass::SingleOverlap | ImbClass::DividedOverlap);
                let slowest = row.across_ranks().map_or(mean, |ranks| ranks.max);
                let whole = if is_file { slowest } else { mean };
                cells.push(microseconds(whole));
                let figure = |name| osu::resolved(row, name, Some(whole / 1e3));
                cells.extend(["pure_us", "compute_us", "overlap_percent"].map(figure));
            }
            ImbClass::Threads(_)
            | ImbClass::ThreadRate
            | ImbClass::ThreadCollective
            | ImbClass::ThreadBarrier => return self.cells_of_threads(row),
        }
        cells
    }

    /// Returns the cells of a row of several threads. Bytes are those of all threads of a rank.
    fn cells_of_threads(self, row: &Measurement) -> Vec<String> {
        let threads: u64 = row.axes.get("threads").and_then(|threads| threads.parse().ok()).unwrap_or(1);
        let bytes = row.bytes.unwrap_or(0);
        let timed = row.samples.first().map_or(0, |s| s.elapsed_ns.len() as u64 * s.batch);
        let mut cells = vec![timed.to_string()];
        if self.titles()[0] == BYTES {
            cells.insert(0, (bytes * threads).to_string());
        }
        // Figures are times of an iteration: both ways of a ping-pong, and all messages of a window.
        let (ops, legs) = row.work.map_or((1, 1), |work| (work.ops, work.legs));
        let partners = threads * u64::from(row.pairs);
        let messages = if self == ImbClass::ThreadRate { ops / partners } else { legs };
        let ns = |name: &str| row.figure(name).map_or(f64::NAN, |us| us * 1e3 / messages as f64);
        let [least, largest, mean] = ["thread_min_us", "thread_max_us", "thread_mean_us"].map(ns);
        match self {
            ImbClass::ThreadRate => cells.extend([
                microseconds(mean),
                bandwidth(bytes * partners, largest),
                format!("{:.0}", (partners as f64 * 1e9 / mean).floor()),
            ]),
            _ => cells.extend([least, largest, mean].map(microseconds)),
        }
        if let ImbClass::Threads(times) = self {
            cells.push(bandwidth(times * bytes * threads, largest));
        }
        cells
    }
}

/// Returns the mean time of an iteration on a rank.
fn mean_of(samples: &Samples) -> f64 {
    let iterations = samples.elapsed_ns.len() as u64 * samples.batch;
    samples.elapsed_ns.iter().sum::<u64>() as f64 / iterations as f64
}

fn microseconds(ns: f64) -> String {
    osu::two_decimals(Some(ns / 1e3))
}

/// Formats 10^6 bytes per second.
fn bandwidth(bytes: u64, ns: f64) -> String {
    osu::two_decimals(Some(bytes as f64 * 1e3 / ns))
}
