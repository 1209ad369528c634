//! `ombx imb`, and links to ombx named `IMB-MPI1` and so on: replaces the Intel MPI Benchmarks with the same names, options and output.

pub(crate) mod arguments;

use clap::{ArgMatches, Command};
use ombx_core::benchmark::{Choice, Medium, Registry};
use ombx_drop_in::imb::{
    ImbBenchmark, ImbHeader, ImbProgram, ImbTable,
    plan::{self, RANKS},
    programs::{self, Entry, Program},
    threads, types,
};
use ombx_launch::{
    job::Job,
    launch::{detection, preflight, start::Start},
    note_line,
    output::{
        destination::{Destination, Screen},
        terminal,
    },
    role, this_process,
};
use ombx_record::{
    error::{Error, Result},
    order::each_once_by,
};

use self::arguments::{ImbArgs, OF_IMB, OF_THREADS};
use crate::{
    arguments::{argv, values},
    commands::help::page::Page,
    lookup,
};

/// Lists programs, installs links, prints help, or measures.
pub(crate) fn imb(registry: &Registry, parser: &Command, matches: &ArgMatches, args: ImbArgs) -> Result<u8> {
    if let Some(directory) = &args.install_links {
        let names: Vec<&str> = programs::all().map(|program| program.name).collect();
        return terminal::print(argv::install_links(directory, &names)?);
    }
    let prints = detection::is_first_process();
    let print = |text: String| if prints { terminal::print(text) } else { Ok(0) };
    let Some(name) = args.name.clone() else {
        return print(if args.help { help(parser, None) } else { listed_programs() });
    };
    let program = programs::find(&name)?;
    if args.help {
        return print(help(parser, Some(program)));
    }
    if args.list {
        return print(program.listed_benchmarks());
    }
    let (job, notes) = prepare(registry, parser, matches, args, program)?;
    // Notes follow a run that ends without an error: an error stands alone in one line.
    let code = role::run(&job)?;
    if prints {
        notes.iter().for_each(|note| note_line!("ombx: {}: {note}", program.name));
    }
    Ok(code)
}

/// Validates the options of a program and builds its job. Returns it with notes about differences from IMB. Starts nothing.
pub(crate) fn prepare(
    registry: &Registry,
    parser: &Command,
    matches: &ArgMatches,
    args: ImbArgs,
    program: &'static Program,
) -> Result<(Job, Vec<String>)> {
    let started = detection::launcher();
    let ranks = match &started {
        Some(started) => started.ranks.and_then(|ranks| u32::try_from(ranks).ok()),
        None => Some(args.start.ranks.unwrap_or(RANKS)),
    };
    let ranks_or_default = ranks.unwrap_or(RANKS);
    if let Some(imb) = parser.find_subcommand("imb") {
        reject_of_others(imb, matches, program)?;
    }
    let mut options = args.options();
    plan::reject(&options, program)?;
    if program.has_threads() {
        threads::reject(&options, ranks)?;
    }
    options.settle(program);
    if let (Some(matrix), Some(ranks)) = (args.map, ranks) {
        matrix.check(ranks).map_err(|e| e.within("-map"))?;
    }
    let entries = selected(&args, program)?;
    let mut notes = plan::notes(&options, &entries);
    notes.extend(values::notes_of_numbers("IMB"));
    if program.has_threads() {
        notes.extend(threads::notes(&options));
    }
    let sizes = plan::sizes(&options, program)?;
    plan::reject_repetition(&entries, args.npmin.unwrap_or(RANKS).min(ranks_or_default))?;
    if started.is_none() {
        preflight::check(&Start::from(args.start.clone()), ranks_or_default, Medium::Mpi)?;
    }
    let left_out = args.aggregate_mode;
    let is_kept = |table: &ImbBenchmark| left_out.is_none() || table.mode != left_out;
    let benchmarks = entries.iter().flat_map(|entry| entry.tables()).filter(is_kept);
    let benchmarks: Vec<ImbBenchmark> = benchmarks.collect();
    if benchmarks.is_empty() {
        return Err(Error::usage("-aggregate_mode: the benchmarks have no table of this mode: leave it out"));
    }
    let tables = benchmarks
        .iter()
        .map(|table| Ok((Choice { preset: table.axes, ..registry.get(table.bench)? }, *table)));
    let tables: Vec<_> = tables.collect::<Result<_>>()?;
    plan::reject_ungrouped(&options, &tables)?;
    notes.extend(types::notes(
        &options.types,
        tables.iter().map(|(choice, table)| (table.name, choice.bench)),
    ));
    let mut parts = Vec::new();
    for (choice, table) in &tables {
        parts.extend(if program.has_threads() {
            threads::parts(&options, *choice, table, ranks)?
        } else {
            plan::parts(&options, *choice, table, &sizes, ranks)?
        });
    }
    let shown = ImbProgram {
        name: program.name,
        part: program.part,
        header: if !program.has_threads() {
            ImbHeader::System
        } else if options.threads.noheader {
            ImbHeader::Nothing
        } else {
            ImbHeader::Title
        },
        calling: args.name.map(|name| program.calling(&name, this_process::as_typed())).unwrap_or_default(),
        sizes: (args.msglen.is_none() && args.msgsize.is_empty())
            .then(|| [sizes.first(), sizes.last()].map(|size| size.map_or(0, |size| size.0))),
        types: [options.types.data_type, options.types.red_data_type],
        groups: args.multi,
        ranks,
        matrix: args.map,
        benchmarks,
    };
    // A user has typed the names of IMB.
    let names: Vec<_> = shown.benchmarks.iter().map(|table| (table.bench, table.name)).collect();
    let named = |error: Error| {
        let text = error.to_string();
        Error::new(error.kind(), names.iter().fold(text, |text, (bench, name)| text.replace(bench, name)))
    };
    let (file, existing) = args.file.beside_format()?;
    let screen = Screen::Imb(shown);
    let output = Destination { screen, file, existing, quiet: true, ..Destination::default() };
    let read = [("the file of -msglen", args.msglen), ("the file of -input", args.input)];
    let read_from = read.into_iter().filter_map(|(what, path)| Some((what, path?))).collect();
    let job = Job::one_launch(args.start.into(), output, parts, ranks, ranks_or_default).map_err(named)?;
    Ok((Job { read_from, ..job }, notes))
}

/// Returns the benchmarks that run: those that are named, or the default ones.
fn selected(args: &ImbArgs, program: &'static Program) -> Result<Vec<&'static Entry>> {
    let mut named = args.benchmarks.clone();
    if let Some(path) = &args.input {
        named.extend(plan::lines(path)?);
    }
    let find = |names: &[String]| names.iter().map(|name| entry(program, name)).collect::<Result<Vec<_>>>();
    let (named, included, excluded) = (find(&named)?, find(&args.include)?, find(&args.exclude)?);
    let wanted =
        if named.is_empty() { program.entries().filter(|entry| entry.is_default).collect() } else { named };
    let is_kept = |entry: &&Entry| excluded.iter().all(|other| other.name != entry.name);
    let kept = wanted.into_iter().chain(included).filter(is_kept);
    let entries = each_once_by(kept, |one, other| one.name == other.name);
    if entries.is_empty() {
        return Err(Error::usage("no benchmark is left: change -exclude or name a benchmark"));
    }
    Ok(entries)
}

/// Finds a benchmark of a program by its name in upper or lower case.
fn entry(program: &Program, name: &str) -> Result<&'static Entry> {
    program.find(name).ok_or_else(|| {
        let near = lookup::similar(name, program.entries().map(|entry| entry.name));
        let near = near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
        let called = argv::called("imb", program.name);
        Error::usage(format!(
            "{name} is not a benchmark of {}: {called} -list names them{near}",
            program.name
        ))
    })
}

/// Options of the other programs of IMB that IMB-MT has too.
const SHARED: [&str; 8] =
    ["list", "window-size", "mem", "thread-level", "include", "exclude", "input", "help"];

/// Rejects options of other programs of IMB. `imb` is the command that has all options.
fn reject_of_others(imb: &Command, matches: &ArgMatches, program: &Program) -> Result<()> {
    for (option, _) in argv::given_options(imb, matches) {
        let long = option.get_long().unwrap_or_default();
        let name = format!("-{}", long.replace('-', "_"));
        match option.get_help_heading() {
            Some(OF_THREADS) if !program.has_threads() => {
                return Err(Error::usage(format!("{name} is an option of IMB-MT: leave it out")));
            }
            Some(OF_IMB) if program.has_threads() && !SHARED.contains(&long) => {
                return Err(Error::usage(format!(
                    "{name} is not an option of IMB-MT: its sizes are -count and -datatype, its iterations \
                     -repeat and -warmup"
                )));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Last line of the help of a program.
const HELP_FOOT: &str =
    "Options have one hyphen as in IMB, or two. More: ombx help exit-codes, ombx help WORD";

/// Returns the help of `ombx imb`, or of a program.
fn help(parser: &Command, program: Option<&Program>) -> String {
    let called = program.map_or("ombx imb PROGRAM".to_owned(), |program| argv::called("imb", program.name));
    let usage = format!("{called} [OPTIONS] [BENCHMARK..]");
    let title = ImbTable::title();
    let is_shown = |arg: &clap::Arg| program.is_none() || arg.get_id() != "install_links";
    let Some(imb) = parser.find_subcommand("imb") else { return String::new() };
    let page = Page::of_stdout();
    if program.is_none() && !this_process::asks_for_all_options() {
        return page.replacing(title.trim_end(), &usage, imb);
    }
    page.program((title.trim_end(), &usage), imb, &is_shown, HELP_FOOT)
}

/// Returns a line for each program: its benchmarks, and the command that lists them.
fn listed_programs() -> String {
    let line = |program: &'static Program| {
        let name = program.name;
        format!("{name:<12} {} benchmarks: ombx imb {name} -list\n", program.entries().count())
    };
    programs::all().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_benchmark_that_a_program_does_not_have_is_not_proposed() {
        let error = |program: &str, name: &str| {
            entry(programs::find(program).unwrap(), name).err().unwrap().to_string()
        };
        assert!(error("IMB-RMA", "Fetch_and_opp").ends_with("did you mean Fetch_and_op?"));
        let why = error("IMB-RMA-GPU", "Fetch_and_op");
        assert!(!why.contains("did you mean Fetch_and_op"), "{why}");
    }
}
