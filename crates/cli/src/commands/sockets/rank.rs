//! One rank on a server: the words that the client sends, and their check on the server's host.

use std::{collections::BTreeSet, ffi::OsString, io::Read};

use clap::{ArgMatches, Command, FromArgMatches};
use ombx_core::{
    benchmark::{Medium, Registry},
    codec,
    error::{Error, Result},
};
use ombx_results::render::plain;
use ombx_sockets::server::{
    RankRequest,
    client::{RankEnd, run_rank},
};

use crate::{
    arguments::{
        argv, given, mistake,
        parameters::{self, HOSTS},
    },
    commands::run::{self, arguments::RunArgs},
    job::selection,
    launch::{invitation::Invitation, served::ServedRank},
};

/// Options of `ombx run` that a rank needs, by their identifiers, beside parameters. None of them names a file or a program.
const OPTIONS: [&str; 20] = [
    "relay",
    "core_to_core_ps",
    "launch",
    "row_time",
    "batches",
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
pub(in crate::commands) fn run(registry: &Registry, parser: &Command) -> Result<u8> {
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
    match run_rank(&server.addresses()?, &token, client, &request, print)? {
        RankEnd::Code(code) => Ok(code),
        RankEnd::Lost => Ok(LOST),
    }
}

/// Returns the words of a command line that a rank on a server needs, after the name of the program.
fn words(registry: &Registry, parser: &Command, argv: Vec<String>) -> Result<Vec<String>> {
    let (command, matches) = parsed(parser, argv.into_iter().map(OsString::from).collect())?;
    let args = RunArgs::from_arg_matches(&matches).map_err(|e| Error::usage(mistake::sentence(&e)))?;
    let choices = selection::over_sockets(selection::benchmarks(registry, &args.patterns)?, false)?;
    let (allowed, mut words) = (allowed(registry), vec!["run".to_owned()]);
    words.extend(choices.iter().map(|choice| choice.bench.name.to_owned()));
    for (arg, given) in given::options(&command, &matches) {
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
pub(super) fn check(registry: &Registry, parser: &Command, words: &[String]) -> Result<()> {
    let typed: Vec<OsString> =
        ["ombx"].into_iter().chain(words.iter().map(String::as_str)).map(Into::into).collect();
    argv::check_lengths(&typed)?;
    // Reading the words would read the files that they name.
    if let Some(file) = words.iter().find(|word| word.starts_with('@') || word.contains("=@")) {
        return Err(Error::usage(format!("a server reads no file of a client: leave out {file:?}")));
    }
    let (command, matches) = parsed(parser, typed)?;
    let allowed = allowed(registry);
    if let Some((arg, _)) =
        given::options(&command, &matches).find(|(arg, _)| !allowed.contains(arg.get_id().as_str()))
    {
        return Err(Error::usage(format!(
            "a server takes no option --{}",
            arg.get_long().unwrap_or_default()
        )));
    }
    let args = RunArgs::from_arg_matches(&matches).map_err(|e| Error::usage(mistake::sentence(&e)))?;
    let by_sockets =
        |name: &String| registry.get(name).is_ok_and(|choice| choice.bench.ranks.medium == Medium::Sockets);
    if let Some(other) = args.patterns.iter().find(|name| !by_sockets(name)) {
        return Err(Error::usage(format!("a server runs no {other:?}, only benchmarks over sockets")));
    }
    if args.role.relay.is_none() {
        return Err(Error::usage("a server runs only ranks"));
    }
    run::prepare(registry, parser, &matches, args, parameters::chosen(registry, &matches)?).map(drop)
}

/// Returns the command `ombx run` and what the words give it.
fn parsed(parser: &Command, words: Vec<OsString>) -> Result<(Command, ArgMatches)> {
    let mistake = |e: clap::Error| Error::usage(mistake::sentence(&e));
    let mut matches = parser.clone().try_get_matches_from(words).map_err(mistake)?;
    let run = parser.find_subcommand("run").cloned();
    match (run, matches.remove_subcommand()) {
        (Some(run), Some((name, matches))) if name == "run" => Ok((run, matches)),
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
mod tests {
    use super::*;
    use crate::commands;

    fn of(line: &str) -> Result<String> {
        let registry = Registry::load().unwrap();
        let parser = commands::parser(&registry);
        let words = words(&registry, &parser, line.split(' ').map(str::to_owned).collect())?;
        check(&registry, &parser, &words).map(|()| words.join(" "))
    }

    #[test]
    fn a_rank_gets_what_it_measures_and_no_files_or_programs() {
        let line = "ombx run --relay=records --launch=2/5/42 sockets.bw sockets.latency --connect n02 --token-file t -o r.jsonl \
                    --format csv --sizes 8,64K --transport tcp,udp --socket-buffer 4M --no-verify -v";
        let sent = of(line).unwrap();
        for part in [
            "run sockets.bw sockets.latency ",
            "--sizes=8,64K",
            "--transport=tcp --transport=udp",
            "--no-verify",
            "--launch=2/5/42",
        ] {
            assert!(sent.contains(part), "{part}: {sent}");
        }
        assert!(!["connect", "token", "jsonl", "csv"].iter().any(|word| sent.contains(word)), "{sent}");
        let sent = of("ombx run --relay=records sockets.* --connect n02").unwrap();
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
            ("run --relay=records sockets.pipeline", "runs no \"sockets.pipeline\""),
            ("run --relay=records sockets.*", "runs no"),
            ("run --relay=records ./suite.toml", "runs no"),
            ("run --relay=records suite:smoke", "runs no"),
            ("run --relay=records", ""),
            ("run --relay=records sockets.bw -o /tmp/x", "no option --output"),
            ("run --relay=records sockets.bw --ssh /tmp/x", "no option --ssh"),
            ("run --relay=records sockets.bw --launcher-arg=-oProxyCommand=x", "no option --launcher-arg"),
            ("run --relay=records sockets.bw --hostfile /etc/passwd", "no option --hostfile"),
            ("run --relay=records sockets.bw --connect n01", "no option --connect"),
            ("run --relay=records sockets.bw --sink file:/tmp/x", "no option --sink"),
            ("run --relay=records sockets.bw --openmetrics /tmp/x", "no option --openmetrics"),
            ("run --relay=records --coordinator sockets.bw", "no option --coordinator"),
            ("run --relay=records sockets.bw --sizes x", ""),
            ("run --relay=records sockets.bw --rate 5", ""),
        ] {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let error = check(&registry, &parser, &words).expect_err(line).to_string();
            assert!(error.contains(why) && !error.contains('\n'), "{line}: {error}");
        }
    }
}
