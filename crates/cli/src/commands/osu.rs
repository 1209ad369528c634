//! `ombx osu`, and links to ombx named `osu_latency` and so on: replaces the OSU benchmarks with the same names, options and output.

pub(crate) mod arguments;
mod described;
mod names;
mod options;
pub(crate) mod program;

use ombx_core::{
    benchmark::Registry,
    error::{Error, Result},
    exit::Exit,
    measure::runner::Part,
};
use ombx_results::render::OsuTable;

use self::{arguments::OsuArgs, program::Program};
use super::help::page::Page;
use crate::{
    arguments::{
        launches::Launches,
        output::{Color, Format, GraphRequest, OutputArgs},
        shown::ShownArgs,
    },
    job::{Extent, Job, Work, selection, time_limit},
    launch::{detection, preflight},
    output::{target, terminal},
    role,
};

#[cfg(feature = "mpi")]
use crate::job::accelerator;

/// Lists programs, installs links, prints help, or measures.
pub(crate) fn osu(registry: &Registry, parser: &clap::Command, args: OsuArgs) -> Result<u8> {
    if let Some(directory) = &args.install_links {
        return terminal::print(names::install(registry, directory)?);
    }
    let Some(name) = args.name.clone() else {
        return terminal::print(if args.help { help(parser, None)? } else { names::list(registry) });
    };
    let program = Program::find(registry, &name)?;
    let prints = args.role.relay.is_none() && detection::is_first_process();
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
    if let Some(why) = ranks.and_then(|ranks| program.refusal(ranks, args.num_pairs)) {
        if prints {
            stderr_line!("ombx: {why}");
        }
        return Ok(Exit::Refused.code());
    }
    let (job, notes) = prepare(args, &program)?;
    if prints {
        notes.iter().for_each(|note| stderr_line!("ombx: {name}: {note}"));
    }
    role::run(&job)
}

/// Returns the job of a program's options after finding every mistake in them, and notes about differences from OMB. Starts nothing.
pub(crate) fn prepare(args: OsuArgs, program: &Program) -> Result<(Job, Vec<String>)> {
    let options::Request { plan, columns, notes } = options::read(&args, program)?;
    let rooted = args.root_rank.map_or(0, |root| root.first().0.saturating_add(1));
    let wanted = program.choice.bench.ranks.layout.ranks_wanted(args.num_pairs).max(rooted);
    let ranks = args.start.ranks.unwrap_or(wanted);
    if args.role.relay.is_none() && detection::launcher().is_none() {
        // Mistakes are reported before notes.
        preflight::check(&args.start, ranks, program.choice.bench.ranks.medium)?;
    }
    if let (Some(root), Some(ranks)) = (args.root_rank, args.start.ranks)
        && root.first().0 >= ranks
    {
        let last = ranks - 1;
        return Err(Error::usage(format!("-k {root} is not a rank: -n {ranks} gives ranks 0 to {last}")));
    }
    #[cfg(feature = "mpi")]
    if args.role.relay.is_none() {
        accelerator::check(&plan, detection::launcher().is_some() || preflight::all_here(&args.start))?;
    }
    let choices = vec![program.choice];
    let rows = selection::rows(&plan, &choices)?;
    let parts = vec![Part { choices, plan }];
    selection::check_ranks(args.start.ranks, &parts)?;
    let graphs = graphs(&args, program)?;
    let output = OutputArgs {
        openmetrics: None,
        junit: None,
        format: Format::Osu,
        file: args.file,
        allow_skips: false,
        quiet: true,
        verbose: false,
        follow: false,
        color: Color::Never,
        plot: false,
        shown: ShownArgs::default(),
        osu: Some(columns),
        graphs,
        imb: None,
    }
    .settled()?;
    let extent = Extent { ranks, rows, time: time_limit::of_rows(&parts[0].plan, rows), left_out: 0 };
    let work = Work::Benchmarks(parts);
    let (start, role) = (args.start, args.role);
    Ok((
        Job { start, output, role, work, extent, launches: Launches::ONE, read_from: None, against: None },
        notes,
    ))
}

/// Returns the figures that `-G` asks for. None of their files may be the result file.
fn graphs(args: &OsuArgs, program: &Program) -> Result<Option<GraphRequest>> {
    let mut request = GraphRequest { program: program.osu.name, forms: Vec::new() };
    for form in &args.graph {
        if let (Some(file), Some(out)) = (request.file(*form), &args.file.out) {
            target::check(out, "-o", [("the file of -G", file.as_path())])?;
        }
        if !request.forms.contains(form) {
            request.forms.push(*form);
        }
    }
    Ok((!request.forms.is_empty()).then_some(request))
}

/// Options of OMB that no program of ombx has, and where they are said.
const NOTES: &str = "Not supported: -a and -r (computing on devices), -P (counters of PAPI), a directory after -c. \
                     More: ombx help exit-codes, ombx run BENCHMARK --help (the same benchmark with intervals and marks)";

/// Returns the help of a program, or of `ombx osu` with the options of all programs.
fn help(parser: &clap::Command, program: Option<&Program>) -> Result<String> {
    let osu = parser.find_subcommand("osu").ok_or_else(|| Error::usage("this build has no ombx osu"))?;
    let page = Page::of_stdout();
    let Some(program) = program else {
        let usage = "ombx osu PROGRAM [OPTIONS] [H|D|MD|MH]..";
        let about = "Replace an OSU benchmark: same name, options, output\nombx osu lists the programs, ombx osu PROGRAM --help \
                     has the options of one.";
        return Ok(page.program((about, usage), osu, &|_| true, NOTES));
    };
    let name = program.osu.name;
    let is_own = |arg: &clap::Arg| {
        let own = options::OWN.iter().find(|own| arg.get_id() == own.id);
        own.is_none_or(|own| (own.is_of)(program)) && arg.get_id() != "install_links"
    };
    let buffers = if osu.get_arguments().any(|arg| arg.get_id() == "buffers" && is_own(arg)) {
        " [H|D|MD|MH]..".to_owned()
    } else {
        String::new()
    };
    let about = format!("{}: {} of ombx run", program.osu.title, program.choice.bench.name);
    let usage = format!("ombx osu {name} [OPTIONS]{buffers}, or {name} as a link (ombx osu --install-links DIR)");
    Ok(page.program((&about, &usage), osu, &is_own, NOTES))
}
