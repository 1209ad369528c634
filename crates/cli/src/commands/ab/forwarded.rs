//! The arguments of `ombx ab` that each launch of `ombx run` gets.

use std::ffi::OsString;

use clap::{ArgMatches, Command, parser::ValueSource};

/// Arguments for `ab` itself. All others are for each launch.
const OF_AB: [&str; 12] = [
    "a", "b", "patterns", "json", "fail_on", "junit", "out", "launches", "seed", "format", "color", "launch",
];

/// Returns the words of `ombx run` that stand for the given arguments of `ombx ab`.
pub(super) fn words(parser: &Command, matches: &ArgMatches, patterns: &[String]) -> Vec<OsString> {
    let mut words = Vec::new();
    let options = parser.find_subcommand("ab").into_iter().flat_map(Command::get_arguments);
    for arg in options.filter(|arg| !OF_AB.contains(&arg.get_id().as_str())) {
        let id = arg.get_id().as_str();
        let given =
            matches.try_contains_id(id).is_ok() && matches.value_source(id) == Some(ValueSource::CommandLine);
        let Some(long) = arg.get_long().filter(|_| given) else { continue };
        match arg.get_action().takes_values() {
            false => words.push(format!("--{long}").into()),
            true => words.extend(matches.get_raw(id).into_iter().flatten().map(|value| {
                let mut word = OsString::from(format!("--{long}="));
                word.push(value);
                word
            })),
        }
    }
    words.push("--".into());
    words.extend(patterns.iter().map(OsString::from));
    words
}
