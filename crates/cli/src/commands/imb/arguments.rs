//! The arguments of `ombx imb`: those of IMB, which has long names after one hyphen, and some of ombx.

use std::{path::PathBuf, str::FromStr, time::Duration};

use clap::{Args, ValueEnum};
use ombx_core::benchmark::{ElementType, ParameterValue, RankMatrix, Threading, memory::Place};
use ombx_drop_in::imb::{
    ImbGroups, ImbMode,
    options::{ImbOptions, MemoryKind, OffCache, OtherOptions, SizeRange, ThreadOptions, TypeOptions},
    plan::{IterationPolicy, Iterations},
};
use ombx_record::unit::Bytes;

use crate::arguments::{
    output::{FileArgs, some_of},
    start::StartArgs,
    values,
};

/// Heading of the options of IMB, and of those that IMB-MT alone has.
pub(crate) const OF_IMB: &str = "As IMB";
pub(crate) const OF_THREADS: &str = "As IMB-MT";

#[derive(Debug, Args)]
pub(crate) struct ImbArgs {
    /// Program of IMB, for example: IMB-MPI1 [default: list all programs]
    pub(crate) name: Option<String>,
    /// Benchmarks of the program, in any case [default: those that IMB runs by default and ombx has]
    #[arg(value_name = "BENCHMARK", value_delimiter = ',')]
    pub(crate) benchmarks: Vec<String>,

    /// Print the benchmarks of the program; also as -list, as all options of IMB
    #[arg(long, help_heading = OF_IMB)]
    pub(crate) list: bool,
    /// Smallest number of processes of benchmarks that run with 2, 4, 8 and so on [default: 2]
    #[arg(
        long, value_name = "P", allow_negative_numbers = true, value_parser = values::c_number::<u32>(1..=u32::MAX),
        help_heading = OF_IMB
    )]
    pub(crate) npmin: Option<u32>,
    /// Iterations, total bytes in MiB that limit them for large messages, and iterations of NON-AGGREGATE writes of files: -iter 100 or -iter 1000,40,100 [default: 1000,40; 100000,800 of IMB-P2P]
    #[arg(
        long, value_name = "N[,MIB[,SINGLE]]", allow_negative_numbers = true,
        value_parser = values::as_in_c(Iterations::parse), help_heading = OF_IMB
    )]
    pub(crate) iter: Option<Iterations>,
    /// Maximum seconds of a row, which then has fewer iterations [default: 10]
    #[arg(
        long, value_name = "SECONDS", allow_negative_numbers = true, value_parser = values::decimal_in_c(seconds),
        help_heading = OF_IMB
    )]
    pub(crate) time: Option<Duration>,
    /// What changes the number of iterations [default: dynamic]
    #[arg(long, value_name = "POLICY", value_parser = some_of(&POLICIES), ignore_case = true, help_heading = OF_IMB)]
    pub(crate) iter_policy: Option<IterationPolicy>,
    /// Message sizes 0, 2^MIN to 2^MAX [default: 0:22]
    #[arg(
        long, value_name = "[MIN:]MAX", allow_negative_numbers = true, value_parser = values::as_in_c(SizeRange::parse),
        conflicts_with_all = ["msglen", "msgsize"], help_heading = OF_IMB
    )]
    pub(crate) msglog: Option<SizeRange>,
    /// File with one message size per line
    #[arg(long, value_name = "FILE", conflicts_with = "msgsize", help_heading = OF_IMB)]
    pub(crate) msglen: Option<PathBuf>,
    /// List of message sizes, for example: -msgsize 8,1K
    #[arg(
        long, alias = "msgsz", value_name = "SIZES", value_delimiter = ',',
        value_parser = values::as_in_c(Bytes::from_str),
        help_heading = OF_IMB
    )]
    pub(crate) msgsize: Vec<Bytes>,
    /// Size 0 beside those of -msglog [default: on]
    #[arg(long, value_name = "on|off", value_enum, ignore_case = true, help_heading = OF_IMB)]
    pub(crate) zero_size: Option<Switch>,
    /// Limit of the buffers of a process in GiB; rows that need more are skipped [default: the free memory]
    #[arg(
        long, value_name = "GIB", allow_negative_numbers = true, value_parser = values::decimal_in_c(gibibytes),
        help_heading = OF_IMB
    )]
    pub(crate) mem: Option<u64>,
    /// Use buffers that are not in the cache: size of the last-level cache in MiB, or -1 for the size that the system has, and length of its lines in bytes: -off_cache 32,64
    #[arg(
        long, value_name = "MIB[,LINE]", value_parser = values::decimal_in_c(OffCache::parse), allow_hyphen_values = true,
        help_heading = OF_IMB
    )]
    pub(crate) off_cache: Option<OffCache>,
    /// Messages in flight of Uniband and Biband, also of IMB-MT [default: 64]
    #[arg(
        long, value_name = "N", allow_negative_numbers = true, value_parser = values::c_number::<u32>(1..=1 << 20),
        help_heading = OF_IMB
    )]
    pub(crate) window_size: Option<u32>,
    /// Change the root in each iteration [default: off]
    #[arg(long, value_name = "on|off", value_enum, ignore_case = true, help_heading = OF_IMB)]
    pub(crate) root_shift: Option<Switch>,
    /// Groups of processes that run a collective at the same time: -1 one, 0 as many as there can be, 1 the same with figures of each
    #[arg(
        long, value_name = "-1|0|1", default_value = "-1", value_parser = some_of(&MULTI),
        allow_hyphen_values = true, help_heading = OF_IMB
    )]
    pub(crate) multi: Multi,
    /// Number the processes along the rows of a matrix, for P processes on each of Q nodes: 0, P, 2P .. are neighbours
    #[arg(long, value_name = "PxQ", value_parser = RankMatrix::parse, help_heading = OF_IMB)]
    pub(crate) map: Option<RankMatrix>,
    /// Thread support with which MPI starts: multiple, or for one thread single, funneled, serialized or nompinit [default: single]
    #[arg(
        long,
        value_name = "LEVEL",
        value_parser = some_of(&THREAD_LEVELS),
        ignore_case = true,
        hide_possible_values = true,
        help_heading = OF_IMB
    )]
    pub(crate) thread_level: Option<Threading>,
    /// Tables of benchmarks that have both modes
    #[arg(
        long, value_name = "MODE", default_value = "multi",
        value_parser = some_of(&AGGREGATE_MODES), ignore_case = true,
        help_heading = OF_IMB
    )]
    pub(crate) aggregate_mode: LeftOut,
    /// Memory of the buffers of IMB-MPI1-GPU and IMB-RMA-GPU: of the device, of the host and pinned (host), managed (shared), or of the host (cpu) [default: device]
    #[arg(
        long,
        value_name = "TYPE",
        value_parser = some_of(&MEMORY),
        ignore_case = true,
        hide_possible_values = true,
        help_heading = OF_IMB
    )]
    pub(crate) mem_alloc_type: Option<MemoryKind>,
    /// Two untimed iterations before the timed ones [default: on]
    #[arg(long, value_name = "on|off", value_enum, ignore_case = true, help_heading = OF_IMB)]
    pub(crate) warm_up: Option<Switch>,
    /// Benchmarks in addition to the default ones
    #[arg(long, value_name = "BENCHMARK", value_delimiter = ',', help_heading = OF_IMB)]
    pub(crate) include: Vec<String>,
    /// Benchmarks that do not run
    #[arg(long, value_name = "BENCHMARK", value_delimiter = ',', help_heading = OF_IMB)]
    pub(crate) exclude: Vec<String>,
    /// File with one benchmark per line
    #[arg(long, value_name = "FILE", help_heading = OF_IMB)]
    pub(crate) input: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) types: TypeArgs,
    #[command(flatten)]
    pub(crate) threads: ThreadArgs,
    #[command(flatten)]
    pub(crate) other: OtherArgs,
    /// Print help
    #[arg(short, long, help_heading = OF_IMB)]
    pub(crate) help: bool,

    #[command(flatten)]
    pub(crate) start: StartArgs,
    #[command(flatten)]
    pub(crate) file: FileArgs,
    /// Directory of the files of IMB-IO, which are removed [default: the current directory]
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub(crate) directory: Option<PathBuf>,
    /// Create a link to ombx for each program of IMB that ombx has in a directory
    #[arg(long, value_name = "DIR", conflicts_with = "name", help_heading = "Output")]
    pub(crate) install_links: Option<PathBuf>,
}

/// Values of `-mem_alloc_type`.
const MEMORY: [(&str, &str, MemoryKind); 4] = [
    ("device", "Memory of the device", Place::Device),
    ("host", "Memory of the host that the driver has pinned", Place::Pinned),
    ("shared", "Managed memory", Place::Managed),
    ("cpu", "Memory of the host", |_| Place::Host),
];

/// Values of `-iter_policy`.
const POLICIES: [(&str, &str, IterationPolicy); 4] = [
    ("dynamic", "Fewer iterations if they would take longer than -time", IterationPolicy::Dynamic),
    ("multiple_np", "A multiple of the number of processes", IterationPolicy::Multiple),
    ("auto", "As multiple_np if the collective has a root, otherwise as dynamic", IterationPolicy::Auto),
    ("off", "Nothing", IterationPolicy::Off),
];

/// Values of `-thread_level`. Only `multiple` has several threads.
const THREAD_LEVELS: [(&str, &str, Threading); 5] = [
    ("single", "MPI_THREAD_SINGLE", Threading::Single),
    ("funneled", "MPI_THREAD_FUNNELED", Threading::Funneled),
    ("serialized", "MPI_THREAD_SERIALIZED", Threading::Serialized),
    ("multiple", "MPI_THREAD_MULTIPLE", Threading::Multiple),
    ("nompinit", "MPI_Init instead of MPI_Init_thread", Threading::Single),
];

impl ImbArgs {
    /// Returns what the options of IMB say.
    pub(crate) fn options(&self) -> ImbOptions {
        let is_on = |switch: Option<Switch>| switch.map(Switch::is_on);
        let ImbArgs { types, threads, other, .. } = self;
        ImbOptions {
            npmin: self.npmin,
            iter: self.iter,
            time: self.time,
            iter_policy: self.iter_policy,
            msglog: self.msglog,
            msglen: self.msglen.clone(),
            msgsize: self.msgsize.clone(),
            zero_size: is_on(self.zero_size),
            mem: self.mem,
            off_cache: self.off_cache,
            window_size: self.window_size,
            root_shift: is_on(self.root_shift),
            multi: self.multi,
            map: self.map,
            thread_level: self.thread_level,
            mem_alloc_type: self.mem_alloc_type,
            warm_up: is_on(self.warm_up),
            types: TypeOptions {
                data_type: types.data_type,
                red_data_type: types.red_data_type,
                contig_type: types.contig_type,
            },
            threads: ThreadOptions {
                count: threads.count.clone(),
                datatype: threads.datatype,
                repeat: threads.repeat,
                warmup: threads.warmup,
                stride: threads.stride,
                noheader: threads.noheader,
                barrier: threads.barrier,
                malloc_align: threads.malloc_align,
                malloc_algo: threads.malloc_algo.clone(),
                check: threads.check.clone(),
            },
            other: OtherOptions {
                sync: is_on(other.sync),
                imb_barrier: is_on(other.imb_barrier),
                msg_pause: other.msg_pause.clone(),
                pause: other.pause,
                msgwr: is_on(other.msgwr),
                msgrd: is_on(other.msgrd),
            },
            directory: self.directory.clone(),
        }
    }
}

/// Options of IMB that ombx rejects or that have no effect, each with a reason.
#[derive(Debug, Args)]
pub(crate) struct OtherArgs {
    #[arg(long, help_heading = OF_IMB, hide = true, value_enum, ignore_case = true)]
    pub(crate) sync: Option<Switch>,
    #[arg(long, help_heading = OF_IMB, hide = true, value_enum, ignore_case = true)]
    pub(crate) imb_barrier: Option<Switch>,
    #[arg(long, help_heading = OF_IMB, hide = true)]
    pub(crate) msg_pause: Option<String>,
    /// Microseconds.
    #[arg(long, help_heading = OF_IMB, hide = true, value_parser = values::c_number::<u64>(0..=1 << 32))]
    pub(crate) pause: Option<u64>,
    #[arg(long, help_heading = OF_IMB, hide = true, value_enum, ignore_case = true)]
    pub(crate) msgwr: Option<Switch>,
    #[arg(long, help_heading = OF_IMB, hide = true, value_enum, ignore_case = true)]
    pub(crate) msgrd: Option<Switch>,
}

/// IMB's `-multi`: how the figures of groups are shown; `None` if one group runs at a time.
pub(crate) type Multi = Option<ImbGroups>;
/// Values of `-multi`.
const MULTI: [(&str, &str, Multi); 3] = [
    ("-1", "One group of processes at a time", None),
    ("0", "Several groups, with figures over all of them", Some(ImbGroups::Together)),
    ("1", "Several groups, with figures of each", Some(ImbGroups::Separate)),
];

/// IMB's `-aggregate_mode`: the mode whose tables are left out. A benchmark without modes always has its table.
pub(crate) type LeftOut = Option<ImbMode>;
/// Values of `-aggregate_mode`.
const AGGREGATE_MODES: [(&str, &str, LeftOut); 3] = [
    ("aggregate", "Several operations are completed together", Some(ImbMode::Single)),
    ("non_aggregate", "Each operation is completed by itself", Some(ImbMode::Aggregate)),
    ("multi", "Both, one table each", None),
];

/// `on` or `off`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Switch {
    /// Yes
    #[value(aliases = ["1", "yes", "true", "enable"])]
    On,
    /// No
    #[value(aliases = ["0", "no", "false", "disable"])]
    Off,
}

impl Switch {
    fn is_on(self) -> bool {
        self == Switch::On
    }
}

fn seconds(text: &str) -> std::result::Result<Duration, String> {
    let number = text.parse::<f64>().ok().filter(|seconds| *seconds > 0.0 && *seconds <= 1e6);
    number.map(Duration::from_secs_f64).ok_or_else(|| "not a number of seconds such as 10".into())
}

fn gibibytes(text: &str) -> std::result::Result<u64, String> {
    let number = text.parse::<f64>().ok().filter(|gib| *gib > 0.0 && *gib <= 1e6);
    number
        .map(|gib| (gib * (1u64 << 30) as f64) as u64)
        .ok_or_else(|| "not a number of GiB such as 0.5".into())
}

/// Options that IMB-MT alone has.
#[derive(Debug, Args)]
pub(crate) struct ThreadArgs {
    /// Numbers of elements of a message of IMB-MT, for example: -count 1,1024 [default: 1,2,4,8]
    #[arg(
        long, value_name = "NUMBERS", value_delimiter = ',',
        value_parser = values::c_number::<u64>(0..=i32::MAX as u64), help_heading = OF_THREADS
    )]
    count: Vec<u64>,
    /// Element of messages of IMB-MT [default: int]
    #[arg(
        long, value_name = "int|char", value_parser = some_of(&DATATYPES), ignore_case = true,
        help_heading = OF_THREADS
    )]
    datatype: Option<ElementType>,
    /// Timed iterations of IMB-MT [default: 1000]
    #[arg(long, value_name = "N", value_parser = values::c_number::<u64>(1..=1 << 32), help_heading = OF_THREADS)]
    repeat: Option<u64>,
    /// Untimed iterations of IMB-MT [default: 100]
    #[arg(long, value_name = "N", value_parser = values::c_number::<u64>(0..=1 << 32), help_heading = OF_THREADS)]
    warmup: Option<u64>,
    /// Distance of the two ranks of a pair of IMB-MT: 1, or 0 for half of the ranks [default: 0]
    #[arg(long, value_name = "N", value_parser = values::c_number::<u32>(0..=u32::MAX), help_heading = OF_THREADS)]
    stride: Option<u32>,
    /// Print no title of IMB-MT
    #[arg(long, help_heading = OF_THREADS)]
    noheader: bool,
    /// Whether threads leave a barrier before each sample, as in ombx.
    #[arg(long, help_heading = OF_THREADS, hide = true, value_parser = some_of(&BARRIERS), ignore_case = true)]
    barrier: Option<bool>,
    #[arg(long, help_heading = OF_THREADS, hide = true, value_parser = values::c_number::<u64>(1..=1 << 32))]
    malloc_align: Option<u64>,
    #[arg(long, help_heading = OF_THREADS, hide = true, value_parser = ["serial", "continuous", "parallel"])]
    malloc_algo: Option<String>,
    #[arg(long, help_heading = OF_THREADS, hide = true)]
    check: Option<String>,
}

/// Values of `-datatype` of IMB-MT.
const DATATYPES: [(&str, &str, ElementType); 2] =
    [("int", "MPI_INT", ElementType::Int32), ("char", "MPI_CHAR", ElementType::Char)];

/// Values of `-barrier` of IMB-MT.
const BARRIERS: [(&str, &str, bool); 3] =
    [("on", "MPI_Barrier", true), ("off", "None", false), ("special", "Messages", false)];

#[derive(Debug, Args)]
pub(crate) struct TypeArgs {
    /// Element type of messages of benchmarks that move data
    #[arg(
        long, value_name = "TYPE", default_value = "byte", value_parser = some_of(&ELEMENT_TYPES),
        ignore_case = true, help_heading = OF_IMB
    )]
    data_type: ElementType,
    /// Element type of reductions and accumulates
    #[arg(
        long, value_name = "TYPE", default_value = "float", value_parser = some_of(&ELEMENT_TYPES[1..]),
        ignore_case = true, help_heading = OF_IMB
    )]
    red_data_type: ElementType,
    /// Datatype of messages of benchmarks that move data
    #[arg(
        long, value_name = "KIND", default_value = "base", value_parser = some_of(&CONTIG_TYPES),
        ignore_case = true, help_heading = OF_IMB
    )]
    contig_type: u64,
}

/// Element types of messages that are moved. All but the first are those of reductions and accumulates.
static ELEMENT_TYPES: [(&str, &str, ElementType); 5] = [
    ("byte", "MPI_BYTE", ElementType::Byte),
    ("char", "MPI_SIGNED_CHAR", ElementType::Char),
    ("int", "MPI_INT", ElementType::Int32),
    ("float", "MPI_FLOAT", ElementType::Float),
    ("double", "MPI_DOUBLE", ElementType::Double),
];

/// How the elements of a message lie in memory: distance of two elements in a derived datatype, in elements; 0 without such a datatype.
const CONTIG_TYPES: [(&str, &str, u64); 4] = [
    ("base", "Elements of the type", 0),
    ("base_vec", "An MPI_Type_vector of them without gaps", 1),
    ("resize", "An MPI_Type_vector of them, each with a gap as long as an element after it", 2),
    ("resize_vec", "The same", 2),
];
