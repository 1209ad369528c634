//! Options that are made from the axes and settings of the registered benchmarks.

use std::collections::BTreeMap;

use clap::{
    Arg, ArgAction, ArgMatches, Command,
    builder::{PossibleValue, PossibleValuesParser},
};
use ombx_core::{
    benchmark::{Axis, Choice, Registry, Setting},
    error::{Error, Result},
};

use super::{listed_file, start::HostList};

const ALL: &str = "all";
/// An option of every job that is also a setting of some benchmarks.
pub(crate) const HOSTS: &str = "hosts";
const HEADING: &str = "Axes of benchmarks";

/// Values that the user chose.
#[derive(Debug, Default)]
pub(crate) struct Chosen {
    /// Values by axis, in the order of the axis.
    pub(crate) axes: BTreeMap<String, Vec<&'static str>>,
    /// Value by setting.
    pub(crate) settings: BTreeMap<String, String>,
}

/// Adds `--AXIS VALUE[,VALUE]` for every axis and `--SETTING VALUE` for every setting.
pub(crate) fn add_options(run: Command, registry: &Registry) -> Command {
    // A setting that is an option of every job adds none.
    let taken = |name: &str| run.get_arguments().any(|argument| argument.get_id() == name);
    let settings: Vec<&Setting> = registry.settings().into_iter().filter(|s| !taken(s.name)).collect();
    let run = settings.into_iter().fold(run, |run, setting| {
        let check = |value: &str| {
            let value = listed_file::content(setting, value)?;
            (setting.check)(&value).map(|()| value)
        };
        let help = match setting.default {
            Some(default) => format!("{} [default: {default}]", setting.about),
            None => setting.about.to_owned(),
        };
        run.arg(
            Arg::new(setting.name)
                .long(setting.name)
                .value_name(setting.value)
                .help(help)
                .help_heading(HEADING)
                .allow_hyphen_values(true)
                .value_parser(check),
        )
    });
    registry.axes().into_iter().fold(run, |run, axis| {
        let help = format!(
            "{}, for example: --{}{} [default: {}]",
            axis.about,
            axis.name,
            example(axis).map(|value| format!(" {value}")).unwrap_or_default(),
            axis.default
        );
        let values =
            axis.values.iter().zip(axis.help).map(|(name, help)| PossibleValue::new(name).help(help));
        let parser = PossibleValuesParser::new(values.chain([PossibleValue::new(ALL).help("Every value")]));
        let run = match axis.values {
            // A switch that is on by default is turned off by --no-NAME.
            ["on", "off"] => run.arg(
                Arg::new(format!("no-{}", axis.name))
                    .long(format!("no-{}", axis.name))
                    .help(format!("Same as --{} off", axis.name))
                    .help_heading(HEADING)
                    .action(ArgAction::SetTrue)
                    .conflicts_with(axis.name),
            ),
            _ => run,
        };
        let option = Arg::new(axis.name)
            .long(axis.name)
            .help(help)
            .help_heading(HEADING)
            .value_delimiter(',')
            .action(ArgAction::Append)
            .value_parser(parser);
        run.arg(match axis.values {
            // A switch that is off by default is turned on by --NAME.
            ["off", "on"] => option.num_args(0..=1).require_equals(true).default_missing_value("on"),
            _ => option,
        })
    })
}

/// Returns a value for the help text; `None` for a switch that needs no value.
fn example(axis: &Axis) -> Option<&'static str> {
    let value = axis.values.iter().find(|v| **v != axis.default).copied().unwrap_or(axis.default);
    (axis.values != ["off", "on"]).then_some(value)
}

/// Reads what a command line chooses on each axis and setting. Values are in the order of the axis, each once.
pub(crate) fn chosen(registry: &Registry, matches: &ArgMatches) -> Result<Chosen> {
    let mut chosen = Chosen::default();
    for axis in registry.axes() {
        if let Ok(Some(true)) = matches.try_get_one::<bool>(&format!("no-{}", axis.name)).map(|v| v.copied())
        {
            chosen.axes.insert(axis.name.into(), vec!["off"]);
        }
        let Ok(Some(values)) = matches.try_get_many::<String>(axis.name) else { continue };
        let wanted: Vec<&String> = values.collect();
        let named = |v: &&&str| wanted.iter().any(|w| w.as_str() == ALL || w.as_str() == **v);
        let of_axis: Vec<&'static str> = axis.values.iter().filter(named).copied().collect();
        chosen.axes.insert(axis.name.into(), of_axis);
    }
    for setting in registry.settings() {
        let values = match setting.name {
            HOSTS => matches.try_get_one(HOSTS).ok().flatten().map(|HostList(hosts)| hosts.join(",")),
            name => matches.try_get_one::<String>(name).ok().flatten().cloned(),
        };
        if let Some(values) = values {
            chosen.settings.insert(setting.name.into(), values);
        }
    }
    Ok(chosen)
}

/// Rejects a choice that none of the benchmarks supports.
pub(crate) fn check(chosen: &Chosen, choices: &[Choice]) -> Result<()> {
    let has_axis = |name: &&String| choices.iter().any(|c| c.bench.axes.iter().any(|a| a.name == **name));
    let has_setting =
        |name: &&String| choices.iter().any(|c| c.bench.settings.iter().any(|s| s.name == **name));
    let of_all = |name: &&String| name.as_str() == HOSTS;
    let axis = chosen.axes.keys().find(|name| !has_axis(name));
    match axis.or_else(|| chosen.settings.keys().find(|name| !has_setting(name) && !of_all(name))) {
        None => Ok(()),
        Some(name) => Err(unsupported(name, choices)),
    }
}

/// Returns the error that benchmarks have no option of this name.
pub(crate) fn unsupported(option: &str, choices: &[Choice]) -> Error {
    let benches: Vec<&str> = choices.iter().map(|choice| choice.bench.name).collect();
    let have = if benches.len() == 1 { "has" } else { "have" };
    Error::usage(format!("{} {have} no option --{option}", benches.join(", ")))
}
