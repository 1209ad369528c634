//! `ombx check`: measures what a file demands of a node or a cluster, and says in one line whether the limits are met.

mod expectations;
mod judgement;
mod measurement;
mod report;

use std::{path::PathBuf, time::Duration};

use clap::{Args, Command};
use ombx_core::benchmark::Registry;
use ombx_estimate::baseline::Baseline;
use ombx_host::{environment::timestamp, host::HostState};
use ombx_launch::{
    launch::detection,
    output::{
        destination::Format,
        monitoring,
        target::{self, ResultTarget},
        terminal, unwritable,
    },
    stderr_line,
};
use ombx_record::{
    error::{Error, Result},
    unit,
};
use rustix::process::{getpriority_process, setpriority_process};

use self::{
    expectations::{BaselineDirectory, Expectations, MOST_NICE},
    judgement::{Finding, GoodDays, Misses, State},
    measurement::Budget,
    report::Report,
};
use crate::arguments::{
    output::{FileArgs, JSON, JUNIT, NAGIOS, some_of},
    values,
};

/// Number of characters of the date in a time of RFC 3339.
const DATE: usize = 10;

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// File of limits and of the directory with good days; - for standard input; ombx help expectations prints an example
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Add the result as a good day to the directory `baseline` of FILE, unless a limit is missed
    #[arg(long, help_heading = "Check")]
    learn: bool,
    /// Time for all measurements [default: that of the file, or 60s]
    #[arg(
        long, value_name = "TIME", allow_hyphen_values = true, value_parser = unit::parse_duration,
        help_heading = "Check"
    )]
    budget: Option<Duration>,
    /// Niceness of the ranks on this host [default: that of the file, or 10]
    #[arg(long, value_name = "N", value_parser = values::number::<i32>(0..=MOST_NICE), help_heading = "Check")]
    nice: Option<i32>,
    /// Format of the result
    #[arg(long, default_value = "table", value_parser = some_of(&FORMATS), help_heading = "Output")]
    format: Format,
    /// Directory that keeps the measured rows of each check in a new result file, named after time and host
    #[arg(long, value_name = "DIRECTORY", help_heading = "Output")]
    store: Option<PathBuf>,
    /// Also write the result for Prometheus to this file, for its textfile collector; the file is replaced as a whole at the end
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    openmetrics: Option<PathBuf>,
    /// JUnit report to write beside what is printed; a missed limit is a failure
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    junit: Option<PathBuf>,
    /// Print nothing if all limits are met
    #[arg(short, long, help_heading = "Output")]
    quiet: bool,
    #[command(flatten)]
    out: FileArgs,
}

/// Formats of the result.
const FORMATS: [(&str, &str, Format); 4] =
    [("table", "Table for people", Format::Table), JSON, NAGIOS, JUNIT];

pub(crate) fn check(registry: &Registry, parser: &Command, args: &CheckArgs) -> Result<u8> {
    detection::refuse_launcher("ombx check", "and choose their number in the file")?;
    args.out.refuse_stdout("ombx check")?;
    let expectations = Expectations::read(&args.file, registry, parser)?;
    let good = good_days(&expectations, args)?;
    let out = args.out.out.as_ref();
    let derived = [("--openmetrics", args.openmetrics.as_ref()), ("--junit", args.junit.as_ref())];
    let of_entries = expectations.entries.iter().flat_map(|entry| entry.used.clone());
    let used: Vec<_> =
        [("the file of expectations", args.file.clone())].into_iter().chain(of_entries).collect();
    target::check_all(&[&[("-o", out)], derived.as_slice()].concat(), &used)?;
    for (option, path) in derived {
        path.map_or(Ok(()), |path| target::check_path(option, path))?;
    }
    let mut out =
        out.map(|path| ResultTarget::open(path, args.out.existing(), Duration::ZERO)).transpose()?;
    args.store.iter().try_for_each(|directory| judgement::create(directory))?;
    let budget = Budget::start(args.budget.unwrap_or(expectations.budget))?;
    let mut misses =
        good.as_ref().and(expectations.baseline.as_ref()).map(|baseline| Misses::read(&baseline.path));
    let mut check = Check { expectations: &expectations, good, budget, load: None, contents: String::new() };
    let mut findings = match check.busy() {
        Some(why) => vec![Finding::without_row(expectations.name.clone(), State::Busy, why)],
        None => {
            be_nice(args.nice.unwrap_or(expectations.nice));
            check.findings()?
        }
    };
    let Check { load, contents, budget, .. } = check;
    if let Some(file) = out.as_mut().filter(|_| !contents.is_empty()) {
        file.write(|out| out.write_all(contents.as_bytes()))?;
    }
    if let Some(code) = budget.interruption.exit_code() {
        stderr_line!("ombx: interrupted");
        return Ok(code);
    }
    if let Some(directory) = args.store.as_ref().filter(|_| !contents.is_empty()) {
        judgement::add(directory, contents.as_bytes())?;
    }
    if let Some(misses) = &mut misses {
        let today = timestamp()[..DATE].to_owned();
        findings.iter_mut().for_each(|finding| misses.judge(finding, &today));
        if let Err(e) = misses.write() {
            stderr_line!("ombx: cannot remember what was missed today in the directory of good days: {e}");
        }
    }
    let mut report =
        Report { file: expectations.name.clone(), findings, load, spent: budget.spent(), learnt: None };
    if let Some(baseline) = expectations.baseline.as_ref().filter(|_| args.learn) {
        report.learnt = Some(learn(baseline, &contents, &report)?);
    }
    let state = report.state();
    // The file of an earlier check stays if nothing was measured.
    if let Some(path) = args.openmetrics.as_ref().filter(|_| state != State::Busy) {
        let written = report.gauges().and_then(|text| target::replace(path, &text));
        written.map_err(|e| unwritable(path, &e))?;
    }
    if let Some(path) = &args.junit {
        target::replace(path, report.junit().as_bytes()).map_err(|e| unwritable(path, &e))?;
    }
    match args.format {
        Format::Nagios => {
            return monitoring::print("check", state.status(), &report.sentence(), &report.figures());
        }
        _ if args.quiet && state == State::Met => 0,
        Format::Json => terminal::print(format!("{:#}\n", report.json()))?,
        Format::Junit => terminal::print(format!("{}\n", report.junit()))?,
        _ => terminal::print(report.table())?,
    };
    Ok(state.exit_code())
}

/// Parses the text of a file of expectations and finds every mistake in it.
#[cfg(any(test, fuzzing))]
pub(crate) fn parse(text: &str, registry: &Registry, parser: &Command) -> Result<()> {
    Expectations::parse("node.toml", text, std::path::Path::new(""), registry, parser).map(drop)
}

/// Reads the good days that the limits need; `None` if no limit needs them, or if another day is being learnt.
fn good_days(expectations: &Expectations, args: &CheckArgs) -> Result<Option<Baseline>> {
    let name = &expectations.name;
    let Some(BaselineDirectory { path, line }) = &expectations.baseline else {
        if args.learn {
            return Err(Error::usage(format!(
                "{name}: --learn needs a directory: add baseline = \"DIRECTORY\" at the start of the file"
            )));
        }
        return Ok(None);
    };
    if args.learn {
        judgement::create(path)?;
        return Ok(None);
    }
    if expectations.entries.iter().all(|entry| entry.within.is_none()) {
        return Ok(None);
    }
    match judgement::read(path)? {
        Some(baseline) => Ok(Some(baseline)),
        None => Err(Error::usage(format!(
            "{name}:{line}: the baseline {} has no results: learn a good day with ombx check --learn {}",
            path.display(),
            args.file.display()
        ))),
    }
}

/// Adds a good day to the baseline, and returns what was done.
fn learn(baseline: &BaselineDirectory, contents: &str, report: &Report) -> Result<String> {
    if contents.is_empty() || report.state() > State::Undecided {
        return Ok("not learnt, because this is no good day".into());
    }
    Ok(report::learnt(&judgement::add(&baseline.path, contents.as_bytes())?, report.spent))
}

/// Lowers the priority of this process and of those that it starts. A process that is nicer already stays as it is.
fn be_nice(nice: i32) {
    if getpriority_process(None).is_ok_and(|now| now < nice) {
        let _ = setpriority_process(None, nice);
    }
}

/// A check that is running.
struct Check<'c> {
    expectations: &'c Expectations,
    good: Option<Baseline>,
    budget: Budget,
    /// Part of the CPUs that other processes used when it was looked at last.
    load: Option<f64>,
    /// Lines of a result file with all measurements.
    contents: String,
}

impl Check<'_> {
    /// Looks at the load of this host, and returns why it is too busy.
    fn busy(&mut self) -> Option<String> {
        self.load = HostState::here(None).foreign;
        let (load, most) = self.load.zip(self.expectations.busy)?;
        (load >= most).then(|| report::busy(load, most))
    }

    /// Measures all entries, and those with limits that are not met again. A signal ends the measurements.
    fn findings(&mut self) -> Result<Vec<Finding>> {
        let mut all = Vec::new();
        for entry in &self.expectations.entries {
            let measured = self.budget.measure(entry)?;
            self.contents.push_str(&measured.contents);
            if self.budget.interruption.has_arrived() {
                return Ok(Vec::new());
            }
            all.push((entry, measured));
        }
        let relative = all.iter().filter(|(entry, _)| entry.within.is_some());
        let limits = relative.map(|(_, measured)| measured.rows.len()).sum();
        let baseline = self.good.take();
        let good = baseline.as_ref().map(|baseline| GoodDays { baseline, limits });
        let judged = all.into_iter();
        let mut found: Vec<_> = judged
            .map(|(entry, measured)| (entry, judgement::judge(entry, &measured, good), measured.took))
            .collect();
        let mut paused = None;
        for (entry, findings, took) in &mut found {
            if !findings.iter().any(Finding::wants_another) {
                continue;
            }
            let pause = if paused.is_some() { Duration::ZERO } else { self.expectations.pause };
            if !self.budget.has(pause, *took) {
                let why = "the budget has no time for a second measurement";
                findings.iter_mut().for_each(|finding| finding.leave_undecided(why));
                continue;
            }
            // One pause before all second measurements.
            let busy = paused.get_or_insert_with(|| {
                self.budget.pause(pause);
                self.busy()
            });
            if let Some(why) = busy {
                findings.iter_mut().filter(|finding| finding.state == State::Missed).for_each(|finding| {
                    (finding.state, finding.why) = (State::Busy, Some(format!("missed once, then {why}")));
                });
                continue;
            }
            let again = self.budget.measure(entry)?;
            *findings = judgement::combine(findings, judgement::judge(entry, &again, good));
            self.contents.push_str(&again.contents);
            if self.budget.interruption.has_arrived() {
                return Ok(Vec::new());
            }
        }
        Ok(found.into_iter().flat_map(|(_, findings, _)| findings).collect())
    }
}
