//! Stream connections between two ranks: the passive rank listens, the active rank connects.

use std::{os::fd::OwnedFd, time::Duration};

use ombx_core::{
    error::{Error, Result},
    kernel::{Cx, Role},
};

use super::{error::TRANSFER_TIMEOUT, zero_copy};
use crate::{
    control::listener::{self, Listener},
    session::SocketTeam,
    socket::{
        deadline::Deadline,
        options::LinkOptions,
        stream::{Address, Stream},
    },
};

/// Two ranks connect within this time.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A kind of stream socket.
pub(crate) trait SocketKind: 'static {
    /// Whether sends avoid a copy (`MSG_ZEROCOPY`).
    const ZERO_COPY: bool = false;

    /// Opens the listener of the passive rank.
    fn listen(cx: &Cx<'_>, team: &SocketTeam, options: &LinkOptions) -> Result<Listener>;
    /// Returns the address of the passive rank's listener from its port or name.
    fn address(cx: &Cx<'_>, team: &SocketTeam, options: &LinkOptions, name: &str) -> Result<Address>;
}

/// TCP.
pub(crate) enum Tcp {}

impl SocketKind for Tcp {
    fn listen(cx: &Cx<'_>, team: &SocketTeam, options: &LinkOptions) -> Result<Listener> {
        Listener::tcp(team.listen_address(cx.peer, options.ip), &options.socket, *team.token())
    }

    fn address(cx: &Cx<'_>, team: &SocketTeam, options: &LinkOptions, name: &str) -> Result<Address> {
        let port: u16 = name.parse().map_err(|_| Error::fabric("the other rank sent no port"))?;
        Ok(Address::Tcp((team.address_of(cx.peer, options.ip)?, port).into()))
    }
}

/// TCP with sends that avoid a copy.
pub(crate) enum ZeroCopyTcp {}

impl SocketKind for ZeroCopyTcp {
    const ZERO_COPY: bool = true;

    fn listen(cx: &Cx<'_>, team: &SocketTeam, options: &LinkOptions) -> Result<Listener> {
        Tcp::listen(cx, team, options)
    }

    fn address(cx: &Cx<'_>, team: &SocketTeam, options: &LinkOptions, name: &str) -> Result<Address> {
        Tcp::address(cx, team, options, name)
    }
}

/// Unix-domain stream sockets.
pub(crate) enum Unix {}

impl SocketKind for Unix {
    fn listen(cx: &Cx<'_>, team: &SocketTeam, options: &LinkOptions) -> Result<Listener> {
        if team.same_host(cx.rank(), cx.peer) {
            return Listener::unix(&options.socket, *team.token());
        }
        let [here, there] = [cx.rank(), cx.peer].map(|rank| team.host(rank));
        Err(Error::unsupported(format!("Unix-domain sockets do not connect {here} and {there}")))
    }

    fn address(_: &Cx<'_>, _: &SocketTeam, _: &LinkOptions, name: &str) -> Result<Address> {
        Ok(Address::Unix(name.into()))
    }
}

/// Connects this rank with its peer. Both ranks call it.
pub(crate) fn connect<K: SocketKind>(cx: &Cx<'_>) -> Result<OwnedFd> {
    let team: &SocketTeam = cx.fabric()?;
    let options = team.link_options();
    let listener = match cx.role {
        Role::Passive => K::listen(cx, team, &options).map(Some),
        Role::Active => Ok(None),
    };
    let deadline = || Deadline::after(CONNECT_TIMEOUT);
    let stream = match cx.agree(listener)? {
        Some(mut listener) => {
            let name = match listener.address()? {
                Address::Tcp(address) => address.port().to_string(),
                Address::Unix(name) => name,
            };
            team.send(cx.peer, name.as_bytes())?;
            let failed = |e| Error::fabric(format!("rank {} did not connect: {e}", cx.peer));
            listener.accept(deadline()).map(|peer| peer.stream).map_err(failed)
        }
        None => {
            let name = String::from_utf8_lossy(&team.receive(cx.peer)?).into_owned();
            K::address(cx, team, &options, &name)
                .and_then(|to| listener::connect(&to, team.token(), b"", &options.socket, deadline()))
        }
    };
    let stream = stream.and_then(|stream| prepare::<K>(stream, &options));
    Ok(cx.agree(stream)?.into())
}

fn prepare<K: SocketKind>(stream: Stream, options: &LinkOptions) -> Result<Stream> {
    if let Stream::Tcp(_) = stream {
        options.socket.set_tcp(&stream)?;
    } else {
        options.socket.set_buffers(&stream)?;
    }
    let limited = stream.set_timeout(Some(TRANSFER_TIMEOUT));
    limited.map_err(|e| Error::fabric(format!("cannot set the timeout of a connection: {e}")))?;
    if K::ZERO_COPY {
        let refused = |e| Error::unsupported(format!("this kernel cannot send without copying: {e}"));
        zero_copy::allow(&stream).map_err(refused)?;
    }
    Ok(stream)
}
