//! Frames of a control channel.
//!
//! ```text
//! length of kind and body, u32 little-endian | kind, u8 | body
//! ```
//! The reader sets the maximum length. It rejects a longer frame before it allocates memory.

use std::io::{self, Read, Write};

use ombx_core::error::Error;

/// Maximum bytes of a body between ranks and their coordinator; a longer message is sent in parts.
pub const MAX_BODY: usize = 1 << 20;
/// Bytes before the body.
const HEAD: usize = 5;

/// A kind and a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The kind, a number of the protocol.
    pub kind: u8,
    /// The content.
    pub body: Vec<u8>,
}

/// A failure to read or write a frame or the message in it.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The other end closed the connection between two frames.
    #[error("the connection was closed")]
    Closed,
    /// The other end closed the connection inside a frame.
    #[error("the connection was closed in the middle of a frame")]
    Torn,
    /// The announced length exceeds the limit.
    #[error("the peer announced a frame of {found} bytes; the limit is {max}")]
    TooLong {
        /// Announced bytes.
        found: usize,
        /// Maximum bytes.
        max: usize,
    },
    /// The announced length has no place for the kind.
    #[error("the peer announced a frame without a kind")]
    Empty,
    /// The frame is no message: unknown kind or malformed body.
    #[error("the peer sent an invalid message of kind {0}")]
    Invalid(u8),
    /// The connection's timeout passed.
    #[error("timed out")]
    TimedOut,
    /// Another error of the connection.
    #[error("{0}")]
    Io(io::Error),
}

impl From<io::Error> for FrameError {
    fn from(error: io::Error) -> FrameError {
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => FrameError::TimedOut,
            io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => FrameError::Closed,
            _ => FrameError::Io(error),
        }
    }
}

impl From<FrameError> for Error {
    fn from(error: FrameError) -> Error {
        Error::fabric(error.to_string())
    }
}

impl Frame {
    /// Returns a frame.
    pub fn new(kind: u8, body: impl Into<Vec<u8>>) -> Frame {
        Frame { kind, body: body.into() }
    }

    /// Returns the bytes to send.
    pub fn encode(&self) -> Result<Vec<u8>, FrameError> {
        let length = self.body.len() + 1;
        let announced = u32::try_from(length)
            .map_err(|_| FrameError::TooLong { found: length, max: u32::MAX as usize })?;
        let mut bytes = Vec::with_capacity(HEAD + self.body.len());
        bytes.extend(announced.to_le_bytes());
        bytes.push(self.kind);
        bytes.extend(&self.body);
        Ok(bytes)
    }

    /// Returns the first frame in `bytes` and its length in bytes; `None` if it is incomplete.
    pub fn parse(bytes: &[u8], max: usize) -> Result<Option<(Frame, usize)>, FrameError> {
        let Some(head) = bytes.first_chunk::<4>() else { return Ok(None) };
        let length = length(*head, max)?;
        let Some(rest) = bytes.get(4..4 + length) else { return Ok(None) };
        Ok(rest.split_first().map(|(kind, body)| (Frame::new(*kind, body), 4 + length)))
    }

    /// Reads one frame whose body has at most `max` bytes.
    pub fn read(from: &mut impl Read, max: usize) -> Result<Frame, FrameError> {
        let mut head = [0; 4];
        let mut filled = 0;
        while filled < head.len() {
            match from.read(&mut head[filled..]) {
                Ok(0) if filled == 0 => return Err(FrameError::Closed),
                Ok(0) => return Err(FrameError::Torn),
                Ok(read) => filled += read,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e.into()),
            }
        }
        let mut bytes = vec![0; length(head, max)?];
        from.read_exact(&mut bytes).map_err(|e| match e.kind() {
            io::ErrorKind::UnexpectedEof => FrameError::Torn,
            _ => e.into(),
        })?;
        let kind = bytes.remove(0);
        Ok(Frame { kind, body: bytes })
    }

    /// Writes the frame in one call.
    pub fn write(&self, to: &mut impl Write) -> Result<(), FrameError> {
        to.write_all(&self.encode()?)?;
        Ok(to.flush()?)
    }
}

fn length(head: [u8; 4], max: usize) -> Result<usize, FrameError> {
    let found = u32::from_le_bytes(head) as usize;
    match found.checked_sub(1) {
        None => Err(FrameError::Empty),
        Some(body) if body > max => Err(FrameError::TooLong { found, max: max + 1 }),
        Some(_) => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ombx_core::testkit::seeded())]
        #[test]
        fn frames_are_decoded_as_encoded(kind: u8, body in prop::collection::vec(any::<u8>(), 0..300), rest in prop::collection::vec(any::<u8>(), 0..20)) {
            let frame = Frame::new(kind, body);
            let bytes = [frame.encode().unwrap(), rest.clone()].concat();
            let (parsed, used) = Frame::parse(&bytes, 300).unwrap().unwrap();
            prop_assert_eq!(&parsed, &frame);
            prop_assert_eq!(&bytes[used..], &rest[..]);
            prop_assert_eq!(Frame::read(&mut bytes.as_slice(), 300).unwrap(), frame);
        }

        #[test]
        fn any_bytes_are_a_frame_an_error_or_incomplete(bytes in prop::collection::vec(any::<u8>(), 0..64), max in 0usize..64) {
            let parsed = Frame::parse(&bytes, max);
            let read = Frame::read(&mut bytes.as_slice(), max);
            match parsed {
                Ok(Some((frame, used))) => {
                    prop_assert!(frame.body.len() <= max && used <= bytes.len());
                    prop_assert_eq!(read.unwrap(), frame);
                }
                Ok(None) => prop_assert!(matches!(read, Err(FrameError::Closed | FrameError::Torn))),
                Err(FrameError::Empty) => prop_assert!(matches!(read, Err(FrameError::Empty))),
                Err(FrameError::TooLong { .. }) => {
                    let too_long = matches!(read, Err(FrameError::TooLong { .. }));
                    prop_assert!(too_long);
                }
                Err(other) => prop_assert!(false, "{:?}", other),
            }
        }

        #[test]
        fn a_frame_cut_anywhere_is_never_another_frame(kind: u8, body in prop::collection::vec(any::<u8>(), 0..100), cut: prop::sample::Index) {
            let bytes = Frame::new(kind, body).encode().unwrap();
            let cut = cut.index(bytes.len());
            prop_assert!(Frame::parse(&bytes[..cut], 100).unwrap().is_none());
            prop_assert!(Frame::read(&mut &bytes[..cut], 100).is_err());
        }
    }

    #[test]
    fn a_huge_length_is_rejected_without_reading_on() {
        let bytes = [0xff, 0xff, 0xff, 0xff, 1];
        assert!(matches!(
            Frame::parse(&bytes, MAX_BODY),
            Err(FrameError::TooLong { found: 0xffff_ffff, .. })
        ));
        assert!(matches!(Frame::read(&mut bytes.as_slice(), MAX_BODY), Err(FrameError::TooLong { .. })));
    }
}
