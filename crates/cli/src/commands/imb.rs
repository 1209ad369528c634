//! `ombx imb`, and links to ombx named `IMB-MPI1` and so on: replaces the Intel MPI Benchmarks with the same names, options and output.

pub(crate) mod arguments;
mod plan;
pub(crate) mod programs;
mod threads;

use ombx_core::benchmark::{
    Benchmark, Choice, Chosen, ElementType, Medium, ParameterValue, ReductionOp, Registry,
    memory::Place,
    payload::{BLOCK_LENGTH, Datatype, STRIDE},
};
use ombx_drop_in::imb::{ImbBenchmark, ImbHeader, ImbProgram, ImbTable};
use ombx_launch::{
    job::{Job, selection},
    launch::{detection, preflight, start::Start},
    output::{
        destination::{Destination, Screen},
        terminal,
    },
    role, stderr_line, this_process,
};
use ombx_record::error::{Error, Result};

use self::{
    arguments::{ImbArgs, TypeArgs},
    plan::Iterations,
    programs::{Entry, Program},
};
use crate::{arguments::argv, commands::help::page::Page};

/// Default of `-n` and of `-npmin`.
const RANKS: u32 = 2;

/// Lists programs, installs links, prints help, or measures.
pub(crate) fn imb(
    registry: &Registry,
    parser: &clap::Command,
    matches: &clap::ArgMatches,
    args: ImbArgs,
) -> Result<u8> {
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
        return print(listed_benchmarks(program));
    }
    let (job, notes) = prepare(registry, parser, matches, args, program)?;
    // Notes follow a run that ends without an error: an error stands alone in one line.
    let code = role::run(&job)?;
    if prints {
        notes.iter().for_each(|note| stderr_line!("ombx: {}: {note}", program.name));
    }
    Ok(code)
}

/// Validates the options of a program and builds its job. Returns it with notes about differences from IMB. Starts nothing.
pub(crate) fn prepare(
    registry: &Registry,
    parser: &clap::Command,
    matches: &clap::ArgMatches,
    mut args: ImbArgs,
    program: &'static Program,
) -> Result<(Job, Vec<String>)> {
    let started = detection::launcher();
    let ranks = match &started {
        Some(started) => started.ranks.and_then(|ranks| u32::try_from(ranks).ok()),
        None => Some(args.start.ranks.unwrap_or(RANKS)),
    };
    let ranks_or_default = ranks.unwrap_or(RANKS);
    if let Some(imb) = parser.find_subcommand("imb") {
        threads::reject_of_others(imb, matches, program)?;
    }
    plan::reject(&args, program)?;
    if program.has_threads() {
        threads::reject(&args, ranks)?;
    }
    let iterations = if program.is_peer_to_peer() { Iterations::PEER_TO_PEER } else { Iterations::default() };
    args.iter.get_or_insert(iterations);
    if program.has_accelerators {
        args.mem_alloc_type.get_or_insert(Place::Device);
    }
    if let (Some(matrix), Some(ranks)) = (args.map, ranks) {
        matrix.check(ranks).map_err(|e| e.within("-map"))?;
    }
    let entries = selected(&args, program)?;
    let mut notes = plan::notes(&args, &entries);
    if program.has_threads() {
        notes.extend(threads::notes(&args));
    }
    let sizes = plan::sizes(&args, program)?;
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
    plan::reject_ungrouped(&args, &tables)?;
    notes.extend(type_notes(&args.types, tables.iter().map(|(choice, table)| (table.name, choice.bench))));
    let mut parts = Vec::new();
    for (choice, table) in &tables {
        parts.extend(if program.has_threads() {
            threads::parts(&args, *choice, table, ranks)?
        } else {
            plan::parts(&args, *choice, table, &sizes, ranks)?
        });
    }
    let shown = ImbProgram {
        name: program.name,
        part: program.part,
        header: if !program.has_threads() {
            ImbHeader::System
        } else if args.threads.noheader {
            ImbHeader::Nothing
        } else {
            ImbHeader::Title
        },
        calling: args.name.map(|name| calling(program, &name, this_process::as_typed())).unwrap_or_default(),
        sizes: (args.msglen.is_none() && args.msgsize.is_empty())
            .then(|| [sizes.first(), sizes.last()].map(|size| size.map_or(0, |size| size.0))),
        types: [args.types.data_type, args.types.red_data_type],
        groups: args.multi,
        ranks,
        matrix: args.map,
        benchmarks,
    };
    let (file, existing) = args.file.beside_format()?;
    let screen = Screen::Imb(shown);
    let output = Destination { screen, file, existing, quiet: true, ..Destination::default() };
    let read = [("the file of -msglen", args.msglen), ("the file of -input", args.input)];
    let read_from = read.into_iter().filter_map(|(what, path)| Some((what, path?))).collect();
    let job = Job::one_launch(args.start.into(), output, parts, ranks, ranks_or_default)?;
    Ok((Job { read_from, ..job }, notes))
}

/// Returns the benchmarks that run: those that are named, or the default ones.
fn selected(args: &ImbArgs, program: &'static Program) -> Result<Vec<&'static Entry>> {
    let mut named = args.benchmarks.clone();
    if let Some(path) = &args.input {
        named.extend(plan::lines(path)?);
    }
    let find = |names: &[String]| names.iter().map(|name| program.find(name)).collect::<Result<Vec<_>>>();
    let (named, included, excluded) = (find(&named)?, find(&args.include)?, find(&args.exclude)?);
    let wanted =
        if named.is_empty() { program.entries().filter(|entry| entry.is_default).collect() } else { named };
    let is_kept = |entry: &&Entry| excluded.iter().all(|other| other.name != entry.name);
    let kept = wanted.into_iter().chain(included).filter(is_kept);
    let entries = selection::each_once_by(kept, |one, other| one.name == other.name);
    if entries.is_empty() {
        return Err(Error::usage("no benchmark is left: change -exclude or name a benchmark"));
    }
    Ok(entries)
}

/// Last line of the help of a program.
const HELP_FOOT: &str =
    "Options have one hyphen as in IMB, or two. More: ombx help exit-codes, ombx help WORD";

/// Returns the help of `ombx imb`, or of a program.
fn help(parser: &clap::Command, program: Option<&Program>) -> String {
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

/// Returns the text of `-list`.
fn listed_benchmarks(program: &Program) -> String {
    let mut text = format!("{}\nList of benchmarks:\n{}:\n", ImbTable::title(), program.name);
    let mut entries: Vec<_> = program.entries().collect();
    entries.sort_by_key(|entry| entry.name);
    for entry in entries {
        let default = if entry.is_default { "" } else { " (non-default)" };
        text += &format!("    {}{default}\n", entry.name);
    }
    text
}

/// Returns the command line as a user of IMB types it. `name` is the program as it stands in `words`.
fn calling(program: &Program, name: &str, mut words: Vec<String>) -> String {
    let as_imb = |word: &String| match word.strip_prefix("--") {
        Some(name) if !name.contains('=') => format!("-{}", name.replace('-', "_")),
        _ => word.clone(),
    };
    // Options may stand before the program.
    if let Some(at) = words.iter().skip(2).position(|word| word == name) {
        words.remove(2 + at);
    }
    let options = words.iter().skip(2).map(as_imb);
    [program.name.to_owned()].into_iter().chain(options).collect::<Vec<_>>().join(" ")
}

/// Returns the element type of a benchmark. IMB always swaps MPI_INT.
fn element(args: &TypeArgs, bench: &Benchmark) -> ElementType {
    match bench.parameter(ElementType::PARAMETER.name) {
        _ if bench.name == "rma.cas_latency" => ElementType::Int32,
        // Benchmarks that reduce have another default.
        Some(parameter) if parameter.default == Some(ElementType::Byte.name()) => args.data_type,
        Some(_) => args.red_data_type,
        None => ElementType::Byte,
    }
}

/// Returns the bytes from one element of a message to the next, if a derived datatype is chosen and the benchmark moves such messages.
fn stride(args: &TypeArgs, bench: &Benchmark) -> Option<u64> {
    let moves = bench.has(Datatype::PARAMETER) && !bench.has(ReductionOp::PARAMETER);
    args.stride(element(args, bench).width()).filter(|_| moves)
}

/// Chooses the derived datatype of a benchmark, if it has one: one element per block.
fn choose_blocks(args: &TypeArgs, bench: &Benchmark, chosen: &mut Chosen) {
    let Some(stride) = stride(args, bench) else { return };
    chosen.choose([Datatype::Vector]);
    chosen.set(BLOCK_LENGTH.name, [element(args, bench).width().to_string()]);
    chosen.set(STRIDE.name, [stride.to_string()]);
}

/// Returns notes about benchmarks whose messages do not have what the options choose.
fn type_notes<'b>(
    args: &TypeArgs,
    benches: impl Iterator<Item = (&'static str, &'b Benchmark)>,
) -> Vec<String> {
    let sized: Vec<_> = benches.filter(|(_, bench)| bench.messages.sized).collect();
    let named = |is: &dyn Fn(&Benchmark) -> bool| {
        selection::each_once(sized.iter().filter(|(_, bench)| is(bench)).map(|(name, _)| *name))
    };
    let of_bytes = named(&|bench| args.data_type != ElementType::Byte && !bench.has(ElementType::PARAMETER));
    let contiguous = named(&|bench| args.stride(1).is_some() && stride(args, bench).is_none());
    let notes = [("-data_type", of_bytes, "bytes"), ("-contig_type", contiguous, "contiguous")];
    let notes = notes.into_iter().filter(|(_, names, _)| !names.is_empty());
    notes
        .map(|(option, names, what)| format!("{option}: messages of {} are {what}", names.join(", ")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calling_sequence_is_that_of_imb() {
        let program = programs::find("IMB-MPI1").unwrap();
        for (line, name, expected) in [
            ("ombx imb IMB-MPI1 PingPong --npmin 2", "IMB-MPI1", "IMB-MPI1 PingPong -npmin 2"),
            ("ombx imb --npmin 2 mpi1 PingPong", "mpi1", "IMB-MPI1 -npmin 2 PingPong"),
            ("ombx imb --root-shift on IMB-MPI1", "IMB-MPI1", "IMB-MPI1 -root_shift on"),
        ] {
            let words = line.split(' ').map(str::to_owned).collect();
            assert_eq!(calling(program, name, words), expected, "{line}");
        }
    }
}
