//! Verification of blocks whose order in a file is not known: each block of each rank must be found exactly once.

use std::collections::BTreeMap;

use ombx_core::{
    benchmark::payload::{Check, Fill, Slots},
    checksum::checksum,
    error::Result,
    unit::Rank,
};
use ombx_mpi::file::File;

/// Rank that a wrong block names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    /// The rank before the writer, which reads back what the writer has written where blocks have places.
    BeforeWriter,
    /// The rank that has read it.
    ThisRank,
}

/// Blocks without a counterpart, by their numbers among those of all ranks.
#[derive(Debug, PartialEq, Eq)]
struct Unmatched {
    /// Blocks that no rank has found.
    missing: Vec<usize>,
    /// Blocks that no rank has written.
    wrong: Vec<usize>,
}

/// Checks that the incoming blocks of all ranks are their outgoing blocks, in any order. Collective.
///
/// Blocks are compared by checksums. Equal blocks, of which there may be some if they have few bytes, are counted.
pub(crate) fn check(file: &mut File, slots: Slots, fill: Fill, reader: Reader) -> Result<Check> {
    let sums = |buffer: &[u8]| messages(slots, buffer).map(checksum).collect::<Vec<u64>>();
    let (outgoing, incoming) = (sums(file.outgoing()), sums(file.incoming()));
    let (written, found) = (file.gather(&outgoing)?, file.gather(&incoming)?);
    let Unmatched { missing, wrong } = unmatched(&written, &found);
    let (each, rank, ranks) = (slots.count as usize, file.rank(), file.ranks());
    let is_mine = |block: &usize| block / each == rank.0 as usize;
    let mine: Vec<&[u8]> = messages(slots, file.incoming()).collect();
    let checks = wrong.into_iter().filter(is_mine).map(|block| {
        let (block, mut expected) = (mine[block % each], vec![0; slots.bytes as usize]);
        let mut differing = |owner: Rank, slot: u64| {
            fill.words(owner, slot).write(&mut expected);
            expected.iter().zip(block).filter(|(a, b)| a != b).count()
        };
        let owners = missing.iter().map(|block| (Rank((block / each) as u32), (block % each) as u64));
        // There are as many missing blocks as wrong ones. The most similar is the one that was changed.
        let likely = owners.min_by_key(|(owner, slot)| differing(*owner, *slot));
        let (owner, slot) = likely.unwrap_or((rank, 0));
        let named = match reader {
            Reader::BeforeWriter => Rank((owner.0 + ranks - 1) % ranks),
            Reader::ThisRank => rank,
        };
        fill.words(owner, slot).check(block, (named, slot))
    });
    Ok(checks.fold(Check::Passed, Check::and))
}

/// Returns the messages of a buffer.
fn messages(slots: Slots, buffer: &[u8]) -> impl Iterator<Item = &[u8]> {
    let parts = buffer.chunks_exact(slots.stride as usize).take(slots.count as usize);
    parts.map(move |part| &part[..slots.bytes as usize])
}

/// Returns the blocks, by their checksums, that were written and not found, and those that were found and not written.
fn unmatched(written: &[u64], found: &[u64]) -> Unmatched {
    let mut places: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (block, sum) in written.iter().enumerate().rev() {
        places.entry(*sum).or_default().push(block);
    }
    let mut take = |sum: &u64| places.get_mut(sum).and_then(Vec::pop).is_some();
    let wrong = found.iter().enumerate().filter(|(_, sum)| !take(sum)).map(|(block, _)| block).collect();
    let mut missing: Vec<usize> = places.into_values().flatten().collect();
    missing.sort_unstable();
    Unmatched { missing, wrong }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_block_is_found_once() {
        let of = |written: &[u64], found: &[u64]| {
            let Unmatched { missing, wrong } = unmatched(written, found);
            (missing, wrong)
        };
        assert_eq!(of(&[5, 6, 7, 8], &[8, 6, 5, 7]), (vec![], vec![]));
        assert_eq!(of(&[5, 6, 5], &[6, 5, 5]), (vec![], vec![]), "equal blocks");
        assert_eq!(of(&[5, 6, 7], &[7, 9, 5]), (vec![1], vec![1]), "a wrong block");
        assert_eq!(of(&[5, 6, 7], &[7, 7, 5]), (vec![1], vec![1]), "a block that is found twice");
        assert_eq!(of(&[5, 5, 7], &[7, 7, 5]), (vec![0], vec![1]), "a block of two that is lost");
    }
}
