//! `ombx run` for ranks that are connected by sockets: starts them here or by ssh, holds them together, and says how a job
//! failed. It is to them what mpiexec is to MPI ranks, a process of its own beside the one that writes results.

use std::{
    os::unix::process::ExitStatusExt,
    process::{ExitStatus, Stdio},
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    time::Duration,
};

use ombx_core::{
    error::{Error, Result},
    system::clock::Since,
    unit::Rank,
};
use ombx_sockets::{
    Coordinator, Token,
    control::process::{self, ProcessGroup, Started},
    host::address_towards,
    session::{Reach, SessionEvent, listen},
};
use rustix::process::{Signal, set_parent_process_death_signal};
use serde_json::json;

use super::{
    hosts::{self, Seat},
    invitation::{Invitation, invitation},
    rendezvous,
};
use crate::{
    args::Launcher,
    job::Job,
    launch::{self, detect},
    output::LOST,
};

/// All ranks arrive within this time.
const ARRIVAL: Duration = Duration::from_secs(60);
/// How a rank ended that the coordinator has lost is known after this time at the latest.
const AUTOPSY: Duration = Duration::from_secs(2);

/// What is said of strangers, once.
pub(super) const STRANGER: &str = "ombx: a connection that does not know this session's token was refused; others will be too, without a word";

enum Event {
    Session(SessionEvent),
    Exit(u32, Option<ExitStatus>),
}

/// How a session ended before its work was done.
struct Failure {
    code: u8,
    /// Told by this process; a rank has spoken itself where there is none.
    why: Option<String>,
}

/// Finds mistakes before anything starts.
pub(crate) fn check(job: &Job<'_>) -> Result<()> {
    if invitation().is_some() {
        return Ok(());
    }
    match job.start.launcher {
        Launcher::None => return rendezvous::place(job.start).map(|_| ()),
        Launcher::Auto if detect::launcher().is_some() => return rendezvous::place(job.start).map(|_| ()),
        _ => {}
    }
    hosts::seats(job.start, job.extent.ranks).map(|_| ())
}

/// Starts the ranks of a job and returns when all have ended.
pub(crate) fn coordinate(job: &Job<'_>) -> Result<u8> {
    // Whoever started this process and is gone cannot end it any more.
    let _ = set_parent_process_death_signal(Some(Signal::TERM));
    let seats = hosts::seats(job.start, job.extent.ranks)?;
    let here = seats.iter().all(|seat| seat.host.is_none());
    let token = Token::random()?;
    let listener = listen(token, if here { Reach::ThisHost } else { Reach::Everywhere })?;
    let port = listener.port();
    let (send, events) = mpsc::channel();
    let hears = send.clone();
    let hears = Box::new(move |event| drop(hears.send(Event::Session(event))));
    let coordinator = Coordinator::start(listener, job.extent.ranks, hears)?;
    let exited = move |rank, exit: process::Exit| drop(send.send(Event::Exit(rank as u32, exit.status)));
    let ranks = ProcessGroup::watch_exits(exited);
    let status = vec![None; seats.len()];
    let mut session = Session { coordinator: &coordinator, seats: &seats, ranks, events, status };
    for (seat, rank) in seats.iter().zip(0..) {
        let invitation = Invitation {
            token,
            port,
            addresses: match &seat.host {
                None => vec![[127, 0, 0, 1].into()],
                Some(host) => address_towards(host).into_iter().collect(),
            },
            rank,
            seat: seat.of_host,
            argv: launch::argv_of_ranks().iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        };
        if let Err(error) = start(job, seat, &invitation).and_then(|rank| session.ranks.add(rank)) {
            session.end(Failure { code: 6, why: None });
            return Err(error);
        }
    }
    match session.run() {
        Ok(()) => Ok(0),
        Err(failure) => Ok(session.end(failure)),
    }
}

/// Starts one rank and gives it its invitation.
fn start(job: &Job<'_>, seat: &Seat, invitation: &Invitation) -> Result<Started> {
    let mut command = process::command(seat.host.as_deref(), &job.start.launcher_arg, "worker", &[])?;
    command.stdout(if invitation.rank == 0 { Stdio::inherit() } else { Stdio::null() });
    let mut input = Vec::new();
    invitation.write(&mut input).map_err(|e| Error::fabric(format!("cannot write an invitation: {e}")))?;
    Started::with_input(command, format!("rank {}", invitation.rank), &input)
}

struct Session<'a> {
    coordinator: &'a Coordinator,
    seats: &'a [Seat],
    ranks: ProcessGroup,
    events: Receiver<Event>,
    status: Vec<Option<String>>,
}

impl Session<'_> {
    /// Until every rank has done its work and has ended.
    fn run(&mut self) -> std::result::Result<(), Failure> {
        let (mut done, mut complete, mut told) = (vec![false; self.seats.len()], false, false);
        let since = Since::now();
        while self.status.iter().any(Option::is_none) || !done.iter().all(|done| *done) {
            // A rank that has ended may have said before that it was done; that word is still on its way.
            let early =
                (0..).zip(&done).find(|(rank, done)| !**done && self.status[*rank as usize].is_some());
            let early = early.map(|(rank, _)| rank);
            let event = match early {
                Some(_) => self.events.recv_timeout(AUTOPSY),
                None if complete => self.events.recv().map_err(|_| RecvTimeoutError::Disconnected),
                None => self.events.recv_timeout(ARRIVAL.saturating_sub(since.elapsed())),
            };
            match event {
                Ok(Event::Session(SessionEvent::Complete)) => complete = true,
                Ok(Event::Session(SessionEvent::Rejected(_))) => {
                    if !std::mem::replace(&mut told, true) {
                        tell!("{STRANGER}");
                    }
                }
                Ok(Event::Session(SessionEvent::Done(Rank(rank)))) => done[rank as usize] = true,
                Ok(Event::Session(SessionEvent::Ended { code, .. })) => {
                    return Err(Failure { code, why: None });
                }
                Ok(Event::Session(SessionEvent::Lost { rank: Rank(rank), why, .. })) => {
                    let how = self.autopsy(rank).unwrap_or_else(|| format!("was lost: {why}"));
                    return Err(self.failure(rank, &how));
                }
                Ok(Event::Exit(rank, status)) => self.exited(rank, status),
                Err(_) => {
                    let missing = || self.coordinator.missing().first().map_or(0, |rank| rank.0);
                    let rank = early.unwrap_or_else(missing);
                    let late = || format!("did not arrive within {} s", ARRIVAL.as_secs());
                    let how = self.status[rank as usize].clone().unwrap_or_else(late);
                    return Err(self.failure(rank, &how));
                }
            }
        }
        Ok(())
    }

    fn failure(&self, rank: u32, how: &str) -> Failure {
        let here = || ombx_core::system::environment::hostname();
        let host = self.seats[rank as usize].host.clone().unwrap_or_else(here);
        Failure { code: 6, why: Some(format!("rank {rank} on {host} {how}")) }
    }

    fn exited(&mut self, rank: u32, status: Option<ExitStatus>) {
        let how = match status.map(|status| (status.code(), status.signal())) {
            Some((_, Some(signal))) => format!("was ended by signal {signal}"),
            Some((Some(255), _)) if self.seats[rank as usize].host.is_some() => {
                "was lost: its ssh session ended".into()
            }
            Some((Some(code), _)) => format!("ended early with exit code {code}"),
            _ => "ended in an unknown way".into(),
        };
        self.status[rank as usize] = Some(how);
    }

    /// How a rank ended whose connection was lost.
    fn autopsy(&mut self, rank: u32) -> Option<String> {
        let since = Since::now();
        while self.status[rank as usize].is_none() {
            match self.events.recv_timeout(AUTOPSY.saturating_sub(since.elapsed())).ok()? {
                Event::Exit(other, status) => self.exited(other, status),
                Event::Session(_) => {}
            }
        }
        self.status[rank as usize].clone()
    }

    /// Ends every rank that is left, gently and then not, tells why, and returns the exit code.
    fn end(&mut self, Failure { code, why }: Failure) -> u8 {
        self.coordinator.end_all(code, why.as_deref().unwrap_or_default());
        self.ranks.end();
        if let Some(why) = why {
            use std::io::Write;
            // Whoever reads may have gone.
            let _ = writeln!(std::io::stdout(), "{}", json!({"kind": LOST, "why": why}));
        }
        code
    }
}
