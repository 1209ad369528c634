//! Control channels: messages over a socket, or over the two pipes of a process.

use std::{
    fs::File,
    io::{self, IoSlice, IoSliceMut, Read, Write},
    mem::MaybeUninit,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{Arc, Mutex, PoisonError},
};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

use serde::{Serialize, de::DeserializeOwned};

use super::frame::{Frame, FrameError};
use crate::socket::Stream;
use ombx_core::codec;

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
