//! How ranks that somebody else's launcher has started find each other: rank 0 writes a file that all of them can read.

use std::{
    fs::{self, OpenOptions},
    io::{ErrorKind, Write},
    net::{IpAddr, SocketAddr, ToSocketAddrs},
    os::unix::fs::OpenOptionsExt,
    path::Path,
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Receiver},
    },
    thread,
    time::Duration,
};

use ombx_core::{
    error::{Error, Result},
    system::{clock::Since, environment},
};
use ombx_sockets::{
    Coordinator, SocketTeam, Token,
    host::{self, address_towards},
    session::{Reach, SessionEvent, listen},
};
use serde_json::{Value, json};

use crate::{args::StartArgs, launch::detect};

/// All ranks arrive within this time.
const ARRIVAL: Duration = Duration::from_secs(120);
const NAP: Duration = Duration::from_millis(50);
/// After its own end the first rank holds the session together for so long.
const LINGER: Duration = Duration::from_secs(10);
/// Documentation's own network: no packet is sent, the kernel only tells which address it would send from.
const ELSEWHERE: &str = "192.0.2.1";

/// A session that ranks of a launcher have made among themselves.
pub(super) struct Rendezvous {
    pub(super) team: SocketTeam,
    pub(super) held: Held,
}

/// On rank 0, the coordinator.
pub(super) struct Held(Option<(Receiver<()>, u64)>);

impl Held {
    /// Holds the session together until every rank has left it.
    pub(super) fn wait(self) {
        if let Some((done, ranks)) = self.0 {
            (0..ranks).all(|_| done.recv_timeout(LINGER).is_ok());
        }
    }
}

/// Which rank of how many, and where they meet; a mistake is found before anything starts.
pub(super) fn place(start: &StartArgs) -> Result<(u32, u32, &Path)> {
    let started = detect::launcher().ok_or_else(|| {
        Error::usage("no launcher has started this process as a rank; leave --launcher none out")
    })?;
    let by = started.by;
    let file = start.rendezvous.as_deref().ok_or_else(|| {
        Error::usage(format!(
            "ranks started by {by} meet over sockets by a file: give --rendezvous FILE on a file system that all share, \
             or run ombx without a launcher"
        ))
    })?;
    let number = |n: u64| u32::try_from(n).ok();
    match started.of.and_then(number).zip(number(started.rank)) {
        Some((of, rank)) if rank < of => Ok((rank, of, file)),
        _ => Err(Error::usage(format!("{by} does not tell how many ranks it has started"))),
    }
}

/// Meets the other ranks.
pub(super) fn meet(start: &StartArgs) -> Result<Rendezvous> {
    let (rank, of, file) = place(start)?;
    let within = |e: Error| e.within(format!("rank {rank} on {}", environment::hostname()));
    if rank > 0 {
        let (token, addresses) = find(file).map_err(within)?;
        let ends = |code: u8, why: &str| {
            // Rank 0 has the coordinator and tells everything but its own end.
            if why.starts_with("the coordinator") {
                tell!("ombx: {why}");
            }
            std::process::exit(code.into())
        };
        let team = SocketTeam::join(&addresses, token, rank, ends).map_err(within)?;
        return Ok(Rendezvous { team, held: Held(None) });
    }
    let token = Token::random()?;
    let listener = listen(token, Reach::Everywhere)?;
    let port = listener.port();
    let (tell, done) = mpsc::channel();
    let told = AtomicBool::new(false);
    let hears = move |event: SessionEvent| match event {
        SessionEvent::Done(_) => drop(tell.send(())),
        SessionEvent::Rejected(_) if !told.swap(true, Ordering::Relaxed) => {
            tell!("{}", super::coordinator::STRANGER)
        }
        _ => {}
    };
    // It lives as long as its threads do.
    let _ = Coordinator::start(listener, of, Box::new(hears))?;
    write(file, token, port)?;
    let ends = |code: u8, why: &str| {
        if !why.is_empty() {
            tell!("ombx: {why}");
        }
        std::process::exit(code.into())
    };
    let team = SocketTeam::join(&[([127, 0, 0, 1], port).into()], token, 0, ends).map_err(within);
    let _ = fs::remove_file(file);
    Ok(Rendezvous { team: team?, held: Held(Some((done, u64::from(of)))) })
}

fn write(file: &Path, token: Token, port: u16) -> Result<()> {
    let addresses: Vec<String> = address_towards(ELSEWHERE).iter().map(IpAddr::to_string).collect();
    let text = json!({
        "token": token.to_string(), "port": port, "host": environment::hostname(), "identity": host::identity(),
        "addresses": addresses,
    });
    let failed = |e: std::io::Error| match e.kind() {
        ErrorKind::AlreadyExists => {
            Error::usage(format!("{} exists already: remove it, or name another", file.display()))
        }
        _ => Error::usage(format!("{} cannot be written: {e}", file.display())),
    };
    // Nobody else may read the token.
    let mut to = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file).map_err(failed)?;
    to.write_all(format!("{text}\n").as_bytes()).map_err(failed)
}

/// Waits for the file.
fn find(file: &Path) -> Result<(Token, Vec<SocketAddr>)> {
    let since = Since::now();
    loop {
        if let Some(found) = fs::read_to_string(file).ok().and_then(|text| parse(&text)) {
            return Ok(found);
        }
        if since.elapsed() > ARRIVAL {
            let (file, seconds) = (file.display(), ARRIVAL.as_secs());
            return Err(Error::fabric(format!("rank 0 has not written {file} within {seconds} s")));
        }
        thread::sleep(NAP);
    }
}

/// What is in it, once it is whole.
pub(super) fn parse(text: &str) -> Option<(Token, Vec<SocketAddr>)> {
    let value: Value = serde_json::from_str(text.strip_suffix('\n')?).ok()?;
    let token = value["token"].as_str()?.parse().ok()?;
    let port = u16::try_from(value["port"].as_u64()?).ok()?;
    let mut addresses: Vec<SocketAddr> = Vec::new();
    if value["identity"].as_str()? == host::identity() {
        addresses.push(([127, 0, 0, 1], port).into());
    } else {
        let named = (value["host"].as_str()?, port).to_socket_addrs();
        addresses.extend(named.into_iter().flatten().filter(|a| !a.ip().is_loopback()));
        let told = value["addresses"].as_array()?.iter().filter_map(|a| a.as_str()?.parse::<IpAddr>().ok());
        addresses.extend(told.map(|ip| SocketAddr::from((ip, port))));
    }
    Some((token, addresses))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_file_is_found_once_it_is_whole_and_never_overwritten() {
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
        assert!(write(&file, token, 1).unwrap_err().to_string().contains("exists already"));
        let text = fs::read_to_string(&file).unwrap();
        assert!((0..text.len()).all(|cut| parse(&text[..cut]).is_none()));
        fs::remove_dir_all(directory).unwrap();
    }
}
