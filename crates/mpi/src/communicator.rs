//! Communicators: the handle for timed calls, and the untimed collectives that the engine needs.

use std::{
    cell::Cell,
    ffi::{c_char, c_int, c_void},
    marker::PhantomData,
    ops::Range,
    ptr,
    time::Duration,
};

use mpi::ffi;
use ombx_core::{
    benchmark::{Context, Threading, payload::Slots},
    error::{Error, Result},
    fact::Facts,
    pacing::mesh,
    team::{BYTES_OF_TURN, EnteredBarrier, Fabric, Shift, Team, turns},
    unit::Rank,
};
use ombx_host::watchdog;

use crate::{
    Buffer, Source,
    runtime::library,
    sys::{
        BYTE, buffer, datatype,
        error::{self, check},
        session,
    },
};

/// Tag of the messages by which two ranks create a communicator.
const PAIR_TAG: c_int = 2;
/// Tag of the empty messages between rounds.
const SHIFT_TAG: c_int = 5;

/// An owned communicator, freed when dropped. An MPI error on it ends the job with one sentence.
#[derive(Debug)]
pub struct Comm {
    raw: ffi::MPI_Comm,
    rank: Rank,
    size: u32,
}

impl Comm {
    /// Duplicates `MPI_COMM_WORLD`, so that traffic of ombx and of other users of the library is separate. Collective.
    pub(crate) fn world() -> Result<Comm> {
        // SAFETY: the only caller has just initialised MPI, and `MPI_COMM_WORLD` is valid until it is finalised. `raw` outlives
        // the call that writes it.
        unsafe {
            error::guard_comm(ffi::RSMPI_COMM_WORLD)?;
            let mut raw = ffi::RSMPI_COMM_NULL;
            check("MPI_Comm_dup", ffi::MPI_Comm_dup(ffi::RSMPI_COMM_WORLD, &raw mut raw))?;
            Comm::own(raw)
        }
    }

    /// Starts MPI as a session and returns a communicator of all its ranks. Collective.
    ///
    /// # Errors
    /// As [`session::start`].
    pub(crate) fn of_session(threading: Threading) -> Result<Comm> {
        let raw = session::start(threading)?;
        // SAFETY: the communicator is valid, and the session has made it for this call.
        unsafe { Comm::own(raw) }
    }

    /// Takes ownership of a communicator.
    ///
    /// # Safety
    /// `raw` is valid and nothing else frees it.
    pub(crate) unsafe fn own(raw: ffi::MPI_Comm) -> Result<Comm> {
        error::guard_comm(raw)?;
        let (mut rank, mut size) = (0, 0);
        // SAFETY: the caller passes a valid communicator; both results outlive the calls.
        unsafe {
            check("MPI_Comm_rank", ffi::MPI_Comm_rank(raw, &raw mut rank))?;
            check("MPI_Comm_size", ffi::MPI_Comm_size(raw, &raw mut size))?;
        }
        match (u32::try_from(rank), u32::try_from(size)) {
            (Ok(rank), Ok(size)) if rank < size => Ok(Comm { raw, rank: Rank(rank), size }),
            _ => Err(Error::fabric(format!(
                "the MPI library calls this process rank {rank} of {size}, which makes no sense: check \
                 that ranks and launcher are of one MPI"
            ))),
        }
    }

    /// Creates a communicator of the ranks that pass a number, in the order of these, and returns `None` on the others. Collective.
    pub(crate) fn part(&self, number: Option<u32>) -> Result<Option<Comm>> {
        self.split(number.map(|_| 0), number.unwrap_or(0))
    }

    /// Creates a communicator of the ranks that pass the same group, in their order. Collective.
    pub(crate) fn group(&self, group: u32) -> Result<Comm> {
        let none = || Error::fabric("MPI_Comm_split returned no communicator");
        self.split(Some(group), self.rank.0)?.ok_or_else(none)
    }

    /// Creates a communicator of the ranks that pass the same color, in the order of their keys; of ranks without a color `None`. Collective.
    fn split(&self, color: Option<u32>, key: u32) -> Result<Option<Comm>> {
        // SAFETY: `self.raw` is valid. The new communicator has no other owner; ranks with an undefined colour get the null
        // communicator, which is not passed on.
        unsafe {
            let (color, key) = (color.map_or(ffi::RSMPI_UNDEFINED, |color| color as c_int), key as c_int);
            let mut raw = ffi::RSMPI_COMM_NULL;
            check("MPI_Comm_split", ffi::MPI_Comm_split(self.raw, color, key, &raw mut raw))?;
            if raw == ffi::RSMPI_COMM_NULL { Ok(None) } else { Comm::own(raw).map(Some) }
        }
    }

    /// Creates a communicator of this rank and `partner`, in which `first`, one of the two, is rank 0. Only these two call it.
    pub(crate) fn pair(&self, partner: Rank, first: Rank) -> Result<Comm> {
        let me = self.rank;
        let second = if first == me { partner } else { me };
        let ends = [first, second].map(|rank| rank.0 as c_int);
        // SAFETY: `self.raw` is valid, `ends` has the two elements that MPI reads, and each group is freed once. The new
        // communicator has no other owner.
        unsafe {
            let (mut all, mut two) = (ffi::RSMPI_GROUP_NULL, ffi::RSMPI_GROUP_NULL);
            check("MPI_Comm_group", ffi::MPI_Comm_group(self.raw, &raw mut all))?;
            check("MPI_Group_incl", ffi::MPI_Group_incl(all, 2, ends.as_ptr(), &raw mut two))?;
            let mut raw = ffi::RSMPI_COMM_NULL;
            // MPI 4.1, 7.4.2: this call is collective over the group only, so pairs do not wait for each other.
            let rc = ffi::MPI_Comm_create_group(self.raw, two, PAIR_TAG, &raw mut raw);
            check("MPI_Comm_create_group", rc)?;
            check("MPI_Group_free", ffi::MPI_Group_free(&raw mut two))?;
            check("MPI_Group_free", ffi::MPI_Group_free(&raw mut all))?;
            Comm::own(raw)
        }
    }

    /// Returns whether all ranks run on one host, that is, can share memory. Collective.
    pub(crate) fn is_on_one_host(&self) -> Result<bool> {
        let mut size = 0;
        // SAFETY: `self.raw` is valid; the new communicator is freed here once.
        unsafe {
            let mut part = ffi::RSMPI_COMM_NULL;
            let (kind, none) = (ffi::RSMPI_COMM_TYPE_SHARED, ffi::RSMPI_INFO_NULL);
            let rc = ffi::MPI_Comm_split_type(self.raw, kind, self.rank.0 as c_int, none, &raw mut part);
            check("MPI_Comm_split_type", rc)?;
            check("MPI_Comm_size", ffi::MPI_Comm_size(part, &raw mut size))?;
            check("MPI_Comm_free", ffi::MPI_Comm_free(&raw mut part))?;
        }
        Ok(size as u32 == self.size)
    }

    /// Returns the handle for timed calls, valid until `self` is dropped.
    pub(crate) fn raw(&self) -> ffi::MPI_Comm {
        self.raw
    }

    /// Returns this rank's number.
    pub fn rank(&self) -> Rank {
        self.rank
    }

    /// Returns the number of ranks.
    pub fn size(&self) -> u32 {
        self.size
    }

    pub(crate) fn barrier(&self) -> Result<()> {
        // SAFETY: `self.raw` is valid until `self` is dropped.
        check("MPI_Barrier", unsafe { ffi::MPI_Barrier(self.raw) })
    }

    /// Exchanges empty messages. The last one of each direction is sent when all others have arrived, so that both ranks go on together.
    fn shift(&self, Shift { to, sent, from, received }: Shift) -> Result<()> {
        let (none, to, from) = (ptr::null_mut(), to.0 as c_int, from.0 as c_int);
        let mut requests = Vec::new();
        for _ in 1..received {
            // SAFETY: the communicator is valid, and the handle outlives the call that writes it. The count is 0, so MPI does not access the
            // buffer.
            check("MPI_Irecv", unsafe {
                requests.push(ffi::RSMPI_REQUEST_NULL);
                let request = requests.as_mut_ptr().add(requests.len() - 1);
                ffi::MPI_Irecv(none, 0, BYTE, from, SHIFT_TAG, self.raw, request)
            })?;
        }
        for _ in 1..sent {
            // SAFETY: as above.
            check("MPI_Isend", unsafe {
                requests.push(ffi::RSMPI_REQUEST_NULL);
                let request = requests.as_mut_ptr().add(requests.len() - 1);
                ffi::MPI_Isend(none, 0, BYTE, to, SHIFT_TAG, self.raw, request)
            })?;
        }
        // SAFETY: the communicator is valid, and so are all requests. Counts are 0, so MPI accesses no buffer.
        unsafe {
            let count = requests.len() as c_int;
            check("MPI_Waitall", ffi::MPI_Waitall(count, requests.as_mut_ptr(), ffi::RSMPI_STATUSES_IGNORE))?;
            let (comm, ignore) = (self.raw, ffi::RSMPI_STATUS_IGNORE);
            let last =
                ffi::MPI_Sendrecv(none, 0, BYTE, to, SHIFT_TAG, none, 0, BYTE, from, SHIFT_TAG, comm, ignore);
            check("MPI_Sendrecv", last)
        }
    }

    /// Enters a barrier without waiting for it. Collective.
    pub(crate) fn enter_barrier(&self) -> Result<Entered<'_>> {
        // SAFETY: `self.raw` is valid, and the handle of the request outlives the call that writes it.
        unsafe {
            let mut request = ffi::RSMPI_REQUEST_NULL;
            check("MPI_Ibarrier", ffi::MPI_Ibarrier(self.raw, &raw mut request))?;
            Ok(Entered { request, comm: PhantomData })
        }
    }

    pub(crate) fn broadcast(&self, bytes: &mut [u8]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let length = length(bytes.len())?;
        // SAFETY: the slice has `length` bytes and is exclusively borrowed during the call.
        check("MPI_Bcast", unsafe {
            ffi::MPI_Bcast(bytes.as_mut_ptr().cast::<c_void>(), length, BYTE, 0, self.raw)
        })
    }

    /// Sends this many bytes to the rank `distance` further on, and receives as many from the other side. Collective.
    pub fn exchange(&self, distance: u32, bytes: usize) -> Result<()> {
        let (outgoing, mut incoming) = (vec![0u8; bytes], vec![0u8; bytes]);
        let (size, count) = (self.size.max(1), length(bytes)?);
        let distance = distance % size;
        let to = ((self.rank.0 + distance) % size) as c_int;
        let from = ((self.rank.0 + size - distance) % size) as c_int;
        // SAFETY: both buffers have `count` bytes and outlive the call.
        check("MPI_Sendrecv", unsafe {
            ffi::MPI_Sendrecv(
                start(&outgoing),
                count,
                BYTE,
                to,
                PAIR_TAG,
                incoming.as_mut_ptr().cast::<c_void>(),
                count,
                BYTE,
                from,
                PAIR_TAG,
                self.raw,
                ffi::RSMPI_STATUS_IGNORE,
            )
        })
    }

    /// Returns the numbers of every rank in rank order. All ranks pass as many, at least one.
    pub(crate) fn all_gather(&self, mine: &[u64]) -> Result<Vec<u64>> {
        let mut all = vec![0; mine.len() * self.size as usize];
        let each = length(size_of_val(mine))?;
        let (from, to) = (mine.as_ptr().cast::<c_void>(), all.as_mut_ptr().cast::<c_void>());
        // SAFETY: `from` has `each` bytes, and `to` has `each` bytes for every rank.
        check("MPI_Allgather", unsafe { ffi::MPI_Allgather(from, each, BYTE, to, each, BYTE, self.raw) })?;
        Ok(all)
    }

    /// Passes rank and bytes of every rank that has some to `take` on rank 0, in rank order. Ranks send in turns.
    fn gather_in_turns(&self, mine: &[u8], take: &mut dyn FnMut(u32, Vec<u8>) -> Result<()>) -> Result<()> {
        let root = self.rank.0 == 0;
        let mut lengths = vec![0u8; if root { self.size as usize * 8 } else { 1 }];
        let own = (mine.len() as u64).to_ne_bytes();
        // SAFETY: `own` has 8 bytes, and on rank 0 `lengths` has 8 bytes for every rank. MPI ignores the receive buffer of
        // other ranks.
        check("MPI_Gather", unsafe {
            let (from, to) = (own.as_ptr().cast::<c_void>(), lengths.as_mut_ptr().cast::<c_void>());
            ffi::MPI_Gather(from, 8, BYTE, to, 8, BYTE, 0, self.raw)
        })?;
        let lengths: Vec<u64> =
            lengths.as_chunks().0.iter().map(|bytes| u64::from_ne_bytes(*bytes)).collect();
        let mut starts = turns(&lengths, BYTES_OF_TURN);
        // Every rank learns the number of turns and the largest length, so that all refuse an impossible one together.
        let longest = lengths.iter().copied().max().unwrap_or(0);
        let mut head = [starts.len() as u64, longest].map(u64::to_ne_bytes).concat();
        self.broadcast(&mut head)?;
        let [count, longest] =
            [0, 8].map(|at| u64::from_ne_bytes(head[at..at + 8].try_into().unwrap_or_default()));
        length(usize::try_from(longest).unwrap_or(usize::MAX))?;
        starts.resize(count as usize, 0);
        if count > 1 {
            let mut bytes: Vec<u8> = starts.iter().flat_map(|start| start.to_ne_bytes()).collect();
            self.broadcast(&mut bytes)?;
            starts = bytes.as_chunks().0.iter().map(|start| u32::from_ne_bytes(*start)).collect();
        }
        for (turn, start) in starts.iter().enumerate() {
            let end = starts.get(turn + 1).copied().unwrap_or(self.size);
            let sent = if (*start..end).contains(&self.rank.0) { mine } else { &[] };
            self.gather_turn(sent, &lengths, *start..end, take)?;
        }
        Ok(())
    }

    /// Passes the bytes of some ranks to `take` on rank 0, which alone has their lengths. Collective; the other ranks send nothing.
    fn gather_turn(
        &self,
        mine: &[u8],
        lengths: &[u64],
        ranks: Range<u32>,
        take: &mut dyn FnMut(u32, Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        let mut counts: Vec<c_int> = vec![0; lengths.len()];
        for rank in ranks.filter(|_| !lengths.is_empty()) {
            counts[rank as usize] = length(lengths[rank as usize] as usize)?;
        }
        let before = |at: &mut c_int, count: &c_int| Some(std::mem::replace(at, *at + count));
        let starts: Vec<c_int> = counts.iter().scan(0, before).collect();
        let total = counts.iter().map(|count| *count as usize).sum::<usize>();
        let mut all = vec![0u8; total.max(1)];
        // SAFETY: `mine` has the count that this rank passes. On rank 0 `all` has `counts[r]` bytes at `starts[r]` for every
        // rank `r`; MPI ignores buffer, counts and displacements of other ranks.
        check("MPI_Gatherv", unsafe {
            ffi::MPI_Gatherv(
                start(mine),
                mine.len() as c_int,
                BYTE,
                all.as_mut_ptr().cast::<c_void>(),
                counts.as_ptr(),
                starts.as_ptr(),
                BYTE,
                0,
                self.raw,
            )
        })?;
        let sent = (0..).zip(starts.iter().zip(&counts)).filter(|(_, (_, count))| **count > 0);
        for (rank, (start, count)) in sent {
            take(rank, all[*start as usize..(*start + *count) as usize].to_vec())?;
        }
        Ok(())
    }
}

/// A barrier that this rank has entered. Its communicator exists until it is dropped.
pub(crate) struct Entered<'c> {
    request: ffi::MPI_Request,
    comm: PhantomData<&'c Comm>,
}

impl EnteredBarrier for Entered<'_> {
    fn is_complete(&mut self) -> Result<bool> {
        let mut done = 0;
        // SAFETY: `request` is the handle of a barrier, or null after its completion, which MPI reports as complete. `done`
        // outlives the call.
        check("MPI_Test", unsafe {
            ffi::MPI_Test(&raw mut self.request, &raw mut done, ffi::RSMPI_STATUS_IGNORE)
        })?;
        Ok(done != 0)
    }
}

impl Drop for Comm {
    fn drop(&mut self) {
        if error::may_free() {
            // SAFETY: `self` owns the communicator, and only `drop` frees it.
            error::check_freed(c"MPI_Comm_free", unsafe { ffi::MPI_Comm_free(&raw mut self.raw) });
        }
    }
}

/// Returns the address of a slice, or null if it is empty. Rust's address of an empty slice is 1, which Open MPI reads as
/// `MPI_IN_PLACE`.
#[inline(always)]
pub(crate) fn start(bytes: &[u8]) -> *const c_void {
    if bytes.is_empty() { std::ptr::null() } else { bytes.as_ptr().cast() }
}

fn length(bytes: usize) -> Result<c_int> {
    c_int::try_from(bytes).map_err(|_| {
        Error::fabric(format!("a message of {bytes} bytes between ranks exceeds 2 GiB; use fewer ranks"))
    })
}

/// What the calls of an iteration take: communicators, window, requests, buffers and lengths. Fields that an operation does not
/// have are null or 0.
///
/// C code may use the handles while the operation is open. Its header repeats the fields in the same order.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Handles {
    /// Communicator of the team.
    pub(crate) team: ffi::MPI_Comm,
    /// Communicator of the operation.
    pub(crate) comm: ffi::MPI_Comm,
    pub(crate) window: ffi::MPI_Win,
    pub(crate) file: ffi::MPI_File,
    /// Group of the peer alone.
    pub(crate) group: ffi::MPI_Group,
    /// Datatype of messages or of reductions.
    pub(crate) datatype: ffi::MPI_Datatype,
    /// Operation of reductions.
    pub(crate) op: ffi::MPI_Op,
    /// Displacement of slot 0 in the peer's window, or offset of the first block in a file.
    pub(crate) remote: ffi::MPI_Aint,
    pub(crate) outgoing: *mut c_void,
    pub(crate) incoming: *mut c_void,
    pub(crate) compare: *mut c_void,
    pub(crate) requests: *mut ffi::MPI_Request,
    pub(crate) counts: *const c_int,
    pub(crate) displacements: *const c_int,
    pub(crate) byte_displacements: *const ffi::MPI_Aint,
    pub(crate) datatypes: *const ffi::MPI_Datatype,
    pub(crate) partners: *const c_int,
    /// Path of a file.
    pub(crate) path: *const c_char,
    /// Bytes from one message to the next.
    pub(crate) stride: usize,
    /// Bytes from the messages of one partner to those of the next, or from one block of a rank in a file to its next one.
    pub(crate) partner_stride: usize,
    pub(crate) bytes: c_int,
    /// Number of elements of `datatype` in a message.
    pub(crate) elements: c_int,
    /// Number of messages.
    pub(crate) depth: c_int,
    pub(crate) rank: c_int,
    pub(crate) ranks: c_int,
    pub(crate) peer: c_int,
    /// Source that receives name.
    pub(crate) source: c_int,
    pub(crate) partner_count: c_int,
}

impl Handles {
    /// Returns the handles of a communicator without an operation.
    pub(crate) fn new(comm: &Comm) -> Handles {
        // SAFETY: these statics of mpi-sys are never written.
        let (window, file, group, datatype, op) = unsafe {
            (
                ffi::RSMPI_WIN_NULL,
                ffi::RSMPI_FILE_NULL,
                ffi::RSMPI_GROUP_NULL,
                ffi::RSMPI_UINT8_T,
                ffi::RSMPI_SUM,
            )
        };
        Handles {
            team: comm.raw(),
            comm: comm.raw(),
            window,
            file,
            group,
            datatype,
            op,
            remote: 0,
            outgoing: ptr::null_mut(),
            incoming: ptr::null_mut(),
            compare: ptr::null_mut(),
            requests: ptr::null_mut(),
            counts: ptr::null(),
            displacements: ptr::null(),
            byte_displacements: ptr::null(),
            datatypes: ptr::null(),
            partners: ptr::null(),
            path: ptr::null(),
            stride: 0,
            partner_stride: 0,
            bytes: 0,
            elements: 0,
            depth: 1,
            rank: comm.rank().0 as c_int,
            ranks: comm.size() as c_int,
            peer: 0,
            source: 0,
            partner_count: 0,
        }
    }

    pub(crate) fn describe_messages(
        &mut self,
        cx: &Context<'_>,
        slots: Slots,
        outgoing: &Buffer,
        incoming: &Buffer,
    ) {
        self.describe_slots(slots);
        (self.datatype, self.elements) = (BYTE, self.bytes);
        (self.peer, self.source) = (cx.peer.0 as c_int, Source::of_receive(cx, cx.peer));
        (self.outgoing, self.incoming) = (outgoing.start().cast(), incoming.start().cast());
    }

    pub(crate) fn describe_slots(&mut self, slots: Slots) {
        // Messages of 2 GiB and more are not repeated by such loops.
        self.bytes = c_int::try_from(slots.bytes).unwrap_or(c_int::MAX);
        (self.depth, self.stride) = (slots.count as c_int, slots.stride as usize);
    }
}

/// Pause between two tests of the sleeping barrier.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// The ranks of a communicator.
#[derive(Debug)]
pub struct MpiTeam {
    comm: Comm,
    /// What the operation that was opened last works on.
    handles: Cell<Handles>,
}

impl MpiTeam {
    pub(crate) fn world() -> Result<MpiTeam> {
        Comm::world().map(MpiTeam::new)
    }

    pub(crate) fn new(comm: Comm) -> MpiTeam {
        let handles = Cell::new(Handles::new(&comm));
        MpiTeam { comm, handles }
    }

    fn boxed(comm: Comm) -> Box<dyn Team> {
        Box::new(MpiTeam::new(comm))
    }

    /// Keeps the handles of an operation that is opened.
    pub(crate) fn lend(&self, describe: impl FnOnce(&mut Handles)) {
        let mut handles = Handles::new(&self.comm);
        describe(&mut handles);
        self.handles.set(handles);
    }

    /// Returns the handles of the operation that was opened last, for loops in C that repeat its calls.
    pub fn handles(&self) -> Handles {
        self.handles.get()
    }

    /// Returns the communicator.
    pub fn comm(&self) -> &Comm {
        &self.comm
    }
}

impl Team for MpiTeam {
    fn rank(&self) -> Rank {
        self.comm.rank()
    }

    fn size(&self) -> u32 {
        self.comm.size()
    }

    fn fabric(&self) -> Fabric {
        Fabric { name: "mpi", library: library::library_version() }
    }

    fn software(&self) -> Facts {
        library::facts()
    }

    fn barrier(&self) -> Result<()> {
        self.comm.barrier()
    }

    fn has_queues(&self) -> bool {
        true
    }

    fn shift(&self, messages: Shift) -> Result<()> {
        self.comm.shift(messages)
    }

    fn broadcast(&self, bytes: &mut [u8]) -> Result<()> {
        self.comm.broadcast(bytes)
    }

    fn gather(&self, mine: &[u8]) -> Result<Option<Vec<Vec<u8>>>> {
        let root = self.rank() == Rank(0);
        let mut all = vec![Vec::new(); if root { self.size() as usize } else { 0 }];
        self.comm.gather_in_turns(mine, &mut |rank, bytes| {
            all[rank as usize] = bytes;
            Ok(())
        })?;
        Ok(root.then_some(all))
    }

    fn gather_each(&self, mine: &[u8], take: &mut dyn FnMut(Vec<u8>) -> Result<()>) -> Result<()> {
        self.comm.gather_in_turns(mine, &mut |_, bytes| take(bytes))
    }

    fn subteam(&self, ranks: u32) -> Result<Option<Box<dyn Team>>> {
        let number = Some(self.rank().0).filter(|rank| *rank < ranks);
        Ok(self.comm.part(number)?.map(MpiTeam::boxed))
    }

    fn subset(&self, ranks: &[Rank]) -> Result<Option<Box<dyn Team>>> {
        let number = ranks.iter().position(|rank| *rank == self.rank());
        Ok(self.comm.part(number.map(|number| number as u32))?.map(MpiTeam::boxed))
    }

    fn enter_barrier(&self) -> Result<Box<dyn EnteredBarrier + '_>> {
        Ok(Box::new(self.comm.enter_barrier()?))
    }

    fn pair(&self, partner: Rank, first: Rank) -> Result<Box<dyn Team>> {
        self.comm.pair(partner, first).map(MpiTeam::boxed)
    }

    fn sleeping_barrier(&self) -> Result<()> {
        let mut entered = self.comm.enter_barrier()?;
        while !entered.is_complete()? {
            // The others make progress: this rank has no part in their benchmark.
            watchdog::progress();
            std::thread::sleep(POLL_INTERVAL);
        }
        Ok(())
    }

    fn name_task(&self, task: &str) {
        error::name_task(task);
    }

    fn release_memory(&self) {
        buffer::release_kept();
    }

    fn write_buffers(&self) -> Result<()> {
        buffer::write_all()
    }

    fn read_buffers(&self) -> Result<()> {
        buffer::read_all()
    }

    fn abort(&self, code: u8) -> ! {
        library::abort(code)
    }
}

/// Tag that no kernel uses.
const TAG: c_int = 3;

/// One rank's endpoint for small messages on its team's communicator.
#[derive(Debug)]
pub struct Mesh {
    comm: ffi::MPI_Comm,
}

impl mesh::Mesh for Mesh {
    fn open(cx: &Context<'_>) -> Result<Mesh> {
        Ok(Mesh { comm: cx.fabric::<MpiTeam>()?.comm().raw() })
    }

    fn describe(&self, cx: &Context<'_>, message: &mut [u8]) {
        if let Ok(team) = cx.fabric::<MpiTeam>() {
            team.lend(|handles| {
                handles.describe_slots(Slots::new(message.len() as u64, 1));
                handles.outgoing = message.as_mut_ptr().cast();
                handles.incoming = handles.outgoing;
            });
        }
    }

    #[inline(always)]
    fn barrier(&mut self) -> Result<()> {
        // SAFETY: the communicator is valid: its team outlives the case.
        check("MPI_Barrier", unsafe { ffi::MPI_Barrier(self.comm) })
    }

    #[inline(always)]
    fn send(&mut self, to: Rank, bytes: &[u8]) -> Result<()> {
        let (from, count) = (start(bytes), datatype::byte_count(bytes.len() as u64)?);
        // SAFETY: the communicator is valid, and the slice has `count` bytes, or is empty and its address null.
        check("MPI_Send", unsafe { ffi::MPI_Send(from, count, BYTE, to.0 as c_int, TAG, self.comm) })
    }

    #[inline(always)]
    fn receive(&mut self, from: Rank, bytes: &mut [u8]) -> Result<()> {
        let (into, count) = (start(bytes).cast_mut(), datatype::byte_count(bytes.len() as u64)?);
        // SAFETY: the communicator is valid. The slice is exclusively borrowed and has `count` bytes, or is empty and its
        // address null.
        check("MPI_Recv", unsafe {
            let ignore = ffi::RSMPI_STATUS_IGNORE;
            ffi::MPI_Recv(into, count, BYTE, from.0 as c_int, TAG, self.comm, ignore)
        })
    }

    #[inline(always)]
    fn pass(&mut self, to: Rank, from: Rank) -> Result<()> {
        let none = std::ptr::null_mut();
        let (to, from) = (to.0 as c_int, from.0 as c_int);
        // SAFETY: the communicator is valid. Both counts are 0, so MPI accesses neither buffer.
        check("MPI_Sendrecv", unsafe {
            let (comm, ignore) = (self.comm, ffi::RSMPI_STATUS_IGNORE);
            ffi::MPI_Sendrecv(none, 0, BYTE, to, TAG, none, 0, BYTE, from, TAG, comm, ignore)
        })
    }
}
