//! What a file of `ombx check` demands: jobs, and limits of their rows.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use ombx_core::benchmark::Choice;
use ombx_links::verdict::Expectation;
use ombx_record::{
    error::{Error, Result},
    result::Metric,
    unit::{self, digits},
};

/// Keys of the whole file, which [`Expectations::set`] reads.
pub const KEYS_OF_FILE: &[&str] = &["budget", "nice", "busy", "pause", "baseline"];
/// Keys of an entry, which [`Limits::set`] reads.
pub const KEYS_OF_ENTRY: &[&str] = &["latency", "bw", "within"];
/// Time for all measurements.
const BUDGET: Duration = Duration::from_secs(60);
/// Time between a limit that is not met and its second measurement.
const PAUSE: Duration = Duration::from_secs(5);
/// Part of the CPUs from which a host is busy. It is above the load of the services of a small host.
const BUSY: f64 = 0.1;
/// Niceness of the ranks.
const NICE: i32 = 10;
/// Largest niceness of Linux.
pub const MOST_NICE: i32 = 19;

/// What a file demands.
#[derive(Debug)]
pub struct Expectations {
    /// Name of the file, for messages.
    pub name: String,
    /// Time for all measurements.
    pub budget: Duration,
    /// Time between a limit that is not met and its second measurement.
    pub pause: Duration,
    /// Niceness of the ranks.
    pub nice: i32,
    /// Part of the CPUs that other processes may not reach; `None` for no limit.
    pub busy: Option<f64>,
    /// Directory with results of good days.
    pub baseline: Option<BaselineDirectory>,
    /// Jobs and their limits.
    pub entries: Vec<Entry>,
}

/// Directory with results of good days.
#[derive(Debug)]
pub struct BaselineDirectory {
    /// Its path.
    pub path: PathBuf,
    /// Line of the file that names it.
    pub line: usize,
}

/// One job and the limits of all its rows.
#[derive(Debug)]
pub struct Entry {
    /// Benchmarks.
    pub patterns: Vec<String>,
    /// Options of `ombx run`.
    pub options: Vec<String>,
    /// Limits of all its rows.
    pub limits: Limits,
    /// Files that the job uses, with their descriptions.
    pub used: Vec<(&'static str, PathBuf)>,
}

/// Limits of an entry.
#[derive(Debug, Default)]
pub struct Limits {
    /// Limit of the figure.
    pub absolute: Option<Expectation>,
    /// Part by which the time may exceed that of good days.
    pub within: Option<f64>,
}

impl Expectations {
    /// Creates what a file without entries and without values of its own demands.
    pub fn new(name: &str) -> Expectations {
        Expectations {
            name: name.to_owned(),
            budget: BUDGET,
            pause: PAUSE,
            nice: NICE,
            busy: Some(BUSY),
            baseline: None,
            entries: Vec::new(),
        }
    }

    /// Sets the value of a key of [`KEYS_OF_FILE`], which stands in this line. A baseline is relative to `directory`.
    ///
    /// # Errors
    /// Usage error for a value that the key does not have.
    pub fn set(&mut self, key: &str, text: &str, line: usize, directory: &Path) -> Result<()> {
        let wrong = |why: &str| Error::usage(format!("{key}: {why}"));
        match key {
            "budget" => self.budget = unit::parse_duration(text).map_err(|e| wrong(&e.to_string()))?,
            "pause" => self.pause = unit::parse_duration(text).map_err(|e| wrong(&e.to_string()))?,
            "nice" => {
                let number = digits::<i32>(text).filter(|number| *number <= MOST_NICE);
                self.nice = number.ok_or_else(|| wrong("must be a number from 0 to 19"))?;
            }
            "busy" if text == "never" => self.busy = None,
            "busy" => {
                let percent = unit::percentage(text).filter(|percent| (0.0..=100.0).contains(percent));
                let why = "must be a percentage of the CPUs from 0% to 100%, or \"never\"";
                self.busy = Some(percent.ok_or_else(|| wrong(why))? / 100.0);
            }
            _ if text.is_empty() => return Err(wrong("must be a directory")),
            _ => self.baseline = Some(BaselineDirectory { path: directory.join(text), line }),
        }
        Ok(())
    }
}

impl Limits {
    /// Sets the limit of a key of [`KEYS_OF_ENTRY`]. `choices` are the benchmarks of the entry, `baseline` is that of the file.
    ///
    /// # Errors
    /// Usage error for a value that is no such limit, a benchmark with another figure, and a part of good days without a baseline.
    pub fn set(
        &mut self,
        key: &str,
        text: &str,
        choices: &[Choice],
        baseline: Option<&BaselineDirectory>,
    ) -> Result<()> {
        if key == "within" {
            let percent = unit::parse_percent(text).map_err(|e| Error::usage(format!("within: {e}")))?;
            if baseline.is_none() {
                return Err(Error::usage(
                    "within needs a baseline: add baseline = \"DIRECTORY\" at the start",
                ));
            }
            self.within = Some(percent);
            return Ok(());
        }
        let limit: Expectation = format!("{key}{text}").parse().map_err(|_| {
            Error::usage(match key {
                "bw" => format!("bw = {text:?}: must be >RATE with MB/s or GB/s, such as \">1GB/s\""),
                _ => format!("{key} = {text:?}: must be <TIME with us, ms or ns, such as \"<5us\""),
            })
        })?;
        let metric = if limit.is_latency() { Metric::Latency } else { Metric::Bandwidth };
        if let Some(other) = choices.iter().find(|choice| choice.bench.described.metric != metric) {
            let (name, has) = (other.bench.name, other.bench.described.metric.name());
            let instead = if limit.is_latency() { "bw" } else { "latency" };
            return Err(Error::usage(format!(
                "{key} does not limit {name}, whose figure is a {has}: give it {instead}, in an entry of its own"
            )));
        }
        self.absolute = Some(limit);
        Ok(())
    }

    /// Fails if no limit is set.
    ///
    /// # Errors
    /// Usage error that names the keys.
    pub fn require_one(&self) -> Result<()> {
        match (&self.absolute, self.within) {
            (None, None) => Err(Error::usage(
                "an entry needs a limit: add latency, bw or within, for example latency = \"<5us\"",
            )),
            _ => Ok(()),
        }
    }
}

impl Entry {
    /// Returns the names of the benchmarks and hosts as the file has them.
    pub(crate) fn shown(&self) -> String {
        let hosts = self.options.iter().filter_map(|option| option.strip_prefix("--hosts="));
        self.patterns.iter().map(String::as_str).chain(hosts).collect::<Vec<_>>().join(" ")
    }
}
