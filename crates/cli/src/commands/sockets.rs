//! `ombx sockets serve`: runs ranks on this host for `ombx run --connect` on another one.

use std::{net::IpAddr, path::PathBuf, process, time::Duration};

use clap::{Args, ValueEnum};
use ombx_core::{
    benchmark::{Choice, Medium},
    codec,
    error::{Error, Result},
    measure::{runner::Part, session::check_combinations},
    system::environment::hostname,
    unit::{self, counted},
};
use ombx_results::render::plain;
use ombx_sockets::{
    Token,
    control::{Listener, process::command},
    server::{self, Limits, RankEnd, RankRequest, ServerEvent, serve},
    socket::{SocketOptions, address_towards},
};

use crate::{
    arguments::{parameters::HOSTS, values},
    job::{Work, rank_job::RankJob},
    launch::{
        coordinator::{self, Invitation},
        served::{self, ServedRank, TOKEN},
        start::PORT,
    },
    output::terminal,
    private_file,
    rank::sockets::ELSEWHERE,
};

#[derive(Debug, Args)]
pub(crate) struct SocketsArgs {
    /// What to do
    #[arg(value_enum)]
    action: Action,
    /// Address of this host on which clients connect [default: every address]
    #[arg(long, value_name = "ADDR")]
    bind: Option<IpAddr>,
    /// TCP port on which clients connect; 0: any free port. The connections of a run have further ports, which the kernel chooses
    #[arg(long, value_name = "P", default_value_t = PORT, value_parser = values::number::<u16>(0..=u16::MAX))]
    port: u16,
    /// File with the token that clients must show; a new one is written with a new token; - for standard input
    /// [default: the variable OMBX_TOKEN, else a new token that is printed]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// End after the run of one client
    #[arg(long)]
    once: bool,
    /// End after this time without a client, for example: --timeout 10m [default: when it is interrupted]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = unit::parse_duration)]
    timeout: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Action {
    /// Serve one client after another until interrupted
    Serve,
}

/// Serves clients and returns the exit code.
pub(super) fn sockets(args: &SocketsArgs) -> Result<u8> {
    let Action::Serve = args.action;
    let (token, how) = token(args)?;
    let options = SocketOptions::default();
    let listener = match args.bind {
        Some(address) => Listener::on_port(address, args.port, &options, token),
        None => Listener::on_all_addresses(args.port, &options, token),
    };
    let listener = listener.map_err(|e| {
        Error::fabric(format!("{e}. Give another --port or --bind, or end the program that listens there"))
    })?;
    terminal::print(greeting(args, listener.port(), &how))?;
    let limits = Limits { once: args.once, idle: args.timeout };
    serve(listener, limits, Box::new(start_rank), log)?;
    Ok(0)
}

/// Returns the token, and how the client gets it: the end of its command line.
fn token(args: &SocketsArgs) -> Result<(Token, String)> {
    let new = |file: &std::path::Path| file.as_os_str() != "-" && !private_file::exists(file);
    if let Some(file) = args.token_file.as_deref() {
        if new(file) {
            private_file::create(file, &format!("{}\n", Token::random()?))?;
        }
        let how = format!(
            "--token-file {}",
            if file.as_os_str() == "-" { "-".into() } else { file.display().to_string() }
        );
        let missing = || Error::usage(format!("--token-file {}: cannot read the file", file.display()));
        return Ok((served::token(Some(file))?.ok_or_else(missing)?, how));
    }
    match served::token(None)? {
        Some(token) => Ok((token, format!("(with this host's {TOKEN})"))),
        None => {
            let token = Token::random()?;
            Ok((token, format!("--token-file - <<< {token}")))
        }
    }
}

/// Returns what the server prints at its start: where it listens, and the command of the other side.
fn greeting(args: &SocketsArgs, port: u16, how: &str) -> String {
    let address = args.bind.filter(|address| !address.is_unspecified());
    let address =
        address.or_else(|| address_towards(ELSEWHERE).ok().filter(|address| !address.is_unspecified()));
    let host = match address {
        Some(IpAddr::V6(address)) => format!("[{address}]"),
        Some(address) => address.to_string(),
        None => hostname(),
    };
    let at = args.bind.map_or_else(|| "every address".to_owned(), |address| address.to_string());
    let of_port = if port == PORT && !host.starts_with('[') { String::new() } else { format!(":{port}") };
    format!(
        "ombx sockets serve: {} listens on {at}, port {port}\non the other host: ombx run 'sockets.*' --connect {host}{of_port} {how}\n",
        hostname()
    )
}

/// Returns the process of a rank and its invitation. The rank joins the session of the client that asks, nobody else's.
fn start_rank(request: &RankRequest, client: IpAddr) -> Result<(process::Command, Vec<u8>)> {
    let RankRequest { session, port, on_host, ref job } = *request;
    let job = read_job(job)?;
    let invitation = Invitation { token: session, port, addresses: vec![client], rank: 1, on_host, job };
    let mut worker = command(None, coordinator::WORKER, &[])?;
    // Whoever started this server is not the client.
    worker.env_remove("SSH_CONNECTION");
    Ok((worker, codec::encode(&invitation)))
}

/// Prints an event on standard error. Many rejected connections give few lines.
fn log(event: ServerEvent) {
    match event {
        ServerEvent::Connected(host) => stderr_line!("ombx: {host} has connected"),
        ServerEvent::Left(host, launches) => {
            stderr_line!("ombx: {host} has left after {}", counted(launches, "launch"));
        }
        ServerEvent::Refused(host, why) => stderr_line!("ombx: {host} was refused: {why}"),
        ServerEvent::Rejected(count) if count.is_power_of_two() => {
            stderr_line!("ombx: {} without the token rejected", counted(count, "connection"));
        }
        ServerEvent::Rejected(_) => {}
    }
}

/// Exit code of a rank whose server is gone, as ssh has it.
const LOST: u8 = 255;

/// Lets the server run the rank of standard input, and returns the exit code of the rank.
pub(crate) fn run_rank() -> Result<u8> {
    let ServedRank { server, token, client, invitation } = coordinator::from_stdin().ok_or_else(|| {
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
fn read_job(bytes: &[u8]) -> Result<RankJob> {
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
    use ombx_core::{
        benchmark::{Registry, Threading},
        measure::plan::{Launch, Plan},
        unit::Bytes,
    };

    use super::*;
    use crate::job::{RankKind, rank_job::LaunchSettings};

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
