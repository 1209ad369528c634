//! A thread pool that runs a kernel on several threads of a rank at the same time.
//!
//! Each thread has its own kernel and stamps and runs the timed loop. Threads start when a case is opened, sleep between rounds, and
//! end when it is closed.

use std::{
    collections::BTreeMap,
    sync::{Arc, Barrier, mpsc},
    thread::{Builder, JoinHandle},
};

use crate::{
    benchmark::{
        Case, Context, Figures, Kernel,
        payload::{Check, Fill},
    },
    error::{Error, Result},
    measure::{
        opened::OpenKernel,
        timed_loop::{answered, timed},
    },
    system::{clock::Clock, limits::start_error},
};

type Job<K> = Box<dyn FnOnce(&mut K) + Send>;

/// Threads of a rank, each with its own kernel.
struct ThreadPool<K> {
    jobs: Vec<mpsc::Sender<Job<K>>>,
    threads: Vec<JoinHandle<K>>,
    /// Threads on the timed rank; each runs all iterations.
    senders: u64,
}

/// Opens a kernel for every thread of this rank.
pub(crate) fn open<'k, K: Kernel + Send + 'static>(
    cx: &Context<'_>,
    case: &Case,
) -> Result<Box<dyn OpenKernel + 'k>> {
    let threads = case.threads.unwrap_or_default();
    let mine = threads.of(cx.role);
    let mut kernels = Vec::new();
    // Opening is collective, so every rank opens as many kernels as the rank with most threads.
    for thread in 0..threads.senders.max(threads.receivers) {
        let kernel = K::open(&Context { team: cx.team, thread, ..*cx }, case)?;
        if thread < mine {
            kernels.push(kernel);
        }
    }
    Ok(Box::new(cx.agree(ThreadPool::start(kernels, threads.senders))?))
}

/// Returns how many of all messages one receiving thread answers. All threads together answer each message once.
fn share_of(messages: u64, receivers: u64, thread: u64) -> u64 {
    messages / receivers + u64::from(thread < messages % receivers)
}

fn ended_early<E>(_: E) -> Error {
    Error::fabric("a thread of this rank ended early; its message is above")
}

impl<K: Kernel + Send + 'static> ThreadPool<K> {
    fn start(kernels: Vec<K>, senders: u32) -> Result<ThreadPool<K>> {
        let mut pool = ThreadPool { jobs: Vec::new(), threads: Vec::new(), senders: u64::from(senders) };
        for mut kernel in kernels {
            let (sender, jobs) = mpsc::channel::<Job<K>>();
            let work = move || {
                for job in jobs {
                    job(&mut kernel);
                }
                kernel
            };
            let refused = |e| Error::unsupported(format!("cannot start a thread: {}", start_error(&e)));
            pool.threads.push(Builder::new().name("ombx kernel".into()).spawn(work).map_err(refused)?);
            pool.jobs.push(sender);
        }
        Ok(pool)
    }

    /// Runs `part` on every thread with its own argument. Returns the results in the order of threads, or the first error.
    fn on_each<A, R, P>(&self, arguments: impl IntoIterator<Item = A>, part: P) -> Result<Vec<R>>
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
        drop(sender);
        let mut ordered = BTreeMap::new();
        while ordered.len() < self.jobs.len() {
            let (thread, result) = results.recv().map_err(ended_early)?;
            ordered.insert(thread, result?);
        }
        Ok(ordered.into_values().collect())
    }

    fn on_all(&self, part: fn(&mut K) -> Result<()>) -> Result<()> {
        self.on_each(self.jobs.iter().map(|_| ()), move |kernel, ()| part(kernel)).map(|_| ())
    }
}

impl<K: Kernel + Send + 'static> OpenKernel for ThreadPool<K> {
    fn clocks(&self) -> usize {
        self.jobs.len()
    }

    fn fill(&mut self, fill: Fill) -> Result<()> {
        self.on_each(self.jobs.iter().map(|_| fill), |kernel, fill| kernel.fill(fill)).map(|_| ())
    }

    fn begin(&mut self) -> Result<()> {
        self.on_all(K::begin)
    }

    fn timed(&mut self, clock: &Clock, batch: u64, stamps: &mut [Vec<u64>]) -> Result<()> {
        let together = Arc::new(Barrier::new(stamps.len()));
        let own =
            stamps.iter_mut().map(|stamps| (std::mem::take(stamps), clock.clone(), Arc::clone(&together)));
        let done = self.on_each(own, move |kernel, (mut stamps, clock, together)| {
            together.wait();
            timed(kernel, &clock, batch, &mut stamps).map(|()| stamps)
        })?;
        stamps.iter_mut().zip(done).for_each(|(stamps, done)| *stamps = done);
        Ok(())
    }

    fn answered(&mut self, batch: u64, samples: u64) -> Result<()> {
        let iterations = batch * samples;
        let (messages, receivers) = (iterations * self.senders, self.jobs.len() as u64);
        let shares = (0..receivers).map(|thread| share_of(messages, receivers, thread));
        self.on_each(shares, |kernel, share| answered(kernel, share)).map(|_| ())
    }

    fn end(&mut self) -> Result<()> {
        self.on_all(K::end)
    }

    fn figures(&mut self) -> Result<Figures> {
        Ok(Figures::new())
    }

    fn check(&mut self, fill: Fill) -> Result<Check> {
        let found = self.on_each(self.jobs.iter().map(|_| fill), |kernel, fill| kernel.check(fill))?;
        Ok(found.into_iter().fold(Check::Passed, Check::and))
    }

    fn close(self: Box<Self>) -> Result<()> {
        drop(self.jobs);
        self.threads.into_iter().try_for_each(|thread| thread.join().map_err(ended_early)?.close())
    }
}

#[cfg(test)]
mod tests {
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
