//! Options made from the axes of the registered benchmarks: adding an axis edits no argument parser.

use std::collections::BTreeMap;

use clap::{
    Arg, ArgAction, ArgMatches, Command,
    builder::{PossibleValuesParser, ValueParser},
};
use ombx_core::{
    benchmark::{axis::Axis, entry::Choice, registry::Registry, setting::Setting},
    error::{Error, Result},
};

const ALL: &str = "all";
/// An option of every job, which is a setting of some benchmarks too.
pub(crate) const OF_ALL: &str = "hosts";
const HEADING: &str = "Axes of benchmarks";

/// What the user chose.
#[derive(Debug, Default)]
pub(crate) struct Chosen {
    /// Axis to values.
    pub(crate) axes: BTreeMap<String, Vec<&'static str>>,
    /// Setting to value.
    pub(crate) settings: BTreeMap<String, String>,
}

/// Adds `--AXIS VALUE[,VALUE]` for every axis and `--SETTING VALUE` for every setting.
pub(crate) fn add_options(run: Command, registry: &Registry) -> Command {
    let axes = registry.axes();
    let taken = |name: &str| run.get_arguments().any(|argument| argument.get_id() == name);
    // A setting that is an option of every benchmark, or an axis of another, adds none.
    let settings: Vec<&Setting> = registry.settings().into_iter().filter(|s| !taken(s.name)).collect();
    let own = |setting: &&Setting| axes.iter().all(|axis| axis.name != setting.name);
    let run = settings.into_iter().filter(own).fold(run, |run, setting| {
        let check = |value: &str| (setting.check)(value).map(|()| value.to_owned());
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
    let settings = registry.settings();
    axes.into_iter().fold(run, |run, axis| {
        let mut help = format!(
            "{}, for example: --{}{} [default: {}]",
            axis.about,
            axis.name,
            example(axis).map(|value| format!(" {value}")).unwrap_or_default(),
            axis.default
        );
        let values = PossibleValuesParser::new(axis.values.iter().copied().chain([ALL]));
        let parser = match settings.iter().find(|setting| setting.name == axis.name) {
            None => ValueParser::new(values),
            // What is an axis of some benchmarks may be a number of others.
            Some(Setting { name, value, about, default, check }) => {
                help += &format!("; or {value}: {about}");
                help += &default.map_or(String::new(), |default| format!(" [default: {default}]"));
                let one_of = format!("none of {}", axis.values.join(", "));
                ValueParser::new(move |text: &str| match axis.values.contains(&text) || text == ALL {
                    true => Ok(text.to_owned()),
                    false => check(text)
                        .map(|()| text.to_owned())
                        .map_err(|e| format!("{one_of}; as a number of {name}: {e}")),
                })
            }
        };
        let run = match axis.values {
            // A switch can be turned off as switches are: --no-hints.
            ["on", "off"] => run.arg(
                Arg::new(format!("no-{}", axis.name))
                    .long(format!("no-{}", axis.name))
                    .help(format!("The same as --{} off", axis.name))
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
            // A switch can be turned on as switches are: --spin.
            ["off", "on"] => option.num_args(0..=1).require_equals(true).default_missing_value("on"),
            _ => option,
        })
    })
}

/// A value to show; none of a switch that is turned on by its name.
fn example(axis: &Axis) -> Option<&'static str> {
    let value = axis.values.iter().find(|v| **v != axis.default).copied().unwrap_or(axis.default);
    (axis.values != ["off", "on"]).then_some(value)
}

/// What was chosen on each axis, in the order of the axis, each value once.
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
        let mut others = wanted.iter().filter(|w| w.as_str() != ALL && !axis.values.contains(&w.as_str()));
        if let Some(value) = others.next_back() {
            chosen.settings.insert(axis.name.into(), (*value).clone());
        }
        if !of_axis.is_empty() {
            chosen.axes.insert(axis.name.into(), of_axis);
        }
    }
    let own = |setting: &&Setting| registry.axes().iter().all(|axis| axis.name != setting.name);
    for setting in registry.settings().into_iter().filter(own) {
        if let Ok(Some(values)) = matches.try_get_many::<String>(setting.name) {
            chosen.settings.insert(setting.name.into(), values.cloned().collect::<Vec<_>>().join(","));
        }
    }
    Ok(chosen)
}

/// A choice that none of the benchmarks has is a mistake, not silence.
pub(crate) fn fit(chosen: &Chosen, choices: &[Choice]) -> Result<()> {
    let has_axis = |name: &&String| choices.iter().any(|c| c.bench.axes.iter().any(|a| a.name == **name));
    let has_setting =
        |name: &&String| choices.iter().any(|c| c.bench.settings.iter().any(|s| s.name == **name));
    let of_all = |name: &&String| name.as_str() == OF_ALL;
    let axis = chosen.axes.keys().find(|name| !has_axis(name));
    match axis.or_else(|| chosen.settings.keys().find(|name| !has_setting(name) && !of_all(name))) {
        None => Ok(()),
        Some(name) => {
            let benches: Vec<&str> = choices.iter().map(|c| c.bench.name).collect();
            Err(Error::usage(format!("--{name} means nothing to {}", benches.join(", "))))
        }
    }
}
