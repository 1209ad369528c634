//! An operation that is ready to be called: a rank's buffers, arguments and requests, and the calls of a timed loop.

use std::{ffi::c_int, marker::PhantomData};

use mpi::ffi;
use ombx_core::{
    benchmark::{context::Context, root::Root},
    error::{Error, Result},
};

use super::{
    arguments::{Arguments, Ends},
    call::Call,
    part::{Part, Place, Role},
    topology::{Neighbours, Topology},
};
use crate::{
    Buffer, Comm, MpiTeam,
    ext::{self, check},
    library,
};

/// How an operation is done, of what can be chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choices {
    /// Bytes of a block.
    pub bytes: u64,
    /// The root, where there is one.
    pub root: Root,
    /// Whether data that is sent lies where it is received.
    pub in_place: bool,
    /// Who is whose neighbour, where that matters.
    pub topology: Topology,
}

impl Choices {
    /// A rank's part in an operation.
    pub fn part<C: Call>(self, rank: u32, ranks: u32) -> Part {
        let Choices { bytes, root, in_place, topology } = self;
        let neighbours = match C::SHAPE.has_neighbours() {
            true => topology.neighbours(rank, ranks),
            false => Neighbours::default(),
        };
        Part { shape: C::SHAPE, place: Place { rank, ranks, bytes, root, in_place, neighbours } }
    }
}

/// An operation on this rank. It owns the buffers that its requests use, and completes or frees the requests before them.
#[derive(Debug)]
pub struct Operation<C> {
    arguments: Arguments,
    part: Part,
    /// As a root and as another.
    ends: [Ends; 2],
    /// Persistent requests, one for each root.
    requests: Vec<ffi::MPI_Request>,
    /// The request of the next iteration.
    turn: usize,
    from: Buffer,
    to: Buffer,
    /// The communicator of neighbours.
    _neighbourhood: Option<Comm>,
    call: PhantomData<fn() -> C>,
}

impl<C: Call> Operation<C> {
    /// Opens it. Collective.
    pub fn open(cx: &Context<'_>, choices: Choices) -> Result<Operation<C>> {
        let comm = cx.fabric::<MpiTeam>()?.comm();
        let part = choices.part::<C>(comm.rank().0, comm.size());
        cx.agree(choices.root.is_among(comm.size()))?;
        cx.afford(part.sends() + part.receives())?;
        let parts = Arguments::of(&part).and_then(|arguments| {
            Ok((arguments, Buffer::zeroed(part.sends())?, Buffer::zeroed(part.receives())?))
        });
        let (mut arguments, from, to) = cx.agree(parts)?;
        let neighbourhood = match C::SHAPE.has_neighbours() {
            true => Some(choices.topology.over(comm)?),
            false => None,
        };
        let ends = [Role::Root, Role::Other].map(|role| Ends::of(&part, role, &from, &to));
        arguments.comm = neighbourhood.as_ref().map_or(comm.raw(), Comm::raw);
        let mut operation = Operation {
            arguments,
            part,
            ends,
            requests: Vec::new(),
            turn: 0,
            from,
            to,
            _neighbourhood: neighbourhood,
            call: PhantomData,
        };
        operation.rewind();
        Ok(operation)
    }

    /// This rank's part in it.
    pub fn part(&self) -> &Part {
        &self.part
    }

    /// What it sends from; no call is under way.
    pub fn from(&mut self) -> &mut [u8] {
        self.from.bytes_mut()
    }

    /// What it receives to; no call is under way.
    pub fn to(&mut self) -> &mut [u8] {
        self.to.bytes_mut()
    }

    /// The next iteration has the first root.
    pub fn rewind(&mut self) {
        self.turn = 0;
        self.has_root(self.part.place.root.first().0);
    }

    #[inline(always)]
    fn has_root(&mut self, root: u32) {
        self.arguments.root = root as c_int;
        self.arguments.take(self.ends[usize::from(root != self.part.place.rank)]);
    }

    /// The next iteration has the next root, if it rotates.
    #[inline(always)]
    fn advance(&mut self) {
        if C::SHAPE.is_rooted() && self.part.place.root == Root::Rotating {
            let next = self.arguments.root as u32 + 1;
            let root = if next == self.part.place.ranks { 0 } else { next };
            self.turn = root as usize;
            self.has_root(root);
        }
    }

    /// The blocking form.
    #[inline(always)]
    pub fn call(&mut self) -> Result<()> {
        // SAFETY: the buffers and lists have the sizes of this rank's part, and live as long as we do.
        check(C::NAME, unsafe { C::call(&self.arguments) })?;
        self.advance();
        Ok(())
    }

    /// The nonblocking form: starts it, runs `slice`, then `tests` times a test and `slice` again, and waits for it.
    #[inline(always)]
    pub fn overlapped(&mut self, tests: u32, mut slice: impl FnMut()) -> Result<()> {
        // SAFETY: as in `call`; the request has completed before anyone else sees the buffers.
        unsafe {
            let mut request = ffi::RSMPI_REQUEST_NULL;
            check(C::START, C::start(&self.arguments, &raw mut request))?;
            slice();
            for _ in 0..tests {
                let mut done = 0;
                check("MPI_Test", ffi::MPI_Test(&raw mut request, &raw mut done, ffi::RSMPI_STATUS_IGNORE))?;
                slice();
            }
            check("MPI_Wait", ffi::MPI_Wait(&raw mut request, ffi::RSMPI_STATUS_IGNORE))?;
        }
        self.advance();
        Ok(())
    }

    /// Makes the persistent requests, one for each root that there will be. Collective.
    pub fn make_requests(&mut self) -> Result<()> {
        library::persistent_call_works(C::NAME, self.part.place.ranks)?;
        let rotates = C::SHAPE.is_rooted() && self.part.place.root == Root::Rotating;
        for _ in 0..if rotates { self.part.place.ranks } else { 1 } {
            // SAFETY: as in `call`; requests are freed before the buffers.
            unsafe {
                let mut request = ffi::RSMPI_REQUEST_NULL;
                let made = C::init(&self.arguments, &raw mut request)
                    .ok_or_else(|| Error::unsupported("needs persistent collectives, of MPI 4"))?;
                check(C::INIT, made)?;
                self.requests.push(request);
            }
            self.advance();
        }
        self.rewind();
        Ok(())
    }

    /// The persistent form, once its requests are made: starts the next and waits for it.
    #[inline(always)]
    pub fn restart(&mut self) -> Result<()> {
        let request = &raw mut self.requests[self.turn];
        // SAFETY: an inactive persistent request of ours, on buffers that live as long as we do.
        unsafe {
            check("MPI_Start", ffi::MPI_Start(request))?;
            check("MPI_Wait", ffi::MPI_Wait(request, ffi::RSMPI_STATUS_IGNORE))?;
        }
        self.advance();
        Ok(())
    }
}

impl<C> Drop for Operation<C> {
    fn drop(&mut self) {
        if ext::may_free() {
            for request in &mut self.requests {
                // SAFETY: inactive, ours, freed once.
                ext::freed(c"MPI_Request_free", unsafe { ffi::MPI_Request_free(&raw mut *request) });
            }
        }
    }
}
