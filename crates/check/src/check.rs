//! `ombx check`: measures what a file demands of a node or a cluster, and says in one line whether the limits are met.

pub mod expectations;
mod judgement;
mod measurement;
mod report;

use std::{path::PathBuf, time::Duration};

use ombx_estimate::baseline::Baseline;
use ombx_host::{environment::timestamp, host::HostState};
use ombx_launch::{
    output::{
        destination::{Existing, Format},
        monitoring,
        target::{self, ResultTarget},
        terminal, unwritable,
    },
    stderr_line,
};
use ombx_record::error::{Error, Result};
use rustix::process::{getpriority_process, setpriority_process};

use self::{
    expectations::{BaselineDirectory, Expectations},
    judgement::{Finding, GoodDays, Misses, State},
    measurement::Budget,
    report::Report,
};

/// Number of characters of the date in a time of RFC 3339.
const DATE: usize = 10;

/// What the user asks for beside the file.
#[derive(Debug)]
pub struct Request {
    /// The file of expectations.
    pub file: PathBuf,
    /// Whether the result becomes a good day.
    pub learn: bool,
    /// Time for all measurements; `None` for that of the file.
    pub budget: Option<Duration>,
    /// Niceness of the ranks; `None` for that of the file.
    pub nice: Option<i32>,
    /// Format of the result.
    pub format: Format,
    /// Directory that keeps the measured rows in a new file.
    pub store: Option<PathBuf>,
    /// File for Prometheus.
    pub openmetrics: Option<PathBuf>,
    /// File of a JUnit report.
    pub junit: Option<PathBuf>,
    /// Whether nothing is printed if all limits are met.
    pub quiet: bool,
    /// Result file with the measured rows.
    pub out: Option<PathBuf>,
    /// What happens to a result file that exists.
    pub existing: Existing,
}

/// Measures what a file demands and says whether its limits are met. Returns the exit code.
///
/// # Errors
/// A file or a directory that cannot be used, and an `ombx run` that prints something other than results.
pub fn run(expectations: &Expectations, request: &Request) -> Result<u8> {
    let good = good_days(expectations, request)?;
    let out = request.out.as_ref();
    let derived = [("--openmetrics", request.openmetrics.as_ref()), ("--junit", request.junit.as_ref())];
    let of_entries = expectations.entries.iter().flat_map(|entry| entry.used.clone());
    let used: Vec<_> =
        [("the file of expectations", request.file.clone())].into_iter().chain(of_entries).collect();
    target::check_all(&[&[("-o", out)], derived.as_slice()].concat(), &used)?;
    for (option, path) in derived {
        path.map_or(Ok(()), |path| target::check_path(option, path))?;
    }
    let mut out = out.map(|path| ResultTarget::open(path, request.existing, Duration::ZERO)).transpose()?;
    request.store.iter().try_for_each(|directory| judgement::create(directory))?;
    let budget = Budget::start(request.budget.unwrap_or(expectations.budget))?;
    let mut misses =
        good.as_ref().and(expectations.baseline.as_ref()).map(|baseline| Misses::read(&baseline.path));
    let mut check = Check { expectations, good, budget, load: None, contents: String::new() };
    let mut findings = match check.busy() {
        Some(why) => vec![Finding::without_row(expectations.name.clone(), State::Busy, why)],
        None => {
            be_nice(request.nice.unwrap_or(expectations.nice));
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
    if let Some(directory) = request.store.as_ref().filter(|_| !contents.is_empty()) {
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
    if let Some(baseline) = expectations.baseline.as_ref().filter(|_| request.learn) {
        report.learnt = Some(learn(baseline, &contents, &report)?);
    }
    let state = report.state();
    // The file of an earlier check stays if nothing was measured.
    if let Some(path) = request.openmetrics.as_ref().filter(|_| state != State::Busy) {
        let written = report.gauges().and_then(|text| target::replace(path, &text));
        written.map_err(|e| unwritable(path, &e))?;
    }
    if let Some(path) = &request.junit {
        target::replace(path, report.junit().as_bytes()).map_err(|e| unwritable(path, &e))?;
    }
    match request.format {
        Format::Nagios => {
            return monitoring::print("check", state.status(), &report.sentence(), &report.figures());
        }
        _ if request.quiet && state == State::Met => 0,
        Format::Json => terminal::print(format!("{:#}\n", report.json()))?,
        Format::Junit => terminal::print(format!("{}\n", report.junit()))?,
        _ => terminal::print(report.table())?,
    };
    Ok(state.exit_code())
}

/// Reads the good days that the limits need; `None` if no limit needs them, or if another day is being learnt.
fn good_days(expectations: &Expectations, request: &Request) -> Result<Option<Baseline>> {
    let name = &expectations.name;
    let Some(BaselineDirectory { path, line }) = &expectations.baseline else {
        if request.learn {
            return Err(Error::usage(format!(
                "{name}: --learn needs a directory: add baseline = \"DIRECTORY\" at the start of the file"
            )));
        }
        return Ok(None);
    };
    if request.learn {
        judgement::create(path)?;
        return Ok(None);
    }
    if expectations.entries.iter().all(|entry| entry.limits.within.is_none()) {
        return Ok(None);
    }
    match judgement::read(path)? {
        Some(baseline) => Ok(Some(baseline)),
        None => Err(Error::usage(format!(
            "{name}:{line}: the baseline {} has no results: learn a good day with ombx check --learn {}",
            path.display(),
            request.file.display()
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
        let relative = all.iter().filter(|(entry, _)| entry.limits.within.is_some());
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
