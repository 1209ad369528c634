//! Message memory: page-aligned, zeroed, at a fixed address.

use std::{ffi::c_int, ptr};

use ombx_core::error::{Error, Result};

const PAGE: usize = 4096;

/// Page-aligned memory whose address does not change until it is dropped.
///
/// It is mapped and unmapped through the C library. MPI libraries intercept these calls to track memory that they have
/// registered with a network adapter.
#[derive(Debug)]
pub struct Buffer {
    start: *mut u8,
    size: usize,
}

impl Buffer {
    /// Maps `bytes` bytes, at least one, all zero and all resident.
    ///
    /// # Errors
    /// The memory is not available.
    pub fn zeroed(bytes: u64) -> Result<Buffer> {
        // MAP_POPULATE maps all pages at once, which takes two thirds of the time of single page faults.
        let mut buffer = Buffer::map(bytes, libc::MAP_POPULATE)?;
        for page in buffer.bytes_mut().chunks_mut(PAGE) {
            // MAP_POPULATE may leave pages unmapped. A page fault must not happen in a timed region.
            std::hint::black_box(page)[0] = 0;
        }
        Ok(buffer)
    }

    /// Maps `bytes` bytes, at least one, all zero. Pages are resident once they are written: every byte that a timed region
    /// accesses is to be written before, and the rest takes no memory.
    ///
    /// # Errors
    /// The address space is not available.
    pub fn reserved(bytes: u64) -> Result<Buffer> {
        Buffer::map(bytes, 0)
    }

    fn map(bytes: u64, more_flags: c_int) -> Result<Buffer> {
        let refused = || Error::unsupported(format!("a buffer of {bytes} bytes could not be allocated"));
        let size = usize::try_from(bytes).map_err(|_| refused())?.max(1);
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | more_flags;
        // SAFETY: a new anonymous mapping at an address of the kernel's choice overlaps no other memory.
        let start = unsafe { libc::mmap(ptr::null_mut(), size, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(refused());
        }
        Ok(Buffer { start: start.cast(), size })
    }

    /// Returns the address of the first byte, which is valid for the buffer's length and lifetime.
    pub fn start(&self) -> *mut u8 {
        self.start
    }

    /// Returns the whole buffer as a slice.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the mapping has this size and the kernel has zeroed it. `&mut self` excludes other references to it.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.size) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: `map` mapped this address with this size, and only `drop` unmaps it.
        unsafe { libc::munmap(self.start.cast(), self.size) };
    }
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
        assert!(Buffer::reserved(10_000).unwrap().bytes_mut().iter().all(|b| *b == 0));
    }

    #[test]
    fn an_impossible_buffer_is_refused() {
        assert!(Buffer::zeroed(u64::MAX).unwrap_err().to_string().contains("could not be allocated"));
    }
}
