//! An OSU program: its benchmark and the defaults of OMB.

use ombx_core::{
    benchmark::{Benchmark, Choice, ElementType, Layout, Metric, Osu, Pairs, Parameter, Registry},
    error::Result,
    measure::plan::Effort,
    unit::Bytes,
};

use super::names;

/// Programs that any number of ranks can start.
pub(super) const STARTUP: [&str; 2] = ["osu_init", "osu_hello"];
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
pub(super) enum Family {
    TwoSided,
    OneSided,
    Collective,
}

pub(crate) struct Program {
    pub(super) osu: Osu,
    pub(super) choice: Choice,
    pub(super) family: Family,
}

impl Program {
    /// Finds a program by its name, with or without `osu_`.
    pub(crate) fn find(registry: &Registry, name: &str) -> Result<Program> {
        let full = if name.starts_with("osu_") { name.to_owned() } else { format!("osu_{name}") };
        let mut all =
            registry.all().iter().flat_map(|bench| bench.osu_names().map(move |osu| (*bench, *osu)));
        let Some((bench, osu)) = all.find(|(_, osu)| osu.name == full) else {
            return Err(names::unknown(registry, name));
        };
        Ok(Program::new(bench, osu))
    }

    /// Returns the program of a benchmark that has this name.
    pub(super) fn new(bench: &'static Benchmark, osu: Osu) -> Program {
        let family = if bench.parameter("sync").is_some() {
            Family::OneSided
        } else if bench.name.starts_with(COLLECTIVE) {
            Family::Collective
        } else {
            Family::TwoSided
        };
        Program { osu, choice: Choice { bench, preset: osu.axes }, family }
    }

    pub(super) fn parameter(&self, name: &str) -> Option<&'static Parameter> {
        self.choice.bench.parameter(name)
    }

    /// Returns OMB 7.4's default of a parameter, if it differs from the benchmark's and the program's name does not choose a value.
    pub(super) fn default_of(&self, parameter: &Parameter) -> Option<&'static str> {
        let value = match (parameter.name, self.osu.name) {
            _ if self.osu.axes.iter().any(|(name, _)| *name == parameter.name) => return None,
            ("sync", "osu_put_bibw") => "pscw",
            ("sync", "osu_get_acc_latency") => "lock",
            ("win", "osu_get_acc_latency") => "create",
            ("sync", _) => "flush",
            ("buffers", _) => "single",
            // MPI_CHAR is no integer, which a swap needs.
            ("type", "osu_cas_latency") => return None,
            // What is moved are bytes.
            ("type", _) if parameter.default == Some(ElementType::Byte.name()) => return None,
            ("type", _) => "char",
            _ => return None,
        };
        parameter.names().iter().find(|known| **known == value).copied()
    }

    /// Returns OMB's smallest and largest message by default.
    pub(super) fn sizes(&self) -> (Bytes, Bytes) {
        (Bytes(1), if self.family == Family::Collective { LARGEST_COLLECTIVE } else { LARGEST })
    }

    /// Returns why OMB refuses this number of ranks, if it does. `pairs` tells whether the user asks for a number of pairs, which OMB
    /// knows in few programs.
    pub(super) fn refusal(&self, ranks: u32, pairs: Option<u32>) -> Option<String> {
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
                "This test requires {needed}, but {name} has {ranks}: start it with mpiexec -n 2. If you did, use the mpiexec of \
                 the MPI of this ombx, or its PMI with srun --mpi"
            )
        })
    }

    /// Returns the effort for small messages, and for those above a size.
    pub(super) fn effort(&self, iterations: Option<u64>, warmup: Option<u64>) -> (Effort, (Bytes, Effort)) {
        let fixed = |(timed, untimed)| Effort::Fixed {
            iterations: iterations.unwrap_or(timed),
            warmup: warmup.unwrap_or(untimed),
        };
        let (small, large) = match (self.family, self.choice.bench.described.metric) {
            // osu_bcast of OMB 3.x has as many at all sizes.
            _ if self.osu.name == ACKNOWLEDGED => ((1000, 100), (1000, 100)),
            (Family::Collective, _) => ((1000, 100), (100, 10)),
            (_, Metric::Bandwidth) => ((100, 10), (20, 2)),
            (_, Metric::Latency) => ((10_000, 100), (1000, 10)),
        };
        (fixed(small), (LARGE, fixed(large)))
    }
}
