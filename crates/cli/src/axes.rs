//! Options made from the axes of the registered benchmarks: adding an axis edits no argument parser.

use std::collections::BTreeMap;

use clap::{Arg, ArgAction, ArgMatches, Command, builder::PossibleValuesParser};
use ombx_core::{
    case::Axis,
    error::{Error, Result},
    registry::{Benchmark, Registry},
};

const ALL: &str = "all";

/// Axis to the values that the user chose.
pub(crate) type Chosen = BTreeMap<String, Vec<&'static str>>;

/// Adds `--AXIS VALUE[,VALUE]` for every axis.
pub(crate) fn add_options(run: Command, registry: &Registry) -> Command {
    registry.axes().into_iter().fold(run, |run, axis| {
        let values = axis.values.iter().copied().chain([ALL]);
        let help = format!("{}, for example: --{} {} [default: {}]", axis.about, axis.name, example(axis), axis.default);
        run.arg(
            Arg::new(axis.name)
                .long(axis.name)
                .help(help)
                .help_heading("Axes of benchmarks")
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
        let Ok(Some(values)) = matches.try_get_many::<String>(axis.name) else { continue };
        let wanted: Vec<&String> = values.collect();
        let named = |v: &&&str| wanted.iter().any(|w| w.as_str() == ALL || w.as_str() == **v);
        chosen.insert(axis.name.into(), axis.values.iter().filter(named).copied().collect());
    }
    Ok(chosen)
}

/// A choice that none of the benchmarks has is a mistake, not silence.
pub(crate) fn fit(chosen: &Chosen, benches: &[&'static Benchmark]) -> Result<()> {
    let has = |name: &str| benches.iter().any(|b| b.axes.iter().any(|a| a.name == name));
    match chosen.keys().find(|name| !has(name)) {
        None => Ok(()),
        Some(name) => {
            let benches: Vec<&str> = benches.iter().map(|b| b.name).collect();
            Err(Error::usage(format!("--{name} means nothing to {}", benches.join(", "))))
        }
    }
}
