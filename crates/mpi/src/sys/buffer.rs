//! Message memory: page-aligned, at a fixed address. The memory of dropped buffers is kept, so that each page is touched once.

use std::{
    mem, ptr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use ombx_accelerator::{Allocation, Copies, Pinned, device};
use ombx_core::{
    benchmark::{
        Context,
        memory::{self, BufferMemory, Place, Staged},
        payload::Slots,
    },
    error::{Error, Result},
};

use crate::runtime::device_support;

const PAGE: usize = 4096;

/// Memory of the first, second, .. buffer that exist at the same time; `None` while the buffer exists.
///
/// The first write to a new page takes several times as long as writing a pattern into one that is resident. Cases open their buffers in
/// the same order, and a rank mostly writes to the same ones: those of a larger case grow the memory that is resident already.
struct Kept(Vec<Option<Mapping>>);

static KEPT: Mutex<Kept> = Mutex::new(Kept(Vec::new()));

fn kept() -> MutexGuard<'static, Kept> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the memory of dropped buffers to the system.
pub(crate) fn release_kept() {
    kept().0.iter_mut().flatten().for_each(|mapping| *mapping = Mapping::NONE);
}

impl Kept {
    /// Returns at least `length` bytes with their place: the first one without a buffer, whose memory may grow.
    fn take(&mut self, length: usize) -> Option<(usize, Mapping)> {
        let place = self.0.iter().position(Option::is_some).unwrap_or_else(|| {
            self.0.push(Some(Mapping::NONE));
            self.0.len() - 1
        });
        let mapping = self.0[place].take().unwrap_or(Mapping::NONE);
        let enough = if mapping.length < length { mapping.grown(length) } else { Some(mapping) };
        if enough.is_none() {
            self.0[place] = Some(Mapping::NONE);
        }
        enough.map(|mapping| (place, mapping))
    }

    /// Keeps the memory of a dropped buffer.
    fn put(&mut self, place: usize, mapping: Mapping) {
        self.0[place] = Some(mapping);
    }
}

/// Page-aligned memory whose address does not change until it is dropped.
///
/// A buffer that was [`Buffer::placed`] on a device has its address there, and a copy in the memory of the host, which
/// [`Buffer::bytes_mut`] returns.
///
/// Calls use one copy of its content, which is the whole buffer unless [`Buffer::in_copies`] makes it a part.
#[derive(Debug)]
pub struct Buffer {
    mapping: Mapping,
    /// Place of the mapping in [`KEPT`].
    place: usize,
    /// Address of the first copy for calls.
    first: *mut u8,
    /// Address of the copy that calls use.
    at: *mut u8,
    /// Bytes of a copy.
    size: usize,
    /// Largest offset of a copy.
    last: usize,
    /// Where the buffer is if it is on a device.
    on_device: Option<Arc<OnDevice>>,
    /// Keeps the memory pinned.
    pinned: Option<Pinned>,
}

// SAFETY: the pages belong to the process, and the buffer has the only pointers to them.
unsafe impl Send for Buffer {}

impl Buffer {
    /// Returns a buffer of `bytes` bytes, at least one, all zero and all resident.
    ///
    /// # Errors
    /// The memory is not available.
    pub fn zeroed(bytes: u64) -> Result<Buffer> {
        let mut buffer = Buffer::reserved(bytes)?;
        buffer.mapping.populate(buffer.size);
        buffer.bytes_mut().fill(0);
        Ok(buffer)
    }

    /// Returns a buffer of `bytes` bytes, at least one, of any content. Pages are resident once they are written: every byte that a timed
    /// region accesses is to be written before, and the rest takes no memory.
    ///
    /// # Errors
    /// The address space is not available.
    pub fn reserved(bytes: u64) -> Result<Buffer> {
        let size = usize::try_from(bytes).unwrap_or(usize::MAX).max(1);
        let pages = size.checked_next_multiple_of(PAGE).and_then(|pages| kept().take(pages));
        let (place, mapping) = pages
            .ok_or_else(|| Error::unsupported(format!("a buffer of {bytes} bytes could not be allocated")))?;
        let first = mapping.start;
        Ok(Buffer { mapping, place, first, at: first, size, last: 0, on_device: None, pinned: None })
    }

    /// Returns a buffer of all copies of some slots, as [`Buffer::reserved`].
    ///
    /// # Errors
    /// The address space is not available.
    pub fn from_slots(slots: Slots) -> Result<Buffer> {
        Ok(Buffer::reserved(slots.reserved())?.in_copies(slots.total()))
    }

    /// Returns what a rank needs beside its buffers, a buffer of what it sends and one of what it receives, each with copies of `bytes`
    /// bytes, where the case has the buffers of this rank. Collective.
    ///
    /// # Errors
    /// Those of [`Buffer::reserved`] and [`Buffer::placed`], and that of `beside`, on every rank if one has it.
    pub(crate) fn two<T>(
        cx: &Context<'_>,
        beside: Result<T>,
        copies: memory::Copies,
        bytes: u64,
    ) -> Result<(T, Buffer, Buffer)> {
        let buffer =
            || Buffer::reserved(copies.total(bytes))?.placed(cx).map(|buffer| buffer.in_copies(bytes));
        cx.agree(beside.and_then(|beside| Ok((beside, buffer()?, buffer()?))))
    }

    /// Returns the buffer where the case has the buffers of this rank, if that is on a device. The memory of the host remains.
    ///
    /// # Errors
    /// The device has too little memory, the MPI library does not take its memory, or the case cannot have its buffers there.
    pub fn placed(self, cx: &Context<'_>) -> Result<Buffer> {
        self.on(place(cx)?)
    }

    /// Returns the buffer at a place.
    ///
    /// # Errors
    /// There is no device, it has too little memory, or the memory of the host cannot be pinned.
    pub(crate) fn on(mut self, place: Place) -> Result<Buffer> {
        if let Place::Pinned(api) = place {
            // SAFETY: the pages belong to `self`, which unpins them before it gives them away.
            let pinned = unsafe { Pinned::new(device(api)?, self.mapping.start, self.last + self.size) }?;
            self.pinned = Some(pinned);
        }
        self.on_device = OnDevice::new(place, self.mapping.start, self.last + self.size)?;
        self.first = self.on_device.as_ref().map_or(self.mapping.start, |there| there.address());
        self.at = self.first;
        Ok(self)
    }

    /// Returns where the buffer is if it is on a device.
    pub(crate) fn on_device(&self) -> Option<&OnDevice> {
        self.on_device.as_deref()
    }

    /// Returns the buffer as copies of `bytes` bytes, at least one, of which calls use the first.
    #[must_use]
    pub fn in_copies(self, bytes: u64) -> Buffer {
        let all = self.last + self.size;
        let size = usize::try_from(bytes).unwrap_or(usize::MAX).clamp(1, all);
        let (mut buffer, last) = (self, all - size);
        (buffer.at, buffer.size, buffer.last) = (buffer.first, size, last);
        buffer
    }

    /// Makes the copy at an offset the one that calls use. A buffer without copies stays where it is.
    #[inline(always)]
    pub fn move_to(&mut self, offset: usize) {
        self.at = self.first.wrapping_add(offset.min(self.last));
    }

    /// Returns the address of the first byte for calls, which is valid for the length of a copy and the buffer's lifetime.
    pub fn start(&self) -> *mut u8 {
        self.at
    }

    /// Returns the copy that calls use as a slice, in the memory of the host.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        if let Some(there) = &self.on_device {
            there.changes();
        }
        let offset = self.at as usize - self.first as usize;
        // SAFETY: the mapping has at least `last + size` bytes, the offset is at most `last`, and the kernel has zeroed
        // it. `&mut self` excludes other references to it.
        unsafe { std::slice::from_raw_parts_mut(self.mapping.start.add(offset), self.size) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        (self.on_device, self.pinned) = (None, None);
        kept().put(self.place, mem::replace(&mut self.mapping, Mapping::NONE));
    }
}

/// Pages that this process owns.
///
/// They are mapped, moved and unmapped through the C library. MPI libraries intercept these calls to track memory that they have
/// registered with a network adapter.
#[derive(Debug)]
struct Mapping {
    start: *mut u8,
    length: usize,
}

// SAFETY: the pages belong to the process, and the mapping has the only pointer to them.
unsafe impl Send for Mapping {}

impl Mapping {
    const NONE: Mapping = Mapping { start: ptr::null_mut(), length: 0 };

    fn new(length: usize) -> Option<Mapping> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new anonymous mapping at an address of the kernel's choice overlaps no other memory.
        let start = unsafe { libc::mmap(ptr::null_mut(), length, protection, flags, -1, 0) };
        (start != libc::MAP_FAILED).then(|| Mapping { start: start.cast(), length })
    }

    /// Returns the mapping with its pages and more behind them, at another address if needed.
    fn grown(mut self, length: usize) -> Option<Mapping> {
        if self.length == 0 {
            return Mapping::new(length);
        }
        // SAFETY: `self` owns these pages, and nothing points to them.
        let start = unsafe { libc::mremap(self.start.cast(), self.length, length, libc::MREMAP_MAYMOVE) };
        if start == libc::MAP_FAILED {
            drop(self);
            return Mapping::new(length);
        }
        (self.start, self.length) = (start.cast(), length);
        Some(self)
    }

    /// Makes the first `size` bytes resident at once, which takes two thirds of the time of single page faults. Kernels before 5.14 do
    /// nothing.
    fn populate(&self, size: usize) {
        // SAFETY: the pages belong to `self`, and the advice does not change their content.
        unsafe { libc::madvise(self.start.cast(), size, libc::MADV_POPULATE_WRITE) };
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if self.length > 0 {
            // SAFETY: `self` owns these pages, and only `drop` unmaps them.
            unsafe { libc::munmap(self.start.cast(), self.length) };
        }
    }
}

/// The buffers of this process that are on a device.
static BUFFERS: Mutex<Vec<Weak<OnDevice>>> = Mutex::new(Vec::new());

fn buffers() -> MutexGuard<'static, Vec<Weak<OnDevice>>> {
    BUFFERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns where MPI finds the buffers of this rank in a case.
///
/// # Errors
/// The MPI library takes no memory of such devices, or the case cannot have its buffers there.
pub(crate) fn place(cx: &Context<'_>) -> Result<Place> {
    let memory: BufferMemory = cx.get();
    let on_devices = !memory.places().into_iter().all(Place::is_of_host);
    if on_devices {
        memory::only_warm(cx, "buffers on a device, which are in no cache of the CPU")?;
    }
    match (memory.api(), cx.get()) {
        (None, _) | (_, Staged::On) => Ok(Place::Host),
        (Some(api), Staged::Off) => {
            // A rank with memory of the host communicates with one that has not.
            if on_devices {
                device_support::check(api)?;
            }
            Ok(memory.place(cx.role))
        }
    }
}

/// A buffer on a device, and its copy in the memory of the host.
#[derive(Debug)]
pub(crate) struct OnDevice {
    allocation: Mutex<Allocation>,
    copy: *mut u8,
    bytes: usize,
    /// Whether the copy was changed since it was written to the device.
    changed: AtomicBool,
}

// SAFETY: the copy is used by `write_all` and `read_all` only while no kernel has a reference to it, and its buffer outlives this.
unsafe impl Send for OnDevice {}
// SAFETY: as above.
unsafe impl Sync for OnDevice {}

impl OnDevice {
    /// Allocates the memory of a buffer whose copy is at `copy`.
    ///
    /// # Errors
    /// There is no device, or it has too little memory.
    pub(crate) fn new(place: Place, copy: *mut u8, bytes: usize) -> Result<Option<Arc<OnDevice>>> {
        let Some(api) = place.api().filter(|_| !place.is_of_host()) else { return Ok(None) };
        let allocation = Mutex::new(Allocation::new(device(api)?, place, bytes)?);
        let buffer = Arc::new(OnDevice { allocation, copy, bytes, changed: AtomicBool::new(true) });
        let mut all = buffers();
        all.retain(|buffer| buffer.strong_count() > 0);
        all.push(Arc::downgrade(&buffer));
        Ok(Some(buffer))
    }

    fn allocation(&self) -> MutexGuard<'_, Allocation> {
        self.allocation.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the address on the device.
    pub(crate) fn address(&self) -> *mut u8 {
        self.allocation().address()
    }

    /// Returns copies for timed regions.
    pub(crate) fn copies(&self) -> Copies {
        self.allocation().copies()
    }

    /// Notes that a kernel may change the copy, and makes the device that of the kernel's thread. Errors are those of the next copy.
    pub(crate) fn changes(&self) {
        let _ = self.allocation().enter();
        self.changed.store(true, Ordering::Relaxed);
    }

    fn write(&self) -> Result<()> {
        if !self.changed.swap(false, Ordering::Relaxed) {
            return Ok(());
        }
        // SAFETY: the buffer has these bytes, and no kernel has a reference to them meanwhile.
        self.allocation().write(unsafe { std::slice::from_raw_parts(self.copy, self.bytes) })
    }

    fn read(&self) -> Result<()> {
        // SAFETY: as in `write`.
        self.allocation().read(unsafe { std::slice::from_raw_parts_mut(self.copy, self.bytes) })
    }
}

fn each(visit: impl FnMut(Arc<OnDevice>) -> Result<()>) -> Result<()> {
    let all: Vec<_> = buffers().iter().filter_map(Weak::upgrade).collect();
    all.into_iter().try_for_each(visit)
}

/// Writes what kernels have changed to the devices, and waits until it is there.
pub(crate) fn write_all() -> Result<()> {
    each(|buffer| buffer.write())
}

/// Reads every buffer from its device.
pub(crate) fn read_all() -> Result<()> {
    each(|buffer| buffer.read())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_aligned_zeroed_and_writable() {
        let mut buffer = Buffer::zeroed(10_000).unwrap();
        assert_eq!(buffer.start() as usize % PAGE, 0);
        assert!(buffer.bytes_mut().iter().all(|b| *b == 0));
        buffer.bytes_mut()[9_999] = 7;
        assert_eq!(buffer.bytes_mut().len(), 10_000);
        assert_eq!(Buffer::zeroed(0).unwrap().bytes_mut().len(), 1);
        drop(buffer);
        assert!(Buffer::zeroed(10_000).unwrap().bytes_mut().iter().all(|b| *b == 0));
    }

    #[test]
    fn buffers_that_exist_at_the_same_time_share_nothing() {
        for round in 0..4u8 {
            let sizes = [1, 5000, 300_000, 70_000 << round];
            let mut buffers = sizes.map(|bytes| Buffer::reserved(bytes).unwrap());
            for (value, buffer) in (0..).zip(&mut buffers) {
                buffer.bytes_mut().fill(value);
            }
            for ((value, buffer), bytes) in (0..).zip(&mut buffers).zip(sizes) {
                assert_eq!(buffer.bytes_mut().len() as u64, bytes);
                assert!(buffer.bytes_mut().iter().all(|byte| *byte == value), "{round} {bytes}");
            }
        }
    }

    #[test]
    fn buffers_of_a_case_get_the_memory_of_those_before() {
        let mut kept = Kept(Vec::new());
        let open = |kept: &mut Kept| [1, 2].map(|size| kept.take(size * PAGE).unwrap());
        let [(first, written), (second, unused)] = open(&mut kept);
        assert_eq!((first, second), (0, 1));
        // SAFETY: the mapping has a page, which nothing else uses.
        unsafe { written.start.write(7) };
        kept.put(second, unused);
        kept.put(first, written);
        let (place, grown) = kept.take(64 * PAGE).unwrap();
        // SAFETY: as above.
        assert_eq!((place, grown.length, unsafe { grown.start.read() }), (0, 64 * PAGE, 7));
        kept.put(place, grown);
        assert!(kept.take(1 << 62).is_none());
        assert_eq!(
            open(&mut kept).map(|(place, mapping)| (place, mapping.length)),
            [(0, PAGE), (1, 2 * PAGE)]
        );
    }

    #[test]
    fn copies_are_parts_of_the_buffer() {
        let mut buffer = Buffer::zeroed(1000).unwrap().in_copies(100);
        let first = buffer.start() as usize;
        for (offset, found) in [(0, 0), (384, 384), (900, 900), (1000, 900), (usize::MAX, 900), (0, 0)] {
            buffer.move_to(offset);
            assert_eq!((buffer.start() as usize - first, buffer.bytes_mut().len()), (found, 100));
            buffer.bytes_mut().fill(offset as u8);
        }
        let mut whole = Buffer::zeroed(0).unwrap().in_copies(0);
        whole.move_to(64);
        assert_eq!(whole.bytes_mut().len(), 1);
        let mut buffer = buffer.in_copies(1000);
        assert!(buffer.bytes_mut()[384..484].iter().all(|byte| *byte == 128));
    }

    #[test]
    fn an_impossible_buffer_is_refused() {
        for bytes in [u64::MAX, 1 << 62] {
            let refusal = Buffer::zeroed(bytes).unwrap_err().to_string();
            assert!(refusal.contains("could not be allocated"));
        }
    }
}
