//! The options of `ombx run` that were given to `ombx ab`, as words for another program.

use std::ffi::OsString;

use clap::{ArgMatches, Command, parser::ValueSource};

/// Options that are for `ab` itself; all others are for each launch.
const OWN: [&str; 12] = [
    "a", "b", "patterns", "json", "fail_on", "junit", "out", "launches", "seed", "format", "color", "launch",
];

/// What each launch is to run, and how.
pub(super) fn of_run(command: &Command, matches: &ArgMatches, patterns: &[String]) -> Vec<OsString> {
    let mut words = Vec::new();
    if let Some((ab, matches)) =
        matches.subcommand().and_then(|(name, m)| Some((command.find_subcommand(name)?, m)))
    {
        for arg in ab.get_arguments().filter(|arg| !OWN.contains(&arg.get_id().as_str())) {
            let id = arg.get_id().as_str();
            let given = matches.try_contains_id(id).is_ok()
                && matches.value_source(id) == Some(ValueSource::CommandLine);
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
    }
    words.push("--".into());
    words.extend(patterns.iter().map(OsString::from));
    words
}
