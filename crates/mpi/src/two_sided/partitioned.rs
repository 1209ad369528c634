//! Two-sided traffic with one peer by partitioned messages: all messages in flight are partitions of one message.

use std::ffi::{c_int, c_void};

use mpi::ffi;
use ombx_core::{
    benchmark::{
        Context,
        payload::{Numbering, Slots},
    },
    error::{Error, Result},
    two_sided::pattern::Link,
};

use crate::{
    Buffer, MpiTeam,
    runtime::library::library_name,
    sys::{self, BYTE, PersistentRequests, datatype::MessageType, error::check, session::Partitioned},
};

const TAG: c_int = 4;

/// Traffic with one peer by `MPI_Psend_init`, `MPI_Precv_init`, `MPI_Start` and `MPI_Pready`. It owns the buffers that its
/// requests use, and drops the requests first.
#[derive(Debug)]
pub struct PartitionedChannel {
    /// For each copy of the buffers the incoming and the outgoing message, then receive and send of the acknowledgement.
    requests: PersistentRequests,
    /// Index of the first request of the copy that calls use.
    at: usize,
    numbering: Numbering,
    /// Index of the receive of the acknowledgement.
    acknowledgement: usize,
    partitions: c_int,
    calls: Partitioned,
    outgoing: Buffer,
    incoming: Buffer,
}

/// Returns the functions, or an error that names a library without them.
fn find() -> std::result::Result<Partitioned, String> {
    Partitioned::find()
        .ok_or_else(|| format!("needs partitioned messages of MPI 4; this is {}", library_name()))
}

/// Requests of a copy: that of the incoming message and that of the outgoing one.
const OUTGOING: usize = 1;
const MESSAGES: usize = 2;

impl PartitionedChannel {
    /// Checks that the library has partitioned messages.
    ///
    /// # Errors
    /// A message that names the library.
    pub fn available() -> std::result::Result<(), String> {
        find().map(drop)
    }

    /// Creates the requests of all copies. Messages of the same copy match, because both ranks create them in the same order.
    fn create_requests(
        &mut self,
        slots: Slots,
        partition: &MessageType<ffi::MPI_Count>,
        peer: c_int,
        comm: ffi::MPI_Comm,
    ) -> Result<()> {
        let (partitions, &MessageType { raw, count, .. }) = (self.partitions, partition);
        let Partitioned { send_init, receive_init, .. } = self.calls;
        // SAFETY: these statics of mpi-sys are never written.
        let (none, info) = unsafe { (ffi::RSMPI_REQUEST_NULL, ffi::RSMPI_INFO_NULL) };
        for copy in slots.copies.offsets() {
            let [to, from] = [&mut self.outgoing, &mut self.incoming].map(|buffer| {
                buffer.move_to(copy);
                buffer.start().cast::<c_void>()
            });
            let [mut message_in, mut message_out] = [none; MESSAGES];
            // SAFETY: a copy of each buffer has all partitions, because slots are packed. The channel drops the
            // requests before the buffers.
            unsafe {
                check(
                    "MPI_Precv_init",
                    receive_init(from, partitions, count, raw, peer, TAG, comm, info, &raw mut message_in),
                )?;
                check(
                    "MPI_Psend_init",
                    send_init(to, partitions, count, raw, peer, TAG, comm, info, &raw mut message_out),
                )?;
            }
            self.requests.0.extend([message_in, message_out]);
        }
        self.move_to(0);
        let (to, from) = (self.outgoing.start().cast::<c_void>(), self.incoming.start().cast::<c_void>());
        let [mut acknowledgement_in, mut acknowledgement_out] = [none; 2];
        // SAFETY: the messages are empty, so that MPI does not access the buffers.
        unsafe {
            check(
                "MPI_Recv_init",
                ffi::MPI_Recv_init(from, 0, BYTE, peer, TAG + 1, comm, &raw mut acknowledgement_in),
            )?;
            check(
                "MPI_Send_init",
                ffi::MPI_Send_init(to, 0, BYTE, peer, TAG + 1, comm, &raw mut acknowledgement_out),
            )?;
        }
        self.requests.0.extend([acknowledgement_in, acknowledgement_out]);
        Ok(())
    }

    #[inline(always)]
    fn start(&mut self, at: usize) -> Result<()> {
        // SAFETY: an inactive persistent request on a buffer that `self` owns.
        check("MPI_Start", unsafe { ffi::MPI_Start(&raw mut self.requests.0[at]) })
    }

    #[inline(always)]
    fn wait(&mut self, at: usize) -> Result<()> {
        let request = &raw mut self.requests.0[at];
        // SAFETY: a persistent request that `start` has started, on a buffer that `self` owns.
        check("MPI_Wait", unsafe { ffi::MPI_Wait(request, ffi::RSMPI_STATUS_IGNORE) })
    }

    #[inline(always)]
    fn ready(&mut self) -> Result<()> {
        let outgoing = self.requests.0[self.at + OUTGOING];
        for partition in 0..self.partitions {
            // SAFETY: the partitioned send is started, and the loop marks each of its partitions once.
            check("MPI_Pready", unsafe { (self.calls.ready)(partition, outgoing) })?;
        }
        Ok(())
    }
}

impl Link for PartitionedChannel {
    const PACKED: bool = true;
    const COPIES: bool = true;

    fn open(cx: &Context<'_>, slots: Slots) -> Result<PartitionedChannel> {
        let team: &MpiTeam = cx.fabric()?;
        let calls = find().map_err(Error::unsupported)?;
        sys::afford(cx, slots.copies, MESSAGES as u64, 2 * slots.reserved())?;
        let partition = MessageType::counted(slots, |count| Ok(count as ffi::MPI_Count));
        let (partition, outgoing, incoming) = Buffer::two(cx, partition, slots.copies, slots.total())?;
        let mut channel = PartitionedChannel {
            requests: PersistentRequests::default(),
            at: 0,
            numbering: slots.copies.numbering(),
            acknowledgement: slots.copies.count() as usize * MESSAGES,
            partitions: slots.count as c_int,
            calls,
            outgoing,
            incoming,
        };
        channel.create_requests(slots, &partition, cx.peer.0 as c_int, team.comm().raw())?;
        team.lend(|handles| {
            handles.describe_messages(cx, slots, &channel.outgoing, &channel.incoming);
            handles.requests = channel.requests.0.as_mut_ptr();
        });
        Ok(channel)
    }

    #[inline(always)]
    fn send(&mut self) -> Result<()> {
        self.push()
    }

    #[inline(always)]
    fn receive(&mut self) -> Result<()> {
        self.pull()
    }

    #[inline(always)]
    fn push(&mut self) -> Result<()> {
        self.start(self.at + OUTGOING)?;
        self.ready()?;
        self.wait(self.at + OUTGOING)
    }

    #[inline(always)]
    fn pull(&mut self) -> Result<()> {
        self.start(self.at)?;
        self.wait(self.at)
    }

    #[inline(always)]
    fn swap(&mut self) -> Result<()> {
        self.start(self.at)?;
        self.start(self.at + OUTGOING)?;
        self.ready()?;
        self.wait(self.at)?;
        self.wait(self.at + OUTGOING)
    }

    #[inline(always)]
    fn acknowledge(&mut self) -> Result<()> {
        self.start(self.acknowledgement + 1)?;
        self.wait(self.acknowledgement + 1)
    }

    #[inline(always)]
    fn acknowledged(&mut self) -> Result<()> {
        self.start(self.acknowledgement)?;
        self.wait(self.acknowledgement)
    }

    #[inline(always)]
    fn move_to(&mut self, offset: usize) {
        self.at = self.numbering.number(offset) * MESSAGES;
        self.outgoing.move_to(offset);
        self.incoming.move_to(offset);
    }

    buffers!();
}
