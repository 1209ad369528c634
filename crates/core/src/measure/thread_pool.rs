//! A thread pool that runs a kernel on several threads of a rank at the same time.
//!
//! Each thread has its own kernel and stamps and runs the timed loop. Threads start when a case is opened, sleep between rounds, and
//! end when it is closed.

use std::sync::{Arc, Barrier};

use crate::{
    benchmark::{
        Case, Context, Role, Threads,
        payload::{Check, Fill},
    },
    error::Result,
    measure::{
        engine::OpenLoops,
        opened::{Loops, OpenKernel, Steps},
        workers::Workers,
    },
    system::clock::Clock,
};

/// Threads of a rank, each with its own kernel.
struct ThreadPool {
    workers: Workers<Box<dyn Loops + Send>>,
    /// Threads on the timed rank; each runs all iterations.
    senders: u64,
}

/// Opens a kernel for every thread of this rank. All threads share the communicator of the team.
pub(crate) fn open<'k>(
    cx: &Context<'_>,
    case: &Case,
    open: OpenLoops<dyn Loops + Send>,
) -> Result<Box<dyn OpenKernel + 'k>> {
    let threads = case.get::<Threads>();
    let mine = threads.of(cx.role);
    let mut kernels = Vec::new();
    // Opening is collective, so every rank opens as many kernels as the rank with most threads.
    for thread in 0..threads.most() {
        let kernel = open(&Context { team: cx.team, thread, threads: mine, ..*cx }, case)?;
        if thread < mine {
            kernels.push(kernel);
        }
    }
    let workers = Workers::start(cx, kernels)?;
    Ok(Box::new(ThreadPool { workers, senders: threads.of(Role::Active).into() }))
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
