//! `ombx sockets serve`: runs ranks on this host for `ombx run --connect` on another one.

use std::{net::IpAddr, path::PathBuf, process, time::Duration};

use clap::{Args, ValueEnum};
use ombx_host::environment::hostname;
use ombx_launch::{
    launch::{
        invitation::{Invitation, WORKER},
        served::{self, TOKEN, read_job},
        start::PORT,
    },
    note_line,
    output::terminal,
    private_file,
    rank::sockets::own_addresses,
    stderr_line,
};
use ombx_record::{
    codec,
    error::{Error, Result},
    unit::{self, counted},
};
use ombx_sockets::{
    Token,
    control::{Listener, process::command},
    server::{RankRequest, ServerEvent, ServerLifetime, serve},
    socket::{ScopedIp, SocketOptions},
};

use crate::arguments::values;

#[derive(Debug, Args)]
pub(crate) struct SocketsArgs {
    /// What to do
    #[arg(value_enum)]
    action: Action,
    /// Address of this host on which clients connect, as 10.0.0.2 or fe80::2%eth0 [default: every address]
    #[arg(long, value_name = "ADDR")]
    bind: Option<ScopedIp>,
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
    if let Some(address) = args.bind.filter(|address| address.lacks_interface()) {
        return Err(Error::usage(format!(
            "--bind {address}: a link-local address needs its interface: --bind {address}%eth0, for example"
        )));
    }
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
    let lifetime = ServerLifetime { once: args.once, idle: args.timeout };
    serve(listener, lifetime, Box::new(start_rank), log)?;
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
    let address = args.bind.filter(|address| !address.ip().is_unspecified());
    let host = match address.map(ScopedIp::ip).or_else(|| own_addresses().into_iter().next()) {
        // Which interface it is depends on the other host.
        Some(IpAddr::V6(address)) if address.is_unicast_link_local() => format!("[{address}%INTERFACE]"),
        Some(IpAddr::V6(address)) => format!("[{address}]"),
        Some(address) => address.to_string(),
        None => hostname(),
    };
    let at = args.bind.map_or_else(|| "every address".to_owned(), |address| address.to_string());
    let of_port = if port == PORT && !host.starts_with('[') { String::new() } else { format!(":{port}") };
    format!(
        "ombx sockets serve: {} listens on {at}, port {port}\n\
         on the other host: ombx run 'sockets.*' --connect {host}{of_port} {how}\n",
        hostname()
    )
}

/// Returns the process of a rank and its invitation. The rank joins the session of the client that asks, nobody else's.
fn start_rank(request: &RankRequest, client: ScopedIp) -> Result<(process::Command, Vec<u8>)> {
    let RankRequest { session, port, on_host, ref job } = *request;
    let job = read_job(job)?;
    let invitation = Invitation { token: session, port, addresses: vec![client], rank: 1, on_host, job };
    let mut worker = command(None, WORKER, &[])?;
    // Whoever started this server is not the client.
    worker.env_remove("SSH_CONNECTION");
    Ok((worker, codec::encode(&invitation)))
}

/// Prints an event on standard error. Many rejected connections give few lines.
fn log(event: ServerEvent) {
    match event {
        ServerEvent::Connected(host) => note_line!("ombx: {host} has connected"),
        ServerEvent::Left(host, launches) => {
            note_line!("ombx: {host} has left after {}", counted(launches, "launch"));
        }
        ServerEvent::Refused(host, why) => stderr_line!("ombx: {host} was refused: {why}"),
        ServerEvent::Rejected(count) if count.is_power_of_two() => {
            stderr_line!("ombx: {} without the token rejected", counted(count, "connection"));
        }
        ServerEvent::Rejected(_) => {}
    }
}
