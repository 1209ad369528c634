//! Starting the processes of a pipeline, watching over them, and ending them: each tells its parent and ends with it.

use std::{
    io,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::{net::UnixStream, process::ExitStatusExt},
    },
    process::{Child, Command, ExitStatus, Stdio},
    sync::{
        Arc, Condvar, Mutex, PoisonError,
        mpsc::{self, Receiver},
    },
    thread,
    time::Duration,
};

use ombx_core::error::{Error, Result};

use super::{
    failure::Failure,
    note::{Inlet, Kind, Note, Outlet},
};

/// The hidden subcommand of the program that a process of a pipeline is.
pub const SUBCOMMAND: &str = "pipeline-process";
/// After being told to end, processes have this long before they are killed.
const GRACE: Duration = Duration::from_secs(3);

/// Whether phases, senders and receivers are processes or threads of their node's process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Crew {
    Processes,
    Threads,
}

/// Someone who was started.
pub(super) struct Member {
    pub(super) name: String,
    pub(super) outlet: Outlet,
    inlet: Inlet,
    socket: Option<UnixStream>,
    process: Option<Child>,
}

impl Member {
    /// Starts someone who then waits for the task; `name` is what failures call it.
    pub(super) fn start(crew: Crew, name: String) -> Result<Member> {
        let failed = |e: io::Error| Error::fabric(format!("{name} could not be started: {e}"));
        let (ours, theirs) = UnixStream::pair().map_err(failed)?;
        let process = match crew {
            Crew::Processes => {
                let program = std::env::current_exe().map_err(failed)?;
                let mut command = Command::new(program);
                command.arg(SUBCOMMAND).arg(&name).stdout(Stdio::null());
                // What else it needs comes through this socket: arguments and environment are for all to read.
                command.stdin(OwnedFd::from(theirs));
                Some(command.spawn().map_err(failed)?)
            }
            Crew::Threads => {
                let serve = move || super::task::serve(Line::socket(theirs)?, Orphan::Returns);
                thread::Builder::new().name(name.clone()).spawn(serve).map_err(failed)?;
                None
            }
        };
        let outlet = Outlet::socket(ours.try_clone().map_err(failed)?);
        let socket = Some(ours.try_clone().map_err(failed)?);
        Ok(Member { name, outlet, inlet: Inlet::Socket(ours), socket, process })
    }

    /// Someone on another host, started by a command whose standard input and output reach it.
    pub(super) fn remote(mut command: Command, name: String) -> Result<Member> {
        let failed = |e: io::Error| Error::fabric(format!("{name} could not be started: {e}"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().map_err(failed)?;
        let gone = || failed(io::ErrorKind::BrokenPipe.into());
        let to = process.stdin.take().ok_or_else(gone)?;
        let from = process.stdout.take().ok_or_else(gone)?;
        let inlet = Inlet::Pipe(Box::new(from));
        Ok(Member { name, outlet: Outlet::pipe(to), inlet, socket: None, process: Some(process) })
    }

    /// Tells it who it is.
    pub(super) fn task(&self, task: &Note, files: &[BorrowedFd<'_>]) -> Result<()> {
        // One that has died is reported by who watches over it.
        match self.outlet.send_with(task, files) {
            Err(e) if e.kind() == io::ErrorKind::InvalidInput => {
                Err(Error::fabric(format!("{}: {e}", self.name)))
            }
            _ => Ok(()),
        }
    }
}

/// What is heard of those who were started.
pub(super) enum Event {
    Note(usize, Note),
    /// One has ended.
    Ended(usize, End),
}

/// How someone ended.
pub(super) struct End {
    /// In words.
    how: String,
    /// Whether it had said why.
    told: bool,
}

impl End {
    /// As a failure of whoever has that name.
    pub(super) fn failure(&self, name: &str) -> Failure {
        match self.told {
            false => Failure::lost(name, &self.how),
            true => Failure::broken(name, "it ended", &io::ErrorKind::BrokenPipe.into()),
        }
    }
}

/// The exit code of a process that has told its failure.
pub(super) const TOLD: u8 = 77;

/// Those whom one process has started.
pub(super) struct Family {
    members: Vec<Link>,
    left: Arc<(Mutex<usize>, Condvar)>,
}

struct Link {
    outlet: Option<Outlet>,
    socket: Option<UnixStream>,
    process: Arc<Mutex<Option<Child>>>,
}

impl Family {
    /// Watches over members: a thread for each sleeps until there is something to hear.
    pub(super) fn watch(members: Vec<Member>, heard: impl Fn(Event) + Send + Clone + 'static) -> Family {
        let left = Arc::new((Mutex::new(members.len()), Condvar::new()));
        let watch = |(at, member): (usize, Member)| {
            let Member { outlet, mut inlet, socket, process, .. } = member;
            let process = Arc::new(Mutex::new(process));
            let (theirs, left, heard) = (Arc::clone(&process), Arc::clone(&left), heard.clone());
            thread::spawn(move || {
                while let Ok(note) = inlet.receive() {
                    heard(Event::Note(at, note));
                }
                heard(Event::Ended(at, reap(&theirs)));
                *left.0.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
                left.1.notify_all();
            });
            Link { outlet: Some(outlet), socket, process }
        };
        let members = members.into_iter().enumerate().map(watch).collect();
        Family { members, left }
    }

    /// Tells every member something.
    pub(super) fn tell(&self, note: &Note) {
        // One that has died is reported by who watches over it.
        self.members.iter().filter_map(|m| m.outlet.as_ref()).for_each(|to| drop(to.send(note)));
    }

    /// Ends them all: they are told to, and killed if they do not.
    pub(super) fn end(&mut self) {
        for member in &mut self.members {
            member.outlet = None;
            if let Some(socket) = &member.socket {
                let _ = socket.shutdown(std::net::Shutdown::Both);
            }
        }
        if !self.have_ended() {
            for member in &self.members {
                if let Some(process) = &mut *member.process.lock().unwrap_or_else(PoisonError::into_inner) {
                    let _ = process.kill();
                }
            }
            self.have_ended();
        }
    }

    fn have_ended(&self) -> bool {
        let left = self.left.0.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.left.1.wait_timeout_while(left, GRACE, |left| *left > 0);
        *waited.unwrap_or_else(PoisonError::into_inner).0 == 0
    }
}

/// How a process ended whose connection has closed. It is asked again and again, so that it can be killed meanwhile.
fn reap(process: &Mutex<Option<Child>>) -> End {
    let end = |how: String, told| End { how, told };
    loop {
        match &mut *process.lock().unwrap_or_else(PoisonError::into_inner) {
            // A thread ends because it has failed, and says so.
            None => return end("ended".into(), true),
            Some(child) => match child.try_wait() {
                Ok(Some(status)) => {
                    let how = format!("(process {}) {}", child.id(), words(status));
                    return end(how, status.code() == Some(TOLD.into()));
                }
                Ok(None) => {}
                Err(e) => return end(format!("(process {}) is gone: {e}", child.id()), false),
            },
        }
        thread::sleep(Duration::from_millis(2));
    }
}

fn words(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(9), _) => "was killed (signal 9)".into(),
        (Some(signal), _) => format!("died of signal {signal}"),
        (None, Some(code)) => format!("ended with exit code {code}"),
        (None, None) => "ended".into(),
    }
}

/// Members that pass failures on to where they were started from.
pub(super) struct Crewed {
    family: Family,
    ready: Receiver<()>,
    size: usize,
}

impl Crewed {
    /// Watches over members: notes go up, `Ready` is counted, and a member's end is a failure.
    pub(super) fn watch(members: Vec<Member>, up: &Outlet) -> Crewed {
        let names: Arc<[String]> = members.iter().map(|m| m.name.clone()).collect();
        let (sender, ready) = mpsc::channel();
        let (up, size) = (up.clone(), members.len());
        let heard = move |event| {
            // Whoever this would be told to may be gone: then this process ends anyway.
            let _ = match event {
                Event::Note(_, note) if note.kind == Kind::Ready => {
                    let _ = sender.send(());
                    Ok(())
                }
                Event::Note(_, note) => up.send(&note),
                Event::Ended(at, end) => up.send(&end.failure(&names[at]).note()),
            };
        };
        Crewed { family: Family::watch(members, heard), ready, size }
    }

    /// Waits until all are ready; false if one never will be, which has been passed on.
    pub(super) fn ready(&self) -> bool {
        (0..self.size).all(|_| self.ready.recv().is_ok())
    }

    pub(super) fn into_family(self) -> Family {
        self.family
    }
}

/// What a process does when whoever started it has gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Orphan {
    /// It ends.
    Ends,
    /// It is a thread, and ends with its process.
    Returns,
}

/// The two directions to whoever started this process.
pub(super) struct Line {
    pub(super) inlet: Inlet,
    pub(super) outlet: Outlet,
}

impl Line {
    pub(super) fn socket(socket: UnixStream) -> io::Result<Line> {
        let outlet = Outlet::socket(socket.try_clone()?);
        Ok(Line { inlet: Inlet::Socket(socket), outlet })
    }

    /// Standard input, and standard output where that is no socket.
    pub(super) fn of_this_process() -> io::Result<Line> {
        let own = |fd: BorrowedFd<'_>| fd.try_clone_to_owned();
        let input = own(rustix::stdio::stdin())?;
        match rustix::net::sockopt::socket_type(&input) {
            Ok(_) => Line::socket(input.into()),
            Err(_) => {
                let output = own(rustix::stdio::stdout())?;
                // What else would print goes to standard error.
                rustix::stdio::dup2_stdout(rustix::stdio::stderr().as_fd())?;
                let inlet = Inlet::Pipe(Box::new(std::fs::File::from(input)));
                Ok(Line { inlet, outlet: Outlet::pipe(std::fs::File::from(output)) })
            }
        }
    }
}
