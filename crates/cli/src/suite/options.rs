//! The options of `ombx run` as keys of suites.

use clap::{Arg, Command};

/// Headings of options that hold for a whole job.
const OF_JOB: [&str; 2] = ["Ranks", OUTPUT];
const OUTPUT: &str = "Output";
/// Options of starting ranks that a command with a time budget sets itself.
const OF_LAUNCHING: [&str; 2] = ["timeout", "rendezvous"];
/// Longer words are not taken for mistyped names.
const LONGEST_NAME: usize = 64;

/// Returns the options that are keys of suites, with their names.
pub(super) fn keys(parser: &Command) -> impl Iterator<Item = (&str, &Arg)> {
    let run = parser.find_subcommand("run").into_iter().flat_map(Command::get_arguments);
    run.filter(|arg| arg.get_id() != "relay").filter_map(|arg| Some((arg.get_long()?, arg)))
}

pub(super) fn key<'c>(parser: &'c Command, name: &str) -> Option<&'c Arg> {
    keys(parser).find(|(key, _)| *key == name).map(|(_, arg)| arg)
}

/// Returns the most similar name to a mistyped one, unless more than half of its letters differ.
pub(crate) fn nearest<'n>(wrong: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let names = names.filter(|_| wrong.len() <= LONGEST_NAME);
    let scored = names.map(|name| (strsim::damerau_levenshtein(name, wrong), name));
    scored.min().filter(|(errors, _)| *errors <= (wrong.len() / 2).max(2)).map(|(_, name)| name)
}

/// Returns whether an option holds for the whole job, not for a single entry.
pub(super) fn is_of_job(option: &Arg) -> bool {
    option.is_hide_set() || option.get_help_heading().is_some_and(|heading| OF_JOB.contains(&heading))
}

/// Returns whether a command that starts `ombx run` for each entry sets this option itself.
pub(super) fn is_of_launching_process(option: &Arg) -> bool {
    option.is_hide_set()
        || option.get_help_heading() == Some(OUTPUT)
        || option.get_long().is_some_and(|name| OF_LAUNCHING.contains(&name))
}
