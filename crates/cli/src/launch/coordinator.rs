//! The coordinator: starts ranks over sockets here or by ssh, relays their control messages, and reports how a job failed. It is the
//! mpiexec of these ranks, a process beside the one that writes results.

use std::{
    env,
    ffi::OsString,
    io,
    os::unix::process::ExitStatusExt,
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc::{self, Receiver, RecvTimeoutError, Sender},
    thread,
    time::Duration,
};

use ombx_core::{
    clock::Since,
    env::hostname,
    error::{Error, Kind, Result},
    unit::Rank,
};
use ombx_sockets::{
    coordinator::{Coordinator, Happening, Reach, address_towards, open_door},
    token::Token,
};
use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};

use super::{
    invitation::Invitation,
    placement::{self, Placement},
};
use crate::{
    arguments::{argv, role},
    job::Job,
    output::relay::Message,
};

/// Time in which all ranks must connect.
const CONNECT: Duration = Duration::from_secs(60);
/// Time to learn the exit status of a rank whose connection was lost.
const EXIT_STATUS: Duration = Duration::from_secs(2);
/// Time for ranks to end after they were asked to.
const GRACE: Duration = Duration::from_secs(3);

/// Warning about a connection attempt that is not from a rank. It is printed once per session.
pub(crate) const CONNECTION_REJECTED: &str =
    "ombx: a connection without this session's token was rejected; further ones will be rejected silently";

enum Event {
    Session(Happening),
    Exit(u32, io::Result<ExitStatus>),
}

/// Early end of a session.
struct Failure {
    code: u8,
    /// The reason; `None` if a rank has already printed it.
    why: Option<String>,
}

/// Starts the ranks of a job and returns the exit code when all have ended.
pub(crate) fn run(job: &Job) -> Result<u8> {
    // If the launching process dies it cannot end this one.
    let _ = set_parent_process_death_signal(Some(Signal::TERM));
    let placements = placement::of_ranks(&job.start, job.extent.ranks)?;
    let here = placements.iter().all(|placement| placement.host.is_none());
    let token = Token::random()?;
    let listener = open_door(token, if here { Reach::ThisHost } else { Reach::Everywhere })?;
    let port = listener.port();
    let typed = argv::typed().into_iter().filter(|word| word != role::COORDINATOR);
    let argv: Vec<String> = typed.map(|word| word.to_string_lossy().into_owned()).collect();
    let (send, events) = mpsc::channel();
    let to_session = send.clone();
    let on_event = Box::new(move |event| drop(to_session.send(Event::Session(event))));
    let coordinator = Coordinator::start(listener, job.extent.ranks, on_event)?;
    let mut session = Session {
        coordinator: &coordinator,
        placements: &placements,
        pids: Vec::new(),
        events,
        exits: vec![None; placements.len()],
    };
    for (placement, rank) in placements.iter().zip(0..) {
        let addresses = match &placement.host {
            None => vec![[127, 0, 0, 1].into()],
            Some(host) => address_towards(host).into_iter().collect(),
        };
        let (on_host, argv) = (placement.on_host, argv.clone());
        let invitation = Invitation { token, port, addresses, rank, on_host, argv };
        match start(job, placement, &invitation) {
            Ok(child) => session.watch(rank, child, send.clone())?,
            Err(error) => {
                session.end(Failure { code: Kind::Fabric.exit_code(), why: None });
                return Err(error);
            }
        }
    }
    drop(send);
    match session.run() {
        Ok(()) => Ok(0),
        Err(failure) => Ok(session.end(failure)),
    }
}

/// Starts one rank and sends its invitation.
fn start(job: &Job, placement: &Placement, invitation: &Invitation) -> Result<Child> {
    let program = argv::executable()?;
    let mut command = match &placement.host {
        None => Command::new(&program),
        Some(host) => {
            let ssh = env::var_os("OMBX_SSH").unwrap_or_else(|| OsString::from("ssh"));
            let mut command = Command::new(ssh);
            command
                .args(["-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=15"])
                .args(&job.start.launcher_arg);
            let program = program
                .to_str()
                .ok_or_else(|| Error::fabric("the path of the ombx executable is not UTF-8"))?;
            command.arg("--").arg(host).arg(format!("exec {}", quoted(program)));
            command
        }
    };
    // ssh appends this word to the remote command line.
    command.arg("worker");
    let stdout = if invitation.rank == 0 { Stdio::inherit() } else { Stdio::null() };
    command.stdin(Stdio::piped()).stdout(stdout);
    let mut child = command.spawn().map_err(|e| {
        let program = command.get_program().to_string_lossy().into_owned();
        Error::fabric(format!("cannot start rank {}: {program}: {e}", invitation.rank))
    })?;
    if let Some(mut stdin) = child.stdin.take() {
        // If the child has already ended, its exit code says why.
        let _ = invitation.write(&mut stdin);
    }
    Ok(child)
}

/// Quotes one word for a shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

struct Session<'a> {
    coordinator: &'a Coordinator,
    placements: &'a [Placement],
    pids: Vec<Option<Pid>>,
    events: Receiver<Event>,
    /// How each rank ended.
    exits: Vec<Option<String>>,
}

impl Session<'_> {
    fn watch(&mut self, rank: u32, mut child: Child, send: Sender<Event>) -> Result<()> {
        self.pids.push(Some(Pid::from_child(&child)));
        let wait = move || drop(send.send(Event::Exit(rank, child.wait())));
        let started = thread::Builder::new().name("exit".into()).stack_size(64 * 1024).spawn(wait);
        started.map(|_| ()).map_err(|e| Error::fabric(format!("cannot start a thread: {e}")))
    }

    /// Returns when every rank has done its work and has ended.
    fn run(&mut self) -> std::result::Result<(), Failure> {
        let (mut done, mut connected, mut warned) = (vec![false; self.placements.len()], false, false);
        let since = Since::now();
        while self.exits.iter().any(Option::is_none) || !done.iter().all(|done| *done) {
            // The message that a rank has done its work may arrive after its exit status.
            let early = (0..).zip(&done).find(|(rank, done)| !**done && self.exits[*rank as usize].is_some());
            let early = early.map(|(rank, _)| rank);
            let event = match early {
                Some(_) => self.events.recv_timeout(EXIT_STATUS),
                None if connected => self.events.recv().map_err(|_| RecvTimeoutError::Disconnected),
                None => self.events.recv_timeout(CONNECT.saturating_sub(since.elapsed())),
            };
            match event {
                Ok(Event::Session(Happening::Complete)) => connected = true,
                Ok(Event::Session(Happening::Strangers(_))) => {
                    if !std::mem::replace(&mut warned, true) {
                        stderr_line!("{}", CONNECTION_REJECTED);
                    }
                }
                Ok(Event::Session(Happening::Done(Rank(rank)))) => done[rank as usize] = true,
                Ok(Event::Session(Happening::Ended { code, .. })) => {
                    return Err(Failure { code, why: None });
                }
                Ok(Event::Session(Happening::Lost { rank: Rank(rank), why, .. })) => {
                    let how = self.exit_of(rank).unwrap_or_else(|| format!("was lost: {why}"));
                    return Err(self.failure(rank, &how));
                }
                Ok(Event::Exit(rank, status)) => self.exited(rank, status),
                Err(_) => {
                    let missing = || self.coordinator.missing().first().map_or(0, |rank| rank.0);
                    let rank = early.unwrap_or_else(missing);
                    let late = || format!("did not connect within {} s", CONNECT.as_secs());
                    let how = self.exits[rank as usize].clone().unwrap_or_else(late);
                    return Err(self.failure(rank, &how));
                }
            }
        }
        Ok(())
    }

    fn failure(&self, rank: u32, how: &str) -> Failure {
        let host = self.placements[rank as usize].host.clone().unwrap_or_else(hostname);
        Failure { code: Kind::Fabric.exit_code(), why: Some(format!("rank {rank} on {host} {how}")) }
    }

    fn exited(&mut self, rank: u32, status: io::Result<ExitStatus>) {
        self.pids[rank as usize] = None;
        let how = match status.map(|status| (status.code(), status.signal())) {
            Ok((_, Some(signal))) => format!("was ended by signal {signal}"),
            Ok((Some(255), _)) if self.placements[rank as usize].host.is_some() => {
                "was lost: its ssh session ended".into()
            }
            Ok((Some(code), _)) => format!("ended early with exit code {code}"),
            Ok(_) | Err(_) => "ended in an unknown way".into(),
        };
        self.exits[rank as usize] = Some(how);
    }

    /// Waits for the exit status of a rank whose connection was lost, and returns how it ended.
    fn exit_of(&mut self, rank: u32) -> Option<String> {
        let since = Since::now();
        while self.exits[rank as usize].is_none() {
            match self.events.recv_timeout(EXIT_STATUS.saturating_sub(since.elapsed())).ok()? {
                Event::Exit(other, status) => self.exited(other, status),
                Event::Session(_) => {}
            }
        }
        self.exits[rank as usize].clone()
    }

    /// Asks the remaining ranks to end, kills those that do not, reports the reason, and returns the exit code.
    fn end(&mut self, Failure { code, why }: Failure) -> u8 {
        self.coordinator.end_all(code, why.as_deref().unwrap_or_default());
        let since = Since::now();
        while self.pids.iter().any(Option::is_some) {
            match self.events.recv_timeout(GRACE.saturating_sub(since.elapsed())) {
                Ok(Event::Exit(rank, status)) => self.exited(rank, status),
                Ok(Event::Session(_)) => {}
                Err(_) => break,
            }
        }
        for pid in self.pids.iter().flatten() {
            let _ = kill_process(*pid, Signal::KILL);
        }
        if let Some(why) = why {
            // The launching process may have ended.
            let _ = Message::Failure(why).write(&mut io::stdout());
        }
        code
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_for_a_shell_are_quoted() {
        assert_eq!(quoted("/opt/a b/ombx"), "'/opt/a b/ombx'");
        assert_eq!(quoted("it's $(x)"), "'it'\\''s $(x)'");
    }
}
