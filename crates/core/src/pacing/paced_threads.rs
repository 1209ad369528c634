//! Kernels on several threads of each rank: all threads of all ranks begin each sample together.
//!
//! Each thread has a kernel with buffers of its own. Thread 0 is the main thread and has the communicator of the team, which no other
//! thread uses; every other thread has a duplicate of it.

use std::sync::Arc;

use ombx_record::{
    error::{Error, Result},
    result::{BusTraffic, Check, ConnectionCounters, Figure, Figures, Work},
};
use rustix::thread::{CpuSet, sched_setaffinity};

use crate::{
    benchmark::{
        Benchmark, Case, Context, Kernel, MATCHED_THREADS, Method, Role, Threading, Threads, payload::Fill,
    },
    clock::Clock,
    measure::{
        collect::RoundSamples,
        open_kernel::{Loops, OpenKernel, OpenLoops, Steps, open_on_thread},
        row::{self, KernelFactory, KernelKind},
        session::Session,
        workers::Workers,
    },
    pacing::{
        mesh::{Rendezvous, Waiting},
        sample_pacer::Starters,
        start::Start,
    },
    team::Team,
};

/// Iterations of a sample.
pub trait SampleLength: 'static {
    /// Their number, if it is fixed.
    const ITERATIONS: Option<u64>;
}

/// As many as a sample of a millisecond needs, beside which the difference between the starts of threads is small.
pub enum Many {}

/// One iteration, for operations that must not follow one another without a synchronisation.
pub enum One {}

impl SampleLength for Many {
    const ITERATIONS: Option<u64> = None;
}

impl SampleLength for One {
    const ITERATIONS: Option<u64> = Some(1);
}

impl Benchmark {
    /// Returns an entry that runs a kernel on as many threads of each rank as the user chooses. Threads with the same number
    /// communicate, and all threads begin each sample together.
    ///
    /// The method describes what one thread does.
    #[track_caller]
    pub const fn matched_threads<K: Kernel + Send, S: SampleLength>(
        name: &'static str,
        about: &'static str,
        method: Method,
    ) -> Benchmark {
        let entry = Benchmark::custom(name, about, K::METRIC, method, run_matched::<K, S>);
        entry.needing(Threading::Multiple).with(&[MATCHED_THREADS])
    }
}

/// Runs a kernel in every case of a session. [`Benchmark::matched_threads`] registers this function.
pub fn run_matched<K: Kernel + Send, S: SampleLength>(session: &mut Session<'_>) -> Result<()> {
    let kind =
        KernelKind { work: work::<K>, bus_traffic: bus_traffic::<K>, ..const { KernelKind::new::<K>() } };
    run_threads(session, kind, S::ITERATIONS, open_on_thread::<K>, &|case| {
        ThreadGroup::polling(threads_of(case))
    })
}

/// The threads of each rank.
#[derive(Debug, Clone)]
pub struct ThreadGroup {
    /// Their number.
    pub threads: u32,
    /// CPUs on which each thread may run, taken in turn; empty: those of the thread that starts them.
    pub cpus: Vec<Vec<u32>>,
    /// How they wait for each other.
    pub waiting: Waiting,
    /// What each serves, as errors name it; `None`: errors name no thread.
    pub serves: Option<&'static str>,
}

impl ThreadGroup {
    fn polling(threads: u32) -> ThreadGroup {
        ThreadGroup { threads, cpus: Vec::new(), waiting: Waiting::Polling, serves: None }
    }

    /// Returns the error of a thread with what it serves, numbered from 1.
    fn name(&self, thread: u32, error: Error) -> Error {
        match self.serves {
            Some(serves) => error.within(format!("{serves} {} of {}", thread + 1, self.threads)),
            None => error,
        }
    }

    /// Binds the calling thread, number `thread`, to its CPUs.
    fn bind(&self, thread: u32) {
        if let Some(cpus) = self.cpus.get(thread as usize % self.cpus.len().max(1)) {
            let mut set = CpuSet::new();
            cpus.iter().for_each(|cpu| set.set(*cpu as usize));
            // If binding is not permitted, results show where the rank may run.
            let _ = sched_setaffinity(None, &set);
        }
    }
}

/// Runs a kernel in every case of a session on a group of threads, which begin each sample together. `open` opens the part of the
/// iteration that the thread of its context does; `kind` describes the whole iteration.
pub fn run_grouped(
    session: &mut Session<'_>,
    kind: KernelKind,
    group: &ThreadGroup,
    open: OpenLoops<dyn Loops + Send>,
) -> Result<()> {
    run_threads(session, kind, None, open, &|_| group.clone())
}

fn run_threads(
    session: &mut Session<'_>,
    kind: KernelKind,
    iterations: Option<u64>,
    open: OpenLoops<dyn Loops + Send>,
    group: &dyn Fn(&Case) -> ThreadGroup,
) -> Result<()> {
    let (team, clock) = (session.team, session.clock);
    let open = |cx: &Context<'_>, case: &Case| -> Result<Box<dyn OpenKernel + '_>> {
        Ok(Box::new(PacedThreads::open((team, clock, iterations), cx, case, open, group(case))?))
    };
    row::every_case(session, &KernelFactory::new(kind, &open))
}

fn threads_of(case: &Case) -> u32 {
    case.get::<Threads>().most()
}

/// Returns the work of all threads.
fn work<K: Kernel>(case: &Case) -> Work {
    let (Work { bytes, ops, legs }, threads) = (K::work(case), u64::from(threads_of(case)));
    Work { bytes: bytes.saturating_mul(threads), ops: ops * threads, legs }
}

/// Returns the bytes of all threads.
fn bus_traffic<K: Kernel>(case: &Case) -> Option<BusTraffic> {
    let BusTraffic { bytes, factor } = K::bus_traffic(case)?;
    Some(BusTraffic { bytes: bytes.saturating_mul(threads_of(case).into()), factor })
}

/// How a thread waits for the start of a sample: the threads of the rank meet, thread 0 meets those of the other ranks, and the threads
/// meet again.
struct Meeting<'t> {
    threads: &'t Rendezvous,
    /// All ranks, on thread 0.
    team: Option<&'t dyn Team>,
}

impl Start for Meeting<'_> {
    fn wait(&mut self, _: &Clock) -> Result<()> {
        self.threads.wait()?;
        self.team.map_or(Ok(()), |team| team.barrier())?;
        self.threads.wait()
    }
}

/// A round as each thread runs it.
#[derive(Clone)]
struct Round {
    clock: Clock,
    role: Role,
    batch: u64,
    samples: u64,
    threads: Arc<Rendezvous>,
}

impl Round {
    /// Runs the round of one thread. Returns the clock readings at the start and the end of each sample; none on a rank that answers.
    fn run(&self, kernel: &mut dyn Loops, team: Option<&dyn Team>) -> Result<Vec<u64>> {
        let member = self.threads.member();
        member.conclude(self.samples(kernel, Meeting { threads: &self.threads, team }))
    }

    fn samples(&self, kernel: &mut dyn Loops, mut start: Meeting<'_>) -> Result<Vec<u64>> {
        if self.role == Role::Active {
            // The pages of the stamps are touched before timing starts.
            let mut stamps = vec![u64::MAX; 2 * self.samples as usize];
            kernel.paced(&mut start, &self.clock, self.batch, &mut stamps)?;
            return Ok(stamps);
        }
        for _ in 0..self.samples {
            start.wait(&self.clock)?;
            kernel.answered(self.batch)?;
        }
        Ok(Vec::new())
    }
}

/// The threads of a rank.
struct PacedThreads<'t> {
    group: ThreadGroup,
    role: Role,
    clock: Clock,
    /// Iterations of a sample, if they are fixed.
    iterations_of_sample: Option<u64>,
    /// Kernel of thread 0.
    lead: Box<dyn Loops + Send>,
    /// Threads 1 and up.
    others: Workers<Box<dyn Loops + Send>>,
    /// Time of all samples of each timed thread in nanoseconds, and the iterations in them, since the warm-up.
    spent_ns: Vec<u64>,
    iterations: u64,
    several_pairs: bool,
    starters: Starters<'t>,
    /// Communicators of the other threads, which outlive the kernels.
    _teams: Vec<Box<dyn Team>>,
}

impl<'t> PacedThreads<'t> {
    /// Opens a kernel for every thread. Collective.
    fn open(
        (team, clock, iterations_of_sample): (&'t dyn Team, &Clock, Option<u64>),
        cx: &Context<'_>,
        case: &Case,
        open: OpenLoops<dyn Loops + Send>,
        group: ThreadGroup,
    ) -> Result<Self> {
        let threads = group.threads;
        let lead = cx.agree(open(&Context { threads, ..*cx }, case))?;
        // On an error, kernels are dropped before the communicators that they use.
        let mut teams: Vec<Box<dyn Team>> = Vec::new();
        let mut kernels = Vec::new();
        for thread in 1..threads {
            let missing = || Error::fabric("this rank is not in the team of all ranks");
            teams.push(team.subteam(team.size())?.ok_or_else(missing)?);
            let own = teams.last().map_or(team, |own| &**own);
            kernels.push(cx.agree(open(&Context { team: own, thread, threads, ..*cx }, case))?);
        }
        let others = Workers::start(cx, kernels)?;
        let bound = group.clone();
        others.on_each(1.., move |_, thread| {
            bound.bind(thread);
            Ok(())
        })?;
        Ok(PacedThreads {
            group,
            role: cx.role,
            clock: clock.clone(),
            iterations_of_sample,
            lead,
            others,
            spent_ns: Vec::new(),
            iterations: 0,
            several_pairs: case.pairs > 1,
            starters: Starters::open(team, clock, cx.role)?,
            _teams: teams,
        })
    }

    /// Runs `part` on every thread with its number.
    fn on_each<R: Send + 'static>(
        &mut self,
        part: impl Fn(&mut dyn Loops, u32) -> Result<R> + Clone + Send + 'static,
    ) -> Result<Vec<R>> {
        let own = part.clone();
        let others = self.others.begin(1.., move |kernel, thread| own(&mut **kernel, thread))?;
        let mut results = vec![part(&mut *self.lead, 0)?];
        results.extend(others.results()?);
        Ok(results)
    }

    /// Runs a round on every thread. Returns the clock readings of each.
    fn round(&mut self, batch: u64, samples: u64) -> Result<Vec<Vec<u64>>> {
        let threads = Arc::new(Rendezvous::new(1 + self.others.count(), self.group.waiting));
        let round = Round { clock: self.clock.clone(), role: self.role, batch, samples, threads };
        let rounds = (1..).zip(vec![(round.clone(), self.group.clone()); self.others.count()]);
        let others = self.others.begin(rounds, |kernel, (thread, (round, group))| {
            round.run(&mut **kernel, None).map_err(|error| group.name(thread, error))
        })?;
        let mine = round.run(&mut *self.lead, Some(self.starters.team));
        Ok([vec![mine.map_err(|error| self.group.name(0, error))?], others.results()?].concat())
    }
}

/// Returns the first start and the last end of each sample over the threads, as pairs.
fn envelope(threads: &[Vec<u64>], stamps: &mut [u64]) {
    for (at, [start, end]) in stamps.as_chunks_mut().0.iter_mut().enumerate() {
        let of =
            |offset: usize| threads.iter().filter_map(move |stamps| stamps.get(2 * at + offset)).copied();
        (*start, *end) = (of(0).min().unwrap_or(0), of(1).max().unwrap_or(0));
    }
}

impl Steps for PacedThreads<'_> {
    fn fill(&mut self, fill: Fill) -> Result<()> {
        self.on_each(move |kernel, thread| kernel.fill(fill.of_thread(thread))).map(|_| ())
    }

    fn begin(&mut self) -> Result<()> {
        self.on_each(|kernel, _| kernel.begin()).map(|_| ())
    }

    fn end(&mut self) -> Result<()> {
        self.on_each(|kernel, _| kernel.end()).map(|_| ())
    }

    /// Returns the least, the mean and the largest of the threads' mean times of an iteration, over all timed ranks.
    fn figures(&mut self) -> Result<Figures> {
        let mean_us = |ns: &u64| *ns as f64 / 1e3 / self.iterations.max(1) as f64;
        let mine: Vec<f64> = self.spent_ns.iter().map(mean_us).collect();
        let all: Option<Vec<Vec<f64>>> = self.starters.team.gather_messages(&mine)?;
        // A row has the figures of its timed rank, which is not rank 0 in the reverse direction.
        let means: Vec<f64> = self.starters.team.broadcast_message(all.unwrap_or_default().concat())?;
        let Some(least) = means.iter().copied().reduce(f64::min) else { return Ok(Figures::new()) };
        let largest = means.iter().copied().fold(least, f64::max);
        let mean = means.iter().sum::<f64>() / means.len() as f64;
        let times = [("thread_min_us", least), ("thread_mean_us", mean), ("thread_max_us", largest)];
        let times = times.map(|(name, us)| (name.to_owned(), Figure::Value(us)));
        let counted = Steps::connections(self)?.map(ConnectionCounters::figures).unwrap_or_default();
        Ok(counted.into_iter().chain(times).collect())
    }

    /// Returns the sums over the threads.
    fn connections(&mut self) -> Result<Option<ConnectionCounters>> {
        let counted = self.on_each(|kernel, _| kernel.connections())?;
        Ok(counted.into_iter().collect::<Option<Vec<_>>>().map(|all| all.into_iter().sum()))
    }

    fn check(&mut self, fill: Fill) -> Result<Check> {
        let found = self.on_each(move |kernel, thread| kernel.check(fill.of_thread(thread)))?;
        Ok(found.into_iter().fold(Check::Passed, Check::and))
    }
}

impl OpenKernel for PacedThreads<'_> {
    fn steps(&mut self) -> &mut dyn Steps {
        self
    }

    fn batch(&self) -> Option<u64> {
        self.iterations_of_sample
    }

    fn least_sample_ns(&mut self, clock: &Clock) -> Result<f64> {
        self.starters.least_sample_ns(clock)
    }

    fn readings(&self, samples: u64) -> u64 {
        2 * samples
    }

    fn warmed_up(&mut self, _: &Clock) -> Result<()> {
        self.spent_ns.clear();
        self.iterations = 0;
        Ok(())
    }

    fn timed(&mut self, clock: &Clock, batch: u64, stamps: &mut [Vec<u64>]) -> Result<()> {
        let Some(stamps) = stamps.first_mut() else { return Ok(()) };
        let samples = stamps.len() as u64 / 2;
        let threads = self.round(batch, samples)?;
        envelope(&threads, stamps);
        self.iterations += batch * samples;
        self.spent_ns.resize(threads.len(), 0);
        for (spent_ns, stamps) in self.spent_ns.iter_mut().zip(&threads) {
            let pairs = stamps.as_chunks().0.iter();
            *spent_ns += pairs.map(|[start, end]| clock.nanos(*start, *end)).sum::<u64>();
        }
        Ok(())
    }

    fn answered(&mut self, batch: u64, samples: u64) -> Result<()> {
        self.round(batch, samples).map(|_| ())
    }

    fn samples(&mut self, clock: &Clock, stamps: &[u64]) -> RoundSamples {
        let samples = self.starters.samples(clock, stamps);
        RoundSamples { starts: samples.starts.filter(|_| self.several_pairs), ..samples }
    }

    fn close(self: Box<Self>) -> Result<()> {
        let PacedThreads { lead, others, _teams: teams, .. } = *self;
        let others = others.join()?;
        lead.close()?;
        others.into_iter().try_for_each(|kernel| kernel.close())?;
        drop(teams);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
