//! Messages between processes: a kind, numbers, texts, raw data and open files.

use std::os::fd::OwnedFd;

use super::frame::{Frame, FrameError};

/// The kind of a message. Its value is the kind of the frame; 1 is the kind of the first frame of a connection
/// (see [`super::listener::HELLO`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Coordinator to every rank, once all have joined: the rank table.
    RankTable = 2,
    /// Rank to rank, through the coordinator: the other rank, whether a part follows, a part of a message.
    Data,
    /// Coordinator to every rank, or a rank to the coordinator: an exit code and a sentence. The session ends.
    End,
    /// Rank to coordinator: its work is done.
    Leave,
    /// To a process that has just started: its task.
    Task,
    /// From it: it is ready to run.
    Ready,
    /// From any process of a pipeline, passed on to the coordinator: an error.
    Failure,
    /// From a node: the port on which it listens.
    Port,
    /// To a node: the addresses of all nodes.
    Peers,
    /// From a node: how many connections it has rejected.
    Rejected,
    /// To a node: prepare a run.
    Prepare,
    /// From a node: the run is prepared.
    Prepared,
    /// To a node: start the run.
    Start,
    /// From a node: the run is over; its times.
    Done,
    /// To a node: compare the data that arrived.
    Check,
    /// From a node: the first wrong byte, if any.
    Checked,
}

const KINDS: [Kind; 16] = [
    Kind::RankTable,
    Kind::Data,
    Kind::End,
    Kind::Leave,
    Kind::Task,
    Kind::Ready,
    Kind::Failure,
    Kind::Port,
    Kind::Peers,
    Kind::Rejected,
    Kind::Prepare,
    Kind::Prepared,
    Kind::Start,
    Kind::Done,
    Kind::Check,
    Kind::Checked,
];

/// One message. Its body: the count of numbers, the numbers, the count of texts, each text after its length, the data.
/// Counts and lengths are `u32`, numbers `u64`, all little-endian.
#[derive(Debug)]
pub struct Message {
    /// What the message means.
    pub kind: Kind,
    /// Numbers, by position.
    pub numbers: Vec<u64>,
    /// Texts, by position.
    pub texts: Vec<String>,
    /// Raw bytes.
    pub data: Vec<u8>,
    /// Open files; only a Unix-domain socket carries them.
    pub files: Vec<OwnedFd>,
}

impl Message {
    /// Returns a message without content.
    pub fn new(kind: Kind) -> Message {
        Message { kind, numbers: Vec::new(), texts: Vec::new(), data: Vec::new(), files: Vec::new() }
    }

    /// Appends numbers.
    pub fn numbers(mut self, numbers: impl IntoIterator<Item = u64>) -> Message {
        self.numbers.extend(numbers);
        self
    }

    /// Appends texts.
    pub fn texts(mut self, texts: impl IntoIterator<Item = String>) -> Message {
        self.texts.extend(texts);
        self
    }

    /// Sets the raw bytes.
    pub fn data(mut self, data: impl Into<Vec<u8>>) -> Message {
        self.data = data.into();
        self
    }

    /// Returns the number at a position; 0 if the message has fewer.
    pub fn number(&self, at: usize) -> u64 {
        self.numbers.get(at).copied().unwrap_or(0)
    }

    /// Returns the text at a position; empty if the message has fewer.
    pub fn text(&self, at: usize) -> &str {
        self.texts.get(at).map_or("", String::as_str)
    }

    /// Returns the frame of the message, without its files.
    pub fn frame(&self) -> Frame {
        let mut body = Vec::with_capacity(8 + 8 * self.numbers.len() + self.data.len());
        body.extend((self.numbers.len() as u32).to_le_bytes());
        body.extend(self.numbers.iter().flat_map(|number| number.to_le_bytes()));
        body.extend((self.texts.len() as u32).to_le_bytes());
        for text in &self.texts {
            body.extend((text.len() as u32).to_le_bytes());
            body.extend(text.as_bytes());
        }
        body.extend(&self.data);
        Frame::new(self.kind as u8, body)
    }
}

impl TryFrom<Frame> for Message {
    type Error = FrameError;

    fn try_from(frame: Frame) -> Result<Message, FrameError> {
        let kind = KINDS.into_iter().find(|kind| *kind as u8 == frame.kind);
        kind.and_then(|kind| parse(kind, &frame.body)).ok_or(FrameError::Invalid(frame.kind))
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
        #[test]
        fn messages_survive_frames(
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
        for kind in [0, 1, 18, 200] {
            assert!(Message::try_from(Frame::new(kind, &*whole.body)).is_err(), "{kind}");
        }
        assert!(Message::try_from(Frame::new(2, [0xff; 4])).is_err());
    }
}
