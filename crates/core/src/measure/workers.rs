//! Worker threads of a rank: each owns a kernel, sleeps between jobs and runs those it is sent.

use std::{
    collections::BTreeMap,
    sync::{Arc, Barrier, mpsc},
    thread::{Builder, JoinHandle},
};

use ombx_host::limits::start_error;
use ombx_record::{
    error::{Error, Result},
    result::Check,
};

use crate::{
    benchmark::{Case, Context, Role, Threads, payload::Fill},
    clock::Clock,
    measure::open_kernel::{Loops, OpenKernel, OpenLoops, Steps},
};

type Job<K> = Box<dyn FnOnce(&mut K) + Send>;

/// Threads, each with its own kernel.
pub(crate) struct Workers<K> {
    jobs: Vec<mpsc::Sender<Job<K>>>,
    threads: Vec<JoinHandle<K>>,
}

/// A job that all workers run.
#[must_use]
pub(crate) struct Running<R> {
    workers: usize,
    results: mpsc::Receiver<(usize, Result<R>)>,
}

fn ended_early<E>(_: E) -> Error {
    Error::fabric("a thread of this rank ended early; its message is above")
}

impl<K: Send + 'static> Workers<K> {
    /// Starts a thread for each kernel. Collective.
    ///
    /// # Errors
    /// The system of a rank allows no more threads. No thread of any rank is left.
    pub(crate) fn start(cx: &Context<'_>, kernels: Vec<K>) -> Result<Workers<K>> {
        let mut workers = Workers { jobs: Vec::new(), threads: Vec::new() };
        let started = kernels.into_iter().try_for_each(|kernel| workers.add(kernel));
        match cx.agree(started) {
            Ok(()) => Ok(workers),
            Err(why) => {
                // The kernels use communicators that the caller frees.
                drop(workers.join());
                Err(why)
            }
        }
    }

    fn add(&mut self, mut kernel: K) -> Result<()> {
        let (sender, jobs) = mpsc::channel::<Job<K>>();
        let work = move || {
            for job in jobs {
                job(&mut kernel);
            }
            kernel
        };
        let refused = |e| Error::unsupported(format!("cannot start a thread: {}", start_error(&e)));
        self.threads.push(Builder::new().name("ombx kernel".into()).spawn(work).map_err(refused)?);
        self.jobs.push(sender);
        Ok(())
    }

    /// Returns the number of threads.
    pub(crate) fn count(&self) -> usize {
        self.jobs.len()
    }

    /// Starts `part` on every thread with its own argument.
    pub(crate) fn begin<A, R, P>(&self, arguments: impl IntoIterator<Item = A>, part: P) -> Result<Running<R>>
    where
        A: Send + 'static,
        R: Send + 'static,
        P: Fn(&mut K, A) -> Result<R> + Clone + Send + 'static,
    {
        let (sender, results) = mpsc::channel();
        for ((thread, jobs), argument) in self.jobs.iter().enumerate().zip(arguments) {
            let (sender, part) = (sender.clone(), part.clone());
            let job: Job<K> = Box::new(move |kernel| {
                // The receiver is gone after an error of another thread, which ends the job.
                let _ = sender.send((thread, part(kernel, argument)));
            });
            jobs.send(job).map_err(ended_early)?;
        }
        Ok(Running { workers: self.jobs.len(), results })
    }

    /// Runs `part` on every thread with its own argument. Returns the results in the order of threads, or the first error.
    pub(crate) fn on_each<A, R, P>(&self, arguments: impl IntoIterator<Item = A>, part: P) -> Result<Vec<R>>
    where
        A: Send + 'static,
        R: Send + 'static,
        P: Fn(&mut K, A) -> Result<R> + Clone + Send + 'static,
    {
        self.begin(arguments, part)?.results()
    }

    /// Ends the threads and returns their kernels.
    pub(crate) fn join(self) -> Result<Vec<K>> {
        drop(self.jobs);
        self.threads.into_iter().map(|thread| thread.join().map_err(ended_early)).collect()
    }
}

impl<R> Running<R> {
    /// Waits for all threads. Returns the results in their order, or the first error.
    pub(crate) fn results(self) -> Result<Vec<R>> {
        let mut ordered = BTreeMap::new();
        while ordered.len() < self.workers {
            let (thread, result) = self.results.recv().map_err(ended_early)?;
            ordered.insert(thread, result?);
        }
        Ok(ordered.into_values().collect())
    }
}

/// Threads of a rank, each with its own kernel.
struct ThreadPool {
    workers: Workers<Box<dyn Loops + Send>>,
    /// Threads on the timed rank; each runs all iterations.
    senders: u64,
}

/// Opens a kernel for every thread of this rank. All threads share the communicator of the team.
pub(crate) fn open_pool<'k>(
    cx: &Context<'_>,
    case: &Case,
    open: OpenLoops<dyn Loops + Send>,
) -> Result<Box<dyn OpenKernel + 'k>> {
    let threads = case.get::<Threads>();
    let mine = threads.count(cx.role);
    let mut kernels = Vec::new();
    // Opening is collective, so every rank opens as many kernels as the rank with most threads.
    for thread in 0..threads.most() {
        let kernel = open(&Context { team: cx.team, thread, threads: mine, ..*cx }, case)?;
        if thread < mine {
            kernels.push(kernel);
        }
    }
    let workers = Workers::start(cx, kernels)?;
    Ok(Box::new(ThreadPool { workers, senders: threads.count(Role::Active).into() }))
}

/// Returns how many of all messages one receiving thread answers. All threads together answer each message once.
fn share_of(messages: u64, receivers: u64, thread: u64) -> u64 {
    messages / receivers + u64::from(thread < messages % receivers)
}

impl ThreadPool {
    /// Calls `part` on every thread.
    fn on_all<R: Send + 'static>(
        &self,
        part: impl Fn(&mut dyn Loops) -> Result<R> + Clone + Send + 'static,
    ) -> Result<Vec<R>> {
        self.workers.on_each(vec![(); self.workers.count()], move |kernel, ()| part(&mut **kernel))
    }
}

/// The steps run on every thread.
impl Steps for ThreadPool {
    fn fill(&mut self, fill: Fill) -> Result<()> {
        self.on_all(move |kernel| kernel.fill(fill)).map(|_| ())
    }

    fn begin(&mut self) -> Result<()> {
        self.on_all(|kernel| kernel.begin()).map(|_| ())
    }

    fn end(&mut self) -> Result<()> {
        self.on_all(|kernel| kernel.end()).map(|_| ())
    }

    fn check(&mut self, fill: Fill) -> Result<Check> {
        let found = self.on_all(move |kernel| kernel.check(fill))?;
        Ok(found.into_iter().fold(Check::Passed, Check::and))
    }
}

impl OpenKernel for ThreadPool {
    fn steps(&mut self) -> &mut dyn Steps {
        self
    }

    fn clocks(&self) -> usize {
        self.workers.count()
    }

    fn timed(&mut self, clock: &Clock, batch: u64, stamps: &mut [Vec<u64>]) -> Result<()> {
        let together = Arc::new(Barrier::new(stamps.len()));
        let own =
            stamps.iter_mut().map(|stamps| (std::mem::take(stamps), clock.clone(), Arc::clone(&together)));
        let done = self.workers.on_each(own, move |kernel, (mut stamps, clock, together)| {
            together.wait();
            kernel.timed(&clock, batch, &mut stamps).map(|()| stamps)
        })?;
        stamps.iter_mut().zip(done).for_each(|(stamps, done)| *stamps = done);
        Ok(())
    }

    fn answered(&mut self, batch: u64, samples: u64) -> Result<()> {
        let iterations = batch * samples;
        let (messages, receivers) = (iterations * self.senders, self.workers.count() as u64);
        let shares = (0..receivers).map(|thread| share_of(messages, receivers, thread));
        self.workers.on_each(shares, |kernel, share| kernel.answered(share)).map(|_| ())
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.workers.join()?.into_iter().try_for_each(|kernel| kernel.close())
    }
}

#[cfg(test)]
mod thread_pool_tests {
    use super::*;

    #[test]
    fn every_message_is_answered_once() {
        for (messages, receivers) in [(0, 2), (1, 2), (7, 3), (8, 4), (1000, 64)] {
            let shares: Vec<u64> = (0..receivers).map(|t| share_of(messages, receivers, t)).collect();
            assert_eq!(shares.iter().sum::<u64>(), messages);
            assert!(shares.iter().max().unwrap() - shares.iter().min().unwrap() <= 1);
        }
    }
}
