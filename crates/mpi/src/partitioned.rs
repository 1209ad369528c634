//! One end of two-sided traffic by partitioned messages: a window is one message, each of its parts marked ready by itself.

use ombx_core::{
    benchmark::{context::Context, payload::Slots},
    error::Result,
    two_sided::pattern::Link,
};

#[cfg(not(mpi_has = "MPI_Psend_init"))]
pub use self::absent::PartitionedChannel;
#[cfg(mpi_has = "MPI_Psend_init")]
pub use self::present::PartitionedChannel;

#[cfg(mpi_has = "MPI_Psend_init")]
mod present {
    use std::ffi::{c_int, c_void};

    use mpi::ffi;

    use super::{Context, Link, Result, Slots};
    use crate::{
        Buffer, MpiTeam,
        ext::{self, BYTE, check},
    };

    const TAG: c_int = 4;

    /// Two-sided MPI with one peer by `MPI_Psend_init`, `MPI_Precv_init`, `MPI_Start` and `MPI_Pready`. It owns the buffers
    /// that its requests use, and frees the requests before them.
    #[derive(Debug)]
    pub struct PartitionedChannel {
        /// The message in, the message out, the receipt in, the receipt out.
        requests: [ffi::MPI_Request; 4],
        partitions: c_int,
        outgoing: Buffer,
        incoming: Buffer,
    }

    const INCOMING: usize = 0;
    const OUTGOING: usize = 1;
    const RECEIPT: usize = 2;

    impl PartitionedChannel {
        /// This MPI has them.
        pub fn available() -> std::result::Result<(), String> {
            Ok(())
        }

        #[inline(always)]
        fn start(&mut self, at: usize) -> Result<()> {
            // SAFETY: an inactive request of ours, on a buffer that lives as long as we do.
            check("MPI_Start", unsafe { ffi::MPI_Start(&raw mut self.requests[at]) })
        }

        #[inline(always)]
        fn wait(&mut self, at: usize) -> Result<()> {
            let request = &raw mut self.requests[at];
            // SAFETY: a started request of ours.
            check("MPI_Wait", unsafe { ffi::MPI_Wait(request, ffi::RSMPI_STATUS_IGNORE) })
        }

        #[inline(always)]
        fn ready(&mut self) -> Result<()> {
            for partition in 0..self.partitions {
                // SAFETY: a started partitioned send, each of whose partitions is marked once.
                check("MPI_Pready", unsafe { ffi::MPI_Pready(partition, self.requests[OUTGOING]) })?;
            }
            Ok(())
        }
    }

    impl Link for PartitionedChannel {
        const PACKED: bool = true;

        fn open(cx: &Context<'_>, slots: Slots) -> Result<PartitionedChannel> {
            let comm = cx.fabric::<MpiTeam>()?.comm().raw();
            let buffers =
                Buffer::zeroed(slots.total()).and_then(|out| Ok((out, Buffer::zeroed(slots.total())?)));
            let (outgoing, incoming) = cx.agree(buffers)?;
            let (partitions, peer) = (slots.count as c_int, cx.peer.0 as c_int);
            let (to, from) = (outgoing.start().cast::<c_void>(), incoming.start().cast::<c_void>());
            let bytes = slots.bytes as ffi::MPI_Count;
            // SAFETY: `partitions` times `bytes` bytes lie in each buffer; the requests are written by MPI.
            unsafe {
                let mut requests = [ffi::RSMPI_REQUEST_NULL; 4];
                let [message_in, message_out, receipt_in, receipt_out] = &mut requests;
                let info = ffi::RSMPI_INFO_NULL;
                check(
                    "MPI_Precv_init",
                    ffi::MPI_Precv_init(from, partitions, bytes, BYTE, peer, TAG, comm, info, message_in),
                )?;
                check(
                    "MPI_Psend_init",
                    ffi::MPI_Psend_init(to, partitions, bytes, BYTE, peer, TAG, comm, info, message_out),
                )?;
                check("MPI_Recv_init", ffi::MPI_Recv_init(from, 0, BYTE, peer, TAG + 1, comm, receipt_in))?;
                check("MPI_Send_init", ffi::MPI_Send_init(to, 0, BYTE, peer, TAG + 1, comm, receipt_out))?;
                Ok(PartitionedChannel { requests, partitions, outgoing, incoming })
            }
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
            self.start(OUTGOING)?;
            self.ready()?;
            self.wait(OUTGOING)
        }

        #[inline(always)]
        fn pull(&mut self) -> Result<()> {
            self.start(INCOMING)?;
            self.wait(INCOMING)
        }

        #[inline(always)]
        fn swap(&mut self) -> Result<()> {
            self.start(INCOMING)?;
            self.start(OUTGOING)?;
            self.ready()?;
            self.wait(INCOMING)?;
            self.wait(OUTGOING)
        }

        #[inline(always)]
        fn acknowledge(&mut self) -> Result<()> {
            self.start(RECEIPT + 1)?;
            self.wait(RECEIPT + 1)
        }

        #[inline(always)]
        fn acknowledged(&mut self) -> Result<()> {
            self.start(RECEIPT)?;
            self.wait(RECEIPT)
        }

        fn outgoing(&mut self) -> &mut [u8] {
            self.outgoing.bytes_mut()
        }

        fn incoming(&mut self) -> &mut [u8] {
            self.incoming.bytes_mut()
        }
    }

    impl Drop for PartitionedChannel {
        fn drop(&mut self) {
            if ext::may_free() {
                for request in &mut self.requests {
                    // SAFETY: inactive, ours, freed once.
                    ext::freed(c"MPI_Request_free", unsafe { ffi::MPI_Request_free(&raw mut *request) });
                }
            }
        }
    }
}

#[cfg(not(mpi_has = "MPI_Psend_init"))]
mod absent {
    use super::{Context, Link, Result, Slots};

    /// There is none: this MPI has no partitioned messages.
    #[derive(Debug)]
    pub enum PartitionedChannel {}

    impl PartitionedChannel {
        /// Why there is none.
        pub fn available() -> std::result::Result<(), String> {
            Err(format!("needs partitioned messages of MPI 4; this is {}", crate::library::library_name()))
        }
    }

    impl Link for PartitionedChannel {
        fn send(&mut self) -> Result<()> {
            match *self {}
        }

        fn receive(&mut self) -> Result<()> {
            match *self {}
        }

        fn push(&mut self) -> Result<()> {
            match *self {}
        }

        fn pull(&mut self) -> Result<()> {
            match *self {}
        }

        fn swap(&mut self) -> Result<()> {
            match *self {}
        }

        fn acknowledge(&mut self) -> Result<()> {
            match *self {}
        }

        fn acknowledged(&mut self) -> Result<()> {
            match *self {}
        }

        fn open(_: &Context<'_>, _: Slots) -> Result<PartitionedChannel> {
            Err(ombx_core::error::Error::unsupported(Self::available().err().unwrap_or_default()))
        }

        fn outgoing(&mut self) -> &mut [u8] {
            match *self {}
        }

        fn incoming(&mut self) -> &mut [u8] {
            match *self {}
        }
    }
}
