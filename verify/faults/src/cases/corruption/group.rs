//! Benchmarks that run in one job, and the bytes that flip in it.

use std::{path::Path, process::Command, time::Duration};

use ombx_record::result::Measurement;
use ombx_toolchain::registry::Bench;

use super::datatypes::Derived;
use crate::{case::Job, stage::Stage};

/// Time for a job of many benchmarks.
pub(super) const DEADLINE: Duration = Duration::from_secs(300);
/// Operations in flight.
pub(super) const WINDOW: u64 = 4;
/// Message size without a fault.
pub(super) const UNTOUCHED: u64 = 64;

/// Sizes of the six faults of a job: three places on each of two ranks. The last uses the rendezvous protocol.
const SIZES: [u64; 6] = [1000, 1008, 1016, 1024, 1032, 65536];
const ELEMENTS: [u64; 2] = [8, 4];

const MANY: &str = "--iterations 2 --warmup 1 --batch 1";
/// One iteration: a flipped byte is not accumulated again.
const ONCE: &str = "--iterations 1 --warmup 0 --batch 1";
/// Every synchronisation of one-sided operations.
pub(super) const SYNCS: &str = "--sync all";

/// First message of each iteration.
pub(super) const FIRST: [u64; 3] = [0, 0, 0];
/// First, middle and last message of a window.
pub(super) const IN_WINDOW: [u64; 3] = [0, WINDOW / 2, WINDOW - 1];

/// Flipped byte in messages of one size. Each size of a job is a separate fault.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flip {
    /// Message size of the row, in bytes.
    pub(super) size: u64,
    /// Rank in whose calls the byte is flipped.
    pub(super) actor: u32,
    /// Whether that rank sends the message to its neighbour; otherwise it receives it.
    pub(super) given: bool,
    /// Message of an iteration, or block of the buffer of a collective, from 0.
    pub(super) slot: u64,
    pub(super) byte: Byte,
}

/// Byte of a message, from 0.
#[derive(Clone, Copy, Debug)]
pub(super) enum Byte {
    /// By its position in the payload, without gaps.
    OfPayload(u64),
    /// By its position in memory, in a gap of the message.
    InGap(u64),
}

impl Flip {
    /// Returns the rank that receives the wrong byte.
    pub(super) fn hit(self) -> u32 {
        if self.given { self.actor ^ 1 } else { self.actor }
    }

    /// Returns the position of the byte in the memory of its message.
    pub(super) fn position(self, row: &Measurement, derived: Option<Derived>) -> Result<u64, String> {
        match (derived, self.byte) {
            (Some(derived), Byte::OfPayload(byte)) => {
                derived.position(row, self.size, byte).map_err(|e| e.to_string())
            }
            (_, Byte::OfPayload(byte) | Byte::InGap(byte)) => Ok(byte),
        }
    }
}

/// How the faults find a message of an iteration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Slots {
    /// By the order of calls. The number is that of calls per iteration.
    Calls(u64),
    /// By the position of the message in one buffer.
    Parts,
}

/// Benchmarks that run in one job with the same faults.
#[derive(Clone)]
pub(super) struct Group {
    pub(super) names: Vec<String>,
    /// Options of the job.
    pub(super) words: String,
    /// Further options of jobs in which single bytes flip.
    pub(super) effort: &'static str,
    /// Whether every kind of window is measured, in the gate the default one alone.
    pub(super) every_window: bool,
    pub(super) given: bool,
    /// Whether bytes flip in calls of threads other than the main thread only.
    pub(super) on_workers: bool,
    /// Pairs of ranks that run the same operation at the same time. Bytes flip in the last one.
    pub(super) pairs: u32,
    pub(super) slots: Slots,
    /// Messages that are hit, on each rank.
    pub(super) hit: Vec<u64>,
    pub(super) sizes: Vec<u64>,
    /// A rank receives this fraction of a message: 1 / portion.
    pub(super) portion: u64,
    /// The derived datatypes of messages, if they have any.
    pub(super) derived: Option<Derived>,
}

impl Group {
    /// Returns the flips of a job: on both ranks of the last pair, in each message that is hit, at its first, a middle and its last byte.
    /// Where messages of derived datatypes arrive, a byte in a gap and the last byte flip on both ranks, the middle and the first byte on one each.
    pub(super) fn flips(&self) -> Vec<Flip> {
        let slots = |actor| self.hit.iter().map(move |&slot| (actor, slot));
        let ranks_and_slots = (2 * self.pairs - 2..2 * self.pairs).flat_map(slots);
        let places = ranks_and_slots.zip(&self.sizes).enumerate();
        places.map(|(at, ((actor, slot), size))| self.flip(at, actor, slot, *size)).collect()
    }

    /// Returns a flip of the first, middle or last byte that arrives, by its index.
    fn flip(&self, at: usize, actor: u32, slot: u64, size: u64) -> Flip {
        let arrives = size / self.portion;
        let [first, middle, last] = [0, arrives / 2 - 1, arrives - 1].map(Byte::OfPayload);
        let bytes = match self.derived.filter(|_| !self.given) {
            Some(derived) => {
                let gap = Byte::InGap(derived.gap(size));
                [middle, gap, last, first, gap, last]
            }
            None => [first, middle, last, first, middle, last],
        };
        Flip { size, actor, given: self.given, slot, byte: bytes[at % bytes.len()] }
    }

    /// Returns the call in which bytes flip. Messages between rows have the size of one element too: there the call must be named.
    pub(super) fn call(&self) -> &'static str {
        match self.names.first().map(String::as_str) {
            Some("rma.fop_latency") => "Fetch_and_op",
            Some("rma.cas_latency") => "Compare_and_swap",
            Some("rma.window") => "Put",
            _ => "*",
        }
    }

    pub(super) fn rule(&self, flip: Flip) -> String {
        let Flip { size, actor, given, slot, byte } = flip;
        let way = if given { ",way=out" } else { "" };
        let worker = if self.on_workers { ",worker=1" } else { "" };
        let message = match self.slots {
            Slots::Calls(of) => format!("slot={slot},of={of}"),
            Slots::Parts => format!("block={slot}"),
        };
        let byte = match byte {
            Byte::OfPayload(byte) => format!("byte={byte}"),
            Byte::InGap(byte) => format!("byte={byte},memory=1"),
        };
        format!("call={},do=flip,rank={actor},bytes={size}{way}{worker},{message},{byte}", self.call())
    }

    /// Returns the benchmarks that ombx has.
    pub(super) fn known<'s>(&self, stage: &'s Stage) -> Vec<&'s Bench> {
        self.names.iter().filter_map(|name| stage.bench(name)).collect()
    }

    /// Returns the options of jobs in which single bytes flip.
    pub(super) fn effort(&self, stage: &Stage) -> String {
        let windows = if self.every_window && !stage.gate { " --win all" } else { "" };
        format!("{}{windows}", self.effort)
    }

    /// Returns the job of all benchmarks with these sizes.
    pub(super) fn job(&self, stage: &Stage, rules: Vec<String>, sizes: &[String], effort: &str) -> Job {
        let known = self.known(stage);
        let names: Vec<&str> = known.iter().map(|bench| bench.name.as_str()).collect();
        let streams = known.iter().any(|bench| bench.streams);
        let window = if streams { format!("--window {WINDOW} ") } else { String::new() };
        let words = format!(
            "run {} --sizes {} {window}-n {} --allow-skips {effort} {} {}",
            names.join(" "),
            sizes.join(","),
            2 * self.pairs,
            self.words,
            self.derived.map(Derived::words).unwrap_or_default()
        );
        let mut job = Job { rules, all_act: false, deadline: DEADLINE, ..Job::new(&words) };
        if names.iter().any(|name| name.starts_with("rma.cas")) {
            job.prepare = Some(Box::new(without_rdma));
        }
        job
    }
}

impl Group {
    /// Flips sent bytes instead of received ones.
    pub(super) fn given(self) -> Self {
        Self { given: true, ..self }
    }

    /// Flips bytes of the second of two threads.
    pub(super) fn on_second_thread(self) -> Self {
        Self { words: format!("{} --threads 2", self.words), on_workers: true, ..self }
    }

    /// Measures two groups of two ranks each.
    pub(super) fn in_groups(self) -> Self {
        Self { words: format!("{} --groups 2", self.words), pairs: 2, ..self }
    }

    /// Measures one iteration.
    pub(super) fn once(self) -> Self {
        Self { effort: ONCE, ..self }
    }

    /// Measures with every kind of window.
    pub(super) fn in_every_window(self) -> Self {
        Self { every_window: true, ..self }
    }

    /// Limits the group to messages of one element.
    pub(super) fn of_elements(self) -> Self {
        Self { hit: vec![0], sizes: ELEMENTS.to_vec(), ..self }
    }
}

/// Open MPI 4 crashes in MPI_Compare_and_swap with its default component. MPICH does not read the variable.
pub(super) fn without_rdma(command: &mut Command, _: &Stage, _: &Path) -> Result<(), String> {
    command.env("OMPI_MCA_osc", "^rdma");
    Ok(())
}

/// Returns a group of benchmarks whose received bytes flip.
pub(super) fn group(names: Vec<String>, words: &str, slots: Slots, hit: [u64; 3]) -> Group {
    Group {
        names,
        words: words.to_owned(),
        effort: MANY,
        every_window: false,
        given: false,
        on_workers: false,
        pairs: 1,
        slots,
        hit: hit.to_vec(),
        sizes: SIZES.to_vec(),
        portion: 1,
        derived: None,
    }
}

/// Returns a group of which the first message is hit.
pub(super) fn named(names: &[&str], words: &str, slots: Slots) -> Group {
    group(names.iter().map(|&name| name.into()).collect(), words, slots, FIRST)
}
