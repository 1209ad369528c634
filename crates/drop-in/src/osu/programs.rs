//! The programs of OMB: which benchmark each one is, and its defaults.

use ombx_core::{
    benchmark::{Benchmark, Choice, ElementType, Layout, Osu, Pairs, Parameter, Registry},
    measure::plan::Effort,
};
use ombx_record::{order::sort_by_number, result::Metric, unit::Bytes};

/// Programs that any number of ranks can start.
pub(crate) const STARTUP: [&str; 2] = ["osu_init", "osu_hello"];
/// Program whose ranks have several threads.
const THREADS: &str = "osu_latency_mt";
/// Program of the broadcast of OMB 3.x.
const ACKNOWLEDGED: &str = "osu_bcast_ack";
/// Larger messages get fewer iterations.
const LARGE: Bytes = Bytes(8192);
/// OMB's largest message by default.
const LARGEST: Bytes = Bytes(4 << 20);
/// OMB's largest message of a collective by default.
const LARGEST_COLLECTIVE: Bytes = Bytes(1 << 20);

/// Beginning of the names of benchmarks whose programs are collective.
const COLLECTIVE: &str = "collective.";

/// Kinds of OSU programs, which accept different options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProgramKind {
    TwoSided,
    OneSided,
    Collective,
}

/// A program of OMB, and its benchmark in ombx.
pub struct Program {
    /// Its name and title.
    pub osu: Osu,
    /// The benchmark, and the values that the name of the program chooses.
    pub choice: Choice,
    pub(crate) kind: ProgramKind,
}

impl Program {
    /// Finds a program by its whole name.
    pub fn find(registry: &Registry, name: &str) -> Option<Program> {
        let mut all =
            registry.all().iter().flat_map(|bench| bench.osu_names().map(move |osu| (*bench, *osu)));
        let (bench, osu) = all.find(|(_, osu)| osu.name == name)?;
        Some(Program::new(bench, osu))
    }

    /// Returns the program of a benchmark that has this name.
    pub fn new(bench: &'static Benchmark, osu: Osu) -> Program {
        let kind = if bench.parameter("sync").is_some() {
            ProgramKind::OneSided
        } else if bench.name.starts_with(COLLECTIVE) {
            ProgramKind::Collective
        } else {
            ProgramKind::TwoSided
        };
        Program { osu, choice: Choice { bench, preset: osu.axes }, kind }
    }

    /// Returns the parameter of this name that the benchmark has.
    pub(crate) fn parameter(&self, name: &str) -> Option<&'static Parameter> {
        self.choice.bench.parameter(name)
    }

    /// Returns OMB 7.4's default of a parameter, if it differs from the benchmark's and the program's name does not choose a value.
    pub(crate) fn default_of(&self, parameter: &Parameter) -> Option<&'static str> {
        let value = match (parameter.name, self.osu.name) {
            _ if self.osu.axes.iter().any(|(name, _)| *name == parameter.name) => return None,
            ("sync", "osu_put_bibw") => "pscw",
            ("sync", "osu_get_acc_latency") => "lock",
            ("win", "osu_get_acc_latency") => "create",
            ("sync", _) => "flush",
            ("buffers", _) => "single",
            // What is moved are bytes.
            ("type", _) if parameter.default == Some(ElementType::Byte.name()) => return None,
            ("type", _) => "char",
            _ => return None,
        };
        parameter.names().iter().find(|known| **known == value).copied()
    }

    /// Returns OMB's smallest and largest message by default.
    pub(crate) fn sizes(&self) -> (Bytes, Bytes) {
        (Bytes(1), if self.kind == ProgramKind::Collective { LARGEST_COLLECTIVE } else { LARGEST })
    }

    /// Returns whether a rank has a block of each rank, so that OMB divides its memory limit by their number.
    pub(crate) fn has_blocks(&self) -> bool {
        let name = self.osu.name;
        ["gather", "alltoall", "scatter"].iter().any(|call| name.contains(call)) && !name.contains("reduce")
    }

    /// Returns why OMB refuses this number of ranks, if it does. `pairs` tells whether the user asks for a number of pairs, which OMB
    /// knows in few programs.
    pub fn refusal(&self, ranks: u32, pairs: Option<u32>) -> Option<String> {
        let name = self.osu.name;
        let is_one_pair = match self.choice.bench.ranks.layout {
            Layout::Pair | Layout::Pairs(Pairs::One) => pairs.is_none(),
            _ => name == THREADS,
        };
        let (is_refused, needed) = if is_one_pair {
            (ranks != 2, "exactly two processes")
        } else {
            (ranks < 2, "at least two processes")
        };
        (is_refused && !STARTUP.contains(&name)).then(|| {
            format!(
                "This test requires {needed}, but {name} has {ranks}: start it with mpiexec -n 2. If you \
                 did, use the mpiexec of the MPI of this ombx, or its PMI with srun --mpi"
            )
        })
    }

    /// Returns the effort for small messages, and for those above a size.
    pub(crate) fn effort(&self, iterations: Option<u64>, warmup: Option<u64>) -> (Effort, (Bytes, Effort)) {
        let fixed = |(timed, untimed)| Effort::Fixed {
            iterations: iterations.unwrap_or(timed),
            warmup: warmup.unwrap_or(untimed),
        };
        let (small, large) = match (self.kind, self.choice.bench.described.metric) {
            // osu_bcast of OMB 3.x has as many at all sizes.
            _ if self.osu.name == ACKNOWLEDGED => ((1000, 100), (1000, 100)),
            (ProgramKind::Collective, _) => ((1000, 100), (100, 10)),
            (_, Metric::Bandwidth) => ((100, 10), (20, 2)),
            (_, Metric::Latency) => ((10_000, 100), (1000, 10)),
        };
        (fixed(small), (LARGE, fixed(large)))
    }
}

/// Beginning of the names of programs.
pub const PREFIX: &str = "osu_";

/// Every MPI program of OMB 3.x and 7.4.
const OMB: &str = "
    osu_latency osu_latency_mt osu_latency_mp osu_multi_lat osu_latency_persistent
    osu_bw osu_bibw osu_mbw_mr osu_bw_persistent osu_bibw_persistent osu_bw_fan_in osu_bw_fan_out
    osu_put_latency osu_get_latency osu_acc_latency osu_get_acc_latency osu_cas_latency osu_fop_latency
    osu_put_bw osu_get_bw osu_put_bibw osu_get_mbw osu_get_multi_lat
    osu_passive_put_latency osu_passive_get_latency osu_passive_acc_latency osu_passive_put_bw osu_passive_get_bw
    osu_allgather osu_allgatherv osu_allreduce osu_alltoall osu_alltoallv osu_alltoallw osu_barrier osu_bcast
    osu_gather osu_gatherv osu_reduce osu_reduce_scatter osu_reduce_scatter_block osu_scatter osu_scatterv
    osu_iallgather osu_iallgatherv osu_iallreduce osu_ialltoall osu_ialltoallv osu_ialltoallw osu_ibarrier osu_ibcast
    osu_igather osu_igatherv osu_ireduce osu_ireduce_scatter osu_ireduce_scatter_block osu_iscatter osu_iscatterv
    osu_allgather_persistent osu_allgatherv_persistent osu_allreduce_persistent osu_alltoall_persistent
    osu_alltoallv_persistent osu_alltoallw_persistent osu_barrier_persistent osu_bcast_persistent
    osu_gather_persistent osu_gatherv_persistent osu_reduce_persistent osu_reduce_scatter_persistent
    osu_scatter_persistent osu_scatterv_persistent
    osu_neighbor_allgather osu_neighbor_allgatherv osu_neighbor_alltoall osu_neighbor_alltoallv osu_neighbor_alltoallw
    osu_ineighbor_allgather osu_ineighbor_allgatherv osu_ineighbor_alltoall osu_ineighbor_alltoallv
    osu_ineighbor_alltoallw
    osu_init osu_hello";

fn all() -> impl Iterator<Item = &'static str> {
    OMB.split_whitespace()
}

/// Returns the programs of this build in OMB's order, then those that OMB does not have.
pub fn covered(registry: &Registry) -> Vec<(&'static Osu, &'static Benchmark)> {
    let mut names: Vec<(&Osu, &Benchmark)> =
        registry.all().iter().flat_map(|bench| bench.osu_names().map(move |osu| (osu, *bench))).collect();
    sort_by_number(&mut names, |(osu, _)| {
        all().position(|name| name == osu.name).map_or(i64::MAX, |at| at as i64)
    });
    names
}

/// Returns why this build has no such OSU program; `None` if OMB has no such program either.
pub fn uncovered(name: &str) -> Option<&'static str> {
    match name {
        "osu_get_mbw" => Some("use osu_get_bw -p with the number of pairs"),
        "osu_get_multi_lat" => Some("use osu_get_latency -s pscw -p with the number of pairs"),
        "osu_partitioned_latency" => Some("ombx run p2p.latency_partitioned measures partitioned messages"),
        _ if name.starts_with("osu_nccl_") || name.starts_with("osu_xccl_") => Some(
            "NCCL and RCCL are not measured; ombx osu osu_allreduce -d cuda measures MPI with memory of devices",
        ),
        _ if ["osu_oshm_", "osu_upc_", "osu_upcxx_"].iter().any(|start| name.starts_with(start)) => {
            Some("OpenSHMEM, UPC and UPC++ are not measured; ombx osu osu_put_latency measures one-sided MPI")
        }
        _ => all().any(|known| known == name).then_some("this build has no such benchmark"),
    }
}

/// Returns the text that `ombx osu` without a name prints.
pub fn list_of_names(registry: &Registry) -> String {
    let mut text = String::new();
    let covered = covered(registry);
    let width = covered.iter().map(|(osu, _)| osu.name.len()).max().unwrap_or_default();
    for (osu, bench) in &covered {
        let options: String = osu.axes.iter().map(|(axis, value)| format!(" --{axis} {value}")).collect();
        text += &format!("{:<width$}  {}{options}\n", osu.name, bench.name);
    }
    let missing: Vec<&str> = all().filter(|name| covered.iter().all(|(osu, _)| osu.name != *name)).collect();
    if !missing.is_empty() {
        text += &format!("\nnot supported: {}\n", missing.join(" "));
    }
    text
}
