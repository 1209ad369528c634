//! `ombx sockets serve`: runs ranks on this host for `ombx run --connect` on another one.

use std::{
    collections::BTreeSet, ffi::OsString, io::Read, net::IpAddr, path::PathBuf, process, time::Duration,
};

use clap::{ArgMatches, Args, Command, FromArgMatches, ValueEnum};
use ombx_core::{
    benchmark::{Medium, Registry},
    codec,
    error::{Error, Result},
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
    arguments::{
        argv,
        parameters::{self, HOSTS},
        start::PORT,
        values,
    },
    commands::run::{self, RunArgs},
    job::selection,
    launch::{
        coordinator::Invitation,
        served::{self, ServedRank, TOKEN},
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
        "ombx sockets serve: {} listens on {at}, port {port}\n\
         on the other host: ombx run 'sockets.*' --connect {host}{of_port} {how}\n",
        hostname()
    )
}

/// Returns the process of a rank and its invitation. The rank joins the session of the client that asks, nobody else's.
fn start_rank(request: &RankRequest, client: IpAddr) -> Result<(process::Command, Vec<u8>)> {
    let registry = Registry::load()?;
    check_rank(&registry, &super::parser(&registry), &request.words)?;
    let RankRequest { session, port, on_host, words } = request.clone();
    let argv = ["ombx".to_owned()].into_iter().chain(words).collect();
    let invitation = Invitation { token: session, port, addresses: vec![client], rank: 1, on_host, argv };
    let mut worker = command(None, "worker", &[])?;
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

/// Options of `ombx run` that a rank needs, by their identifiers, beside parameters. None of them names a file or a program.
const OPTIONS: [&str; 16] = [
    "role",
    "launches",
    "quick",
    "budget",
    "seed",
    "precision",
    "max_time",
    "iterations",
    "warmup",
    "duration",
    "batch",
    "sizes",
    "verify",
    "no_verify",
    "percentiles",
    "timeout",
];
/// Maximum length of what the process reads from standard input.
const LONGEST: u64 = 1 << 22;
/// Exit code of a rank whose server is gone, as ssh has it.
const LOST: u8 = 255;

/// Lets the server run the rank of standard input, and returns the exit code of the rank.
pub(super) fn run_rank(registry: &Registry, parser: &Command) -> Result<u8> {
    let mut bytes = Vec::new();
    let read = std::io::stdin().take(LONGEST).read_to_end(&mut bytes);
    let ServedRank { server, token, client, invitation } =
        read.ok().and_then(|_| codec::decode(&bytes)).ok_or_else(|| {
            Error::usage(
                "the standard input is no rank of a server: use ombx run --connect, which asks for one",
            )
        })?;
    let Invitation { token: session, port, on_host, argv, .. } = invitation;
    let words = words(registry, parser, argv)?;
    let request = RankRequest { session, port, on_host, words };
    let print = |line: &str| stderr_line!("{}", plain(line));
    match server::run_rank(&server.addresses()?, &token, client, &request, print)? {
        RankEnd::Code(code) => Ok(code),
        RankEnd::Lost => Ok(LOST),
    }
}

/// Returns the words of a command line that a rank on a server needs, after the name of the program.
fn words(registry: &Registry, parser: &Command, argv: Vec<String>) -> Result<Vec<String>> {
    let (command, matches, args) = parsed(parser, argv.into_iter().map(OsString::from).collect())?;
    let choices = selection::over_sockets(selection::benchmarks(registry, &args.patterns)?, false)?;
    let (allowed, mut words) = (allowed(registry), vec!["run".to_owned()]);
    words.extend(choices.iter().map(|choice| choice.bench.name.to_owned()));
    for (arg, given) in argv::given_options(&command, &matches) {
        if allowed.contains(arg.get_id().as_str()) {
            words.extend(given.iter().map(|word| word.to_string_lossy().into_owned()));
        }
    }
    Ok(words)
}

/// Checks the words of a client on the server's host: they run registered benchmarks over sockets, with options that name no file, no
/// host and no program.
///
/// # Errors
/// Usage error: it names the first word that is refused, or the mistake.
fn check_rank(registry: &Registry, parser: &Command, words: &[String]) -> Result<()> {
    let typed: Vec<OsString> =
        ["ombx"].into_iter().chain(words.iter().map(String::as_str)).map(Into::into).collect();
    argv::check_lengths(&typed)?;
    // Reading the words would read the files that they name.
    if let Some(file) = words.iter().find(|word| word.starts_with('@') || word.contains("=@")) {
        return Err(Error::usage(format!("a server reads no file of a client: leave out {file:?}")));
    }
    let (command, matches, args) = parsed(parser, typed)?;
    let allowed = allowed(registry);
    if let Some((arg, _)) =
        argv::given_options(&command, &matches).find(|(arg, _)| !allowed.contains(arg.get_id().as_str()))
    {
        return Err(Error::usage(format!(
            "a server takes no option --{}",
            arg.get_long().unwrap_or_default()
        )));
    }
    let by_sockets =
        |name: &String| registry.get(name).is_ok_and(|choice| choice.bench.ranks.medium == Medium::Sockets);
    if let Some(other) = args.patterns.iter().find(|name| !by_sockets(name)) {
        return Err(Error::usage(format!("a server runs no {other:?}, only benchmarks over sockets")));
    }
    if args.role.kind.is_none_or(|kind| kind.medium != Medium::Sockets) {
        return Err(Error::usage("a server runs only ranks"));
    }
    run::prepare(registry, parser, &matches, args, parameters::chosen(registry, &matches)?).map(drop)
}

/// Returns the command `ombx run` and what the words give it.
fn parsed(parser: &Command, words: Vec<OsString>) -> Result<(Command, ArgMatches, RunArgs)> {
    let mistake = |e: clap::Error| Error::usage(argv::mistake_sentence(&e));
    let mut matches = parser.clone().try_get_matches_from(words).map_err(mistake)?;
    let run = parser.find_subcommand("run").cloned();
    match (run, matches.remove_subcommand()) {
        (Some(run), Some((name, matches))) if name == "run" => {
            let args = RunArgs::from_arg_matches(&matches).map_err(mistake)?;
            Ok((run, matches, args))
        }
        _ => Err(Error::usage("a server runs only ranks of ombx run")),
    }
}

/// Returns the identifiers of the options that a rank over sockets may have.
fn allowed(registry: &Registry) -> BTreeSet<String> {
    let over_sockets = registry.all().iter().filter(|bench| bench.ranks.medium == Medium::Sockets);
    let mut allowed: BTreeSet<String> = OPTIONS.map(str::to_owned).into();
    for bench in over_sockets {
        let names = bench.parameters().map(|parameter| parameter.name).filter(|name| *name != HOSTS);
        allowed.extend(names.flat_map(|name| [name.to_owned(), format!("no-{name}")]));
    }
    allowed
}

#[cfg(test)]
mod rank_tests {
    use ombx_core::{benchmark::Threading, measure::plan::Launch};

    use super::*;
    use crate::{arguments::role::Role, commands, job::RankKind};

    /// Returns the argument of a rank over a medium.
    fn role(medium: Medium) -> String {
        let kind = Some(RankKind { medium, threading: Threading::Single });
        let launch = Some(Launch { number: 2, of: 5, order: 42 });
        Role { kind, launch, ..Role::default() }.argument().into_string().unwrap()
    }

    fn rank_line(line: &str) -> Result<String> {
        let registry = Registry::load().unwrap();
        let parser = commands::parser(&registry);
        let words = words(&registry, &parser, line.split(' ').map(str::to_owned).collect())?;
        check_rank(&registry, &parser, &words).map(|()| words.join(" "))
    }

    #[test]
    fn a_rank_gets_what_it_measures_and_no_files_or_programs() {
        let role = role(Medium::Sockets);
        let line = format!(
            "ombx run {role} sockets.bw sockets.latency --connect n02 --token-file t -o r.jsonl --format \
             csv --sizes 8,64K --transport tcp,udp --socket-buffer 4M --no-verify -v"
        );
        let sent = rank_line(&line).unwrap();
        for part in [
            "run sockets.bw sockets.latency ",
            "--sizes=8,64K",
            "--transport=tcp --transport=udp",
            "--no-verify",
            &role,
        ] {
            assert!(sent.contains(part), "{part}: {sent}");
        }
        assert!(!["connect", "token", "jsonl", "csv"].iter().any(|word| sent.contains(word)), "{sent}");
        let sent = rank_line(&format!("ombx run {role} sockets.* --connect n02")).unwrap();
        assert!(sent.contains("sockets.link") && !sent.contains("pipeline") && !sent.contains('*'), "{sent}");
    }

    #[test]
    fn a_server_refuses_what_is_no_rank_over_sockets() {
        let registry = Registry::load().unwrap();
        let parser = commands::parser(&registry);
        for (line, why) in [
            ("list", "only ranks of ombx run"),
            ("run --help", ""),
            ("run sockets.bw", "only ranks"),
            ("run SOCKETS sockets.pipeline", "runs no \"sockets.pipeline\""),
            ("run SOCKETS sockets.*", "runs no"),
            ("run SOCKETS ./suite.toml", "runs no"),
            ("run SOCKETS suite:smoke", "runs no"),
            ("run SOCKETS", ""),
            ("run SOCKETS sockets.bw -o /tmp/x", "no option --output"),
            ("run SOCKETS sockets.bw --ssh /tmp/x", "no option --ssh"),
            ("run SOCKETS sockets.bw --launcher-arg=-oProxyCommand=x", "no option --launcher-arg"),
            ("run SOCKETS sockets.bw --hostfile /etc/passwd", "no option --hostfile"),
            ("run SOCKETS sockets.bw --connect n01", "no option --connect"),
            ("run SOCKETS sockets.bw --sink file:/tmp/x", "no option --sink"),
            ("run SOCKETS sockets.bw --openmetrics /tmp/x", "no option --openmetrics"),
            ("run MPI sockets.bw", "only ranks"),
            ("run SOCKETS sockets.bw --sizes x", ""),
            ("run SOCKETS sockets.bw --rate 5", ""),
        ] {
            let typed = line.replace("SOCKETS", &role(Medium::Sockets)).replace("MPI", &role(Medium::Mpi));
            let words: Vec<String> = typed.split(' ').map(str::to_owned).collect();
            let error = check_rank(&registry, &parser, &words).expect_err(line).to_string();
            assert!(error.contains(why) && !error.contains('\n'), "{line}: {error}");
        }
    }
}
