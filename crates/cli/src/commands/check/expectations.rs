//! The file of `ombx check`: a suite whose entries have limits.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use clap::Command;
use ombx_core::benchmark::{Choice, Registry};
use ombx_estimate::launches::LEAST_LONG_LAUNCHES;
use ombx_launch::{
    job::files_used,
    launch::{preflight, start::Start},
};
use ombx_links::verdict::Expectation;
use ombx_record::{
    error::{Error, Result},
    regular_file::{read_named, shown_name},
    result::Metric,
    unit::{self, digits},
};

use crate::{
    commands::run,
    suite::{self, OwnKeys, OwnValue, ResolvedEntry, Suite},
};

const KEYS: OwnKeys = OwnKeys {
    command: "ombx check",
    of_file: &["budget", "nice", "busy", "pause", "baseline"],
    of_entry: &["latency", "bw", "within"],
};
/// Time for all measurements.
const BUDGET: Duration = Duration::from_secs(60);
/// Time between a limit that is not met and its second measurement.
const PAUSE: Duration = Duration::from_secs(5);
/// Part of the CPUs from which a host is busy. It is above the load of the services of a small host.
const BUSY: f64 = 0.1;
/// Niceness of the ranks.
const NICE: i32 = 10;
/// Largest niceness of Linux.
pub(super) const MOST_NICE: i32 = 19;

/// What a file demands.
#[derive(Debug)]
pub(super) struct Expectations {
    pub(super) name: String,
    pub(super) budget: Duration,
    pub(super) pause: Duration,
    pub(super) nice: i32,
    /// Part of the CPUs that other processes may not reach; `None` for no limit.
    pub(super) busy: Option<f64>,
    pub(super) baseline: Option<BaselineDirectory>,
    pub(super) entries: Vec<Entry>,
}

/// Directory with results of good days.
#[derive(Debug)]
pub(super) struct BaselineDirectory {
    pub(super) path: PathBuf,
    /// Line of the file that names it.
    pub(super) line: usize,
}

/// One job and the limits of all its rows.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) patterns: Vec<String>,
    pub(super) options: Vec<String>,
    pub(super) absolute: Option<Expectation>,
    /// Part by which the time may exceed that of good days.
    pub(super) within: Option<f64>,
    /// Files that the job uses, with their descriptions.
    pub(super) used: Vec<(&'static str, PathBuf)>,
}

impl Expectations {
    /// Reads a file and finds every mistake in it. Starts nothing.
    pub(super) fn read(path: &Path, registry: &Registry, parser: &Command) -> Result<Expectations> {
        let name = shown_name(path);
        let text = read_named(path)
            .map_err(|e| Error::usage(format!("cannot read the file of expectations {name}: {e}")))?;
        let directory = path.parent().unwrap_or(Path::new(""));
        Expectations::parse(&name, &text, directory, registry, parser)
    }

    /// Parses the text of a file. Its baseline is relative to this directory.
    pub(super) fn parse(
        name: &str,
        text: &str,
        directory: &Path,
        registry: &Registry,
        parser: &Command,
    ) -> Result<Expectations> {
        let suite = Suite::parse_with(name, text, parser, KEYS)?;
        let mut expectations = Expectations {
            name: name.to_owned(),
            budget: BUDGET,
            pause: PAUSE,
            nice: NICE,
            busy: Some(BUSY),
            baseline: None,
            entries: Vec::new(),
        };
        for value in &suite.own {
            expectations.set(value, directory).map_err(|e| suite.at(value.line, &e))?;
        }
        for (entry, resolved) in suite.entry_jobs(registry, parser)? {
            let limits = Limits::new(entry, &resolved.part.choices, expectations.baseline.as_ref());
            let limits = limits.map_err(|(line, e)| suite.at(line, &e))?;
            let own = Entry::new(entry.patterns.clone(), resolved, limits);
            expectations.entries.push(own.map_err(|e| suite.at(entry.line, &e))?);
        }
        Ok(expectations)
    }

    fn set(&mut self, value: &OwnValue, directory: &Path) -> Result<()> {
        let OwnValue { key, text, line } = value;
        let wrong = |why: &str| Error::usage(format!("{key}: {why}"));
        match key.as_str() {
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
            _ => self.baseline = Some(BaselineDirectory { path: directory.join(text), line: *line }),
        }
        Ok(())
    }
}

/// Limits of an entry.
struct Limits {
    absolute: Option<Expectation>,
    within: Option<f64>,
}

impl Limits {
    /// Returns the limits, or a mistake and its line.
    fn new(
        entry: &suite::Entry,
        choices: &[Choice],
        baseline: Option<&BaselineDirectory>,
    ) -> std::result::Result<Limits, (usize, Error)> {
        let mut limits = Limits { absolute: None, within: None };
        for OwnValue { key, text, line } in &entry.own {
            let wrong = |why: String| (*line, Error::usage(why));
            if key == "within" {
                let percent = unit::parse_percent(text).map_err(|e| wrong(format!("within: {e}")))?;
                if baseline.is_none() {
                    return Err(wrong(
                        "within needs a baseline: add baseline = \"DIRECTORY\" at the start".into(),
                    ));
                }
                limits.within = Some(percent);
                continue;
            }
            let limit: Expectation = format!("{key}{text}").parse().map_err(|_| {
                wrong(match key.as_str() {
                    "bw" => format!("bw = {text:?}: must be >RATE with MB/s or GB/s, such as \">1GB/s\""),
                    _ => format!("{key} = {text:?}: must be <TIME with us, ms or ns, such as \"<5us\""),
                })
            })?;
            let metric = if limit.is_latency() { Metric::Latency } else { Metric::Bandwidth };
            if let Some(other) = choices.iter().find(|choice| choice.bench.described.metric != metric) {
                let (name, has) = (other.bench.name, other.bench.described.metric.name());
                let instead = if limit.is_latency() { "bw" } else { "latency" };
                return Err(wrong(format!(
                    "{key} does not limit {name}, whose figure is a {has}: give it {instead}, in an entry of its own"
                )));
            }
            limits.absolute = Some(limit);
        }
        match (&limits.absolute, limits.within) {
            (None, None) => Err((
                entry.line,
                Error::usage(
                    "an entry needs a limit: add latency, bw or within, for example latency = \"<5us\"",
                ),
            )),
            _ => Ok(limits),
        }
    }
}

impl Entry {
    /// Validates an entry, so that it can be run.
    fn new(patterns: Vec<String>, resolved: ResolvedEntry, limits: Limits) -> Result<Entry> {
        let (mut options, says_launches) = (resolved.options(), resolved.says_launches());
        let ResolvedEntry { ranks, args, part, .. } = resolved;
        let start = Start::from(args.start.clone());
        for choice in &part.choices {
            preflight::check(&start, ranks, choice.bench.ranks.medium)?;
        }
        let job = run::job(args, ranks, vec![part], None)?;
        let used = files_used(&job.start, &job.work.plans());
        if !says_launches {
            // The fewest with a 95 % interval.
            options.push(format!("--launches={LEAST_LONG_LAUNCHES}"));
        }
        let Limits { absolute, within } = limits;
        Ok(Entry { patterns, options, absolute, within, used })
    }

    /// Returns the names of the benchmarks and hosts as the file has them.
    pub(super) fn shown(&self) -> String {
        let hosts = self.options.iter().filter_map(|option| option.strip_prefix("--hosts="));
        self.patterns.iter().map(String::as_str).chain(hosts).collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::parser;

    fn parse(text: &str) -> Result<Expectations> {
        let registry = Registry::load().unwrap();
        Expectations::parse("node.toml", text, Path::new("/etc/ombx"), &registry, &parser(&registry))
    }

    #[cfg(feature = "sockets")]
    #[test]
    fn a_file_has_defaults_and_its_own_values() {
        let entry = "[[entry]]\nrun = 'sockets.latency'\nsizes = 8\nlatency = '<5us'\n";
        let usual = parse(entry).unwrap();
        assert_eq!((usual.budget, usual.pause, usual.nice, usual.busy), (BUDGET, PAUSE, NICE, Some(BUSY)));
        let [one] = &usual.entries[..] else { panic!("{usual:?}") };
        assert_eq!(one.options, ["--sizes=8", "--launches=6"]);
        assert_eq!(one.absolute.as_ref().and_then(Expectation::most_us), Some(5.0));
        let text = format!(
            "budget = '2m'\npause = '1s'\nnice = 0\nbusy = 'never'\nbaseline = 'good'\n[defaults]\n\
             quick = true\n{entry}within = '20%'"
        );
        let own = parse(&text).unwrap();
        let minutes = Duration::from_secs;
        assert_eq!((own.budget, own.pause, own.nice, own.busy), (minutes(120), minutes(1), 0, None));
        assert_eq!(own.baseline.unwrap().path, Path::new("/etc/ombx/good"));
        assert_eq!(own.entries[0].options, ["--quick", "--sizes=8"]);
        assert_eq!(own.entries[0].within, Some(0.2));
    }

    #[cfg(feature = "sockets")]
    #[test]
    fn mistakes_have_lines() {
        let entry = "[[entry]]\nrun = 'sockets.latency'\n";
        for (text, line, part) in [
            ("budgt = '1m'\n".to_owned() + entry, 1, "budget?"),
            ("budget = 'soon'\n".to_owned() + entry, 1, "budget: duration"),
            ("nice = 20\n".to_owned() + entry, 1, "from 0 to 19"),
            ("busy = '200%'\n".to_owned() + entry, 1, "never"),
            ("busy = true\n".to_owned() + entry, 1, "in quotes or a number"),
            ("baseline = ''\n".to_owned() + entry, 1, "directory"),
            (entry.to_owned(), 2, "needs a limit"),
            (entry.to_owned() + "latncy = '<5us'", 3, "latency?"),
            (entry.to_owned() + "latency = '>5us'", 3, "\"<5us\""),
            (entry.to_owned() + "bw = '>5'", 3, "MB/s"),
            (entry.to_owned() + "bw = '>5GB/s'", 3, "give it latency"),
            (entry.to_owned() + "within = '20%'", 3, "needs a baseline"),
            ("baseline = 'x'\n".to_owned() + entry + "within = 0.2", 4, "did you mean 20 %"),
            (entry.to_owned() + "latency = '<5us'\nsizes = '8..1'", 4, "1..8"),
            (entry.to_owned() + "latency = '<5us'\noutput = 'x'", 4, "decided by ombx check"),
            (entry.to_owned() + "latency = '<5us'\ntimeout = '1s'", 4, "decided by ombx check"),
            (
                "[defaults]\nquiet = true\n".to_owned() + entry + "latency = '<5us'",
                2,
                "decided by ombx check",
            ),
            (entry.to_owned() + "latency = '<5us'\nranks = 1", 2, "ranks"),
        ] {
            let why = parse(&text).unwrap_err().to_string();
            assert!(why.starts_with(&format!("node.toml:{line}: ")) && why.contains(part), "{text}\n{why}");
        }
    }
}
