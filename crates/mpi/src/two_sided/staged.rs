//! Two-sided traffic that copies messages through memory of the host, as programs do whose MPI takes no memory of devices.

use std::ffi::{c_int, c_void};

use ombx_accelerator::{Copies, Pinned, device};
use ombx_core::{
    benchmark::{Context, memory::BufferMemory, payload::Slots},
    error::{Error, Result},
    two_sided::pattern::Link,
};

use crate::Buffer;

/// A link between buffers on devices. Messages are copied to pinned memory of the host before they are sent, and from there after
/// they were received, each by one call of the driver that returns when the copy is complete.
pub struct Staged<L> {
    /// Unpinned first: fields are dropped in this order.
    _pinned: [Pinned; 2],
    link: L,
    outgoing: StagedBuffer,
    incoming: StagedBuffer,
    slots: Slots,
}

/// A buffer on a device, and the one of the host through which its messages are copied.
struct StagedBuffer {
    buffer: Buffer,
    copies: Copies,
    host: *mut c_void,
}

impl StagedBuffer {
    /// Returns a buffer on the device for one of the host, which is pinned.
    fn open(cx: &Context<'_>, host: &mut [u8]) -> Result<(StagedBuffer, Pinned)> {
        let place = cx.get::<BufferMemory>().place(cx.role);
        let buffer = Buffer::reserved(host.len() as u64)?.on(place)?;
        let refused = || Error::unsupported("--staged needs the memory of a device on both sides");
        let (there, api) = buffer.on_device().zip(place.api()).ok_or_else(refused)?;
        let (copies, start) = (there.copies(), host.as_mut_ptr());
        // SAFETY: the link owns the memory, and its owner drops the result before the link.
        let pinned = unsafe { Pinned::new(device(api)?, start, host.len()) }?;
        Ok((StagedBuffer { buffer, copies, host: start.cast() }, pinned))
    }

    #[inline(always)]
    fn to_host(&self, slots: Slots, count: u32) -> Result<()> {
        for slot in 0..count {
            let offset = slots.offset(slot);
            // SAFETY: `self` owns both buffers, which have the message at this offset.
            copied(unsafe { self.copies.to_host(self.host.byte_add(offset), offset, slots.bytes as usize) })?;
        }
        Ok(())
    }

    #[inline(always)]
    fn to_device(&self, slots: Slots, count: u32) -> Result<()> {
        for slot in 0..count {
            let offset = slots.offset(slot);
            // SAFETY: as above.
            copied(unsafe {
                self.copies.to_device(offset, self.host.byte_add(offset), slots.bytes as usize)
            })?;
        }
        Ok(())
    }
}

/// Returns an error unless a copy has succeeded.
#[inline(always)]
pub(crate) fn copied(code: c_int) -> Result<()> {
    if code == 0 { Ok(()) } else { Err(failed(code)) }
}

#[cold]
fn failed(code: c_int) -> Error {
    Error::fabric(format!("a copy between host and device failed: error {code} of the driver"))
}

impl<L: Link> Link for Staged<L> {
    const MAX_ELEMENTS: u64 = L::MAX_ELEMENTS;
    const PACKED: bool = L::PACKED;
    const COPIES: bool = L::COPIES;

    fn open(cx: &Context<'_>, slots: Slots) -> Result<Staged<L>> {
        if slots.blocks.is_some() {
            return Err(Error::unsupported(
                "--staged copies contiguous messages: choose --datatype contiguous",
            ));
        }
        let mut link = L::open(cx, slots)?;
        let sides = StagedBuffer::open(cx, link.outgoing())
            .and_then(|out| Ok((out, StagedBuffer::open(cx, link.incoming())?)));
        let ((outgoing, pinned), (incoming, also_pinned)) = cx.agree(sides)?;
        Ok(Staged { _pinned: [pinned, also_pinned], link, outgoing, incoming, slots })
    }

    #[inline(always)]
    fn send(&mut self) -> Result<()> {
        self.outgoing.to_host(self.slots, 1)?;
        self.link.send()
    }

    #[inline(always)]
    fn receive(&mut self) -> Result<()> {
        self.link.receive()?;
        self.incoming.to_device(self.slots, 1)
    }

    #[inline(always)]
    fn push(&mut self) -> Result<()> {
        self.outgoing.to_host(self.slots, self.slots.count)?;
        self.link.push()
    }

    #[inline(always)]
    fn pull(&mut self) -> Result<()> {
        self.link.pull()?;
        self.incoming.to_device(self.slots, self.slots.count)
    }

    #[inline(always)]
    fn swap(&mut self) -> Result<()> {
        self.outgoing.to_host(self.slots, self.slots.count)?;
        self.link.swap()?;
        self.incoming.to_device(self.slots, self.slots.count)
    }

    ombx_core::forwards!(link: acknowledge, acknowledged, begin, end -> Result<()>);

    fn outgoing(&mut self) -> &mut [u8] {
        self.outgoing.buffer.bytes_mut()
    }

    fn incoming(&mut self) -> &mut [u8] {
        self.incoming.buffer.bytes_mut()
    }
}
