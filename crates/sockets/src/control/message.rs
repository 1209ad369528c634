//! Messages between processes: a kind, numbers, texts, raw data and open files.

use std::os::fd::OwnedFd;

use super::frame::{Frame, FrameError};

/// Defines the enum of kinds and the list of them in its order.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident,)*) => {
        /// The kind of a message.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Kind { $($(#[$doc])* $kind,)* }

        const KINDS: &[Kind] = &[$(Kind::$kind),*];
    };
}

/// Kind of the frame of the first kind of message; smaller ones belong to the listener (see [`super::listener::HELLO`]).
const FIRST: u8 = 2;

kinds! {
    /// Coordinator to every rank, once all have joined: the rank table.
    RankTable,
    /// Rank to rank, through the coordinator: the other rank, whether a part follows, a part of a message.
    Data,
    /// Coordinator to every rank, or a rank to the coordinator: an exit code and a sentence. The session ends.
    End,
    /// Rank to coordinator: the rank has done its work.
    Leave,
    /// To a process that has just started: its task.
    Task,
    /// From a process that has just started: ready to run.
    Ready,
    /// From any process of a pipeline, passed on to the coordinator: an error.
    Failure,
    /// From a node: the port on which it listens.
    Port,
    /// To a node: the addresses of all nodes.
    Peers,
    /// From a node: how many connections it has rejected.
    Rejected,
    /// To a node: compute the checksums of the source's blocks; from a node: these.
    Checksums,
    /// To a node, passed on to its last phase: the checksums of the blocks that should arrive.
    Expect,
    /// To a node: send a part of a block, in a file or in memory; from a node: this part.
    Part,
    /// To a node: prepare a run.
    Prepare,
    /// From a node: the run is prepared.
    Prepared,
    /// To a node: start the run.
    Start,
    /// From a node during a run: how many buffers have left its source and arrived at its sink, and the nanoseconds since
    /// its start.
    Status,
    /// From a node: the run is over; its times.
    Done,
    /// To a node: compare the data that arrived.
    Check,
    /// From a node: the first wrong byte, if any.
    Checked,
}

/// One message. Its body: the count of numbers, the numbers, the count of texts, each text after its length, the data.
/// Counts and lengths are `u32`, numbers `u64`, all little-endian.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) kind: Kind,
    pub(crate) numbers: Vec<u64>,
    pub(crate) texts: Vec<String>,
    pub(crate) data: Vec<u8>,
    /// Open files; only a Unix-domain socket carries them.
    pub(crate) files: Vec<OwnedFd>,
}

impl Message {
    pub(crate) fn new(kind: Kind) -> Message {
        Message { kind, numbers: Vec::new(), texts: Vec::new(), data: Vec::new(), files: Vec::new() }
    }

    pub(crate) fn numbers(mut self, numbers: impl IntoIterator<Item = u64>) -> Message {
        self.numbers.extend(numbers);
        self
    }

    pub(crate) fn texts(mut self, texts: impl IntoIterator<Item = String>) -> Message {
        self.texts.extend(texts);
        self
    }

    pub(crate) fn data(mut self, data: impl Into<Vec<u8>>) -> Message {
        self.data = data.into();
        self
    }

    /// Returns the number at a position; 0 if the message has fewer.
    pub(crate) fn number(&self, at: usize) -> u64 {
        self.numbers.get(at).copied().unwrap_or(0)
    }

    /// Returns the text at a position; empty if the message has fewer.
    pub(crate) fn text(&self, at: usize) -> &str {
        self.texts.get(at).map_or("", String::as_str)
    }

    /// Returns the frame of the message, without its files.
    pub(crate) fn frame(&self) -> Frame {
        let mut body = Vec::with_capacity(8 + 8 * self.numbers.len() + self.data.len());
        body.extend((self.numbers.len() as u32).to_le_bytes());
        body.extend(self.numbers.iter().flat_map(|number| number.to_le_bytes()));
        body.extend((self.texts.len() as u32).to_le_bytes());
        for text in &self.texts {
            body.extend((text.len() as u32).to_le_bytes());
            body.extend(text.as_bytes());
        }
        body.extend(&self.data);
        Frame::new(FIRST + self.kind as u8, body)
    }
}

impl TryFrom<Frame> for Message {
    type Error = FrameError;

    fn try_from(frame: Frame) -> Result<Message, FrameError> {
        let kind = frame.kind.checked_sub(FIRST).and_then(|at| KINDS.get(usize::from(at)));
        kind.and_then(|kind| parse(*kind, &frame.body)).ok_or(FrameError::Invalid(frame.kind))
    }
}

fn parse(kind: Kind, body: &[u8]) -> Option<Message> {
    let (count, rest) = count(body)?;
    let (numbers, rest) = rest.split_at_checked(count.checked_mul(8)?)?;
    let (count, mut rest) = self::count(rest)?;
    let mut message = Message::new(kind);
    message.numbers = numbers.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
    for _ in 0..count {
        let (length, after) = self::count(rest)?;
        let (text, after) = after.split_at_checked(length)?;
        message.texts.push(String::from_utf8(text.to_vec()).ok()?);
        rest = after;
    }
    Some(message.data(rest))
}

fn count(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (count, rest) = bytes.split_first_chunk::<4>()?;
    Some((u32::from_le_bytes(*count) as usize, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ombx_core::testkit::seeded())]
        #[test]
        fn messages_are_decoded_as_encoded(
            kind in 0..KINDS.len(),
            numbers in prop::collection::vec(any::<u64>(), 0..5),
            texts in prop::collection::vec("\\PC{0,9}", 0..4),
            data in prop::collection::vec(any::<u8>(), 0..50),
        ) {
            let sent = Message::new(KINDS[kind]).numbers(numbers).texts(texts).data(data);
            let received = Message::try_from(sent.frame()).unwrap();
            prop_assert_eq!(received.kind, sent.kind);
            prop_assert_eq!((received.numbers, received.texts, received.data), (sent.numbers, sent.texts, sent.data));
        }

        #[test]
        fn any_bytes_are_parsed_or_rejected(kind: u8, body in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = Message::try_from(Frame::new(kind, body));
        }
    }

    #[test]
    fn a_truncated_message_is_rejected() {
        let whole = Message::new(Kind::Done).numbers([5]).texts(["x".into()]).frame();
        for cut in 0..whole.body.len() {
            assert!(Message::try_from(Frame::new(whole.kind, &whole.body[..cut])).is_err(), "{cut}");
        }
        for kind in [0, 1, FIRST + KINDS.len() as u8, 200] {
            assert!(Message::try_from(Frame::new(kind, &*whole.body)).is_err(), "{kind}");
        }
        assert!(Message::try_from(Frame::new(2, [0xff; 4])).is_err());
    }
}
