//! Options that the user has given, as words for another command line.

use std::ffi::OsString;

use clap::{Arg, ArgMatches, Command, parser::ValueSource};

/// Returns each option of a command that was given, with its words `--NAME` or `--NAME=VALUE`.
pub(crate) fn options<'c>(
    command: &'c Command,
    matches: &ArgMatches,
) -> impl Iterator<Item = (&'c Arg, Vec<OsString>)> {
    command.get_arguments().filter_map(|arg| {
        let (id, name) = (arg.get_id().as_str(), arg.get_long()?);
        matches.try_contains_id(id).ok()?;
        if matches.value_source(id) != Some(ValueSource::CommandLine) {
            return None;
        }
        let values = matches.get_raw(id).into_iter().flatten().filter(|_| arg.get_action().takes_values());
        let word =
            |value| [OsString::from(format!("--{name}=")), OsString::from(value)].into_iter().collect();
        let words: Vec<OsString> = values.map(word).collect();
        Some((arg, if words.is_empty() { vec![format!("--{name}").into()] } else { words }))
    })
}
