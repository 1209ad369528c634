//! The arguments of a rank's collective calls, as MPI takes them.

use std::{
    ffi::{c_int, c_void},
    ops::Range,
};

use mpi::ffi;
use ombx_core::{
    benchmark::{ElementType, Imbalance, ReductionOp, Root, payload},
    error::Result,
    unit::Rank,
};

use crate::{
    Buffer, Handles,
    collective::{
        Neighbours,
        call::{Blocks, DataFlow, Participants, Share},
    },
    sys::{
        IN_PLACE,
        datatype::{self, DerivedDatatype},
    },
};

/// The arguments of a collective call. The caller keeps the buffers and the communicator alive.
#[derive(Debug)]
pub struct Arguments {
    pub(super) comm: ffi::MPI_Comm,
    pub(super) from: *const c_void,
    pub(super) to: *mut c_void,
    pub(super) count: c_int,
    pub(super) datatype: ffi::MPI_Datatype,
    pub(super) op: ffi::MPI_Op,
    pub(super) root: c_int,
    /// The blocks that this rank sends, and those that it receives, where the call takes arrays.
    pub(super) outgoing: Vectors,
    pub(super) incoming: Vectors,
}

/// Arrays of counts, displacements and datatypes of blocks.
#[derive(Debug)]
pub(super) struct Vectors {
    counts: Vec<c_int>,
    /// In elements of the datatype.
    displacements: Vec<c_int>,
    /// In bytes, for `MPI_Alltoallw`, which takes an `int`.
    starts: Vec<c_int>,
    /// In bytes, for `MPI_Neighbor_alltoallw`.
    byte_displacements: Vec<ffi::MPI_Aint>,
    datatypes: Vec<ffi::MPI_Datatype>,
}

impl Vectors {
    /// Returns the arrays of blocks of elements of `width` bytes.
    fn new(blocks: &[Range<u64>], datatype: ffi::MPI_Datatype, width: u64) -> Result<Vectors> {
        let ends = blocks.iter().map(|block| block.end).max().unwrap_or(0);
        // `MPI_Alltoallw` takes bytes as `int`.
        datatype::byte_count(ends)?;
        Ok(Vectors {
            counts: blocks.iter().map(|block| ((block.end - block.start) / width) as c_int).collect(),
            displacements: blocks.iter().map(|block| (block.start / width) as c_int).collect(),
            starts: blocks.iter().map(|block| block.start as c_int).collect(),
            byte_displacements: blocks.iter().map(|block| block.start as ffi::MPI_Aint).collect(),
            datatypes: vec![datatype; blocks.len()],
        })
    }

    pub(super) fn counts(&self) -> *const c_int {
        self.counts.as_ptr()
    }

    pub(super) fn displacements(&self) -> *const c_int {
        self.displacements.as_ptr()
    }

    pub(super) fn starts(&self) -> *const c_int {
        self.starts.as_ptr()
    }

    pub(super) fn byte_displacements(&self) -> *const ffi::MPI_Aint {
        self.byte_displacements.as_ptr()
    }

    pub(super) fn datatypes(&self) -> *const ffi::MPI_Datatype {
        self.datatypes.as_ptr()
    }
}

/// Send and receive address of a rank in a role.
#[derive(Debug, Clone, Copy)]
pub(super) struct Addresses {
    from: *const c_void,
    to: *mut c_void,
}

impl Addresses {
    pub(super) fn new(part: &Part, role: Role, from: &Buffer, to: &Buffer) -> Addresses {
        let (from, to) = (from.start().cast::<c_void>(), to.start().cast::<c_void>());
        let (sends, receives) = (part.flow.sends.who, part.flow.receives.who);
        match (part.is_in_place(role), sends) {
            (true, Participants::Root) => Addresses { from, to: IN_PLACE },
            (true, _) => Addresses { from: IN_PLACE, to },
            // A broadcast uses one address. On the root it is that of the send buffer.
            (false, _) if receives == Participants::Others && role == Role::Root => {
                Addresses { from, to: from }
            }
            (false, _) => Addresses { from, to },
        }
    }
}

impl Addresses {
    /// Returns the addresses of the copies at an offset. The address of an empty buffer, which no call uses, may be invalid.
    #[inline(always)]
    pub(super) fn moved(self, offset: usize) -> Addresses {
        let from =
            if self.from == IN_PLACE.cast_const() { self.from } else { self.from.wrapping_byte_add(offset) };
        let to = if self.to == IN_PLACE { self.to } else { self.to.wrapping_byte_add(offset) };
        Addresses { from, to }
    }
}

impl Arguments {
    /// Returns the arguments of a part, whose blocks have a derived datatype if there is one.
    pub(super) fn new(part: &Part, derived: Option<&DerivedDatatype>) -> Result<Arguments> {
        let (datatype, width) = match derived {
            Some(derived) => (derived.raw, (part.bytes / derived.elements.max(1)).max(1)),
            None => (datatype::handle(part.element), part.element.width()),
        };
        let portions = || (0..part.ranks).map(|rank| part.portion(rank)).collect();
        let [outgoing, incoming] = match part.flow {
            DataFlow { vector: false, .. } => Default::default(),
            DataFlow { receives: Share { blocks: Blocks::Portion, .. }, .. } => [Vec::new(), portions()],
            _ => [part.outgoing(), part.incoming()],
        };
        // The block that a rank has alone. Where it has several, they are equal or the call takes arrays.
        let alone = [&outgoing, &incoming].into_iter().find(|blocks| blocks.len() == 1);
        let bytes = match alone.filter(|_| part.flow.vector) {
            Some(blocks) => blocks[0].end,
            None => part.bytes,
        };
        let count = match derived {
            Some(derived) => derived.elements,
            None => datatype::elements(bytes, part.element)?,
        };
        // Parts of unequal blocks are whole elements, but the sizes of blocks are those of the user.
        if derived.is_none() {
            datatype::elements(part.bytes, part.element)?;
        }
        // SAFETY: these statics of mpi-sys are never written.
        let (none, op) = unsafe { (ffi::RSMPI_COMM_NULL, ffi::RSMPI_SUM) };
        Ok(Arguments {
            comm: none,
            from: std::ptr::null(),
            to: std::ptr::null_mut(),
            count: datatype::count(count)?,
            datatype,
            op,
            root: part.root.first().0 as c_int,
            outgoing: Vectors::new(&outgoing, datatype, width)?,
            incoming: Vectors::new(&incoming, datatype, width)?,
        })
    }

    /// Writes what the calls take.
    pub(super) fn describe(&self, handles: &mut Handles) {
        handles.comm = self.comm;
        (handles.outgoing, handles.incoming) = (self.from.cast_mut(), self.to);
        (handles.datatype, handles.op, handles.elements) = (self.datatype, self.op, self.count);
        // The arrays of a loop in C are for equal blocks, of which it sends as many as it receives.
        let blocks = if self.incoming.counts.len() > 1 { &self.incoming } else { &self.outgoing };
        handles.counts = blocks.counts();
        handles.displacements = blocks.displacements();
        handles.byte_displacements = blocks.byte_displacements();
        handles.datatypes = blocks.datatypes();
    }

    /// Sets the addresses of a role.
    #[inline(always)]
    pub(super) fn set_addresses(&mut self, addresses: Addresses) {
        (self.from, self.to) = (addresses.from, addresses.to);
    }
}

/// One rank's part in a collective operation: what it sends and receives, from which buffers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The data flow of the operation.
    pub flow: DataFlow,
    /// This rank's number.
    pub rank: u32,
    /// Number of ranks.
    pub ranks: u32,
    /// Bytes of a block, with gaps if it has any; the mean if blocks are not equal.
    pub bytes: u64,
    /// The gaps in a block, where the operation moves blocks of a derived datatype.
    pub gaps: Option<Gaps>,
    /// How unequal the blocks are, where the call takes arrays of counts and displacements.
    pub imbalance: Imbalance,
    /// The root, where the operation has one.
    pub root: Root,
    /// Whether ranks that may pass `MPI_IN_PLACE` do so.
    pub in_place: bool,
    /// The neighbours of this rank, where the operation has neighbours.
    pub neighbours: Neighbours,
    /// Type of the elements.
    pub element: ElementType,
    /// The reduction, where the operation reduces.
    pub op: ReductionOp,
}

/// A block of a derived datatype.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gaps {
    /// The parts of its payload, with gaps between them.
    pub blocks: payload::Blocks,
    /// Bytes of its payload.
    pub payload: u64,
}

/// Whether a rank is the root of an iteration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Root,
    Other,
}

impl Part {
    /// Returns the size of the send buffer in bytes; 0 if this rank never sends from it.
    pub fn send_bytes(&self) -> u64 {
        self.roles().map(|role| self.send_bytes_as(role)).max().unwrap_or(0)
    }

    /// Returns the size of the receive buffer in bytes.
    pub fn receive_bytes(&self) -> u64 {
        self.roles().map(|role| self.receive_bytes_as(role)).max().unwrap_or(0)
    }

    /// Returns the number of bytes that arrive on this rank in the first iteration.
    pub fn arriving_bytes(&self) -> u64 {
        match self.flow.receives {
            Share { blocks: Blocks::Neighbours, .. } => {
                let sources = &self.neighbours.sources;
                sources.iter().flatten().map(|from| self.block_bytes(*from, self.rank)).sum()
            }
            _ => self.received(self.role(self.root.first())),
        }
    }

    /// Returns the byte range of a rank's portion of a block. Portions are whole elements; the first ranks may have one more.
    pub fn portion(&self, rank: u32) -> Range<u64> {
        let width = self.element.width();
        let Range { start, end } = self.imbalance.range(self.bytes / width, rank, self.ranks);
        start * width..end * width
    }

    /// Returns the byte ranges of the blocks in the send buffer of a rank that sends.
    pub fn outgoing(&self) -> Vec<Range<u64>> {
        self.ranges(self.flow.sends.blocks, &self.neighbours.destinations, |to| {
            self.block_bytes(self.rank, to)
        })
    }

    /// Returns the byte ranges of the blocks in the receive buffer of a rank that receives.
    pub fn incoming(&self) -> Vec<Range<u64>> {
        self.ranges(self.flow.receives.blocks, &self.neighbours.sources, |from| {
            self.block_bytes(from, self.rank)
        })
    }

    /// Returns the byte ranges of blocks that lie one after the other, each as long as `bytes_of` the other rank.
    fn ranges(
        &self,
        blocks: Blocks,
        neighbours: &[Option<u32>],
        bytes_of: impl Fn(u32) -> u64,
    ) -> Vec<Range<u64>> {
        let lengths: Vec<u64> = match blocks {
            Blocks::None | Blocks::Portion => Vec::new(),
            // The block of this rank, from or to any other.
            Blocks::One => vec![bytes_of(self.rank)],
            Blocks::Ranks => (0..self.ranks).map(bytes_of).collect(),
            Blocks::Neighbours => neighbours.iter().map(|rank| rank.map_or(self.bytes, &bytes_of)).collect(),
        };
        let next = |start: &mut u64, length: u64| {
            let range = *start..*start + length;
            *start = range.end;
            Some(range)
        };
        lengths.into_iter().scan(0, next).collect()
    }

    /// Returns the bytes of the block that one rank sends to another.
    fn block_bytes(&self, from: u32, to: u32) -> u64 {
        let Part { bytes, ranks, imbalance, flow, .. } = *self;
        let width = self.element.width();
        let of = |block: u32| {
            let Range { start, end } = imbalance.range(bytes / width * u64::from(ranks), block, ranks);
            (end - start) * width
        };
        match (flow.sends.blocks, flow.receives.blocks) {
            _ if imbalance.is_none() || !flow.vector => bytes,
            (_, Blocks::Portion) => bytes,
            (Blocks::One, _) => of(from),
            (_, Blocks::One) => of(to),
            // Both ways the same, as MPI_IN_PLACE requires it.
            _ => of((from + to) % ranks),
        }
    }

    /// Returns whether this rank passes `MPI_IN_PLACE` in a role.
    pub(super) fn is_in_place(&self, role: Role) -> bool {
        self.in_place
            && match self.flow.in_place() {
                Some(Participants::Everyone) => true,
                Some(Participants::Root) => role == Role::Root,
                _ => false,
            }
    }

    pub(super) fn role(&self, root: Rank) -> Role {
        if root.0 == self.rank { Role::Root } else { Role::Other }
    }

    /// Returns every role that this rank has in some iteration.
    fn roles(&self) -> impl Iterator<Item = Role> + '_ {
        let has = |role: &Role| match self.root {
            Root::Fixed(root) => *role == self.role(root),
            Root::Rotating => *role == Role::Root || self.ranks > 1,
        };
        [Role::Root, Role::Other].into_iter().filter(has)
    }

    fn send_bytes_as(&self, role: Role) -> u64 {
        if self.is_in_place(role) && self.flow.sends.who == Participants::Everyone {
            0
        } else {
            self.sent(role)
        }
    }

    fn receive_bytes_as(&self, role: Role) -> u64 {
        match (self.is_in_place(role), self.flow.sends.who) {
            (true, Participants::Everyone) => self.received(role).max(self.sent(role)),
            (true, _) => 0,
            (false, _) => self.received(role),
        }
    }

    /// Returns the bytes that this rank sends in a role.
    fn sent(&self, role: Role) -> u64 {
        let to = |to: u32| self.block_bytes(self.rank, to);
        if self.takes_part(self.flow.sends, role) {
            self.total(self.flow.sends.blocks, &self.neighbours.destinations, to)
        } else {
            0
        }
    }

    /// Returns the bytes that this rank receives in a role.
    fn received(&self, role: Role) -> u64 {
        let from = |from: u32| self.block_bytes(from, self.rank);
        if self.takes_part(self.flow.receives, role) {
            self.total(self.flow.receives.blocks, &self.neighbours.sources, from)
        } else {
            0
        }
    }

    /// Returns the bytes of all blocks, without a list of them: every rank asks for the bytes of all others.
    fn total(&self, blocks: Blocks, neighbours: &[Option<u32>], bytes_of: impl Fn(u32) -> u64) -> u64 {
        match blocks {
            Blocks::None => 0,
            Blocks::One => bytes_of(self.rank),
            // Unequal blocks, too, have the message size in the mean.
            Blocks::Ranks => self.bytes * u64::from(self.ranks),
            Blocks::Neighbours => neighbours.iter().map(|rank| rank.map_or(self.bytes, &bytes_of)).sum(),
            Blocks::Portion => {
                let Range { start, end } = self.portion(self.rank);
                end - start
            }
        }
    }

    fn takes_part(&self, share: Share, role: Role) -> bool {
        match share.who {
            Participants::Everyone => true,
            Participants::Root => role == Role::Root,
            Participants::Others => role == Role::Other,
        }
    }
}

#[cfg(test)]
mod part_tests {
    use super::*;
    use ombx_core::benchmark::{Neighbourhood, Topology};

    use crate::collective::neighbours;

    const S: u64 = 100;

    fn part(flow: DataFlow, rank: u32, ranks: u32, root: Root, in_place: bool) -> Part {
        let neighbours = if flow.has_neighbours() {
            neighbours(Topology::Graph, &Neighbourhood::DEFAULT, rank, ranks)
        } else {
            Neighbours::default()
        };
        let (element, op) = (ElementType::Float, ReductionOp::Sum);
        let imbalance = Imbalance::NONE;
        Part { flow, rank, ranks, bytes: S, gaps: None, imbalance, root, in_place, neighbours, element, op }
    }

    fn memory(flow: DataFlow, rank: u32, ranks: u32) -> (u64, u64) {
        let part = part(flow, rank, ranks, Root::Fixed(Rank(0)), false);
        (part.send_bytes(), part.receive_bytes())
    }

    #[test]
    fn buffers_have_exactly_the_bytes_that_a_rank_sends_and_receives() {
        for n in 1..=8 {
            let all = u64::from(n) * S;
            for rank in 0..n {
                let is_root = rank == 0;
                let at_root = |bytes: u64| if is_root { bytes } else { 0 };
                let degree = 2.min(u64::from(n) - 1) * S;
                let expected = [
                    (DataFlow::BARRIER, (0, 0)),
                    (DataFlow::BCAST, (at_root(S), S - at_root(S))),
                    (DataFlow::GATHER, (S, at_root(all))),
                    (DataFlow::SCATTER, (at_root(all), S)),
                    (DataFlow::ALLGATHER, (S, all)),
                    (DataFlow::ALLTOALL, (all, all)),
                    (DataFlow::REDUCE, (S, at_root(S))),
                    (DataFlow::ALLREDUCE, (S, S)),
                    (DataFlow::REDUCE_SCATTER_BLOCK, (all, S)),
                    (DataFlow::SCAN, (S, S)),
                    (DataFlow::EXSCAN, (S, S)),
                    (DataFlow::NEIGHBOR_ALLGATHER, (S, degree)),
                    (DataFlow::NEIGHBOR_ALLTOALL, (degree, degree)),
                ];
                for (flow, bytes) in expected {
                    assert_eq!(memory(flow, rank, n), bytes, "{flow:?}, rank {rank} of {n}");
                }
            }
        }
    }

    #[test]
    fn portions_are_whole_elements_that_make_up_the_block() {
        for n in 1..=8 {
            let part = part(DataFlow::REDUCE_SCATTER, 0, n, Root::Fixed(Rank(0)), false);
            let portions: Vec<Range<u64>> = (0..n).map(|rank| part.portion(rank)).collect();
            assert_eq!((portions[0].start, portions[n as usize - 1].end), (0, S));
            assert!(portions.windows(2).all(|two| two[0].end == two[1].start));
            let lengths: Vec<u64> = portions.iter().map(|p| p.end - p.start).collect();
            assert!(lengths.iter().all(|length| length % 4 == 0 && lengths[0] - length <= 4), "{lengths:?}");
        }
    }

    #[test]
    fn in_place_needs_one_buffer() {
        let with = |flow, rank, root| {
            let part = part(flow, rank, 4, root, true);
            (part.send_bytes(), part.receive_bytes())
        };
        let zero = Root::Fixed(Rank(0));
        assert_eq!(with(DataFlow::ALLREDUCE, 1, zero), (0, S));
        assert_eq!(with(DataFlow::REDUCE_SCATTER, 3, zero), (0, S));
        assert_eq!(with(DataFlow::REDUCE_SCATTER_BLOCK, 3, zero), (0, 4 * S));
        assert_eq!((with(DataFlow::GATHER, 0, zero), with(DataFlow::GATHER, 1, zero)), ((0, 4 * S), (S, 0)));
        assert_eq!(
            (with(DataFlow::SCATTER, 0, zero), with(DataFlow::SCATTER, 1, zero)),
            ((4 * S, 0), (0, S))
        );
    }

    #[test]
    fn a_rank_that_may_be_root_has_the_buffers_of_both_roles() {
        for rank in 0..4 {
            let part = part(DataFlow::GATHER, rank, 4, Root::Rotating, false);
            assert_eq!((part.send_bytes(), part.receive_bytes()), (S, 4 * S));
            let part = self::part(DataFlow::BCAST, rank, 4, Root::Fixed(Rank(2)), false);
            assert_eq!((part.send_bytes(), part.receive_bytes()), if rank == 2 { (S, 0) } else { (0, S) });
        }
    }

    #[test]
    fn arriving_bytes_are_counted_once() {
        let total = |flow| {
            (0..4).map(|rank| part(flow, rank, 4, Root::Fixed(Rank(0)), false).arriving_bytes()).sum::<u64>()
        };
        assert_eq!(total(DataFlow::BCAST), 3 * S);
        assert_eq!(total(DataFlow::GATHER), 4 * S);
        assert_eq!(total(DataFlow::ALLTOALL), 16 * S);
        assert_eq!(total(DataFlow::REDUCE_SCATTER), S);
        assert_eq!(total(DataFlow::NEIGHBOR_ALLGATHER), 8 * S);
    }
}
