//! Frames of a control channel.
//!
//! ```text
//! length of the body, u32 little-endian | body
//! ```
//! The reader sets the maximum length. It rejects a longer frame before it allocates memory.

use std::io::{self, Read, Write};

use ombx_core::error::Error;

/// Maximum bytes of a body between ranks and their coordinator; a longer message is sent in parts.
pub const MAX_BODY: usize = 1 << 20;
/// Bytes before the body.
const HEAD: usize = 4;

/// The body of a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame(pub Vec<u8>);

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
    /// The frame is no message of the protocol.
    #[error("the peer sent an invalid message")]
    Invalid,
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
    /// Returns the bytes to send.
    pub fn encode(&self) -> Result<Vec<u8>, FrameError> {
        let length = self.0.len();
        let announced = u32::try_from(length)
            .map_err(|_| FrameError::TooLong { found: length, max: u32::MAX as usize })?;
        let mut bytes = Vec::with_capacity(HEAD + length);
        bytes.extend(announced.to_le_bytes());
        bytes.extend(&self.0);
        Ok(bytes)
    }

    /// Returns the first frame in `bytes` and its length in bytes; `None` if it is incomplete.
    pub fn parse(bytes: &[u8], max: usize) -> Result<Option<(Frame, usize)>, FrameError> {
        let Some(head) = bytes.first_chunk::<HEAD>() else { return Ok(None) };
        let length = length(*head, max)?;
        Ok(bytes.get(HEAD..HEAD + length).map(|body| (Frame(body.to_vec()), HEAD + length)))
    }

    /// Reads one frame whose body has at most `max` bytes.
    pub fn read(from: &mut impl Read, max: usize) -> Result<Frame, FrameError> {
        let mut head = [0; HEAD];
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
        let mut body = vec![0; length(head, max)?];
        from.read_exact(&mut body).map_err(|e| match e.kind() {
            io::ErrorKind::UnexpectedEof => FrameError::Torn,
            _ => e.into(),
        })?;
        Ok(Frame(body))
    }

    /// Writes the frame in one call.
    pub fn write(&self, to: &mut impl Write) -> Result<(), FrameError> {
        to.write_all(&self.encode()?)?;
        Ok(to.flush()?)
    }
}

fn length(head: [u8; HEAD], max: usize) -> Result<usize, FrameError> {
    let found = u32::from_le_bytes(head) as usize;
    if found > max { Err(FrameError::TooLong { found, max }) } else { Ok(found) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ombx_core::testkit::seeded())]
        #[test]
        fn frames_are_decoded_as_encoded(body in prop::collection::vec(any::<u8>(), 0..300), rest in prop::collection::vec(any::<u8>(), 0..20)) {
            let frame = Frame(body);
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
                    prop_assert!(frame.0.len() <= max && used <= bytes.len());
                    prop_assert_eq!(read.unwrap(), frame);
                }
                Ok(None) => prop_assert!(matches!(read, Err(FrameError::Closed | FrameError::Torn))),
                Err(FrameError::TooLong { .. }) => {
                    let too_long = matches!(read, Err(FrameError::TooLong { .. }));
                    prop_assert!(too_long);
                }
                Err(other) => prop_assert!(false, "{:?}", other),
            }
        }

        #[test]
        fn a_frame_cut_anywhere_is_never_another_frame(body in prop::collection::vec(any::<u8>(), 0..100), cut: prop::sample::Index) {
            let bytes = Frame(body).encode().unwrap();
            let cut = cut.index(bytes.len());
            prop_assert!(Frame::parse(&bytes[..cut], 100).unwrap().is_none());
            prop_assert!(Frame::read(&mut &bytes[..cut], 100).is_err());
        }
    }

    #[test]
    fn a_huge_length_is_rejected_without_reading_on() {
        let bytes = [0xff; 5];
        assert!(matches!(
            Frame::parse(&bytes, MAX_BODY),
            Err(FrameError::TooLong { found: 0xffff_ffff, .. })
        ));
        assert!(matches!(Frame::read(&mut bytes.as_slice(), MAX_BODY), Err(FrameError::TooLong { .. })));
    }
}
