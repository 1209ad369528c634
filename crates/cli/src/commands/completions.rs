//! `ombx completions`: scripts that let a shell ask ombx for completions, and the answers to what they ask.

mod candidates;
mod words;

use std::{
    env,
    ffi::OsString,
    io::{self, Write},
    path::{Path, PathBuf},
};

use clap::{Args, Command, ValueEnum};
use clap_complete::{
    engine::{self, CompletionCandidate},
    env::{EnvCompleter, Fish, Zsh},
};
use ombx_core::{
    benchmark::Registry,
    error::{Error, Result},
};

use self::words::Typed;
use crate::output::terminal;

/// Environment variable through which the script of a shell asks for completions: its value is the shell.
const ASKED_BY: &str = "_OMBX_COMPLETE";
/// Environment variable with the number of the word to complete, from 0. fish completes the last word.
const INDEX: &str = "_CLAP_COMPLETE_INDEX";
/// Script for bash. Zsh's and fish's are those of `clap_complete`; bash's does not complete after `=` and `:`.
const BASH: &str = include_str!("completions/ombx.bash");

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

/// Prints the script of a shell.
pub(crate) fn completions(args: &CompletionsArgs) -> Result<u8> {
    let ombx = completer(env::args_os().next());
    let ombx = ombx.to_string_lossy();
    let mut script = Vec::new();
    let written = match args.shell {
        Shell::Bash => {
            let quoted = shell_words::quote(&ombx);
            script.write_all(BASH.replace("@OMBX@", &quoted).replace("@ASKED_BY@", ASKED_BY).as_bytes())
        }
        Shell::Zsh => Zsh.write_registration(ASKED_BY, "ombx", "ombx", &ombx, &mut script),
        Shell::Fish => Fish.write_registration(ASKED_BY, "ombx", "ombx", &ombx, &mut script),
    };
    written.map_err(|e| Error::storage(format!("cannot write the script: {e}")))?;
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
    let words: Vec<OsString> = env::args_os().skip_while(|word| word != "--").skip(1).collect();
    let index = env::var(INDEX).ok().and_then(|index| index.parse().ok());
    let typed = match shell {
        Shell::Bash => Typed::in_bash(&words, index),
        Shell::Zsh | Shell::Fish => Typed::new(&words, index),
    };
    let directory = env::current_dir().ok();
    let candidates = complete(registry, parser, &typed, directory.as_deref());
    let candidates = candidates.map_err(|e| Error::storage(format!("cannot complete: {e}")))?;
    terminal::print(candidates.iter().map(|candidate| line(shell, &typed, candidate)).collect::<String>())
}

/// Returns the candidates for a word.
fn complete(
    registry: &Registry,
    parser: &Command,
    typed: &Typed,
    directory: Option<&Path>,
) -> io::Result<Vec<CompletionCandidate>> {
    let mut offered = candidates::offered(registry, parser, typed);
    engine::complete(&mut offered, typed.words.clone(), typed.index, directory)
}

/// Returns a candidate as a line that the script of the shell reads. zsh and fish show its help.
fn line(shell: Shell, typed: &Typed, candidate: &CompletionCandidate) -> String {
    let value = candidate.get_value().to_string_lossy();
    let help = candidate.get_help().map(ToString::to_string).unwrap_or_default();
    let help = help.lines().next().unwrap_or_default();
    match shell {
        Shell::Bash => format!("{}\n", value.strip_prefix(&typed.completed).unwrap_or(&value)),
        Shell::Zsh => {
            let escape = |text: &str| text.replace('\\', "\\\\").replace(':', "\\:");
            format!("{}:{}\n", escape(&value), escape(help))
        }
        Shell::Fish => format!("{value}\t{help}\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::parser;

    /// Completes the end of a line, as bash does.
    fn completed(line: &str) -> Vec<String> {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let registry = Registry::load().unwrap();
        let typed = Typed::new(&words, None);
        let found = complete(&registry, &parser(&registry), &typed, None).unwrap();
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
