//! The timed loops: the only place where ombx reads the clock around benchmark work.
//!
//! Each loop is monomorphised for its kernel. All other code of the engine runs once per round.

use ombx_record::{error::Result, unit::Rank};

use crate::{
    benchmark::Kernel,
    clock::Clock,
    pacing::{mesh::Mesh, start::Start},
    two_sided::{
        received::Arrival,
        scheduled_link::{DatagramLink, RequestLink},
    },
};

/// Times batches: `stamps[i+1] - stamps[i]` is the time of `batch` iterations in raw ticks.
///
/// # Errors
/// Those of an iteration.
#[inline(never)]
pub fn timed<K: Kernel>(kernel: &mut K, clock: &Clock, batch: u64, stamps: &mut [u64]) -> Result<()> {
    let Some((first, rest)) = stamps.split_first_mut() else { return Ok(()) };
    *first = clock.raw();
    for stamp in rest {
        for _ in 0..batch {
            kernel.active()?;
        }
        *stamp = clock.raw();
    }
    Ok(())
}

/// Runs the iterations of [`timed`] on a rank that answers.
#[inline(never)]
pub(crate) fn answered<K: Kernel>(kernel: &mut K, iterations: u64) -> Result<()> {
    for _ in 0..iterations {
        kernel.passive()?;
    }
    Ok(())
}

/// What a timed rank repeats between two readings of the clock: a kernel, or a part of what it does.
pub trait Iteration {
    /// Prepares a sample. Untimed.
    #[inline(always)]
    fn prepare(&mut self) -> Result<()> {
        Ok(())
    }
    /// Runs one iteration.
    fn iterate(&mut self) -> Result<()>;
}

impl<K: Kernel> Iteration for K {
    #[inline(always)]
    fn prepare(&mut self) -> Result<()> {
        self.rewind()
    }

    #[inline(always)]
    fn iterate(&mut self) -> Result<()> {
        self.active()
    }
}

/// Times batches one by one. An untimed synchronisation of ranks precedes each. `stamps` are pairs of start and end.
#[inline(never)]
pub(crate) fn paced<I: Iteration, S: Start>(
    iteration: &mut I,
    pacing: &mut S,
    clock: &Clock,
    batch: u64,
    stamps: &mut [u64],
) -> Result<()> {
    for [start, end] in stamps.as_chunks_mut().0 {
        iteration.prepare()?;
        pacing.wait(clock)?;
        *start = clock.raw();
        for _ in 0..batch {
            iteration.iterate()?;
        }
        *end = clock.raw();
    }
    Ok(())
}

/// Two kinds of iterations that alternate on a rank.
pub trait Turns {
    /// Runs a broadcast and its acknowledgement.
    fn work(&mut self) -> Result<()>;
    /// Runs a round trip with the rank that acknowledges.
    fn echo(&mut self) -> Result<()>;
}

/// Times two kinds of iterations in turn. Each sample is a batch of work and a batch of echoes.
///
/// One untimed iteration precedes each batch. `stamps` are the starts and ends of both batches.
#[inline(never)]
pub fn in_turn<T: Turns>(
    turns: &mut T,
    clock: &Clock,
    [work, echoes]: [u64; 2],
    stamps: &mut [u64],
) -> Result<()> {
    for [work_start, work_end, echo_start, echo_end] in stamps.as_chunks_mut().0 {
        turns.work()?;
        *work_start = clock.raw();
        for _ in 0..work {
            turns.work()?;
        }
        *work_end = clock.raw();
        turns.echo()?;
        *echo_start = clock.raw();
        for _ in 0..echoes {
            turns.echo()?;
        }
        *echo_end = clock.raw();
    }
    Ok(())
}

/// Runs the iterations of [`in_turn`] on a rank that answers.
#[inline(never)]
pub fn answered_in_turn<T: Turns>(turns: &mut T, [work, echoes]: [u64; 2], samples: u64) -> Result<()> {
    for _ in 0..samples {
        for _ in 0..=work {
            turns.work()?;
        }
        for _ in 0..=echoes {
            turns.echo()?;
        }
    }
    Ok(())
}

/// Times batches of round trips of an empty message: `stamps[i+1] - stamps[i]` is the time of `batch` round trips.
#[inline(never)]
pub fn round_trips<M: Mesh>(
    mesh: &mut M,
    other: Rank,
    clock: &Clock,
    batch: u64,
    stamps: &mut [u64],
) -> Result<()> {
    let Some((first, rest)) = stamps.split_first_mut() else { return Ok(()) };
    *first = clock.raw();
    for stamp in rest {
        for _ in 0..batch {
            mesh.send(other, &[])?;
            mesh.receive(other, &mut [])?;
        }
        *stamp = clock.raw();
    }
    Ok(())
}

/// Sends requests at scheduled times, `due` ticks after the start, and polls for replies meanwhile. At most `window` requests are in
/// flight.
///
/// `stamps` are the start and the arrival of each reply.
#[inline(never)]
pub(crate) fn open_loop<L: RequestLink>(
    link: &mut L,
    clock: &Clock,
    window: u64,
    due: &[u64],
    stamps: &mut [u64],
) -> Result<()> {
    let Some((first, arrivals)) = stamps.split_first_mut() else { return Ok(()) };
    let (mut sent, mut done, requests) = (0, 0, due.len().min(arrivals.len()));
    let start = clock.raw();
    *first = start;
    while done < requests {
        if sent < requests && ((sent - done) as u64) < window && clock.raw() >= start + due[sent] {
            sent += usize::from(link.send_some(sent as u64)?);
        }
        let arrived = link.replies()? as usize;
        if arrived > done {
            arrivals[done..arrived].fill(clock.raw());
            done = arrived;
        }
    }
    Ok(())
}

/// Sends datagrams at scheduled times, `due` ticks after the start, those that are due together. Each carries the time since the start at
/// which it was sent.
///
/// `stamps` are the start and the time of sending each.
#[inline(never)]
pub(crate) fn paced_sends<L: DatagramLink>(
    link: &mut L,
    clock: &Clock,
    due: &[u64],
    stamps: &mut [u64],
) -> Result<()> {
    let Some((first, sent)) = stamps.split_first_mut() else { return Ok(()) };
    let datagrams = due.len().min(sent.len());
    let mut next = 0;
    let start = clock.raw();
    *first = start;
    while next < datagrams {
        let mut now = clock.raw();
        while now < start + due[next] {
            now = clock.raw();
        }
        let most = datagrams.min(next + link.most_sent());
        let mut end = next + 1;
        while end < most && start + due[end] <= now {
            end += 1;
        }
        link.send(next as u64..end as u64, clock.nanos(start, now))?;
        sent[next..end].fill(now);
        next = end;
    }
    Ok(())
}

/// Receives the datagrams that [`paced_sends`] sends, and reads the clock after each call. Returns how many have arrived.
///
/// The round ends when all `datagrams` have arrived in order, when nothing more is expected, or when `found` is full.
#[inline(never)]
pub(crate) fn arrivals<L: DatagramLink>(
    link: &mut L,
    clock: &Clock,
    datagrams: u64,
    found: &mut [Arrival],
) -> Result<usize> {
    let (mut count, mut in_order) = (0, 0);
    while in_order < datagrams && count < found.len() {
        let arrived = link.receive(&mut found[count..])?;
        let now = clock.raw();
        for arrival in &mut found[count..count + arrived] {
            arrival.at_ns = now;
            in_order += u64::from(arrival.number == in_order);
        }
        count += arrived;
        if arrived == 0 && link.is_over()? {
            break;
        }
    }
    Ok(count)
}
