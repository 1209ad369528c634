//! `ombx osu`, and links named `osu_latency` and so on: a drop-in for the OSU benchmarks, with their names, options and output.

pub(crate) mod document;
mod names;
mod options;
pub(crate) mod program;

use std::{
    io::{self, Write},
    path::PathBuf,
};

use clap::{Args, CommandFactory, ValueEnum};
use ombx_core::{
    benchmark::registry::Registry,
    error::{Error, Result},
    measure::runner::Part,
};
use ombx_results::render::OsuTable;

use crate::{
    args::{Cli, Color, Format, OutputArgs, Relay, StartArgs},
    deadline,
    job::{Extent, Job, Launches, Work},
    launch::detect,
    select, start,
};
use options::{Flag, MessageSize, Percentiles};

/// OMB's options; what they mean differs by program.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ombx osu osu_latency -m 8:8 -i 1000 -x 10\n  ombx osu --install-links bin && mpiexec -n 2 bin/osu_bw\n\nWhich programs and options are covered: docs/OMB.md"
)]
pub(crate) struct OsuArgs {
    /// The OSU program, for example: osu_latency; none: all are listed
    pub(crate) name: Option<String>,
    /// Where the buffers of both ranks are; this build has them in host memory
    #[arg(value_name = "H|D|M")]
    pub(crate) buffers: Vec<String>,

    /// Message sizes: -m 128, -m 2:128, -m 2:, with K, M and G as in 1M
    #[arg(short, long, value_name = "[MIN:]MAX", value_parser = MessageSize::parse, help_heading = "As OMB")]
    pub(crate) message_size: Option<MessageSize>,
    /// Timed iterations, of small and large messages alike [default: OMB's, by program and size]
    #[arg(short, long, value_name = "ITER", allow_hyphen_values = true, value_parser = clap::value_parser!(u64).range(1..=1 << 32), help_heading = "As OMB")]
    pub(crate) iterations: Option<u64>,
    /// Iterations before them [default: OMB's, by program and size]
    #[arg(short = 'x', long, value_name = "ITER", allow_hyphen_values = true, value_parser = clap::value_parser!(u64).range(0..=1 << 32), help_heading = "As OMB")]
    pub(crate) warmup: Option<u64>,
    /// Operations in flight of bandwidth tests [default: 64]
    #[arg(short = 'W', long, value_name = "SIZE", allow_hyphen_values = true, value_parser = clap::value_parser!(u32).range(1..=1 << 20), help_heading = "As OMB")]
    pub(crate) window_size: Option<u32>,
    /// Threads or processes, SEND:RECV or RECV; of nonblocking collectives the calls of MPI_Test
    #[arg(short = 't', long, value_name = "CALLS|S:R", allow_hyphen_values = true, help_heading = "As OMB")]
    pub(crate) num_test_calls: Option<String>,
    /// Buffers of the messages in flight: a single one, or one each [default: single]
    #[arg(short, long, value_enum, help_heading = "As OMB")]
    pub(crate) buffer_num: Option<Buffers>,
    /// Print whether data arrived right; it is checked in any case
    #[arg(short = 'c', long, value_name = "DIR", num_args = 0..=1, require_equals = true, default_missing_value = "", help_heading = "As OMB")]
    pub(crate) validation: Option<String>,
    /// Warm-up iterations of a validation
    #[arg(short = 'u', long, value_name = "ITER", allow_hyphen_values = true, value_parser = clap::value_parser!(u32), help_heading = "As OMB")]
    pub(crate) validation_warmup: Option<u32>,
    /// Print percentiles of single iterations, for example: -z50,99
    #[arg(short = 'z', long, value_name = "P,P", num_args = 0..=1, require_equals = true, default_missing_value = "50,90,99", value_parser = Percentiles::parse, help_heading = "As OMB")]
    pub(crate) tail_lat: Option<Percentiles>,
    /// Print minimum, maximum and iterations of collectives too
    #[arg(short, long, help_heading = "As OMB")]
    pub(crate) full: bool,
    /// Data type: mpi_char
    #[arg(short = 'T', long = "type", value_name = "TYPE", help_heading = "As OMB")]
    pub(crate) datatype: Option<String>,
    /// Synchronisation of one-sided tests
    #[arg(short, long, value_name = "SYNC", help_heading = "As OMB")]
    pub(crate) sync_option: Option<String>,
    /// How the window of one-sided tests is made
    #[arg(short, long, value_name = "WIN", help_heading = "As OMB")]
    pub(crate) win_options: Option<String>,
    /// Memory of a rank, which limits the sizes of collectives, for example: 1G
    #[arg(short = 'M', long, value_name = "SIZE", value_parser = ombx_core::unit::parse_memory, help_heading = "As OMB")]
    pub(crate) mem_limit: Option<ombx_core::unit::Bytes>,
    /// Root of rooted collectives: a rank, or rotate
    #[arg(short = 'k', long, value_name = "RANK", allow_hyphen_values = true, help_heading = "As OMB")]
    pub(crate) root_rank: Option<ombx_core::benchmark::root::Root>,
    /// Collectives in place
    #[arg(short = 'l', long, help_heading = "As OMB")]
    pub(crate) in_place: bool,
    /// Neighbourhood, for example: cart:1:1
    #[arg(short = 'N', long, value_name = "NHBR", help_heading = "As OMB")]
    pub(crate) nhbr: Option<String>,
    /// Every window size of a list, one table (not covered)
    #[arg(short = 'V', long, help_heading = "As OMB")]
    pub(crate) vary_window: bool,
    /// Message rates beside bandwidth: 1 or 0 [default: 1]
    #[arg(short = 'R', long, value_name = "0|1", value_enum, help_heading = "As OMB")]
    pub(crate) print_rate: Option<Flag>,
    /// Pairs of ranks at the same time [default: as many as the ranks allow]
    #[arg(short = 'p', long, value_name = "PAIRS", allow_hyphen_values = true, value_parser = clap::value_parser!(u32).range(1..), help_heading = "As OMB")]
    pub(crate) num_pairs: Option<u32>,
    /// Options that have no counterpart here, each refused with the reason
    #[command(flatten)]
    pub(crate) refused: RefusedArgs,
    /// Print help
    #[arg(short, long, help_heading = "As OMB")]
    pub(crate) help: bool,
    /// Print the version
    #[arg(short = 'v', long, help_heading = "As OMB")]
    pub(crate) version: bool,

    #[command(flatten)]
    pub(crate) start: StartArgs,

    /// Result file in JSON Lines, complete whatever is on screen
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub(crate) out: Option<PathBuf>,
    /// Make a link for every OSU program of this build in a directory
    #[arg(long, value_name = "DIR", conflicts_with = "name", help_heading = "Output")]
    pub(crate) install_links: Option<PathBuf>,

    /// Records go to standard output, for the process that started this one
    #[arg(long, hide = true, value_enum)]
    pub(crate) relay: Option<Relay>,
}

/// Options of OMB that ombx does not have.
#[derive(Debug, Args)]
pub(crate) struct RefusedArgs {
    #[arg(short = 'd', long, hide = true)]
    pub(crate) accelerator: Option<String>,
    #[arg(short = 'a', long, hide = true)]
    pub(crate) array_size: Option<String>,
    #[arg(short = 'r', long, hide = true)]
    pub(crate) cuda_target: Option<String>,
    #[arg(short = 'G', long, hide = true)]
    pub(crate) graph: Option<String>,
    #[arg(short = 'P', long, hide = true)]
    pub(crate) papi: Option<String>,
    #[arg(short = 'D', long, hide = true)]
    pub(crate) ddt: Option<String>,
    #[arg(short = 'I', long, hide = true)]
    pub(crate) session: bool,
}

/// OMB's two kinds of buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Buffers {
    /// One for all messages in flight
    #[value(alias = "SINGLE")]
    Single,
    /// One for each
    #[value(alias = "MULTIPLE")]
    Multiple,
}

/// Lists, links, explains, or measures.
pub(crate) fn osu(registry: &Registry, args: &OsuArgs) -> Result<u8> {
    if let Some(directory) = &args.install_links {
        return print(&names::install(registry, directory)?);
    }
    let Some(name) = &args.name else {
        return print(&if args.help { help("ombx osu") } else { names::list(registry) });
    };
    let program = program::Program::find(registry, name)?;
    let speaks = args.relay.is_none() && detect::speaks();
    if args.help || args.version {
        let title = OsuTable::title(&program.osu, env!("CARGO_PKG_VERSION"));
        return if speaks { print(&if args.help { help(name) } else { title }) } else { Ok(0) };
    }
    prepare(args, &program, |notes, job| {
        if speaks {
            notes.iter().for_each(|note| tell!("ombx: {name}: {note}"));
        }
        job.run()
    })
}

/// Makes a job of a program's options and what its user should know, and starts nothing.
pub(crate) fn prepare(
    args: &OsuArgs,
    program: &program::Program,
    then: impl FnOnce(&[String], &Job<'_>) -> Result<u8>,
) -> Result<u8> {
    let options::Request { plan, columns, notes } = options::read(args, program)?;
    let rooted = args.root_rank.map_or(0, |root| root.first().0.saturating_add(1));
    let wanted = program.choice.bench.layout.ranks_wanted(args.num_pairs).max(rooted);
    let ranks = args.start.ranks.unwrap_or(wanted);
    if args.relay.is_none() && detect::launcher().is_none() {
        // Mistakes before remarks.
        start::check(&args.start, ranks)?;
    }
    let choices = vec![program.choice];
    let rows = select::rows(&plan, &choices)?;
    let output = OutputArgs {
        format: Format::Osu,
        out: args.out.clone(),
        allow_skips: false,
        quiet: true,
        verbose: false,
        color: Color::Never,
        plot: false,
        osu: Some(columns),
        coordinator: false,
        alone: false,
        relay: args.relay,
    };
    let extent = Extent { ranks, rows, time: deadline::of_rows(&plan, rows) };
    let work = Work::Benchmarks(vec![Part { choices, plan }]);
    then(&notes, &Job { start: &args.start, output: &output, work, extent, launches: Launches::one() })
}

/// The options, as of a program of this name.
fn help(name: &str) -> String {
    let mut command = Cli::command();
    let osu = command.find_subcommand_mut("osu").map(|osu| osu.clone().bin_name(name).name("osu"));
    osu.map(|mut osu| osu.render_help().to_string()).unwrap_or_default()
}

fn print(text: &str) -> Result<u8> {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
            Err(Error::storage(format!("standard output: {e}")))
        }
        _ => Ok(0),
    }
}
