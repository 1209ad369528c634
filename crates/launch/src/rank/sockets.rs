//! A rank over sockets: a worker that the coordinator has invited, or a rank of the user's launcher. The latter meet by a file: rank 0
//! writes its address and the token to it, and all ranks can read it.

use std::{
    fs,
    net::{IpAddr, SocketAddr, ToSocketAddrs},
    path::Path,
    process,
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Receiver},
    },
    thread,
    time::Duration,
};

use ombx_core::team::Team;
use ombx_host::{
    environment::{hostname, place_of_thread},
    since::Since,
};
use ombx_record::{
    error::{Error, Kind, Result},
    order::each_once,
    unit::Rank,
};
use ombx_sockets::{
    Coordinator, SocketTeam, Token,
    session::{Cpus, Reach, SessionEvent, join_timeout, listen},
    socket::{self, ScopedIp, address_towards, loopback},
};
use rustix::thread::{CpuSet, sched_setaffinity};
use serde::{Deserialize, Serialize};

use crate::{
    job::Work,
    launch::{
        coordinator::CONNECTION_REJECTED, core_to_core::cores, detection, invitation::Invitation,
        start::Start,
    },
    private_file,
    rank::{RankState, failure},
    stderr::printable,
};

/// Time that the coordinator has for reporting a lost rank, which is the usual reason of a failed connection.
const COORDINATOR_PRINTS: Duration = Duration::from_millis(700);

/// Finds mistakes in how ranks of the user's launcher connect.
pub(super) fn check(start: &Start) -> Result<()> {
    place(start).map(|_| ())
}

/// Joins the session of the coordinator and measures.
pub(super) fn measure_invited(state: &mut RankState<'_>, work: &Work, invitation: &Invitation) -> Result<()> {
    let Invitation { token, rank, on_host, job, .. } = invitation;
    let cpus = if job.binds { bind(*on_host) } else { Cpus::default() };
    let on_end = |code: u8, _: &str| process::exit(code.into());
    let (limit, addresses) = (join_timeout(on_host.1), invitation.coordinator());
    let team = SocketTeam::join_within(limit, &addresses, *token, *rank, on_end)
        .map_err(|e| e.within(format!("rank {rank} on {}", hostname())))?;
    team.set_cpus(cpus);
    measure_on(&team, state, work);
    Ok(())
}

/// Joins the session of the other ranks of the user's launcher and measures.
pub(super) fn measure(state: &mut RankState<'_>, work: &Work, start: &Start) -> Result<()> {
    // Errors of the first rank are printed where they end the process.
    let (team, others) = join(start).inspect_err(|error| {
        if !detection::is_first_process() {
            stderr_line!("ombx: {}", printable(&error.to_string()));
        }
    })?;
    measure_on(&team, state, work);
    // The coordinator is a part of rank 0, which stays until every rank has left.
    if let Some((left, ranks)) = others {
        (0..ranks).all(|_| left.recv_timeout(LINGER).is_ok());
    }
    Ok(())
}

/// Measures and leaves the session, or ends it with an error.
fn measure_on(team: &SocketTeam, state: &mut RankState<'_>, work: &Work) {
    // The barrier keeps each rank in the session while others still measure.
    let work = with_ip(team, work.clone());
    let measured = state.measure(team, &work).and_then(|()| team.barrier());
    if let Err(error) = measured {
        if error.kind() == Kind::Fabric {
            thread::sleep(COORDINATOR_PRINTS);
        }
        if team.rank() == Rank(0) {
            failure::print_rest();
        }
        failure::abort(team, &error);
    }
    team.leave();
}

/// Returns the work with the version of the internet protocol that the ranks have, where the user has chosen none.
fn with_ip(team: &SocketTeam, mut work: Work) -> Work {
    match &mut work {
        Work::Benchmarks(parts) => parts.iter_mut().for_each(|part| team.choose_ip(&mut part.plan.chosen)),
        Work::Links(_, plan) => team.choose_ip(&mut plan.chosen),
    }
    work
}

/// Binds this rank to a core if this host has one for each of its ranks. Returns its share of the cores, of which that one is the first.
fn bind((rank, ranks): (u32, u32)) -> Cpus {
    let (cores, all) = (cores(), place_of_thread().cpu_numbers());
    if cores.len() < ranks as usize {
        return Cpus::default();
    }
    let own: Vec<u32> = cores.into_iter().skip(rank as usize).step_by(ranks as usize).collect();
    let mut set = CpuSet::new();
    own.iter().take(1).for_each(|core| set.set(*core as usize));
    // If binding is not permitted, results show where the rank may run.
    let _ = sched_setaffinity(None, &set);
    Cpus { own, all }
}

/// Time in which rank 0 must write the file.
const LIMIT: Duration = Duration::from_secs(120);
/// Interval between two looks for the file.
const INTERVAL: Duration = Duration::from_millis(50);
/// Time for which rank 0 waits for the next rank to leave the session.
const LINGER: Duration = Duration::from_secs(10);
/// Addresses of networks reserved for documentation (RFC 5737, RFC 3849). The kernel says from which address it would send there; no packet
/// is sent.
const ELSEWHERE: [&str; 2] = ["192.0.2.1", "2001:db8::1"];

/// Returns the addresses from which this host reaches most others: that of IPv4 before that of IPv6, if it has them. A host without a
/// route to all others may still have an address of IPv6.
pub fn own_addresses() -> Vec<IpAddr> {
    let own = ELSEWHERE.iter().filter_map(|elsewhere| address_towards(elsewhere).ok());
    let own = own.filter(|address| !address.is_unspecified());
    each_once(own.chain(socket::global_ipv6().map(IpAddr::V6)))
}

/// Validates how the ranks meet. Returns this rank, the number of ranks and the file through which they connect.
fn place(start: &Start) -> Result<(u32, u32, &Path)> {
    let started = detection::launcher().ok_or_else(|| {
        Error::usage("no launcher has started this process as a rank: leave out --launcher none")
    })?;
    let launcher = started.launcher;
    let file = start.rendezvous.as_deref().ok_or_else(|| {
        Error::usage(format!(
            "ranks of {launcher} connect by sockets through a file: give --rendezvous FILE on a shared file system, or run ombx \
             without a launcher"
        ))
    })?;
    let number = |n: u64| u32::try_from(n).ok();
    match started.ranks.and_then(number).zip(number(started.rank)) {
        Some((ranks, rank)) if rank < ranks => Ok((rank, ranks, file)),
        _ => Err(Error::usage(format!(
            "{launcher} does not publish its number of ranks: use another launcher, or run ombx without one"
        ))),
    }
}

/// On rank 0: one message for each rank that has left, and the number of ranks.
type Others = (Receiver<()>, u32);

/// Joins the session of the other ranks. Rank 0 starts it.
fn join(start: &Start) -> Result<(SocketTeam, Option<Others>)> {
    let (rank, ranks, file) = place(start)?;
    let within = |e: Error| e.within(format!("rank {rank} on {}", hostname()));
    if rank > 0 {
        let (token, addresses) = find(file).map_err(within)?;
        return Ok((SocketTeam::join(&addresses, token, rank, end_process).map_err(within)?, None));
    }
    let token = Token::random()?;
    let listener = listen(token, Reach::Everywhere)?;
    let port = listener.port();
    let (send, left) = mpsc::channel();
    let warned = AtomicBool::new(false);
    let on_event = move |event: SessionEvent| match event {
        SessionEvent::Done(_) => drop(send.send(())),
        SessionEvent::Rejected(_) if !warned.swap(true, Ordering::Relaxed) => {
            stderr_line!("{CONNECTION_REJECTED}");
        }
        _ => {}
    };
    // The coordinator lives as long as its threads.
    let _ = Coordinator::start(listener, ranks, Box::new(on_event))?;
    write(file, token, port)?;
    let team = SocketTeam::join(&[(loopback(), port).into()], token, 0, end_process).map_err(within);
    let _ = fs::remove_file(file);
    Ok((team?, Some((left, ranks))))
}

/// Ends this process after the session has ended.
fn end_process(code: u8, why: &str) {
    // Rank 0 has the coordinator and reports everything but the coordinator's own end.
    if !why.is_empty() && (detection::is_first_process() || why.starts_with("the coordinator")) {
        stderr_line!("ombx: {why}");
    }
    if code != 0 && detection::is_first_process() {
        failure::print_rest();
    }
    process::exit(code.into())
}

/// Content of the file: how ranks reach rank 0.
#[derive(Serialize, Deserialize)]
struct Meeting {
    token: Token,
    port: u16,
    host: String,
    /// See [`host::identity`].
    identity: String,
    addresses: Vec<IpAddr>,
}

fn write(file: &Path, token: Token, port: u16) -> Result<()> {
    let addresses = own_addresses();
    let meeting = Meeting { token, port, host: hostname(), identity: socket::identity(), addresses };
    let text = serde_json::to_string(&meeting).map_err(|e| Error::fabric(e.to_string()))?;
    private_file::create(file, &format!("{text}\n"))
}

/// Waits for the file and returns the token and the addresses of rank 0.
fn find(file: &Path) -> Result<(Token, Vec<SocketAddr>)> {
    let since = Since::now();
    loop {
        if let Some(found) =
            private_file::read("--rendezvous", file)?.and_then(|text| parse_rendezvous(&text))
        {
            return Ok(found);
        }
        if since.elapsed() > LIMIT {
            let (file, seconds) = (file.display(), LIMIT.as_secs());
            return Err(Error::fabric(format!(
                "rank 0 did not write {file} within {seconds} s: check that all ranks share its file system"
            )));
        }
        thread::sleep(INTERVAL);
    }
}

/// Returns the token and the addresses of rank 0, or `None` if the text is incomplete.
pub fn parse_rendezvous(text: &str) -> Option<(Token, Vec<SocketAddr>)> {
    let Meeting { token, port, host, identity, addresses } =
        serde_json::from_str(text.strip_suffix('\n')?).ok()?;
    if identity == socket::identity() {
        return Some((token, vec![(loopback(), port).into()]));
    }
    let named = (host, port).to_socket_addrs();
    let named = named.into_iter().flatten().filter(|address| !address.ip().is_loopback());
    let listed = addresses.into_iter().flat_map(|ip| ScopedIp::from(ip).on_possible_links());
    let listed = listed.map(|ip| ip.at(port));
    Some((token, named.chain(listed).collect()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use crate::rank::sockets::*;

    #[test]
    fn a_complete_file_is_read_and_never_overwritten() {
        let directory = std::env::temp_dir().join(format!("ombx-rendezvous-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let file = directory.join("meet");
        let token = Token::random().unwrap();
        write(&file, token, 4711).unwrap();
        let (found, addresses) = find(&file).unwrap();
        assert!(token.is(found.bytes()));
        assert_eq!(addresses, [SocketAddr::from(([127, 0, 0, 1], 4711))]);
        assert_eq!(
            fs::metadata(&file).unwrap().permissions().mode() & 0o777,
            0o600,
            "others may read the token"
        );
        assert!(write(&file, token, 1).unwrap_err().to_string().contains("already exists"));
        let text = fs::read_to_string(&file).unwrap();
        assert!((0..text.len()).all(|cut| parse_rendezvous(&text[..cut]).is_none()));
        fs::remove_dir_all(directory).unwrap();
    }
}
