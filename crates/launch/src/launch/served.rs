//! A job whose rank 1 is run by a server on another host (`ombx sockets serve`). The launching process reserves the server for the
//! whole run. The coordinator of each launch asks it for a rank through a process of its own, as it does through ssh.

use std::{env, io::Read, process::Stdio};

use ombx_core::{
    benchmark::{Choice, Medium},
    measure::{runner::Part, session::check_combinations},
};
use ombx_estimate::text::plain;
use ombx_host::environment::hostname;
use ombx_record::{
    codec,
    error::{Error, Result},
    unit,
};
use ombx_sockets::{
    Token,
    control::{Started, process},
    server::{self, RankEnd, RankRequest, Reservation},
};
use serde::{Deserialize, Serialize};

use crate::{
    job::{Work, rank_job::RankJob},
    launch::{
        invitation::{Invitation, Placement, from_stdin},
        start::{HOSTS, Server, Start},
    },
    private_file,
};

/// Name of the subcommand of the process that lets the server run a rank.
pub(crate) const SUBCOMMAND: &str = "served-rank";
/// Variable with the token, for those who give no file.
pub const TOKEN: &str = "OMBX_TOKEN";
/// Maximum length in bytes of a token on standard input, with blanks.
const LONGEST: u64 = 1 << 12;

/// Returns the token of an option: from its file, from standard input if that is `-`, or from the variable.
///
/// # Errors
/// Usage error: there is none, or it is malformed.
pub fn token(option: Option<&std::path::Path>) -> Result<Option<Token>> {
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
struct ServedRank {
    server: Server,
    token: Token,
    client: u64,
    invitation: Invitation,
}

/// Exit code of a rank whose server is gone, as ssh has it.
const LOST: u8 = 255;

/// Lets the server run the rank of standard input, and returns the exit code of the rank.
pub(crate) fn run_rank() -> Result<u8> {
    let ServedRank { server, token, client, invitation } = from_stdin().ok_or_else(|| {
        Error::usage("the standard input is no rank of a server: use ombx run --connect, which asks for one")
    })?;
    let Invitation { token: session, port, on_host, job, .. } = invitation;
    let request = RankRequest { session, port, on_host, job: codec::encode(&job) };
    let print = |line: &str| stderr_line!("{}", plain(line));
    match server::run_rank(&server.addresses()?, &token, client, &request, print)? {
        RankEnd::Code(code) => Ok(code),
        RankEnd::Lost => Ok(LOST),
    }
}

/// Reads the job of a client on the server's host. It measures registered benchmarks over sockets, with values that are those of their
/// parameters, and names no file, no host and no program.
///
/// # Errors
/// Usage error: it names what is refused.
pub fn read_job(bytes: &[u8]) -> Result<RankJob> {
    let job: RankJob =
        codec::decode(bytes).ok_or_else(|| Error::usage("a server runs only ranks of ombx run"))?;
    let Work::Benchmarks(parts) = &job.work else {
        return Err(Error::usage("a server runs only ranks of ombx run"));
    };
    if job.kind.medium != Medium::Sockets || parts.is_empty() {
        return Err(Error::usage("a server runs only ranks over sockets"));
    }
    for Part { choices, plan } in parts {
        let by_sockets = |choice: &&Choice| choice.bench.ranks.medium == Medium::Sockets;
        if let Some(other) = choices.iter().find(|choice| !by_sockets(choice)) {
            let name = other.bench.name;
            return Err(Error::usage(format!("a server runs no {name:?}, only benchmarks over sockets")));
        }
        if !plan.under.is_empty() {
            return Err(Error::usage("a server runs no loads"));
        }
        for name in plan.chosen.names() {
            let parameter = choices.iter().find_map(|choice| choice.bench.parameter(name));
            let parameter = parameter.filter(|parameter| parameter.name != HOSTS);
            let parameter =
                parameter.ok_or_else(|| Error::usage(format!("a server takes no option --{name}")))?;
            plan.chosen.texts(parameter).iter().try_for_each(|text| parameter.read(text).map(drop))?;
        }
        for size in plan.sizes.iter().flatten() {
            unit::parse_sizes(&size.0.to_string())?;
        }
        choices.iter().try_for_each(|choice| check_combinations(*choice, plan))?;
    }
    Ok(job)
}

#[cfg(test)]
mod rank_tests {
    use std::time::Duration;

    use ombx_core::{
        benchmark::{Registry, Threading},
        measure::plan::{Launch, LaunchSettings, Plan},
    };
    use ombx_record::unit::Bytes;

    use crate::{job::RankKind, launch::served::*};

    /// Returns a job of these benchmarks over sockets.
    fn job(benches: &[&str], chosen: &[(&'static str, &str)]) -> RankJob {
        let registry = Registry::load().unwrap();
        let choices = benches.iter().map(|name| registry.get(name).unwrap()).collect();
        let mut plan = Plan { sizes: Some(vec![Bytes(8), Bytes(64 << 10)]), ..Plan::default() };
        chosen.iter().for_each(|(name, value)| plan.chosen.set(name, [*value]));
        let launch = Some(Launch { number: 2, of: 5, order: 42 });
        RankJob {
            kind: RankKind { medium: Medium::Sockets, threading: Threading::Single },
            argv: Vec::new(),
            work: Work::Benchmarks(vec![Part { choices, plan }]),
            settings: LaunchSettings { launch, ..LaunchSettings::default() },
            time: Duration::from_secs(1),
            timeout: None,
            binds: true,
        }
    }

    #[test]
    fn a_server_reads_the_job_that_was_sent() {
        let sent = job(&["sockets.bw", "sockets.latency"], &[("transport", "udp"), ("socket-buffer", "4M")]);
        let read = read_job(&codec::encode(&sent)).unwrap();
        assert_eq!(format!("{read:?}"), format!("{sent:?}"));
    }

    #[test]
    fn a_server_refuses_what_is_no_rank_over_sockets() {
        let usual = || job(&["sockets.bw"], &[]);
        let of_mpi = RankKind { medium: Medium::Mpi, threading: Threading::Single };
        let changed = |change: fn(&mut Plan)| {
            let mut job = usual();
            if let Work::Benchmarks(parts) = &mut job.work {
                change(&mut parts[0].plan);
            }
            job
        };
        for (job, why) in [
            (RankJob { kind: of_mpi, ..usual() }, "only ranks over sockets"),
            (RankJob { work: Work::Benchmarks(Vec::new()), ..usual() }, "only ranks over sockets"),
            (job(&["sockets.pipeline"], &[]), "runs no \"sockets.pipeline\""),
            (job(&["sockets.bw"], &[("sink", "file:/tmp/x")]), "no option --sink"),
            (job(&["sockets.bw"], &[("hosts", "n01")]), "no option --hosts"),
            (job(&["sockets.bw"], &[("rate", "5")]), "no option --rate"),
            (job(&["sockets.bw"], &[("transport", "x")]), ""),
            (changed(|plan| plan.under = vec!["sockets.bw".parse().unwrap()]), "no loads"),
            (changed(|plan| plan.sizes = Some(vec![Bytes(u64::MAX)])), ""),
        ] {
            let error = read_job(&codec::encode(&job)).expect_err(why).to_string();
            assert!(error.contains(why) && !error.contains('\n'), "{why}: {error}");
        }
        assert!(read_job(b"run sockets.bw").is_err());
    }
}
