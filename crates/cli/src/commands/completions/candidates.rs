//! What is offered: commands and options that are not internal, names of benchmarks, suites and OSU programs, and parameters of the
//! benchmarks on the command line.

use std::{ffi::OsStr, path::Path};

use clap::{Arg, ArgAction, Command, ValueHint};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter};
use ombx_core::benchmark::{Choice, Registry};

use super::words::Typed;
use crate::{commands::help, families, job::lookup, suite};

/// A name and a sentence about it.
type Candidate = (String, String);

/// Returns a parser with what is offered for a command line.
pub(super) fn offered(registry: &Registry, parser: &Command, typed: &Typed) -> Command {
    let chosen = choices(registry, typed);
    let empty = typed.words[typed.index].is_empty();
    let benchmarks = benchmarks(registry);
    let families: Vec<Candidate> = families(registry)
        .map(|name| (name.to_owned(), families::about(name).unwrap_or_default().to_owned()))
        .collect();
    let osu: Vec<Candidate> = registry
        .all()
        .iter()
        .flat_map(|bench| bench.osu_names().map(|osu| (osu.name.to_owned(), bench.name.to_owned())))
        .collect();
    let runs =
        names(beginnings(registry), [benchmarks.clone(), osu.clone(), suites()].concat(), Suites::InFiles);
    let listed =
        names(beginnings(registry), [families, benchmarks, osu.clone(), suites()].concat(), Suites::InFiles);
    let osu = names(Vec::new(), osu, Suites::None);
    let commands = help::visible(parser).into_iter().map(|command| {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        (command.get_name().to_owned(), about)
    });
    let pages = help::PAGES.map(|(name, about)| (name.to_owned(), about.to_owned()));
    let topics = names(Vec::new(), commands.chain(pages).collect(), Suites::None);
    let of_command = |command: Command| {
        let completer = |id: &str| match (command.get_name(), id) {
            ("run" | "ab" | "congestion", "patterns") => Some(runs.clone()),
            ("list", "patterns") => Some(listed.clone()),
            ("osu", "name") => Some(osu.clone()),
            ("help", "words") => Some(topics.clone()),
            _ => None,
        };
        let has_words = command.get_positionals().next().is_some() || command.has_subcommands();
        command.clone().mut_args(|arg| {
            let arg = match completer(arg.get_id().as_str()) {
                Some(completer) => arg.add(completer),
                None => arg,
            };
            let is_file =
                command.get_name() == "compare" && ["sides", "base", "new"].contains(&arg.get_id().as_str());
            let arg = if is_file { arg.value_hint(ValueHint::FilePath) } else { arg };
            // Options are offered once a dash is typed, if the command has something else to offer.
            let hidden = empty && has_words && !arg.is_positional();
            arg.hide(hidden)
        })
    };
    let visible = |arg: &Arg| !arg.is_hide_set() && applies(arg, &chosen);
    without_internal(parser, &visible, &of_command)
}

/// Returns a copy of a command and its subcommands without what users need not know.
fn without_internal(
    command: &Command,
    visible: &impl Fn(&Arg) -> bool,
    complete: &impl Fn(Command) -> Command,
) -> Command {
    let subcommands = command.get_subcommands().filter(|command| !command.is_hide_set());
    let copy = Command::new(command.get_name().to_owned())
        .display_order(command.get_display_order())
        .disable_help_flag(true)
        .disable_version_flag(true)
        .disable_help_subcommand(true)
        .args(command.get_arguments().filter(|arg| visible(arg)).cloned())
        .args(automatic(command))
        .subcommands(subcommands.map(|command| without_internal(command, visible, complete)));
    let copy = match command.get_about() {
        Some(about) => copy.about(about.clone()),
        None => copy,
    };
    complete(copy)
}

/// Returns the options that clap adds to a command when it is used.
fn automatic(command: &Command) -> Vec<Arg> {
    let mut options = Vec::new();
    if !command.is_disable_help_flag_set() {
        options.push(Arg::new("help").short('h').long("help").help("Print help").action(ArgAction::SetTrue));
    }
    if command.get_version().is_some() {
        let version = Arg::new("version").short('V').long("version").help("Print version");
        options.push(version.action(ArgAction::SetTrue));
    }
    options
}

/// Returns the benchmarks that the words before the current one select.
fn choices(registry: &Registry, typed: &Typed) -> Vec<Choice> {
    let words = typed.words.iter().take(typed.index).skip(2).filter_map(|word| word.to_str());
    words.filter_map(|word| lookup::find(registry, word).ok()).flatten().collect()
}

/// Returns whether one of the benchmarks has an option. Without a benchmark, all options are offered.
fn applies(arg: &Arg, chosen: &[Choice]) -> bool {
    chosen.is_empty() || arg.get_long().is_none_or(|name| suite::applies(name, chosen))
}

/// Whether a word can be the file of a suite.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Suites {
    InFiles,
    None,
}

/// Returns a completer of names that begin like the word. For an empty word it offers the beginnings only, if there are any.
fn names(beginnings: Vec<Candidate>, names: Vec<Candidate>, suites: Suites) -> ArgValueCompleter {
    ArgValueCompleter::new(move |current: &OsStr| {
        let current = current.to_string_lossy();
        let offered = if current.is_empty() && !beginnings.is_empty() { &beginnings } else { &names };
        let mut offered: Vec<&Candidate> =
            offered.iter().filter(|(name, _)| name.starts_with(&*current)).collect();
        offered.sort();
        let candidate = |(name, about): &Candidate| {
            CompletionCandidate::new(name.clone()).help(Some(about.clone().into()))
        };
        match offered.is_empty() {
            true if suites == Suites::InFiles => {
                let suite = |path: &Path| path.is_dir() || path.extension().is_some_and(|end| end == "toml");
                PathCompleter::any().filter(suite).complete(OsStr::new(&*current))
            }
            _ => offered.into_iter().map(candidate).collect(),
        }
    })
}

fn benchmarks(registry: &Registry) -> Vec<Candidate> {
    registry.all().iter().map(|bench| (bench.name.to_owned(), bench.about.to_owned())).collect()
}

fn suites() -> Vec<Candidate> {
    suite::built_in().map(|name| (format!("suite:{name}"), "suite of benchmarks".to_owned())).collect()
}

fn families(registry: &Registry) -> impl Iterator<Item = &'static str> {
    registry.all().chunk_by(|a, b| families::of(a) == families::of(b)).map(|family| families::of(family[0]))
}

/// Returns the beginnings of all names: there are too many names to show at once.
fn beginnings(registry: &Registry) -> Vec<Candidate> {
    let families = families(registry)
        .map(|name| (format!("{name}."), families::about(name).unwrap_or_default().to_owned()));
    let others = [("osu_", "names of the OSU benchmarks"), ("suite:", "suites of benchmarks")];
    families.chain(others.map(|(name, about)| (name.to_owned(), about.to_owned()))).collect()
}
