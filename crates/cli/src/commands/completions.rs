//! `ombx completions`: the scripts of `clap_complete` by which a shell asks ombx for completions, and what ombx offers.

use std::{
    env,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

use clap::{Arg, ArgAction, Args, Command, ValueEnum, ValueHint};
use clap_complete::{
    engine::{ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter},
    env::{Bash, EnvCompleter, Fish, Zsh},
};
use ombx_core::benchmark::{Choice, Registry};
use ombx_launch::output::terminal;
use ombx_record::error::{Error, Result};

use crate::{commands::help, families, lookup, suite};

/// Environment variable through which the script of a shell asks for completions: its value is the shell.
const ASKED_BY: &str = "_OMBX_COMPLETE";
/// Environment variable with the number of the word to complete, from 0. fish completes the last word.
const INDEX: &str = "_CLAP_COMPLETE_INDEX";
/// What follows the script of `clap_complete` for bash, which does not complete after `=` and `:`.
const AFTER_BASH: &str = include_str!("completions/ombx.bash");

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// Shell that reads the script
    shell: Shell,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shell {
    /// In ~/.bashrc: source <(ombx completions bash)
    Bash,
    /// In ~/.zshrc, after compinit: source <(ombx completions zsh)
    Zsh,
    /// In fish's config.fish: ombx completions fish | source
    Fish,
}

impl Shell {
    fn completer(self) -> &'static dyn EnvCompleter {
        match self {
            Shell::Bash => &Bash,
            Shell::Zsh => &Zsh,
            Shell::Fish => &Fish,
        }
    }
}

/// Prints the script of a shell.
pub(crate) fn completions(args: &CompletionsArgs) -> Result<u8> {
    let ombx = completer(env::args_os().next());
    let mut script = Vec::new();
    let shell = args.shell.completer();
    shell
        .write_registration(ASKED_BY, "ombx", "ombx", &ombx.to_string_lossy(), &mut script)
        .map_err(|e| Error::storage(format!("cannot write the script: {e}")))?;
    if args.shell == Shell::Bash {
        script.extend_from_slice(AFTER_BASH.as_bytes());
    }
    terminal::print(script)
}

/// Returns the program that a script asks: as this process was called, by name if it was searched in `PATH`.
fn completer(called: Option<OsString>) -> PathBuf {
    let called = called.map_or_else(|| PathBuf::from("ombx"), PathBuf::from);
    match (called.components().count(), env::current_dir()) {
        (2.., Ok(directory)) => directory.join(called),
        _ => called,
    }
}

/// Returns the shell whose script has started this process to complete a command line.
pub(crate) fn asking_shell() -> Option<Shell> {
    Shell::from_str(&env::var(ASKED_BY).ok()?, false).ok()
}

/// Prints completions for the words after `--` in the form that the script of the shell reads.
pub(crate) fn answer(registry: &Registry, parser: &Command, shell: Shell) -> Result<u8> {
    let words = env::args_os().skip_while(|word| word != "--").skip(1);
    let mut words: Vec<OsString> = words.map(|word| unquoted(&word.to_string_lossy()).into()).collect();
    if words.is_empty() {
        words.push(OsString::new());
    }
    let index = env::var(INDEX).ok().and_then(|index| index.parse().ok());
    let index = index.unwrap_or(words.len() - 1);
    let mut offered = offered(registry, parser, &words, index);
    let (directory, mut text) = (env::current_dir().ok(), Vec::new());
    shell
        .completer()
        .write_complete(&mut offered, words, directory.as_deref(), &mut text)
        .map_err(|e| Error::storage(format!("cannot complete: {e}")))?;
    terminal::print(text)
}

/// Returns a word without its quotation marks, of which the last may not have been typed yet.
fn unquoted(word: &str) -> String {
    match shell_words::split(word).as_deref() {
        Ok([one]) => one.clone(),
        _ => word.trim_start_matches(['\'', '"']).to_owned(),
    }
}

/// A name and a sentence about it.
type Candidate = (String, String);

/// Returns a parser with what is offered for the word at this index of a command line. It may not be typed yet.
fn offered(registry: &Registry, parser: &Command, words: &[OsString], index: usize) -> Command {
    let chosen = choices(registry, words.get(..index).unwrap_or(words));
    let empty = words.get(index).is_none_or(|word| word.is_empty());
    let benchmarks = benchmarks(registry);
    let families: Vec<Candidate> = families::names(registry)
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
fn choices(registry: &Registry, before: &[OsString]) -> Vec<Choice> {
    let words = before.iter().skip(2).filter_map(|word| word.to_str());
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
        if offered.is_empty() && suites == Suites::InFiles {
            let suite = |path: &Path| path.is_dir() || path.extension().is_some_and(|end| end == "toml");
            return PathCompleter::any().filter(suite).complete(OsStr::new(&*current));
        }
        offered.into_iter().map(candidate).collect()
    })
}

fn benchmarks(registry: &Registry) -> Vec<Candidate> {
    registry.all().iter().map(|bench| (bench.name.to_owned(), bench.about.to_owned())).collect()
}

fn suites() -> Vec<Candidate> {
    suite::built_in().map(|name| (format!("suite:{name}"), "suite of benchmarks".to_owned())).collect()
}

/// Returns the beginnings of all names: there are too many names to show at once.
fn beginnings(registry: &Registry) -> Vec<Candidate> {
    let families = families::names(registry)
        .map(|name| (format!("{name}."), families::about(name).unwrap_or_default().to_owned()));
    let others = [("osu_", "names of the OSU benchmarks"), ("suite:", "suites of benchmarks")];
    families.chain(others.map(|(name, about)| (name.to_owned(), about.to_owned()))).collect()
}

#[cfg(test)]
mod tests {
    use clap_complete::engine;

    use super::*;
    use crate::commands::parser;

    /// Completes the end of a line.
    fn completed(line: &str) -> Vec<String> {
        let words: Vec<OsString> = line.split(' ').map(|word| unquoted(word).into()).collect();
        let registry = Registry::load().unwrap();
        let index = words.len() - 1;
        let mut offered = offered(&registry, &parser(&registry), &words, index);
        let found = engine::complete(&mut offered, words, index, None).unwrap();
        found.iter().map(|candidate| candidate.get_value().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn commands_without_internal_ones() {
        let all = completed("ombx ");
        assert!(["run", "help", "list"].iter().all(|name| all.contains(&(*name).to_owned())), "{all:?}");
        for internal in ["worker", "codegen", "pipeline"] {
            assert!(!all.iter().any(|name| name.starts_with(internal)), "{all:?}");
        }
        assert!(completed("ombx work").is_empty() && completed("ombx run --rela").is_empty());
        assert!(completed("ombx help wor").is_empty());
        assert_eq!(completed("ombx help ru"), ["run"]);
    }

    #[test]
    fn files_hosts_and_numbers_have_no_candidates_of_their_own() {
        assert!(completed("ombx run p2p.latency --hosts ").is_empty());
        assert!(completed("ombx run p2p.latency -n ").is_empty());
    }

    #[cfg(all(feature = "mpi", feature = "sockets"))]
    #[test]
    fn benchmarks_suites_and_osu_names() {
        let of = |line: &str, expected: &[&str]| assert_eq!(completed(line), expected, "{line}");
        of("ombx run ", &["collective.", "io.", "osu_", "p2p.", "rma.", "sockets.", "suite:"]);
        of("ombx run p2p.latency_p", &["p2p.latency_partitioned", "p2p.latency_persistent"]);
        of("ombx run suite:s", &["suite:smoke"]);
        of("ombx run p2p.bw osu_put_b", &["osu_put_bibw", "osu_put_bw"]);
        of("ombx ab rma.cas", &["rma.cas_latency"]);
        of("ombx osu osu_put_b", &["osu_put_bibw", "osu_put_bw"]);
        of(
            "ombx list sock",
            &[
                "sockets",
                "sockets.bibw",
                "sockets.bw",
                "sockets.connect",
                "sockets.datagrams",
                "sockets.latency",
                "sockets.link",
                "sockets.pipeline",
                "sockets.request",
            ],
        );
    }

    #[cfg(all(feature = "mpi", feature = "sockets"))]
    #[test]
    fn axes_of_the_benchmarks_and_their_values() {
        let of = |line: &str, expected: &[&str]| assert_eq!(completed(line), expected, "{line}");
        of("ombx run rma.put_bw --syn", &["--sync"]);
        of("ombx run 'rma.*' --sync fence,fl", &["fence,flush", "fence,flush_local"]);
        of("ombx run rma.put_bw --sync=fen", &["--sync=fence"]);
        of("ombx run p2p.latency --sync", &[]);
        of("ombx run --sync", &["--sync", "--sync-hosts"]);
        of("ombx links --fail-on n", &["nothing"]);
    }
}
