//! Two-sided traffic with one peer by ready sends. Every receive is posted before its message is sent.

use mpi::ffi;
use ombx_core::{
    benchmark::{Context, Role, payload::Slots},
    error::Result,
    two_sided::pattern::Link,
};

use super::mode::{ModeChannel, Ready};
use crate::sys::error::{self, check};

/// Traffic with one peer by `MPI_Rsend` and `MPI_Irsend`, for patterns in which the passive rank receives first.
///
/// A rank posts its next receives before the message that lets the other rank send: the passive rank before the timed loop, and then
/// before each reply or acknowledgement; the active rank before each message that is answered. What is posted after the last iteration
/// is cancelled.
#[derive(Debug)]
pub struct ReadyChannel {
    mode: ModeChannel<Ready>,
    role: Role,
}

impl ReadyChannel {
    /// Cancels the receives that are posted.
    fn cancel(&mut self) -> Result<()> {
        for request in &mut self.mode.channel.requests {
            // SAFETY: these statics of mpi-sys are never written. A request that is not null is a receive that `post` has started, and no
            // message for it is sent before the next `begin`.
            unsafe {
                if *request != ffi::RSMPI_REQUEST_NULL {
                    check("MPI_Cancel", ffi::MPI_Cancel(&raw mut *request))?;
                    check("MPI_Wait", ffi::MPI_Wait(&raw mut *request, ffi::RSMPI_STATUS_IGNORE))?;
                }
            }
        }
        Ok(())
    }
}

impl Link for ReadyChannel {
    const MAX_ELEMENTS: u64 = ModeChannel::<Ready>::MAX_ELEMENTS;

    fn open(cx: &Context<'_>, slots: Slots) -> Result<ReadyChannel> {
        Ok(ReadyChannel { mode: ModeChannel::open(cx, slots)?, role: cx.role })
    }

    fn begin(&mut self) -> Result<()> {
        match self.role {
            Role::Active => self.mode.acknowledged(),
            Role::Passive => {
                self.mode.channel.start_receives()?;
                self.mode.acknowledge()
            }
        }
    }

    fn end(&mut self) -> Result<()> {
        self.cancel()
    }

    #[inline(always)]
    fn send(&mut self) -> Result<()> {
        self.mode.channel.start_receives()?;
        self.mode.send()
    }

    #[inline(always)]
    fn receive(&mut self) -> Result<()> {
        let request = &raw mut self.mode.channel.requests[0];
        // SAFETY: `send` or `begin` has started the receive into a buffer that the channel owns.
        check("MPI_Wait", unsafe { ffi::MPI_Wait(request, ffi::RSMPI_STATUS_IGNORE) })
    }

    #[inline(always)]
    fn push(&mut self) -> Result<()> {
        self.mode.push()
    }

    #[inline(always)]
    fn pull(&mut self) -> Result<()> {
        self.mode.channel.wait_all(self.mode.channel.slots.count as usize)
    }

    #[inline(always)]
    fn swap(&mut self) -> Result<()> {
        Err(ombx_core::error::Error::unsupported(
            "ready sends in both directions at once may precede their receives",
        ))
    }

    #[inline(always)]
    fn acknowledge(&mut self) -> Result<()> {
        self.mode.channel.start_receives()?;
        self.mode.acknowledge()
    }

    #[inline(always)]
    fn acknowledged(&mut self) -> Result<()> {
        self.mode.acknowledged()
    }

    fn outgoing(&mut self) -> &mut [u8] {
        self.mode.outgoing()
    }

    fn incoming(&mut self) -> &mut [u8] {
        self.mode.incoming()
    }
}

impl Drop for ReadyChannel {
    fn drop(&mut self) {
        if error::may_free() {
            // A load ends without `end`. After a failure the job ends.
            let _ = self.cancel();
        }
    }
}
