//! `ombx doctor`: checks the system for causes of wrong measurements before anything is measured.

#[cfg(feature = "mpi")]
mod accelerators;
mod message;
mod report;

use std::{collections::BTreeMap, path::PathBuf, process::Command, time::Duration};

use ombx_core::{
    benchmark::{Medium, Threading, memory::BufferMemory},
    clock::Clock,
    trust,
};
use ombx_host::{
    device_counters::DeviceCounters,
    environment::{hostname, place_of_thread},
    host::HostState,
    machine,
    signals::Interruption,
};
use ombx_launch::{
    job::files_used,
    launch::{
        detection, finite_run,
        hosts::{self, slots},
        mpiexec, preflight,
        start::Start,
    },
    output::{destination::Format, monitoring, target, terminal, unwritable},
    role, stderr_line, this_process,
};
use ombx_record::{
    error::{Error, Exit, Result},
    fact::{self, HostFacts},
    order::sort_by_number,
    result::{Level, Mark, MarkCode, Place},
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use self::report::{Examination, Finding, ThisHost, WIDTH};

/// Default number of ranks to check.
const RANKS: u32 = 2;

/// What the user asks for beside the start of the ranks.
#[derive(Debug)]
pub struct Request {
    /// Memory of devices from which a message is sent.
    pub memory: Option<BufferMemory>,
    /// Format of the findings.
    pub format: Format,
    /// File of a JUnit report.
    pub junit: Option<PathBuf>,
    /// Whether nothing is printed if there is no finding.
    pub quiet: bool,
}

/// Prints where this process runs, for the doctor that started it. Returns the exit code.
///
/// # Errors
/// Standard output cannot be written.
pub fn probe_this_process() -> Result<u8> {
    terminal::print(probe_line())
}

/// Starts ranks as a run would, and prints what would disturb its figures. Returns the exit code.
///
/// # Errors
/// Options that the doctor does not have, and files that cannot be written.
pub fn run(start: &Start, request: &Request) -> Result<u8> {
    let is_rank = start.is_of_rank();
    if let Some(started) = detection::launcher().filter(|started| is_rank && started.rank > 0) {
        stderr_line!("ombx: rank {} of {}: rank 0 alone examines its host", started.rank, started.launcher);
        return Ok(0);
    }
    let useless = [("--rendezvous", start.rendezvous.is_some()), ("--fail-fast", start.fail_fast)];
    if let Some((option, _)) = useless.iter().find(|(_, is_given)| *is_given) {
        return Err(Error::usage(format!("ombx doctor has no option {option}: it measures nothing")));
    }
    if let Some(path) = &request.junit {
        target::check_all(&[("--junit", Some(path))], &files_used(start, &[]))?;
        target::check_path("--junit", path)?;
    }
    if is_rank && request.memory.is_some() {
        return Err(role::without_start("--memory"));
    }
    let counters = DeviceCounters::new(&hostname());
    let free_shared_memory = preflight::free_shared_memory();
    let clock = Clock::measured();
    let mut examination = if is_rank {
        role::reject_options_of_start(start)?;
        if start.timeout.is_some() {
            return Err(role::without_start("--timeout"));
        }
        examine_as_rank(detection::launcher())
    } else {
        // One for each host or slot, unless the user says how many.
        let ranks = start.ranks.map_or_else(|| Ok(slots(start)?.max(RANKS)), Ok::<_, Error>)?;
        preflight::check(start, ranks, Medium::Mpi)?;
        let interruption = Interruption::default();
        let mut examination = examine_start(start, ranks, &interruption);
        if let Some(memory) = request.memory.filter(|_| !examination.ranks.is_empty()) {
            match message::of_memory(memory, &interruption) {
                Ok(arrived) => examination.devices.push(arrived),
                Err(e) => {
                    let mark = Mark::with_advice(MarkCode::DeviceMemory, "no message", e.to_string());
                    examination.findings.push(Finding::of_error(mark));
                }
            }
        }
        if let Some(code) = interruption.exit_code() {
            stderr_line!("ombx: interrupted");
            return Ok(code);
        }
        examination
    };
    let mut standing = Vec::from_iter(cfg!(debug_assertions).then(trust::debug_build));
    standing.extend(trust::standing(&examination.ranks, clock.facts()));
    if examination.hosts.is_empty() {
        examination.hosts = HostFacts::grouped([(hostname(), machine::facts().clone())]);
    }
    standing.extend(trust::far_device(&examination.ranks, &examination.hosts, trust::Usable::All));
    standing.extend(trust::interrupted(&examination.ranks, &examination.hosts, trust::Usable::All));
    examination.findings.extend(Finding::of_hosts(&examination.hosts));
    examination.findings.extend(standing.into_iter().map(Finding::of_advice));
    examination.findings.extend(Finding::of_errors(&counters.rest()));
    let host = HostState::here(free_shared_memory);
    examination.findings.extend(host.problems(examination.ranks_here).into_iter().map(Finding::of_mark));
    #[cfg(feature = "mpi")]
    {
        let devices = accelerators::all();
        examination.findings.extend(accelerators::findings(&devices, examination.ranks_here));
        examination.devices.extend(devices.iter().map(accelerators::sentence));
    }
    sort_by_number(&mut examination.findings, |finding| -(finding.mark.level as i64));
    let this_host = ThisHost { clock: clock.facts(), host, errors: counters.errors() };
    if let Some(path) = &request.junit {
        target::replace(path, examination.junit().as_bytes()).map_err(|e| unwritable(path, &e))?;
    }
    if request.format == Format::Nagios {
        let (status, text, figures) = examination.monitoring(&this_host);
        return monitoring::print("doctor", status, &text, &figures);
    }
    // Notes disturb no figure.
    let disturbs = examination.findings.iter().any(|finding| finding.mark.level > Level::Note);
    if !request.quiet || disturbs {
        terminal::print(match request.format {
            Format::Json => format!("{:#}\n", examination.json(&this_host)),
            Format::Junit => format!("{}\n", examination.junit()),
            _ => examination.sentences(&this_host, terminal::columns().unwrap_or(WIDTH).min(WIDTH)),
        })?;
    }
    Ok(if disturbs { Exit::Incomplete } else { Exit::Success }.code())
}

/// Examines the job of a launcher as one of its ranks, from this rank's place and the launcher's environment. Without a launcher this process
/// is the only rank.
fn examine_as_rank(started: Option<detection::StartedBy>) -> Examination {
    let place = place_of_thread();
    let ranks_here = |started: &detection::StartedBy| detection::ranks_here().or(started.ranks);
    let here = started.as_ref().and_then(ranks_here).and_then(|n| u32::try_from(n).ok()).unwrap_or(1);
    let launcher = started.map(|started| started.launcher);
    let mut findings = Vec::from_iter(launcher.and_then(wrong_launcher));
    // A launcher may have bound this rank to some CPUs of its host.
    if here > place.online {
        findings.push(oversubscribed(here, &place, place.online));
    }
    // That of a single rank follows from its place.
    findings.extend(over_quota(here, &place).filter(|_| here > 1));
    Examination {
        launcher: launcher.map(str::to_owned),
        ranks: vec![place],
        ranks_here: here,
        findings,
        ..Examination::default()
    }
}

/// Starts ranks as a run would, unless a limit of this host prevents it, and examines where they are.
fn examine_start(start: &Start, ranks: u32, interruption: &Interruption) -> Examination {
    let mut examination = Examination::default();
    let limits = preflight::of_mpi_ranks(start, ranks);
    if !limits.is_empty() {
        examination.ranks_here = ranks;
        examination.findings.extend(
            limits
                .into_iter()
                .map(|limit| Finding::of_mark(Mark::new(MarkCode::Limits, limit, "no rank can start"))),
        );
        return examination;
    }
    examination.findings.extend(mpiexec::of_another_mpi_in_path().map(|path| {
        Finding::of_mark(Mark::new(
            MarkCode::PathLauncher,
            format!("{path} belongs to another MPI, and ombx starts its ranks without it"),
            "ranks of ombx that it starts cannot communicate with each other",
        ))
    }));
    match start_ranks(start, ranks, interruption) {
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
            let is_other = mpiexec::is_of_another_mpi(&e);
            let code = if is_other { MarkCode::WrongLauncher } else { MarkCode::Launcher };
            let mark = Mark::with_advice(code, "cannot start ranks", e.to_string());
            examination.findings.push(Finding::of_error(mark));
        }
    }
    let host = place_of_thread();
    if examination.ranks.is_empty() {
        if start.are_all_here() {
            let cpus = host.cpu_numbers().len() as u32;
            if ranks > cpus {
                examination.findings.push(oversubscribed(ranks, &host, cpus));
            }
            examination.findings.extend(over_quota(ranks, &host));
        }
        examination.ranks_here = ranks;
    } else {
        examination.ranks_here =
            examination.ranks.iter().filter(|place| place.host == host.host).count() as u32;
    }
    examination
}

/// Starts ranks as `ombx run` does. Returns the name of the launcher, and what each rank reports.
fn start_ranks(start: &Start, ranks: u32, interruption: &Interruption) -> Result<(String, Vec<ProbedRank>)> {
    preflight::reach_all(start, mpiexec::remote_shell(start), Medium::Mpi, hosts::REACH_LIMIT, None)?;
    let words = vec![this_process::executable()?.into(), "doctor".into(), "--probe".into()];
    let command = mpiexec::command(start, ranks, Threading::Single, words)?;
    let name = command.get_program().to_string_lossy().into_owned();
    // Signals end everything but the probe at once: its launcher and ranks must end first.
    interruption.start()?;
    let seen = probe(command, ranks, start.timeout, interruption);
    interruption.stop();
    Ok((name, seen?))
}

/// Returns the finding that a launcher belongs to another MPI than this program.
fn wrong_launcher(by: &str) -> Option<Finding> {
    let ours = mpiexec::is_of_this_mpi(by)?;
    (!ours).then(|| {
        Finding::of_mark(Mark::new(
            MarkCode::WrongLauncher,
            format!("{by} starts the ranks"),
            "ombx was built with another MPI, so each process is rank 0 of 1",
        ))
    })
}

fn oversubscribed(ranks: u32, place: &Place, cpus: u32) -> Finding {
    Finding::of_advice(trust::oversubscribed(&place.host, ranks as usize, cpus))
}

/// Returns the finding that a quota of CPU time is below the number of ranks of a host.
fn over_quota(ranks: u32, place: &Place) -> Option<Finding> {
    let quota = place.quota.filter(|quota| quota.is_below(ranks))?;
    Some(Finding::of_advice(trust::over_quota(&place.host, ranks as usize, quota)))
}

/// Default of `--timeout`: starting ranks on a slow cluster takes up to a minute.
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
        json!(ProbedRank { place: place_of_thread(), launcher, facts: machine::facts().clone() })
    )
}

/// Runs a launcher and returns its ranks. Fails if the launcher hangs, is interrupted or does not start all of them.
fn probe(
    command: Command,
    ranks: u32,
    limit: Option<Duration>,
    interruption: &Interruption,
) -> Result<Vec<ProbedRank>> {
    let program = command.get_program().to_string_lossy().into_owned();
    let limit = limit.unwrap_or(PROBE_LIMIT);
    let texts = finite_run::texts_of_launcher(command, limit, || interruption.has_arrived())?;
    let seen: Vec<ProbedRank> = texts.iter().flat_map(|text| text.lines()).filter_map(read_line).collect();
    if seen.len() == ranks as usize {
        return Ok(seen);
    }
    let said = finite_run::words(&texts, |line| !line.contains(PROBE_MARK));
    Err(Error::fabric(format!("{program} started {} of {ranks} ranks; {said}", seen.len())))
}

fn read_line(line: &str) -> Option<ProbedRank> {
    let (_, json) = line.split_once(PROBE_MARK)?;
    serde_json::from_str(json).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_a_rank_is_read_and_other_lines_are_not() {
        let rank = read_line(&format!("[1,0]<stdout>:{}", probe_line())).unwrap();
        assert_eq!((rank.place, &rank.facts), (place_of_thread(), machine::facts()));
        assert!(read_line("ombx-probe {").is_none() && read_line("hello").is_none());
    }

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    fn why_failed(script: &str, limit: Duration, signal: usize) -> String {
        probe(shell(script), 2, Some(limit), &Interruption::from_signal(signal)).err().unwrap().to_string()
    }

    #[test]
    fn a_launcher_that_hangs_or_fails_is_reported() {
        assert!(why_failed("sleep 90", Duration::from_millis(100), 0).contains("did not end"));
        let why = why_failed("echo no such host >&2; echo; echo bye >&2; exit 1", PROBE_LIMIT, 0);
        assert!(why.contains("started 0 of 2 ranks; it says: no such host .. bye"), "{why}");
        let why = why_failed(&format!("echo '{}'; echo no slot >&2", probe_line().trim()), PROBE_LIMIT, 0);
        assert!(why.ends_with("started 1 of 2 ranks; it says: no slot"), "{why}");
    }

    #[test]
    fn a_signal_ends_the_launcher() {
        let why = why_failed("sleep 90", PROBE_LIMIT, 2);
        assert!(why.contains("was interrupted"), "{why}");
    }
}
