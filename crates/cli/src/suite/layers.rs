//! Layers of options: a suite's defaults, under those of an entry, under what was typed.

use std::collections::BTreeMap;

use clap::{Arg, ArgMatches, Command, parser::ValueSource};
use ombx_core::benchmark::{entry::Choice, threads::Threading};

use crate::axes;

/// Options of which a layer above removes those below: they cannot stand together.
const RIVALS: [(&[&str], &[&str]); 3] = [
    (&["precision", "max-time"], &["iterations", "warmup"]),
    (&["hosts"], &["hostfile"]),
    (&["quiet"], &["verbose"]),
];
/// What is longer is no name with a typing error in it.
const LONGEST_NAME: usize = 64;
/// Headings of options that hold for a whole job.
const OF_THE_JOB: [&str; 2] = ["Ranks", "Output"];

/// The options of `ombx run`.
pub(super) struct Known<'c>(Vec<Choosable<'c>>);

/// One of them.
pub(super) struct Choosable<'c> {
    pub(super) name: &'c str,
    pub(super) takes_value: bool,
    /// Its name alone means something too.
    pub(super) stands_alone: bool,
    pub(super) of_the_job: bool,
    id: &'c str,
}

impl<'c> Known<'c> {
    pub(super) fn of(command: &'c Command) -> Known<'c> {
        let run = command.find_subcommand("run");
        let option = |arg: &'c Arg| {
            Some(Choosable {
                name: arg.get_long()?,
                takes_value: arg.get_action().takes_values(),
                stands_alone: arg.get_num_args().is_some_and(|n| n.min_values() == 0),
                of_the_job: arg.is_hide_set()
                    || arg.get_help_heading().is_some_and(|h| OF_THE_JOB.contains(&h)),
                id: arg.get_id().as_str(),
            })
        };
        Known(run.into_iter().flat_map(Command::get_arguments).filter_map(option).collect())
    }

    pub(super) fn option(&self, name: &str) -> Option<&Choosable<'c>> {
        self.0.iter().find(|option| option.name == name && option.id != "relay")
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &'c str> {
        self.0.iter().filter(|option| option.id != "relay").map(|option| option.name)
    }
}

/// What an option was given.
#[derive(Debug, Clone)]
pub(super) struct Given {
    /// As on a command line.
    pub(super) words: Vec<String>,
    /// In a file.
    pub(super) line: Option<usize>,
}

/// Options by name.
#[derive(Debug, Clone, Default)]
pub(super) struct Layer(BTreeMap<String, Given>);

impl Layer {
    /// What was typed.
    pub(super) fn typed(known: &Known<'_>, matches: &ArgMatches) -> Layer {
        let mut layer = Layer::default();
        for Choosable { name, takes_value, id, .. } in &known.0 {
            if matches.value_source(id) != Some(ValueSource::CommandLine) {
                continue;
            }
            let raw = matches.get_raw(id).into_iter().flatten().map(|value| value.to_string_lossy());
            let valued: Vec<String> = raw.map(|value| format!("--{name}={value}")).collect();
            let words = if *takes_value && !valued.is_empty() { valued } else { vec![format!("--{name}")] };
            layer.set(name, Given { words, line: None });
        }
        layer
    }

    /// Sets an option, instead of what cannot stand beside it.
    pub(super) fn set(&mut self, name: &str, given: Given) {
        for (some, others) in RIVALS {
            for (mine, theirs) in [(some, others), (others, some)] {
                if mine.contains(&name) {
                    self.0.retain(|known, _| !theirs.contains(&known.as_str()));
                }
            }
        }
        let negated = name.strip_prefix("no-").map_or_else(|| format!("no-{name}"), str::to_owned);
        self.0.remove(&negated);
        self.0.insert(name.to_owned(), given);
    }

    /// This layer with another over it.
    pub(super) fn under(&self, upper: &Layer) -> Layer {
        let mut both = self.clone();
        upper.0.iter().for_each(|(name, given)| both.set(name, given.clone()));
        both
    }

    /// Those options that mean something to benchmarks: what is said of a whole suite does not fit each of them.
    pub(super) fn meant(&self, choices: &[Choice]) -> Layer {
        let kept = self.0.iter().filter(|(name, _)| means(name, choices));
        Layer(kept.map(|(name, given)| (name.clone(), given.clone())).collect())
    }

    /// An option that means nothing to any of them.
    pub(super) fn foreign(&self, choices: &[Choice]) -> Option<&str> {
        self.0.keys().map(String::as_str).find(|name| !means(name, choices))
    }

    pub(super) fn words(&self) -> impl Iterator<Item = &String> {
        self.0.values().flat_map(|given| &given.words)
    }

    /// Those that say how something is measured, as on a command line.
    pub(super) fn measured(&self, known: &Known<'_>) -> String {
        let of = |name: &str| known.option(name).is_some_and(|option| !option.of_the_job);
        let words = self.0.iter().filter(|(name, _)| of(name)).flat_map(|(_, given)| given.words.clone());
        words.collect::<Vec<_>>().join(" ")
    }

    /// The line of the option that a message names.
    pub(super) fn line_in(&self, message: &str) -> Option<usize> {
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

/// Whether an option means something to one of the benchmarks at least.
fn means(name: &str, choices: &[Choice]) -> bool {
    let any = |test: &dyn Fn(&Choice) -> bool| choices.iter().any(test);
    let axis = name.strip_prefix("no-").unwrap_or(name);
    match name {
        axes::OF_ALL => true,
        "root" => any(&|choice| choice.bench.rooted),
        "pairs" => any(&|choice| choice.bench.layout.has_pairs()),
        "threads" => any(&|choice| {
            choice.bench.threading == Threading::Multiple
                || choice.bench.axes.iter().any(|axis| axis.name == "workers")
        }),
        _ => {
            let has = any(&|choice| {
                choice.bench.axes.iter().any(|a| a.name == axis)
                    || choice.bench.settings.iter().any(|s| s.name == name)
            });
            has || !is_of_benchmarks(axis)
        }
    }
}

/// Whether options of this name are made from benchmarks' axes and settings.
fn is_of_benchmarks(name: &str) -> bool {
    let registry = ombx_core::benchmark::registry::Registry::load();
    registry.is_ok_and(|registry| {
        registry.axes().iter().any(|axis| axis.name == name)
            || registry.settings().iter().any(|setting| setting.name == name)
    })
}

/// The known name that was probably meant.
pub(super) fn nearest<'n>(wrong: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    if wrong.len() > LONGEST_NAME {
        return None;
    }
    let scored = names.map(|name| (strsim::damerau_levenshtein(name, wrong), name));
    scored.min().filter(|(errors, _)| *errors <= (wrong.len() / 2).max(2)).map(|(_, name)| name)
}
