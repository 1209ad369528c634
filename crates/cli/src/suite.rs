//! Suites: files in TOML that say what is run and how, all of it in one start of the ranks.

mod layers;
mod read;

use std::{fs, path::Path};

use clap::{ArgMatches, Command};
use ombx_core::{
    benchmark::{
        entry::{Benchmark, Choice},
        registry::Registry,
    },
    error::{Error, Result},
    measure::runner::Part,
};

use crate::{args::RunArgs, lookup, select, typed};
use layers::{Known, Layer};
use read::Entry;

/// What every binary has.
const BUILT_IN: [(&str, &str); 4] = [
    ("full", include_str!("../../../suites/full.toml")),
    ("links", include_str!("../../../suites/links.toml")),
    ("osu", include_str!("../../../suites/osu.toml")),
    ("smoke", include_str!("../../../suites/smoke.toml")),
];
/// What a suite's name begins with among patterns.
const PREFIX: &str = "suite:";

/// A suite that was read.
pub(crate) struct Suite {
    /// For messages: a path, or `suite:smoke`.
    name: String,
    built_in: bool,
    about: String,
    defaults: Layer,
    entries: Vec<Entry>,
}

/// What a suite comes to.
pub(crate) struct Resolved {
    /// One sentence.
    pub(crate) about: String,
    /// The options of each entry as on a command line, and what they mean.
    pub(crate) parts: Vec<(String, Part)>,
    /// Ranks to start.
    pub(crate) ranks: u32,
    /// Ranks, output and all that holds for the whole job.
    pub(crate) job: RunArgs,
}

impl Resolved {
    /// The benchmarks of all entries, each once.
    pub(crate) fn benchmarks(&self) -> Vec<&'static Benchmark> {
        let mut found: Vec<&'static Benchmark> = Vec::new();
        for choice in self.parts.iter().flat_map(|(_, part)| &part.choices) {
            if found.iter().all(|bench| bench.name != choice.bench.name) {
                found.push(choice.bench);
            }
        }
        found
    }
}

/// Whether a pattern is the name of a suite.
pub(crate) fn is_suite(pattern: &str) -> bool {
    pattern.starts_with(PREFIX) || pattern.ends_with(".toml")
}

/// The suite that patterns name, if they name one; it stands alone.
pub(crate) fn named(command: &Command, patterns: &[String]) -> Result<Option<Suite>> {
    match (patterns, patterns.iter().find(|pattern| is_suite(pattern))) {
        (_, None) => Ok(None),
        ([one], _) => open(command, one).map(Some),
        (_, Some(suite)) => {
            Err(Error::usage(format!("{suite} is a suite and stands alone; give it without other patterns")))
        }
    }
}

fn open(command: &Command, pattern: &str) -> Result<Suite> {
    let name = pattern.strip_prefix(PREFIX).unwrap_or(pattern);
    let known = Known::of(command);
    if let Some((_, text)) = BUILT_IN.iter().find(|(built_in, _)| *built_in == name) {
        return read::suite(pattern.to_owned(), text, true, &known);
    }
    if !name.ends_with(".toml") && !name.contains('/') {
        let names = BUILT_IN.map(|(name, _)| name);
        let near = layers::nearest(name, names.into_iter());
        let near = near.map(|near| format!("; did you mean suite:{near}?")).unwrap_or_default();
        return Err(Error::usage(format!(
            "no suite is called {name:?}{near} (there are {}, and files: suite:./my.toml)",
            names.join(", ")
        )));
    }
    let text = fs::read_to_string(Path::new(name))
        .map_err(|e| Error::usage(format!("the suite {name} cannot be read: {e}")))?;
    read::suite(name.to_owned(), &text, false, &known)
}

impl Suite {
    /// The suite that a text describes, as a file of this name would.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn of(name: &str, text: &str, command: &Command) -> Result<Suite> {
        read::suite(name.to_owned(), text, false, &Known::of(command))
    }

    /// Entries with the options of the command line over their own.
    pub(crate) fn resolve(
        &self,
        registry: &Registry,
        command: &Command,
        typed: Option<&ArgMatches>,
    ) -> Result<Resolved> {
        let known = Known::of(command);
        let typed = typed.map(|matches| Layer::typed(&known, matches)).unwrap_or_default();
        let mut parts = Vec::new();
        let (mut ranks, mut job) = (0, None);
        for entry in &self.entries {
            let choices = self.choices(registry, entry)?;
            if choices.is_empty() {
                continue;
            }
            let options = self.defaults.meant(&choices).under(&entry.options).under(&typed.meant(&choices));
            let told = |e: Error| self.at(options.line_in(&e.to_string()).unwrap_or(entry.line), &e);
            let (run, chosen) =
                typed::run_of(registry, command, &entry.patterns, options.words()).map_err(told)?;
            let plan = select::plan(&run, chosen, &choices).map_err(told)?;
            ranks = ranks.max(select::ranks(&run, &choices));
            parts.push((options.measured(&known), Part { choices, plan }));
            job.get_or_insert(run);
        }
        let every = || parts.iter().flat_map(|(_, part): &(String, Part)| part.choices.iter().copied());
        if let Some(name) = typed.foreign(&every().collect::<Vec<_>>()) {
            return Err(Error::usage(format!("--{name} means nothing to what is in {}", self.name)));
        }
        match job {
            Some(job) => Ok(Resolved { about: self.about.clone(), parts, ranks, job }),
            None => Err(Error::usage(format!(
                "{}: this build has none of the benchmarks of its entries",
                self.name
            ))),
        }
    }

    /// The benchmarks of an entry; what a suite of ours names and this build does not have is left out.
    fn choices(&self, registry: &Registry, entry: &Entry) -> Result<Vec<Choice>> {
        let here: Vec<String> = entry
            .patterns
            .iter()
            .filter(|p| !self.built_in || lookup::find(registry, p).is_ok())
            .cloned()
            .collect();
        match here.is_empty() {
            true => Ok(Vec::new()),
            false => select::benchmarks(registry, &here).map_err(|e| self.at(entry.run_line, &e)),
        }
    }

    fn at(&self, line: usize, error: &Error) -> Error {
        Error::usage(format!("{}:{line}: {error}", self.name))
    }
}
