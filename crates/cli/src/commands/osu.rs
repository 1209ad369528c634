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
        return terminal::print(if args.help { help(parser, "ombx osu") } else { names::list(registry) });
    };
    let program = Program::find(registry, &name)?;
    let prints = args.role.relay.is_none() && detection::is_first_process();
    if args.help || args.version {
        let text = if args.help {
            help(parser, &name)
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

/// Returns the help of `ombx osu` for a program of this name.
fn help(parser: &clap::Command, name: &str) -> String {
    let osu =
        parser.find_subcommand("osu").map(|osu| osu.clone().bin_name(name.to_owned()).name(name.to_owned()));
    osu.map(|mut osu| osu.render_help().to_string()).unwrap_or_default()
}
