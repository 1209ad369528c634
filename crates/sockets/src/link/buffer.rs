//! Page-aligned memory for messages.

const PAGE: usize = 4096;

/// Bytes that start on a page boundary.
#[derive(Debug)]
pub(crate) struct Buffer {
    memory: Vec<u8>,
    start: usize,
    len: usize,
}

impl Buffer {
    /// Returns a buffer whose pages the kernel has allocated.
    pub(crate) fn touched(len: u64) -> Buffer {
        let len = len as usize;
        let mut memory = vec![0; len + PAGE];
        // The kernel allocates a page at the first write.
        memory.fill(1);
        let start = memory.as_ptr().align_offset(PAGE).min(PAGE);
        Buffer { memory, start, len }
    }

    #[inline(always)]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.len]
    }

    #[inline(always)]
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.len]
    }
}
