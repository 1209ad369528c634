//! The coordinator: starts ranks over sockets here or by ssh, connects them with each other, and reports how a job failed. It is the
//! mpiexec of these ranks, a process beside the one that writes results.

use std::{
    collections::BTreeMap,
    io,
    iter::repeat_n,
    os::unix::process::ExitStatusExt,
    process::{Command, ExitStatus, Stdio},
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    time::Duration,
};

use ombx_host::{environment::hostname, remote_shell::RemoteShell, since::Since};
use ombx_record::{
    codec,
    error::{Error, Kind, Result},
    event::Event,
    file,
    regular_file::file_in_memory,
    unit::Rank,
};
use ombx_sockets::{
    Coordinator, Token,
    control::process::{self, ProcessGroup, Started},
    session::{Reach, SessionEvent, listen},
    socket::{self, ScopedIp, address_towards, loopback},
};
use rustix::process::{Signal, set_parent_process_death_signal};
use serde::{Deserialize, Serialize};

use crate::{
    job::{Job, rank_job::RankJob},
    launch::{
        hosts::{Host, hosts},
        invitation::{Invitation, Placement, WORKER, from_stdin},
        served::{Reserved, Serving},
        start::Start,
    },
    this_process,
};

/// Name of the hidden command of the coordinator.
pub(crate) const COORDINATOR: &str = "coordinator";

/// Time in which all ranks must connect, and how much more there is for each of them: ranks of one host start one after the other.
const CONNECT: Duration = Duration::from_secs(30);
const CONNECT_OF_RANK: Duration = Duration::from_millis(100);
/// Time limit for learning the exit status of a rank whose connection was lost.
const EXIT_STATUS: Duration = Duration::from_secs(2);

/// Warning about a connection attempt that is not from a rank. It is printed once per session.
pub(crate) const CONNECTION_REJECTED: &str =
    "ombx: a connection without this session's token was rejected; further ones will be rejected silently";

enum Notice {
    Session(SessionEvent),
    Exit(u32, Option<ExitStatus>),
}

/// Early end of a session.
struct Failure {
    code: u8,
    /// The reason; `None` if a rank has already printed it.
    why: Option<String>,
}

/// What a coordinator gets from the launching process.
#[derive(Serialize, Deserialize)]
struct Coordination {
    placements: Vec<Placement>,
    /// Arguments of the remote shell.
    shell_arguments: Vec<String>,
    /// Server that runs the ranks of other hosts, in place of a remote shell.
    serving: Option<Serving>,
    job: RankJob,
}

/// Returns the command of a coordinator on this host.
pub(super) fn command(job: &Job, of_ranks: RankJob, reserved: Option<&Reserved>) -> Result<Command> {
    let serving = reserved.map(Reserved::serving);
    let placements = match &serving {
        Some(serving) => serving.placements(),
        None => self::of_ranks(&job.start, job.extent.ranks)?,
    };
    let shell_arguments = job.start.launcher_arg.clone();
    let coordination = Coordination { placements, shell_arguments, serving, job: of_ranks };
    let input = file_in_memory(&codec::encode(&coordination));
    let input = input.map_err(|e| Error::fabric(format!("cannot start the coordinator: {e}")))?;
    let mut command = Command::new(this_process::executable()?);
    command.arg(COORDINATOR).stdin(Stdio::from(input));
    Ok(command)
}

/// Starts the ranks of a job and returns the exit code when all have ended.
pub(crate) fn run() -> Result<u8> {
    // If the launching process dies it cannot end this one.
    let _ = set_parent_process_death_signal(Some(Signal::TERM));
    let Coordination { placements, shell_arguments, serving, job } = from_stdin().ok_or_else(|| {
        Error::usage("the standard input of ombx coordinator is not a job: use ombx run, which starts it")
    })?;
    let here = placements.iter().all(|placement| placement.host.is_none());
    let token = Token::random()?;
    let listener = listen(token, if here { Reach::ThisHost } else { Reach::Everywhere })?;
    let port = listener.port();
    let (send, events) = mpsc::channel();
    let to_session = send.clone();
    let on_event = Box::new(move |event| drop(to_session.send(Notice::Session(event))));
    let coordinator = Coordinator::start(listener, placements.len() as u32, on_event)?;
    let exited =
        move |rank, exit: process::MemberEnd| drop(send.send(Notice::Exit(rank as u32, exit.status)));
    let ranks = ProcessGroup::watch_exits(exited);
    let exits = vec![None; placements.len()];
    let over_ssh = serving.is_none();
    let mut session =
        Session { coordinator: &coordinator, placements: &placements, over_ssh, ranks, events, exits };
    let shell = RemoteShell::ssh(None, &shell_arguments);
    for (placement, rank) in placements.iter().zip(0..) {
        let addresses = match &placement.host {
            None => vec![loopback().into()],
            Some(host) => address_towards(host).into_iter().map(ScopedIp::from).collect(),
        };
        let (on_host, job) = (placement.on_host, job.clone());
        let invitation = Invitation { token, port, addresses, rank, on_host, job };
        let started = match serving.as_ref().filter(|_| placement.host.is_some()) {
            Some(serving) => serving.start(invitation),
            None => start(&shell, placement, &invitation),
        };
        if let Err(error) = started.and_then(|rank| session.ranks.add(rank)) {
            session.end(Failure { code: Kind::Fabric.exit_code(), why: None });
            return Err(error);
        }
    }
    match session.run() {
        Ok(()) => Ok(0),
        Err(failure) => Ok(session.end(failure)),
    }
}

/// Starts one rank and sends its invitation.
fn start(shell: &RemoteShell, placement: &Placement, invitation: &Invitation) -> Result<Started> {
    let remote = placement.host.as_deref().map(|host| (shell, host));
    let mut command = process::command(remote, WORKER, &[])?;
    command.stdout(if invitation.rank == 0 { Stdio::inherit() } else { Stdio::null() });
    Started::with_input(command, format!("rank {}", invitation.rank), &codec::encode(invitation))
}

struct Session<'a> {
    coordinator: &'a Coordinator,
    placements: &'a [Placement],
    /// Whether ranks on other hosts are started by ssh, not by a server.
    over_ssh: bool,
    ranks: ProcessGroup,
    events: Receiver<Notice>,
    /// How each rank ended.
    exits: Vec<Option<String>>,
}

impl Session<'_> {
    /// Returns when every rank has done its work and has ended.
    fn run(&mut self) -> std::result::Result<(), Failure> {
        let (mut done, mut connected, mut warned) = (vec![false; self.placements.len()], false, false);
        let since = Since::now();
        let connect = CONNECT + CONNECT_OF_RANK * self.placements.len() as u32;
        while self.exits.iter().any(Option::is_none) || !done.iter().all(|done| *done) {
            // The message that a rank has done its work may arrive after its exit status.
            let early = (0..).zip(&done).find(|(rank, done)| !**done && self.exits[*rank as usize].is_some());
            let early = early.map(|(rank, _)| rank);
            let event = match early {
                Some(_) => self.events.recv_timeout(EXIT_STATUS),
                None if connected => self.events.recv().map_err(|_| RecvTimeoutError::Disconnected),
                None => self.events.recv_timeout(connect.saturating_sub(since.elapsed())),
            };
            match event {
                Ok(Notice::Session(SessionEvent::Complete)) => connected = true,
                Ok(Notice::Session(SessionEvent::Rejected(_))) => {
                    if !std::mem::replace(&mut warned, true) {
                        stderr_line!("{}", CONNECTION_REJECTED);
                    }
                }
                Ok(Notice::Session(SessionEvent::OtherBuild(why))) => {
                    return Err(Failure { code: Kind::Fabric.exit_code(), why: Some(why) });
                }
                Ok(Notice::Session(SessionEvent::Done(Rank(rank)))) => done[rank as usize] = true,
                Ok(Notice::Session(SessionEvent::Ended { code, .. })) => {
                    return Err(Failure { code, why: None });
                }
                Ok(Notice::Session(SessionEvent::Lost { rank: Rank(rank), why, .. })) => {
                    let how = self.exit_of(rank).unwrap_or_else(|| format!("was lost: {why}"));
                    return Err(self.failure(rank, &how));
                }
                Ok(Notice::Exit(rank, status)) => self.exited(rank, status),
                Err(_) => {
                    let missing = || self.coordinator.missing().first().map_or(0, |rank| rank.0);
                    let rank = early.unwrap_or_else(missing);
                    let late = || format!("did not connect within {} s", connect.as_secs());
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

    fn exited(&mut self, rank: u32, status: Option<ExitStatus>) {
        let how = match status.map(|status| (status.code(), status.signal())) {
            Some((_, Some(signal))) => format!("was ended by signal {signal}"),
            Some((Some(255), _)) if self.placements[rank as usize].host.is_some() => {
                let lost = if self.over_ssh { "ssh session" } else { "connection to the server" };
                format!("was lost: its {lost} ended")
            }
            Some((Some(code), _)) => format!("ended early with exit code {code}"),
            _ => "ended in an unknown way".into(),
        };
        self.exits[rank as usize] = Some(how);
    }

    /// Waits for the exit status of a rank whose connection was lost, and returns how it ended.
    fn exit_of(&mut self, rank: u32) -> Option<String> {
        let since = Since::now();
        while self.exits[rank as usize].is_none() {
            match self.events.recv_timeout(EXIT_STATUS.saturating_sub(since.elapsed())).ok()? {
                Notice::Exit(other, status) => self.exited(other, status),
                Notice::Session(_) => {}
            }
        }
        self.exits[rank as usize].clone()
    }

    /// Asks the remaining ranks to end, kills those that do not, reports the reason, and returns the exit code.
    fn end(&mut self, Failure { code, why }: Failure) -> u8 {
        self.coordinator.end_all(code, why.as_deref().unwrap_or_default());
        self.ranks.end();
        if let Some(why) = why {
            // The launching process may have ended.
            let _ = file::write(&mut io::stdout(), &Event::Failed { why: why.into() });
        }
        code
    }
}

/// Maximum number of ranks. The coordinator has a thread and a connection for each.
const MOST_RANKS: u32 = 4096;

/// Returns the place of each rank. Ranks fill the slots of each host in turn, and begin again at the first.
pub fn of_ranks(start: &Start, ranks: u32) -> Result<Vec<Placement>> {
    let hosts = hosts(start)?;
    if ranks > MOST_RANKS {
        return Err(Error::usage(format!(
            "-n {ranks} is too large: sockets connect at most {MOST_RANKS} ranks"
        )));
    }
    let hosts = if hosts.is_empty() { vec![Host::new("localhost")] } else { hosts };
    let slots = hosts.iter().flat_map(|Host { name, slots, .. }| repeat_n(name, slots.unwrap_or(1) as usize));
    let names: Vec<&String> = slots.cycle().take(ranks as usize).collect();
    let mut counts: BTreeMap<&str, (bool, u32)> = BTreeMap::new();
    for name in &names {
        counts.entry(name).or_insert_with(|| (socket::is_here(name), 0)).1 += 1;
    }
    let mut placed: BTreeMap<&str, u32> = BTreeMap::new();
    let placements = names.into_iter().map(|name| {
        let (here, count) = counts[name.as_str()];
        let before = placed.entry(name).or_insert(0);
        *before += 1;
        Placement { host: (!here).then(|| name.clone()), on_host: (*before - 1, count) }
    });
    Ok(placements.collect())
}
