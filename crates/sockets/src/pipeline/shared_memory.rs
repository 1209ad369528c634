//! Memory that processes share, without a name in any file system.

#![expect(unsafe_code, reason = "maps memory and returns references into it")]

use std::{
    os::fd::{AsFd, OwnedFd},
    ptr::NonNull,
    sync::atomic::{AtomicU32, AtomicU64},
};

use ombx_host::limits::FreeMemory;
use rustix::{
    fs::{FallocateFlags, MemfdFlags, SealFlags},
    io,
    mm::{MapFlags, ProtFlags},
};

/// A mapping of shared memory: a header of atomic words, then bytes.
///
/// Every process may write to the header at any time. By its words the processes agree who uses which bytes: one writer or
/// several readers at a time.
pub(crate) struct SharedMemory {
    start: NonNull<u8>,
    header: usize,
    length: usize,
}

// SAFETY: the mapping belongs to this value alone and is bound to no thread.
unsafe impl Send for SharedMemory {}

impl SharedMemory {
    /// Allocates `length` bytes, whose size is sealed. The memory is freed when no process holds it.
    pub(crate) fn create(name: &str, length: usize) -> io::Result<OwnedFd> {
        // The kernel would fill all free memory before it failed.
        if FreeMemory::here().is_some_and(|free| length as u64 > free.bytes) {
            return Err(io::Errno::NOMEM);
        }
        let fd = rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        // Allocated now, so that a lack of memory is an error here and no SIGBUS later.
        rustix::fs::fallocate(&fd, FallocateFlags::empty(), 0, length as u64)?;
        rustix::fs::fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW)?;
        Ok(fd)
    }

    /// Maps the memory, with a header of `header` bytes. Memory that could shrink is rejected.
    pub(crate) fn map(fd: impl AsFd, header: usize) -> io::Result<SharedMemory> {
        let sealed = rustix::fs::fcntl_get_seals(&fd)?.contains(SealFlags::SHRINK);
        let length = rustix::fs::fstat(&fd)?.st_size as usize;
        if !sealed || header > length || !header.is_multiple_of(64) {
            return Err(io::Errno::INVAL);
        }
        // SAFETY: a new mapping at an address of the kernel's choice touches no other memory; the seal keeps it backed.
        let start = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                length,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED | MapFlags::POPULATE,
                fd,
                0,
            )
        }?;
        let start = NonNull::new(start.cast()).ok_or(io::Errno::NOMEM)?;
        Ok(SharedMemory { start, header, length })
    }

    /// Returns the 32-bit word at an offset in the header; panics outside it.
    pub(crate) fn word(&self, at: usize) -> &AtomicU32 {
        assert!(at.is_multiple_of(4) && at + 4 <= self.header, "word {at} is outside the header");
        // SAFETY: inside the mapping, aligned, and accessed as an atomic only: `bytes` start after the header.
        unsafe { AtomicU32::from_ptr(self.start.as_ptr().add(at).cast()) }
    }

    /// Returns the 64-bit word at an offset in the header; panics outside it.
    pub(crate) fn long(&self, at: usize) -> &AtomicU64 {
        assert!(at.is_multiple_of(8) && at + 8 <= self.header, "word {at} is outside the header");
        // SAFETY: as for `word`; no offset is used with both widths (see `PhaseMemory`).
        unsafe { AtomicU64::from_ptr(self.start.as_ptr().add(at).cast()) }
    }

    /// Returns `length` bytes from offset `at` after the header; panics outside the mapping. The words must show that no other
    /// process writes there.
    pub(crate) fn bytes(&mut self, at: usize, length: usize) -> &mut [u8] {
        let end = at.checked_add(length).and_then(|end| end.checked_add(self.header));
        assert!(end.is_some_and(|end| end <= self.length), "bytes {at}+{length} are outside the mapping");
        // SAFETY: inside the mapping and after the header. This mapping is borrowed for as long. Other mappings of the same
        // memory do not use these bytes meanwhile, by the words, whose release and acquire order the accesses.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().add(self.header + at), length) }
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // SAFETY: `map` made the mapping with this length, and nothing borrows it any more.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn two_mappings_show_the_same_memory() {
        let fd = SharedMemory::create("test", 64 + 100).unwrap();
        let (mut a, mut b) = (SharedMemory::map(&fd, 64).unwrap(), SharedMemory::map(&fd, 64).unwrap());
        a.word(8).store(7, Ordering::Release);
        a.bytes(99, 1)[0] = 9;
        assert_eq!((b.word(8).load(Ordering::Acquire), b.bytes(99, 1)[0]), (7, 9));
        a.long(16).store(u64::MAX, Ordering::Relaxed);
        assert_eq!(b.long(16).load(Ordering::Relaxed), u64::MAX);
    }

    #[test]
    fn accesses_outside_panic() {
        let fd = SharedMemory::create("test", 164).unwrap();
        let mut shared = SharedMemory::map(&fd, 64).unwrap();
        let panics = |access: &mut dyn FnMut(&mut SharedMemory)| {
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| access(&mut shared))).is_err()
        };
        let outside: [&mut dyn FnMut(&mut SharedMemory); 5] = [
            &mut |s| s.word(64).store(1, Ordering::Relaxed),
            &mut |s| s.word(2).store(1, Ordering::Relaxed),
            &mut |s| s.long(60).store(1, Ordering::Relaxed),
            &mut |s| s.bytes(100, 1)[0] = 1,
            &mut |s| s.bytes(usize::MAX, 2)[0] = 1,
        ];
        assert_eq!(outside.map(panics), [true; 5]);
    }

    #[test]
    fn memory_that_could_shrink_is_not_mapped() {
        let fd = rustix::fs::memfd_create("test", MemfdFlags::CLOEXEC).unwrap();
        rustix::fs::ftruncate(&fd, 4096).unwrap();
        assert!(SharedMemory::map(&fd, 64).is_err());
    }

    #[test]
    fn more_than_the_free_memory_is_an_error() {
        assert!(SharedMemory::create("test", 1 << 50).is_err());
    }
}
