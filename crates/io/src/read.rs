//! `io.read`: every rank reads a block from a file.

use std::{collections::BTreeMap, marker::PhantomData};

use ombx_core::{
    benchmark::{
        Benchmark, Method, Metric, ParameterValue,
        payload::{Fill, MessageId, Slots},
    },
    codec::checksum,
    error::Result,
    measure::session::Session,
    pacing::{clock_sync::SyncHosts, paced_kernel::run_paced, start::Pacing},
    result::Check,
    unit::Rank,
};
use ombx_mpi::{
    Mesh,
    file::{
        Call, Direction, File, Files, Order, Pointer, Read, ReadAll, ReadAt, ReadAtAll, ReadOrdered,
        ReadShared,
    },
};

use crate::options::{self, Access, FileKernel, FileOperation};

ombx_core::inventory::submit!(
    options::of_files(
        Benchmark::custom(
            "io.read",
            "a block that every rank reads from a file",
            Metric::Bandwidth,
            METHOD,
            run
        ),
        &[Pacing::PARAMETER, SyncHosts::PARAMETER, Pointer::PARAMETER, Access::PARAMETER, Files::PARAMETER],
    )
    .iterates(&["MPI_File_read"], "ranks S / t of the slowest rank")
);

const METHOD: Method = Method {
    timed: "a read of every rank. The call is MPI_File_read, with --pointer explicit MPI_File_read_at, \
            with --pointer shared MPI_File_read_shared, and with --access collective MPI_File_read_all, \
            MPI_File_read_at_all or MPI_File_read_ordered. Data that the system keeps in memory is not \
            read from the storage device again",
    untimed: "creating and writing the file; moving the pointer to the start of the file and synchronising \
              the ranks before each sample; checking",
    like: "S_Read_indv, P_Read_indv, P_Read_priv, C_Read_indv of IMB-IO and the same with expl and shared, \
           which read on from where the repetition before has ended",
};

/// Runs each combination of pointer and access. They are types, so that the timed loop has no branch.
fn run(session: &mut Session<'_>) -> Result<()> {
    session.split(|session, pointer| {
        session.split(|session, access| match (pointer, access) {
            (Pointer::Individual, Access::Independent) => run_paced::<Reading<Read>, Mesh>(session),
            (Pointer::Individual, Access::Collective) => run_paced::<Reading<ReadAll>, Mesh>(session),
            (Pointer::Explicit, Access::Independent) => run_paced::<Reading<ReadAt>, Mesh>(session),
            (Pointer::Explicit, Access::Collective) => run_paced::<Reading<ReadAtAll>, Mesh>(session),
            (Pointer::Shared, Access::Independent) => run_paced::<Reading<ReadShared>, Mesh>(session),
            (Pointer::Shared, Access::Collective) => run_paced::<Reading<ReadOrdered>, Mesh>(session),
            // Such calls start an access. Cases with them do not exist.
            (_, Access::Split) => Ok(()),
        })
    })
}

type Reading<C> = FileKernel<OneRead<C>>;

/// A read of one block.
struct OneRead<C>(PhantomData<C>);

impl<C: Call> FileOperation for OneRead<C> {
    const METRIC: Metric = Metric::Bandwidth;
    const METHOD: Method = METHOD;
    const DIRECTION: Direction = C::DIRECTION;
    const ORDER: Order = C::ORDER;

    #[inline(always)]
    fn iterate(file: &File, _: u32) -> Result<()> {
        C::call(file, 0)
    }
}

/// Most wrong blocks that are compared with a missing one.
const MOST_COMPARED: usize = 16;

/// Blocks without a counterpart, by their numbers among those of all ranks.
#[derive(Debug, PartialEq, Eq)]
struct Unmatched {
    /// Blocks that no rank has found.
    missing: Vec<usize>,
    /// Blocks that no rank has written.
    wrong: Vec<usize>,
}

/// Checks that the incoming blocks of all ranks, which they have read at their places, are the outgoing blocks in any order. The rank
/// before the writer reports a wrong block, as where blocks have places. Collective.
pub(crate) fn check_written(file: &mut File, slots: Slots, fill: Fill) -> Result<Check> {
    let Unmatched { missing, wrong } = compare(file, slots)?;
    let (each, writer) = (slots.count as usize, Rank((file.rank().0 + 1) % file.ranks()));
    let mut mine = missing.into_iter().filter(|block| block / each == writer.0 as usize);
    let Some(slot) = mine.next().map(|block| (block % each) as u64) else { return Ok(Check::Passed) };
    let mut found: Vec<Vec<u8>> = Vec::new();
    for block in wrong.into_iter().take(MOST_COMPARED) {
        file.read_place(Rank((block / each) as u32), (block % each) as u32)?;
        found.extend(messages(slots, file.incoming()).next().map(<[u8]>::to_vec));
    }
    let mut expected = vec![0; slots.bytes as usize];
    fill.words(writer, slot).write(&mut expected);
    // The most similar block is the one that was changed.
    let likely = found.iter().min_by_key(|block| differing(&expected, block));
    Ok(likely.map_or(Check::Passed, |block| {
        fill.words(writer, slot).check(block, MessageId { rank: file.rank(), slot })
    }))
}

/// Checks that the incoming blocks of all ranks, which their calls have read, are the outgoing blocks in any order. The rank that has
/// read a wrong block reports it. Collective.
pub(crate) fn check_read(file: &mut File, slots: Slots, fill: Fill) -> Result<Check> {
    let Unmatched { missing, wrong } = compare(file, slots)?;
    let (each, rank) = (slots.count as usize, file.rank());
    let mut mine = wrong.into_iter().filter(|block| block / each == rank.0 as usize);
    let Some(block) = mine.next().map(|block| block % each) else { return Ok(Check::Passed) };
    let Some(found) = messages(slots, file.incoming()).nth(block) else { return Ok(Check::Passed) };
    let mut expected = vec![0; slots.bytes as usize];
    let owners = missing.into_iter().take(MOST_COMPARED);
    let owners = owners.map(|block| (Rank((block / each) as u32), (block % each) as u64));
    let likely = owners.min_by_key(|(owner, slot)| {
        fill.words(*owner, *slot).write(&mut expected);
        differing(&expected, found)
    });
    // There are as many missing blocks as wrong ones.
    let (owner, slot) = likely.unwrap_or((rank, 0));
    Ok(fill.words(owner, slot).check(found, MessageId { rank, slot }))
}

/// Returns the blocks of all ranks without a counterpart. Blocks are compared by checksums. Equal blocks, of which there may be some
/// if they have few bytes, are counted. Collective.
fn compare(file: &mut File, slots: Slots) -> Result<Unmatched> {
    let sums = |buffer: &[u8]| messages(slots, buffer).map(checksum).collect::<Vec<u64>>();
    let (outgoing, incoming) = (sums(file.outgoing()), sums(file.incoming()));
    Ok(unmatched(&file.gather(&outgoing)?, &file.gather(&incoming)?))
}

/// Returns how many bytes of two blocks differ.
fn differing(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).filter(|(a, b)| a != b).count()
}

/// Returns the messages of a buffer.
fn messages(slots: Slots, buffer: &[u8]) -> impl Iterator<Item = &[u8]> {
    slots.messages(buffer.len()).map(move |(_, range)| &buffer[range])
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
mod unordered_tests {
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
        assert_eq!(
            of(&[5, 5, 7], &[7, 7, 5]),
            (vec![1], vec![1]),
            "the first block found stands for the first of two equal ones"
        );
    }
}
