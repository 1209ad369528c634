//! The arguments of `ombx osu`: those of OMB, whose meaning depends on the program, and some of ombx.

use std::{path::PathBuf, str::FromStr};

use clap::Args;
use ombx_core::{
    benchmark::{ParameterValue, Root},
    two_sided::pattern::Buffers,
};
use ombx_drop_in::osu::options::{MessageSize, OsuOptions};
use ombx_launch::{
    launch::{detection, start::Start},
    output::destination::GraphForm,
};
use ombx_record::{error::Result, unit::Bytes};

use crate::arguments::{
    output::{FileArgs, some_of},
    start::StartArgs,
    values,
};

/// Variable by which a site leaves ombx out of the first line.
const OMB_TITLE: &str = "OMBX_OMB_TITLE";

/// Heading of the options of OMB.
pub(super) const OF_OMB: &str = "As OMB";

#[derive(Debug, Args)]
pub(crate) struct OsuArgs {
    /// OSU program, for example: osu_latency [default: list all programs]
    pub(crate) name: Option<String>,
    /// Memory of the buffers of both ranks: host, device, or managed memory on the device or the host, as in: D H
    #[arg(value_name = "H|D|MD|MH")]
    pub(crate) buffers: Vec<String>,

    /// Message sizes: -m 128, -m 2:128, -m 2:, with K, M and G as in 1M
    #[arg(
        short, long, value_name = "[MIN:]MAX", allow_hyphen_values = true,
        value_parser = values::as_in_c(MessageSize::parse), help_heading = OF_OMB
    )]
    pub(crate) message_size: Option<MessageSize>,
    /// Timed iterations for all sizes [default: OMB's, by program and size]
    #[arg(
        short, long, value_name = "ITER", allow_hyphen_values = true,
        value_parser = values::c_number::<u64>(1..=1 << 32), help_heading = OF_OMB
    )]
    pub(crate) iterations: Option<u64>,
    /// Untimed iterations before the timed ones [default: OMB's, by program and size]
    #[arg(
        short = 'x', long, value_name = "ITER", allow_hyphen_values = true,
        value_parser = values::c_number::<u64>(0..=1 << 32), help_heading = OF_OMB
    )]
    pub(crate) warmup: Option<u64>,
    /// Operations in flight in bandwidth tests [default: 64]
    #[arg(
        short = 'W', long, value_name = "SIZE", allow_hyphen_values = true,
        value_parser = values::c_number::<u32>(1..=1 << 20), help_heading = OF_OMB
    )]
    pub(crate) window_size: Option<u32>,
    /// Threads or processes, SEND:RECV or RECV; in nonblocking collectives the number of calls of MPI_Test
    #[arg(
        short = 't', long, value_name = "CALLS|S:R", allow_hyphen_values = true,
        value_parser = values::as_in_c(values::whole_parts), help_heading = OF_OMB
    )]
    pub(crate) num_test_calls: Option<String>,
    /// Buffers of the messages in flight: a single one, or one for each [default: single]
    #[arg(short, long, value_parser = some_of(&BUFFERS), ignore_case = true, help_heading = OF_OMB)]
    pub(crate) buffer_num: Option<Buffers>,
    /// Print the result of the verification, which every run does
    #[arg(
        short = 'c', long, value_name = "DIR", num_args = 0..=1, require_equals = true,
        default_missing_value = "", help_heading = OF_OMB
    )]
    pub(crate) validation: Option<String>,
    /// Warm-up iterations of the validation (no effect)
    #[arg(
        short = 'u', long, value_name = "ITER", allow_hyphen_values = true,
        value_parser = values::c_number::<u32>(0..=u32::MAX), help_heading = OF_OMB
    )]
    pub(crate) validation_warmup: Option<u32>,
    /// Print percentiles of single iterations, for example: -z50,99
    #[arg(
        short = 'z', long, value_name = "P,P", num_args = 0..=1, require_equals = true,
        default_missing_value = "50,90,99", value_parser = values::as_in_c(TailPercentiles::parse),
        help_heading = OF_OMB
    )]
    pub(crate) tail_lat: Option<TailPercentiles>,
    /// Print also minimum, maximum and iterations of collectives
    #[arg(short, long, help_heading = OF_OMB)]
    pub(crate) full: bool,
    /// Data types: mpi_char, mpi_int, mpi_float, several of them, or all [default: mpi_char]
    #[arg(short = 'T', long = "type", value_name = "TYPE,TYPE", help_heading = OF_OMB)]
    pub(crate) datatype: Option<String>,
    /// Synchronization in one-sided tests: lock, flush, flush_local, lock_all, pscw, fence [default: OMB's, by program]
    #[arg(short, long, value_name = "SYNC", help_heading = OF_OMB)]
    pub(crate) sync_option: Option<String>,
    /// Kind of window in one-sided tests: create, allocate, dynamic [default: OMB's, by program]
    #[arg(short, long, value_name = "WIN", help_heading = OF_OMB)]
    pub(crate) win_options: Option<String>,
    /// Allocate window memory without the hint alloc_shm; OMB 3.x writes -no-hints, or -n without a number
    #[arg(long, help_heading = OF_OMB)]
    pub(crate) no_hints: bool,
    /// Memory limit of a rank, which limits the message sizes of collectives, for example: 1G
    #[arg(
        short = 'M', long, value_name = "SIZE", allow_hyphen_values = true,
        value_parser = values::as_in_c(Bytes::from_str), help_heading = OF_OMB
    )]
    pub(crate) mem_limit: Option<Bytes>,
    /// Root of rooted collectives: a rank, fixed:RANK, or rotate [default: 0]
    #[arg(
        short = 'k', long, value_name = "RANK", allow_hyphen_values = true, value_parser = values::as_in_c(root),
        help_heading = OF_OMB
    )]
    pub(crate) root_rank: Option<Root>,
    /// Run collectives in place
    #[arg(short = 'l', long, help_heading = OF_OMB)]
    pub(crate) in_place: bool,
    /// Derived datatype: cont, vect:STRIDE:BLOCK_LENGTH or indx:FILE
    #[arg(
        short = 'D', long, value_name = "TYPE", value_parser = values::as_in_c(values::whole_parts),
        help_heading = OF_OMB
    )]
    pub(crate) ddt: Option<String>,
    /// Neighbourhood of neighbourhood collectives: cart:DIMENSIONS:RADIUS or graph:FILE [default: cart:1:1]
    #[arg(
        short = 'N', long, value_name = "NHBR", value_parser = values::as_in_c(values::whole_parts),
        help_heading = OF_OMB
    )]
    pub(crate) nhbr: Option<String>,
    /// Measure a list of window sizes in one table
    #[arg(short = 'V', long, help_heading = OF_OMB)]
    pub(crate) vary_window: bool,
    /// Print message rates in addition to bandwidth: 1 or 0 [default: 1]
    #[arg(
        short = 'R', long, value_name = "0|1", allow_hyphen_values = true,
        value_parser = values::c_number::<u8>(0..=1), help_heading = OF_OMB
    )]
    pub(crate) print_rate: Option<u8>,
    /// Pairs of ranks that communicate at the same time [default: as many as the ranks allow]
    #[arg(
        short = 'p', long, value_name = "PAIRS", allow_hyphen_values = true,
        value_parser = values::c_number::<u32>(0..=u32::MAX), help_heading = OF_OMB
    )]
    pub(crate) num_pairs: Option<u32>,
    /// Draw the time of each iteration of each size: in the terminal, or in files of the current directory named as the program
    #[arg(
        short = 'G',
        long,
        value_name = "FORM,FORM",
        value_parser = some_of(&GRAPHS),
        ignore_case = true,
        value_delimiter = ',',
        help_heading = OF_OMB
    )]
    pub(crate) graph: Vec<GraphForm>,
    /// Start MPI as a session of MPI 4
    #[arg(short = 'I', long, help_heading = OF_OMB)]
    pub(crate) session: bool,
    /// Accelerator: cuda, rocm, or managed in collectives; other programs have D, MD or MH for each rank, for example: osu_bw -d cuda D D
    #[arg(short = 'd', long, value_name = "TYPE", help_heading = OF_OMB)]
    pub(crate) accelerator: Option<String>,
    /// Count events of PAPI, per operation and rank: PAPI_TOT_INS, PAPI_TOT_CYC, PAPI_L3_TCM, PAPI_TLB_DM, PAPI_BR_INS, PAPI_BR_MSP
    #[arg(short = 'P', long, value_name = "EVENT,EVENT", help_heading = OF_OMB)]
    pub(crate) papi: Option<String>,
    #[command(flatten)]
    pub(crate) unsupported: UnsupportedArgs,
    /// Print help
    #[arg(short, long, help_heading = OF_OMB)]
    pub(crate) help: bool,
    /// Print version
    #[arg(short = 'v', long, help_heading = OF_OMB)]
    pub(crate) version: bool,

    /// Leave ombx out of the first line, so that every line is OMB's; also OMBX_OMB_TITLE=1 in the environment
    #[arg(long, help_heading = "Output")]
    pub(crate) omb_title: bool,
    /// At every run, print on standard error how the measurement differs from that of OMB
    #[arg(long, help_heading = "Output")]
    pub(crate) verbose: bool,

    #[command(flatten)]
    pub(crate) start: StartArgs,

    #[command(flatten)]
    pub(crate) file: FileArgs,
    /// Create a link to ombx for each OSU program of this build in a directory
    #[arg(long, value_name = "DIR", conflicts_with = "name", help_heading = "Output")]
    pub(crate) install_links: Option<PathBuf>,
}

impl OsuArgs {
    /// Returns what the options of OMB say.
    pub(super) fn options(&self) -> OsuOptions {
        let launcher = detection::launcher();
        let launched = launcher.as_ref().and_then(|started| started.ranks);
        OsuOptions {
            buffers: self.buffers.clone(),
            message_size: self.message_size,
            iterations: self.iterations,
            warmup: self.warmup,
            window_size: self.window_size,
            num_test_calls: self.num_test_calls.clone(),
            buffer_num: self.buffer_num,
            validation: self.validation.clone(),
            validation_warmup: self.validation_warmup.is_some(),
            tail_lat: self.tail_lat.clone().map(|TailPercentiles(percentiles)| percentiles),
            full: self.full,
            datatype: self.datatype.clone(),
            sync_option: self.sync_option.clone(),
            win_options: self.win_options.clone(),
            no_hints: self.no_hints,
            mem_limit: self.mem_limit,
            root_rank: self.root_rank,
            in_place: self.in_place,
            ddt: self.ddt.clone(),
            nhbr: self.nhbr.clone(),
            vary_window: self.vary_window,
            print_rate: self.print_rate.map(|print| print == 1),
            num_pairs: self.pairs(),
            has_graph: !self.graph.is_empty(),
            session: self.session,
            accelerator: self.accelerator.clone(),
            papi: self.papi.clone(),
            array_size: self.unsupported.array_size.is_some(),
            cuda_target: self.unsupported.cuda_target.is_some(),
            names_ombx: self.names_ombx(),
            verbose: self.verbose,
            ranks: launched.or(self.start.ranks.map(u64::from)),
            sees_devices: launcher.is_some() || Start::from(self.start.clone()).are_all_here(),
        }
    }

    /// Returns the number of pairs; `None` for as many as the ranks allow.
    pub(super) fn pairs(&self) -> Option<u32> {
        self.num_pairs.filter(|pairs| *pairs > 0)
    }

    /// Returns whether the first line names ombx.
    pub(super) fn names_ombx(&self) -> bool {
        !self.omb_title && !std::env::var_os(OMB_TITLE).is_some_and(|value| !value.is_empty() && value != "0")
    }
}

/// Reads OMB's `-k fixed:RANK` and `-k rotate`, and a rank alone.
fn root(text: &str) -> Result<Root> {
    let text = text.to_ascii_lowercase();
    Root::parse(text.strip_prefix("fixed:").unwrap_or(&text))
}

/// Options of OMB that ombx rejects, each with a reason.
#[derive(Debug, Args)]
pub(crate) struct UnsupportedArgs {
    #[arg(short = 'a', long, hide = true)]
    pub(crate) array_size: Option<String>,
    #[arg(short = 'r', long, hide = true)]
    pub(crate) cuda_target: Option<String>,
}

/// Values of `-G`.
const GRAPHS: [(&str, &str, GraphForm); 3] = [
    ("tty", "Characters below the table", GraphForm::Tty),
    ("png", "File in the current directory", GraphForm::Png),
    ("pdf", "File in the current directory", GraphForm::Pdf),
];

/// Values of `-b`.
const BUFFERS: [(&str, &str, Buffers); 2] = [
    ("single", "One for all messages", Buffers::Single),
    ("multiple", "One for each message", Buffers::Multiple),
];

/// OMB's `-z`: at most five percentiles.
#[derive(Debug, Clone)]
pub(crate) struct TailPercentiles(Vec<u8>);

impl TailPercentiles {
    fn parse(text: &str) -> std::result::Result<TailPercentiles, String> {
        let number = |part: &str| part.trim().parse::<u8>().ok().filter(|percent| *percent <= 100);
        match text.split(',').map(number).collect::<Option<Vec<u8>>>() {
            Some(all) if all.len() <= 5 => Ok(TailPercentiles(all)),
            _ => Err("give at most five percentiles from 0 to 100, as in -z50,99".into()),
        }
    }
}
