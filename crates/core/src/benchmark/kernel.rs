//! The work of a benchmark on one rank, and where it runs: its team, role and peer. A kernel reads no clock, loops over no sizes and
//! prints nothing.

use std::{any::Any, cell::Cell, collections::BTreeMap, hint::black_box, time::Duration};

use ombx_host::{environment::hostname, limits::FreeMemory, since::Since};
use ombx_record::{
    error::{Error, Result},
    result::{BusTraffic, Check, ConnectionCounters, Figures, Metric, Work},
    unit::{Rank, parse_memory},
};
use serde::{Deserialize, Serialize};

use crate::{
    benchmark::{Case, CaseValues, Distance, Heading, Parameter, ParameterValue, Reader, payload::Fill},
    team::Team,
};

/// Work of a benchmark on one rank.
///
/// The engine calls these functions on every rank of a case, in this order: `open`, `fill`, `begin`, many times `active` or
/// `passive` according to the role, `end`, `figures`, `check`. It then repeats `fill` to `check` for single iterations, each
/// with a fresh pattern, and calls `close`. Only `active` is timed.
pub trait Kernel: Sized + 'static {
    /// Figure that is shown first.
    const METRIC: Metric;
    /// Description of the method, for the catalogue of benchmarks.
    const METHOD: Method;

    /// Returns whether the kernel supports a case; see [`run_either`](crate::measure::engine::run_either).
    fn supports(_case: &Case) -> bool {
        true
    }
    /// Returns the bytes, operations and legs of one iteration.
    fn work(case: &Case) -> Work;
    /// Returns what defines the algorithm and bus bandwidth; `None` if the operation has none.
    fn bus_traffic(_case: &Case) -> Option<BusTraffic> {
        None
    }
    /// Opens the kernel for a case. Collective, untimed.
    ///
    /// # Errors
    /// [`Error::unsupported`](ombx_record::error::Error::unsupported) on any rank skips the case on all ranks.
    fn open(cx: &Context<'_>, case: &Case) -> Result<Self>;
    /// Writes a pattern into send buffers and poisons receive buffers. Untimed.
    fn fill(&mut self, _fill: Fill) -> Result<()> {
        Ok(())
    }
    /// Opens what iterations need, for instance a lock. Untimed.
    fn begin(&mut self) -> Result<()> {
        Ok(())
    }
    /// Returns to where the iterations began, if they advance, as those of a pointer in a file do. Untimed, before each sample of a
    /// paced kernel, whose ranks are synchronised afterwards.
    fn rewind(&mut self) -> Result<()> {
        Ok(())
    }
    /// Runs one iteration on a timed rank.
    fn active(&mut self) -> Result<()>;
    /// Runs the same iteration on a rank that is not timed.
    fn passive(&mut self) -> Result<()> {
        Ok(())
    }
    /// Closes what `begin` opened. Untimed.
    fn end(&mut self) -> Result<()> {
        Ok(())
    }
    /// Compares what arrived with what `fill` wrote. A mismatch is a [`Check`], not an error. Untimed.
    fn check(&mut self, _fill: Fill) -> Result<Check> {
        Ok(Check::Unsupported)
    }
    /// Returns how many checked iterations show what one iteration may have wrong; a row counts its checked iterations divided by it.
    ///
    /// It is more than 1 where `check` sees a part of what an iteration delivers.
    fn iterations_per_check(_case: &Case) -> u64 {
        1
    }
    /// Returns figures of the iterations between `begin` and `end`, in addition to times. Collective, untimed; the row keeps
    /// those of rank 0.
    fn figures(&mut self) -> Result<Figures> {
        Ok(Figures::new())
    }
    /// Returns the kernel's counters of the connections on which this rank sends. Untimed, between rounds, on rank 0 only.
    fn connections(&mut self) -> Result<Option<ConnectionCounters>> {
        Ok(None)
    }
    /// Releases the kernel. Collective, untimed.
    fn close(self) -> Result<()> {
        Ok(())
    }
}

/// Declares functions of a trait that pass their calls on to the functions of the same names of a field.
#[macro_export]
macro_rules! forwards {
    ($field:tt: $($name:ident),+ -> $Output:ty) => {
        $(
            #[inline(always)]
            fn $name(&mut self) -> $Output {
                self.$field.$name()
            }
        )+
    };
    ($field:tt: $name:ident($argument:ident: $Type:ty) -> $Output:ty) => {
        #[inline(always)]
        fn $name(&mut self, $argument: $Type) -> $Output {
            self.$field.$name($argument)
        }
    };
}

/// Maximum memory of buffers. Every benchmark has it.
pub static MEMORY_LIMIT: Parameter = Parameter::read_by(
    "memory-limit",
    "BYTES",
    "Maximum memory for the buffers of a rank; rows that need more are skipped, for example: 512M \
     [default: the host's free memory]",
    Reader::List(|text| Ok(vec![parse_memory(text)?.0.to_string().into()])),
)
.under(Heading::General)
.kept_as("memory_limit");

/// What a kernel knows about the rank that it runs on.
pub struct Context<'a> {
    /// Ranks of this case; none is idle.
    pub team: &'a dyn Team,
    /// Role of this rank.
    pub role: Role,
    /// The other rank of the pair, or the parent in a fan; this rank itself if it has neither.
    pub peer: Rank,
    /// Children of this rank in a fan.
    pub children: &'a [Rank],
    /// Number of this thread in its rank, from 0.
    pub thread: u32,
    /// Threads of this rank that open a kernel each.
    pub threads: u32,
    /// Values of the case.
    pub values: &'a CaseValues,
}

impl<'a> Context<'a> {
    /// Returns the context of a timed rank without peer.
    pub fn new(team: &'a dyn Team) -> Context<'a> {
        let (role, peer) = (Role::Active, team.rank());
        let values = CaseValues::NONE;
        Context { team, role, peer, children: &[], thread: 0, threads: 1, values }
    }

    /// Returns this rank.
    pub fn rank(&self) -> Rank {
        self.team.rank()
    }

    /// Returns the ranks with which this rank exchanges messages: its peer, its children, or every other rank if it has neither.
    pub fn partners(&self) -> Vec<Rank> {
        if self.peer != self.rank() {
            vec![self.peer]
        } else if self.children.is_empty() {
            (0..self.team.size()).map(Rank).filter(|rank| *rank != self.rank()).collect()
        } else {
            self.children.to_vec()
        }
    }

    /// Returns the right and the left neighbour in a periodic chain of all ranks, at a [`Distance`]; in a pair, both are the peer.
    pub fn neighbours(&self) -> [Rank; 2] {
        let (rank, ranks) = (self.rank().0, self.team.size());
        let distance = match self.get() {
            Distance::Next => 1,
            Distance::Half => (ranks / 2).max(1),
        };
        if self.peer == self.rank() {
            [Rank((rank + distance) % ranks), Rank((rank + ranks - distance) % ranks)]
        } else {
            [self.peer; 2]
        }
    }

    /// Returns the value of a parameter; the default of its type if the case has none.
    pub fn get<V: ParameterValue>(&self) -> V {
        self.values.get()
    }

    /// Returns the team as the concrete type that a family needs.
    ///
    /// # Errors
    /// [`Error::unsupported`] if the team has another type.
    pub fn fabric<T: Team>(&self) -> Result<&'a T> {
        let any: &'a dyn Any = self.team;
        any.downcast_ref().ok_or_else(|| {
            Error::unsupported(format!("ranks over {} cannot run it", self.team.fabric().name))
        })
    }

    /// Checks that the buffers of a case, `mine` bytes of each thread, fit the memory limit and the memory of every host.
    ///
    /// Collective.
    ///
    /// # Errors
    /// [`Error::unsupported`] on every rank, with the rank or host that has too little.
    pub fn afford(&self, mine: u64) -> Result<()> {
        let mine = mine.saturating_mul(self.threads.into());
        if let Some(limit) = self.values.number(&MEMORY_LIMIT) {
            let allowed = if mine > limit {
                let rank = self.rank();
                Err(Error::unsupported(format!(
                    "needs {mine} bytes of buffers on rank {rank}, the memory limit is {limit}"
                )))
            } else {
                Ok(())
            };
            self.agree(allowed)?;
        }
        const UNKNOWN: FreeMemory = FreeMemory { bytes: u64::MAX, is_limited: false };
        let available = || FreeMemory::here().unwrap_or(UNKNOWN);
        let mut free = available();
        // All ranks may be on one host.
        if mine.saturating_mul(self.team.size().into()) > free.bytes {
            self.team.release_memory();
            free = available();
        }
        let need = Need { bytes: mine, free: free.bytes, is_limited: free.is_limited, host: hostname() };
        let needs = self.team.gather_messages(&need)?.unwrap_or_default();
        self.agree(check_hosts(needs))
    }

    /// Returns a local result if every rank has `Ok`, else an error on every rank. Collective.
    ///
    /// Kernels call it before a collective call that depends on the result.
    pub fn agree<T>(&self, mine: Result<T>) -> Result<T> {
        self.team.agree(mine)
    }
}

/// Memory that a rank needs, or all ranks of a host, and what its host has.
#[derive(Debug, Serialize, Deserialize)]
struct Need {
    bytes: u64,
    free: u64,
    /// Whether a control group leaves less than the host has.
    is_limited: bool,
    host: String,
}

/// Returns an error if the ranks of a host need more memory than it has.
fn check_hosts(needs: Vec<Need>) -> Result<()> {
    let mut hosts: BTreeMap<String, Need> = BTreeMap::new();
    for need in needs {
        match hosts.get_mut(&need.host) {
            Some(all) => {
                all.bytes = all.bytes.saturating_add(need.bytes);
                all.free = all.free.min(need.free);
                all.is_limited |= need.is_limited;
            }
            None => drop(hosts.insert(need.host.clone(), need)),
        }
    }
    match hosts.values().find(|need| need.bytes > need.free) {
        None => Ok(()),
        Some(Need { bytes, free, is_limited, host }) => {
            let mib = 1 << 20;
            let of = if *is_limited { " in its container or batch job" } else { "" };
            Err(Error::unsupported(format!(
                "needs {} MiB of buffers on {host}, which has {} MiB free{of}",
                bytes / mib,
                free / mib
            )))
        }
    }
}

/// Role of a rank in a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The rank is timed.
    Active,
    /// The rank answers.
    Passive,
}

/// Method of a kernel in three sentences, for the catalogue of benchmarks.
#[derive(Debug, Clone, Copy)]
pub struct Method {
    /// What happens between two readings of the clock.
    pub timed: &'static str,
    /// What is deliberately not timed.
    pub untimed: &'static str,
    /// Counterpart in OMB, IMB or LinkTest, and the differences.
    pub like: &'static str,
}

/// Work that a rank does while an operation is in flight.
pub trait Busy {
    /// Does the work once.
    fn run(&self);
}

/// Arithmetic steps that take a given time on this CPU.
#[derive(Debug, Clone)]
pub struct Compute {
    steps: u64,
    /// Result of the last run and input of the next, so that a CPU cannot overlap two runs.
    state: Cell<u64>,
}

/// Steps of one calibration pass. The fastest of five passes counts.
const PASS: u64 = 200_000;

impl Compute {
    /// Returns a computation that lasts `time`. Calibration takes a few milliseconds.
    pub fn lasting(time: Duration) -> Compute {
        let pass = Compute::new(PASS);
        let passes = (0..5).map(|_| {
            let since = Since::now();
            pass.run();
            since.elapsed()
        });
        Compute::new(steps_lasting(time, passes))
    }

    fn new(steps: u64) -> Compute {
        Compute { steps, state: Cell::new(1) }
    }
}

/// Returns the number of steps that last `time`, from the times of passes of [`PASS`] steps.
fn steps_lasting(time: Duration, passes: impl Iterator<Item = Duration>) -> u64 {
    let fastest = passes.min().unwrap_or_default().as_secs_f64().max(1e-9);
    (time.as_secs_f64() / fastest * PASS as f64).max(1.0) as u64
}

impl Busy for Compute {
    /// Runs all steps. Each depends on the one before, so that neither compiler nor CPU can skip or overlap steps.
    #[inline(never)]
    fn run(&self) {
        let mut x = black_box(self.state.get());
        for _ in 0..self.steps {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        }
        self.state.set(black_box(x));
    }
}

#[cfg(test)]
mod compute_tests {
    use super::*;

    #[test]
    fn the_fastest_pass_gives_the_number_of_steps() {
        let ms = Duration::from_millis;
        let steps = |time, passes: &[u64]| steps_lasting(time, passes.iter().copied().map(ms));
        assert_eq!([steps(ms(5), &[3, 1, 2]), steps(ms(1), &[2])], [5 * PASS, PASS / 2]);
        assert_eq!(steps(Duration::ZERO, &[1]), 1);
    }

    #[test]
    fn every_step_follows_from_the_one_before() {
        let state = |steps, runs| {
            let compute = Compute::new(steps);
            (0..runs).for_each(|_| compute.run());
            compute.state.get()
        };
        assert_eq!(state(1, 1), 6_364_136_223_846_793_005 + 1_442_695_040_888_963_407);
        assert_eq!(state(6, 1), state(2, 3));
        assert_ne!(state(6, 1), state(5, 1));
        assert!(Compute::lasting(Duration::from_millis(1)).steps > 1);
    }
}
