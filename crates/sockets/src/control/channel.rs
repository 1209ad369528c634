//! Control channels: messages over a socket, or over the two pipes of a process.

use std::{
    fs::File,
    io::{self, IoSlice, IoSliceMut, Read, Write},
    mem::MaybeUninit,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{Arc, Mutex, PoisonError},
};

use ombx_core::{codec, error::Error};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use serde::{Serialize, de::DeserializeOwned};

use crate::socket::Stream;

/// Maximum bytes of a message of the pipeline, which may hold the time stamps of the largest number of buffers.
pub(crate) const MAX_PIPELINE_MESSAGE: usize = 64 << 20;
/// Maximum number of open files in a message, a limit of the kernel (`SCM_MAX_FD`).
const MAX_FILES: usize = 253;

/// Both directions of a control channel.
pub(crate) struct Channel {
    pub(crate) reader: MessageReader,
    pub(crate) writer: MessageWriter,
}

impl Channel {
    /// Returns a channel over a connection; a longer message than `max` bytes is rejected.
    pub(crate) fn over(stream: Stream, max: usize) -> io::Result<Channel> {
        let writer = MessageWriter::new(Output::Stream(stream.try_clone()?, Mutex::new(())));
        Ok(Channel { reader: MessageReader { input: Input::Stream(stream), max }, writer })
    }

    /// Returns a channel over two pipes.
    pub(crate) fn pipes(
        from: impl Read + Send + 'static,
        to: impl Write + Send + 'static,
        max: usize,
    ) -> Channel {
        Channel {
            reader: MessageReader::pipe(from, max),
            writer: MessageWriter::new(Output::Pipe(Mutex::new(Box::new(to)))),
        }
    }

    /// Returns the channel to the parent process: standard input if that is a socket, else standard input and output.
    ///
    /// In the second case, standard output is redirected to standard error.
    pub(crate) fn to_parent(max: usize) -> io::Result<Channel> {
        let input = rustix::stdio::stdin().try_clone_to_owned()?;
        if rustix::net::sockopt::socket_type(&input).is_ok() {
            return Channel::over(input.into(), max);
        }
        let output = rustix::stdio::stdout().try_clone_to_owned()?;
        rustix::stdio::dup2_stdout(rustix::stdio::stderr().as_fd())?;
        Ok(Channel::pipes(File::from(input), File::from(output), max))
    }
}

pub(crate) struct MessageReader {
    input: Input,
    max: usize,
}

enum Input {
    Stream(Stream),
    Pipe(Box<dyn Read + Send>),
}

impl MessageReader {
    /// Returns a reader of a pipe or of bytes in memory.
    pub(crate) fn pipe(from: impl Read + Send + 'static, max: usize) -> MessageReader {
        MessageReader { input: Input::Pipe(Box::new(from)), max }
    }

    /// Waits for the next message.
    pub(crate) fn read<M: DeserializeOwned>(&mut self) -> Result<M, FrameError> {
        self.read_with_files().map(|(message, _)| message)
    }

    /// Waits for the next message, and returns the open files that come with it.
    pub(crate) fn read_with_files<M: DeserializeOwned>(&mut self) -> Result<(M, Vec<OwnedFd>), FrameError> {
        let (Frame(body), files) = match &mut self.input {
            Input::Pipe(pipe) => (Frame::read(pipe, self.max)?, Vec::new()),
            Input::Stream(stream) => {
                let mut reader = FileReader { stream, files: Vec::new() };
                (Frame::read(&mut reader, self.max)?, reader.files)
            }
        };
        codec::decode(&body).map(|message| (message, files)).ok_or(FrameError::Invalid)
    }
}

/// Reads bytes from a socket and collects the open files that come with them.
struct FileReader<'s> {
    stream: &'s Stream,
    files: Vec<OwnedFd>,
}

impl Read for FileReader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut space = vec![MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FILES))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC;
        let received = recvmsg(self.stream, &mut [IoSliceMut::new(into)], &mut control, flags)?;
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(files) = message {
                self.files.extend(files);
            }
        }
        Ok(received.bytes)
    }
}

/// Writes messages; clones write to the same channel.
#[derive(Clone)]
pub(crate) struct MessageWriter(Arc<Output>);

enum Output {
    /// The mutex orders writers; closing does not wait for one that is blocked.
    Stream(Stream, Mutex<()>),
    Pipe(Mutex<Box<dyn Write + Send>>),
}

impl MessageWriter {
    fn new(output: Output) -> MessageWriter {
        MessageWriter(Arc::new(output))
    }

    pub(crate) fn write(&self, message: &impl Serialize) -> io::Result<()> {
        self.write_with_files(message, &[])
    }

    /// Writes a message with open files, of which the receiver gets its own handles.
    ///
    /// Fails with `InvalidInput` if there are more than 253 files, or if the channel is a pipe. Only a Unix-domain socket
    /// delivers them.
    pub(crate) fn write_with_files(
        &self,
        message: &impl Serialize,
        files: &[BorrowedFd<'_>],
    ) -> io::Result<()> {
        let bytes = Frame(codec::encode(message)).encode().map_err(|e| io::Error::other(e.to_string()))?;
        match &*self.0 {
            Output::Stream(stream, order) => {
                let _order = order.lock();
                let mut space = vec![MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(files.len()))];
                let mut control = SendAncillaryBuffer::new(&mut space);
                if !files.is_empty() && !control.push(SendAncillaryMessage::ScmRights(files)) {
                    return Err(io::ErrorKind::InvalidInput.into());
                }
                let sent = sendmsg(stream, &[IoSlice::new(&bytes)], &mut control, SendFlags::NOSIGNAL)?;
                (&mut &*stream).write_all(&bytes[sent..])
            }
            Output::Pipe(_) if !files.is_empty() => Err(io::ErrorKind::InvalidInput.into()),
            Output::Pipe(pipe) => {
                let mut pipe = pipe.lock().unwrap_or_else(PoisonError::into_inner);
                pipe.write_all(&bytes).and_then(|()| pipe.flush())
            }
        }
    }

    /// Closes the channel: the readers at both ends return. A pipe is closed when its last writer is dropped.
    pub(crate) fn close(&self) {
        if let Output::Stream(stream, _) = &*self.0 {
            stream.shutdown();
        }
    }
}

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
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_message_arrives_with_its_files() {
        let (a, b) = UnixStream::pair().unwrap();
        let [sender, mut receiver] =
            [a, b].map(|end| Channel::over(OwnedFd::from(end).into(), 1000).unwrap());
        let file = File::open("/proc/self/cmdline").unwrap();
        let sent = ([1, u64::MAX], "ü".to_owned());
        sender.writer.write_with_files(&sent, &[file.as_fd(), file.as_fd()]).unwrap();
        sender.writer.write(&7u8).unwrap();
        let (received, files) = receiver.reader.read_with_files::<([u64; 2], String)>().unwrap();
        assert_eq!(received, sent);
        let mut text = String::new();
        File::from(files.into_iter().next_back().unwrap()).read_to_string(&mut text).unwrap();
        assert!(!text.is_empty());
        let (next, files) = receiver.reader.read_with_files::<u8>().unwrap();
        assert_eq!((next, files.len()), (7, 0));
        sender.writer.write(&vec![0xffu8; 3]).unwrap();
        assert!(matches!(receiver.reader.read::<(u64, String)>(), Err(FrameError::Invalid)));
        sender.writer.close();
        assert!(receiver.reader.read::<u8>().is_err());
    }

    #[test]
    fn a_pipe_carries_no_files() {
        let channel = Channel::pipes(io::empty(), io::sink(), 1000);
        let file = File::open("/dev/null").unwrap();
        let error = channel.writer.write_with_files(&1u8, &[file.as_fd()]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }
}

#[cfg(test)]
mod frame_tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ombx_testkit::seeded())]
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
