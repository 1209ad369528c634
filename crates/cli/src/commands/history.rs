//! `ombx history`: which cases of a directory of result files became slower or faster, since when, by how much, and what else
//! changed at that time.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};

use clap::Args;
use ombx_compare::history::{Case, History, Selection, Series, Store, newest};
use ombx_host::environment::timestamp;
use ombx_launch::{
    note_line,
    output::{
        destination::{Color, Format},
        renderers, target,
        terminal::{self, is_closed, reason},
    },
    stderr, stderr_line,
};
use ombx_record::{
    error::{Error, Exit, Result},
    link::MOST_RANKS,
    unit::counted,
};
use ombx_report::{Report, Timeline, page};
use ombx_show::history::{self as render, Screen};

use crate::arguments::{
    output::{COLORS, JSON, row_pattern, some_of},
    values::{self, number},
};

#[derive(Debug, Args)]
pub(crate) struct HistoryArgs {
    /// Directory with result files (*.jsonl), which may be in directories of it
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Only these benchmarks or row keys, for example p2p.latency, 'p2p.*' or 'rma.put_bw/*sync=lock*'; may be repeated
    #[arg(long, value_name = "PATTERN", value_parser = row_pattern)]
    bench: Vec<glob::Pattern>,
    /// Only runs that started on this day (UTC) or later, for example: 2026-03-01
    #[arg(long, value_name = "DATE", value_parser = values::date)]
    since: Option<String>,
    /// Make one series of runs on different hosts
    #[arg(long)]
    any_hosts: bool,
    /// Format of the output
    #[arg(long, default_value = "table", value_parser = some_of(&FORMATS))]
    format: Format,
    /// Also write an HTML page with a chart of each case and its changes, - for standard output in place of the table
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Exit with 3 if a case became slower and stayed so, and its change is among its last N runs
    #[arg(long, value_name = "N", value_parser = number(1..=1_000_000_usize))]
    fail_on_last: Option<usize>,
    /// Print nothing if --fail-on-last finds nothing
    #[arg(short, long, requires = "fail_on_last")]
    quiet: bool,
    /// Use of colours
    #[arg(long, default_value = "auto", value_parser = some_of(&COLORS))]
    color: Color,
}

const FORMATS: [(&str, &str, Format); 3] =
    [("table", "Table for people", Format::Table), ("csv", "CSV, one line per change", Format::Csv), JSON];

pub(crate) fn history(args: &HistoryArgs) -> Result<u8> {
    let directory = args.directory.as_path();
    let name = directory.display().to_string();
    let store = read(directory)?;
    say_large_sweeps(directory, &store);
    if let Some(page) = &args.html {
        check_page(page, "--html", directory, &store)?;
        target::check_path("--html", page)?;
    }
    let now = timestamp();
    let selection = Selection { since: args.since.as_deref(), any_hosts: args.any_hosts, now: Some(&now) };
    let history = History::new(store.results, selection, |case| args.contains(case));
    if history.series.is_empty() {
        return Err(nothing_fits(&name, args, history.future));
    }
    let to_stdout = args.html.as_deref() == Some(Path::new("-"));
    if let Some(file) = &args.html {
        let history = Some(Timeline { name: &name, history: &history });
        write_page(file, &page(&Report { history, ..Report::default() }))?;
    }
    let slower = args.fail_on_last.map_or(0, |runs| became_slower(&history, runs));
    if !to_stdout && (slower > 0 || !args.quiet) {
        is_closed(print(&history, args))?;
    }
    let Some(runs) = args.fail_on_last.filter(|_| slower > 0) else { return Ok(0) };
    let cases = history.series.len();
    stderr_line!("ombx: {slower} of {cases} cases became slower within the last {runs} runs");
    Ok(Exit::Regression.code())
}

/// Returns why a directory with results has no series.
fn nothing_fits(name: &str, args: &HistoryArgs, future: usize) -> Error {
    let given = [("--bench", !args.bench.is_empty()), ("--since", args.since.is_some())];
    let given: Vec<&str> =
        given.into_iter().filter_map(|(option, is_given)| is_given.then_some(option)).collect();
    let fits = match given.as_slice() {
        [] => "no row is left".to_owned(),
        options => format!("no row fits {}", options.join(" and ")),
    };
    let later = match future {
        0 => String::new(),
        1 => "; 1 result is left out, because it starts in the future: the clock of a host is wrong".into(),
        n => format!(
            "; {n} results are left out, because they start in the future: the clock of a host is wrong"
        ),
    };
    Error::usage(format!("{name}: {fits}{later}"))
}

/// Reads the directory. Prints how many files were skipped.
pub(super) fn read(directory: &Path) -> Result<Store> {
    let name = directory.display();
    let store = Store::open(directory).map_err(|e| {
        Error::usage(format!("cannot read the directory {name}: {e}. Give a directory with result files"))
    })?;
    if let Some((first, why)) = store.refused.first() {
        let refused = counted(store.refused.len(), "file");
        let text = format!("{refused} in {name} skipped; the first, {first}: {why}");
        stderr_line!("ombx: {}", stderr::printable(&text));
    }
    if store.results.is_empty() {
        return Err(Error::usage(format!(
            "{name} has no result files with measured rows: give a directory with files that ombx run -o wrote (*.jsonl)"
        )));
    }
    Ok(store)
}

/// Prints how many results are sweeps without a series of each link.
pub(super) fn say_large_sweeps(directory: &Path, store: &Store) {
    let name = directory.display();
    let large = store.results.iter().filter(|result| result.is_large_sweep).count();
    if large > 0 {
        let text = format!(
            "{name}: sweeps over more than {MOST_RANKS} ranks ({large} of {}) have too many links for a series of each; only those that were \
             measured again are cases",
            store.results.len()
        );
        note_line!("ombx: {}", stderr::printable(&text));
    }
}

/// Returns the files with the newest result of each benchmark on the same hosts, the newest first, and how many files more there are.
pub(super) fn newest_files(directory: &Path, store: &Store, most: usize) -> (Vec<PathBuf>, usize) {
    let newest = newest(&store.results, &store.paths).into_iter();
    let mut files: Vec<PathBuf> = newest.map(|path| directory.join(path)).collect();
    let more = files.len().saturating_sub(most);
    files.truncate(most);
    (files, more)
}

/// Refuses to replace a result file of the directory by a page.
pub(super) fn check_page(page: &Path, option: &str, directory: &Path, store: &Store) -> Result<()> {
    let files: Vec<PathBuf> = store.paths.iter().map(|path| directory.join(path)).collect();
    target::check(page, option, files.iter().map(|file| (target::READ, file.as_path())))
}

/// Writes a page as a whole, or prints it.
pub(super) fn write_page(file: &Path, text: &str) -> Result<()> {
    if file == Path::new("-") {
        return terminal::print(text).map(drop);
    }
    let written = target::replace(file, text.as_bytes());
    written
        .map_err(|e| Error::storage(format!("cannot write the page to {}: {}", file.display(), reason(&e))))
}

impl HistoryArgs {
    fn contains(&self, case: &Case) -> bool {
        let named = |pattern: &glob::Pattern| pattern.matches(case.bench()) || pattern.matches(&case.key);
        self.bench.is_empty() || self.bench.iter().any(named)
    }
}

/// Returns the number of cases whose last change made them slower and is among their last runs.
fn became_slower(history: &History, runs: usize) -> usize {
    let is_slower = |series: &&Series| {
        series.changes.last().is_some_and(|last| last.ratio > 1.0 && series.points.len() - last.at <= runs)
    };
    history.series.iter().filter(is_slower).count()
}

fn print(history: &History, args: &HistoryArgs) -> io::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    match args.format {
        Format::Csv => render::history_csv(&mut out, history)?,
        Format::Json => writeln!(out, "{}", render::json(history))?,
        _ => {
            let (paint, columns) = (renderers::paint(args.color), terminal::columns());
            let screen = Screen { paint, columns, characters: renderers::characters() };
            render::table(&mut out, history, screen)?;
        }
    }
    out.flush()
}
