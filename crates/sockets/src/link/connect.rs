//! Sockets between two ranks. Of stream connections the passive rank listens, and the active rank connects.

use std::{net::UdpSocket, os::fd::OwnedFd, time::Duration};

use ombx_core::{
    benchmark::{Context, Role, payload::Slots},
    error::{Error, Result},
};

use super::{tcp_info, zero_copy};
use crate::link::stream::TRANSFER_TIMEOUT;
use crate::{
    control::{Listener, listener},
    session::SocketTeam,
    socket::{Address, Deadline, Ip, LinkOptions, MPTCP, Stream},
};

/// Two ranks connect within this time.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A kind of stream socket.
pub(crate) trait SocketKind: 'static {
    /// Whether the socket is a Unix-domain socket. Otherwise it is a TCP socket.
    const UNIX: bool = false;
    /// Whether sends avoid a copy (`MSG_ZEROCOPY`).
    const ZERO_COPY: bool = false;
}

/// Opens the listener of the passive rank.
fn listen<K: SocketKind>(cx: &Context<'_>, team: &SocketTeam, options: &LinkOptions) -> Result<Listener> {
    if !K::UNIX {
        return Listener::tcp(team.listen_address(cx.peer, options.ip), &options.socket, *team.token());
    }
    if !team.same_host(cx.rank(), cx.peer) {
        let [here, there] = [cx.rank(), cx.peer].map(|rank| team.host(rank));
        return Err(Error::unsupported(format!("Unix-domain sockets do not connect {here} and {there}")));
    }
    Listener::unix(&options.socket, *team.token())
}

/// Returns the address of the passive rank's listener from its name or port.
fn address<K: SocketKind>(cx: &Context<'_>, team: &SocketTeam, ip: Ip, name: String) -> Result<Address> {
    if K::UNIX {
        return Ok(Address::Unix(name));
    }
    let port: u16 = name.parse().map_err(|_| Error::fabric("the other rank sent no port"))?;
    Ok(Address::Tcp((team.address_of(cx.peer, ip)?, port).into()))
}

/// Opens the datagram socket of this rank, for messages behind a header of this many bytes.
pub(super) fn datagram_socket(
    cx: &Context<'_>,
    options: &LinkOptions,
    slots: Slots,
    header: usize,
) -> Result<UdpSocket> {
    let team: &SocketTeam = cx.fabric()?;
    let most = if options.ip == Ip::V4 { 65507 } else { 65527 } - header as u64;
    if slots.bytes > most {
        return Err(Error::unsupported(format!("a datagram carries at most {most} bytes")));
    }
    let at = team.listen_address(cx.peer, options.ip);
    let socket = UdpSocket::bind((at, 0));
    let socket = socket.map_err(|e| Error::unsupported(format!("this host has no {at}: {e}")))?;
    options.socket.set_before_connecting(&socket)?;
    Ok(socket)
}

/// Connects this rank with its peer. Both ranks call it.
pub(crate) fn connect<K: SocketKind>(cx: &Context<'_>) -> Result<OwnedFd> {
    let team: &SocketTeam = cx.fabric()?;
    let options = team.link_options();
    let listener = match cx.role {
        Role::Passive => listen::<K>(cx, team, &options).map(Some),
        Role::Active => Ok(None),
    };
    let deadline = || Deadline::after(CONNECT_TIMEOUT);
    let stream = match cx.agree(listener)? {
        Some(mut listener) => {
            let name = match listener.address() {
                Address::Tcp(address) => address.port().to_string(),
                Address::Unix(name) => name.clone(),
            };
            team.send(cx.peer, name.as_bytes())?;
            let failed = |e| Error::fabric(format!("rank {} did not connect: {e}", cx.peer));
            listener.accept(deadline()).map(|peer| peer.stream).map_err(failed)
        }
        None => {
            let name = String::from_utf8_lossy(&team.receive(cx.peer)?).into_owned();
            address::<K>(cx, team, options.ip, name)
                .and_then(|to| listener::connect(&to, team.token(), b"", &options.socket, deadline()))
        }
    };
    let stream = stream.and_then(|stream| prepare::<K>(stream, &options));
    Ok(cx.agree(stream)?.into())
}

fn prepare<K: SocketKind>(stream: Stream, options: &LinkOptions) -> Result<Stream> {
    if K::UNIX {
        options.socket.set_before_connecting(&stream)?;
    } else {
        options.socket.set_tcp(&stream)?;
    }
    let limited = stream.set_timeout(Some(TRANSFER_TIMEOUT));
    limited.map_err(|e| Error::fabric(format!("cannot set the timeout of a connection: {e}")))?;
    if options.socket.protocol == MPTCP {
        tcp_info::check_mptcp(&stream)?;
    }
    if K::ZERO_COPY {
        let refused = |e| Error::unsupported(format!("this kernel cannot send without copying: {e}"));
        zero_copy::allow(&stream).map_err(refused)?;
    }
    Ok(stream)
}
