//! The connections of a node: a Unix-domain pair to itself between two phases, TCP to and from every other node.

use std::{
    net::{IpAddr, SocketAddr, ToSocketAddrs},
    os::{fd::OwnedFd, unix::net::UnixStream},
    thread,
    time::Duration,
};

use ombx_core::error::{Error, Result};

use super::{
    note::{Kind, Note, Outlet},
    shape::Shape,
};
use crate::{
    deadline::Deadline,
    door::{Door, Knock, enter},
    options::Options,
    stream::{Address, Stream},
    token::Token,
};

/// All connections of a run stand within this time.
const PATIENCE: Duration = Duration::from_secs(30);

/// The two ends that a node has of the connections between each two of its phases, by phase and other node.
pub(super) struct Connections {
    /// To phase `p` (the first has none) from each node.
    pub(super) incoming: Vec<Vec<OwnedFd>>,
    /// From phase `p` (the last has none) to each node.
    pub(super) outgoing: Vec<Vec<OwnedFd>>,
}

/// Listens where other nodes connect to.
pub(super) fn open(at: Option<IpAddr>, token: Token) -> Result<Door> {
    match at {
        Some(at) => Door::tcp(at, &Options::default(), token),
        None => Door::everywhere(token),
    }
}

/// Connects to every phase but the first of every other node and lets in as many; `up` hears of strangers.
pub(super) fn connect(
    shape: &Shape,
    node: u32,
    mut door: Door,
    token: Token,
    peers: &[String],
    up: &Outlet,
) -> Result<Connections> {
    let deadline = Deadline::after(PATIENCE);
    // Others connect while this node does.
    let (guests, up, to_come) = (*shape, up.clone(), (shape.nodes - 1) * (shape.phases - 1));
    let letting_in = thread::spawn(move || admit(&guests, &mut door, to_come, deadline, &up));
    let steps = shape.phases as usize - 1;
    let mut outgoing: Vec<Vec<OwnedFd>> = Vec::new();
    let mut own = Vec::new();
    for phase in 0..steps {
        let mut ends = Vec::new();
        for peer in 0..shape.nodes {
            if peer == node {
                let (from, to) = UnixStream::pair().map_err(|e| {
                    Error::fabric(format!("node {node}: no pair of Unix-domain sockets: {e}"))
                })?;
                own.push(to.into());
                ends.push(from.into());
            } else {
                let address = resolved(peers.get(peer as usize).map_or("", String::as_str))?;
                let say = [node.to_le_bytes(), (phase as u32 + 1).to_le_bytes()].concat();
                let stream = enter(&Address::Tcp(address), &token, &say, &Options::default(), deadline)
                    .map_err(|e| e.within(format!("node {node}, to node {peer}")))?;
                ends.push(bare(stream)?);
            }
        }
        outgoing.push(ends);
    }
    outgoing.push(Vec::new());
    let guests = letting_in.join().map_err(|_| Error::fabric(format!("node {node}: a thread has failed")))?;
    let mut guests = guests.map_err(|e| e.within(format!("node {node}")))?;
    let mut incoming: Vec<Vec<OwnedFd>> = vec![Vec::new()];
    for (phase, own) in (1..shape.phases).zip(own) {
        let mut own = Some(own);
        let from = |peer| if peer == node { own.take() } else { guests[at(shape, peer, phase)].take() };
        incoming.push((0..shape.nodes).filter_map(from).collect());
    }
    Ok(Connections { incoming, outgoing })
}

/// The first address of a host and a port.
fn resolved(peer: &str) -> Result<SocketAddr> {
    let found = peer.to_socket_addrs().map_err(|e| Error::fabric(format!("{peer}: {e}")))?.next();
    found.ok_or_else(|| Error::fabric(format!("{peer} has no address")))
}

fn at(shape: &Shape, from: u32, phase: u32) -> usize {
    (phase * shape.nodes + from) as usize
}

/// Lets in `to_come` connections that show the token and say which one of those expected they are.
fn admit(
    shape: &Shape,
    door: &mut Door,
    to_come: u32,
    deadline: Deadline,
    up: &Outlet,
) -> Result<Vec<Option<OwnedFd>>> {
    let mut guests: Vec<Option<OwnedFd>> = (0..shape.phases * shape.nodes).map(|_| None).collect();
    let mut missing = to_come;
    while missing > 0 {
        let left = deadline.check().map_err(|_| {
            Error::fabric(format!("{missing} of {to_come} connections of other nodes did not come in time"))
        })?;
        match door.serve(left).map_err(|e| Error::fabric(format!("its port failed: {e}")))? {
            None => {}
            Some(Knock::Strangers(count)) => drop(up.send(&Note::new(Kind::Strangers).numbers([count]))),
            Some(Knock::Guest(guest)) => {
                let word = |at: usize| {
                    let bytes = guest.said.get(at..at + 4).and_then(|b| b.try_into().ok());
                    bytes.map_or(u32::MAX, u32::from_le_bytes)
                };
                let (from, phase) = (word(0), word(4));
                let expected = from < shape.nodes && (1..shape.phases).contains(&phase);
                let place = expected.then(|| &mut guests[at(shape, from, phase)]);
                let free = place.filter(|place| place.is_none());
                let free = free.ok_or_else(|| {
                    Error::fabric(format!("a connection says that it is from node {from} to phase {phase}, which is not expected"))
                })?;
                *free = Some(bare(guest.stream)?);
                missing -= 1;
            }
        }
    }
    Ok(guests)
}

/// A connection for data alone: without the limits of a handshake, and sending at once what is left of a block.
fn bare(stream: Stream) -> Result<OwnedFd> {
    let failed = |e: std::io::Error| Error::fabric(format!("a connection between nodes: {e}"));
    stream.limit(None).map_err(failed)?;
    if let Stream::Tcp(tcp) = &stream {
        tcp.set_nodelay(true).map_err(failed)?;
    }
    Ok(stream.into())
}
