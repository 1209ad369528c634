//! A job whose rank 1 is run by a server on another host (`ombx sockets serve`). The launching process reserves the server for the
//! whole run. The coordinator of each launch asks it for a rank through a process of its own, as it does through ssh.

use std::{
    env,
    io::Read,
    process::{Command, Stdio},
};

use ombx_core::{
    codec,
    error::{Error, Result},
    system::{environment::hostname, file::file_in_memory},
};
use ombx_sockets::{
    Token,
    control::{Started, process},
    server::Reservation,
};
use serde::{Deserialize, Serialize};

use crate::{
    arguments::start::{ConnectArgs, Server, StartArgs},
    launch::coordinator::{Invitation, Placement},
    private_file,
};

/// Name of the subcommand of the process that lets the server run a rank.
pub(crate) const SUBCOMMAND: &str = "served-rank";
/// Variable with the token, for those who give no file.
pub(crate) const TOKEN: &str = "OMBX_TOKEN";
/// Maximum length in bytes of a token on standard input, with blanks.
const LONGEST: u64 = 1 << 12;

/// Returns the token of an option: from its file, from standard input if that is `-`, or from the variable.
///
/// # Errors
/// Usage error: there is none, or it is malformed.
pub(crate) fn token(option: Option<&std::path::Path>) -> Result<Option<Token>> {
    let (from, text) = match option {
        Some(file) if file.as_os_str() == "-" => {
            let mut line = String::new();
            // A terminal is read to the end of the line only.
            let _ = std::io::BufRead::read_line(
                &mut std::io::BufReader::new(std::io::stdin().take(LONGEST)),
                &mut line,
            );
            ("standard input".to_owned(), line)
        }
        Some(file) => match private_file::read("--token-file", file)? {
            Some(text) => (file.display().to_string(), text),
            None => {
                return Err(Error::usage(format!("--token-file {}: cannot read the file", file.display())));
            }
        },
        None => match env::var(TOKEN) {
            Ok(text) => (TOKEN.to_owned(), text),
            Err(_) => return Ok(None),
        },
    };
    let bad = |e: Error| Error::usage(format!("{from}: {e}"));
    text.trim().parse().map(Some).map_err(bad)
}

/// A server that is reserved for this run.
pub(super) struct Reserved {
    token: Token,
    reservation: Reservation,
}

/// Reserves the server of a job, if it has one.
///
/// # Errors
/// Usage error: no token. Else the server cannot be reached, or refuses.
pub(super) fn reserve(start: &StartArgs) -> Result<Option<Reserved>> {
    let ConnectArgs { connect: Some(server), token_file } = &start.connect else { return Ok(None) };
    let token = token(token_file.as_deref())?.ok_or_else(|| {
        Error::usage(format!(
            "--connect needs the token of the server: give --token-file FILE, --token-file - for standard input, or {TOKEN}"
        ))
    })?;
    let reservation = Reservation::connect(&server.addresses()?, &token)?;
    Ok(Some(Reserved { token, reservation }))
}

impl Reserved {
    /// Passes the reservation on to the coordinator of a launch, on its standard input.
    pub(super) fn pass_to(&self, coordinator: &mut Command) -> Result<()> {
        let pass = Pass {
            token: self.token,
            client: self.reservation.client,
            here: self.reservation.host == hostname(),
        };
        let file = file_in_memory(&codec::encode(&pass));
        let file = file.map_err(|e| Error::fabric(format!("cannot start the coordinator: {e}")))?;
        coordinator.stdin(Stdio::from(file));
        Ok(())
    }
}

/// What the launching process passes on to the coordinator of a launch.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Pass {
    token: Token,
    /// Number of this run as a client of the server.
    client: u64,
    /// Whether the server is on this host.
    here: bool,
}

/// The server as the coordinator of a launch knows it.
pub(super) struct Serving {
    server: Server,
    pass: Pass,
}

impl Serving {
    /// Reads what [`Reserved::pass_to`] has written.
    pub(super) fn from_stdin(server: &Server) -> Result<Serving> {
        let mut bytes = Vec::new();
        let _ = std::io::stdin().take(LONGEST).read_to_end(&mut bytes);
        let pass = codec::decode(&bytes)
            .ok_or_else(|| Error::fabric("the coordinator got no reservation of a server"))?;
        Ok(Serving { server: server.clone(), pass })
    }

    /// Returns the places of both ranks. Two ranks of one host have cores of their own.
    pub(super) fn placements(&self) -> Vec<Placement> {
        let count = if self.pass.here { 2 } else { 1 };
        let rank = |host, number| Placement { host, on_host: (number, count) };
        vec![rank(None, 0), rank(Some(self.server.host.clone()), count - 1)]
    }

    /// Lets the server run a rank.
    pub(super) fn start(&self, invitation: &Invitation) -> Result<Started> {
        let mut command = process::command(None, SUBCOMMAND, &[])?;
        command.stdout(Stdio::null());
        let Pass { token, client, .. } = self.pass;
        let rank = ServedRank { server: self.server.clone(), token, client, invitation: invitation.clone() };
        Started::with_input(command, format!("rank {}", invitation.rank), &codec::encode(&rank))
    }
}

/// What the process of [`SUBCOMMAND`] reads from its standard input.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ServedRank {
    pub(crate) server: Server,
    pub(crate) token: Token,
    pub(crate) client: u64,
    pub(crate) invitation: Invitation,
}
