//! `ombx show`: prints result files.

use std::{
    borrow::Cow,
    collections::BTreeSet,
    env,
    io::{self, Seek, Write},
    ops::ControlFlow,
    path::{Path, PathBuf},
};

use clap::Args;
use comfy_table::{ContentArrangement, Table, presets};
use ombx_draw::terminal::samples;
use ombx_estimate::{
    launches::{Cases, Group},
    runs::EarlierRuns,
    samples::SampleStore,
    text::plain,
};
use ombx_launch::{
    note_line,
    output::{
        destination::{Color, Format},
        renderers::{self, Notes},
        target,
        terminal::{self, is_closed, print, reason},
        unwritable,
    },
    result_file::{self, KnownRuns, Sorter, no_sweep, records, say_cut_off, several_sweeps, without_times},
    stderr, stderr_line,
};
use ombx_links::{
    matrix::Bands,
    verdict::{LinkSweep, SweepCollector, SweptRun},
};
use ombx_record::{
    error::{Error, Result},
    event::Event,
    file::{self, RunWithRows},
    link,
    order::each_once,
    result::{Measurement, RunOutcome, Tally},
    unit::Bytes,
};
use ombx_show::{
    Broadcasts, Csv, OpenMetrics, Overhead, Renderer, Shown, columns, methods,
    provenance::{self, Section},
    wrapped,
};
use tempfile::SpooledTempFile;

use crate::{
    arguments::output::{COLORS, FORMATS, RowArgs, ShownArgs, has_columns, some_of},
    commands::history,
};

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// Result files; those of the same setup are launches of one result. With --format openmetrics also a directory: the newest result of
    /// each benchmark in it
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Format of the printed rows
    #[arg(long, default_value = "table", value_parser = some_of(&FORMATS))]
    format: Format,
    /// Show notes too, the marks that do not keep a row from being published
    #[arg(short, long)]
    verbose: bool,
    /// Draw a chart below each table
    #[arg(long)]
    plot: bool,
    /// Draw the samples of each case instead: over time, as a histogram, and the launches
    #[arg(long, conflicts_with_all = ["format", "plot"])]
    samples: bool,
    #[command(flatten)]
    rows: RowArgs,
    #[command(flatten)]
    shown: ShownArgs,
    /// Only these columns, in this order: titles of the table or their first words, such as bytes,us,95%,p99; in CSV whole names
    #[arg(long, value_name = "NAME,NAME", value_delimiter = ',', conflicts_with_all = ["samples", "matrix", "provenance"])]
    columns: Vec<String>,
    /// Write the times of `ombx links` to this file instead, as an array that NumPy reads: size, from, to, in microseconds
    #[arg(long, value_name = "FILE", conflicts_with_all = ["format", "plot", "samples", "rows", "sizes"])]
    matrix: Option<PathBuf>,
    /// Earlier results, a file or a directory: rows tell where the next run and the level of the machine lie
    #[arg(long, value_name = "PATH", conflicts_with_all = ["plot", "samples", "matrix", "provenance"])]
    against: Option<PathBuf>,
    /// Print where, when and how the rows were measured, a paragraph about the method for a publication, and a citation
    #[arg(long, conflicts_with_all = ["format", "plot", "samples", "matrix", "verbose", "rows", "sizes"])]
    provenance: bool,
    /// Use of colours
    #[arg(long, default_value = "auto", value_parser = some_of(&COLORS))]
    color: Color,
}

pub(crate) fn show(args: &ShowArgs) -> Result<u8> {
    if let Some(directory) = args.files.iter().find(|path| path.is_dir()) {
        return show_newest(directory, args);
    }
    let plot = renderers::plot_columns(args.format, args.plot)?;
    if args.samples {
        return show_samples(&args.files, &args.rows);
    }
    let shown = args.shown()?;
    if let Some(path) = &args.matrix {
        target::check(path, "--matrix", args.files.iter().map(|file| (target::READ, file.as_path())))?;
        target::check_path("--matrix", path)?;
    }
    if args.provenance {
        return show_provenance(&args.files);
    }
    let mut earlier = args.against.as_deref().map(result_file::earlier_runs).transpose()?;
    let mut cases = Cases::with_percentiles(shown.percentiles.clone());
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut known = KnownRuns::default();
    let mut sweeps = Sweeps::open(args)?;
    let mut sorter = Sorter::default();
    // The reader of standard output has closed it.
    let mut is_unread = false;
    // Benchmarks of rows that are not chosen, and whether anything is.
    let (mut left_out, mut is_any) = (BTreeSet::new(), false);
    for path in &args.files {
        let mut pass = |event: Event<'static>, is_sweep: bool| {
            let row = match &event {
                Event::Row(row) | Event::Case(row) => Some(row),
                _ => None,
            };
            let is_chosen = if is_sweep {
                args.rows.contains_sweeps()
            } else {
                row.is_none_or(|row| args.rows.contains(row))
            };
            if !is_chosen {
                let bench = row.map_or(link::BENCH, |row| &row.bench);
                left_out.insert(bench.to_owned());
                return Ok(());
            }
            is_any |= is_sweep || row.is_some();
            if is_sweep {
                return sweeps.event(&event);
            }
            cases.event(&event);
            Ok(())
        };
        let cut_off = known.each_until(records(path)?, path, |record| {
            if let (Event::Run(run), Some(earlier)) = (&record, &mut earlier) {
                earlier.forget(std::slice::from_ref(&run.id));
            }
            if args.format == Format::Jsonl {
                is_unread = is_closed(write_launches(&mut out, &record))?;
            }
            sorter.take(record, &mut pass)?;
            Ok(if is_unread { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        if is_unread {
            return Ok(0);
        }
        sorter.end(pass)?;
        if cut_off {
            say_cut_off(path, "shown");
        }
    }
    if !is_any && !left_out.is_empty() {
        return Err(RowArgs::no_row("the files", &left_out));
    }
    check_columns(&shown, args.format, &cases)?;
    if let (Some(path), Sweeps::Matrix(sweep)) = (&args.matrix, &mut sweeps) {
        return write_matrix(sweep.take().map(|(_, bands)| bands), path);
    }
    let links = sweeps.end().map_err(|e| no_temporary_file(&e))?;
    let shown = match renderers::rows(args.format, args.color, Notes::if_verbose(args.verbose), plot, &shown)
    {
        None => cases
            .groups()
            .iter()
            .flat_map(|group| estimates(group, earlier.as_ref()))
            .try_for_each(|row| file::write(&mut out, &Event::Case(Cow::Owned(row)))),
        Some(mut renderer) => {
            show_cases(&cases, earlier.as_ref(), &mut *renderer, args.format, &shown, &mut out)
        }
    };
    let written = shown.and_then(|()| match links {
        Some(mut text) => io::copy(&mut text, &mut out).map(drop),
        None => Ok(()),
    });
    is_closed(written.and_then(|()| out.flush()))?;
    Ok(0)
}

impl ShowArgs {
    /// Returns the units, percentiles and columns that are shown.
    fn shown(&self) -> Result<Shown> {
        let is_jsonl = self.format == Format::Jsonl;
        if is_jsonl && !self.rows.is_empty() {
            return Err(Error::usage("--format jsonl prints all rows: leave out --rows and --sizes"));
        }
        let shown = self.shown.shown(self.format)?;
        if !self.columns.is_empty() && !has_columns(self.format) {
            return Err(Error::usage(
                "--columns is for tables and CSV: leave it out, or choose another --format",
            ));
        }
        Ok(Shown { columns: self.columns.clone(), ..shown })
    }
}

/// Refuses the name of a column that no table of the rows has.
fn check_columns(shown: &Shown, format: Format, cases: &Cases) -> Result<()> {
    let of_group = |group: &Group| columns(shown, &group.described(), &group.estimates());
    let titles = match format {
        _ if shown.columns.is_empty() => return Ok(()),
        Format::Csv => Csv::columns(shown),
        _ => each_once(cases.groups().iter().flat_map(of_group)),
    };
    let Some(name) = shown.unknown_column(&titles) else { return Ok(()) };
    let titles = titles.join(", ");
    Err(Error::usage(format!("--columns: no column of these rows is called {name:?}; there are {titles}")))
}

/// Maximum number of files of a directory that are shown, the newest first.
const MOST_FILES: usize = 64;

/// Prints the newest result of each benchmark on the same hosts in a directory, for Prometheus.
fn show_newest(directory: &Path, args: &ShowArgs) -> Result<u8> {
    let name = directory.display();
    if args.format != Format::OpenMetrics {
        return Err(Error::storage(format!(
            "{name} is a directory, of which only --format openmetrics shows results: give result files, or see ombx history {name}"
        )));
    }
    if args.files.len() > 1 || args.against.is_some() {
        return Err(Error::usage(format!(
            "{name} is a directory: give it alone, without --against, or give result files"
        )));
    }
    let (files, more) = history::newest_files(directory, &history::read(directory)?, MOST_FILES);
    if more > 0 {
        let text = format!("the oldest {more} files of {name} with newest results are not shown");
        note_line!("ombx: {}", stderr::printable(&text));
    }
    let mut gauges = OpenMetrics::default();
    // A case that several files have gets the value of the newest one.
    for path in files.iter().rev() {
        match KnownRuns::default().read_found(path) {
            Ok(file) => gauges.result(&file.runs),
            Err(why) => stderr_line!("ombx: not shown: {}", stderr::printable(&why.to_string())),
        }
    }
    is_closed(gauges.finish(&mut io::BufWriter::new(io::stdout().lock())))?;
    Ok(0)
}

/// Longest text of sweeps that is kept in memory until the rows of benchmarks are written.
const MAX_IN_MEMORY: usize = 1 << 24;

/// Sweeps over links, which are shown after the rows of benchmarks.
enum Sweeps {
    /// The only sweep, whose times become an array: its last launch, and the rows of all.
    Matrix(Box<Option<(LinkSweep, Bands<SpooledTempFile>)>>),
    /// Text of the sweeps that were read.
    Shown { renderer: Box<dyn Renderer>, text: io::BufWriter<SpooledTempFile>, open: Option<Open>, any: bool },
    /// A format without links.
    Unshown,
}

/// A run of a sweep that is read.
#[derive(Default)]
struct Open {
    tally: Tally,
    end: Option<(RunOutcome, Tally)>,
}

impl Sweeps {
    fn open(args: &ShowArgs) -> Result<Sweeps> {
        if args.matrix.is_some() {
            return Ok(Sweeps::Matrix(Box::default()));
        }
        let renderer = renderers::links(args.format, args.color, Notes::if_verbose(args.verbose));
        Ok(renderer.filter(|_| args.format != Format::Jsonl).map_or(Sweeps::Unshown, |renderer| {
            Sweeps::Shown {
                renderer,
                text: io::BufWriter::new(SpooledTempFile::new(MAX_IN_MEMORY)),
                open: None,
                any: false,
            }
        }))
    }

    fn event(&mut self, event: &Event<'_>) -> Result<()> {
        match self {
            Sweeps::Matrix(sweep) => add_to_matrix(sweep, event).map_err(|e| e.within("--matrix")),
            Sweeps::Shown { renderer, text, open, any } => {
                *any = true;
                show_link(&mut **renderer, text, open, event).map_err(|e| no_temporary_file(&e))
            }
            Sweeps::Unshown => Ok(()),
        }
    }

    /// Ends the text of all sweeps, and returns it; `None` in a format without links.
    fn end(self) -> io::Result<Option<SpooledTempFile>> {
        let Sweeps::Shown { mut renderer, mut text, open, any } = self else { return Ok(None) };
        if let Some(open) = open {
            open.end(&mut *renderer, &mut text)?;
        }
        if any {
            renderer.finish(&mut text)?;
        }
        let mut text = text.into_inner()?;
        text.rewind()?;
        Ok(Some(text))
    }
}

/// Returns the error of the temporary file for links.
fn no_temporary_file(why: &io::Error) -> Error {
    Error::storage(format!(
        "cannot write a temporary file below {} for the links: {}. Name a directory with enough space in TMPDIR",
        env::temp_dir().display(),
        reason(why)
    ))
}

impl Open {
    fn end(self, renderer: &mut dyn Renderer, text: &mut dyn Write) -> io::Result<()> {
        let (outcome, tally) = self.end.unwrap_or((RunOutcome::Broken, self.tally));
        renderer.event(text, &Event::End { outcome, tally })
    }
}

/// Shows an event of a sweep. The end of a run is shown after the verdict that follows it in the file.
fn show_link(
    renderer: &mut dyn Renderer,
    text: &mut dyn Write,
    open: &mut Option<Open>,
    event: &Event<'_>,
) -> io::Result<()> {
    match (event, open.as_mut()) {
        (Event::Run(_), _) => {
            if let Some(last) = open.replace(Open::default()) {
                last.end(renderer, text)?;
            }
            renderer.event(text, event)
        }
        (Event::Row(row), Some(open)) => {
            open.tally.add(row);
            renderer.event(text, event)
        }
        (Event::Round(round), Some(open)) => {
            open.tally.cases += round.len() as u64;
            renderer.event(text, event)
        }
        (Event::End { outcome, tally }, Some(open)) => {
            open.end = Some((*outcome, *tally));
            Ok(())
        }
        (Event::Verdict(_), Some(_)) => renderer.event(text, event),
        _ => Ok(()),
    }
}

/// Adds a record to the only sweep.
fn add_to_matrix(sweep: &mut Option<(LinkSweep, Bands<SpooledTempFile>)>, record: &Event<'_>) -> Result<()> {
    let unwritable = |e: io::Error| no_temporary_file(&e);
    match (record, sweep.as_mut()) {
        (Event::Run(run), None) => {
            let first = LinkSweep::of_run(run);
            let bands = Bands::new(first.hosts.ranks(), SpooledTempFile::new(0));
            *sweep = Some((first, bands));
        }
        (Event::Run(run), Some((known, _))) if known.continues_with(run) => known.begin(run),
        (Event::Run(_), Some(_)) => return Err(several_sweeps()),
        (Event::Round(round), Some((_, bands))) => bands.add_round(round).map_err(unwritable)?,
        (Event::Row(row), Some((_, bands))) => bands.add(row).map_err(unwritable)?,
        _ => {}
    }
    Ok(())
}

/// Writes the rows over all launches.
fn show_cases(
    cases: &Cases,
    earlier: Option<&EarlierRuns>,
    renderer: &mut dyn Renderer,
    format: Format,
    shown: &Shown,
    out: &mut dyn Write,
) -> io::Result<()> {
    let unit = shown.units.of_times();
    let (mut overhead, mut broadcasts) = (Overhead::in_unit(unit), Vec::new());
    for group in cases.groups() {
        let rows = estimates(group, earlier);
        let mut of_group = Broadcasts::in_unit(unit);
        renderer.event(out, &Event::Run(Cow::Owned(group.described())))?;
        for row in &rows {
            overhead.add(row);
            of_group.add(row);
            renderer.event(out, &Event::row(row))?;
        }
        broadcasts.push(of_group);
        let (outcome, tally) = (group.outcome(), ombx_estimate::launches::tally(&rows));
        renderer.event(out, &Event::End { outcome, tally })?;
    }
    if !cases.groups().is_empty() {
        renderer.finish(out)?;
    }
    if format == Format::Table {
        overhead.write(out)?;
        broadcasts.iter().try_for_each(|broadcasts| broadcasts.write(out))?;
    }
    Ok(())
}

/// Writes the array of the only sweep over links among the runs.
fn write_matrix(bands: Option<Bands<SpooledTempFile>>, path: &Path) -> Result<u8> {
    let bands = bands.ok_or_else(|| no_sweep().within("--matrix"))?;
    let sizes: Vec<String> = bands.sizes().iter().map(|bytes| Bytes(*bytes).to_string()).collect();
    let ranks = bands.ranks();
    target::replace_by(path, |out| bands.write(out)).map_err(|e| unwritable(path, &e))?;
    let count = sizes.len();
    let what = "median microseconds, NaN: not measured";
    let shape = format!("float64 ({count}, {ranks}, {ranks}): message sizes {}, from, to", sizes.join(" "));
    print(format!("{}: {shape}; {what}\n", path.display()))
}

/// Writes an event of a launch as it is in its file.
fn write_launches(out: &mut dyn Write, event: &Event<'_>) -> io::Result<()> {
    match event {
        // Rows over all launches are written last.
        Event::Case(_) => Ok(()),
        event => file::write(out, event),
    }
}

/// Returns the rows over all launches of a setup, with what earlier runs say.
fn estimates(group: &Group, earlier: Option<&EarlierRuns>) -> Vec<Measurement> {
    let mut rows = group.estimates();
    for row in &mut rows {
        let between = earlier.map(|earlier| earlier.between(&group.run, row));
        if let Some(over) = row.launches.as_mut().filter(|over| over.medians_ns.len() > 1) {
            over.between = between;
        }
    }
    rows
}

/// Draws the chosen cases of all files. Files of the same setup are launches of one result.
fn show_samples(files: &[PathBuf], rows: &RowArgs) -> Result<u8> {
    let (mut store, mut known) = (SampleStore::default(), KnownRuns::default());
    for path in files {
        let (mut sorter, mut add) = (Sorter::default(), |event: Event<'static>, is_sweep: bool| {
            if !is_sweep {
                store.event(&event);
            }
            Ok(())
        });
        known.each(records(path)?, path, |record| sorter.take(record, &mut add))?;
        sorter.end(add)?;
    }
    let cases = rows.choose(store.into_cases(), "the files")?;
    if cases.is_empty() {
        return Err(Error::usage(
            "--samples draws rows of benchmarks, but there are none; ombx plot draws links",
        ));
    }
    let mut out = io::BufWriter::new(io::stdout().lock());
    let (columns, characters) = (renderers::columns(), renderers::characters());
    let drawn = cases.iter().try_for_each(|case| samples::draw(&mut out, case, columns, characters));
    is_closed(drawn.and_then(|()| out.flush()))?;
    Ok(0)
}

/// Prints the provenance of the runs of all files. The launches of one setup are one result; sweeps over links are shown one by one.
fn show_provenance(files: &[PathBuf]) -> Result<u8> {
    let (mut cases, mut known, mut links) = (Cases::default(), KnownRuns::default(), Vec::new());
    for path in files {
        let (mut sweeps, mut sorter) = (SweepCollector::default(), Sorter::default());
        let mut pass = |event: Event<'static>, is_sweep: bool| {
            if is_sweep {
                sweeps.event(without_times(event));
            } else {
                cases.event(&event);
            }
            Ok(())
        };
        known.each(records(path)?, path, |record| sorter.take(record, &mut pass))?;
        sorter.end(pass)?;
        links.extend(sweeps.end());
    }
    let groups = cases.groups().iter().map(|group| SweptRun::from(RunWithRows::from(group)));
    let results: Vec<SweptRun> = groups.chain(links).collect();
    if results.is_empty() {
        return Err(Error::usage("--provenance: the files have no runs"));
    }
    let width = terminal::columns();
    let mut text = Vec::new();
    write(&mut text, &results, width).map_err(|e| Error::storage(format!("standard output: {e}")))?;
    print(text)
}

fn write(out: &mut dyn Write, results: &[SweptRun], width: Option<usize>) -> io::Result<()> {
    for (at, result) in results.iter().enumerate() {
        if at > 0 {
            writeln!(out)?;
        }
        for Section { title, values } in provenance::sections(result) {
            writeln!(out, "{title}\n{}\n", table(&values, width))?;
        }
        let paragraph = plain(&methods::paragraph(result));
        // A pipe gets it in one line.
        let paragraph = width.map_or(paragraph.clone(), |width| wrapped(&paragraph, width).join("\n"));
        writeln!(out, "Methods, for a publication\n\n{paragraph}\n")?;
        write!(out, "Citation\n\n{}", methods::bibtex(&result.run.run))?;
    }
    Ok(())
}

/// Returns names and values in two columns, as wide as the terminal.
fn table(values: &[(String, String)], width: Option<usize>) -> String {
    if values.is_empty() {
        return "  none".into();
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    if let Some(width) = width {
        table
            .set_content_arrangement(ContentArrangement::Dynamic)
            .set_width(u16::try_from(width).unwrap_or(u16::MAX));
    }
    for (name, value) in values {
        table.add_row([format!(" {}", plain(name)), plain(value)]);
    }
    let lines = table.to_string();
    lines.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_temporary_file_that_cannot_be_written_is_explained() {
        let text = no_temporary_file(&io::ErrorKind::StorageFull.into()).to_string();
        assert!(text.contains(": the disk is full. Name a directory") && text.ends_with("TMPDIR"), "{text}");
    }

    #[test]
    fn values_are_wrapped_to_the_terminal_and_nowhere_else() {
        let values =
            [("kernel command line".to_owned(), "quiet ".repeat(30)), ("cpu".to_owned(), "a\x1b[2Jb".into())];
        let narrow = table(&values, Some(60));
        assert!(
            narrow.lines().count() > 3 && narrow.lines().all(|line| line.chars().count() <= 60),
            "{narrow}"
        );
        let free = table(&values, None);
        assert_eq!(free.lines().count(), 2, "{free}");
        assert!(!free.contains('\x1b'), "{free}");
    }
}
