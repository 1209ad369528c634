//! The memory of one phase: its two buffers, the counters by which receivers and senders take turns, and what they note.

use std::{
    os::fd::{AsFd, OwnedFd},
    sync::atomic::{AtomicU32, Ordering::SeqCst},
};

use ombx_core::{
    error::{Error, Result},
    system::clock::host_ns,
};
use rustix::thread::futex;

use super::shape::{SLOTS, Shape};
use crate::shared::Shared;

/// A counter that processes wait on. A buffer is turned over many times; its counters count over all turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Counter {
    /// The run that senders and receivers may begin.
    Go,
    /// The run that the phase process may begin, if it has work in it.
    GoPhase,
    /// Blocks that have arrived in a buffer.
    Filled(u32),
    /// Blocks that have left a buffer.
    Drained(u32),
    /// Processes that are done with a run.
    Done,
}

/// What a process waits for, and what it notes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lack {
    /// Nothing has arrived yet.
    Data = 0,
    /// What is there has not left yet.
    Room = 1,
}

/// How to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waiting {
    /// In the kernel, until somebody wakes.
    Asleep,
    /// Looking again and again, and yielding the CPU now and then.
    Spinning,
}

/// Looks of a spinning process before it lets others run.
const SPINS: u32 = 1000;
/// Bytes between counters: each is on a cache line of its own.
const LINE: usize = 64;
/// From a counter to the number of those who sleep on it.
const SLEEPERS: usize = 4;
const COUNTERS: usize = 7;
/// A counter of a buffer that nobody fills or drains while it is timed: always further than anyone waits for.
pub(super) const AHEAD: u32 = u32::MAX;

/// The memory of a phase as one process sees it.
pub(super) struct Memory {
    shared: Shared,
    shape: Shape,
    waiting: Waiting,
}

impl Memory {
    /// Makes the memory of a phase.
    pub(super) fn create(shape: &Shape) -> Result<OwnedFd> {
        let length = header(shape) + SLOTS as usize * shape.nodes as usize * shape.stride();
        Shared::create("ombx-pipeline", length)
            .map_err(|e| Error::fabric(format!("{} MiB of shared memory: {e}", length >> 20)))
    }

    /// Looks at the memory of a phase.
    pub(super) fn map(fd: impl AsFd, shape: &Shape, waiting: Waiting) -> Result<Memory> {
        let shared = Shared::map(fd, header(shape))
            .map_err(|e| Error::fabric(format!("shared memory cannot be mapped: {e}")))?;
        Ok(Memory { shared, shape: *shape, waiting })
    }

    /// A block of one of the two buffers; for whom it is free to use, the counters say.
    pub(super) fn block(&mut self, slot: u32, block: u32) -> &mut [u8] {
        let index = (slot * self.shape.nodes + block) as usize;
        self.shared.bytes(index * self.shape.stride(), self.shape.block as usize)
    }

    /// Waits until a counter has reached `least`; returns how long that took, in nanoseconds, 0 if it did not have to wait.
    pub(super) fn wait(&self, counter: Counter, least: u32) -> u64 {
        let word = self.shared.word(counter.place());
        if word.load(SeqCst) >= least {
            return 0;
        }
        let since = host_ns();
        match self.waiting {
            Waiting::Asleep => self.sleep(counter, word, least),
            Waiting::Spinning => spin(word, least),
        }
        host_ns().saturating_sub(since)
    }

    fn sleep(&self, counter: Counter, word: &AtomicU32, least: u32) {
        let sleepers = self.shared.word(counter.place() + SLEEPERS);
        loop {
            // Counted before looking again: who advances the counter later sees that somebody must be woken.
            sleepers.fetch_add(1, SeqCst);
            let seen = word.load(SeqCst);
            if seen < least {
                // Interrupted, or changed meanwhile: the loop looks again.
                let _ = futex::wait(word, futex::Flags::empty(), seen, None);
            }
            sleepers.fetch_sub(1, SeqCst);
            if word.load(SeqCst) >= least {
                return;
            }
        }
    }

    /// Adds to a counter and wakes those who wait on it.
    pub(super) fn advance(&self, counter: Counter, by: u32) {
        self.shared.word(counter.place()).fetch_add(by, SeqCst);
        self.wake(counter);
    }

    /// Sets a counter and wakes those who wait on it.
    pub(super) fn set(&self, counter: Counter, to: u32) {
        self.shared.word(counter.place()).store(to, SeqCst);
        self.wake(counter);
    }

    fn wake(&self, counter: Counter) {
        if self.shared.word(counter.place() + SLEEPERS).load(SeqCst) > 0 {
            let _ = futex::wake(self.shared.word(counter.place()), futex::Flags::empty(), i32::MAX as u32);
        }
    }

    /// What a counter shows.
    pub(super) fn read(&self, counter: Counter) -> u32 {
        self.shared.word(counter.place()).load(SeqCst)
    }

    /// Begins anew; nobody must be at work.
    pub(super) fn reset(&self) {
        for slot in 0..SLOTS {
            self.set(Counter::Filled(slot), 0);
            self.set(Counter::Drained(slot), 0);
        }
        self.set(Counter::Done, 0);
        for at in (NOTES..header(&self.shape)).step_by(8) {
            self.shared.long(at).store(0, SeqCst);
        }
    }

    /// Notes how long one of the senders (0 to N - 1) or receivers (N to 2 N - 1) has waited in a run.
    pub(super) fn note_waits(&self, worker: u32, waits: Waits) {
        for lack in [Lack::Data, Lack::Room] {
            self.shared.long(waits_at(worker, lack)).store(waits.0[lack as usize], SeqCst);
        }
    }

    /// How long one of them has waited.
    pub(super) fn waits(&self, worker: u32) -> Waits {
        Waits([Lack::Data, Lack::Room].map(|lack| self.shared.long(waits_at(worker, lack)).load(SeqCst)))
    }

    /// Notes that a buffer begins to leave by, or has arrived with, the block of a worker of the first or the last phase.
    pub(super) fn stamp(&self, buffer: u32, block: u32) {
        self.shared.long(self.stamp_at(buffer, block)).store(host_ns(), SeqCst);
    }

    /// When the blocks of a buffer did so.
    pub(super) fn stamps(&self, buffer: u32) -> impl Iterator<Item = u64> {
        (0..self.shape.nodes).map(move |block| self.shared.long(self.stamp_at(buffer, block)).load(SeqCst))
    }

    fn stamp_at(&self, buffer: u32, block: u32) -> usize {
        stamps(&self.shape) + 8 * (buffer * self.shape.nodes + block) as usize
    }

    /// Notes the first wrong byte of a run.
    pub(super) fn note_wrong(&self, numbers: [u64; 4]) {
        for (at, number) in (WRONG..).step_by(8).zip([1].into_iter().chain(numbers)) {
            self.shared.long(at).store(number, SeqCst);
        }
    }

    /// The first wrong byte, if there was one.
    pub(super) fn wrong(&self) -> Option<[u64; 4]> {
        let read = |i: usize| self.shared.long(WRONG + 8 * i).load(SeqCst);
        (read(0) == 1).then(|| [1, 2, 3, 4].map(read))
    }
}

/// Nanoseconds for which a process waited, by what it lacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Waits(pub(super) [u64; 2]);

impl Waits {
    pub(super) fn of(self, lack: Lack) -> u64 {
        self.0[lack as usize]
    }

    pub(super) fn add(&mut self, lack: Lack, ns: u64) {
        self.0[lack as usize] += ns;
    }
}

impl Counter {
    fn place(self) -> usize {
        LINE * match self {
            Counter::Go => 0,
            Counter::GoPhase => 1,
            Counter::Done => 2,
            Counter::Filled(slot) => 3 + slot as usize,
            Counter::Drained(slot) => 5 + slot as usize,
        }
    }
}

fn spin(word: &AtomicU32, least: u32) {
    let mut looks = 0;
    while word.load(SeqCst) < least {
        looks = pause(looks);
    }
}

/// Between two looks of a spinning process: the looks so far, and one more.
pub(super) fn pause(looks: u32) -> u32 {
    if looks < SPINS {
        std::hint::spin_loop();
        looks + 1
    } else {
        std::thread::yield_now();
        0
    }
}

/// Behind the counters: the first wrong byte, what workers waited, and time stamps.
const NOTES: usize = COUNTERS * LINE;
const WRONG: usize = NOTES;
const WAITS: usize = NOTES + LINE;

fn waits_at(worker: u32, lack: Lack) -> usize {
    // A line for each worker, so that noting disturbs nobody.
    WAITS + worker as usize * LINE + 8 * lack as usize
}

fn stamps(shape: &Shape) -> usize {
    WAITS + 2 * shape.nodes as usize * LINE
}

fn header(shape: &Shape) -> usize {
    // To a page, so that blocks begin on one.
    (stamps(shape) + 8 * shape.buffers as usize * shape.nodes as usize).next_multiple_of(4096)
}

#[cfg(test)]
mod tests;
