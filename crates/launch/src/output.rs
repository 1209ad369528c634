//! The output of a job: the screen and the result file.

pub mod destination;
mod graphs;
pub mod junit;
mod link_judge;
pub mod monitoring;
pub(crate) mod progress;
pub(crate) mod relay;
pub mod renderers;
pub mod target;
pub mod terminal;

use std::{
    borrow::Cow,
    collections::BTreeMap,
    io::{self, Write},
    path::{Path, PathBuf},
};

use ombx_drop_in::imb::ImbTable;
use ombx_estimate::{
    launches::Cases, number::Units, percentiles::Percentiles, publishable::Reached, runs::EarlierRuns,
    text::plain,
};
use ombx_links::verdict::LinkSweep;
use ombx_record::{
    error::{Error, Result},
    event::{Event, Rounds},
    fact::Fact,
    file,
    result::{Figure, Interval, Launched, MarkCode, Measurement, RunOutcome, Tally},
    unit::counted,
};
use ombx_show::{
    Broadcasts, LinksForm, LinksSummary, OpenMetrics, Overhead, Renderer, links_status, map_so_far,
};

use crate::{
    job::{self, Job, Work},
    output::{
        destination::{Format, Screen},
        graphs::Graphs,
        link_judge::LinkJudge,
        renderers::Notes,
        target::{FileAtEnd, ResultTarget},
        terminal::is_closed,
    },
    result_file,
};

/// The screen and an optional result file. Each row is written to the file before it is printed.
#[derive(Default)]
pub(crate) struct Output {
    /// `None` if the lines of the result file are printed.
    renderer: Option<Box<dyn Renderer>>,
    file: Option<ResultTarget>,
    /// Files for Prometheus and for CI systems.
    at_end: Vec<FileAtEnd>,
    /// Figures of samples.
    graphs: Option<Graphs>,
    /// The reader of standard output has closed it; nothing more is printed.
    stdout_closed: bool,
    /// The job has a single launch, whose rows are printed as they arrive.
    one_launch: bool,
    /// Rows of all launches.
    cases: Cases,
    /// Rows of the current run.
    tally: Tally,
    /// Number of rows of earlier runs.
    earlier_rows: u64,
    /// Ranks of another kind measure the rest of what the screen shows as one table.
    continues: bool,
    /// Rows of the table on the screen whose end is not printed yet.
    open_table: Option<Tally>,
    /// New ranks may continue the table of a run that has ended early.
    keeps_table: bool,
    /// Number of rows of cases that have ended their ranks, or were left out.
    unmeasured: u64,
    /// A run has begun and has not ended.
    in_run: bool,
    /// Comparisons of rows that are printed below tables: MPI with sockets, and algorithms of a broadcast.
    comparisons: Option<(Overhead, Broadcasts)>,
    /// What the formats of OMB and IMB have no column for.
    notices: Option<Notices>,
    /// Links of the run, to judge them at its end.
    links: Option<LinkJudge>,
    /// Links that were measured at the same time, until their round is written.
    rounds: Rounds,
    /// Transports between MPI ranks, if the launching process has asked for them.
    transport: Option<Fact>,
    /// The user asked for a precision that some row does not have.
    misses_precision: bool,
    /// Units of figures on the screen.
    units: Units,
    /// Earlier runs, which tell where the next run lies.
    earlier: Option<EarlierRuns>,
    /// The user named the earlier runs.
    earlier_is_named: bool,
}

/// What standard error says below a table of another suite, once for all rows.
#[derive(Default)]
struct Notices {
    /// Short texts of marks by code.
    marks: BTreeMap<MarkCode, String>,
    /// Figures that are not resolved: the number of rows, and the reason of the first.
    unresolved: BTreeMap<String, (u64, String)>,
}

impl Notices {
    fn add(&mut self, row: &Measurement) {
        // Tables of other suites have no intervals.
        let doubts = row.doubts().filter(|mark| mark.code != MarkCode::NoInterval);
        self.marks.extend(doubts.map(|mark| (mark.code.clone(), mark.short.clone())));
        for (name, figure) in &row.figures {
            if let Figure::Unresolved(why) = figure {
                self.unresolved.entry(name.clone()).or_insert_with(|| (0, why.clone())).0 += 1;
            }
        }
    }

    fn print(self) {
        for (name, (rows, why)) in self.unresolved {
            let rows = counted(rows, "row");
            // The advice is about an option of `ombx run`.
            let why = why.split(": raise ").next().unwrap_or_default();
            stderr_line!(
                "ombx: the samples do not resolve {name} of {rows}, which is printed nevertheless: {why}. More iterations (-i, IMB: -iter) \
                 resolve it"
            );
        }
        if !self.marks.is_empty() {
            let marks: Vec<String> = self.marks.into_values().collect();
            stderr_line!("ombx: rows have marks: {}. ombx run prints advice for each", marks.join(", "));
        }
    }
}

impl Output {
    /// Opens the result file. A path that cannot be written is an error before anything starts.
    pub(crate) fn open(job: &Job) -> Result<Output> {
        let (args, screen) = (&job.output, &job.output.screen);
        let (color, notes) = (args.color, Notes::if_verbose(args.verbose));
        let limit = job::job_time_limit(job.extent.time, job.start.timeout);
        let mut at_end = Vec::new();
        if let Some(path) = screen.junit().cloned() {
            let report = LinksSummary::new(LinksForm::Text(junit::links));
            at_end.push(FileAtEnd::open("--junit", path, Box::new(report))?);
        }
        if let Some(path) = args.openmetrics.clone() {
            at_end.push(FileAtEnd::open("--openmetrics", path, Box::new(OpenMetrics::default()))?);
        }
        let path = args.file.as_ref();
        // Before a file is replaced.
        let earlier = match &job.work {
            Work::Benchmarks(parts) if !job.launches.is_one() => {
                result_file::read_earlier_runs(job.against.as_deref(), path.map(PathBuf::as_path))?
            }
            _ => None,
        };
        let file = path.map(|path| ResultTarget::open(path, args.existing, limit)).transpose()?;
        let (mut percentiles, mut graphs) = (Percentiles::default(), None);
        let renderer: Option<Box<dyn Renderer>> = match screen {
            Screen::Rows { format, plot, shown } => {
                percentiles = shown.percentiles.clone();
                renderers::rows(*format, color, notes, plot.then(renderers::columns), shown)
            }
            Screen::Links { format, .. } => renderers::links(*format, color, notes),
            Screen::Osu { columns, graphs: request } => {
                graphs = request.clone().map(Graphs::open).transpose()?;
                Some(renderers::osu(columns.clone()))
            }
            Screen::Imb(program) => Some(Box::new(ImbTable::new(program.clone()))),
        };
        let format = screen.format();
        Ok(Output {
            renderer,
            file,
            at_end,
            graphs,
            one_launch: job.launches.is_one() || job.start.is_of_rank(),
            cases: Cases::with_percentiles(percentiles),
            comparisons: (format == Some(Format::Table)).then(|| {
                let unit = screen.units().of_times();
                (Overhead::in_unit(unit), Broadcasts::in_unit(unit))
            }),
            notices: format.is_none().then(Notices::default),
            links: match &job.work {
                Work::Links(task, _) => Some(LinkJudge {
                    sweep: LinkSweep::default().against(task.criteria.reference.clone()),
                    fail_on: task.criteria.fail_on,
                    is_shown: matches!(
                        format,
                        Some(Format::Table | Format::Json | Format::Nagios | Format::Junit)
                    ),
                    is_monitored: format == Some(Format::Nagios),
                    is_interim: !args.quiet && format != Some(Format::Nagios),
                    ..LinkJudge::default()
                }),
                Work::Benchmarks(_) => None,
            },
            units: screen.units(),
            earlier,
            earlier_is_named: job.against.is_some(),
            ..Output::default()
        })
    }

    /// Sets the transports that the records of runs over MPI name.
    pub(crate) fn set_transport(&mut self, transport: Fact) {
        self.transport = Some(transport);
    }

    /// Returns the event of a run with its transport; `None` for other events.
    fn with_transport(&self, event: &Event<'_>) -> Option<Event<'static>> {
        let Event::Run(run) = event else { return None };
        (run.fabric == "mpi").then(|| {
            let mut run = run.clone().into_owned();
            let why = "ombx asks the library only in jobs whose ranks it starts itself";
            let transport = self.transport.clone().unwrap_or_else(|| Fact::Unknown { reason: why.into() });
            run.software.insert("transport".into(), transport);
            Event::Run(Cow::Owned(run))
        })
    }

    pub(crate) fn tally(&self) -> Tally {
        self.tally
    }

    /// Returns the exit code of a complete run: that of its rows, or of the verdict on its links.
    pub(crate) fn exit_code(&self, allow_skips: bool) -> u8 {
        if let Some(links) = self.links.as_ref().filter(|links| links.is_monitored) {
            return links.verdict.as_ref().map_or(0, |verdict| links_status(verdict, links.tally).code());
        }
        match self.tally.exit_code(allow_skips) {
            0 => self.links.as_ref().map_or(0, LinkJudge::exit_code),
            code => code,
        }
    }

    /// Returns the map of the links measured until now in at most `widest` columns; `None` without links.
    pub(crate) fn map(&self, widest: usize) -> Option<String> {
        let mut sweep = Cow::Borrowed(&self.links.as_ref()?.sweep);
        for round in self.rounds.open() {
            sweep.to_mut().add_round(round);
        }
        map_so_far(&sweep, widest)
    }

    /// Returns the rows of all launches until now.
    pub(crate) fn cases(&self) -> &Cases {
        &self.cases
    }

    /// Takes note of the end of a launch, on which the estimates depend. [`Output::launched`] writes it.
    pub(crate) fn after_launch(&mut self, launched: Launched) {
        self.cases.event(&Event::Launched(launched));
    }

    /// Writes what is known of the end of a launch whose rows are no links.
    pub(crate) fn launched(&mut self, launched: Launched) -> Result<()> {
        self.cases.set_ended(launched.ended);
        match self.links {
            Some(_) => Ok(()),
            None => self.write(&Event::Launched(launched)),
        }
    }

    /// Begins the run of another start of ranks. `continues` tells whether a later start of this launch has the same setup.
    pub(crate) fn next_start(&mut self, continues: bool) {
        self.next_run();
        self.continues = continues && self.one_launch && self.comparisons.is_some();
    }

    /// Ends a run whose ranks have ended early, with the rows of cases that have failed or are left out. New ranks may continue its table.
    pub(crate) fn early_end(&mut self, rows: Vec<Measurement>) -> Result<()> {
        self.unmeasured += rows.len() as u64;
        rows.iter().try_for_each(|row| self.event(&Event::row(row)))?;
        self.keeps_table = true;
        let ended = self.event(&Event::End { outcome: RunOutcome::Broken, tally: self.tally });
        self.keeps_table = false;
        ended
    }

    /// Returns a phrase about the rows until now.
    pub(crate) fn kept(&self) -> String {
        let rows = self.rows().saturating_sub(self.unmeasured);
        match &self.file {
            Some(file) if rows == 1 => format!("1 measured row is in {}", file.path().display()),
            Some(file) => format!("{rows} measured rows are in {}", file.path().display()),
            None if rows == 1 => "1 row had been measured".into(),
            None => format!("{rows} rows had been measured"),
        }
    }

    /// Begins the tally of another run.
    fn next_run(&mut self) {
        self.earlier_rows += std::mem::take(&mut self.tally).cases;
    }

    /// Returns the number of rows of all runs.
    fn rows(&self) -> u64 {
        self.earlier_rows + self.tally.cases
    }

    /// Takes an event of a launch. Links that are measured at the same time become one record when all are there.
    pub(crate) fn event(&mut self, event: &Event<'_>) -> Result<()> {
        if let Event::Interval(interval) = event {
            self.interval(interval);
        }
        if !event.is_kept() {
            return Ok(());
        }
        let (ended, is_taken) = match event {
            Event::Row(row) if self.links.is_some() => self.rounds.add(row),
            _ => (self.rounds.end(), false),
        };
        ended.into_iter().try_for_each(|round| self.pass(&Event::Round(Cow::Owned(round))))?;
        if !is_taken {
            self.pass(event)?;
        }
        match event {
            Event::Run(_) => self.next_run(),
            Event::Row(row) => self.tally.add(row),
            _ => {}
        }
        Ok(())
    }

    /// Writes an event to the file. The screen shows it now if the job has a single launch. The renderer of links collects their
    /// launches itself.
    fn pass(&mut self, event: &Event<'_>) -> Result<()> {
        let with_transport = self.with_transport(event);
        let event = with_transport.as_ref().unwrap_or(event);
        // A launch may fail before its run begins. The file then has nothing to end.
        let ends = matches!(event, Event::End { .. });
        let stray = ends && !self.in_run;
        self.in_run = !ends;
        if !stray {
            match event {
                // The only launch of a case is all of them.
                Event::Row(row) if self.one_launch => self.write(&Event::Case(Cow::Borrowed(row)))?,
                event => self.write(event)?,
            }
            let verdict = match &mut self.links {
                Some(links) => links.event(event),
                None => {
                    self.cases.event(event);
                    None
                }
            };
            if let Some(verdict) = verdict {
                let verdict = Event::Verdict(Cow::Owned(verdict));
                self.write(&verdict)?;
                self.render(&verdict)?;
                for file in &mut self.at_end {
                    file.event(&verdict).map_err(|e| unwritable(&file.path, &e))?;
                }
            }
        }
        if let Some(graphs) = &mut self.graphs {
            graphs.event(event);
        }
        // The launches of links that are complete count without one that never began.
        if stray && self.links.is_some() && self.rows() > 0 {
            return Ok(());
        }
        if self.one_launch || self.links.is_some() {
            for file in &mut self.at_end {
                file.event(event).map_err(|e| unwritable(&file.path, &e))?;
            }
            if let Event::Row(row) = event {
                self.note(row);
            }
            self.show(event)?;
        }
        Ok(())
    }

    /// Prints an event. The runs of a launch that have one setup are one table.
    fn show(&mut self, event: &Event<'_>) -> Result<()> {
        match event {
            Event::Run(_) if self.open_table.is_some() => Ok(()),
            Event::End { outcome, tally } => {
                let tally = self.open_table.take().map_or(*tally, |earlier| earlier.plus(*tally));
                if self.keeps_table || self.continues && *outcome == RunOutcome::Complete {
                    self.open_table = Some(tally);
                    return Ok(());
                }
                self.render(&Event::End { outcome: *outcome, tally })
            }
            event => self.render(event),
        }
    }

    /// Writes and prints the rows over all launches. Fails if the result file was removed.
    pub(crate) fn finish(&mut self) -> Result<()> {
        if !self.one_launch {
            self.estimates()?;
        }
        if let Some(tally) = self.open_table.take() {
            self.render(&Event::End { outcome: RunOutcome::Broken, tally })?;
        }
        let comparisons = self.comparisons.take();
        self.print(|renderer, screen| {
            renderer.finish(screen)?;
            comparisons.map_or(Ok(()), |(overhead, broadcasts)| {
                overhead.write(screen)?;
                broadcasts.write(screen)
            })
        })?;
        if let Some(graphs) = self.graphs.take().map(Graphs::finish) {
            self.print(|_, screen| graphs.print(screen))?;
            graphs.write(target::replace)?;
        }
        if self.links.as_ref().is_some_and(|links| links.is_monitored && links.verdict.is_some()) {
            monitoring::printed();
        }
        for file in &mut self.at_end {
            let text = file.finish();
            let written =
                text.and_then(|text| text.map_or(Ok(()), |text| target::replace(&file.path, &text)));
            written.map_err(|e| unwritable(&file.path, &e))?;
        }
        if let Some(notices) = self.notices.take() {
            notices.print();
        }
        match &self.file {
            Some(file) if file.is_removed() => Err(Error::storage(format!(
                "results are lost: {} was removed while it was written",
                file.path().display()
            ))),
            _ => Ok(()),
        }
    }

    /// Returns whether the user asked for a precision that some row over all launches does not have.
    pub(crate) fn misses_precision(&self) -> bool {
        self.misses_precision
    }

    /// Writes and prints one row per case.
    fn estimates(&mut self) -> Result<()> {
        for group in std::mem::take(&mut self.cases).groups() {
            let mut rows = group.estimates();
            if let Some(earlier) = &self.earlier {
                for row in &mut rows {
                    let between = earlier.between(&group.run, row);
                    // Files that nobody named are worth columns only if they tell something.
                    if self.earlier_is_named || between.next_ns.is_some() {
                        row.launches.iter_mut().for_each(|over| over.between = Some(between));
                    }
                }
            }
            let mut reached = Reached::new(&group.described());
            rows.iter().for_each(|row| reached.add(row));
            self.misses_precision |= reached.is_missed();
            for file in &mut self.at_end {
                file.estimates(group).map_err(|e| unwritable(&file.path, &e))?;
            }
            self.render(&Event::Run(Cow::Owned(group.described())))?;
            for row in &rows {
                let case = Event::Case(Cow::Borrowed(row));
                self.write(&case)?;
                self.note(row);
                self.render(&case)?;
            }
            let (outcome, tally) = (group.outcome(), ombx_estimate::launches::tally(&rows));
            self.render(&Event::End { outcome, tally })?;
        }
        Ok(())
    }

    /// Keeps what is printed below all rows.
    fn note(&mut self, row: &Measurement) {
        if let Some((overhead, broadcasts)) = &mut self.comparisons {
            overhead.add(row);
            broadcasts.add(row);
        }
        if let Some(notices) = &mut self.notices {
            notices.add(row);
        }
    }

    /// Prints the figure of an interval of a row that is still measured: as a line of JSON on standard output if that shows the lines of the
    /// file, else on standard error.
    fn interval(&self, interval: &Interval) {
        if self.renderer.is_some() {
            stderr_line!("ombx: {}", plain(&renderers::line(interval, self.units)));
        } else if !self.stdout_closed {
            let mut screen = io::stdout().lock();
            // The next record finds out that the reader is gone.
            let interval = Event::Interval(Cow::Borrowed(interval));
            let _ = file::write(&mut screen, &interval).and_then(|()| screen.flush());
        }
    }

    /// Writes an event to the file, and to the screen if that shows the lines of the file.
    fn write(&mut self, event: &Event<'_>) -> Result<()> {
        if let Some(file) = self.file.as_mut() {
            file.write(|out| file::write(out, event))?;
        }
        if self.renderer.is_none() && !self.stdout_closed {
            let mut screen = io::stdout().lock();
            let printed = file::write(&mut screen, event).and_then(|()| screen.flush());
            self.stdout_closed = is_closed(printed)?;
        }
        Ok(())
    }

    fn render(&mut self, event: &Event<'_>) -> Result<()> {
        self.print(|renderer, screen| renderer.event(screen, event))
    }

    fn print(
        &mut self,
        print: impl FnOnce(&mut dyn Renderer, &mut dyn Write) -> io::Result<()>,
    ) -> Result<()> {
        if let Some(renderer) = self.renderer.as_mut().filter(|_| !self.stdout_closed) {
            let mut screen = io::stdout().lock();
            let printed = print(&mut **renderer, &mut screen).and_then(|()| screen.flush());
            self.stdout_closed = is_closed(printed)?;
        }
        Ok(())
    }
}

/// Returns the error that a result file cannot be written.
pub fn unwritable(path: &Path, why: &io::Error) -> Error {
    Error::storage(format!("cannot write results to {}: {}", path.display(), terminal::reason(why)))
}
