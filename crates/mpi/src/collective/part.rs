//! One rank's part in an operation: how many bytes it sends and receives, and where its buffers are needed.

use std::ops::Range;

use ombx_core::{benchmark::root::Root, unit::Rank};

use super::{
    shape::{Blocks, Shape, Share, Who},
    topology::Neighbours,
};
use crate::ext;

/// Where a rank stands in an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// This rank.
    pub rank: u32,
    /// How many there are.
    pub ranks: u32,
    /// Bytes of a block.
    pub bytes: u64,
    /// The root, where there is one.
    pub root: Root,
    /// Whether data that is sent lies where it is received.
    pub in_place: bool,
    /// Neighbours, where there are some.
    pub neighbours: Neighbours,
}

/// A shape laid over a rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The operation.
    pub shape: Shape,
    /// The rank.
    pub place: Place,
}

/// What a rank is in an iteration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Root,
    Other,
}

impl Part {
    /// Bytes of its buffer for what goes out; none where it never sends from there.
    pub fn sends(&self) -> u64 {
        self.roles().map(|role| self.sends_as(role)).max().unwrap_or(0)
    }

    /// Bytes of its buffer for what comes in.
    pub fn receives(&self) -> u64 {
        self.roles().map(|role| self.receives_as(role)).max().unwrap_or(0)
    }

    /// Bytes that arrive on it in an iteration, in the first one if the root rotates.
    pub fn arrives(&self) -> u64 {
        match self.shape.receives {
            Share { blocks: Blocks::Neighbours, .. } => {
                self.place.neighbours.sources.iter().flatten().count() as u64 * self.place.bytes
            }
            share => self.extent(share, self.role(self.place.root.first())),
        }
    }

    /// The place of each rank's portion of a block, in bytes: whole elements, the first ranks have one more.
    pub fn portion(&self, rank: u32) -> Range<u64> {
        let Place { bytes, ranks, .. } = self.place;
        let width = ext::element_width(bytes);
        let (each, more) = (bytes / width / u64::from(ranks), bytes / width % u64::from(ranks));
        let start = |rank: u64| (rank * each + rank.min(more)) * width;
        start(u64::from(rank))..start(u64::from(rank) + 1)
    }

    /// Bytes of an element in reductions.
    pub fn width(&self) -> usize {
        ext::element_width(self.place.bytes) as usize
    }

    /// Whether data that this rank sends in a role lies where it receives; the root of a scatter, where it sends from.
    pub(super) fn is_in_place(&self, role: Role) -> bool {
        self.place.in_place
            && match self.shape.in_place() {
                Some(Who::Everyone) => true,
                Some(Who::Root) => role == Role::Root,
                _ => false,
            }
    }

    pub(super) fn role(&self, root: Rank) -> Role {
        if root.0 == self.place.rank { Role::Root } else { Role::Other }
    }

    /// Every role that it may have.
    fn roles(&self) -> impl Iterator<Item = Role> + '_ {
        let has = |role: &Role| match self.place.root {
            Root::Fixed(root) => *role == self.role(root),
            Root::Rotating => *role == Role::Root || self.place.ranks > 1,
        };
        [Role::Root, Role::Other].into_iter().filter(has)
    }

    fn sends_as(&self, role: Role) -> u64 {
        match self.is_in_place(role) && self.shape.sends.who == Who::Everyone {
            true => 0,
            false => self.extent(self.shape.sends, role),
        }
    }

    fn receives_as(&self, role: Role) -> u64 {
        let Shape { sends, receives, .. } = self.shape;
        match (self.is_in_place(role), sends.who) {
            (true, Who::Everyone) => self.extent(receives, role).max(self.extent(sends, role)),
            (true, _) => 0,
            (false, _) => self.extent(receives, role),
        }
    }

    fn extent(&self, share: Share, role: Role) -> u64 {
        let Place { rank, ranks, bytes, .. } = self.place;
        let most = self.place.neighbours.sources.len().max(self.place.neighbours.destinations.len());
        let has = match share.who {
            Who::Everyone => true,
            Who::Root => role == Role::Root,
            Who::Others => role == Role::Other,
        };
        let blocks = match share.blocks {
            Blocks::None => 0,
            Blocks::One => 1,
            Blocks::Ranks => u64::from(ranks),
            Blocks::Neighbours => most as u64,
            Blocks::Portion => {
                let Range { start, end } = self.portion(rank);
                return if has { end - start } else { 0 };
            }
        };
        if has { blocks * bytes } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::Topology;

    const S: u64 = 100;

    fn part(shape: Shape, rank: u32, ranks: u32, root: Root, in_place: bool) -> Part {
        let neighbours = match shape.has_neighbours() {
            true => Topology::Graph.neighbours(rank, ranks),
            false => Neighbours::default(),
        };
        Part { shape, place: Place { rank, ranks, bytes: S, root, in_place, neighbours } }
    }

    fn memory(shape: Shape, rank: u32, ranks: u32) -> (u64, u64) {
        let part = part(shape, rank, ranks, Root::default(), false);
        (part.sends(), part.receives())
    }

    #[test]
    fn every_rank_has_what_it_sends_and_receives_and_no_more() {
        for n in 1..=8 {
            let all = u64::from(n) * S;
            for rank in 0..n {
                let is_root = rank == 0;
                let at_root = |bytes: u64| if is_root { bytes } else { 0 };
                let degree = 2.min(u64::from(n) - 1) * S;
                let expected = [
                    (Shape::BARRIER, (0, 0)),
                    (Shape::BCAST, (at_root(S), S - at_root(S))),
                    (Shape::GATHER, (S, at_root(all))),
                    (Shape::SCATTER, (at_root(all), S)),
                    (Shape::ALLGATHER, (S, all)),
                    (Shape::ALLTOALL, (all, all)),
                    (Shape::REDUCE, (S, at_root(S))),
                    (Shape::ALLREDUCE, (S, S)),
                    (Shape::REDUCE_SCATTER_BLOCK, (all, S)),
                    (Shape::SCAN, (S, S)),
                    (Shape::EXSCAN, (S, S)),
                    (Shape::NEIGHBOR_ALLGATHER, (S, degree)),
                    (Shape::NEIGHBOR_ALLTOALL, (degree, degree)),
                ];
                for (shape, bytes) in expected {
                    assert_eq!(memory(shape, rank, n), bytes, "{shape:?}, rank {rank} of {n}");
                }
            }
        }
    }

    #[test]
    fn portions_are_whole_elements_that_make_up_the_block() {
        for n in 1..=8 {
            let part = part(Shape::REDUCE_SCATTER, 0, n, Root::default(), false);
            let portions: Vec<Range<u64>> = (0..n).map(|rank| part.portion(rank)).collect();
            assert_eq!((portions[0].start, portions[n as usize - 1].end), (0, S));
            assert!(portions.windows(2).all(|two| two[0].end == two[1].start));
            let lengths: Vec<u64> = portions.iter().map(|p| p.end - p.start).collect();
            assert!(lengths.iter().all(|length| length % 4 == 0 && lengths[0] - length <= 4), "{lengths:?}");
        }
    }

    #[test]
    fn what_lies_in_place_needs_one_buffer() {
        let with = |shape, rank, root| {
            let part = part(shape, rank, 4, root, true);
            (part.sends(), part.receives())
        };
        let zero = Root::default();
        assert_eq!(with(Shape::ALLREDUCE, 1, zero), (0, S));
        assert_eq!(with(Shape::REDUCE_SCATTER, 3, zero), (0, S));
        assert_eq!(with(Shape::REDUCE_SCATTER_BLOCK, 3, zero), (0, 4 * S));
        assert_eq!((with(Shape::GATHER, 0, zero), with(Shape::GATHER, 1, zero)), ((0, 4 * S), (S, 0)));
        assert_eq!((with(Shape::SCATTER, 0, zero), with(Shape::SCATTER, 1, zero)), ((4 * S, 0), (0, S)));
    }

    #[test]
    fn who_may_be_root_has_the_buffers_of_both() {
        for rank in 0..4 {
            let part = part(Shape::GATHER, rank, 4, Root::Rotating, false);
            assert_eq!((part.sends(), part.receives()), (S, 4 * S));
            let part = self::part(Shape::BCAST, rank, 4, Root::Fixed(Rank(2)), false);
            assert_eq!((part.sends(), part.receives()), if rank == 2 { (S, 0) } else { (0, S) });
        }
    }

    #[test]
    fn what_arrives_is_counted_once() {
        let total =
            |shape| (0..4).map(|rank| part(shape, rank, 4, Root::default(), false).arrives()).sum::<u64>();
        assert_eq!(total(Shape::BCAST), 3 * S);
        assert_eq!(total(Shape::GATHER), 4 * S);
        assert_eq!(total(Shape::ALLTOALL), 16 * S);
        assert_eq!(total(Shape::REDUCE_SCATTER), S);
        assert_eq!(total(Shape::NEIGHBOR_ALLGATHER), 8 * S);
    }
}
