//! Expected content of a rank's buffers before an operation and after a number of iterations.
//!
//! [`Reduction`] says what ranks contribute to a reduction. Results follow from the number of ranks without combining contributions.

use std::ops::Range;

use ombx_core::{
    benchmark::{
        Root,
        payload::{Contributors, Fill, MessageId, Reduced, Reduction, Words},
    },
    result::Check,
    unit::Rank,
};
use ombx_mpi::collective::{Blocks, Gaps, Part, Participants, ReductionScope};

/// A range of a buffer that is filled and checked as one, usually a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectedRange {
    /// Byte range in the buffer.
    pub range: Range<u64>,
    /// Expected content.
    pub content: Content,
    /// Whether the operation writes this range.
    pub arrives: bool,
}

/// Content of a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Content {
    /// The message in its rank's buffer.
    slot: u64,
    source: Source,
    /// Whether all bits are inverted.
    flipped: bool,
}

/// Origin of data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// The pattern of a rank.
    Rank(u32),
    /// The reduction of contributions.
    Reduction(Reduction, Contributors),
}

impl Content {
    /// Returns the content of message `slot` of rank `owner`.
    fn sent(owner: u32, slot: u64) -> Content {
        Content { slot, source: Source::Rank(owner), flipped: false }
    }

    /// Returns the result of contributions to message `slot`.
    fn reduced(part: &Part, slot: u64, contributors: Contributors) -> Content {
        Content { slot, source: Source::Reduction(reduction(part), contributors), flipped: false }
    }

    fn write(self, fill: Fill, message: &mut [u8]) {
        match self.source {
            Source::Rank(owner) => self.words(fill, owner).write(message),
            Source::Reduction(reduction, contributors) => {
                self.result(fill, reduction, contributors).write(message);
            }
        }
    }

    fn check(self, fill: Fill, message: &[u8], id: MessageId) -> Check {
        match self.source {
            Source::Rank(owner) => self.words(fill, owner).check(message, id),
            Source::Reduction(reduction, contributors) => {
                self.result(fill, reduction, contributors).check(message, id)
            }
        }
    }

    fn words(self, fill: Fill, owner: u32) -> Words {
        fill.words(Rank(owner), self.slot).flipped(if self.flipped { u64::MAX } else { 0 })
    }

    fn result(self, fill: Fill, reduction: Reduction, contributors: Contributors) -> Reduced {
        let reduced = fill.reduced(reduction, contributors, self.slot);
        if self.flipped { reduced.flipped() } else { reduced }
    }
}

fn reduction(part: &Part) -> Reduction {
    Reduction { element: part.element, op: part.op, ranks: part.ranks }
}

/// Writes the expected content into a buffer.
pub fn write(ranges: &[ExpectedRange], fill: Fill, buffer: &mut [u8]) {
    for ExpectedRange { range, content, .. } in ranges {
        content.write(fill, &mut buffer[range.start as usize..range.end as usize]);
    }
}

/// Compares the receive buffer of a rank with its expected content after a number of iterations. Operations that overwrite their input
/// pass after more than one iteration, unless the result is known.
pub fn check(part: &Part, fill: Fill, buffer: &[u8], rank: Rank) -> Check {
    let Some(expected) = incoming(part, fill.iterations) else { return Check::Passed };
    let before = if part.gaps.is_some() { initial(part) } else { Vec::new() };
    let words = |content: Content| match content.source {
        Source::Rank(owner) => Some(content.words(fill, owner)),
        Source::Reduction(..) => None,
    };
    let checks = (0..).zip(expected).map(|(slot, ExpectedRange { range, content, arrives })| {
        let message = &buffer[range.start as usize..range.end as usize];
        let in_blocks =
            part.gaps.filter(|_| arrives && !content.flipped).and_then(|Gaps { blocks, payload }| {
                let (words, before) = (words(content)?, words(before[slot as usize].content)?);
                Some(blocks.check(words, before, payload, message, MessageId { rank, slot }))
            });
        in_blocks.unwrap_or_else(|| content.check(fill, message, MessageId { rank, slot }))
    });
    checks.fold(Check::Passed, Check::and)
}

/// Returns the content of the send buffer of a rank.
pub fn outgoing(part: &Part) -> Vec<ExpectedRange> {
    if part.send_bytes() > 0 { input(part) } else { Vec::new() }
}

/// Returns the expected content of the receive buffer of a rank after a number of iterations.
///
/// Returns `None` after more than one iteration of an operation that overwrites its input, unless the result is known.
pub fn incoming(part: &Part, iterations: u64) -> Option<Vec<ExpectedRange>> {
    if part.receive_bytes() == 0 {
        return Some(Vec::new());
    }
    let Part { rank, ranks, root, .. } = *part;
    let in_place = if part.in_place { part.flow.in_place() } else { None };
    let roots = RootHistory { root, rank, ranks, iterations };
    let from = |root: Option<u32>| root.map_or_else(|| initial(part), |root| arrived(part, root));
    let reduces = part.flow.reduces != ReductionScope::Nothing;
    let exchanges = part.flow.sends.blocks == Blocks::Ranks && part.flow.receives.blocks == Blocks::Ranks;
    let times = roots.as_root();
    Some(match (part.flow.receives.who, in_place) {
        _ if iterations == 0 => initial(part),
        (Participants::Others, _) => from(roots.last_other()),
        (Participants::Root, _) if times == 0 => initial(part),
        (Participants::Root, Some(_)) if reduces => {
            // Each iteration combines the contributions of all other ranks with the result.
            let contributors = Contributors::first(ranks).repeated_but(times, rank);
            if !reduction(part).is_known(contributors) {
                return None;
            }
            let content = Content::reduced(part, 0, contributors);
            vec![ExpectedRange { range: 0..part.bytes, content, arrives: true }]
        }
        (Participants::Everyone, Some(Participants::Root)) => from(roots.last_other()),
        (Participants::Everyone, Some(_)) if reduces && iterations > 1 => return None,
        (Participants::Everyone, Some(_)) if exchanges && iterations.is_multiple_of(2) => input(part),
        _ => arrived(part, roots.last()),
    })
}

/// Returns what a rank sends, from either buffer.
fn input(part: &Part) -> Vec<ExpectedRange> {
    let Part { rank, ranks, ref neighbours, .. } = *part;
    let content = |slot: u64| match part.flow.reduces {
        ReductionScope::Nothing => Content::sent(rank, slot),
        _ => Content::reduced(part, slot, Contributors::one(rank)),
    };
    let expected = |range, slot| ExpectedRange { range, content: content(slot), arrives: true };
    let blocks = part.outgoing().into_iter();
    match (part.flow.sends.blocks, part.flow.receives.blocks) {
        (Blocks::One, Blocks::Portion) => {
            (0..ranks).map(|to| expected(part.portion(to), u64::from(to))).collect()
        }
        (Blocks::Neighbours, _) => {
            let to = |to: &Option<u32>| u64::from(to.unwrap_or(ranks));
            blocks.zip(&neighbours.destinations).map(|(block, rank)| expected(block, to(rank))).collect()
        }
        _ => blocks.zip(0..).map(|(block, slot)| expected(block, slot)).collect(),
    }
}

/// Returns the initial content of the receive buffer: the expected data with all bits flipped, and the input if in place.
fn initial(part: &Part) -> Vec<ExpectedRange> {
    let rank = part.rank;
    let flip = |s: ExpectedRange| ExpectedRange { content: Content { flipped: true, ..s.content }, ..s };
    let mut ranges: Vec<ExpectedRange> =
        arrived(part, part.root.first().0).into_iter().map(|s| if s.arrives { flip(s) } else { s }).collect();
    if part.in_place {
        match (part.flow.sends.blocks, part.flow.receives.blocks) {
            _ if part.flow.sends.who == Participants::Root => {}
            (Blocks::One, Blocks::Ranks) => ranges[rank as usize].content = Content::sent(rank, 0),
            _ => ranges = input(part),
        }
    }
    ranges
}

/// Returns the content of the receive buffer after one iteration with the given root.
fn arrived(part: &Part, root: u32) -> Vec<ExpectedRange> {
    let Part { rank, ranks, bytes, ref neighbours, .. } = *part;
    let blocks = part.incoming().into_iter();
    let me = u64::from(rank);
    let all = |range, content| vec![ExpectedRange { range, content, arrives: true }];
    let first = |slot, count| Content::reduced(part, slot, Contributors::first(count));
    // A message to this rank alone has the slot of its rank number.
    let slot = if part.flow.sends.blocks == Blocks::One { 0 } else { me };
    match (part.flow.reduces, part.flow.receives.blocks) {
        (ReductionScope::All, Blocks::Portion) => {
            let Range { start, end } = part.portion(rank);
            all(0..end - start, first(me, ranks))
        }
        (ReductionScope::All, _) => all(0..bytes, first(slot, ranks)),
        (ReductionScope::Inclusive, _) => all(0..bytes, first(0, rank + 1)),
        // MPI 4.1, 6.11.2: undefined on the first rank.
        (ReductionScope::Exclusive, _) if rank == 0 => Vec::new(),
        (ReductionScope::Exclusive, _) => all(0..bytes, first(0, rank)),
        (ReductionScope::Nothing, Blocks::One) => blocks
            .map(|range| ExpectedRange { range, content: Content::sent(root, slot), arrives: true })
            .collect(),
        (ReductionScope::Nothing, Blocks::Ranks) => {
            let from =
                |(range, from)| ExpectedRange { range, content: Content::sent(from, slot), arrives: true };
            blocks.zip(0..).map(from).collect()
        }
        (ReductionScope::Nothing, Blocks::Neighbours) => {
            let from = |(range, from): (Range<u64>, &Option<u32>)| ExpectedRange {
                range,
                content: Content::sent(from.unwrap_or(rank), slot),
                arrives: from.is_some(),
            };
            blocks.zip(&neighbours.sources).map(from).collect()
        }
        (ReductionScope::Nothing, _) => Vec::new(),
    }
}

/// Roots of iterations 0, 1, ...
#[derive(Debug, Clone, Copy)]
struct RootHistory {
    root: Root,
    rank: u32,
    ranks: u32,
    iterations: u64,
}

impl RootHistory {
    /// Returns the last root, or the first before any iteration.
    fn last(self) -> u32 {
        match self.root {
            Root::Fixed(root) => root.0,
            Root::Rotating => (self.iterations.saturating_sub(1) % u64::from(self.ranks)) as u32,
        }
    }

    /// Returns the last root that was another rank.
    fn last_other(self) -> Option<u32> {
        let before = RootHistory { iterations: self.iterations.saturating_sub(1), ..self };
        match (self.last(), self.root) {
            (root, _) if root != self.rank => Some(root),
            (_, Root::Rotating) if self.iterations > 1 && self.ranks > 1 => Some(before.last()),
            _ => None,
        }
    }

    /// Returns how many times this rank was root.
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
