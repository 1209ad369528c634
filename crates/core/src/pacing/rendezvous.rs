//! A barrier of the threads of one rank.

use std::{
    hint, iter,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
};

use crate::error::{Error, Result};

/// Tests of the barrier between two offers of the CPU to other threads, which matter if threads share a CPU.
const TESTS: usize = 1000;

/// A barrier that threads poll, because a thread that the system must wake starts late.
#[derive(Debug)]
pub(crate) struct Rendezvous {
    threads: usize,
    arrived: AtomicUsize,
    /// How often all threads have met.
    meetings: AtomicUsize,
    /// Whether a thread has failed, for which the others must not wait.
    failed: AtomicBool,
}

impl Rendezvous {
    /// Returns the barrier of this many threads.
    pub(crate) fn of(threads: usize) -> Rendezvous {
        let (arrived, meetings) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Rendezvous { threads, arrived, meetings, failed: AtomicBool::new(false) }
    }

    /// Waits for all threads.
    ///
    /// # Errors
    /// Another thread has failed; its error says why.
    pub(crate) fn wait(&self) -> Result<()> {
        let before = self.meetings.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            self.arrived.store(0, Ordering::Relaxed);
            self.meetings.fetch_add(1, Ordering::Release);
            return Ok(());
        }
        for test in iter::successors(Some(1usize), |test| Some(test.wrapping_add(1))) {
            if self.meetings.load(Ordering::Acquire) != before {
                break;
            }
            if self.failed.load(Ordering::Relaxed) {
                return Err(Error::fabric("another thread of this rank failed"));
            }
            if test.is_multiple_of(TESTS) { thread::yield_now() } else { hint::spin_loop() }
        }
        Ok(())
    }

    /// Returns what releases the other threads if this one fails.
    pub(crate) fn member(&self) -> Member<'_> {
        Member(self)
    }
}

/// A thread that others wait for. After its panic they do not wait.
pub(crate) struct Member<'r>(&'r Rendezvous);

impl Member<'_> {
    /// Returns the result of the thread, or its error if it is the first that failed: the others fail because of it.
    pub(crate) fn conclude<T: Default>(self, done: Result<T>) -> Result<T> {
        let is_first = done.is_err() && !self.0.failed.swap(true, Ordering::Relaxed);
        std::mem::forget(self);
        if is_first { done } else { Ok(done.unwrap_or_default()) }
    }
}

impl Drop for Member<'_> {
    fn drop(&mut self) {
        self.0.failed.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_leaves_before_all_have_come() {
        let (rendezvous, inside) = (Rendezvous::of(3), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for round in 1..=200 {
                        inside.fetch_add(1, Ordering::SeqCst);
                        rendezvous.wait().unwrap();
                        assert_eq!(inside.load(Ordering::SeqCst), 3 * round);
                        rendezvous.wait().unwrap();
                    }
                });
            }
        });
    }

    #[test]
    fn nobody_waits_for_a_thread_that_failed() {
        let rendezvous = Rendezvous::of(2);
        assert_eq!(rendezvous.member().conclude(Ok(3)).unwrap(), 3);
        thread::scope(|scope| {
            let waits = scope.spawn(|| rendezvous.member().conclude(rendezvous.wait().map(|()| 3)));
            let failed = rendezvous.member().conclude::<u32>(Err(Error::fabric("no buffer")));
            assert!(failed.unwrap_err().to_string().contains("no buffer"));
            assert_eq!(waits.join().unwrap().unwrap(), 0);
        });
        assert!(Rendezvous::of(1).wait().is_ok());
    }
}
