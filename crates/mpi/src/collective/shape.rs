//! What a collective operation moves: how much who sends and receives, whether there is a root, what is reduced.

/// An operation in one line; bytes per rank follow from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// What goes out.
    pub sends: Share,
    /// What comes in.
    pub receives: Share,
    /// What becomes of the ranks' data.
    pub reduces: Reduces,
    /// Whether the call takes a count and a place for each block, in an `int` from the start of the buffer.
    pub listed: bool,
}

/// Who has how many blocks of a message's size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Who.
    pub who: Who,
    /// How many.
    pub blocks: Blocks,
}

/// Which ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// All.
    Everyone,
    /// The root alone.
    Root,
    /// All but the root.
    Others,
}

/// How many blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blocks {
    /// None.
    None,
    /// One.
    One,
    /// One for each rank.
    Ranks,
    /// One for each neighbour.
    Neighbours,
    /// A rank's part of one, whole elements; the first ranks have one more where they cannot have as many.
    Portion,
}

/// Whose data is added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reduces {
    /// Nobody's: data is moved.
    Nothing,
    /// Of all ranks.
    All,
    /// Of the ranks up to this one.
    UpTo,
    /// Of the ranks before this one; the first gets nothing.
    Before,
}

const fn share(who: Who, blocks: Blocks) -> Share {
    Share { who, blocks }
}

const fn moves(sends: Share, receives: Share) -> Shape {
    Shape { sends, receives, reduces: Reduces::Nothing, listed: false }
}

impl Shape {
    /// Nothing is moved.
    pub const BARRIER: Shape = moves(share(Who::Everyone, Blocks::None), share(Who::Everyone, Blocks::None));
    /// The root's block goes to all others.
    pub const BCAST: Shape = moves(share(Who::Root, Blocks::One), share(Who::Others, Blocks::One));
    /// Everyone's block goes to the root.
    pub const GATHER: Shape = moves(share(Who::Everyone, Blocks::One), share(Who::Root, Blocks::Ranks));
    /// The root has a block for everyone.
    pub const SCATTER: Shape = moves(share(Who::Root, Blocks::Ranks), share(Who::Everyone, Blocks::One));
    /// Everyone's block goes to everyone.
    pub const ALLGATHER: Shape =
        moves(share(Who::Everyone, Blocks::One), share(Who::Everyone, Blocks::Ranks));
    /// Everyone has a block for everyone.
    pub const ALLTOALL: Shape =
        moves(share(Who::Everyone, Blocks::Ranks), share(Who::Everyone, Blocks::Ranks));
    /// Everyone's block goes to its neighbours.
    pub const NEIGHBOR_ALLGATHER: Shape =
        moves(share(Who::Everyone, Blocks::One), share(Who::Everyone, Blocks::Neighbours));
    /// Everyone has a block for each neighbour.
    pub const NEIGHBOR_ALLTOALL: Shape =
        moves(share(Who::Everyone, Blocks::Neighbours), share(Who::Everyone, Blocks::Neighbours));
    /// The sum of everyone's block goes to the root.
    pub const REDUCE: Shape = moves(share(Who::Everyone, Blocks::One), share(Who::Root, Blocks::One)).all();
    /// The sum of everyone's block goes to everyone.
    pub const ALLREDUCE: Shape =
        moves(share(Who::Everyone, Blocks::One), share(Who::Everyone, Blocks::One)).all();
    /// The sum of everyone's block goes to everyone in parts.
    pub const REDUCE_SCATTER: Shape =
        moves(share(Who::Everyone, Blocks::One), share(Who::Everyone, Blocks::Portion)).all();
    /// Of the sums of everyone's blocks each goes to a rank.
    pub const REDUCE_SCATTER_BLOCK: Shape =
        moves(share(Who::Everyone, Blocks::Ranks), share(Who::Everyone, Blocks::One)).all();
    /// The sum of the blocks of the ranks up to a rank goes to it.
    pub const SCAN: Shape = Shape { reduces: Reduces::UpTo, ..Shape::ALLREDUCE };
    /// The sum of the blocks of the ranks before a rank goes to it.
    pub const EXSCAN: Shape = Shape { reduces: Reduces::Before, ..Shape::ALLREDUCE };

    const fn all(self) -> Shape {
        Shape { reduces: Reduces::All, ..self }
    }

    /// The same by a call that takes a count and a place for each block.
    #[must_use]
    pub const fn listed(self) -> Shape {
        Shape { listed: true, ..self }
    }

    /// Whether there is a root.
    pub const fn is_rooted(self) -> bool {
        !matches!((self.sends.who, self.receives.who), (Who::Everyone, Who::Everyone))
    }

    /// Whether it needs ranks with neighbours.
    pub const fn has_neighbours(self) -> bool {
        matches!(self.receives.blocks, Blocks::Neighbours)
    }

    /// Whether ranks have messages at all.
    pub const fn has_messages(self) -> bool {
        !matches!(self.sends.blocks, Blocks::None)
    }

    /// Who can have `MPI_IN_PLACE`, if anybody (MPI 4.1, 6.2.3): what it sends lies where it receives.
    pub const fn in_place(self) -> Option<Who> {
        match (self.sends.who, self.receives.who) {
            (Who::Everyone, Who::Everyone) if self.has_messages() && !self.has_neighbours() => {
                Some(Who::Everyone)
            }
            (Who::Root, Who::Everyone) | (Who::Everyone, Who::Root) => Some(Who::Root),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_can_be_in_place_is_what_the_standard_says() {
        let everyone =
            [Shape::ALLGATHER, Shape::ALLTOALL, Shape::ALLREDUCE, Shape::REDUCE_SCATTER, Shape::SCAN];
        assert!(everyone.iter().all(|shape| shape.in_place() == Some(Who::Everyone)));
        let root = [Shape::GATHER, Shape::SCATTER, Shape::REDUCE];
        assert!(root.iter().all(|shape| shape.in_place() == Some(Who::Root) && shape.is_rooted()));
        let never = [Shape::BARRIER, Shape::BCAST, Shape::NEIGHBOR_ALLGATHER, Shape::NEIGHBOR_ALLTOALL];
        assert!(never.iter().all(|shape| shape.in_place().is_none()));
        assert!(Shape::BCAST.is_rooted() && !Shape::BARRIER.is_rooted());
    }
}
