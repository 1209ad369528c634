//! A kernel on several threads of a rank at the same time, each with its own state, stamps and part of the work.
//!
//! Threads are made while opening and end while closing. Each runs the engine's own loop; between rounds they sleep.

use std::{
    sync::{Arc, Barrier, mpsc},
    thread::{Builder, JoinHandle},
};

use crate::{
    benchmark::{
        case::Case,
        context::Context,
        figure::Figures,
        kernel::Kernel,
        payload::{Check, Fill},
    },
    error::{Error, Result},
    measure::{
        opened::OpenKernel,
        timed_loop::{answered, timed},
    },
    system::clock::Clock,
};

type Job<K> = Box<dyn FnOnce(&mut K) + Send>;

/// The threads of a rank.
struct Crew<K> {
    jobs: Vec<mpsc::Sender<Job<K>>>,
    threads: Vec<JoinHandle<K>>,
    /// Threads that each do all iterations, on the timed rank.
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
    // Opening is collective: every rank opens as many as the one with most threads.
    for thread in 0..threads.senders.max(threads.receivers) {
        let kernel = K::open(&Context { team: cx.team, thread, ..*cx }, case)?;
        if thread < mine {
            kernels.push(kernel);
        }
    }
    Ok(Box::new(cx.agree(Crew::start(kernels, threads.senders))?))
}

/// Of all messages, those that one of the receiving threads answers: together they answer each exactly once.
fn quota(messages: u64, receivers: u64, thread: u64) -> u64 {
    messages / receivers + u64::from(thread < messages % receivers)
}

fn gone<E>(_: E) -> Error {
    Error::fabric("a thread of this rank ended early")
}

impl<K: Kernel + Send + 'static> Crew<K> {
    fn start(kernels: Vec<K>, senders: u32) -> Result<Crew<K>> {
        let mut crew = Crew { jobs: Vec::new(), threads: Vec::new(), senders: u64::from(senders) };
        for mut kernel in kernels {
            let (give, jobs) = mpsc::channel::<Job<K>>();
            let work = move || {
                for job in jobs {
                    job(&mut kernel);
                }
                kernel
            };
            let refused = |e| Error::unsupported(format!("a thread could not be started: {e}"));
            crew.threads.push(Builder::new().name("ombx crew".into()).spawn(work).map_err(refused)?);
            crew.jobs.push(give);
        }
        Ok(crew)
    }

    /// Does `part` on every thread, with the thread's own argument; returns when all have done it, or with an error.
    fn each<A, R, P>(&self, arguments: impl IntoIterator<Item = A>, part: P) -> Result<Vec<R>>
    where
        A: Send + 'static,
        R: Send + 'static,
        P: Fn(&mut K, A) -> Result<R> + Clone + Send + 'static,
    {
        let (tell, told) = mpsc::channel();
        for ((thread, jobs), argument) in self.jobs.iter().enumerate().zip(arguments) {
            let (tell, part) = (tell.clone(), part.clone());
            let job: Job<K> = Box::new(move |kernel| {
                // Nobody listens after another thread's error, which ends the job.
                let _ = tell.send((thread, part(kernel, argument)));
            });
            jobs.send(job).map_err(gone)?;
        }
        drop(tell);
        let mut results = Vec::new();
        while results.len() < self.jobs.len() {
            let (thread, result) = told.recv().map_err(gone)?;
            results.push((thread, result?));
        }
        results.sort_by_key(|(thread, _)| *thread);
        Ok(results.into_iter().map(|(_, result)| result).collect())
    }

    fn all(&self, part: fn(&mut K) -> Result<()>) -> Result<()> {
        self.each(self.jobs.iter().map(|_| ()), move |kernel, ()| part(kernel)).map(|_| ())
    }
}

impl<K: Kernel + Send + 'static> OpenKernel for Crew<K> {
    fn clocks(&self) -> usize {
        self.jobs.len()
    }

    fn fill(&mut self, fill: Fill) -> Result<()> {
        self.each(self.jobs.iter().map(|_| fill), |kernel, fill| kernel.fill(fill)).map(|_| ())
    }

    fn begin(&mut self) -> Result<()> {
        self.all(K::begin)
    }

    fn timed(&mut self, clock: &Clock, batch: u64, stamps: &mut [Vec<u64>]) -> Result<()> {
        let together = Arc::new(Barrier::new(stamps.len()));
        let own =
            stamps.iter_mut().map(|stamps| (std::mem::take(stamps), clock.clone(), Arc::clone(&together)));
        let done = self.each(own, move |kernel, (mut stamps, clock, together)| {
            together.wait();
            timed(kernel, &clock, batch, &mut stamps).map(|()| stamps)
        })?;
        stamps.iter_mut().zip(done).for_each(|(stamps, done)| *stamps = done);
        Ok(())
    }

    fn answered(&mut self, batch: u64, samples: u64) -> Result<()> {
        let iterations = batch * samples;
        let (messages, receivers) = (iterations * self.senders, self.jobs.len() as u64);
        let shares = (0..receivers).map(|thread| quota(messages, receivers, thread));
        self.each(shares, |kernel, share| answered(kernel, share)).map(|_| ())
    }

    fn end(&mut self) -> Result<()> {
        self.all(K::end)
    }

    fn figures(&mut self) -> Result<Figures> {
        Ok(Figures::new())
    }

    fn check(&mut self, fill: Fill) -> Result<Check> {
        let found = self.each(self.jobs.iter().map(|_| fill), |kernel, fill| kernel.check(fill))?;
        Ok(found.into_iter().fold(Check::Passed, Check::and))
    }

    fn close(self: Box<Self>) -> Result<()> {
        drop(self.jobs);
        self.threads.into_iter().try_for_each(|thread| thread.join().map_err(gone)?.close())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_is_answered_once() {
        for (messages, receivers) in [(0, 2), (1, 2), (7, 3), (8, 4), (1000, 64)] {
            let shares: Vec<u64> = (0..receivers).map(|t| quota(messages, receivers, t)).collect();
            assert_eq!(shares.iter().sum::<u64>(), messages);
            assert!(shares.iter().max().unwrap() - shares.iter().min().unwrap() <= 1);
        }
    }
}
