//! The programs of IMB and their benchmarks, each with its counterpart in ombx.

use ombx_core::benchmark::Preset;
use ombx_record::error::{Error, Result};

use crate::imb::{
    ImbBenchmark,
    ImbClass::{
        self, Barrier, Collective, Divided, DividedOverlap, Messages, OneToAll, Overlap, OverlapBarrier,
        Parallel, Passive, Rate, Single, SingleOverlap, ThreadBarrier, ThreadCollective, ThreadRate, Threads,
    },
    ImbMode, ImbTable,
};

/// A program of IMB.
pub struct Program {
    /// Name, such as `IMB-MPI1`.
    pub name: &'static str,
    /// Name of its part in the first line.
    pub part: &'static str,
    benchmarks: &'static [Entry],
    /// Whether its buffers may be in the memory of accelerators.
    pub has_accelerators: bool,
}

/// A benchmark of IMB.
pub struct Entry {
    /// Name in IMB.
    pub name: &'static str,
    /// Whether IMB runs it without being asked.
    pub is_default: bool,
    tables: [Option<ImbBenchmark>; 2],
}

impl Entry {
    const fn new(first: ImbBenchmark, second: Option<ImbBenchmark>) -> Entry {
        Entry { name: first.name, is_default: true, tables: [Some(first), second] }
    }

    /// Returns its tables in ombx, one for each mode.
    pub fn tables(&self) -> impl Iterator<Item = ImbBenchmark> + use<> {
        self.tables.into_iter().flatten()
    }
}

const fn table(name: &'static str, bench: &'static str, class: ImbClass) -> ImbBenchmark {
    ImbBenchmark { name, bench, class, mode: None, axes: &[], ranks: None }
}

const fn entry(name: &'static str, bench: &'static str, class: ImbClass, axes: Preset) -> Entry {
    Entry::new(ImbBenchmark { axes, ..table(name, bench, class) }, None)
}

const fn only_if_named(entry: Entry) -> Entry {
    Entry { is_default: false, ..entry }
}

/// Returns the entry of an operation that is started, without computation.
const fn pure(name: &'static str, bench: &'static str, class: ImbClass) -> Entry {
    only_if_named(entry(name, bench, class, &[("overlap", "none")]))
}

/// Returns the entry of an operation with a benchmark that completes each by itself, and one that completes several together.
const fn modes(
    name: &'static str,
    single: &'static str,
    many: &'static str,
    axes: Preset,
    ranks: Option<u32>,
    class: ImbClass,
) -> Entry {
    let single = ImbBenchmark { axes, ranks, mode: Some(ImbMode::Single), ..table(name, single, class) };
    Entry::new(single, Some(ImbBenchmark { bench: many, mode: Some(ImbMode::Aggregate), ..single }))
}

/// Returns the entry of an operation on one element, which is completed by itself.
const fn atomic(name: &'static str, bench: &'static str) -> Entry {
    Entry::new(ImbBenchmark { mode: Some(ImbMode::Single), ..table(name, bench, Single) }, None)
}

const ANY_SOURCE: Preset = &[("receive-from", "any")];
const ONE_TO_ALL: Preset = &[("shape", "one_to_all")];
const ONE_TO_ALL_LOCAL: Preset = &[("shape", "one_to_all"), ("completion", "local")];
const ALL_TO_ALL: Preset = &[("shape", "all_to_all")];
const PAIRS: Preset = &[("shape", "pairs")];
const NEIGHBOURS: Preset = &[("shape", "neighbours")];
const LOCAL: Preset = &[("sync", "flush_local")];
const SQUARE: Preset = &[("dims", "2")];
const CUBE: Preset = &[("dims", "3")];
const FENCE: Preset = &[("completion", "fence")];
const ONE_TO_ALL_FENCE: Preset = &[("shape", "one_to_all"), ("completion", "fence")];
const PAIRS_FENCE: Preset = &[("shape", "pairs"), ("completion", "fence")];

const MPI1: &[Entry] = &[
    entry("PingPong", "p2p.latency", Single, &[]),
    only_if_named(entry("PingPongSpecificSource", "p2p.latency", Single, &[])),
    only_if_named(entry("PingPongAnySource", "p2p.latency", Single, ANY_SOURCE)),
    entry("PingPing", "p2p.pingping", Single, &[]),
    only_if_named(entry("PingPingSpecificSource", "p2p.pingping", Single, &[])),
    only_if_named(entry("PingPingAnySource", "p2p.pingping", Single, ANY_SOURCE)),
    entry("Sendrecv", "p2p.sendrecv", Parallel(2), &[]),
    entry("Exchange", "p2p.exchange", Parallel(4), &[]),
    only_if_named(entry("Uniband", "p2p.mbw_mr", Rate, &[])),
    only_if_named(entry("Biband", "p2p.bibw", Rate, &[])),
    entry("Allreduce", "collective.allreduce", Collective, &[]),
    entry("Reduce", "collective.reduce", Collective, &[]),
    entry("Reduce_local", "collective.reduce_local", Collective, &[]),
    entry("Reduce_scatter", "collective.reduce_scatter", Collective, &[]),
    entry("Reduce_scatter_block", "collective.reduce_scatter_block", Collective, &[]),
    entry("Allgather", "collective.allgather", Collective, &[]),
    entry("Allgatherv", "collective.allgatherv", Collective, &[]),
    entry("Gather", "collective.gather", Collective, &[]),
    entry("Gatherv", "collective.gatherv", Collective, &[]),
    entry("Scatter", "collective.scatter", Collective, &[]),
    entry("Scatterv", "collective.scatterv", Collective, &[]),
    entry("Alltoall", "collective.alltoall", Collective, &[]),
    entry("Alltoallv", "collective.alltoallv", Collective, &[]),
    entry("Bcast", "collective.bcast", Collective, &[]),
    entry("Barrier", "collective.barrier", Barrier, &[]),
];

const NBC: &[Entry] = &[
    entry("Ibcast", "collective.ibcast", Overlap, &[]),
    entry("Iallgather", "collective.iallgather", Overlap, &[]),
    entry("Iallgatherv", "collective.iallgatherv", Overlap, &[]),
    entry("Igather", "collective.igather", Overlap, &[]),
    entry("Igatherv", "collective.igatherv", Overlap, &[]),
    entry("Iscatter", "collective.iscatter", Overlap, &[]),
    entry("Iscatterv", "collective.iscatterv", Overlap, &[]),
    entry("Ialltoall", "collective.ialltoall", Overlap, &[]),
    entry("Ialltoallv", "collective.ialltoallv", Overlap, &[]),
    entry("Ireduce", "collective.ireduce", Overlap, &[]),
    entry("Ireduce_scatter", "collective.ireduce_scatter", Overlap, &[]),
    entry("Iallreduce", "collective.iallreduce", Overlap, &[]),
    entry("Ibarrier", "collective.ibarrier", OverlapBarrier, &[]),
    pure("Ibcast_pure", "collective.ibcast", Collective),
    pure("Iallgather_pure", "collective.iallgather", Collective),
    pure("Iallgatherv_pure", "collective.iallgatherv", Collective),
    pure("Igather_pure", "collective.igather", Collective),
    pure("Igatherv_pure", "collective.igatherv", Collective),
    pure("Iscatter_pure", "collective.iscatter", Collective),
    pure("Iscatterv_pure", "collective.iscatterv", Collective),
    pure("Ialltoall_pure", "collective.ialltoall", Collective),
    pure("Ialltoallv_pure", "collective.ialltoallv", Collective),
    pure("Ireduce_pure", "collective.ireduce", Collective),
    pure("Ireduce_scatter_pure", "collective.ireduce_scatter", Collective),
    pure("Iallreduce_pure", "collective.iallreduce", Collective),
    pure("Ibarrier_pure", "collective.ibarrier", Barrier),
];

const RMA: &[Entry] = &[
    modes("Unidir_put", "rma.put_latency", "rma.put_bw", &[], None, Single),
    modes("Bidir_put", "rma.put_many_latency", "rma.put_many_bw", PAIRS, Some(2), Single),
    modes("Unidir_get", "rma.get_latency", "rma.get_bw", &[], None, Single),
    modes("Bidir_get", "rma.get_many_latency", "rma.get_many_bw", PAIRS, Some(2), Single),
    modes("Put_local", "rma.put_latency", "rma.put_bw", LOCAL, None, Single),
    only_if_named(modes("Get_local", "rma.get_latency", "rma.get_bw", LOCAL, None, Single)),
    entry("Put_all_local", "rma.put_many_bw", OneToAll, ONE_TO_ALL_LOCAL),
    only_if_named(entry("Get_all_local", "rma.get_many_bw", OneToAll, ONE_TO_ALL_LOCAL)),
    entry("One_put_all", "rma.put_many_bw", OneToAll, ONE_TO_ALL),
    entry("All_put_all", "rma.put_many_bw", Collective, ALL_TO_ALL),
    entry("One_get_all", "rma.get_many_bw", OneToAll, ONE_TO_ALL),
    entry("All_get_all", "rma.get_many_bw", Collective, ALL_TO_ALL),
    entry("Exchange_put", "rma.put_many_latency", Collective, NEIGHBOURS),
    entry("Exchange_get", "rma.get_many_latency", Collective, NEIGHBOURS),
    modes("Accumulate", "rma.acc_latency", "rma.acc_bw", &[], None, Single),
    modes("Get_accumulate", "rma.get_acc_latency", "rma.get_acc_bw", &[], None, Single),
    atomic("Fetch_and_op", "rma.fop_latency"),
    atomic("Compare_and_swap", "rma.cas_latency"),
    Entry::new(
        ImbBenchmark { ranks: Some(2), ..table("Truly_passive_put", "rma.put_passive", Passive) },
        None,
    ),
];

const EXT: &[Entry] = &[
    entry("Window", "rma.window", Collective, &[]),
    modes("Unidir_Put", "rma.put_many_latency", "rma.put_many_bw", ONE_TO_ALL_FENCE, Some(2), Single),
    modes("Unidir_Get", "rma.get_many_latency", "rma.get_many_bw", ONE_TO_ALL_FENCE, Some(2), Single),
    modes("Bidir_Put", "rma.put_many_latency", "rma.put_many_bw", PAIRS_FENCE, Some(2), Single),
    modes("Bidir_Get", "rma.get_many_latency", "rma.get_many_bw", PAIRS_FENCE, Some(2), Single),
    modes("Accumulate", "rma.acc_many_latency", "rma.acc_many_bw", FENCE, None, Collective),
];

const P2P: &[Entry] = &[
    entry("PingPong", "p2p.multi_latency", Messages, &[]),
    entry("PingPing", "p2p.pingping", Messages, &[]),
    entry("Unirandom", "p2p.unirandom", Messages, &[]),
    entry("Birandom", "p2p.birandom", Messages, &[]),
    entry("Corandom", "p2p.corandom", Messages, &[]),
    entry("Stencil2D", "p2p.halo", Messages, SQUARE),
    entry("Stencil3D", "p2p.halo", Messages, CUBE),
    entry("SendRecv_Replace", "p2p.sendrecv_replace", Messages, &[]),
];

const MT: &[Entry] = &[
    entry("PingPongMT", "p2p.pingpong_mt", Threads(1), &[]),
    entry("PingPingMT", "p2p.pingping_mt", Threads(1), &[]),
    entry("SendRecvMT", "p2p.sendrecv_mt", Threads(2), &[]),
    entry("ExchangeMT", "p2p.exchange_mt", Threads(4), &[]),
    entry("UniBandMT", "p2p.bw_mt", ThreadRate, &[]),
    entry("BiBandMT", "p2p.bibw_mt", ThreadRate, &[]),
    entry("BarrierMT", "collective.barrier_mt", ThreadBarrier, &[]),
    entry("BcastMT", "collective.bcast_mt", ThreadCollective, &[]),
    entry("ReduceMT", "collective.reduce_mt", ThreadCollective, &[]),
    entry("AllReduceMT", "collective.allreduce_mt", ThreadCollective, &[]),
];

const fn program(name: &'static str, part: &'static str, benchmarks: &'static [Entry]) -> Program {
    Program { name, part, benchmarks, has_accelerators: false }
}

const fn with_accelerators(program: Program) -> Program {
    Program { has_accelerators: true, ..program }
}

static PROGRAMS: [Program; 9] = [
    program("IMB-MPI1", "MPI-1 part", MPI1),
    with_accelerators(program("IMB-MPI1-GPU", "MPI-1 part (GPU)", MPI1)),
    program("IMB-NBC", "MPI-NBC part", NBC),
    program("IMB-RMA", "MPI-RMA part", RMA),
    with_accelerators(program("IMB-RMA-GPU", "RMA part (GPU), Technical preview", RMA)),
    program(OF_FILES, "MPI-IO part", IO),
    program(PEER_TO_PEER, "IMB-P2P part", P2P),
    program(THREADED, "MT part", MT),
    program("IMB-EXT", "MPI-2 part", EXT),
];

/// The program that runs with all processes only, and has other defaults.
const PEER_TO_PEER: &str = "IMB-P2P";

/// The program that measures files, in a directory.
const OF_FILES: &str = "IMB-IO";

/// The program with several threads, which has options of its own and a short header.
const THREADED: &str = "IMB-MT";

/// Returns all programs of IMB.
pub fn all() -> impl Iterator<Item = &'static Program> {
    PROGRAMS.iter()
}

/// Returns the benchmarks of IMB that have one counterpart in ombx, each with the arguments of `ombx run` that measure the same.
pub fn counterparts() -> impl Iterator<Item = (&'static str, String)> {
    [MPI1, NBC, P2P].into_iter().flatten().flat_map(Entry::tables).map(
        |ImbBenchmark { name, bench, axes, .. }| {
            let options: String = axes.iter().map(|(name, value)| format!(" --{name} {value}")).collect();
            (name, format!("{bench}{options}"))
        },
    )
}

/// Finds a program by its name in upper or lower case, with or without `IMB-`.
///
/// # Errors
/// Usage error that says what the name may stand for.
pub fn find(name: &str) -> Result<&'static Program> {
    let is_named = |program: &&Program| {
        name.eq_ignore_ascii_case(program.name) || name.eq_ignore_ascii_case(&program.name["IMB-".len()..])
    };
    all().find(is_named).ok_or_else(|| {
        let has = |program: &&Program| program.entries().any(|entry| entry.name.eq_ignore_ascii_case(name));
        let instead = match all().find(has) {
            Some(program) => format!("{name} is a benchmark of {0}: ombx imb {0} {name}", program.name),
            None if name.starts_with("osu_") => format!("ombx osu {name} replaces the OSU benchmarks"),
            None => {
                format!("give one of {}", all().map(|program| program.name).collect::<Vec<_>>().join(", "))
            }
        };
        Error::usage(format!("{name} is none of the programs that ombx replaces: {instead}"))
    })
}

impl Program {
    /// Returns whether this is the program that has the defaults of IMB-P2P.
    pub(crate) fn is_peer_to_peer(&self) -> bool {
        self.name == PEER_TO_PEER
    }

    /// Returns whether this is the program that measures files.
    pub(crate) fn has_files(&self) -> bool {
        self.name == OF_FILES
    }

    /// Returns whether this is the program with several threads.
    pub fn has_threads(&self) -> bool {
        self.name == THREADED
    }

    /// Returns its benchmarks. IMB has no operations on one element in the memory of accelerators.
    pub fn entries(&self) -> impl Iterator<Item = &'static Entry> {
        let is_atomic = |entry: &Entry| ["Fetch_and_op", "Compare_and_swap"].contains(&entry.name);
        let has_accelerators = self.has_accelerators;
        self.benchmarks.iter().filter(move |entry| !(has_accelerators && is_atomic(entry)))
    }

    /// Finds a benchmark by its name in upper or lower case.
    pub fn find(&self, name: &str) -> Option<&'static Entry> {
        self.entries().find(|entry| entry.name.eq_ignore_ascii_case(name))
    }

    /// Returns the text of `-list`.
    pub fn listed_benchmarks(&self) -> String {
        let mut text = format!("{}\nList of benchmarks:\n{}:\n", ImbTable::title(), self.name);
        let mut entries: Vec<_> = self.entries().collect();
        entries.sort_by_key(|entry| entry.name);
        for entry in entries {
            let default = if entry.is_default { "" } else { " (non-default)" };
            text += &format!("    {}{default}\n", entry.name);
        }
        text
    }

    /// Returns the command line as a user of IMB types it. `name` is the program as it stands in `words`.
    pub fn calling(&self, name: &str, mut words: Vec<String>) -> String {
        let as_imb = |word: &String| match word.strip_prefix("--") {
            Some(name) if !name.contains('=') => format!("-{}", name.replace('-', "_")),
            _ => word.clone(),
        };
        // Options may stand before the program.
        if let Some(at) = words.iter().skip(2).position(|word| word == name) {
            words.remove(2 + at);
        }
        let options = words.iter().skip(2).map(as_imb);
        [self.name.to_owned()].into_iter().chain(options).collect::<Vec<_>>().join(" ")
    }
}

/// Values of parameters of benchmarks of files.
macro_rules! files {
    ($files:literal, $pointer:literal, $access:literal $(, $sync:expr)?) => {
        &[("files", $files), ("pointer", $pointer), ("access", $access) $(, $sync)?]
    };
}

/// Writes by one process or by all, with one `MPI_File_sync` after many and with one after each.
macro_rules! writes {
    ($name:literal, $class:expr, $ranks:expr, $files:literal, $pointer:literal, $access:literal) => {{
        let together = files!($files, $pointer, $access, ("file-sync", "end"));
        let many = of_file(table($name, "io.write", $class), ImbMode::Aggregate, together, $ranks);
        let each = files!($files, $pointer, $access, ("file-sync", "each"));
        Entry::new(many, Some(of_file(many, ImbMode::Single, each, $ranks)))
    }};
}

/// Other accesses, by one process or by all: reads, and accesses that are started, with their overlap.
macro_rules! accesses {
    ($name:literal, $bench:literal, $class:expr, $ranks:expr, $files:literal, $pointer:literal, $access:literal) => {{
        let axes = files!($files, $pointer, $access);
        Entry::new(of_file(table($name, $bench, $class), ImbMode::Aggregate, axes, $ranks), None)
    }};
}

const fn of_file(table: ImbBenchmark, mode: ImbMode, axes: Preset, ranks: Option<u32>) -> ImbBenchmark {
    ImbBenchmark { mode: Some(mode), axes, ranks, ..table }
}

/// Number of processes of a benchmark of one process, which has a file of its own.
const ONE: Option<u32> = Some(1);

const IO: &[Entry] = &[
    writes!("S_Write_Indv", Single, ONE, "own", "individual", "independent"),
    accesses!("S_IWrite_Indv", "io.iwrite", SingleOverlap, ONE, "own", "individual", "independent"),
    writes!("S_Write_Expl", Single, ONE, "own", "explicit", "independent"),
    accesses!("S_IWrite_Expl", "io.iwrite", SingleOverlap, ONE, "own", "explicit", "independent"),
    writes!("P_Write_Indv", Divided, None, "one", "individual", "independent"),
    accesses!("P_IWrite_Indv", "io.iwrite", DividedOverlap, None, "one", "individual", "independent"),
    writes!("P_Write_Shared", Divided, None, "one", "shared", "independent"),
    accesses!("P_IWrite_Shared", "io.iwrite", DividedOverlap, None, "one", "shared", "independent"),
    writes!("P_Write_Priv", Divided, None, "own", "individual", "independent"),
    accesses!("P_IWrite_Priv", "io.iwrite", DividedOverlap, None, "own", "individual", "independent"),
    writes!("P_Write_Expl", Divided, None, "one", "explicit", "independent"),
    accesses!("P_IWrite_Expl", "io.iwrite", DividedOverlap, None, "one", "explicit", "independent"),
    writes!("C_Write_Indv", Divided, None, "one", "individual", "collective"),
    accesses!("C_IWrite_Indv", "io.iwrite", DividedOverlap, None, "one", "individual", "split"),
    writes!("C_Write_Shared", Divided, None, "one", "shared", "collective"),
    accesses!("C_IWrite_Shared", "io.iwrite", DividedOverlap, None, "one", "shared", "split"),
    writes!("C_Write_Expl", Divided, None, "one", "explicit", "collective"),
    accesses!("C_IWrite_Expl", "io.iwrite", DividedOverlap, None, "one", "explicit", "split"),
    accesses!("S_Read_Indv", "io.read", Single, ONE, "own", "individual", "independent"),
    accesses!("S_IRead_Indv", "io.iread", SingleOverlap, ONE, "own", "individual", "independent"),
    accesses!("S_Read_Expl", "io.read", Single, ONE, "own", "explicit", "independent"),
    accesses!("S_IRead_Expl", "io.iread", SingleOverlap, ONE, "own", "explicit", "independent"),
    accesses!("P_Read_Indv", "io.read", Divided, None, "one", "individual", "independent"),
    accesses!("P_IRead_Indv", "io.iread", DividedOverlap, None, "one", "individual", "independent"),
    accesses!("P_Read_Shared", "io.read", Divided, None, "one", "shared", "independent"),
    accesses!("P_IRead_Shared", "io.iread", DividedOverlap, None, "one", "shared", "independent"),
    accesses!("P_Read_Priv", "io.read", Divided, None, "own", "individual", "independent"),
    accesses!("P_IRead_Priv", "io.iread", DividedOverlap, None, "own", "individual", "independent"),
    accesses!("P_Read_Expl", "io.read", Divided, None, "one", "explicit", "independent"),
    accesses!("P_IRead_Expl", "io.iread", DividedOverlap, None, "one", "explicit", "independent"),
    accesses!("C_Read_Indv", "io.read", Divided, None, "one", "individual", "collective"),
    accesses!("C_IRead_Indv", "io.iread", DividedOverlap, None, "one", "individual", "split"),
    accesses!("C_Read_Shared", "io.read", Divided, None, "one", "shared", "collective"),
    accesses!("C_IRead_Shared", "io.iread", DividedOverlap, None, "one", "shared", "split"),
    accesses!("C_Read_Expl", "io.read", Divided, None, "one", "explicit", "collective"),
    accesses!("C_IRead_Expl", "io.iread", DividedOverlap, None, "one", "explicit", "split"),
    entry("Open_Close", "io.open", Barrier, &[("files", "one")]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calling_sequence_is_that_of_imb() {
        let program = find("IMB-MPI1").unwrap();
        for (line, name, expected) in [
            ("ombx imb IMB-MPI1 PingPong --npmin 2", "IMB-MPI1", "IMB-MPI1 PingPong -npmin 2"),
            ("ombx imb --npmin 2 mpi1 PingPong", "mpi1", "IMB-MPI1 -npmin 2 PingPong"),
            ("ombx imb --root-shift on IMB-MPI1", "IMB-MPI1", "IMB-MPI1 -root_shift on"),
        ] {
            let words = line.split(' ').map(str::to_owned).collect();
            assert_eq!(program.calling(name, words), expected, "{line}");
        }
    }
}
