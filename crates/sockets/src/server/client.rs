//! The client of a server: reserves it for a run and asks it for ranks.

use std::{net::SocketAddr, time::Duration};

use ombx_core::{
    codec,
    error::{Error, Result},
};

use super::{Hello, Message, RankRequest};
use crate::{
    control::{Channel, FrameError, MAX_BODY, MessageReader, MessageWriter, Token, listener},
    session::protocol::set_keep_alive,
    socket::{Address, Deadline, SocketOptions},
};

/// One address of the server answers within this time, else the next is tried.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(8);

/// A server that is reserved for this process until the value is dropped.
pub struct Reservation {
    /// Number of this process as a client of the server.
    pub client: u64,
    /// Host of the server.
    pub host: String,
    _connection: (MessageReader, MessageWriter),
}

impl Reservation {
    /// Reserves a server.
    ///
    /// # Errors
    /// Nothing listens, the token is wrong, the server serves another client or is another build of ombx.
    pub fn of(addresses: &[SocketAddr], token: &Token) -> Result<Reservation> {
        let (connection, client, host) = connect(addresses, token, &Hello::of_this_process(0))?;
        Ok(Reservation { client, host, _connection: connection })
    }
}

/// How a rank of a server ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RankEnd {
    /// It exited with this code.
    Code(u8),
    /// The connection to the server broke.
    Lost,
}

/// Lets a server run a rank, waits for its end, and passes on the lines that it prints on standard error.
///
/// # Errors
/// The server cannot be reached or refuses the request.
pub fn run_rank(
    addresses: &[SocketAddr],
    token: &Token,
    client: u64,
    request: &RankRequest,
    on_line: impl Fn(&str),
) -> Result<RankEnd> {
    let ((mut reader, writer), ..) = connect(addresses, token, &Hello::of_this_process(client))?;
    if writer.write(&Message::Run(request.clone())).is_err() {
        return Ok(RankEnd::Lost);
    }
    loop {
        match reader.read() {
            Ok(Message::Line(line)) => on_line(&line),
            Ok(Message::Exited(code)) => return Ok(RankEnd::Code(code)),
            Ok(Message::Refused(end)) => return Err(Error::fabric(end.why)),
            Ok(_) | Err(_) => return Ok(RankEnd::Lost),
        }
    }
}

type Connected = ((MessageReader, MessageWriter), u64, String);

/// Connects to the first address that answers, and waits until the server has admitted this process.
fn connect(addresses: &[SocketAddr], token: &Token, hello: &Hello) -> Result<Connected> {
    let mut failure = Error::fabric("the server has no address");
    for address in addresses {
        let (to, deadline) = (Address::Tcp(*address), Deadline::after(CONNECT_TIMEOUT));
        match listener::connect(&to, token, &codec::encode(hello), &SocketOptions::default(), deadline) {
            Ok(stream) => {
                let io = |e: std::io::Error| Error::fabric(format!("{address}: {e}"));
                let socket = stream.try_clone().map_err(io)?;
                let Channel { mut reader, writer } = Channel::over(stream, MAX_BODY).map_err(io)?;
                return match reader.read().map_err(|e| refused(*address, &e))? {
                    Message::Admitted { client, host } => {
                        set_keep_alive(&socket).map_err(io)?;
                        Ok(((reader, writer), client, host))
                    }
                    Message::Refused(end) => Err(Error::fabric(end.why)),
                    _ => Err(refused(*address, &FrameError::Invalid)),
                };
            }
            Err(error) => failure = error,
        }
    }
    Err(Error::fabric(format!(
        "{failure}. Start `ombx sockets serve` there, and check the port and the firewall"
    )))
}

/// Returns why a server has not admitted this process.
fn refused(address: SocketAddr, error: &FrameError) -> Error {
    Error::fabric(match error {
        FrameError::Closed | FrameError::Torn => format!(
            "{address} rejected the token: give the one of the server, which it has printed or read from its --token-file"
        ),
        FrameError::TimedOut => format!(
            "{address} accepted the connection and did not answer within {} s: is that the port of `ombx sockets serve`?",
            CONNECT_TIMEOUT.as_secs()
        ),
        _ => format!("{address} is no server of ombx: give the port of `ombx sockets serve`"),
    })
}
