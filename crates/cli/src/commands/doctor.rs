//! `ombx doctor`: checks the system for causes of wrong measurements before anything is measured.

#[cfg(feature = "mpi")]
mod accelerators;
mod report;

use std::{collections::BTreeMap, path::PathBuf, process::Command, time::Duration};

use clap::Args;
use ombx_core::{
    benchmark::{Medium, Threading},
    error::{Error, Exit, Result},
    fact::{self, HostFacts},
    result::Mark,
    system::{clock::Clock, environment::hostname, host::Host, machine},
    team::Place,
    trust,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use self::report::{Examination, Facts, Finding, WIDTH};
use crate::{
    arguments::{
        argv,
        output::{Format, some_of},
        start::{Launcher, StartArgs},
    },
    launch::{
        detection, finite_run,
        hosts::{self, slots},
        mpiexec, preflight,
    },
    output::{monitoring, target, terminal, unwritable},
};

/// Default number of ranks to check.
const RANKS: u32 = 2;

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    start: StartArgs,
    /// Format of the findings
    #[arg(long, default_value = "table", value_parser = some_of(&FORMATS), help_heading = "Output")]
    format: Format,
    /// JUnit report to write beside what is printed; a finding that disturbs figures is a failure
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    junit: Option<PathBuf>,
    /// Print nothing if there is no finding
    #[arg(short, long, help_heading = "Output")]
    quiet: bool,
    /// Print where this process runs, for the doctor that started it
    #[arg(long, hide = true)]
    probe: bool,
}

/// Formats of the findings.
const FORMATS: [(&str, &str, Format); 4] = [
    ("table", "Sentences for people", Format::Table),
    ("json", "One JSON object", Format::Json),
    ("nagios", "One line for monitoring, with exit code 0, 1, 2 or 3", Format::Nagios),
    ("junit", "Report for CI systems", Format::Junit),
];

pub(crate) fn doctor(args: &DoctorArgs) -> Result<u8> {
    if args.probe {
        return terminal::print(probe_line());
    }
    let started = detection::launcher().filter(|_| args.start.launcher == Launcher::Auto);
    if started.as_ref().is_some_and(|s| s.rank > 0) {
        return Ok(0);
    }
    if let Some(path) = &args.junit {
        target::check_path("--junit", path)?;
    }
    let shared_memory = rustix::fs::statvfs("/dev/shm").ok();
    let free_shared_memory = shared_memory.map(|fs| fs.f_bavail.saturating_mul(fs.f_frsize));
    let clock = Clock::measured();
    let mut examination = match &started {
        Some(started) => within(started),
        None => {
            if args.start.rendezvous.is_some() {
                return Err(Error::usage("ombx doctor has no option --rendezvous: it measures nothing"));
            }
            let ranks = ranks(args)?;
            preflight::check(&args.start, ranks, Medium::Mpi)?;
            outside(args, ranks)
        }
    };
    let debug = cfg!(debug_assertions);
    let mut standing = trust::standing(&examination.ranks, clock.facts(), debug);
    if examination.hosts.is_empty() {
        examination.hosts = HostFacts::grouped([(hostname(), machine::facts().clone())]);
    }
    standing.extend(trust::far_device(&examination.ranks, &examination.hosts));
    standing.extend(trust::interrupted(&examination.ranks, &examination.hosts));
    examination.findings.extend(Finding::of_hosts(&examination.hosts));
    let standing = standing.into_iter().filter(|mark| mark.code != "shared_cpu" || started.is_none());
    examination.findings.extend(standing.map(Finding::of_advice));
    let host = Host::here(free_shared_memory);
    examination.findings.extend(host.problems(examination.ranks_here).into_iter().map(Finding::of_mark));
    #[cfg(feature = "mpi")]
    {
        let devices = accelerators::all();
        examination.findings.extend(accelerators::findings(&devices, examination.ranks_here));
        examination.devices = devices.iter().map(accelerators::sentence).collect();
    }
    examination.findings.sort_by_key(|finding| std::cmp::Reverse(finding.mark.level));
    let facts = Facts { clock: clock.facts(), host };
    if let Some(path) = &args.junit {
        target::replace(path, examination.junit().as_bytes()).map_err(|e| unwritable(path, &e))?;
    }
    match args.format {
        Format::Nagios => {
            let (status, text, figures) = examination.monitoring(&facts);
            return monitoring::print("doctor", status, &text, &figures);
        }
        _ if args.quiet && examination.findings.is_empty() => 0,
        Format::Json => terminal::print(format!("{:#}\n", examination.json(&facts)))?,
        Format::Junit => terminal::print(format!("{}\n", examination.junit()))?,
        _ => terminal::print(examination.sentences(&facts, terminal::columns().unwrap_or(WIDTH).min(WIDTH)))?,
    };
    Ok(if examination.findings.is_empty() { Exit::Success } else { Exit::Incomplete }.code())
}

/// Examines the job of a launcher as one of its ranks, from this rank's place and the launcher's environment.
fn within(started: &detection::StartedBy) -> Examination {
    let place = Place::here();
    let here = detection::ranks_here().or(started.ranks).and_then(|n| u32::try_from(n).ok()).unwrap_or(1);
    let mut findings = Vec::from_iter(wrong_launcher(started.launcher));
    if here > place.online {
        findings.push(oversubscribed(here, &place));
    }
    Examination {
        launcher: Some(started.launcher.to_owned()),
        ranks: vec![place],
        ranks_here: here,
        findings,
        ..Examination::default()
    }
}

/// Starts ranks as a run would, unless a limit of this host prevents it, and examines where they are.
fn outside(args: &DoctorArgs, ranks: u32) -> Examination {
    let mut examination = Examination::default();
    let limits = preflight::of_mpi_ranks(&args.start, ranks);
    if !limits.is_empty() {
        examination.ranks_here = ranks;
        examination.findings.extend(limits.into_iter().map(|limit| {
            Finding::of_mark(Mark::invalid("limits", limit, "no rank can start: raise this limit"))
        }));
        return examination;
    }
    examination.findings.extend(mpiexec::of_another_mpi_in_path().map(|path| {
        Finding::of_mark(Mark::caution(
            "path_launcher",
            format!("{path} belongs to another MPI"),
            "its ranks cannot communicate with each other: let ombx run start the ranks, or give the full path of this MPI's mpiexec",
        ))
    }));
    match start(args, ranks) {
        Ok((program, seen)) => {
            examination.launcher = Some(program);
            let by = seen.iter().find_map(|rank| rank.launcher.as_deref());
            examination.findings.extend(by.and_then(wrong_launcher));
            let hosts: BTreeMap<String, fact::Facts> =
                seen.iter().map(|rank| (rank.place.host.clone(), rank.facts.clone())).collect();
            examination.hosts = HostFacts::grouped(hosts);
            examination.ranks = seen.into_iter().map(|rank| rank.place).collect();
        }
        Err(e) => {
            let code = if mpiexec::is_of_another_mpi(&e) { "wrong_launcher" } else { "launcher" };
            examination.findings.push(Finding::of_error(Mark::invalid(
                code,
                "cannot start ranks",
                e.to_string(),
            )));
        }
    }
    let host = Place::here();
    if examination.ranks.is_empty() {
        if args.start.hosts().is_empty() && args.start.hostfile.is_none() && ranks > host.online {
            examination.findings.push(oversubscribed(ranks, &host));
        }
        examination.ranks_here = ranks;
    } else {
        examination.ranks_here =
            examination.ranks.iter().filter(|place| place.host == host.host).count() as u32;
    }
    examination
}

/// Returns the number of ranks: the user's, or one for each host or slot.
fn ranks(args: &DoctorArgs) -> Result<u32> {
    args.start.ranks.map_or_else(|| Ok(slots(&args.start)?.max(RANKS)), Ok)
}

/// Starts ranks as `ombx run` does and returns the launcher and where each rank is.
fn start(args: &DoctorArgs, ranks: u32) -> Result<(String, Vec<ProbedRank>)> {
    preflight::reach_all(&args.start, mpiexec::remote_shell(&args.start), Medium::Mpi, hosts::REACH_LIMIT)?;
    let words = vec![argv::executable()?.into(), "doctor".into(), "--probe".into()];
    let command = mpiexec::command(&args.start, ranks, Threading::Single, words)?;
    let name = command.get_program().to_string_lossy().into_owned();
    Ok((name, probe(command, ranks, args.start.timeout)?))
}

/// Returns the finding that a launcher belongs to another MPI than this program.
fn wrong_launcher(by: &str) -> Option<Finding> {
    let ours = mpiexec::is_of_this_mpi(by)?;
    (!ours).then(|| {
        Finding::of_mark(Mark::invalid(
            "wrong_launcher",
            format!("{by} starts the ranks"),
            "ombx was built with another MPI, so each process is rank 0 of 1: use the mpiexec of that MPI, or let ombx run start the ranks",
        ))
    })
}

fn oversubscribed(ranks: u32, place: &Place) -> Finding {
    Finding::of_advice(trust::oversubscribed(&place.host, ranks as usize, place.online))
}

/// Default time limit, which a slow cluster needs.
const PROBE_LIMIT: Duration = Duration::from_secs(60);
/// Start of the line of a rank, among the launcher's own output.
const PROBE_MARK: &str = "ombx-probe ";

/// Facts that a rank reports about itself.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct ProbedRank {
    place: Place,
    /// Launcher that the rank detects.
    launcher: Option<String>,
    /// Facts about its host.
    facts: fact::Facts,
}

/// Returns the line that describes this rank.
fn probe_line() -> String {
    let launcher = detection::launcher().map(|started| started.launcher.to_string());
    format!(
        "{PROBE_MARK}{}\n",
        json!(ProbedRank { place: Place::here(), launcher, facts: machine::facts().clone() })
    )
}

/// Runs a launcher and returns its ranks. Fails if the launcher hangs or does not start all of them.
fn probe(command: Command, ranks: u32, limit: Option<Duration>) -> Result<Vec<ProbedRank>> {
    let program = command.get_program().to_string_lossy().into_owned();
    let texts = finite_run::texts_of(command, limit.unwrap_or(PROBE_LIMIT), || false)?;
    let seen: Vec<ProbedRank> = texts.iter().flat_map(|text| text.lines()).filter_map(read_line).collect();
    if seen.len() == ranks as usize {
        return Ok(seen);
    }
    let mut lines = texts.iter().flat_map(|text| text.lines()).map(str::trim).filter(|line| !line.is_empty());
    let said = match (lines.next(), lines.next_back()) {
        (Some(first), Some(last)) => format!("it says: {first} .. {last}"),
        (Some(only), None) => format!("it says: {only}"),
        (None, _) => "it says nothing".to_owned(),
    };
    Err(Error::fabric(format!("{program} started {} of {ranks} ranks; {said}", seen.len())))
}

fn read_line(line: &str) -> Option<ProbedRank> {
    let (_, json) = line.split_once(PROBE_MARK)?;
    serde_json::from_str(json).ok()
}

#[cfg(test)]
mod probe_tests {
    use super::*;

    #[test]
    fn the_line_of_a_rank_is_read_and_other_lines_are_not() {
        let rank = read_line(&format!("[1,0]<stdout>:{}", probe_line())).unwrap();
        assert_eq!((rank.place, &rank.facts), (Place::here(), machine::facts()));
        assert!(read_line("ombx-probe {").is_none() && read_line("hello").is_none());
    }

    #[test]
    fn a_launcher_that_hangs_or_fails_is_reported() {
        let shell = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            command
        };
        let error = |command, limit| probe(command, 2, Some(limit)).err().unwrap().to_string();
        assert!(error(shell("sleep 90"), Duration::from_millis(100)).contains("did not end"));
        let why = error(shell("echo no such host >&2; echo; echo bye >&2; exit 1"), PROBE_LIMIT);
        assert!(why.contains("started 0 of 2 ranks; it says: no such host .. bye"), "{why}");
    }
}
