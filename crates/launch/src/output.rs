//! The output of a job: the screen and the result file.

pub mod destination;
mod files;
mod graphs;
pub mod junit;
mod link_judge;
pub mod monitoring;
pub(crate) mod progress;
pub(crate) mod relay;
pub mod renderers;
mod standard_output;
pub mod target;
pub mod terminal;

use std::{borrow::Cow, collections::BTreeMap, io, path::Path};

use ombx_drop_in::imb::ImbTable;
use ombx_estimate::{
    launches::{Cases, Group},
    percentiles::Percentiles,
    publishable::Reached,
    runs::EarlierRuns,
};
use ombx_links::verdict::LinkSweep;
use ombx_record::{
    error::{Error, Result},
    event::{Event, Rounds},
    fact::Fact,
    result::{Figure, Launched, MarkCode, Measurement, RunOutcome, Tally},
    unit::counted,
};
use ombx_show::{Renderer, links_status, map_so_far};

use crate::{
    job::{self, Job, Work},
    launch::start::AllocatedHosts,
    output::{
        destination::{Format, Screen},
        files::OutputFiles,
        graphs::Graphs,
        link_judge::LinkJudge,
        renderers::Notes,
        standard_output::StandardOutput,
    },
    result_file,
};

/// The screen and an optional result file. Each row is written to the file before it is printed.
#[derive(Default)]
pub(crate) struct Output {
    stdout: StandardOutput,
    files: OutputFiles,
    /// Figures of samples.
    graphs: Option<Graphs>,
    /// What the formats of OMB and IMB have no column for.
    notices: Option<Notices>,
    /// The job has a single launch, whose rows are printed as they arrive.
    one_launch: bool,
    estimates: Estimates,
    counts: RowCounts,
    /// A run has begun and has not ended.
    in_run: bool,
    /// Links of the run, to judge them at its end.
    links: Option<LinkJudge>,
    /// Links that were measured at the same time, until their round is written.
    rounds: Rounds,
    /// Transports between MPI ranks, if the launching process has asked for them.
    transport: Option<Fact>,
    /// Hosts of a batch system, until a run has begun.
    allocated: Option<AllocatedHosts>,
}

/// Numbers of rows of a job.
#[derive(Default)]
struct RowCounts {
    /// Rows of the current run.
    run: Tally,
    /// Number of rows of earlier runs.
    earlier: u64,
    /// Number of rows of cases that have ended their ranks, or were left out.
    unmeasured: u64,
}

impl RowCounts {
    /// Begins the tally of another run.
    fn next_run(&mut self) {
        self.earlier += std::mem::take(&mut self.run).cases;
    }

    /// Returns the number of rows of all runs.
    fn all(&self) -> u64 {
        self.earlier + self.run.cases
    }

    /// Returns the number of rows that were measured.
    fn measured(&self) -> u64 {
        self.all().saturating_sub(self.unmeasured)
    }
}

/// Rows over all launches.
#[derive(Default)]
struct Estimates {
    /// Rows of each launch.
    cases: Cases,
    /// Earlier runs, which tell where the next run lies.
    earlier: Option<EarlierRuns>,
    /// The user named the earlier runs.
    earlier_is_named: bool,
    /// The user asked for a precision that some row does not have.
    misses_precision: bool,
}

impl Estimates {
    /// Returns the rows of a group over all launches.
    fn rows(&mut self, group: &Group) -> Vec<Measurement> {
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
        rows
    }
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
            note_line!(
                "ombx: the samples do not resolve {name} of {rows}, which is printed nevertheless: {why}. More iterations (-i, IMB: -iter) \
                 resolve it"
            );
        }
        if !self.marks.is_empty() {
            let helps = self.marks.keys().map(|code| format!("ombx help {}", String::from(code.clone())));
            let helps = helps.collect::<Vec<_>>().join(", ");
            let marks: Vec<String> = self.marks.into_values().collect();
            note_line!("ombx: rows have marks: {}. What they mean: {helps}", marks.join(", "));
        }
    }
}

impl Output {
    /// Opens the result file. A path that cannot be written is an error before anything starts.
    pub(crate) fn open(job: &Job) -> Result<Output> {
        let (args, screen) = (&job.output, &job.output.screen);
        let (color, notes) = (args.color, Notes::if_verbose(args.verbose));
        let limit = job::job_time_limit(job.extent.time, job.start.timeout);
        let mut files = OutputFiles::open_at_end(args)?;
        // Before a file is replaced.
        let earlier = match &job.work {
            Work::Benchmarks(parts) if !job.launches.is_one() => {
                result_file::read_earlier_runs(job.against.as_deref(), args.file.as_deref())?
            }
            _ => None,
        };
        files.open_result(args, limit)?;
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
            stdout: StandardOutput::new(screen, renderer),
            files,
            graphs,
            one_launch: job.launches.is_one() || job.start.is_of_rank(),
            estimates: Estimates {
                cases: Cases::with_percentiles(percentiles),
                earlier,
                earlier_is_named: job.against.is_some(),
                misses_precision: false,
            },
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
            allocated: AllocatedHosts::unnamed(&job.start),
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
        self.counts.run
    }

    /// Returns the exit code of a complete run: that of its rows, or of the verdict on its links.
    pub(crate) fn exit_code(&self, allow_skips: bool) -> u8 {
        if let Some(links) = self.links.as_ref().filter(|links| links.is_monitored) {
            return links.verdict.as_ref().map_or(0, |verdict| links_status(verdict, links.tally).code());
        }
        match self.counts.run.exit_code(allow_skips) {
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
        &self.estimates.cases
    }

    /// Takes note of the end of a launch, on which the estimates depend. [`Output::launched`] writes it.
    pub(crate) fn after_launch(&mut self, launched: Launched) {
        self.estimates.cases.event(&Event::Launched(launched));
    }

    /// Writes what is known of the end of a launch whose rows are no links.
    pub(crate) fn launched(&mut self, launched: Launched) -> Result<()> {
        self.estimates.cases.set_ended(launched.ended);
        match self.links {
            Some(_) => Ok(()),
            None => self.write(&Event::Launched(launched)),
        }
    }

    /// Begins the run of another start of ranks. `continues` tells whether a later start of this launch has the same setup.
    pub(crate) fn next_start(&mut self, continues: bool) {
        self.counts.next_run();
        self.stdout.continues = continues && self.one_launch && self.stdout.has_comparisons();
    }

    /// Ends a run whose ranks have ended early, with the rows of cases that have failed or are left out. New ranks may continue its table.
    pub(crate) fn early_end(&mut self, rows: Vec<Measurement>) -> Result<()> {
        self.counts.unmeasured += rows.len() as u64;
        rows.iter().try_for_each(|row| self.event(&Event::row(row)))?;
        self.stdout.keeps_table = true;
        let ended = self.event(&Event::End { outcome: RunOutcome::Broken, tally: self.counts.run });
        self.stdout.keeps_table = false;
        ended
    }

    /// Returns a phrase about the rows until now.
    pub(crate) fn kept(&self) -> String {
        let rows = self.counts.measured();
        match self.files.result_path() {
            Some(path) if rows == 1 => format!("1 measured row is in {}", path.display()),
            Some(path) => format!("{rows} measured rows are in {}", path.display()),
            None if rows == 1 => "1 row had been measured".into(),
            None => format!("{rows} rows had been measured"),
        }
    }

    /// Takes an event of a launch. Links that are measured at the same time become one record when all are there.
    pub(crate) fn event(&mut self, event: &Event<'_>) -> Result<()> {
        if let Event::Interval(interval) = event {
            self.stdout.interval(interval);
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
            Event::Run(run) => {
                self.counts.next_run();
                if let Some(note) = self.allocated.take().and_then(|allocated| allocated.note(&run.places)) {
                    note_line!("ombx: {note}");
                }
            }
            Event::Row(row) => self.counts.run.add(row),
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
                    self.estimates.cases.event(event);
                    None
                }
            };
            if let Some(verdict) = verdict {
                let verdict = Event::Verdict(Cow::Owned(verdict));
                self.write(&verdict)?;
                self.stdout.render(&verdict)?;
                self.files.event(&verdict)?;
            }
        }
        if let Some(graphs) = &mut self.graphs {
            graphs.event(event);
        }
        // The launches of links that are complete count without one that never began.
        if stray && self.links.is_some() && self.counts.all() > 0 {
            return Ok(());
        }
        if self.one_launch || self.links.is_some() {
            self.files.event(event)?;
            if let Event::Row(row) = event {
                self.note(row);
            }
            self.stdout.show(event)?;
        }
        Ok(())
    }

    /// Writes and prints the rows over all launches. Fails if the result file was removed.
    pub(crate) fn finish(&mut self) -> Result<()> {
        if !self.one_launch {
            self.write_estimates()?;
        }
        self.stdout.finish()?;
        if let Some(graphs) = self.graphs.take().map(Graphs::finish) {
            self.stdout.print(|_, screen| graphs.print(screen))?;
            graphs.write(target::replace)?;
        }
        if self.links.as_ref().is_some_and(|links| links.is_monitored && links.verdict.is_some()) {
            monitoring::printed();
        }
        self.files.finish()?;
        if let Some(notices) = self.notices.take() {
            notices.print();
        }
        self.files.check_result()
    }

    /// Returns whether the user asked for a precision that some row over all launches does not have.
    pub(crate) fn misses_precision(&self) -> bool {
        self.estimates.misses_precision
    }

    /// Writes and prints one row per case.
    fn write_estimates(&mut self) -> Result<()> {
        for group in std::mem::take(&mut self.estimates.cases).groups() {
            let rows = self.estimates.rows(group);
            self.files.estimates(group)?;
            self.stdout.render(&Event::Run(Cow::Owned(group.described())))?;
            for row in &rows {
                let case = Event::Case(Cow::Borrowed(row));
                self.write(&case)?;
                self.note(row);
                self.stdout.render(&case)?;
            }
            let (outcome, tally) = (group.outcome(), ombx_estimate::launches::tally(&rows));
            self.stdout.render(&Event::End { outcome, tally })?;
        }
        Ok(())
    }

    /// Keeps what is printed below all rows.
    fn note(&mut self, row: &Measurement) {
        self.stdout.note(row);
        if let Some(notices) = &mut self.notices {
            notices.add(row);
        }
    }

    /// Writes an event to the file, and to the screen if that shows the lines of the file.
    fn write(&mut self, event: &Event<'_>) -> Result<()> {
        self.files.write(event)?;
        self.stdout.write_line(event, self.files.result_path())
    }
}

/// Returns the error that a result file cannot be written.
pub fn unwritable(path: &Path, why: &io::Error) -> Error {
    Error::storage(format!("cannot write results to {}: {}", path.display(), terminal::reason(why)))
}
