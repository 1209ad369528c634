//! Options made from the axes of the registered benchmarks: adding an axis edits no argument parser.

use std::collections::BTreeMap;

use clap::{Arg, ArgAction, ArgMatches, Command, builder::PossibleValuesParser};
use ombx_core::{
    case::Axis,
    error::{Error, Result},
    registry::{Choice, Registry},
};

const ALL: &str = "all";
const HEADING: &str = "Axes of benchmarks";

/// Axis to the values that the user chose.
pub(crate) type Chosen = BTreeMap<String, Vec<&'static str>>;

/// Adds `--AXIS VALUE[,VALUE]` for every axis.
pub(crate) fn add_options(run: Command, registry: &Registry) -> Command {
    registry.axes().into_iter().fold(run, |run, axis| {
        let values = axis.values.iter().copied().chain([ALL]);
        let help = format!(
            "{}, for example: --{} {} [default: {}]",
            axis.about,
            axis.name,
            example(axis),
            axis.default
        );
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
        run.arg(
            Arg::new(axis.name)
                .long(axis.name)
                .help(help)
                .help_heading(HEADING)
                .value_delimiter(',')
                .action(ArgAction::Append)
                .value_parser(PossibleValuesParser::new(values)),
        )
    })
}

fn example(axis: &Axis) -> &'static str {
    axis.values.iter().find(|v| **v != axis.default).copied().unwrap_or(axis.default)
}

/// What was chosen on each axis, in the order of the axis, each value once.
pub(crate) fn chosen(registry: &Registry, matches: &ArgMatches) -> Result<Chosen> {
    let mut chosen = Chosen::new();
    for axis in registry.axes() {
        if let Ok(Some(true)) = matches.try_get_one::<bool>(&format!("no-{}", axis.name)).map(|v| v.copied())
        {
            chosen.insert(axis.name.into(), vec!["off"]);
        }
        let Ok(Some(values)) = matches.try_get_many::<String>(axis.name) else { continue };
        let wanted: Vec<&String> = values.collect();
        let named = |v: &&&str| wanted.iter().any(|w| w.as_str() == ALL || w.as_str() == **v);
        chosen.insert(axis.name.into(), axis.values.iter().filter(named).copied().collect());
    }
    Ok(chosen)
}

/// A choice that none of the benchmarks has is a mistake, not silence.
pub(crate) fn fit(chosen: &Chosen, choices: &[Choice]) -> Result<()> {
    let has = |name: &str| choices.iter().any(|c| c.bench.axes.iter().any(|a| a.name == name));
    match chosen.keys().find(|name| !has(name)) {
        None => Ok(()),
        Some(name) => {
            let benches: Vec<&str> = choices.iter().map(|c| c.bench.name).collect();
            Err(Error::usage(format!("--{name} means nothing to {}", benches.join(", "))))
        }
    }
}
