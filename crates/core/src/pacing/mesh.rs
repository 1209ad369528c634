//! Messages between any two ranks of a case, which pacing and clock synchronisation need.

use std::{
    hint, iter,
    sync::{
        Condvar, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
};

use ombx_host::environment;
use ombx_record::{
    error::{Error, Result},
    unit::Rank,
};

use crate::{benchmark::Context, clock::Clock};

/// One rank's endpoint for small messages to and from every other rank of a case. No method allocates after `open`.
pub trait Mesh: Sized + 'static {
    /// Opens the endpoint of this rank. Collective, untimed.
    fn open(cx: &Context<'_>) -> Result<Self>;
    /// Enters the barrier of the library.
    fn barrier(&mut self) -> Result<()>;
    /// Sends an empty message to one rank and receives one from another, in any order.
    fn pass(&mut self, to: Rank, from: Rank) -> Result<()>;
    /// Sends a message to one rank; `bytes` may be empty.
    fn send(&mut self, to: Rank, bytes: &[u8]) -> Result<()>;
    /// Receives a message of exactly `bytes.len()` bytes from one rank.
    fn receive(&mut self, from: Rank, bytes: &mut [u8]) -> Result<()>;

    /// Spins for a moment while a rank waits for a time that is `ticks` ticks away.
    #[inline(always)]
    fn linger(&mut self, _ticks: u64) {
        std::hint::spin_loop();
    }

    /// Describes the message of an operation that consists of this mesh's messages, for programs that repeat its calls. Untimed.
    fn describe(&self, _cx: &Context<'_>, _message: &mut [u8]) {}

    /// Returns a name of the clock that this rank reads. Ranks with equal names read the same clock.
    fn clock_name(&self, clock: &Clock) -> String {
        clock_name(clock)
    }
}

/// Returns the name of the clock of this process. Processes of one host that read the same source have one clock.
pub(crate) fn clock_name(clock: &Clock) -> String {
    format!("{}/{}", environment::boot_id(), clock.facts().source)
}

/// Tests of the barrier between two offers of the CPU to other threads, which matter if threads share a CPU.
const TESTS: usize = 1000;

/// How the threads of a rank wait for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiting {
    /// They poll, because a thread that the system must wake starts late.
    Polling,
    /// They sleep and leave the CPU to threads that are not done.
    Asleep,
}

/// A barrier of threads.
#[derive(Debug)]
pub(crate) struct Rendezvous {
    threads: usize,
    waiting: Waiting,
    arrived: AtomicUsize,
    /// How often all threads have met.
    meetings: AtomicUsize,
    /// Whether a thread has failed, for which the others must not wait.
    failed: AtomicBool,
    /// Held by sleeping threads while they look, so that none misses `woken`.
    looking: Mutex<()>,
    woken: Condvar,
}

impl Rendezvous {
    /// Returns the barrier of this many threads.
    pub(crate) fn new(threads: usize, waiting: Waiting) -> Rendezvous {
        Rendezvous {
            threads,
            waiting,
            arrived: AtomicUsize::new(0),
            meetings: AtomicUsize::new(0),
            failed: AtomicBool::new(false),
            looking: Mutex::new(()),
            woken: Condvar::new(),
        }
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
            self.wake();
            return Ok(());
        }
        match self.waiting {
            Waiting::Polling => self.poll(before),
            Waiting::Asleep => self.sleep(before),
        }
        if self.meetings.load(Ordering::Acquire) == before {
            return Err(Error::fabric("another thread of this rank failed"));
        }
        Ok(())
    }

    /// Returns whether nobody has failed and the threads have not met since `before`.
    fn waits(&self, before: usize) -> bool {
        self.meetings.load(Ordering::Acquire) == before && !self.failed.load(Ordering::Acquire)
    }

    fn poll(&self, before: usize) {
        for test in iter::successors(Some(1usize), |test| Some(test.wrapping_add(1))) {
            if !self.waits(before) {
                return;
            }
            if test.is_multiple_of(TESTS) { thread::yield_now() } else { hint::spin_loop() }
        }
    }

    fn sleep(&self, before: usize) {
        let looking = self.looking.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.woken.wait_while(looking, |()| self.waits(before)));
    }

    fn wake(&self) {
        if self.waiting == Waiting::Asleep {
            drop(self.looking.lock());
            self.woken.notify_all();
        }
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
        let is_first = done.is_err() && !self.fail();
        std::mem::forget(self);
        if is_first { done } else { Ok(done.unwrap_or_default()) }
    }

    /// Releases the others. Returns whether a thread had failed before.
    fn fail(&self) -> bool {
        let before = self.0.failed.swap(true, Ordering::AcqRel);
        self.0.wake();
        before
    }
}

impl Drop for Member<'_> {
    fn drop(&mut self) {
        self.fail();
    }
}

#[cfg(test)]
mod rendezvous_tests {
    use super::*;

    #[test]
    fn nobody_leaves_before_all_have_come() {
        for waiting in [Waiting::Polling, Waiting::Asleep] {
            let (rendezvous, inside) = (Rendezvous::new(3, waiting), AtomicUsize::new(0));
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
    }

    #[test]
    fn nobody_waits_for_a_thread_that_failed() {
        for waiting in [Waiting::Polling, Waiting::Asleep] {
            let rendezvous = Rendezvous::new(2, waiting);
            assert_eq!(rendezvous.member().conclude(Ok(3)).unwrap(), 3);
            thread::scope(|scope| {
                let waits = scope.spawn(|| rendezvous.member().conclude(rendezvous.wait().map(|()| 3)));
                let failed = rendezvous.member().conclude::<u32>(Err(Error::fabric("no buffer")));
                assert!(failed.unwrap_err().to_string().contains("no buffer"));
                assert_eq!(waits.join().unwrap().unwrap(), 0);
            });
            assert!(Rendezvous::new(1, waiting).wait().is_ok());
        }
    }
}
