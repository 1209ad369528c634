//! Memory for messages: page aligned, zeroed and touched, at an address that does not move.

use std::{
    alloc::{Layout, alloc_zeroed, dealloc},
    ptr::NonNull,
};

use ombx_core::error::{Error, Result};

const PAGE: usize = 4096;

/// Page-aligned bytes that stay where they are until dropped.
#[derive(Debug)]
pub struct Buffer {
    start: NonNull<u8>,
    layout: Layout,
}

impl Buffer {
    /// At least one byte, all zero and all touched; the reason if the memory is not to be had.
    pub fn zeroed(bytes: u64) -> Result<Buffer> {
        let refused = || Error::unsupported(format!("{bytes} bytes of buffer could not be allocated"));
        let size = usize::try_from(bytes).map_err(|_| refused())?.max(1);
        let layout = Layout::from_size_align(size, PAGE).map_err(|_| refused())?;
        // SAFETY: the layout has a size above zero.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or_else(refused)?;
        let mut buffer = Buffer { start, layout };
        for page in buffer.bytes_mut().chunks_mut(PAGE) {
            // The kernel maps a page on first write; that must not happen in a timed region.
            std::hint::black_box(page)[0] = 0;
        }
        Ok(buffer)
    }

    /// Where it starts; valid for its length while it lives.
    pub fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Its bytes.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: allocated with this size, initialised by zeroing, borrowed for as long as the slice.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.layout.size()) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: allocated by `zeroed` with this layout.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
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
