//! OSU format: headers and columns that parsers of the OSU micro-benchmarks read.

mod described;
pub mod options;
pub mod programs;

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{Result, Write},
};

use ombx_core::benchmark::Osu;
use ombx_estimate::text::plain;
use ombx_record::{
    event::Event,
    order::sort,
    result::{Aggregation, Check, Figure, Measurement, Metric, Outcome, RunOutcome, Samples, Tally, Work},
    stats::Summary,
};
use ombx_show::Renderer;

/// OSU version that has these columns.
const LIKE: &str = "v7.4";
/// Program that prints message rates beside bandwidth.
const MESSAGE_RATE: &str = "osu_mbw_mr";
/// Programs that print the number of threads or processes.
const THREADS: &str = "osu_latency_mt";
const PROCESSES: &str = "osu_latency_mp";
/// Programs whose titles do not name the accelerator.
const NO_ACCELERATOR: [&str; 3] = [NO_DATATYPE, MESSAGE_RATE, "osu_multi_lat"];
/// Program that does not print its data type.
const NO_DATATYPE: &str = "osu_get_acc_latency";
/// Programs that print their whole heading above the table of each data type. The others print their title once.
const TITLE_OF_EACH_TYPE: [&str; 3] = ["osu_acc_latency", "osu_fop_latency", "osu_cas_latency"];
/// Part of the name of programs that move no data. They print neither sizes nor a data type.
const NO_SIZE: &str = "barrier";
/// Programs that print a sentence instead of a table.
const INIT: &str = "osu_init";
const HELLO: &str = "osu_hello";

/// Accelerator that the title of an OSU program names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OsuAccelerator {
    /// `-d cuda`.
    Cuda,
    /// `-d rocm`.
    Rocm,
    /// `-d managed` of a collective.
    Managed,
}

/// Columns that options of an OSU program add.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OsuColumns {
    /// Program that was called, if a benchmark has several.
    pub program: Option<Osu>,
    /// `-d`, or the accelerator of `D` and `MD`.
    pub accelerator: Option<OsuAccelerator>,
    /// `-f`: adds minimum, maximum and number of iterations.
    pub full: bool,
    /// `-c`: adds the result of the payload check.
    pub validation: bool,
    /// `-z`: adds percentiles of single iterations.
    pub percentiles: Vec<u8>,
    /// `-R 0`: leaves out the message rates that some programs have.
    pub without_rate: bool,
    /// `-V`: prints tables of several window sizes at the end.
    pub vary_window: bool,
    /// `-D`: the size that is printed for each payload, and a column with the payload.
    pub payloads: Option<BTreeMap<u64, u64>>,
    /// Whether the first line does not name ombx.
    pub without_ombx: bool,
    /// `-P`: events of PAPI, and the figures of rows that count the same.
    pub counters: Vec<(&'static str, &'static str)>,
}

/// Line that says how the figures differ from those of other formats.
const MEANS: &str = "# Means over samples, as OMB prints them; tables of ombx have medians\n";

/// Writes each benchmark like the OSU program. The figure is the mean.
pub struct OsuTable {
    titles: fn(&str) -> Option<Osu>,
    columns: OsuColumns,
    version: String,
    /// Heading of the rows before, without and with the data type.
    heading: [String; 2],
    /// The choices that the rows before have; `None` in a drop-in program, which prints what OMB prints and nothing else.
    choices: Option<String>,
    windows: Windows,
}

impl OsuTable {
    /// Creates a table for rows of any benchmarks. `titles` maps benchmarks to OSU programs. Comments name the choices that rows
    /// have, such as `sync=fence`, and say that figures are means.
    pub fn new(titles: fn(&str) -> Option<Osu>) -> OsuTable {
        OsuTable { choices: Some(String::new()), ..OsuTable::with(titles, OsuColumns::default()) }
    }

    /// Creates the table of a drop-in program, with the columns that its options add.
    pub fn with(titles: fn(&str) -> Option<Osu>, columns: OsuColumns) -> OsuTable {
        let (version, heading, windows) = (String::new(), Default::default(), Windows::default());
        OsuTable { titles, columns, version, heading, choices: None, windows }
    }

    /// Returns the first line of an OSU program: its title, the emulated version, and the version of ombx unless that is `None`.
    pub fn title(osu: &Osu, version: Option<&str>) -> String {
        let ombx = version.map_or_else(String::new, |version| format!(" (ombx {})", plain(version)));
        format!("# {} {LIKE}{ombx}\n", osu.title)
    }

    /// Returns the comment with the choices of a row if they differ from those of the rows before.
    fn new_choices(&mut self, row: &Measurement) -> Option<String> {
        let before = self.choices.as_mut()?;
        let of_row = row.axes.iter().map(|(name, value)| format!("{}={}", plain(name), plain(value)));
        let window = row.depth.map(|depth| format!("window={depth}"));
        let pairs = (row.pairs > 1).then(|| format!("pairs={}", row.pairs));
        let choices = of_row.chain(window).chain(pairs).collect::<Vec<_>>().join(" ");
        let key = format!("{} {choices}", row.bench);
        (std::mem::replace(before, key.clone()) != key && !choices.is_empty())
            .then(|| format!("# {choices}\n"))
    }

    fn program(&self, row: &Measurement) -> Option<Osu> {
        self.columns.program.or_else(|| (self.titles)(&row.bench))
    }

    /// Returns whether this is the output of a drop-in program.
    fn is_drop_in(&self) -> bool {
        self.choices.is_none()
    }

    /// Returns the line with the events of `-P` per operation and rank; empty without `-P`. It is a comment, which parsers skip.
    fn counters(&self, row: &Measurement, size: &str) -> String {
        let event = |(event, figure): &(&str, &str)| match row.figures.get(*figure) {
            Some(Figure::Value(count)) => format!("{event} {count:.2}"),
            Some(Figure::Unresolved(why)) => format!("{event} {}", plain(why)),
            None => format!("{event} not counted"),
        };
        let events: Vec<String> = self.columns.counters.iter().map(event).collect();
        if events.is_empty() {
            String::new()
        } else {
            format!("# counters at size {size}: {}\n", events.join(", "))
        }
    }

    /// Returns the lines above the rows of a table, without and with the data type and the titles of columns.
    fn heading(&self, row: &Measurement, columns: &[Column]) -> [String; 2] {
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
        if self.is_drop_in() && begins_with_an_empty_line(row, name) {
            lines += "\n";
        }
        lines += &match &osu {
            Some(osu) => {
                let title = OsuTable::title(osu, (!self.columns.without_ombx).then_some(&self.version));
                with_accelerator(&title, name, self.accelerator(row, name))
            }
            None => format!("# {} (ombx {})\n", plain(&row.bench), plain(&self.version)),
        };
        if [INIT, HELLO].contains(&name) {
            return [lines, String::new()];
        }
        lines += &one_sided(row);
        if overlaps(row, name) {
            lines += "# Overall = Coll. Init + Compute + MPI_Test + MPI_Wait\n\n";
        }
        if self.columns.vary_window {
            lines += &format!(
                "# [ pairs: {} ] [ window size: varied ]\n\n# Uni-directional Bandwidth (MB/sec)\n",
                row.pairs
            );
            return [lines, format!("# Datatype: {}.\n", datatype(row))];
        }
        if name == MESSAGE_RATE {
            lines += &format!("# [ pairs: {} ] [ window size: {} ]\n", row.pairs, row.depth.unwrap_or(1));
        }
        let of_type = if name == NO_DATATYPE || name.contains(NO_SIZE) {
            String::new()
        } else {
            format!("# Datatype: {}.\n", datatype(row))
        };
        let size = if name.contains(NO_SIZE) { None } else { Some("# Size") };
        [
            lines,
            of_type + &self.memory(row, name) + &line(size, columns, |column| (&column.title, column.width)),
        ]
    }

    /// Returns what follows `MPI` in the title of a row. Blocking collectives of OMB do not name managed memory.
    fn accelerator(&self, row: &Measurement, program: &str) -> &'static str {
        let memory = row.axes.get("memory").map_or("", String::as_str);
        match self.columns.accelerator {
            Some(OsuAccelerator::Cuda) => "-CUDA",
            Some(OsuAccelerator::Rocm) => "-ROCM",
            Some(OsuAccelerator::Managed) if overlaps(row, program) => "-MANAGED",
            Some(OsuAccelerator::Managed) => "",
            None if memory.contains("cuda") => "-CUDA",
            None if memory.contains("rocm") => "-ROCM",
            None => "",
        }
    }

    /// Returns the line about the memory of both ranks of a row with an accelerator, which collectives do not have.
    fn memory(&self, row: &Measurement, program: &str) -> String {
        if is_collective(row) || self.accelerator(row, program).is_empty() {
            return String::new();
        }
        let memory = row.axes.get("memory").map_or("host", String::as_str);
        let (first, second) = memory.split_once(':').unwrap_or((memory, memory));
        let (first, second) = (place(row, first), place(row, second));
        if is_one_sided(row) {
            format!("# Rank 0 Memory on {first} and Rank 1 Memory on {second}\n")
        } else {
            format!("# Send Buffer on {first} and Receive Buffer on {second}\n")
        }
    }
}

/// Returns whether a benchmark accesses a window.
fn is_one_sided(row: &Measurement) -> bool {
    row.axes.contains_key("win")
}

/// Returns what OMB calls the memory with this name.
fn place(row: &Measurement, name: &str) -> &'static str {
    match name {
        "cuda" | "rocm" => "DEVICE (D)",
        _ if name.contains("managed") && is_one_sided(row) => "MANAGED (M)",
        "cuda-managed" | "rocm-managed" => "MANAGED (MD)",
        "cuda-managed-host" | "rocm-managed-host" => "MANAGED (MH)",
        _ => "HOST (H)",
    }
}

/// Returns a title with the accelerator after the word that begins with `MPI`, as in `OSU MPI_Put-CUDA Latency Test`.
fn with_accelerator(title: &str, program: &str, accelerator: &str) -> String {
    let at = title.find("MPI").filter(|_| !NO_ACCELERATOR.contains(&program)).unwrap_or(title.len());
    let (before, from) = title.split_at(at);
    let (word, after) = from.split_at(from.find(' ').unwrap_or(from.len()));
    if word.is_empty() { title.to_owned() } else { format!("{before}{word}{accelerator}{after}") }
}

/// Returns whether a program of OMB prints an empty line before its title.
fn begins_with_an_empty_line(row: &Measurement, program: &str) -> bool {
    !row.axes.contains_key("sync") && ![MESSAGE_RATE, INIT, HELLO].contains(&program)
}

fn is_collective(row: &Measurement) -> bool {
    row.bench.starts_with("collective.")
}

/// Returns the times that MPI took to start, in whole milliseconds as OMB prints them.
fn init(row: &Measurement) -> String {
    let ms = |ns: f64| format!("{:.0} ms", ns / 1e6);
    let of_ranks = row.across_ranks().map_or([0.0; 3], |times| [times.min, times.max, times.mean]);
    let [min, max, mean] = of_ranks.map(ms);
    format!("nprocs: {}, min: {min}, max: {max}, avg: {mean}\n", row.ranks)
}

/// Returns MPI's name of the row's element type, as OMB prints it. Rows without a type move characters.
fn datatype(row: &Measurement) -> String {
    match row.axes.get("type").map(String::as_str) {
        None | Some("byte" | "char") => "MPI_CHAR".into(),
        Some("int32") => "MPI_INT".into(),
        Some("float") => "MPI_FLOAT".into(),
        Some("double") => "MPI_DOUBLE".into(),
        Some("float-complex") => "MPI_C_FLOAT_COMPLEX".into(),
        Some("double-complex") => "MPI_C_DOUBLE_COMPLEX".into(),
        Some(integer) => format!("MPI_{}_T", integer.to_ascii_uppercase()),
    }
}

/// Returns the header lines of one-sided programs: window creation and synchronisation.
fn one_sided(row: &Measurement) -> String {
    let axis = |name: &str| row.axes.get(name).map(String::as_str);
    let mut lines = String::new();
    if let Some(window) = axis("win") {
        let call = match window {
            "create" | "alloc_mem" => "MPI_Win_create",
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

/// Formats a line. The size is aligned to the left. Without a size, the first column is as wide as its title.
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
    fn event(&mut self, out: &mut dyn Write, event: &Event<'_>) -> Result<()> {
        match event {
            Event::Run(run) => {
                self.version.clone_from(&run.version);
                Ok(())
            }
            Event::End { outcome, tally } => self.end(out, *outcome, tally),
            _ => event.rows().try_for_each(|row| self.case(out, &row)),
        }
    }
}

impl OsuTable {
    fn case(&mut self, out: &mut dyn Write, row: &Measurement) -> Result<()> {
        let name = self.program(row).map_or("", |osu| osu.name);
        let columns = columns(row, name, &self.columns);
        let with_gaps =
            |payload| self.columns.payloads.as_ref().and_then(|sizes| sizes.get(&payload).copied());
        let size = row.bytes.map_or_else(|| plain(&row.bench), |b| with_gaps(b).unwrap_or(b).to_string());
        // Headers belong to rows with a size.
        if row.bytes.is_some() {
            if self.choices.as_ref().is_some_and(String::is_empty) {
                write!(out, "{MEANS}")?;
            }
            let heading = self.heading(row, &columns);
            if heading != self.heading {
                write!(out, "{}", std::mem::take(&mut self.windows).tables(&self.columns))?;
                let [above, of_type] = &heading;
                let [before, _] = &self.heading;
                let has_title_of_each_type = self.is_drop_in() && TITLE_OF_EACH_TYPE.contains(&name);
                if before == above && !has_title_of_each_type {
                    write!(out, "{of_type}")?;
                } else if before.is_empty() || has_title_of_each_type {
                    write!(out, "{above}{of_type}")?;
                } else {
                    write!(out, "\n{above}{of_type}")?;
                }
                self.heading = heading;
            }
            if let Some(choices) = self.new_choices(row) {
                write!(out, "{choices}")?;
            }
        }
        // The second word is no size: parsers take it for the figure.
        let comment = |what: &str, why: &str| match row.bytes {
            Some(_) => format!("# {what} at size {size}: {}\n", plain(why)),
            None => format!("# {size} {what}: {}\n", plain(why)),
        };
        let text = match (&row.outcome, &row.summary) {
            (Outcome::Failed(why), _) => comment("FAILED", why),
            (Outcome::Skipped(why), _) => comment("skipped", why),
            (Outcome::Ok, None) => comment("not measured", "nothing was sampled"),
            (Outcome::Ok, Some(_)) => String::new(),
        };
        write!(out, "{text}")?;
        // With `-c`, OMB prints figures of wrong data.
        let is_shown =
            row.outcome == Outcome::Ok || self.columns.validation && matches!(row.check, Check::Failed(_));
        // OMB has no row without data.
        let is_empty = self.is_drop_in()
            && row.bytes == Some(0)
            && ![INIT, HELLO].contains(&name)
            && !name.contains(NO_SIZE);
        if row.summary.is_some() && is_shown && !is_empty {
            let size = Some(size.as_str()).filter(|_| !name.contains(NO_SIZE));
            let text = match name {
                _ if self.columns.vary_window => {
                    let text =
                        |at: usize| columns.get(at).map_or_else(String::new, |column| column.text.clone());
                    self.windows.add(row, [text(0), text(1)]);
                    String::new()
                }
                INIT => init(row),
                HELLO => format!("This is a test with {} processes\n", row.ranks),
                _ => line(size, &columns, |column| (&column.text, column.figure)),
            };
            write!(out, "{text}{}", self.counters(row, size.unwrap_or("-")))?;
        }
        out.flush()
    }

    fn end(&mut self, out: &mut dyn Write, outcome: RunOutcome, tally: &Tally) -> Result<()> {
        write!(out, "{}", self.windows.tables(&self.columns))?;
        if outcome != RunOutcome::Complete {
            writeln!(out, "# not complete: the run ended after {} rows", tally.cases)?;
        }
        out.flush()
    }
}

/// Bandwidths and message rates by message size and window size.
#[derive(Default)]
struct Windows(BTreeMap<u64, BTreeMap<u32, [String; 2]>>);

impl Windows {
    /// Adds the bandwidth and the message rate of a row.
    fn add(&mut self, row: &Measurement, figures: [String; 2]) {
        let sizes = self.0.entry(row.bytes.unwrap_or_default()).or_default();
        sizes.insert(row.depth.unwrap_or(1), figures);
    }

    /// Returns the tables: bandwidths, and message rates if they are asked for.
    fn tables(&self, columns: &OsuColumns) -> String {
        let rates = || format!("\n# Message Rate Profile\n{}", self.table(1));
        let rates = if columns.without_rate { String::new() } else { rates() };
        if self.0.is_empty() { String::new() } else { self.table(0) + &rates }
    }

    fn table(&self, figure: usize) -> String {
        let windows: BTreeSet<u32> = self.0.values().flat_map(BTreeMap::keys).copied().collect();
        let titles: String = windows.iter().map(|window| format!("  {window:>10}")).collect();
        let line = |(size, figures): (&u64, &BTreeMap<u32, [String; 2]>)| {
            let cell = |window| figures.get(window).map_or(NO_FIGURE, |figures| &figures[figure]);
            let cells: String = windows.iter().map(|window| format!("  {:>10}", cell(window))).collect();
            format!("{size:<7}{cells}\n")
        };
        format!("#      {titles}\n") + &self.0.iter().map(line).collect::<String>()
    }
}

/// Figures of nonblocking collectives: name, OMB title, and whether only `-f` shows it.
const OVERLAP: [(&str, &str, bool); 8] = [
    ("compute_us", "Compute(us)", false),
    ("init_us", "Coll. Init(us)", true),
    ("test_us", "MPI_Test(us)", true),
    ("wait_us", "MPI_Wait(us)", true),
    ("pure_us", "Pure Comm.(us)", false),
    ("pure_min_us", "Min Comm.(us)", true),
    ("pure_max_us", "Max Comm.(us)", true),
    ("overlap_percent", "Overlap(%)", false),
];

/// A figure that does not exist, for parsers that read every word as a number.
const NO_FIGURE: &str = "nan";

/// Column of one row.
struct Column {
    title: String,
    text: String,
    /// Width of the title.
    width: usize,
    /// Width of the figure.
    figure: usize,
}

impl Column {
    fn new(title: impl Into<String>, text: impl Into<String>) -> Column {
        Column { title: title.into(), text: text.into(), width: 18, figure: 18 }
    }
}

/// Returns whether a row of a program overlaps a nonblocking collective with computation.
fn overlaps(row: &Measurement, program: &str) -> bool {
    let is_nonblocking = program.starts_with("osu_i") && program != INIT;
    is_nonblocking && row.axes.get("overlap").is_none_or(|computation| computation != "none")
}

/// Returns the columns of a row after its size.
fn columns(row: &Measurement, program: &str, options: &OsuColumns) -> Vec<Column> {
    let overlaps = overlaps(row, program);
    let mut columns = if overlaps {
        let overall = row.summary.as_ref().map(|summary| mean(row, summary) / 1e3);
        let shown = OVERLAP.iter().filter(|(_, _, full)| options.full || !full);
        let figures = shown.map(|(figure, title, _)| Column::new(*title, resolved(row, figure, overall)));
        [Column::new("Overall(us)", two_decimals(overall))].into_iter().chain(figures).collect()
    } else {
        headline(row, program, options)
    };
    let every_rank = matches!(row.aggregation, Aggregation::Slowest | Aggregation::Global);
    // Rows that failed have the same titles.
    if options.full && every_rank && !overlaps {
        let ranks = row.across_ranks();
        columns.push(Column::new("Min Latency(us)", two_decimals(ranks.map(|ranks| ranks.min / 1e3))));
        columns.push(Column::new("Max Latency(us)", two_decimals(ranks.map(|ranks| ranks.max / 1e3))));
        let timed = |s: &Samples| s.elapsed_ns.len() as u64 * s.batch;
        let iterations = row.samples.first().map_or(0, timed).to_string();
        columns.push(Column { width: 12, figure: 12, ..Column::new("Iterations", iterations) });
    }
    if options.validation {
        columns.push(Column::new("Validation", validation(row)));
    }
    let unit = if row.metric == Metric::Bandwidth { "BW(MB/s)" } else { "Lat(us)" };
    let mut figures = if options.percentiles.is_empty() { Vec::new() } else { iterations(row) };
    sort(&mut figures);
    for percent in &options.percentiles {
        let figure = two_decimals(percentile(&figures, *percent));
        columns.push(Column::new(format!("P{percent} Tail {unit}"), figure));
    }
    if let Some(payload) = row.bytes.filter(|_| options.payloads.is_some()) {
        columns.push(Column::new("Transmit Size", payload.to_string()));
    }
    columns
}

fn headline(row: &Measurement, program: &str, options: &OsuColumns) -> Vec<Column> {
    let Some(summary) = &row.summary else { return vec![Column::new(title(row, program), NO_FIGURE)] };
    let figure = match row.metric {
        Metric::Latency => Some(mean(row, summary) / 1e3),
        Metric::Bandwidth => per_ns(row, summary, |work| work.bytes).map(|rate| rate * 1e3),
    };
    let mut columns = vec![Column::new(title(row, program), two_decimals(figure))];
    if program == PROCESSES && !options.validation {
        // The figure is narrower than the title.
        columns[0].figure = 10;
    }
    if program == MESSAGE_RATE && !options.without_rate {
        let rate = per_ns(row, summary, |work| work.ops).map(|rate| rate * 1e9);
        columns.push(Column::new("Messages/s", two_decimals(rate)));
    }
    columns
}

fn title(row: &Measurement, program: &str) -> &'static str {
    match row.metric {
        Metric::Bandwidth if program == MESSAGE_RATE => "MB/s",
        Metric::Bandwidth => "Bandwidth (MB/s)",
        Metric::Latency if row.axes.contains_key("sync") => "Latency (us)",
        Metric::Latency => "Avg Latency(us)",
    }
}

/// Returns the mean time of a leg in nanoseconds, averaged over all timed ranks like `Avg` of OMB.
pub(super) fn mean(row: &Measurement, summary: &Summary) -> f64 {
    row.across_ranks().map_or(summary.mean, |ranks| ranks.mean)
}

/// Returns the figure of each sample: microseconds averaged over the timed ranks, or MB/s.
fn iterations(row: &Measurement) -> Vec<f64> {
    let Some(work) = row.work else { return Vec::new() };
    let length = row.samples.iter().map(|s| s.elapsed_ns.len()).min().unwrap_or(0);
    let leg = |s: &Samples, i: usize| s.elapsed_ns[i] as f64 / (s.batch as f64 * work.legs as f64);
    let ranks = row.samples.len() as f64;
    let times = (0..length).map(|i| row.samples.iter().map(|s| leg(s, i)).sum::<f64>() / ranks);
    times
        .map(|ns| match row.metric {
            Metric::Latency => ns / 1e3,
            Metric::Bandwidth => work.bytes as f64 / (ns * work.legs as f64) * 1e3,
        })
        .collect()
}

/// Returns the smallest value that is at least as large as this percentage of all values.
fn percentile(sorted: &[f64], percent: u8) -> Option<f64> {
    let at = (sorted.len() * usize::from(percent)).div_ceil(100).saturating_sub(1);
    sorted.get(at).copied()
}

fn validation(row: &Measurement) -> &'static str {
    let one_sided = row.axes.contains_key("sync");
    match &row.check {
        Check::Passed if one_sided => "passed",
        Check::Passed => "Pass",
        Check::Failed(_) if one_sided => "failed",
        Check::Failed(_) => "Fail",
        Check::Off | Check::Unsupported => "n/a",
    }
}

/// Returns a figure of a nonblocking collective. An overlap that is not resolved is the one that follows from the other figures, as OMB
/// computes it.
pub(super) fn resolved(row: &Measurement, name: &str, overall_us: Option<f64>) -> String {
    let computed = || {
        let overall = overall_us?;
        let (pure, compute) = (row.figure("pure_us")?, row.figure("compute_us")?);
        (name == "overlap_percent").then(|| (100.0 - (overall - compute) / pure * 100.0).max(0.0))
    };
    two_decimals(row.figure(name).or_else(computed))
}

/// Returns work per nanosecond at the mean time. Of several pairs, that is the work of all pairs over the mean of the pairs' times, like
/// osu_mbw_mr.
fn per_ns(row: &Measurement, summary: &Summary, amount: fn(Work) -> u64) -> Option<f64> {
    row.work.map(|work| amount(work) as f64 / (mean(row, summary) * work.legs as f64))
}

pub(super) fn two_decimals(figure: Option<f64>) -> String {
    figure.filter(|x| x.is_finite()).map_or_else(|| NO_FIGURE.into(), |x| format!("{x:.2}"))
}
