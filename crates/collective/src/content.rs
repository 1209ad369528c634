//! What stands in a rank's buffers before an operation and after so many iterations of it.
//!
//! What rank r contributes to a reduction is A + r B, with two patterns A and B: sums over ranks are then known without
//! anybody computing them again, whatever the number of ranks. Elements are unsigned integers that wrap.

use std::ops::Range;

use ombx_core::{
    benchmark::{
        payload::{Check, Fill, check_words, sum, write_words},
        root::Root,
    },
    unit::Rank,
};
use ombx_mpi::collective::{Blocks, Part, Participants, ReductionScope};

/// A message, or another stretch of a buffer that is filled and checked as one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stretch {
    /// Where in the buffer.
    pub range: Range<u64>,
    /// What stands there.
    pub content: Content,
    /// Whether anything ever arrives there.
    pub arrives: bool,
}

/// `first` times the pattern of a rank's message, and `second` times another, in elements of `width` bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Content {
    owner: u32,
    slot: u64,
    first: u64,
    second: u64,
    width: usize,
    /// All bits of a word that are the other way round.
    flipped: u64,
}

impl Content {
    /// What `owner` sends as its message `slot`.
    fn sent(owner: u32, slot: u64) -> Content {
        Content { owner, slot, first: 1, second: 0, width: 8, flipped: 0 }
    }

    fn sum(slot: u64, (first, second): (u64, u64), width: usize) -> Content {
        Content { owner: 0, slot, first, second, width, flipped: 0 }
    }

    fn words(self, fill: Fill) -> impl Fn(u64) -> u64 {
        let owner = Rank(self.owner);
        let (first, second) = (fill.words(owner, self.slot), fill.beside().words(owner, self.slot));
        move |at| sum([(first(at), self.first), (second(at), self.second)], self.width) ^ self.flipped
    }
}

/// Writes stretches into a buffer.
pub fn write(stretches: &[Stretch], fill: Fill, buffer: &mut [u8]) {
    for Stretch { range, content, .. } in stretches {
        write_words(content.words(fill), &mut buffer[range.start as usize..range.end as usize]);
    }
}

/// Compares a buffer of `rank` with what must stand there.
pub fn check(stretches: &[Stretch], fill: Fill, buffer: &[u8], rank: Rank) -> Check {
    (0..).zip(stretches).fold(Check::Passed, |found, (slot, Stretch { range, content, .. })| match found {
        Check::Passed => {
            let message = &buffer[range.start as usize..range.end as usize];
            check_words(content.words(fill), message, (rank, slot))
        }
        failed => failed,
    })
}

/// What stands in the buffer that a rank sends from.
pub fn outgoing(part: &Part) -> Vec<Stretch> {
    if part.send_bytes() > 0 { input(part) } else { Vec::new() }
}

/// What stands in the buffer that a rank receives to, after so many iterations on it; what overwrites itself is known after
/// one only.
pub fn incoming(part: &Part, iterations: u64) -> Option<Vec<Stretch>> {
    if part.receive_bytes() == 0 {
        return Some(Vec::new());
    }
    let Part { rank, ranks, root, .. } = *part;
    let in_place = if part.in_place { part.flow.in_place() } else { None };
    let turns = Turns { root, rank, ranks, iterations };
    let from = |root: Option<u32>| root.map_or_else(|| initial(part), |root| arrived(part, root));
    let reduces = part.flow.reduces != ReductionScope::Nothing;
    let exchanges = part.flow.sends.blocks == Blocks::Ranks && part.flow.receives.blocks == Blocks::Ranks;
    let times = turns.as_root();
    Some(match (part.flow.receives.who, in_place) {
        _ if iterations == 0 => initial(part),
        (Participants::Others, _) => from(turns.last_other()),
        (Participants::Root, _) if times == 0 => initial(part),
        (Participants::Root, Some(_)) if reduces => {
            // Each time the contributions of all others are added to its own.
            let (all, own) = (total(u64::from(ranks)), (1, u64::from(rank)));
            let terms = |all: u64, own: u64| own.wrapping_add(times.wrapping_mul(all - own));
            let content = Content::sum(0, (terms(all.0, own.0), terms(all.1, own.1)), part.width());
            vec![Stretch { range: 0..part.bytes, content, arrives: true }]
        }
        (Participants::Everyone, Some(Participants::Root)) => from(turns.last_other()),
        (Participants::Everyone, Some(_)) if reduces && iterations > 1 => return None,
        (Participants::Everyone, Some(_)) if exchanges && iterations.is_multiple_of(2) => input(part),
        _ => arrived(part, turns.last()),
    })
}

/// The contributions of ranks 0 to n - 1.
fn total(n: u64) -> (u64, u64) {
    (n, n.wrapping_mul(n.wrapping_sub(1)) / 2)
}

/// What a rank sends, wherever that lies.
fn input(part: &Part) -> Vec<Stretch> {
    let Part { rank, ranks, bytes, ref neighbours, .. } = *part;
    let content = |slot: u64| match part.flow.reduces {
        ReductionScope::Nothing => Content::sent(rank, slot),
        _ => Content::sum(slot, (1, u64::from(rank)), part.width()),
    };
    let stretch = |range, slot| Stretch { range, content: content(slot), arrives: true };
    let block = |at: u64| at * bytes..(at + 1) * bytes;
    match (part.flow.sends.blocks, part.flow.receives.blocks) {
        (Blocks::One, Blocks::Portion) => {
            (0..ranks).map(|to| stretch(part.portion(to), u64::from(to))).collect()
        }
        (Blocks::Ranks, _) => (0..u64::from(ranks)).map(|to| stretch(block(to), to)).collect(),
        (Blocks::Neighbours, _) => {
            let to = |to: &Option<u32>| u64::from(to.unwrap_or(ranks));
            (0..).zip(&neighbours.destinations).map(|(at, rank)| stretch(block(at), to(rank))).collect()
        }
        (Blocks::One, _) => vec![stretch(block(0), 0)],
        _ => Vec::new(),
    }
}

/// What stands in the receiving buffer before anything arrives: what will arrive, every bit of it flipped, and the input
/// where it lies there.
fn initial(part: &Part) -> Vec<Stretch> {
    let rank = part.rank;
    let flip = |s: Stretch| Stretch { content: Content { flipped: u64::MAX, ..s.content }, ..s };
    let mut stretches: Vec<Stretch> =
        arrived(part, part.root.first().0).into_iter().map(|s| if s.arrives { flip(s) } else { s }).collect();
    if part.in_place {
        match (part.flow.sends.blocks, part.flow.receives.blocks) {
            _ if part.flow.sends.who == Participants::Root => {}
            (Blocks::One, Blocks::Ranks) => stretches[rank as usize].content = Content::sent(rank, 0),
            _ => stretches = input(part),
        }
    }
    stretches
}

/// What has arrived after one iteration with a root.
fn arrived(part: &Part, root: u32) -> Vec<Stretch> {
    let Part { rank, ranks, bytes, ref neighbours, .. } = *part;
    let me = u64::from(rank);
    let block = |at: u64| at * bytes..(at + 1) * bytes;
    let all = |range, content| vec![Stretch { range, content, arrives: true }];
    let sum = |slot, terms| Content::sum(slot, terms, part.width());
    // What is sent to this rank alone is told apart by its number.
    let slot = if part.flow.sends.blocks == Blocks::One { 0 } else { me };
    match (part.flow.reduces, part.flow.receives.blocks) {
        (ReductionScope::All, Blocks::Portion) => {
            let Range { start, end } = part.portion(rank);
            all(0..end - start, sum(me, total(u64::from(ranks))))
        }
        (ReductionScope::All, _) => all(block(0), sum(slot, total(u64::from(ranks)))),
        (ReductionScope::Inclusive, _) => all(block(0), sum(0, total(me + 1))),
        // MPI 4.1, 6.11.2: undefined on the first rank.
        (ReductionScope::Exclusive, _) if rank == 0 => Vec::new(),
        (ReductionScope::Exclusive, _) => all(block(0), sum(0, total(me))),
        (ReductionScope::Nothing, Blocks::One) => all(block(0), Content::sent(root, slot)),
        (ReductionScope::Nothing, Blocks::Ranks) => {
            let from = |from: u32| Stretch {
                range: block(u64::from(from)),
                content: Content::sent(from, slot),
                arrives: true,
            };
            (0..ranks).map(from).collect()
        }
        (ReductionScope::Nothing, Blocks::Neighbours) => {
            let from = |(at, from): (u64, &Option<u32>)| Stretch {
                range: block(at),
                content: Content::sent(from.unwrap_or(rank), slot),
                arrives: from.is_some(),
            };
            (0..).zip(&neighbours.sources).map(from).collect()
        }
        (ReductionScope::Nothing, _) => Vec::new(),
    }
}

/// The roots of iterations 0, 1, ..
#[derive(Debug, Clone, Copy)]
struct Turns {
    root: Root,
    rank: u32,
    ranks: u32,
    iterations: u64,
}

impl Turns {
    /// The last root, or the first if there has been none.
    fn last(self) -> u32 {
        match self.root {
            Root::Fixed(root) => root.0,
            Root::Rotating => (self.iterations.saturating_sub(1) % u64::from(self.ranks)) as u32,
        }
    }

    /// The last root that was another rank.
    fn last_other(self) -> Option<u32> {
        let before = Turns { iterations: self.iterations.saturating_sub(1), ..self };
        match (self.last(), self.root) {
            (root, _) if root != self.rank => Some(root),
            (_, Root::Rotating) if self.iterations > 1 && self.ranks > 1 => Some(before.last()),
            _ => None,
        }
    }

    /// How often this rank was it.
    fn as_root(self) -> u64 {
        let (rank, ranks) = (u64::from(self.rank), u64::from(self.ranks));
        match self.root {
            Root::Fixed(root) if root.0 == self.rank => self.iterations,
            Root::Fixed(_) => 0,
            Root::Rotating => (self.iterations + ranks - 1 - rank) / ranks,
        }
    }
}

#[cfg(test)]
mod tests;
