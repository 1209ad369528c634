//! The options of `ombx run` as keys of suites.

use clap::{Arg, Command};

/// Headings of options that hold for a whole job.
const OF_JOB: [&str; 2] = ["Ranks", "Output"];

/// Options of `ombx run`.
pub(super) struct RunOptions<'c>(Vec<RunOption<'c>>);

pub(super) struct RunOption<'c> {
    pub(super) name: &'c str,
    pub(super) id: &'c str,
    pub(super) takes_value: bool,
    pub(super) value_is_optional: bool,
    /// Holds for the whole job, not for a single entry.
    pub(super) of_job: bool,
}

impl<'c> RunOptions<'c> {
    pub(super) fn of(parser: &'c Command) -> RunOptions<'c> {
        let run = parser.find_subcommand("run");
        let option = |arg: &'c Arg| {
            Some(RunOption {
                name: arg.get_long()?,
                id: arg.get_id().as_str(),
                takes_value: arg.get_action().takes_values(),
                value_is_optional: arg.get_num_args().is_some_and(|n| n.min_values() == 0),
                of_job: arg.is_hide_set() || arg.get_help_heading().is_some_and(|h| OF_JOB.contains(&h)),
            })
        };
        RunOptions(run.into_iter().flat_map(Command::get_arguments).filter_map(option).collect())
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &RunOption<'c>> {
        self.0.iter()
    }

    /// Returns the options that are keys of suites.
    pub(super) fn keys(&self) -> impl Iterator<Item = &RunOption<'c>> {
        self.0.iter().filter(|option| option.id != "relay")
    }

    pub(super) fn key(&self, name: &str) -> Option<&RunOption<'c>> {
        self.keys().find(|option| option.name == name)
    }
}
