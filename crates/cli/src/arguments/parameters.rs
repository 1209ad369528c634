//! Options that are made from the parameters of the registered benchmarks.

use clap::{
    Arg, ArgAction, ArgMatches, Command,
    builder::{PossibleValue, PossibleValuesParser},
};
use ombx_core::benchmark::{ALL, Choice, Chosen, Heading, Parameter, Registry, Value, Values, list_file};
use ombx_record::{
    error::{Error, Result},
    order::sort_by_number,
};

pub(crate) use ombx_launch::launch::start::HOSTS;

use crate::arguments::values::HostList;

/// Heading of options that say what is measured, and of parameters that most benchmarks have.
const GENERAL: &str = "What is measured";
pub(crate) const OWN: &str = "Options of single benchmarks";

/// Adds `--PARAMETER VALUE[,VALUE]` for every parameter. Those with free values come first.
pub(crate) fn add_options(run: Command, registry: &Registry) -> Command {
    // A parameter that is an option of every job adds none.
    let taken: Vec<String> = run.get_arguments().map(|argument| argument.get_id().to_string()).collect();
    let is_missing = |parameter: &&Parameter| !taken.iter().any(|name| name == parameter.name);
    let mut parameters: Vec<&'static Parameter> =
        registry.parameters().iter().copied().filter(is_missing).collect();
    sort_by_number(&mut parameters, |parameter| (!parameter.names().is_empty()).into());
    parameters.into_iter().fold(run, |run, parameter| {
        let having = registry.all().iter().filter(|bench| bench.parameter(parameter.name).is_some());
        let heading = match parameter.heading {
            Heading::General if 2 * having.count() > registry.all().len() => GENERAL,
            Heading::General | Heading::Own => OWN,
            Heading::None => return run,
        };
        let run = match parameter.names() {
            // A switch that is on by default is turned off by --no-NAME.
            ["on", "off"] => run.arg(
                Arg::new(format!("no-{}", parameter.name))
                    .long(format!("no-{}", parameter.name))
                    .help(format!("Same as --{} off", parameter.name))
                    .help_heading(heading)
                    .action(ArgAction::SetTrue)
                    .conflicts_with(parameter.name),
            ),
            _ => run,
        };
        run.arg(option(parameter).help_heading(heading))
    })
}

/// Returns the option of a parameter.
fn option(parameter: &'static Parameter) -> Arg {
    let option = Arg::new(parameter.name).long(parameter.name);
    match parameter.values {
        Values::Free { placeholder, .. } => {
            let read = |value: &str| parameter.read(&list_file::content(parameter, value)?);
            option.value_name(placeholder).help(parameter.help()).allow_hyphen_values(true).value_parser(read)
        }
        Values::Listed { names, help } => {
            let default = parameter.default.unwrap_or_default();
            let example = example(parameter).map(|value| format!(" {value}")).unwrap_or_default();
            let about = parameter.about;
            let text = format!("{about}, for example: --{}{example} [default: {default}]", parameter.name);
            let values = names.iter().zip(help).map(|(name, help)| PossibleValue::new(name).help(help));
            // A job has one value of each general parameter.
            let every =
                (parameter.heading == Heading::Own).then(|| PossibleValue::new(ALL).help("Every value"));
            let option = option
                .value_name("VALUE")
                .help(text)
                .value_delimiter(',')
                .action(ArgAction::Append)
                .value_parser(PossibleValuesParser::new(values.chain(every)));
            match names {
                // A switch that is off by default is turned on by --NAME.
                ["off", "on"] => option.num_args(0..=1).require_equals(true).default_missing_value("on"),
                _ => option,
            }
        }
    }
}

/// Returns a value for the help text; `None` for a switch that needs no value.
fn example(parameter: &Parameter) -> Option<&'static str> {
    let names = parameter.names();
    let other = names.iter().find(|name| parameter.default != Some(**name)).copied();
    (*names != ["off", "on"]).then_some(other.or(parameter.default)).flatten()
}

/// Reads what a command line chooses for each parameter.
pub(crate) fn chosen(registry: &Registry, matches: &ArgMatches) -> Result<Chosen> {
    let mut chosen = Chosen::default();
    for parameter in registry.parameters() {
        let name = parameter.name;
        if let Ok(Some(true)) = matches.try_get_one::<bool>(&format!("no-{name}")).map(|v| v.copied()) {
            chosen.set(name, ["off"]);
        }
        let values: Vec<Value> = match parameter.values {
            _ if name == HOSTS => {
                let hosts: Option<&HostList> = matches.try_get_one(HOSTS).ok().flatten();
                hosts.map(|HostList(hosts)| hosts.join(",").into()).into_iter().collect()
            }
            Values::Free { .. } => {
                matches.try_get_one::<Vec<Value>>(name).ok().flatten().cloned().unwrap_or_default()
            }
            Values::Listed { .. } => match matches.try_get_many::<String>(name) {
                Ok(Some(values)) => parameter.read(&values.cloned().collect::<Vec<_>>().join(","))?,
                _ => Vec::new(),
            },
        };
        if !values.is_empty() {
            chosen.set(name, values);
        }
    }
    Ok(chosen)
}

/// Rejects a choice that none of the benchmarks supports.
pub(crate) fn check(chosen: &Chosen, choices: &[Choice]) -> Result<()> {
    let is_unknown =
        |name: &&str| *name != HOSTS && choices.iter().all(|choice| choice.bench.parameter(name).is_none());
    match chosen.names().find(is_unknown) {
        None => Ok(()),
        Some(name) => Err(unsupported(name, choices)),
    }
}

/// Returns the error that benchmarks have no option of this name.
pub(crate) fn unsupported(option: &str, choices: &[Choice]) -> Error {
    let benches: Vec<&str> = choices.iter().map(|choice| choice.bench.name).collect();
    let have = if benches.len() == 1 { "has" } else { "have" };
    let others = Registry::load().map(|registry| having(&registry, option, benches.first().copied()));
    let others = others.unwrap_or_default();
    Error::usage(format!("{} {have} no option --{option}{others}", benches.join(", ")))
}

/// Benchmarks or programs that an error names.
const NAMED: usize = 4;

/// Returns which benchmarks have an option, those of the same family first.
fn having(registry: &Registry, option: &str, bench: Option<&str>) -> String {
    let family = bench.and_then(|name| name.split('.').next()).unwrap_or_default();
    let mut names: Vec<&str> = registry
        .all()
        .iter()
        .filter(|bench| bench.parameter(option).is_some() || (option == "sizes" && bench.messages.sized))
        .map(|bench| bench.name)
        .collect();
    sort_by_number(&mut names, |name| (name.split('.').next() != Some(family)).into());
    have_it(&names, &format!(" (ombx help --{option})"))
}

/// Returns a clause with the first names of those that have an option, and where it is explained.
pub(crate) fn have_it(names: &[&str], help: &str) -> String {
    match names {
        [] => String::new(),
        [one] => format!("; {one} has it{help}"),
        all if all.len() <= NAMED => format!("; {} have it{help}", all.join(", ")),
        all => format!("; {} and {} others have it{help}", all[..NAMED].join(", "), all.len() - NAMED),
    }
}
