//! Kernels on several threads of each rank: all threads of all ranks begin each sample together.
//!
//! Each thread has a kernel with buffers of its own. Thread 0 is the main thread and has the communicator of the team, which no other
//! thread uses; every other thread has a duplicate of it.

use std::{marker::PhantomData, sync::Arc};

use crate::{
    benchmark::{
        Benchmark, BusTraffic, Case, Context, Figure, Figures, Kernel, MATCHED_THREADS, Method, Role,
        Threading, Threads, Work,
        payload::{Check, Fill},
    },
    error::{Error, Result},
    measure::{
        collect::{RoundSamples, Starts},
        opened::OpenKernel,
        row::{self, KernelFactory},
        session::Session,
        timed_loop::{answered, paced},
        workers::Workers,
    },
    pacing::{
        pace::{Pace, Pacer},
        paced_pairs::Starters,
        rendezvous::Rendezvous,
    },
    system::clock::Clock,
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
    pub const fn matched_threads<K: Kernel + Send + 'static, S: SampleLength>(
        name: &'static str,
        about: &'static str,
        method: Method,
    ) -> Benchmark {
        let entry = Benchmark::custom(name, about, K::METRIC, method, run_matched::<K, S>);
        entry.needing(Threading::Multiple).with(&[MATCHED_THREADS])
    }
}

/// Runs a kernel in every case of a session. [`Benchmark::matched_threads`] registers this function.
pub fn run_matched<K: Kernel + Send + 'static, S: SampleLength>(session: &mut Session<'_>) -> Result<()> {
    let (team, clock) = (session.team, session.clock);
    let open = |cx: &Context<'_>, case: &Case| -> Result<Box<dyn OpenKernel + '_>> {
        Ok(Box::new(PacedThreads::<K, S>::open(team, clock, cx, case)?))
    };
    let factory =
        KernelFactory { work: work::<K>, bus_traffic: bus_traffic::<K>, ..KernelFactory::of::<K>(&open) };
    row::every_case(session, &factory)
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
enum Together {}

/// What thread 0 waits with.
struct Lead<'t> {
    team: &'t dyn Team,
    threads: &'t Rendezvous,
}

impl Pace<Lead<'_>> for Together {
    #[inline(always)]
    fn wait(pacer: &mut Pacer<Lead<'_>>, _: &Clock) -> Result<()> {
        pacer.mesh.threads.wait()?;
        pacer.mesh.team.barrier()?;
        pacer.mesh.threads.wait()
    }
}

impl Pace<&Rendezvous> for Together {
    #[inline(always)]
    fn wait(pacer: &mut Pacer<&Rendezvous>, _: &Clock) -> Result<()> {
        pacer.mesh.wait()?;
        pacer.mesh.wait()
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
    fn run<K: Kernel, M>(&self, kernel: &mut K, mesh: M) -> Result<Vec<u64>>
    where
        Together: Pace<M>,
    {
        let member = self.threads.member();
        member.conclude(self.samples(kernel, Pacer::with(mesh)))
    }

    fn samples<K: Kernel, M>(&self, kernel: &mut K, mut pacer: Pacer<M>) -> Result<Vec<u64>>
    where
        Together: Pace<M>,
    {
        if self.role == Role::Active {
            // The pages of the stamps are touched before timing starts.
            let mut stamps = vec![u64::MAX; 2 * self.samples as usize];
            paced::<K, Together, M>(kernel, &mut pacer, &self.clock, self.batch, &mut stamps)?;
            return Ok(stamps);
        }
        for _ in 0..self.samples {
            Together::wait(&mut pacer, &self.clock)?;
            answered(kernel, self.batch)?;
        }
        Ok(Vec::new())
    }
}

/// The threads of a rank.
struct PacedThreads<'t, K, S> {
    role: Role,
    clock: Clock,
    /// Kernel of thread 0.
    lead: K,
    /// Threads 1 and up.
    others: Workers<K>,
    /// Time of all samples of each timed thread in nanoseconds, and the iterations in them, since the warm-up.
    spent_ns: Vec<u64>,
    iterations: u64,
    several_pairs: bool,
    starters: Starters<'t>,
    /// Communicators of the other threads, which outlive the kernels.
    _teams: Vec<Box<dyn Team>>,
    length: PhantomData<fn() -> S>,
}

impl<'t, K: Kernel + Send + 'static, S: SampleLength> PacedThreads<'t, K, S> {
    /// Opens a kernel for every thread. Collective.
    fn open(team: &'t dyn Team, clock: &Clock, cx: &Context<'_>, case: &Case) -> Result<Self> {
        let threads = threads_of(case);
        let lead = cx.agree(K::open(&Context { threads, ..*cx }, case))?;
        // On an error, kernels are dropped before the communicators that they use.
        let mut teams: Vec<Box<dyn Team>> = Vec::new();
        let mut kernels = Vec::new();
        for thread in 1..threads {
            let missing = || Error::fabric("this rank is not in the team of all ranks");
            teams.push(team.subteam(team.size())?.ok_or_else(missing)?);
            let own = teams.last().map_or(team, |own| &**own);
            kernels.push(cx.agree(K::open(&Context { team: own, thread, threads, ..*cx }, case))?);
        }
        Ok(PacedThreads {
            role: cx.role,
            clock: clock.clone(),
            lead,
            others: Workers::start(cx, kernels)?,
            spent_ns: Vec::new(),
            iterations: 0,
            several_pairs: case.pairs > 1,
            starters: Starters::open(team, clock, cx.role)?,
            _teams: teams,
            length: PhantomData,
        })
    }

    /// Runs `part` on every thread with its number.
    fn on_each<R: Send + 'static>(
        &mut self,
        part: impl Fn(&mut K, u32) -> Result<R> + Clone + Send + 'static,
    ) -> Result<Vec<R>> {
        let others = self.others.begin(1.., part.clone())?;
        let mut results = vec![part(&mut self.lead, 0)?];
        results.extend(others.results()?);
        Ok(results)
    }

    /// Runs a round on every thread. Returns the clock readings of each.
    fn round(&mut self, batch: u64, samples: u64) -> Result<Vec<Vec<u64>>> {
        let threads = Arc::new(Rendezvous::of(1 + self.others.count()));
        let round = Round { clock: self.clock.clone(), role: self.role, batch, samples, threads };
        let rounds = vec![round.clone(); self.others.count()];
        let others = self.others.begin(rounds, |kernel, round| {
            let threads = Arc::clone(&round.threads);
            round.run(kernel, &*threads)
        })?;
        let mine = round.run(&mut self.lead, Lead { team: self.starters.team, threads: &round.threads });
        Ok([vec![mine?], others.results()?].concat())
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

impl<K: Kernel + Send + 'static, S: SampleLength> OpenKernel for PacedThreads<'_, K, S> {
    fn clocks(&self) -> usize {
        1
    }

    fn batch(&self) -> Option<u64> {
        S::ITERATIONS
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

    fn fill(&mut self, fill: Fill) -> Result<()> {
        self.on_each(move |kernel, thread| kernel.fill(fill.of_thread(thread))).map(|_| ())
    }

    fn begin(&mut self) -> Result<()> {
        self.on_each(|kernel, _| kernel.begin()).map(|_| ())
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
        let (elapsed_ns, ticks) =
            stamps.as_chunks().0.iter().map(|[start, end]| (clock.nanos(*start, *end), *start)).unzip();
        let clock_owner = self.starters.clock_owner;
        let starts = self.several_pairs.then_some(Starts { clock_owner, ticks });
        RoundSamples { elapsed_ns, starts, ..RoundSamples::default() }
    }

    fn end(&mut self) -> Result<()> {
        self.on_each(|kernel, _| kernel.end()).map(|_| ())
    }

    /// Returns the least, the mean and the largest of the threads' mean times of an iteration, over all timed ranks.
    fn figures(&mut self) -> Result<Figures> {
        let mean_us = |ns: &u64| *ns as f64 / 1e3 / self.iterations.max(1) as f64;
        let mine: Vec<u8> = self.spent_ns.iter().map(mean_us).flat_map(f64::to_le_bytes).collect();
        let all = self.starters.team.gather(&mine)?.unwrap_or_default();
        let means: Vec<f64> =
            all.iter().flat_map(|bytes| bytes.as_chunks().0).map(|word| f64::from_le_bytes(*word)).collect();
        let Some(least) = means.iter().copied().reduce(f64::min) else { return Ok(Figures::new()) };
        let largest = means.iter().copied().fold(least, f64::max);
        let mean = means.iter().sum::<f64>() / means.len() as f64;
        let figures = [("thread_min_us", least), ("thread_mean_us", mean), ("thread_max_us", largest)];
        Ok(figures.map(|(name, us)| (name.to_owned(), Figure::Value(us))).into())
    }

    fn check(&mut self, fill: Fill) -> Result<Check> {
        let found = self.on_each(move |kernel, thread| kernel.check(fill.of_thread(thread)))?;
        Ok(found.into_iter().fold(Check::Passed, Check::and))
    }

    fn close(self: Box<Self>) -> Result<()> {
        let PacedThreads { lead, others, _teams: teams, .. } = *self;
        let others = others.join()?;
        lead.close()?;
        others.into_iter().try_for_each(K::close)?;
        drop(teams);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
