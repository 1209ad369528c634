//! Two-sided traffic with one peer by partitioned messages: all messages in flight are partitions of one message.

use ombx_core::{
    benchmark::{Context, payload::Slots},
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
        sys::{
            constants::BYTE,
            error::{self, check},
        },
    };

    const TAG: c_int = 4;

    /// Traffic with one peer by `MPI_Psend_init`, `MPI_Precv_init`, `MPI_Start` and `MPI_Pready`. It owns the buffers that its
    /// requests use, and frees the requests first.
    #[derive(Debug)]
    pub struct PartitionedChannel {
        /// Indexed by the constants below.
        requests: Box<[ffi::MPI_Request; 4]>,
        partitions: c_int,
        outgoing: Buffer,
        incoming: Buffer,
    }

    const INCOMING: usize = 0;
    const OUTGOING: usize = 1;
    const ACKNOWLEDGEMENT_IN: usize = 2;
    const ACKNOWLEDGEMENT_OUT: usize = 3;

    impl PartitionedChannel {
        /// Succeeds: this library has partitioned messages.
        ///
        /// # Errors
        /// Never.
        pub fn available() -> std::result::Result<(), String> {
            Ok(())
        }

        #[inline(always)]
        fn start(&mut self, at: usize) -> Result<()> {
            // SAFETY: an inactive persistent request on a buffer that `self` owns.
            check("MPI_Start", unsafe { ffi::MPI_Start(&raw mut self.requests[at]) })
        }

        #[inline(always)]
        fn wait(&mut self, at: usize) -> Result<()> {
            let request = &raw mut self.requests[at];
            // SAFETY: a persistent request that `start` has started, on a buffer that `self` owns.
            check("MPI_Wait", unsafe { ffi::MPI_Wait(request, ffi::RSMPI_STATUS_IGNORE) })
        }

        #[inline(always)]
        fn ready(&mut self) -> Result<()> {
            for partition in 0..self.partitions {
                // SAFETY: the partitioned send is started, and the loop marks each of its partitions once.
                check("MPI_Pready", unsafe { ffi::MPI_Pready(partition, self.requests[OUTGOING]) })?;
            }
            Ok(())
        }
    }

    impl Link for PartitionedChannel {
        const PACKED: bool = true;

        fn open(cx: &Context<'_>, slots: Slots) -> Result<PartitionedChannel> {
            let team: &MpiTeam = cx.fabric()?;
            let comm = team.comm().raw();
            let buffers =
                Buffer::reserved(slots.total()).and_then(|out| Ok((out, Buffer::reserved(slots.total())?)));
            let (outgoing, incoming) = cx.agree(buffers)?;
            let (partitions, peer) = (slots.count as c_int, cx.peer.0 as c_int);
            let (to, from) = (outgoing.start().cast::<c_void>(), incoming.start().cast::<c_void>());
            let bytes = slots.bytes as ffi::MPI_Count;
            // SAFETY: each buffer has `partitions` times `bytes` bytes, because slots are packed. The channel frees the requests
            // before the buffers.
            unsafe {
                let mut requests = Box::new([ffi::RSMPI_REQUEST_NULL; 4]);
                let [message_in, message_out, acknowledgement_in, acknowledgement_out] = &mut *requests;
                let info = ffi::RSMPI_INFO_NULL;
                check(
                    "MPI_Precv_init",
                    ffi::MPI_Precv_init(from, partitions, bytes, BYTE, peer, TAG, comm, info, message_in),
                )?;
                check(
                    "MPI_Psend_init",
                    ffi::MPI_Psend_init(to, partitions, bytes, BYTE, peer, TAG, comm, info, message_out),
                )?;
                check(
                    "MPI_Recv_init",
                    ffi::MPI_Recv_init(from, 0, BYTE, peer, TAG + 1, comm, acknowledgement_in),
                )?;
                check(
                    "MPI_Send_init",
                    ffi::MPI_Send_init(to, 0, BYTE, peer, TAG + 1, comm, acknowledgement_out),
                )?;
                team.lend(|handles| {
                    handles.describe_messages(cx, slots, &outgoing, &incoming);
                    handles.requests = requests.as_mut_ptr();
                });
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
            self.start(ACKNOWLEDGEMENT_OUT)?;
            self.wait(ACKNOWLEDGEMENT_OUT)
        }

        #[inline(always)]
        fn acknowledged(&mut self) -> Result<()> {
            self.start(ACKNOWLEDGEMENT_IN)?;
            self.wait(ACKNOWLEDGEMENT_IN)
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
            if error::may_free() {
                for request in &mut *self.requests {
                    // SAFETY: every request is inactive between calls, and only `drop` frees it.
                    error::check_freed(c"MPI_Request_free", unsafe {
                        ffi::MPI_Request_free(&raw mut *request)
                    });
                }
            }
        }
    }
}

#[cfg(not(mpi_has = "MPI_Psend_init"))]
mod absent {
    use super::{Context, Link, Result, Slots};

    /// A type without values: this library has no partitioned messages.
    #[derive(Debug)]
    pub enum PartitionedChannel {}

    impl PartitionedChannel {
        /// Fails: this library has no partitioned messages.
        ///
        /// # Errors
        /// Always, with the name of the library.
        pub fn available() -> std::result::Result<(), String> {
            Err(format!(
                "needs partitioned messages of MPI 4; this is {}",
                crate::runtime::library::library_name()
            ))
        }
    }

    /// Defines functions that cannot be called, because the type has no values.
    macro_rules! uncallable {
        ($($name:ident -> $result:ty;)*) => {$(
            fn $name(&mut self) -> $result {
                match *self {}
            }
        )*};
    }

    impl Link for PartitionedChannel {
        fn open(_: &Context<'_>, _: Slots) -> Result<PartitionedChannel> {
            Err(ombx_core::error::Error::unsupported(Self::available().err().unwrap_or_default()))
        }

        uncallable! {
            send -> Result<()>;
            receive -> Result<()>;
            push -> Result<()>;
            pull -> Result<()>;
            swap -> Result<()>;
            acknowledge -> Result<()>;
            acknowledged -> Result<()>;
            outgoing -> &mut [u8];
            incoming -> &mut [u8];
        }
    }
}
