//! A job whose rank 1 is run by a server on another host (`ombx sockets serve`). The launching process reserves the server for the
//! whole run. The coordinator of each launch asks it for a rank through a process of its own, as it does through ssh.

use std::{env, io::Read, process::Stdio};

use ombx_core::{
    codec,
    error::{Error, Result},
    system::environment::hostname,
};
use ombx_sockets::{
    Token,
    control::{Started, process},
    server::Reservation,
};
use serde::{Deserialize, Serialize};

use crate::{
    launch::{
        coordinator::{Invitation, Placement},
        start::{Server, Start},
    },
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
    server: Server,
    token: Token,
    reservation: Reservation,
}

/// Reserves the server of a job, if it has one.
///
/// # Errors
/// Usage error: no token. Else the server cannot be reached, or refuses.
pub(super) fn reserve(start: &Start) -> Result<Option<Reserved>> {
    let Some(server) = &start.server else { return Ok(None) };
    let token = token(start.token_file.as_deref())?.ok_or_else(|| {
        Error::usage(format!(
            "--connect needs the token of the server: give --token-file FILE, --token-file - for standard input, or {TOKEN}"
        ))
    })?;
    let reservation = Reservation::connect(&server.addresses()?, &token)?;
    Ok(Some(Reserved { server: server.clone(), token, reservation }))
}

impl Reserved {
    /// Returns the server as the coordinator of a launch knows it.
    pub(super) fn serving(&self) -> Serving {
        Serving {
            server: self.server.clone(),
            token: self.token,
            client: self.reservation.client,
            here: self.reservation.host == hostname(),
        }
    }
}

/// The server as the coordinator of a launch knows it.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Serving {
    server: Server,
    token: Token,
    /// Number of this run as a client of the server.
    client: u64,
    /// Whether the server is on this host.
    here: bool,
}

impl Serving {
    /// Returns the places of both ranks. Two ranks of one host have cores of their own.
    pub(super) fn placements(&self) -> Vec<Placement> {
        let count = if self.here { 2 } else { 1 };
        let rank = |host, number| Placement { host, on_host: (number, count) };
        vec![rank(None, 0), rank(Some(self.server.host.clone()), count - 1)]
    }

    /// Lets the server run a rank, which needs no command line: rank 0 writes the results.
    pub(super) fn start(&self, mut invitation: Invitation) -> Result<Started> {
        invitation.job.argv.clear();
        let mut command = process::command(None, SUBCOMMAND, &[])?;
        command.stdout(Stdio::null());
        let name = format!("rank {}", invitation.rank);
        let Serving { server, token, client, .. } = self.clone();
        Started::with_input(command, name, &codec::encode(&ServedRank { server, token, client, invitation }))
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
