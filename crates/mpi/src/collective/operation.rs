//! A collective operation that is ready to be called: a rank's buffers, arguments and requests.

use std::{
    ffi::{c_int, c_void},
    marker::PhantomData,
    ops::Add,
};

use mpi::ffi;
use ombx_core::{
    benchmark::{
        Context, ElementType, Groups, Imbalance, Neighbourhood, ReductionOp, Root, Topology,
        memory::Copies,
        payload::{self, Numbering},
    },
    error::{Error, Result},
};

use crate::{
    Buffer, Comm, MpiTeam,
    collective::{
        self, Neighbours, Staging,
        arguments::{Addresses, Arguments, Gaps, Part, Role},
        call::Call,
    },
    runtime::{device_support, library},
    sys::{
        self, NO_OP, PersistentRequests, REPLACE,
        datatype::DerivedDatatype,
        error::{self, check},
    },
};

/// The options of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Bytes of a block without gaps; the mean if blocks are not equal.
    pub bytes: u64,
    /// The derived datatype of blocks, where the operation moves them.
    pub blocks: Option<payload::Blocks>,
    /// How unequal the blocks are, where the call takes arrays of counts and displacements.
    pub imbalance: Imbalance,
    /// The root, where the operation has one.
    pub root: Root,
    /// Whether ranks that may pass `MPI_IN_PLACE` do so.
    pub in_place: bool,
    /// The neighbours, where the operation has neighbours.
    pub topology: Topology,
    /// What the user describes of the neighbours.
    pub neighbourhood: Neighbourhood,
    /// Groups of ranks, each of which runs the operation.
    pub groups: Groups,
    /// Type of the elements.
    pub element: ElementType,
    /// The reduction, where the operation reduces.
    pub op: ReductionOp,
    /// The requests of the operation.
    pub requests: Requests,
}

impl Options {
    /// Returns the part of a rank in an operation of `ranks` ranks, those of its group.
    pub fn part<C: Call>(&self, rank: u32, ranks: u32) -> Part {
        let Options { bytes: payload, blocks, imbalance, root, in_place, element, op, .. } = *self;
        let gaps = blocks.map(|blocks| Gaps { blocks, payload });
        let bytes = blocks.map_or(payload, |blocks| blocks.span(payload));
        let neighbours = if C::FLOW.has_neighbours() {
            collective::neighbours(self.topology, &self.neighbourhood, rank, ranks)
        } else {
            Neighbours::default()
        };
        Part { flow: C::FLOW, rank, ranks, bytes, gaps, imbalance, root, in_place, neighbours, element, op }
    }
}

/// Requests that an operation needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requests {
    /// None, or one per call.
    None,
    /// Persistent ones, for each copy of the buffers.
    Persistent,
}

/// An operation on this rank. It owns the buffers that its requests use, and completes or drops the requests first.
#[derive(Debug)]
pub struct Operation<C> {
    /// Persistent requests, one per root, and one per copy. Dropped first, because they use the fields below.
    requests: PersistentRequests,
    /// The buffers on a device, if messages are copied between them and the buffers of the host. Dropped before these, which they pin.
    staging: Option<[Staging; 2]>,
    arguments: Arguments,
    part: Part,
    /// The addresses as the root, and as another rank.
    addresses: [Addresses; 2],
    /// Index of the next iteration's persistent request.
    next_request: usize,
    from: Buffer,
    to: Buffer,
    /// Copies of the larger buffer.
    copies: Copies,
    numbering: Numbering,
    /// Keeps the communicator with the topology alive.
    _neighbourhood: Option<Comm>,
    /// Keeps the communicator of this rank's group alive.
    _group: Option<Comm>,
    /// Keeps the operation of the reduction alive.
    _op: OpHandle,
    /// Keeps the datatype of blocks alive.
    _datatype: Option<DerivedDatatype>,
    call: PhantomData<fn() -> C>,
}

impl<C: Call> Operation<C> {
    /// Allocates the buffers and prepares the arguments. Collective.
    ///
    /// # Errors
    /// The ranks do not make up the groups, the root is not a rank of a group, the memory is not available, or a count does not fit
    /// an `int`.
    pub fn open(cx: &Context<'_>, options: Options) -> Result<Operation<C>> {
        let team: &MpiTeam = cx.fabric()?;
        let all = team.comm();
        options.groups.divide(all.size())?;
        if C::FLOW.reduces() && C::NAME == "MPI_Reduce_scatter" {
            device_support::combining_works(cx, C::NAME)?;
        }
        let group = if options.groups.is_one() {
            None
        } else {
            Some(all.group(options.groups.group_of(all.rank(), all.size()))?)
        };
        let comm = group.as_ref().unwrap_or(all);
        options.blocks.map(|blocks| blocks.count(options.bytes)).transpose()?;
        if C::FLOW.has_neighbours() {
            collective::check_edges(options.topology, &options.neighbourhood, comm.size())?;
        }
        let part = options.part::<C>(comm.rank().0, comm.size());
        cx.agree(options.root.is_among(comm.size()))?;
        let Neighbours { sources, destinations } = &part.neighbours;
        cx.agree(library::neighbour_call_works(C::NAME, sources.len(), destinations.len()))?;
        let sizes = [part.send_bytes(), part.receive_bytes()];
        let largest = sizes[0].max(sizes[1]);
        let copies = match options.requests {
            Requests::None => Copies::agreed(cx, largest)?,
            // Ranks create requests together.
            Requests::Persistent => Copies::agreed(cx, largest)?.together(cx, largest)?,
        };
        let lists = options.blocks.map_or(0, |blocks| blocks.extra_bytes(options.bytes));
        cx.afford(sizes.iter().map(|bytes| copies.total(*bytes)).sum::<u64>() + lists)?;
        let buffer = |bytes| -> Result<Buffer> {
            Ok(Buffer::zeroed(copies.total(bytes))?.placed(cx)?.in_copies(bytes))
        };
        let adjacent = |blocks| DerivedDatatype::adjacent(blocks, options.bytes, options.element);
        let parts = options.blocks.map(adjacent).transpose().and_then(|datatype| {
            let arguments = Arguments::new(&part, datatype.as_ref())?;
            Ok((datatype, arguments, buffer(sizes[0])?, buffer(sizes[1])?))
        });
        let (datatype, mut arguments, from, to) = cx.agree(parts)?;
        let neighbourhood = if C::FLOW.has_neighbours() {
            Some(collective::communicator(options.topology, &options.neighbourhood, comm)?)
        } else {
            None
        };
        let op = OpHandle::new(part.element, part.op)?;
        arguments.op = op.raw();
        let addresses = [Role::Root, Role::Other].map(|role| Addresses::new(&part, role, &from, &to));
        arguments.comm = neighbourhood.as_ref().map_or(comm.raw(), Comm::raw);
        // As many as there can be roots, so that their address never changes.
        let requests = PersistentRequests(Vec::with_capacity(part.ranks as usize));
        let mut operation = Operation {
            requests,
            staging: None,
            arguments,
            part,
            addresses,
            next_request: 0,
            from,
            to,
            copies,
            numbering: copies.numbering(),
            _neighbourhood: neighbourhood,
            _group: group,
            _op: op,
            _datatype: datatype,
            call: PhantomData,
        };
        operation.rewind();
        team.lend(|handles| {
            operation.arguments.describe(handles);
            handles.requests = operation.requests.0.as_mut_ptr();
            handles.bytes = c_int::try_from(options.bytes).unwrap_or(c_int::MAX);
        });
        Ok(operation)
    }

    /// Returns this rank's part in the operation.
    pub fn part(&self) -> &Part {
        &self.part
    }

    /// Returns the send buffer.
    pub fn from(&mut self) -> &mut [u8] {
        match &mut self.staging {
            Some([from, _]) => from.buffer.bytes_mut(),
            None => self.from.bytes_mut(),
        }
    }

    /// Returns the receive buffer.
    pub fn to(&mut self) -> &mut [u8] {
        match &mut self.staging {
            Some([_, to]) => to.buffer.bytes_mut(),
            None => self.to.bytes_mut(),
        }
    }

    /// Gives the operation buffers on a device, between which and its own [`Operation::staged_call`] copies. Collective.
    ///
    /// # Errors
    /// The device has too little memory, or the blocks have gaps.
    pub fn stage(&mut self, cx: &Context<'_>) -> Result<()> {
        if self.part.gaps.is_some() {
            return Err(Error::unsupported(
                "--staged copies contiguous blocks: choose --datatype contiguous",
            ));
        }
        let (send, receive) = (self.part.send_bytes(), self.part.receive_bytes());
        // SAFETY: `self` owns the buffers of the host and drops them after `staging`.
        let staging = unsafe {
            Staging::open(cx, &mut self.from, send)
                .and_then(|from| Ok([from, Staging::open(cx, &mut self.to, receive)?]))
        };
        self.staging = Some(cx.agree(staging)?);
        Ok(())
    }

    /// Copies what this rank sends to the host, calls the blocking form, and copies what it has received to the device.
    #[inline(always)]
    pub fn staged_call(&mut self) -> Result<()> {
        if let Some([from, to]) = &self.staging {
            from.to_host()?;
            if self.part.in_place {
                to.to_host()?;
            }
        }
        self.call()?;
        match &self.staging {
            Some([_, to]) => to.to_device(),
            None => Ok(()),
        }
    }

    /// Returns the copies of the larger buffer. An empty buffer has none.
    pub fn copies(&self) -> Copies {
        self.copies
    }

    /// Makes the copies of both buffers at an offset those of the next calls. The root must be the same in every iteration.
    #[inline(always)]
    pub fn move_to(&mut self, offset: usize) {
        self.from.move_to(offset);
        self.to.move_to(offset);
        let role = usize::from(self.arguments.root as u32 != self.part.rank);
        self.arguments.set_addresses(self.addresses[role].moved(offset));
    }

    /// Makes the persistent request of the copies at an offset the next one.
    #[inline(always)]
    pub fn move_request(&mut self, offset: usize) {
        self.next_request = self.numbering.number(offset);
    }

    /// Makes the first root the root of the next iteration.
    pub fn rewind(&mut self) {
        self.next_request = 0;
        self.set_root(self.part.root.first().0);
    }

    #[inline(always)]
    fn set_root(&mut self, root: u32) {
        self.arguments.root = root as c_int;
        self.arguments.set_addresses(self.addresses[usize::from(root != self.part.rank)]);
    }

    /// Makes the next rank the root of the next iteration, if the root rotates.
    #[inline(always)]
    fn advance(&mut self) {
        if C::FLOW.is_rooted() && self.part.root == Root::Rotating {
            let next = self.arguments.root as u32 + 1;
            let root = if next == self.part.ranks { 0 } else { next };
            self.next_request = root as usize;
            self.set_root(root);
        }
    }

    /// Calls the blocking form.
    #[inline(always)]
    pub fn call(&mut self) -> Result<()> {
        // SAFETY: `open` has made buffers, datatype and arrays of the sizes of this rank's part. `self` owns them, and
        // `_neighbourhood`, `_group` or the team, which outlives the case, owns the communicator.
        check(C::NAME, unsafe { C::call(&self.arguments) })?;
        self.advance();
        Ok(())
    }

    /// Starts the nonblocking form, calls `slice`, then `tests` times `MPI_Test` and `slice`, and waits for completion.
    #[inline(always)]
    pub fn overlapped(&mut self, tests: u32, slice: impl FnMut()) -> Result<()> {
        // SAFETY: as in `call`. `&mut self` excludes other accesses to the buffers until the request has completed.
        unsafe {
            let mut request = ffi::RSMPI_REQUEST_NULL;
            check(C::START, C::start(&self.arguments, &raw mut request))?;
            sys::overlap(&mut request, tests, slice)?;
        }
        self.advance();
        Ok(())
    }

    /// Checks that the nonblocking and persistent forms take the buffers of the case.
    ///
    /// # Errors
    /// The library takes no memory of devices in them.
    pub fn may_start(cx: &Context<'_>) -> Result<()> {
        if C::FLOW.reduces() { device_support::combining_works(cx, C::START) } else { Ok(()) }
    }

    /// Creates the persistent requests: one per root, and one per copy of the buffers. Collective.
    ///
    /// # Errors
    /// The library has no persistent collectives, or this one is known to fail, or too many copies need requests.
    pub fn make_requests(&mut self, cx: &Context<'_>) -> Result<()> {
        Self::may_start(cx)?;
        library::persistent_call_works(C::NAME, self.part.ranks, self.part.gaps.map(|gaps| gaps.blocks))?;
        let rotates = C::FLOW.is_rooted() && self.part.root == Root::Rotating;
        sys::afford(cx, self.copies, 1, 0)?;
        let roots = if rotates { self.part.ranks as usize } else { 1 };
        for offset in self.copies.offsets().flat_map(|offset| std::iter::repeat_n(offset, roots)) {
            if offset > 0 {
                self.move_to(offset);
            }
            // SAFETY: as in `call`. The requests are dropped before the fields that own buffers and communicator.
            unsafe {
                let mut request = ffi::RSMPI_REQUEST_NULL;
                let made = C::init(&self.arguments, &raw mut request)
                    .ok_or_else(|| Error::unsupported("needs the persistent collectives of MPI 4"))?;
                check(C::INIT, made)?;
                self.requests.0.push(request);
            }
            self.advance();
        }
        self.move_to(0);
        self.rewind();
        Ok(())
    }

    /// Starts the next persistent request and waits for it. [`Operation::make_requests`] has created it.
    #[inline(always)]
    pub fn restart(&mut self) -> Result<()> {
        let request = &raw mut self.requests.0[self.next_request];
        // SAFETY: an inactive persistent request on buffers that `self` owns.
        unsafe {
            check("MPI_Start", ffi::MPI_Start(request))?;
            check("MPI_Wait", ffi::MPI_Wait(request, ffi::RSMPI_STATUS_IGNORE))?;
        }
        self.advance();
        Ok(())
    }
}

/// Returns MPI's handle of a predefined operation; `None` for the operation of ombx.
pub(crate) fn predefined(op: ReductionOp) -> Option<ffi::MPI_Op> {
    // SAFETY: these statics of mpi-sys are never written.
    unsafe {
        Some(match op {
            ReductionOp::Sum => ffi::RSMPI_SUM,
            ReductionOp::Prod => ffi::RSMPI_PROD,
            ReductionOp::Min => ffi::RSMPI_MIN,
            ReductionOp::Max => ffi::RSMPI_MAX,
            ReductionOp::LogicalAnd => ffi::RSMPI_LAND,
            ReductionOp::LogicalOr => ffi::RSMPI_LOR,
            ReductionOp::LogicalXor => ffi::RSMPI_LXOR,
            ReductionOp::BitwiseAnd => ffi::RSMPI_BAND,
            ReductionOp::BitwiseOr => ffi::RSMPI_BOR,
            ReductionOp::BitwiseXor => ffi::RSMPI_BXOR,
            ReductionOp::Replace => REPLACE,
            ReductionOp::NoOp => NO_OP,
            ReductionOp::User => return None,
        })
    }
}

/// An operation handle, which is freed if ombx has created it.
#[derive(Debug)]
pub(super) struct OpHandle {
    raw: ffi::MPI_Op,
    created: bool,
}

impl OpHandle {
    /// Returns the handle of an operation on elements of a type.
    pub(super) fn new(element: ElementType, op: ReductionOp) -> Result<OpHandle> {
        if let Some(raw) = predefined(op) {
            return Ok(OpHandle { raw, created: false });
        }
        // SAFETY: the static is never written. MPI stores a handle in `raw`, which outlives the call, and calls the function with
        // buffers of the datatype of the reduction only.
        unsafe {
            let mut raw = ffi::RSMPI_SUM;
            check("MPI_Op_create", ffi::MPI_Op_create(Some(sum(element)), COMMUTES, &raw mut raw))?;
            Ok(OpHandle { raw, created: true })
        }
    }

    pub(super) fn raw(&self) -> ffi::MPI_Op {
        self.raw
    }
}

impl Drop for OpHandle {
    fn drop(&mut self) {
        if self.created && error::may_free() {
            // SAFETY: `self` owns the handle, and its owner has completed or freed every request before.
            error::check_freed(c"MPI_Op_free", unsafe { ffi::MPI_Op_free(&raw mut self.raw) });
        }
    }
}

const COMMUTES: c_int = 1;

/// Function of a user-defined operation.
type Combine = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_int, *mut ffi::MPI_Datatype);

/// Returns the function that adds elements of a type.
fn sum(element: ElementType) -> Combine {
    match element {
        ElementType::Byte | ElementType::Char | ElementType::Uint8 | ElementType::Widest => {
            add::<std::num::Wrapping<u8>, 1>
        }
        ElementType::Int16 | ElementType::Uint16 => add::<std::num::Wrapping<u16>, 1>,
        ElementType::Int32 | ElementType::Uint32 => add::<std::num::Wrapping<u32>, 1>,
        ElementType::Int64 | ElementType::Uint64 => add::<std::num::Wrapping<u64>, 1>,
        ElementType::Float => add::<f32, 1>,
        ElementType::Double => add::<f64, 1>,
        ElementType::FloatComplex => add::<f32, 2>,
        ElementType::DoubleComplex => add::<f64, 2>,
    }
}

/// Adds `count` elements of `PARTS` numbers each.
///
/// # Safety
/// Both buffers hold that many elements and do not overlap (MPI 4.1, 6.9.5).
unsafe extern "C" fn add<T: Copy + Add<Output = T>, const PARTS: usize>(
    from: *mut c_void,
    to: *mut c_void,
    count: *mut c_int,
    _: *mut ffi::MPI_Datatype,
) {
    // SAFETY: the caller fulfils the contract above, and MPI aligns the buffers for the datatype.
    unsafe {
        let numbers = *count as usize * PARTS;
        let (from, to) = (from.cast::<T>(), to.cast::<T>());
        for at in 0..numbers {
            let sum = to.add(at).read_unaligned() + from.add(at).read_unaligned();
            to.add(at).write_unaligned(sum);
        }
    }
}

#[cfg(test)]
mod reduction_tests {
    use super::*;

    #[test]
    fn the_operation_of_ombx_adds_numbers_of_every_type() {
        for (element, one, other, expected) in [
            (ElementType::Char, vec![1, 2], vec![0xff, 3], vec![0, 5]),
            (
                ElementType::Float,
                1.5f32.to_le_bytes().to_vec(),
                2f32.to_le_bytes().to_vec(),
                3.5f32.to_le_bytes().to_vec(),
            ),
            (
                ElementType::FloatComplex,
                [1f32, 2.0].map(f32::to_le_bytes).concat(),
                [3f32, 5.0].map(f32::to_le_bytes).concat(),
                [4f32, 7.0].map(f32::to_le_bytes).concat(),
            ),
        ] {
            let (mut from, mut to) = (one, other);
            let mut count = (from.len() as u64 / element.width()) as c_int;
            let mut datatype = crate::sys::datatype::handle(element);
            // SAFETY: both buffers hold `count` elements.
            unsafe {
                sum(element)(
                    from.as_mut_ptr().cast(),
                    to.as_mut_ptr().cast(),
                    &raw mut count,
                    &raw mut datatype,
                );
            }
            assert_eq!(to, expected, "{element:?}");
        }
    }
}
