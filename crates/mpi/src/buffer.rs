//! Memory for messages: page aligned, zeroed and touched, at an address that does not move.

use std::ptr;

use ombx_core::error::{Error, Result};

const PAGE: usize = 4096;

/// Page-aligned bytes that stay where they are until dropped.
///
/// They are mapped through the C library, where MPI libraries watch for memory that they have registered with a network.
#[derive(Debug)]
pub struct Buffer {
    start: *mut u8,
    size: usize,
}

impl Buffer {
    /// At least one byte, all zero and all touched; the reason if the memory is not to be had.
    pub fn zeroed(bytes: u64) -> Result<Buffer> {
        let refused = || Error::unsupported(format!("{bytes} bytes of buffer could not be allocated"));
        let size = usize::try_from(bytes).map_err(|_| refused())?.max(1);
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // All pages at once: two thirds of what faults one by one cost.
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
        // SAFETY: a new mapping, of which the kernel chooses the place.
        let start = unsafe { libc::mmap(ptr::null_mut(), size, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(refused());
        }
        let mut buffer = Buffer { start: start.cast(), size };
        for page in buffer.bytes_mut().chunks_mut(PAGE) {
            // A page that the kernel had no room for yet would be mapped on first write; that must not happen in a timed region.
            std::hint::black_box(page)[0] = 0;
        }
        Ok(buffer)
    }

    /// Where it starts; valid for its length while it lives.
    pub fn start(&self) -> *mut u8 {
        self.start
    }

    /// Its bytes.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: mapped with this size, zeroed by the kernel, borrowed for as long as the slice.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.size) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: mapped by `zeroed` with this size, and unmapped once.
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
    }

    #[test]
    fn an_impossible_buffer_is_refused() {
        assert!(Buffer::zeroed(u64::MAX).unwrap_err().to_string().contains("could not be allocated"));
    }
}
