//! `ombx osu`, and links to ombx named `osu_latency` and so on: replaces the OSU benchmarks with the same names, options and output.

pub(crate) mod arguments;

use clap::{ArgMatches, Args as _, Command, parser::ValueSource};
use ombx_core::{benchmark::Registry, measure::runner::Part, two_sided::pattern::Buffers};
use ombx_drop_in::{
    imb,
    osu::{
        OsuTable,
        options::{self, BUFFER_NUM, OWN, OwnOption},
        programs::{PREFIX, Program, covered, list_of_names, uncovered},
    },
};
use ombx_launch::{
    job::Job,
    launch::{detection, mpiexec, preflight, start::Start},
    note_line,
    output::{
        destination::{Destination, GraphRequest, Screen},
        target, terminal,
    },
    role, stderr_line, this_process,
};
use ombx_record::{
    error::{Error, Exit, Result},
    order::each_once,
};

use self::arguments::{OF_OMB, OsuArgs};
use crate::{
    arguments::{argv, parameters, values},
    commands::help::page::Page,
    lookup,
};

/// Lists programs, installs links, prints help, or measures.
pub(crate) fn osu(registry: &Registry, parser: &Command, matches: &ArgMatches, args: OsuArgs) -> Result<u8> {
    if let Some(directory) = &args.install_links {
        let names: Vec<&str> = covered(registry).iter().map(|(osu, _)| osu.name).collect();
        return terminal::print(argv::install_links(directory, &names)?);
    }
    let Some(name) = args.name.clone() else {
        return terminal::print(if args.help { help(parser, None)? } else { list_of_names(registry) });
    };
    let program = find(registry, &name)?;
    let prints = detection::is_first_process();
    if args.help || args.version {
        let text = if args.help {
            help(parser, Some(&program))?
        } else {
            OsuTable::title(&program.osu, args.names_ombx().then_some(env!("CARGO_PKG_VERSION")))
        };
        return if prints { terminal::print(text) } else { Ok(0) };
    }
    let started =
        detection::launcher().and_then(|started| started.ranks).and_then(|ranks| ranks.try_into().ok());
    let ranks = started.or(args.start.ranks);
    if let Some(why) = ranks.and_then(|ranks| program.refusal(ranks, args.pairs())) {
        if !prints {
            // Open MPI ends rank 0 as soon as another rank fails. The code of rank 0 is that of the job.
            return Ok(0);
        }
        stderr_line!("ombx: {why}");
        return Ok(Exit::Refused.code());
    }
    // A user has typed the name of the program, and not that of the benchmark.
    let bench = program.choice.bench.name;
    let named = |error: Error| Error::new(error.kind(), error.to_string().replace(bench, program.osu.name));
    let (job, notes) = prepare(matches, args, &program).map_err(named)?;
    if prints {
        notes.iter().for_each(|note| note_line!("ombx: {name}: {note}"));
    }
    role::run(&job).map_err(named)
}

/// Validates the options of a program and builds its job. Returns it with notes about differences from OMB. Starts nothing.
pub(crate) fn prepare(matches: &ArgMatches, args: OsuArgs, program: &Program) -> Result<(Job, Vec<String>)> {
    reject_words(&args, program)?;
    reject_of_others(matches, &args, program)?;
    let given = args.options();
    options::reject(&given, program)?;
    if args.session {
        mpiexec::sessions_exist()?;
    }
    let (plan, columns, mut notes) = options::read(&given, program)?;
    notes.extend(values::notes_of_numbers("OMB"));
    let rooted = args.root_rank.map_or(0, |root| root.first().0.saturating_add(1));
    let wanted = program.choice.bench.ranks.layout.ranks_wanted(plan.pairs()).max(rooted);
    let start = Start::from(args.start.clone());
    let ranks = start.ranks.unwrap_or(wanted);
    if detection::launcher().is_none() {
        // Mistakes are reported before notes.
        preflight::check(&start, ranks, program.choice.bench.ranks.medium)?;
    }
    if let (Some(root), Some(ranks)) = (args.root_rank.map(|root| root.first()), start.ranks)
        && root.0 >= ranks
    {
        let last = ranks - 1;
        return Err(Error::usage(format!("-k {root} is not a rank: -n {ranks} gives ranks 0 to {last}")));
    }
    let parts = vec![Part { choices: vec![program.choice], plan }];
    let graphs = graphs(&args, program)?;
    let (file, existing) = args.file.beside_format()?;
    let screen = Screen::Osu { columns, graphs };
    let output = Destination { screen, file, existing, quiet: true, ..Destination::default() };
    let known = start.ranks;
    Ok((Job::one_launch(start, output, parts, known, ranks)?, notes))
}

/// Returns the figures that `-G` asks for. None of their files may be the result file.
fn graphs(args: &OsuArgs, program: &Program) -> Result<Option<GraphRequest>> {
    let forms = each_once(args.graph.iter().copied());
    let request = GraphRequest { program: program.osu.name, forms };
    for form in &request.forms {
        if let (Some(file), Some(out)) = (request.file(*form), &args.file.out) {
            target::check(out, "-o", [("the file of -G", file.as_path())])?;
        }
    }
    Ok((!request.forms.is_empty()).then_some(request))
}

/// Options of OMB that no program of ombx has, and where they are said.
const NOTES: &str = "Not supported: -a and -r (computing on devices), a directory after -c (wrong data is \
                     reported on standard error). More: ombx help exit-codes, ombx run BENCHMARK --help \
                     (the same benchmark with intervals and marks)";

/// Returns the help of a program, or of `ombx osu` with the options of all programs.
fn help(parser: &Command, program: Option<&Program>) -> Result<String> {
    let osu = parser.find_subcommand("osu").ok_or_else(|| Error::usage("this build has no ombx osu"))?;
    let page = Page::of_stdout();
    let Some(program) = program else {
        let usage = "ombx osu PROGRAM [OPTIONS] [H|D|MD|MH]..";
        let about = "Replace an OSU benchmark: same name, options, output\nIt starts the ranks, if no \
                     launcher has. ombx osu lists the programs, ombx osu PROGRAM --help has the options of \
                     one.";
        if !this_process::asks_for_all_options() {
            return Ok(page.replacing(about, usage, osu));
        }
        return Ok(page.program((about, usage), osu, &|_| true, NOTES));
    };
    let name = program.osu.name;
    let is_own = |arg: &clap::Arg| {
        let own = OWN.iter().find(|(_, id, _)| arg.get_id() == id);
        own.is_none_or(|(.., has)| has(program)) && arg.get_id() != "install_links"
    };
    let has_buffers = osu.get_arguments().any(|arg| arg.get_id() == "buffers" && is_own(arg));
    let buffers = if has_buffers { " [H|D|MD|MH].." } else { "" };
    let about = format!("{}: {} of ombx run", program.osu.title, program.choice.bench.name);
    let usage = format!("{} [OPTIONS]{buffers}", argv::called("osu", name));
    Ok(page.program((&about, &usage), osu, &is_own, NOTES))
}

/// Finds a program by its name, with or without `osu_`.
pub(crate) fn find(registry: &Registry, name: &str) -> Result<Program> {
    let full = if name.starts_with(PREFIX) { name.to_owned() } else { format!("{PREFIX}{name}") };
    Program::find(registry, &full).ok_or_else(|| unknown(registry, name, &full))
}

/// Returns the error about a name that is no program. `full` begins with [`PREFIX`].
fn unknown(registry: &Registry, name: &str, full: &str) -> Error {
    if let Some(why) = uncovered(full) {
        return Error::usage(format!("{full} is not supported: {why}"));
    }
    let instead = if imb::programs::find(name).is_ok() {
        format!("it is a program of IMB: ombx imb {name}")
    } else if lookup::find(registry, name).is_ok() {
        format!("ombx run {name} measures it")
    } else if let Some(known) = lookup::similar(full, covered(registry).into_iter().map(|(osu, _)| osu.name))
    {
        format!("did you mean {known}?")
    } else {
        "ombx osu lists them".to_owned()
    };
    Error::usage(format!("{name:?} is no OSU program; {instead}"))
}

/// Rejects words that are no kinds of memory, such as a value of an option that takes none.
fn reject_words(args: &OsuArgs, program: &Program) -> Result<()> {
    let takes_words = OWN.iter().all(|(_, id, has)| *id != "buffers" || has(program));
    let is_kind = |word: &str| takes_words && ["H", "D", "M", "MD", "MH"].contains(&word);
    if let Some(word) = args.buffers.iter().find(|word| !is_kind(word)) {
        let memory = if takes_words { ", and no kind of memory (H, D, MD, MH)" } else { "" };
        let command = OsuArgs::augment_args(Command::new(""));
        let is_own = |arg: &&clap::Arg| OWN.iter().all(|(_, id, has)| arg.get_id() != id || has(program));
        let takes_value = |arg: &&clap::Arg| {
            arg.get_help_heading() == Some(OF_OMB)
                && arg.get_action().takes_values()
                && !arg.is_require_equals_set()
        };
        let with_value = command.get_arguments().filter(takes_value).filter(is_own);
        let names: Vec<String> =
            with_value.filter_map(|arg| Some(format!("-{}", arg.get_short()?))).collect();
        return Err(Error::usage(format!(
            "{word:?} follows no option that takes a value{memory}: {} take one, and -c and -z without a blank",
            names.join(", ")
        )));
    }
    if args.buffers.len() > 2 {
        return Err(Error::usage("give at most two kinds of buffer memory, one for each rank, as in H H"));
    }
    Ok(())
}

/// Rejects an option that the program does not have.
fn reject_of_others(matches: &ArgMatches, args: &OsuArgs, program: &Program) -> Result<()> {
    let is_given = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
    let is_single = |id: &str| id == BUFFER_NUM && args.buffer_num == Some(Buffers::Single);
    let inapplicable = |(_, id, has): &&OwnOption| is_given(id) && !is_single(id) && !has(program);
    match OWN.iter().find(inapplicable) {
        Some((option, _, has)) => {
            let (name, others) = (program.osu.name, having(*has));
            Err(Error::usage(format!("{name} has no option {option}{others}")))
        }
        None => Ok(()),
    }
}

/// Returns which programs have an option.
fn having(has: fn(&Program) -> bool) -> String {
    let Ok(registry) = Registry::load() else { return String::new() };
    let all = covered(&registry).into_iter().map(|(osu, bench)| Program::new(bench, *osu));
    let having: Vec<&str> = all.filter(has).map(|program| program.osu.name).collect();
    parameters::have_it(&having, "")
}
