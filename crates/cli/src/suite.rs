//! Suites: TOML files that say what to run and how, in one job.

mod file;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use clap::{Arg, ArgMatches, Command, FromArgMatches};
use ombx_core::{
    benchmark::{Benchmark, Choice, Chosen, Registry},
    measure::runner::Part,
};
use ombx_record::{
    error::{Error, Result},
    order::each_once_by,
    regular_file::read_named_on_ranks,
};

use self::file::PREFIX;
use crate::{
    arguments::{
        argv,
        parameters::{self, HOSTS},
    },
    commands::run::{self, RunArgs},
    lookup,
};

pub(crate) use self::file::{Entry, OwnKeys, Suite, is_suite};

const BUILT_IN: [(&str, &str); 6] = [
    ("broadcast", include_str!("../suites/broadcast.toml")),
    ("congestion", include_str!("../suites/congestion.toml")),
    ("full", include_str!("../suites/full.toml")),
    ("links", include_str!("../suites/links.toml")),
    ("osu", include_str!("../suites/osu.toml")),
    ("smoke", include_str!("../suites/smoke.toml")),
];

/// Returns the names of the suites that are part of ombx.
pub(crate) fn built_in() -> impl Iterator<Item = &'static str> {
    BUILT_IN.into_iter().map(|(name, _)| name)
}

pub(crate) struct Resolved {
    pub(crate) about: String,
    /// Options of each entry as on a command line, and its benchmarks and plan.
    pub(crate) parts: Vec<(String, Part)>,
    pub(crate) ranks: u32,
    /// Arguments that hold for the whole job.
    pub(crate) args: RunArgs,
}

impl Resolved {
    /// Returns the benchmarks of all entries, each once.
    pub(crate) fn benchmarks(&self) -> Vec<&'static Benchmark> {
        let choices = self.parts.iter().flat_map(|(_, part)| &part.choices);
        each_once_by(choices.map(|choice| choice.bench), |one, other| one.name == other.name)
    }
}

/// Returns the suite that patterns name, if they name one. A suite must be the only pattern.
pub(crate) fn named(parser: &Command, patterns: &[String]) -> Result<Option<Suite>> {
    match (patterns, patterns.iter().find(|pattern| is_suite(pattern))) {
        (_, None) => Ok(None),
        ([one], _) => open(parser, one).map(Some),
        (_, Some(suite)) => Err(Error::usage(format!(
            "the suite {suite} stands alone: leave out all other names and patterns"
        ))),
    }
}

fn open(parser: &Command, pattern: &str) -> Result<Suite> {
    let name = pattern.strip_prefix(PREFIX).unwrap_or(pattern);
    if let Some((_, text)) = BUILT_IN.iter().find(|(built_in, _)| *built_in == name) {
        return file::parse(pattern, text, file::Origin::BuiltIn, parser, None);
    }
    if !name.ends_with(".toml") && !name.contains('/') {
        let names = BUILT_IN.map(|(name, _)| name);
        let near = lookup::similar(name, names.into_iter());
        let near = near.map(|near| format!(": did you mean suite:{near}?")).unwrap_or_default();
        return Err(Error::usage(format!(
            "there is no suite {name:?}{near} (built in are {}; a file is given as suite:./my.toml)",
            names.join(", ")
        )));
    }
    let text = read_named_on_ranks(Path::new(name))
        .map_err(|e| Error::usage(format!("cannot read the suite {name}: {e}")))?;
    file::parse(name, &text, file::Origin::User, parser, None)
}

/// What an entry means together with the layers around it.
pub(crate) struct ResolvedEntry {
    layer: Layer,
    pub(crate) ranks: u32,
    pub(crate) args: RunArgs,
    pub(crate) part: Part,
}

impl ResolvedEntry {
    /// Returns the options as on a command line.
    pub(crate) fn options(&self) -> Vec<String> {
        self.layer.words().cloned().collect()
    }

    /// Returns whether the file says how often the ranks are started.
    pub(crate) fn says_launches(&self) -> bool {
        ["launches", "quick", "budget", "precision"].iter().any(|name| self.layer.0.contains_key(*name))
    }
}

impl Suite {
    /// Returns the path of the file; `None` for a built-in suite.
    pub(crate) fn path(&self) -> Option<PathBuf> {
        (self.origin == file::Origin::User)
            .then(|| PathBuf::from(self.name.strip_prefix(PREFIX).unwrap_or(&self.name)))
    }

    /// Parses the text of a suite.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn parse(name: &str, text: &str, parser: &Command) -> Result<Suite> {
        file::parse(name, text, file::Origin::User, parser, None)
    }

    /// Parses the text of a file that has the format of suites and keys of its own.
    pub(crate) fn parse_with(name: &str, text: &str, parser: &Command, own: OwnKeys) -> Result<Suite> {
        file::parse(name, text, file::Origin::User, parser, Some(own))
    }

    /// Returns each entry as a job of its own.
    pub(crate) fn entry_jobs(
        &self,
        registry: &Registry,
        parser: &Command,
    ) -> Result<Vec<(&Entry, ResolvedEntry)>> {
        let of = |entry: &Entry| self.resolve_entry(registry, parser, entry, &Layer::default());
        let jobs = self.entries.iter();
        jobs.filter_map(|entry| Some(of(entry).transpose()?.map(|resolved| (entry, resolved)))).collect()
    }

    /// Returns benchmarks and plans. Options of the command line take precedence over those of an entry, and those over the defaults.
    pub(crate) fn resolve(
        &self,
        registry: &Registry,
        parser: &Command,
        matches: Option<&ArgMatches>,
    ) -> Result<Resolved> {
        let typed = matches.map(|matches| Layer::from_matches(parser, matches)).unwrap_or_default();
        let mut parts = Vec::new();
        let (mut ranks, mut args) = (0, None);
        for entry in &self.entries {
            let Some(resolved) = self.resolve_entry(registry, parser, entry, &typed)? else { continue };
            ranks = ranks.max(resolved.ranks);
            parts.push((resolved.layer.words_of_entry(parser), resolved.part));
            args.get_or_insert(resolved.args);
        }
        let choices: Vec<Choice> = parts.iter().flat_map(|(_, part)| part.choices.iter().copied()).collect();
        if let Some(name) = typed.inapplicable_to(&choices) {
            return Err(Error::usage(format!("no benchmark in {} has an option --{name}", self.name)));
        }
        match args {
            Some(args) => Ok(Resolved { about: self.about.clone(), parts, ranks, args }),
            None => Err(Error::usage(format!("{}: this build has none of its benchmarks", self.name))),
        }
    }

    /// Returns the benchmarks and the plan of an entry under the options of the command line; `None` if this build has none of them.
    fn resolve_entry(
        &self,
        registry: &Registry,
        parser: &Command,
        entry: &Entry,
        typed: &Layer,
    ) -> Result<Option<ResolvedEntry>> {
        let choices = self.choices(registry, entry)?;
        if choices.is_empty() {
            return Ok(None);
        }
        let layer = self.defaults.applicable_to(&choices).under(parser, &entry.options);
        let layer = layer.under(parser, &typed.applicable_to(&choices));
        let located = |e: Error| self.at(layer.line_named_in(&e.to_string()).unwrap_or(entry.line), &e);
        let (args, chosen) = parse(registry, parser, &entry.patterns, layer.words()).map_err(located)?;
        let plan = run::plan(&args, chosen, &choices).map_err(located)?;
        let ranks = run::ranks(&args, &choices, &plan);
        Ok(Some(ResolvedEntry { layer, ranks, args, part: Part { choices, plan } }))
    }

    /// Returns the benchmarks of an entry. Benchmarks that this build lacks are left out of built-in suites.
    fn choices(&self, registry: &Registry, entry: &Entry) -> Result<Vec<Choice>> {
        let built_in = self.origin == file::Origin::BuiltIn;
        let here =
            entry.patterns.iter().filter(|pattern| !built_in || lookup::find(registry, pattern).is_ok());
        let here: Vec<String> = here.cloned().collect();
        if here.is_empty() {
            Ok(Vec::new())
        } else {
            lookup::benchmarks(registry, &here).map_err(|e| self.at(entry.run_line, &e))
        }
    }

    /// Returns an error about a line of the file.
    pub(crate) fn at(&self, line: usize, error: &Error) -> Error {
        Error::usage(format!("{}:{line}: {error}", self.name))
    }
}

/// Parses the command line of `ombx run` that an entry is equivalent to. Every option of `ombx run` is therefore also a key of suites.
fn parse<'w>(
    registry: &Registry,
    parser: &Command,
    patterns: &'w [String],
    words: impl Iterator<Item = &'w String>,
) -> Result<(RunArgs, Chosen)> {
    let line = ["ombx", "run"].into_iter().chain(patterns.iter().chain(words).map(String::as_str));
    let mistake = |e: clap::Error| Error::usage(argv::mistake_sentence(&e));
    let matches = parser.clone().try_get_matches_from(line).map_err(mistake)?;
    let (_, run) = matches.subcommand().ok_or_else(|| Error::usage("there is no command"))?;
    Ok((RunArgs::from_arg_matches(run).map_err(mistake)?, parameters::chosen(registry, run)?))
}

/// Headings of options that hold for a whole job.
const OF_JOB: [&str; 2] = ["Ranks", run::OUTPUT];
/// Options of starting ranks that a command with a time budget sets itself.
const OF_LAUNCHING: [&str; 2] = ["timeout", "rendezvous"];

/// Returns the options that are keys of suites, with their names.
fn option_keys(parser: &Command) -> impl Iterator<Item = (&str, &Arg)> {
    let run = parser.find_subcommand("run").into_iter().flat_map(Command::get_arguments);
    run.filter(|arg| !arg.is_hide_set()).filter_map(|arg| Some((arg.get_long()?, arg)))
}

fn option_named<'c>(parser: &'c Command, name: &str) -> Option<&'c Arg> {
    option_keys(parser).find(|(key, _)| *key == name).map(|(_, arg)| arg)
}

/// Returns whether an option holds for the whole job, not for a single entry.
fn is_of_job(option: &Arg) -> bool {
    option.get_help_heading().is_some_and(|heading| OF_JOB.contains(&heading))
}

/// Returns whether a command that starts `ombx run` for each entry sets this option itself.
fn is_of_launching_process(option: &Arg) -> bool {
    option.get_help_heading() == Some(run::OUTPUT)
        || option.get_long().is_some_and(|name| OF_LAUNCHING.contains(&name))
}

/// Options that have no effect beside others, or need another one that these exclude.
const WITHOUT_EFFECT: [(&[&str], &[&str]); 2] =
    [(&["precision", "max-time"], &["iterations", "warmup"]), (&["duration"], &["warmup"])];

#[derive(Debug, Clone)]
struct Given {
    /// Words on a command line.
    words: Vec<String>,
    /// Line in the suite file, if the value comes from one.
    line: Option<usize>,
}

#[derive(Debug, Clone, Default)]
struct Layer(BTreeMap<String, Given>);

impl Layer {
    fn from_matches(parser: &Command, matches: &ArgMatches) -> Layer {
        let mut layer = Layer::default();
        let run = parser.find_subcommand("run").into_iter();
        for (arg, words) in run.flat_map(|run| argv::given_options(run, matches)) {
            let words = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
            layer.0.insert(arg.get_long().unwrap_or_default().to_owned(), Given { words, line: None });
        }
        layer
    }

    /// Returns this layer under another one, whose options replace those that they exclude.
    fn under(&self, parser: &Command, upper: &Layer) -> Layer {
        let mut both = self.0.clone();
        both.retain(|name, _| !upper.0.keys().any(|other| exclude_each_other(parser, name, other)));
        both.extend(upper.0.clone());
        Layer(both)
    }

    /// Returns the options that one of these benchmarks has.
    fn applicable_to(&self, choices: &[Choice]) -> Layer {
        let kept = self.0.iter().filter(|(name, _)| applies(name, choices));
        Layer(kept.map(|(name, given)| (name.clone(), given.clone())).collect())
    }

    /// Returns an option that none of these benchmarks has.
    fn inapplicable_to(&self, choices: &[Choice]) -> Option<&str> {
        self.0.keys().map(String::as_str).find(|name| !applies(name, choices))
    }

    fn words(&self) -> impl Iterator<Item = &String> {
        self.0.values().flat_map(|given| &given.words)
    }

    /// Returns the options that hold for a single entry, as on a command line.
    fn words_of_entry(&self, parser: &Command) -> String {
        let of = |name: &str| option_named(parser, name).is_some_and(|option| !is_of_job(option));
        let words = self.0.iter().filter(|(name, _)| of(name)).flat_map(|(_, given)| given.words.clone());
        words.collect::<Vec<_>>().join(" ")
    }

    /// Returns the line of the option that a message names.
    fn line_named_in(&self, message: &str) -> Option<usize> {
        self.0
            .iter()
            .find(|(name, given)| given.line.is_some() && names_option(message, name))
            .and_then(|(_, given)| given.line)
    }
}

/// Returns whether one of two options excludes the other.
fn exclude_each_other(parser: &Command, one: &str, other: &str) -> bool {
    let is_negated = |name: &str, by: &str| by.strip_prefix("no-") == Some(name);
    let lacks_effect = |(some, others): &(&[&str], &[&str])| {
        some.contains(&one) && others.contains(&other) || others.contains(&one) && some.contains(&other)
    };
    let excluded = |run: &Command| {
        let arguments = option_named(parser, one).zip(option_named(parser, other));
        arguments.is_some_and(|(one, other)| argv::exclude_each_other(run, one, other))
    };
    is_negated(one, other)
        || is_negated(other, one)
        || WITHOUT_EFFECT.iter().any(lacks_effect)
        || parser.find_subcommand("run").is_some_and(excluded)
}

/// Returns whether a message names an option.
fn names_option(message: &str, name: &str) -> bool {
    let mut at = message.match_indices("--").map(|(at, _)| &message[at + 2..]);
    at.any(|rest| {
        rest.strip_prefix(name)
            .is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '-'))
    })
}

/// Returns whether at least one of these benchmarks has an option.
pub(crate) fn applies(name: &str, choices: &[Choice]) -> bool {
    let any = |test: &dyn Fn(&Choice) -> bool| choices.iter().any(test);
    let positive = name.strip_prefix("no-").unwrap_or(name);
    match name {
        HOSTS => true,
        "sizes" => any(&|choice| choice.bench.messages.sized),
        _ => any(&|choice| choice.bench.parameter(positive).is_some()) || !is_of_some_benchmark(positive),
    }
}

fn is_of_some_benchmark(name: &str) -> bool {
    Registry::load().is_ok_and(|registry| registry.parameters().iter().any(|known| known.name == name))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::commands;

    #[test]
    fn an_upper_layer_replaces_what_it_excludes() {
        let parser = commands::parser(&Registry::load().unwrap());
        let layer = |names: &[&str]| {
            let given = |name: &&str| ((*name).to_owned(), Given { words: Vec::new(), line: None });
            Layer(names.iter().map(given).collect())
        };
        for (lower, upper) in [
            ("max-time", "duration"),
            ("iterations", "duration"),
            ("duration", "max-time"),
            ("precision", "iterations"),
            ("warmup", "max-time"),
            ("warmup", "duration"),
            ("launches", "quick"),
            ("hosts", "hostfile"),
            ("interval", "quiet"),
            ("no-verify", "verify"),
        ] {
            let both = layer(&[lower, "sizes"]).under(&parser, &layer(&[upper]));
            assert_eq!(
                both.0.into_keys().collect::<BTreeSet<_>>(),
                [upper, "sizes"].map(String::from).into()
            );
        }
    }
}
