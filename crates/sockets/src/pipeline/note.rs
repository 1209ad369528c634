//! What the processes of a pipeline tell each other beside the data: a kind, numbers, words and open files.

use std::{
    io::{self, IoSlice, IoSliceMut, Read, Write},
    mem::MaybeUninit,
    os::{
        fd::{BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
    sync::{Arc, Mutex, PoisonError},
};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

use crate::frame::{Frame, FrameError};

/// The longest note: the time stamps of the most buffers.
const MOST: usize = 64 << 20;
/// The most open files that come with a note; the kernel's own limit.
const MOST_FILES: usize = 253;

/// What a note is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// To a process that has just been started: who it is.
    Task,
    /// From it: it stands where it should.
    Ready,
    /// From anyone, passed on to the coordinator: something went wrong.
    Failure,
    /// From a node: where others connect to it.
    Address,
    /// To a node: where the others are.
    Peers,
    /// From a node: strangers knocked.
    Strangers,
    /// To a node: get ready for a run.
    Prepare,
    /// From a node: it is.
    Prepared,
    /// To a node: begin.
    Go,
    /// From a node: the run is over, with its times.
    Done,
    /// To a node: compare what arrived.
    Check,
    /// From a node: what it found.
    Checked,
}

const KINDS: [Kind; 12] = [
    Kind::Task,
    Kind::Ready,
    Kind::Failure,
    Kind::Address,
    Kind::Peers,
    Kind::Strangers,
    Kind::Prepare,
    Kind::Prepared,
    Kind::Go,
    Kind::Done,
    Kind::Check,
    Kind::Checked,
];

/// One message.
#[derive(Debug)]
pub(super) struct Note {
    pub(super) kind: Kind,
    pub(super) numbers: Vec<u64>,
    pub(super) words: Vec<String>,
    /// Open files that came with it.
    pub(super) files: Vec<OwnedFd>,
}

impl Note {
    pub(super) fn new(kind: Kind) -> Note {
        Note { kind, numbers: Vec::new(), words: Vec::new(), files: Vec::new() }
    }

    pub(super) fn numbers(mut self, numbers: impl IntoIterator<Item = u64>) -> Note {
        self.numbers.extend(numbers);
        self
    }

    pub(super) fn words(mut self, words: impl IntoIterator<Item = String>) -> Note {
        self.words.extend(words);
        self
    }

    /// The number at a place; 0 where there is none.
    pub(super) fn number(&self, at: usize) -> u64 {
        self.numbers.get(at).copied().unwrap_or(0)
    }

    /// The words at a place.
    pub(super) fn word(&self, at: usize) -> &str {
        self.words.get(at).map_or("", String::as_str)
    }

    pub(super) fn frame(&self) -> Frame {
        let mut body = Vec::with_capacity(8 + 8 * self.numbers.len());
        body.extend((self.numbers.len() as u32).to_le_bytes());
        body.extend(self.numbers.iter().flat_map(|number| number.to_le_bytes()));
        for word in &self.words {
            body.extend((word.len() as u32).to_le_bytes());
            body.extend(word.as_bytes());
        }
        Frame::new(self.kind as u8, body)
    }

    pub(super) fn of(frame: &Frame) -> Option<Note> {
        let (count, mut rest) = frame.body.split_first_chunk::<4>()?;
        let mut note = Note::new(*KINDS.get(usize::from(frame.kind))?);
        let (numbers, words) = rest.split_at_checked(8 * u32::from_le_bytes(*count) as usize)?;
        note.numbers =
            numbers.chunks_exact(8).filter_map(|b| Some(u64::from_le_bytes(b.try_into().ok()?))).collect();
        rest = words;
        while let Some((length, more)) = rest.split_first_chunk::<4>() {
            let (word, more) = more.split_at_checked(u32::from_le_bytes(*length) as usize)?;
            note.words.push(String::from_utf8(word.to_vec()).ok()?);
            rest = more;
        }
        rest.is_empty().then_some(note)
    }
}

/// Where notes come from.
pub(super) enum Inlet {
    Socket(UnixStream),
    Pipe(Box<dyn Read + Send>),
}

impl Inlet {
    /// The next note.
    pub(super) fn receive(&mut self) -> io::Result<Note> {
        let other = |e: FrameError| io::Error::other(e.to_string());
        let (frame, files) = match self {
            Inlet::Pipe(pipe) => (Frame::read(pipe, MOST).map_err(other)?, Vec::new()),
            Inlet::Socket(socket) => {
                let mut gathering = Gathering { socket, files: Vec::new() };
                (Frame::read(&mut gathering, MOST).map_err(other)?, gathering.files)
            }
        };
        let note = Note::of(&frame).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
        Ok(Note { files, ..note })
    }
}

/// Where notes go to; several threads may have one.
#[derive(Clone)]
pub(super) struct Outlet(Arc<Mutex<Way>>);

enum Way {
    Socket(UnixStream),
    Pipe(Box<dyn Write + Send>),
}

impl Outlet {
    pub(super) fn socket(socket: UnixStream) -> Outlet {
        Outlet(Arc::new(Mutex::new(Way::Socket(socket))))
    }

    pub(super) fn pipe(pipe: impl Write + Send + 'static) -> Outlet {
        Outlet(Arc::new(Mutex::new(Way::Pipe(Box::new(pipe)))))
    }

    /// Sends a note.
    pub(super) fn send(&self, note: &Note) -> io::Result<()> {
        self.send_with(note, &[])
    }

    /// Sends a note with open files, of which the receiver gets its own handles.
    pub(super) fn send_with(&self, note: &Note, files: &[BorrowedFd<'_>]) -> io::Result<()> {
        let bytes = note.frame().encode().map_err(|e| io::Error::other(e.to_string()))?;
        match &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Way::Pipe(pipe) => pipe.write_all(&bytes).and_then(|()| pipe.flush()),
            Way::Socket(socket) => {
                let mut space = vec![MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(files.len()))];
                let mut control = SendAncillaryBuffer::new(&mut space);
                if !files.is_empty() && !control.push(SendAncillaryMessage::ScmRights(files)) {
                    return Err(io::ErrorKind::InvalidInput.into());
                }
                let sent = sendmsg(&*socket, &[IoSlice::new(&bytes)], &mut control, SendFlags::NOSIGNAL)?;
                socket.write_all(&bytes[sent..])
            }
        }
    }
}

/// Reads bytes from a socket and gathers the open files that come with them.
struct Gathering<'s> {
    socket: &'s UnixStream,
    files: Vec<OwnedFd>,
}

impl Read for Gathering<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut space = vec![MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FILES))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC;
        let received = recvmsg(self.socket, &mut [IoSliceMut::new(into)], &mut control, flags)?;
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(files) = message {
                self.files.extend(files);
            }
        }
        Ok(received.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs::File, os::fd::AsFd};

    #[test]
    fn a_note_arrives_with_its_numbers_words_and_files() {
        let (a, b) = UnixStream::pair().unwrap();
        let (outlet, mut inlet) = (Outlet::socket(a), Inlet::Socket(b));
        let file = File::open("/proc/self/cmdline").unwrap();
        let note =
            Note::new(Kind::Task).numbers([1, u64::MAX]).words(["node".into(), String::new(), "ü".into()]);
        outlet.send_with(&note, &[file.as_fd(), file.as_fd()]).unwrap();
        outlet.send(&Note::new(Kind::Ready)).unwrap();
        let heard = inlet.receive().unwrap();
        assert_eq!((heard.kind, heard.numbers, heard.words), (Kind::Task, note.numbers, note.words));
        let mut text = String::new();
        File::from(heard.files.into_iter().next_back().unwrap()).read_to_string(&mut text).unwrap();
        assert!(!text.is_empty());
        let next = inlet.receive().unwrap();
        assert_eq!((next.kind, next.number(3), next.word(0), next.files.len()), (Kind::Ready, 0, "", 0));
        drop(outlet);
        assert!(inlet.receive().is_err());
    }

    #[test]
    fn kinds_are_numbered_as_they_are_listed() {
        assert!(KINDS.iter().enumerate().all(|(at, kind)| *kind as usize == at));
    }

    #[test]
    fn what_is_no_note_is_none() {
        let whole = Note::new(Kind::Done).numbers([5]).words(["x".into()]).frame();
        for cut in 0..whole.body.len() {
            let note = Note::of(&Frame::new(whole.kind, &whole.body[..cut]));
            // Cut between the numbers and the words, it is a shorter note.
            assert_eq!(note.is_some(), cut == 12, "{cut}");
        }
        assert!(Note::of(&Frame::new(200, whole.body)).is_none());
        assert!(Note::of(&Frame::new(0, [0xff; 4])).is_none());
    }
}
