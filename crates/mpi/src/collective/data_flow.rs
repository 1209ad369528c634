//! The data flow of a collective operation: the blocks that ranks send, receive and reduce.

use ombx_core::benchmark::BusTraffic;

/// The blocks that each rank sends and receives, and the ranks whose data is reduced. It determines the bytes per rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataFlow {
    /// The data that ranks send.
    pub sends: Share,
    /// The data that ranks receive.
    pub receives: Share,
    /// The ranks whose data is reduced into a result.
    pub reduces: ReductionScope,
    /// Whether the call takes arrays of counts and displacements, as those with a name in v or w do. The largest displacement
    /// must fit an `int`.
    pub vector: bool,
}

/// The number of blocks of the message size on some ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// The ranks that have these blocks.
    pub who: Participants,
    /// Number of blocks on each of these ranks.
    pub blocks: Blocks,
}

/// The ranks that send or receive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Participants {
    /// All ranks.
    Everyone,
    /// The root only.
    Root,
    /// All ranks except the root.
    Others,
}

/// A number of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blocks {
    /// No block.
    None,
    /// One block.
    One,
    /// One block per rank.
    Ranks,
    /// One block per neighbour.
    Neighbours,
    /// A rank's portion of one block, in whole elements. The first ranks get one more where the number is not divisible.
    Portion,
}

/// The ranks whose data is reduced into a rank's result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReductionScope {
    /// None: the operation moves data.
    Nothing,
    /// All ranks.
    All,
    /// The ranks up to and including the receiving rank, as in `MPI_Scan`.
    Inclusive,
    /// The ranks before the receiving rank, as in `MPI_Exscan`. The first rank gets no result.
    Exclusive,
}

const fn share(who: Participants, blocks: Blocks) -> Share {
    Share { who, blocks }
}

const fn moves(sends: Share, receives: Share) -> DataFlow {
    DataFlow { sends, receives, reduces: ReductionScope::Nothing, vector: false }
}

impl DataFlow {
    /// No data moves.
    pub const BARRIER: DataFlow =
        moves(share(Participants::Everyone, Blocks::None), share(Participants::Everyone, Blocks::None));
    /// The root's block goes to all other ranks.
    pub const BCAST: DataFlow =
        moves(share(Participants::Root, Blocks::One), share(Participants::Others, Blocks::One));
    /// Each rank's block goes to the root.
    pub const GATHER: DataFlow =
        moves(share(Participants::Everyone, Blocks::One), share(Participants::Root, Blocks::Ranks));
    /// The root sends a block to each rank.
    pub const SCATTER: DataFlow =
        moves(share(Participants::Root, Blocks::Ranks), share(Participants::Everyone, Blocks::One));
    /// Each rank's block goes to all ranks.
    pub const ALLGATHER: DataFlow =
        moves(share(Participants::Everyone, Blocks::One), share(Participants::Everyone, Blocks::Ranks));
    /// Each rank sends a different block to each rank.
    pub const ALLTOALL: DataFlow =
        moves(share(Participants::Everyone, Blocks::Ranks), share(Participants::Everyone, Blocks::Ranks));
    /// Each rank's block goes to its neighbours.
    pub const NEIGHBOR_ALLGATHER: DataFlow =
        moves(share(Participants::Everyone, Blocks::One), share(Participants::Everyone, Blocks::Neighbours));
    /// Each rank sends a different block to each neighbour.
    pub const NEIGHBOR_ALLTOALL: DataFlow = moves(
        share(Participants::Everyone, Blocks::Neighbours),
        share(Participants::Everyone, Blocks::Neighbours),
    );
    /// The sum of all ranks' blocks goes to the root.
    pub const REDUCE: DataFlow =
        moves(share(Participants::Everyone, Blocks::One), share(Participants::Root, Blocks::One)).all();
    /// The sum of all ranks' blocks goes to all ranks.
    pub const ALLREDUCE: DataFlow =
        moves(share(Participants::Everyone, Blocks::One), share(Participants::Everyone, Blocks::One)).all();
    /// Each rank gets its portion of the sum of all ranks' blocks.
    pub const REDUCE_SCATTER: DataFlow =
        moves(share(Participants::Everyone, Blocks::One), share(Participants::Everyone, Blocks::Portion))
            .all();
    /// Each rank has a block per rank, and rank `r` gets the sum of all blocks `r`.
    pub const REDUCE_SCATTER_BLOCK: DataFlow =
        moves(share(Participants::Everyone, Blocks::Ranks), share(Participants::Everyone, Blocks::One)).all();
    /// Each rank gets the sum of the blocks of the ranks up to itself.
    pub const SCAN: DataFlow = DataFlow { reduces: ReductionScope::Inclusive, ..DataFlow::ALLREDUCE };
    /// Each rank gets the sum of the blocks of the ranks before it.
    pub const EXSCAN: DataFlow = DataFlow { reduces: ReductionScope::Exclusive, ..DataFlow::ALLREDUCE };

    const fn all(self) -> DataFlow {
        DataFlow { reduces: ReductionScope::All, ..self }
    }

    /// Returns the same data flow for a call that takes arrays of counts and displacements.
    #[must_use]
    pub const fn vector(self) -> DataFlow {
        DataFlow { vector: true, ..self }
    }

    /// Returns whether one rank is the root.
    pub const fn is_rooted(self) -> bool {
        !matches!((self.sends.who, self.receives.who), (Participants::Everyone, Participants::Everyone))
    }

    /// Returns whether the operation combines what ranks send.
    pub const fn reduces(self) -> bool {
        !matches!(self.reduces, ReductionScope::Nothing)
    }

    /// Returns whether ranks exchange data with neighbours only.
    pub const fn has_neighbours(self) -> bool {
        matches!(self.receives.blocks, Blocks::Neighbours)
    }

    /// Returns whether any data moves.
    pub const fn has_messages(self) -> bool {
        !matches!(self.sends.blocks, Blocks::None)
    }

    /// Returns what defines the algorithm and bus bandwidth for blocks of `bytes` bytes; `None` for operations to which nccl-tests gives
    /// none: barriers, scans and neighbourhoods.
    pub fn bus_traffic(self, bytes: u64, ranks: u32) -> Option<BusTraffic> {
        let others = f64::from(ranks.checked_sub(1).filter(|others| *others > 0)?) / f64::from(ranks);
        let whole = match (self.sends.blocks, self.receives.blocks) {
            (Blocks::None | Blocks::Neighbours, _) | (_, Blocks::Neighbours) => return None,
            (Blocks::Ranks, _) | (_, Blocks::Ranks) => bytes.saturating_mul(ranks.into()),
            _ => bytes,
        };
        let factor = match (self.reduces, self.sends, self.receives) {
            (ReductionScope::Inclusive | ReductionScope::Exclusive, ..) => return None,
            (ReductionScope::All, _, Share { who: Participants::Everyone, blocks: Blocks::One })
                if self.sends.blocks == Blocks::One =>
            {
                2.0 * others
            }
            (ReductionScope::All, _, Share { who: Participants::Root, .. }) => 1.0,
            (ReductionScope::Nothing, Share { who: Participants::Root, blocks: Blocks::One }, _) => 1.0,
            _ => others,
        };
        (whole > 0).then_some(BusTraffic { bytes: whole, factor })
    }

    /// Returns the ranks that may pass `MPI_IN_PLACE` (MPI 4.1, 6.2.3), which then send from their receive buffer.
    pub const fn in_place(self) -> Option<Participants> {
        match (self.sends.who, self.receives.who) {
            (Participants::Everyone, Participants::Everyone)
                if self.has_messages() && !self.has_neighbours() =>
            {
                Some(Participants::Everyone)
            }
            (Participants::Root, Participants::Everyone) | (Participants::Everyone, Participants::Root) => {
                Some(Participants::Root)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_place_follows_the_standard() {
        let everyone = [
            DataFlow::ALLGATHER,
            DataFlow::ALLTOALL,
            DataFlow::ALLREDUCE,
            DataFlow::REDUCE_SCATTER,
            DataFlow::SCAN,
        ];
        assert!(everyone.iter().all(|flow| flow.in_place() == Some(Participants::Everyone)));
        let root = [DataFlow::GATHER, DataFlow::SCATTER, DataFlow::REDUCE];
        assert!(root.iter().all(|flow| flow.in_place() == Some(Participants::Root) && flow.is_rooted()));
        let never =
            [DataFlow::BARRIER, DataFlow::BCAST, DataFlow::NEIGHBOR_ALLGATHER, DataFlow::NEIGHBOR_ALLTOALL];
        assert!(never.iter().all(|flow| flow.in_place().is_none()));
        assert!(DataFlow::BCAST.is_rooted() && !DataFlow::BARRIER.is_rooted());
    }

    #[test]
    fn bus_bandwidths_are_those_of_nccl_tests() {
        let of = |flow: DataFlow| flow.bus_traffic(100, 4).map(|bus| (bus.bytes, bus.factor));
        assert_eq!(of(DataFlow::ALLREDUCE), Some((100, 1.5)));
        assert_eq!(of(DataFlow::REDUCE_SCATTER), Some((100, 0.75)));
        for flow in [
            DataFlow::ALLGATHER,
            DataFlow::ALLTOALL.vector(),
            DataFlow::REDUCE_SCATTER_BLOCK,
            DataFlow::GATHER,
            DataFlow::SCATTER,
        ] {
            assert_eq!(of(flow), Some((400, 0.75)));
        }
        for flow in [DataFlow::BCAST, DataFlow::REDUCE] {
            assert_eq!(of(flow), Some((100, 1.0)));
        }
        for flow in [
            DataFlow::BARRIER,
            DataFlow::SCAN,
            DataFlow::EXSCAN,
            DataFlow::NEIGHBOR_ALLGATHER,
            DataFlow::NEIGHBOR_ALLTOALL,
        ] {
            assert_eq!(of(flow), None);
        }
        assert_eq!(DataFlow::ALLREDUCE.bus_traffic(100, 1), None);
    }
}
