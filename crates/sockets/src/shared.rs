//! Memory that processes share without a name in any file system.

#![expect(unsafe_code, reason = "mapping memory and looking at it")]

use std::{
    os::fd::{AsFd, OwnedFd},
    ptr::NonNull,
    sync::atomic::{AtomicU32, AtomicU64},
};

use ombx_core::system::environment;
use rustix::{
    fs::{FallocateFlags, MemfdFlags, SealFlags},
    io,
    mm::{MapFlags, ProtFlags},
};

/// A mapping of shared memory: first a header of words, to which every process that has it mapped may write at any time, then
/// bytes, which those processes leave to one writer or to many readers at a time by what the words say.
pub(crate) struct Shared {
    start: NonNull<u8>,
    header: usize,
    length: usize,
}

// SAFETY: the mapping belongs to this value alone; nothing of it is bound to a thread.
unsafe impl Send for Shared {}

impl Shared {
    /// Memory of `length` bytes, all of it there, of a size that nobody can change. It lives as long as a process has it.
    pub(crate) fn create(name: &str, length: usize) -> io::Result<OwnedFd> {
        // The kernel would take what there is, bit by bit, before it noticed.
        if environment::available_memory().is_some_and(|free| length as u64 > free) {
            return Err(io::Errno::NOMEM);
        }
        let fd = rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        // Taken now, so that a lack of memory is an error here and no signal later.
        rustix::fs::fallocate(&fd, FallocateFlags::empty(), 0, length as u64)?;
        rustix::fs::fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW)?;
        Ok(fd)
    }

    /// Maps it, with a header of `header` bytes.
    pub(crate) fn map(fd: impl AsFd, header: usize) -> io::Result<Shared> {
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
        Ok(Shared { start, header, length })
    }

    /// The 32-bit word at a place in the header.
    pub(crate) fn word(&self, at: usize) -> &AtomicU32 {
        assert!(at.is_multiple_of(4) && at + 4 <= self.header, "word {at} is outside the header");
        // SAFETY: inside the mapping, aligned, and only ever looked at as an atomic: `bytes` begin behind the header.
        unsafe { AtomicU32::from_ptr(self.start.as_ptr().add(at).cast()) }
    }

    /// The 64-bit word at a place in the header.
    pub(crate) fn long(&self, at: usize) -> &AtomicU64 {
        assert!(at.is_multiple_of(8) && at + 8 <= self.header, "word {at} is outside the header");
        // SAFETY: as for `word`; no place is used in both widths (see `Memory`).
        unsafe { AtomicU64::from_ptr(self.start.as_ptr().add(at).cast()) }
    }

    /// `length` bytes from `at`, counted from the end of the header. Whoever asks has learnt from the words that no other
    /// process writes there now.
    pub(crate) fn bytes(&mut self, at: usize, length: usize) -> &mut [u8] {
        let end = at.checked_add(length).and_then(|end| end.checked_add(self.header));
        assert!(end.is_some_and(|end| end <= self.length), "bytes {at}+{length} are outside the mapping");
        // SAFETY: inside the mapping and behind the header. Within this process the mapping is borrowed for as long; other
        // mappings of the same memory are kept away by the words, whose release and acquire order what is written.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().add(self.header + at), length) }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `map` with this length, and nothing borrows it any more.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn two_mappings_show_the_same_memory() {
        let fd = Shared::create("test", 64 + 100).unwrap();
        let (mut a, mut b) = (Shared::map(&fd, 64).unwrap(), Shared::map(&fd, 64).unwrap());
        a.word(8).store(7, Ordering::Release);
        a.bytes(99, 1)[0] = 9;
        assert_eq!((b.word(8).load(Ordering::Acquire), b.bytes(99, 1)[0]), (7, 9));
        a.long(16).store(u64::MAX, Ordering::Relaxed);
        assert_eq!(b.long(16).load(Ordering::Relaxed), u64::MAX);
    }

    #[test]
    fn what_is_outside_is_refused() {
        let fd = Shared::create("test", 164).unwrap();
        let mut shared = Shared::map(&fd, 64).unwrap();
        let panics = |look: &mut dyn FnMut(&mut Shared)| {
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| look(&mut shared))).is_err()
        };
        let outside: [&mut dyn FnMut(&mut Shared); 5] = [
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
        assert!(Shared::map(&fd, 64).is_err());
    }

    #[test]
    fn more_than_there_is_is_an_error() {
        assert!(Shared::create("test", 1 << 50).is_err());
    }
}
