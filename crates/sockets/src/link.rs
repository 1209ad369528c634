//! How two ranks come to a connection that carries payload, and what both kinds of links have in common.

use std::os::fd::OwnedFd;

use ombx_core::{
    benchmark::{context::Context, work::Role},
    error::{Error, Result},
};

use crate::{
    deadline::Deadline,
    door::{self, Door},
    options::Options,
    stream::{Address, Stream},
    team::{Ip, SocketTeam},
    zero_copy,
};

pub(crate) mod buffer;
pub(crate) mod datagrams;
pub(crate) mod flow;
#[cfg(test)]
mod tests;

/// Two ranks find each other within this time.
pub(crate) const MEET: std::time::Duration = std::time::Duration::from_secs(10);
/// A message arrives within this time, or the connection has failed.
pub(crate) const SILENCE: std::time::Duration = std::time::Duration::from_secs(60);

/// How connections that carry payload are made.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wishes {
    pub(crate) ip: Ip,
    pub(crate) options: Options,
}

/// A kind of stream socket.
pub(crate) trait Kind: 'static {
    /// Whether the kernel is to take what is sent from where it is.
    const ZERO_COPY: bool = false;

    /// Opens a door on the rank that answers.
    fn open(cx: &Context<'_>, team: &SocketTeam, wishes: &Wishes) -> Result<Door>;
    /// Where the rank that is timed finds a door of its peer's.
    fn find(cx: &Context<'_>, team: &SocketTeam, wishes: &Wishes, told: &str) -> Result<Address>;
}

/// TCP.
pub(crate) enum Tcp {}

impl Kind for Tcp {
    fn open(cx: &Context<'_>, team: &SocketTeam, wishes: &Wishes) -> Result<Door> {
        let at = match (team.together(cx.rank(), cx.peer), wishes.ip) {
            (true, Ip::V4) => [127, 0, 0, 1].into(),
            (true, Ip::V6) => std::net::Ipv6Addr::LOCALHOST.into(),
            (false, Ip::V4) => [0u8; 4].into(),
            (false, Ip::V6) => [0u16; 8].into(),
        };
        Door::tcp(at, &wishes.options, *team.token())
    }

    fn find(cx: &Context<'_>, team: &SocketTeam, wishes: &Wishes, told: &str) -> Result<Address> {
        let port: u16 = told.parse().map_err(|_| Error::fabric("a rank told no port"))?;
        Ok(Address::Tcp((team.address_of(cx.peer, wishes.ip)?, port).into()))
    }
}

/// TCP whose sends are not copied, where the kernel can.
pub(crate) enum ZeroCopyTcp {}

impl Kind for ZeroCopyTcp {
    const ZERO_COPY: bool = true;

    fn open(cx: &Context<'_>, team: &SocketTeam, wishes: &Wishes) -> Result<Door> {
        Tcp::open(cx, team, wishes)
    }

    fn find(cx: &Context<'_>, team: &SocketTeam, wishes: &Wishes, told: &str) -> Result<Address> {
        Tcp::find(cx, team, wishes, told)
    }
}

/// Unix-domain stream sockets.
pub(crate) enum Unix {}

impl Kind for Unix {
    fn open(cx: &Context<'_>, team: &SocketTeam, wishes: &Wishes) -> Result<Door> {
        if team.together(cx.rank(), cx.peer) {
            return Door::unix(&wishes.options, *team.token());
        }
        let [here, there] = [cx.rank(), cx.peer].map(|rank| team.host(rank));
        Err(Error::unsupported(format!("Unix-domain sockets do not reach from {here} to {there}")))
    }

    fn find(_: &Context<'_>, _: &SocketTeam, _: &Wishes, told: &str) -> Result<Address> {
        Ok(Address::Unix(told.into()))
    }
}

/// Connects this rank with its peer: the one that answers opens a door, the one that is timed enters. Collective.
pub(crate) fn connect<K: Kind>(cx: &Context<'_>) -> Result<OwnedFd> {
    let team: &SocketTeam = cx.fabric()?;
    let wishes = team.wishes();
    let door = match cx.role {
        Role::Passive => K::open(cx, team, &wishes).map(Some),
        Role::Active => Ok(None),
    };
    let stream = match cx.agree(door)? {
        Some(mut door) => {
            let told = match door.address()? {
                Address::Tcp(address) => address.port().to_string(),
                Address::Unix(name) => name,
            };
            team.send(cx.peer, told.as_bytes())?;
            let unmet = |e| Error::fabric(format!("rank {} did not connect: {e}", cx.peer));
            door.admit(Deadline::after(MEET)).map(|guest| guest.stream).map_err(unmet)
        }
        None => {
            let told = String::from_utf8_lossy(&team.receive(cx.peer)?).into_owned();
            let enter =
                |to: Address| door::enter(&to, team.token(), b"", &wishes.options, Deadline::after(MEET));
            K::find(cx, team, &wishes, &told).and_then(enter)
        }
    };
    let stream = stream.and_then(|stream| prepare(stream, &wishes)).and_then(|stream| {
        if K::ZERO_COPY {
            let refused =
                |e| Error::unsupported(format!("this kernel sends nothing without copying it: {e}"));
            zero_copy::allow(&stream).map_err(refused)?;
        }
        Ok(stream)
    });
    Ok(cx.agree(stream)?.into())
}

fn prepare(stream: Stream, wishes: &Wishes) -> Result<Stream> {
    if let Stream::Tcp(_) = stream {
        wishes.options.on_tcp(&stream)?;
    } else {
        wishes.options.before_connecting(&stream)?;
    }
    let limited = stream.limit(Some(SILENCE));
    limited.map_err(|e| Error::fabric(format!("a connection has no deadline: {e}")))?;
    Ok(stream)
}

/// Why a transfer failed, in a sentence.
#[cold]
pub(crate) fn broken(errno: rustix::io::Errno) -> Error {
    use rustix::io::Errno;
    match errno {
        Errno::AGAIN => Error::fabric(format!("nothing moved on a connection for {} s", SILENCE.as_secs())),
        Errno::CONNRESET | Errno::PIPE | Errno::CONNREFUSED => closed(),
        other => Error::fabric(format!("a connection failed: {other}")),
    }
}

/// The other end has gone.
#[cold]
pub(crate) fn closed() -> Error {
    Error::fabric("the other rank closed the connection")
}
