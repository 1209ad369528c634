//! Layers of options: the defaults of a suite, the options of an entry, and the command line.

use std::collections::BTreeMap;

use clap::{ArgMatches, Command};
use ombx_core::benchmark::{Choice, Registry};

use super::options;
use crate::arguments::{given, parameters::HOSTS};

/// Options that conflict. An option in an upper layer replaces conflicting ones in lower layers.
const CONFLICTS: [(&[&str], &[&str]); 4] = [
    (&["precision", "max-time"], &["iterations", "warmup"]),
    (&["hosts"], &["hostfile"]),
    (&["quiet"], &["verbose"]),
    (&["force"], &["append"]),
];

#[derive(Debug, Clone)]
pub(super) struct Given {
    /// Words on a command line.
    pub(super) words: Vec<String>,
    /// Line in the suite file, if the value comes from one.
    pub(super) line: Option<usize>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Layer(BTreeMap<String, Given>);

impl Layer {
    pub(super) fn from_matches(parser: &Command, matches: &ArgMatches) -> Layer {
        let mut layer = Layer::default();
        let run = parser.find_subcommand("run").into_iter();
        for (arg, words) in run.flat_map(|run| given::options(run, matches)) {
            let words = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
            layer.set(arg.get_long().unwrap_or_default(), Given { words, line: None });
        }
        layer
    }

    /// Sets an option and removes those that conflict with it.
    pub(super) fn set(&mut self, name: &str, given: Given) {
        for (some, others) in CONFLICTS {
            for (mine, theirs) in [(some, others), (others, some)] {
                if mine.contains(&name) {
                    self.0.retain(|other, _| !theirs.contains(&other.as_str()));
                }
            }
        }
        let negated = name.strip_prefix("no-").map_or_else(|| format!("no-{name}"), str::to_owned);
        self.0.remove(&negated);
        self.0.insert(name.to_owned(), given);
    }

    /// Returns this layer under another one, which takes precedence.
    pub(super) fn under(&self, upper: &Layer) -> Layer {
        let mut both = self.clone();
        upper.0.iter().for_each(|(name, given)| both.set(name, given.clone()));
        both
    }

    /// Returns the options that one of these benchmarks has.
    pub(super) fn applicable_to(&self, choices: &[Choice]) -> Layer {
        let kept = self.0.iter().filter(|(name, _)| applies(name, choices));
        Layer(kept.map(|(name, given)| (name.clone(), given.clone())).collect())
    }

    /// Returns an option that none of these benchmarks has.
    pub(super) fn inapplicable_to(&self, choices: &[Choice]) -> Option<&str> {
        self.0.keys().map(String::as_str).find(|name| !applies(name, choices))
    }

    pub(super) fn words(&self) -> impl Iterator<Item = &String> {
        self.0.values().flat_map(|given| &given.words)
    }

    pub(super) fn has_any(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.0.contains_key(*name))
    }

    /// Returns the options that hold for a single entry, as on a command line.
    pub(super) fn words_of_entry(&self, parser: &Command) -> String {
        let of = |name: &str| options::key(parser, name).is_some_and(|option| !options::is_of_job(option));
        let words = self.0.iter().filter(|(name, _)| of(name)).flat_map(|(_, given)| given.words.clone());
        words.collect::<Vec<_>>().join(" ")
    }

    /// Returns the line of the option that a message names.
    pub(super) fn line_named_in(&self, message: &str) -> Option<usize> {
        let named = |name: &str| {
            let mut at = message.match_indices("--").map(|(at, _)| &message[at + 2..]);
            at.any(|rest| {
                rest.strip_prefix(name)
                    .is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '-'))
            })
        };
        self.0
            .iter()
            .find(|(name, given)| given.line.is_some() && named(name))
            .and_then(|(_, given)| given.line)
    }
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
    Registry::load().is_ok_and(|registry| registry.has_parameter(name))
}
