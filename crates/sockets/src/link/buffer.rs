//! Memory for messages: page-aligned, and touched before anything is timed.

const PAGE: usize = 4096;

/// Bytes that start on a page.
#[derive(Debug)]
pub(crate) struct Buffer {
    memory: Vec<u8>,
    start: usize,
    len: usize,
}

impl Buffer {
    pub(crate) fn touched(len: u64) -> Buffer {
        let len = len as usize;
        let mut memory = vec![0; len + PAGE];
        // The kernel gives a page when it is first written to.
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
