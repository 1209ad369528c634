//! Collective operations: the data flow and the three calls of each, and a rank's buffers and arguments for them.

mod arguments;
mod call;
pub(crate) mod operation;

use std::ffi::{c_int, c_void};

use mpi::ffi;
use ombx_accelerator::{Copies, Pinned, device};
use ombx_core::{
    benchmark::{
        Context, ElementType, Neighbourhood, ReductionOp, Topology, Torus, memory::BufferMemory,
        payload::Slots,
    },
    error::{Error, Result},
    unit::Rank,
};

use self::operation::OpHandle;
use crate::{
    Buffer, Comm, MpiTeam,
    runtime::device_support,
    sys::{datatype, error::check},
    two_sided::{halo::grid, staged::copied},
};

pub use self::{
    call::*,
    operation::{Operation, Options, Requests},
};
pub use crate::collective::arguments::{Gaps, Part};

/// `MPI_Bcast` on the team's communicator, with one buffer.
#[derive(Debug)]
pub struct Broadcast {
    comm: ffi::MPI_Comm,
    count: c_int,
    datatype: ffi::MPI_Datatype,
    buffer: Buffer,
}

impl Broadcast {
    /// Allocates the buffer for one message. Collective.
    ///
    /// # Errors
    /// The ranks of the team are not MPI ranks, or the memory is not available.
    pub fn open(cx: &Context<'_>, slots: Slots) -> Result<Broadcast> {
        let team: &MpiTeam = cx.fabric()?;
        let comm = team.comm().raw();
        let parts = datatype::elements(slots.bytes, slots.element)
            .and_then(datatype::count)
            .and_then(|count| Ok((count, Buffer::zeroed(slots.total())?)));
        let (count, buffer) = cx.agree(parts)?;
        team.lend(|handles| handles.describe_messages(cx, slots, &buffer, &buffer));
        Ok(Broadcast { comm, count, datatype: datatype::handle(slots.element), buffer })
    }

    /// Broadcasts the buffer of `root` to all ranks. Collective.
    #[inline(always)]
    pub fn broadcast(&mut self, root: Rank) -> Result<()> {
        // SAFETY: the buffer has `count` elements of the datatype, and the communicator is valid: its team outlives the case.
        check("MPI_Bcast", unsafe {
            ffi::MPI_Bcast(self.buffer.start().cast(), self.count, self.datatype, root.0 as c_int, self.comm)
        })
    }

    /// Returns the buffer.
    pub fn buffer(&mut self) -> &mut [u8] {
        self.buffer.bytes_mut()
    }
}

/// A local reduction that is ready to be called. It owns its buffers.
#[derive(Debug)]
pub struct LocalReduction {
    count: c_int,
    datatype: ffi::MPI_Datatype,
    op: OpHandle,
    operand: Buffer,
    memory: Buffer,
}

impl LocalReduction {
    /// Allocates two buffers of one message each. Collective.
    ///
    /// # Errors
    /// The message is not a whole number of elements, or the memory is not available.
    pub fn open(
        cx: &Context<'_>,
        slots: Slots,
        element: ElementType,
        op: ReductionOp,
    ) -> Result<LocalReduction> {
        let team: &MpiTeam = cx.fabric()?;
        device_support::combining_works(cx, "MPI_Reduce_local")?;
        let size = slots.total();
        cx.afford(2 * size)?;
        let parts = datatype::elements(slots.bytes, element).and_then(datatype::count).and_then(|count| {
            Ok((count, Buffer::zeroed(size)?.placed(cx)?, Buffer::zeroed(size)?.placed(cx)?))
        });
        let (count, operand, memory) = cx.agree(parts)?;
        let (datatype, op) = (datatype::handle(element), OpHandle::new(element, op)?);
        let local = LocalReduction { count, datatype, op, operand, memory };
        team.lend(|handles| {
            (handles.datatype, handles.op, handles.elements) = (local.datatype, local.op.raw(), local.count);
            handles.outgoing = local.operand.start().cast();
            handles.incoming = local.memory.start().cast();
            handles.describe_slots(slots);
        });
        Ok(local)
    }

    /// Combines the operand with the memory.
    #[inline(always)]
    pub fn call(&mut self) -> Result<()> {
        let (operand, memory) = (self.operand.start().cast::<c_void>(), self.memory.start().cast::<c_void>());
        // SAFETY: `self` owns both buffers, which do not overlap and have `count` elements of the datatype.
        check("MPI_Reduce_local", unsafe {
            ffi::MPI_Reduce_local(operand, memory, self.count, self.datatype, self.op.raw())
        })
    }

    /// Returns the buffer that is combined with the memory.
    pub fn operand(&mut self) -> &mut [u8] {
        self.operand.bytes_mut()
    }

    /// Returns the buffer that gets the result.
    pub fn memory(&mut self) -> &mut [u8] {
        self.memory.bytes_mut()
    }
}

/// A buffer on a device, and the one of the host that MPI uses.
#[derive(Debug)]
struct Staging {
    buffer: Buffer,
    copies: Copies,
    host: *mut c_void,
    bytes: usize,
    _pinned: Option<Pinned>,
}

impl Staging {
    /// Allocates the buffer on the device, and pins that of the host. No bytes are copied for an empty buffer.
    ///
    /// # Errors
    /// The device has too little memory.
    ///
    /// # Safety
    /// The buffer of the host exists until the result is dropped.
    unsafe fn open(cx: &Context<'_>, host: &mut Buffer, bytes: u64) -> Result<Staging> {
        let place = cx.get::<BufferMemory>().place(cx.role);
        let host = host.bytes_mut();
        let buffer = Buffer::reserved(host.len() as u64)?.on(place)?;
        let refused = || Error::unsupported("--staged needs the memory of a device");
        let (there, api) = buffer.on_device().zip(place.api()).ok_or_else(refused)?;
        let (copies, start, bytes) = (there.copies(), host.as_mut_ptr(), bytes as usize);
        let pinned = match bytes {
            0 => None,
            // SAFETY: the caller promises that the memory exists.
            _ => Some(unsafe { Pinned::new(device(api)?, start, host.len()) }?),
        };
        Ok(Staging { buffer, copies, host: start.cast(), bytes, _pinned: pinned })
    }

    #[inline(always)]
    fn to_host(&self) -> Result<()> {
        if self.bytes == 0 {
            return Ok(());
        }
        // SAFETY: both buffers have the bytes and exist as long as `self`.
        copied(unsafe { self.copies.to_host(self.host, 0, self.bytes) })
    }

    #[inline(always)]
    fn to_device(&self) -> Result<()> {
        if self.bytes == 0 {
            return Ok(());
        }
        // SAFETY: as above.
        copied(unsafe { self.copies.to_device(0, self.host, self.bytes) })
    }
}

/// The neighbours of a rank in the order of their blocks. `None` lies beyond the edge of a grid.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Neighbours {
    /// The ranks from which the rank receives.
    pub sources: Vec<Option<u32>>,
    /// The ranks to which the rank sends.
    pub destinations: Vec<Option<u32>>,
}

/// Returns the neighbours of a rank among `ranks` ranks.
pub fn neighbours(topology: Topology, described: &Neighbourhood, rank: u32, ranks: u32) -> Neighbours {
    match topology {
        Topology::Cartesian => {
            let [rows, columns] = grid(ranks);
            let (row, column) = (rank / columns, rank % columns);
            let at = |row: Option<u32>, column: Option<u32>| {
                let (row, column) = (row.filter(|r| *r < rows)?, column.filter(|c| *c < columns)?);
                Some(row * columns + column)
            };
            // The order of MPI 4.1, 8.6: per dimension, first the negative, then the positive direction.
            let all = vec![
                at(row.checked_sub(1), Some(column)),
                at(Some(row + 1), Some(column)),
                at(Some(row), column.checked_sub(1)),
                at(Some(row), Some(column + 1)),
            ];
            Neighbours { sources: all.clone(), destinations: all }
        }
        Topology::Graph => {
            let steps = || 1..=2u32.min(ranks.saturating_sub(1));
            Neighbours {
                sources: steps().map(|step| Some((rank + ranks - step) % ranks)).collect(),
                destinations: steps().map(|step| Some((rank + step) % ranks)).collect(),
            }
        }
        Topology::Torus => {
            let all: Vec<_> = around(described.torus, rank, ranks).into_iter().map(Some).collect();
            Neighbours { sources: all.clone(), destinations: all }
        }
        Topology::Edges => {
            let edges = || described.edges.iter();
            Neighbours {
                sources: edges().filter(|(_, to)| *to == rank).map(|(from, _)| Some(from)).collect(),
                destinations: edges().filter(|(from, _)| *from == rank).map(|(_, to)| Some(to)).collect(),
            }
        }
    }
}

/// Returns the ranks that are at most `radius` away in each dimension of a periodic grid, each once. In a short dimension several ways
/// lead to the same rank.
fn around(torus: Torus, rank: u32, ranks: u32) -> Vec<u32> {
    let lengths = match torus.dimensions {
        1 => grid::<1>(ranks).to_vec(),
        2 => grid::<2>(ranks).to_vec(),
        3 => grid::<3>(ranks).to_vec(),
        _ => grid::<4>(ranks).to_vec(),
    };
    let mut found = vec![0];
    let mut step = ranks;
    for length in lengths {
        step /= length;
        let own = rank / step % length;
        let reach = torus.radius.min(length);
        let coordinates = (length - reach..=length + reach).map(|moved| (own + moved) % length * step);
        found = found.iter().flat_map(|start| coordinates.clone().map(move |at| start + at)).collect();
    }
    let mut all = Vec::new();
    for other in found {
        if other != rank && !all.contains(&other) {
            all.push(other);
        }
    }
    all
}

/// Checks that all ranks of a list of edges exist.
///
/// # Errors
/// [`Error::unsupported`] with the first edge of which a rank does not.
fn check_edges(topology: Topology, described: &Neighbourhood, ranks: u32) -> Result<()> {
    let mut edges = described.edges.iter().filter(|_| topology == Topology::Edges);
    match edges.find(|(from, to)| (*from).max(*to) >= ranks) {
        Some((from, to)) => Err(Error::unsupported(format!(
            "--neighbours {from}:{to}: there are ranks 0 to {} only: start more with -n, or change the list",
            ranks - 1
        ))),
        None => Ok(()),
    }
}

/// Creates a communicator with a topology. Ranks keep their numbers. Collective.
fn communicator(topology: Topology, described: &Neighbourhood, comm: &Comm) -> Result<Comm> {
    // SAFETY: `comm` is valid, and every array has as many elements as MPI reads. The new communicator has no other owner.
    unsafe {
        let mut raw = ffi::RSMPI_COMM_NULL;
        match topology {
            Topology::Cartesian => {
                let (dimensions, periods) = (grid::<2>(comm.size()).map(|n| n as c_int), [0; 2]);
                let made = ffi::MPI_Cart_create(
                    comm.raw(),
                    2,
                    dimensions.as_ptr(),
                    periods.as_ptr(),
                    0,
                    &raw mut raw,
                );
                check("MPI_Cart_create", made)?;
            }
            Topology::Graph | Topology::Torus | Topology::Edges => {
                let Neighbours { sources, destinations } =
                    neighbours(topology, described, comm.rank().0, comm.size());
                let ranks = |list: &[Option<u32>]| list.iter().flatten().map(|r| *r as c_int).collect();
                let [sources, destinations]: [Vec<c_int>; 2] = [ranks(&sources), ranks(&destinations)];
                let made = ffi::MPI_Dist_graph_create_adjacent(
                    comm.raw(),
                    sources.len() as c_int,
                    sources.as_ptr(),
                    ffi::RSMPI_UNWEIGHTED(),
                    destinations.len() as c_int,
                    destinations.as_ptr(),
                    ffi::RSMPI_UNWEIGHTED(),
                    ffi::RSMPI_INFO_NULL,
                    0,
                    &raw mut raw,
                );
                check("MPI_Dist_graph_create_adjacent", made)?;
            }
        }
        Comm::own(raw)
    }
}

#[cfg(test)]
mod topology_tests {
    use ombx_core::benchmark::{Edges, ParameterValue};

    use super::*;

    const EDGES: &str = "0:1,0:2,2:0,3:1";

    #[test]
    fn sources_and_destinations_match() {
        let tori = (1..=4).flat_map(|dimensions| (1..=3).map(move |radius| Torus { dimensions, radius }));
        let tori = tori.map(|torus| (Topology::Torus, Neighbourhood { torus, ..Neighbourhood::DEFAULT }));
        let edges = Neighbourhood { edges: Edges::parse(EDGES).unwrap(), ..Neighbourhood::DEFAULT };
        let fixed = [Topology::Cartesian, Topology::Graph].map(|topology| (topology, Neighbourhood::DEFAULT));
        for (topology, described) in fixed.into_iter().chain(tori).chain([(Topology::Edges, edges)]) {
            for ranks in if topology == Topology::Edges { 4..13 } else { 1..13 } {
                let of = |rank| neighbours(topology, &described, rank, ranks);
                let all: Vec<Neighbours> = (0..ranks).map(of).collect();
                for from in 0..ranks {
                    for to in 0..ranks {
                        let sends =
                            all[from as usize].destinations.iter().filter(|d| **d == Some(to)).count();
                        let receives = all[to as usize].sources.iter().filter(|s| **s == Some(from)).count();
                        assert!(sends == receives && sends <= 1, "{topology:?}: {from} to {to} of {ranks}");
                        assert!(sends == 0 || from != to);
                    }
                }
            }
        }
    }

    #[test]
    fn neighbours_are_in_order() {
        let of = |topology, rank, ranks, (dimensions, radius)| {
            let torus = Torus { dimensions, radius };
            let described = Neighbourhood { torus, edges: Edges::parse(EDGES).unwrap() };
            neighbours(topology, &described, rank, ranks)
        };
        assert_eq!(of(Topology::Cartesian, 0, 4, (1, 1)).sources, [None, Some(2), None, Some(1)]);
        assert_eq!(of(Topology::Graph, 0, 4, (1, 1)).sources, [Some(3), Some(2)]);
        assert_eq!(of(Topology::Torus, 0, 5, (1, 1)).sources, [Some(4), Some(1)]);
        assert_eq!(of(Topology::Torus, 0, 2, (1, 1)).sources, [Some(1)]);
        assert_eq!(of(Topology::Torus, 4, 9, (2, 1)).sources, [0, 1, 2, 3, 5, 6, 7, 8].map(Some));
        assert_eq!(of(Topology::Torus, 1, 1000, (1, 3)).sources.len(), 6);
        assert_eq!(of(Topology::Edges, 0, 4, (1, 1)).destinations, [Some(1), Some(2)]);
        assert_eq!(of(Topology::Edges, 1, 4, (1, 1)).sources, [Some(0), Some(3)]);
    }
}
