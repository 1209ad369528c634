//! The shared memory of one phase: two buffers, the counters by which receivers and senders take turns, and records of a run.

use std::{
    os::fd::{AsFd, OwnedFd},
    sync::atomic::{AtomicU32, Ordering::SeqCst},
    time::Duration,
};

use ombx_core::{
    clock::host_ns,
    error::{Error, Result},
};
use rustix::thread::futex;
use serde::{Deserialize, Serialize};

use super::{run::Wrong, shared_memory::SharedMemory};
use crate::{
    pipeline::shape::{PipelineShape, SLOTS},
    socket::{Deadline, timespec},
};

/// A counter that processes wait for. The counters of a buffer count over all its uses in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Counter {
    /// Number of the run that senders and receivers may start.
    Start,
    /// The run that the process of the phase may start, if it has work in it (see `phase::start_value`).
    StartPhase,
    /// Number of blocks that have arrived in a buffer.
    Filled(u32),
    /// Number of blocks that have left a buffer.
    Drained(u32),
    /// Number of processes that are done with a run.
    Done,
}

/// What a process waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lack {
    /// A block to arrive.
    Data = 0,
    /// A block to leave.
    Space = 1,
}

/// How a process waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum WaitMode {
    /// Sleeps in the kernel.
    Sleep,
    /// Polls, and yields the CPU after every thousand polls.
    Spin,
}

/// Polls of a spinning process before it yields the CPU.
const POLLS_PER_YIELD: u32 = 1000;
/// Bytes between counters: each has its own cache line.
const LINE: usize = 64;
/// Bytes from a counter to the number of processes that sleep on it.
const SLEEPERS: usize = 4;
const COUNTERS: usize = 7;
/// Value of a counter of a buffer that no process fills or drains in timed runs. No process waits for it.
pub(super) const AHEAD: u32 = u32::MAX;

/// The memory of a phase, mapped into one process.
pub(super) struct PhaseMemory {
    shared: SharedMemory,
    shape: PipelineShape,
    wait_mode: WaitMode,
}

impl PhaseMemory {
    /// Allocates the memory of a phase.
    pub(super) fn create(shape: &PipelineShape) -> Result<OwnedFd> {
        let length = header(shape) + (SLOTS as usize * shape.nodes as usize + 1) * shape.stride();
        SharedMemory::create("ombx-pipeline", length)
            .map_err(|e| Error::fabric(format!("cannot allocate {} MiB of shared memory: {e}", length >> 20)))
    }

    /// Maps the memory of a phase.
    pub(super) fn map(fd: impl AsFd, shape: &PipelineShape, wait_mode: WaitMode) -> Result<PhaseMemory> {
        let shared = SharedMemory::map(fd, header(shape))
            .map_err(|e| Error::fabric(format!("cannot map shared memory: {e}")))?;
        Ok(PhaseMemory { shared, shape: *shape, wait_mode })
    }

    /// Returns a block of one of the two buffers. The counters say which process may use it.
    pub(super) fn block(&mut self, slot: u32, block: u32) -> &mut [u8] {
        let index = (slot * self.shape.nodes + block) as usize;
        self.shared.bytes(index * self.shape.stride(), self.shape.block as usize)
    }

    /// Returns the place of a block that is kept after a run, because its content is wrong.
    pub(super) fn kept(&mut self) -> &mut [u8] {
        self.block(SLOTS, 0)
    }

    /// Waits until a counter is at least `least`; returns the nanoseconds, 0 if it did not wait.
    pub(super) fn wait(&self, counter: Counter, least: u32) -> u64 {
        let word = self.shared.word(counter.place());
        if word.load(SeqCst) >= least {
            return 0;
        }
        let since = host_ns();
        match self.wait_mode {
            WaitMode::Sleep => {
                while word.load(SeqCst) < least {
                    self.sleep(counter, least, None);
                }
            }
            WaitMode::Spin => spin(word, least),
        }
        host_ns().saturating_sub(since)
    }

    /// Waits asleep until a counter is at least `least`, for at most `limit`; returns whether it is.
    pub(super) fn sleep_at_most(&self, counter: Counter, least: u32, limit: Duration) -> bool {
        let deadline = Deadline::after(limit);
        while self.read(counter) < least {
            let Some(left) = deadline.left() else { return false };
            self.sleep(counter, least, Some(left));
        }
        true
    }

    /// Sleeps until a counter changes, if it is below `least`. May wake earlier.
    fn sleep(&self, counter: Counter, least: u32, limit: Option<Duration>) {
        let word = self.shared.word(counter.place());
        let sleepers = self.shared.word(counter.place() + SLEEPERS);
        // Incremented before the counter is read again: a process that advances it later sees that it must wake this one.
        sleepers.fetch_add(1, SeqCst);
        let seen = word.load(SeqCst);
        if seen < least {
            // Fails if interrupted or if the counter has changed: the caller reads it again.
            let _ = futex::wait(word, futex::Flags::empty(), seen, limit.map(timespec).as_ref());
        }
        sleepers.fetch_sub(1, SeqCst);
    }

    /// Adds to a counter and wakes the processes that wait for it.
    pub(super) fn advance(&self, counter: Counter, by: u32) {
        self.shared.word(counter.place()).fetch_add(by, SeqCst);
        self.wake(counter);
    }

    /// Sets a counter and wakes the processes that wait for it.
    pub(super) fn set(&self, counter: Counter, to: u32) {
        self.shared.word(counter.place()).store(to, SeqCst);
        self.wake(counter);
    }

    fn wake(&self, counter: Counter) {
        if self.shared.word(counter.place() + SLEEPERS).load(SeqCst) > 0 {
            let _ = futex::wake(self.shared.word(counter.place()), futex::Flags::empty(), i32::MAX as u32);
        }
    }

    /// Returns the value of a counter.
    pub(super) fn read(&self, counter: Counter) -> u32 {
        self.shared.word(counter.place()).load(SeqCst)
    }

    /// Resets counters and records for the next run; no process may be working.
    pub(super) fn reset(&self) {
        for slot in 0..SLOTS {
            self.set(Counter::Filled(slot), 0);
            self.set(Counter::Drained(slot), 0);
        }
        self.set(Counter::Done, 0);
        for at in (RECORDS..header(&self.shape)).step_by(8) {
            self.shared.long(at).store(0, SeqCst);
        }
    }

    /// Records how long a sender (0 to N - 1) or receiver (N to 2 N - 1) has waited in a run.
    pub(super) fn set_waits(&self, worker: u32, waits: Waits) {
        for lack in [Lack::Data, Lack::Space] {
            self.shared.long(waits_at(worker, lack)).store(waits.0[lack as usize], SeqCst);
        }
    }

    /// Returns how long a sender or receiver has waited in the last run.
    pub(super) fn waits(&self, worker: u32) -> Waits {
        Waits([Lack::Data, Lack::Space].map(|lack| self.shared.long(waits_at(worker, lack)).load(SeqCst)))
    }

    /// Records the current time for a block: in the first phase when it begins to leave, in the last when it has arrived.
    pub(super) fn stamp(&self, buffer: u32, block: u32) {
        self.shared.long(self.stamp_at(buffer, block)).store(host_ns(), SeqCst);
    }

    /// Returns the recorded times of a buffer's blocks.
    pub(super) fn stamps(&self, buffer: u32) -> impl Iterator<Item = u64> {
        (0..self.shape.nodes).map(move |block| self.shared.long(self.stamp_at(buffer, block)).load(SeqCst))
    }

    fn stamp_at(&self, buffer: u32, block: u32) -> usize {
        stamps(&self.shape) + 8 * (buffer * self.shape.nodes + block) as usize
    }

    /// Records how long the process of the phase filled or read buffers in a run, in nanoseconds.
    pub(super) fn set_end_work(&self, ns: u64) {
        self.shared.long(END_WORK).store(ns, SeqCst);
    }

    /// Returns how long the process of the phase filled or read buffers in the last run.
    pub(super) fn end_work(&self) -> u64 {
        self.shared.long(END_WORK).load(SeqCst)
    }

    /// Records the first wrong byte of a run.
    pub(super) fn set_wrong(&self, Wrong { slot, byte, expected, actual }: Wrong) {
        let numbers = [1, slot, byte, expected.into(), actual.into()];
        for (at, number) in (WRONG..).step_by(8).zip(numbers) {
            self.shared.long(at).store(number, SeqCst);
        }
    }

    /// Returns the first wrong byte of a run.
    pub(super) fn wrong(&self) -> Option<Wrong> {
        let read = |i: usize| self.shared.long(WRONG + 8 * i).load(SeqCst);
        let wrong = || Wrong { slot: read(1), byte: read(2), expected: read(3) as u8, actual: read(4) as u8 };
        (read(0) == 1).then(wrong)
    }
}

/// Nanoseconds for which a process waited, by [`Lack`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Waits(pub(super) [u64; 2]);

impl Waits {
    pub(super) fn ns(self, lack: Lack) -> u64 {
        self.0[lack as usize]
    }

    pub(super) fn add(&mut self, lack: Lack, ns: u64) {
        self.0[lack as usize] += ns;
    }
}

impl Counter {
    fn place(self) -> usize {
        LINE * match self {
            Counter::Start => 0,
            Counter::StartPhase => 1,
            Counter::Done => 2,
            Counter::Filled(slot) => 3 + slot as usize,
            Counter::Drained(slot) => 5 + slot as usize,
        }
    }
}

fn spin(word: &AtomicU32, least: u32) {
    let mut polls = 0;
    while word.load(SeqCst) < least {
        polls = pause(polls);
    }
}

/// Pauses between two polls of a spinning process; returns the number of polls since the last yield.
pub(super) fn pause(polls: u32) -> u32 {
    if polls < POLLS_PER_YIELD {
        std::hint::spin_loop();
        polls + 1
    } else {
        std::thread::yield_now();
        0
    }
}

/// Offset of the records after the counters: the first wrong byte, the work of the phase, waiting times and time stamps.
const RECORDS: usize = COUNTERS * LINE;
const WRONG: usize = RECORDS;
const END_WORK: usize = WRONG + 5 * 8;
const WAITS: usize = RECORDS + LINE;

fn waits_at(worker: u32, lack: Lack) -> usize {
    // A cache line for each worker.
    WAITS + worker as usize * LINE + 8 * lack as usize
}

fn stamps(shape: &PipelineShape) -> usize {
    WAITS + 2 * shape.nodes as usize * LINE
}

fn header(shape: &PipelineShape) -> usize {
    // Whole pages, so that blocks start on a page.
    (stamps(shape) + 8 * shape.buffers as usize * shape.nodes as usize).next_multiple_of(4096)
}

#[cfg(test)]
mod tests;
