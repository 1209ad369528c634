//! Launching: starts the ranks of a job through a launcher and supervises them until all have ended.

#[cfg(feature = "sockets")]
pub mod coordinator;
pub(crate) mod core_to_core;
pub mod detection;
pub mod finite_run;
pub(crate) mod guard;
mod history;
pub mod hosts;
#[cfg(feature = "sockets")]
pub mod invitation;
mod job_state;
#[cfg(feature = "mpi")]
pub mod mpiexec;
#[cfg(not(feature = "mpi"))]
pub mod no_mpi;
mod orphans;
pub mod preflight;
mod repetition;
#[cfg(feature = "sockets")]
pub mod served;
mod shared_memory;
pub mod start;
pub(crate) mod supervision;
mod timeline;
#[cfg(feature = "mpi")]
pub(crate) mod transport;

use std::{
    ffi::OsString,
    process::{Command, Stdio},
    time::Duration,
};

use ombx_core::{benchmark::Medium, measure::plan::LaunchSettings};
use ombx_host::{environment::place_of_thread, host, remote_shell, signals::Interruption, since::Since};
use ombx_record::{
    error::{Error, Exit, Result},
    result::Launched,
};

#[cfg(feature = "io")]
use crate::job::directory::FilesOfJob;
#[cfg(not(feature = "mpi"))]
pub use crate::launch::no_mpi as mpiexec;
#[cfg(feature = "sockets")]
use crate::launch::served::Reserved;
use crate::{
    job::{self, Job, RankKind, Work, rank_job::RankJob},
    launch::{
        job_state::{Child, RanksEnd},
        preflight::RankHost,
        repetition::{Aftermath, Repetition, Restarts},
        start::Launcher,
        supervision::Supervision,
        timeline::{Phase, Timeline},
    },
    output::{Output, progress::Progress},
    stderr::printable,
    this_process,
};

/// Time within which each host must have started a rank, and what each rank adds to it.
const START: Duration = Duration::from_secs(30);
const START_PER_RANK: Duration = Duration::from_millis(10);

/// Error of a build without ranks over sockets.
#[cfg(not(feature = "sockets"))]
pub(crate) const NO_SOCKETS: &str =
    "this build of ombx has no sockets: build ombx-cli with the feature `sockets`";

/// A build without sockets reserves no server.
#[cfg(not(feature = "sockets"))]
type Reserved = std::convert::Infallible;

/// Name of the hidden command of a rank. Its job follows.
pub const RANK: &str = "rank";

/// Starts the ranks of a job, one kind after the other, as many times as the job says. Returns the worst exit code.
pub(crate) fn run(job: &Job) -> Result<u8> {
    let timeline = Timeline::start();
    let kinds = job.work.kinds();
    let hosts = check(job, &kinds)?;
    // The server is reserved until this function returns.
    #[cfg(feature = "sockets")]
    let reserved = served::reserve(&job.start)?;
    #[cfg(not(feature = "sockets"))]
    let reserved: Option<Reserved> = None;
    let mut output = Output::open(job)?;
    #[cfg(feature = "io")]
    let files = FilesOfJob::new(job);
    let limit = job::job_time_limit(job.extent.time, job.start.timeout);
    let mut worst: Result<u8> = Ok(0);
    // A sweep over links compares links of the same moment, and a pipeline or other hosts depend on more than this host.
    let is_here = job.start.hosts.is_empty()
        && job.start.hostfile.is_none()
        && matches!(job.work, Work::Benchmarks(_))
        && kinds.iter().any(|kind| kind.medium != Medium::Own);
    let interruption = Interruption::new()?;
    let since = Since::now();
    #[cfg(feature = "mpi")]
    output.set_transport(transport::ask(job, job.start.timeout, || interruption.has_arrived()));
    let mut repetition = Repetition::new(job, since.elapsed());
    let mut restarts = Restarts::new(job);
    let progress = Progress::new(job.extent.rows, &job.output);
    'launches: loop {
        let mut settings = job.settings.clone();
        repetition.begin(&mut settings);
        if is_here {
            timeline.enter(Phase::Cores);
            settings.core_to_core_ns = core_to_core::latency_ns().map(|ns| (ns * 1e3).round() / 1e3);
        }
        if !job.launches.is_one() {
            progress.launch(repetition.position());
        }
        // New ranks follow those that a case has ended.
        let (mut at, mut is_first) = (0, true);
        while let Some(kind) = kinds.get(at) {
            // A signal that arrives when nobody supervises ranks.
            if let Some(code) = interruption.exit_code() {
                progress.suspend(|| stderr_line!("ombx: interrupted; the launches that are complete count"));
                worst = Ok(code);
                break 'launches;
            }
            if is_first {
                restarts.begin();
            }
            output.next_start(kinds[at + 1..].iter().any(|other| other.medium == kind.medium));
            settings.rest = restarts.rest();
            let mut command = command(job, *kind, &settings, reserved.as_ref())?;
            // Hydra and Open MPI end the job after this time even if this process is gone. This process ends it earlier.
            let late = limit.saturating_add(job::AFTER_JOB).as_secs().min(1 << 30);
            command.env("MPIEXEC_TIMEOUT", late.to_string());
            // Ranks over sockets and pipelines reach other hosts through this program.
            if let Some(ssh) = &job.start.ssh {
                command.env(remote_shell::VARIABLE, ssh);
            }
            #[cfg(feature = "io")]
            files.name(&mut command);
            if job.output.verbose {
                stderr_line!("ombx: starting {command:?}");
            }
            let child = if kind.medium == Medium::Own { Child::Ombx } else { Child::Launcher };
            let time_left = repetition.time_left(limit);
            let supervision = Supervision {
                args: &job.output,
                hosts: &hosts[at],
                launcher: &job.start.launcher,
                ranks_here: job.start.are_all_here().then_some(job.extent.ranks),
                start_limit: start_limit(job),
                limit,
                time_left,
                row_limit: job.work.row_limit(),
                silence: silence(job),
                unreachable: &|| preflight::unreachable(job, kind.medium),
                output: &mut output,
                arrived: &mut restarts.arrived,
                progress: &progress,
                timeline: &timeline,
            };
            timeline.enter(Phase::Start);
            match supervision.run(command, child) {
                Ok(RanksEnd::Complete(code)) => {
                    restarts.completed();
                    worst = worst.map(|worst| code.max(worst));
                    (at, is_first) = (at + 1, true);
                }
                Ok(RanksEnd::Early(early)) => {
                    is_first = false;
                    let Aftermath { rows, sentence, ends } = restarts.add(early);
                    let written = output.early_end(rows);
                    if let Some(error) = written
                        .err()
                        .or_else(|| ends.then(|| Error::fabric(format!("{sentence}; {}", output.kept()))))
                    {
                        worst = Err(error);
                        break 'launches;
                    }
                    progress.suspend(|| stderr_line!("ombx: {}", printable(&sentence)));
                }
                Ok(RanksEnd::Stopped(code)) => {
                    worst = worst.map(|worst| code.max(worst));
                    break 'launches;
                }
                Err(error) => {
                    worst = Err(error);
                    break 'launches;
                }
            }
        }
        timeline.enter(Phase::Cores);
        let core_to_core_ns = if is_here { core_to_core::latency_ns() } else { None };
        timeline.enter(Phase::Statistics);
        let launched = Launched { core_to_core_ns, elapsed_s: repetition.elapsed_s(), ended: None };
        output.after_launch(launched);
        let ended = repetition.launched(output.cases(), &progress);
        output.launched(Launched { ended, ..launched })?;
        if ended.is_some() {
            break;
        }
        restarts.leave_out(repetition.left_out());
        repetition.pause(&timeline);
    }
    progress.done();
    timeline.enter(Phase::Output);
    output.finish()?;
    if job.output.verbose {
        stderr_line!("ombx: {}", timeline.line());
    }
    if restarts.ends > 0 {
        let times = if restarts.ends == 1 { "once".into() } else { format!("{} times", restarts.ends) };
        if worst.is_ok() {
            stderr_line!("ombx: ranks ended early {times}; {}", output.kept());
        }
        worst = worst.map(|worst| worst.max(Exit::Fabric.code()));
    }
    // A row that failed says more than a precision that was missed.
    worst.map(|worst| if worst == 0 && output.misses_precision() { Exit::Imprecise.code() } else { worst })
}

/// Returns the time within which each host must have started a rank. A user with slow hosts gives a long limit for the whole job.
fn start_limit(job: &Job) -> Duration {
    let usual = START.saturating_add(START_PER_RANK * job.extent.ranks);
    job.start.timeout.map_or(usual, |timeout| usual.max(timeout / 4))
}

/// Returns how long a case may make no progress. Ranks that share cores, with each other or with other programs, take longer.
fn silence(job: &Job) -> Duration {
    let ranks = if job.start.are_all_here() { job.extent.ranks } else { 1 };
    let cpus = place_of_thread().usable_cpus();
    job.work.silence(job.start.timeout, ranks.div_ceil(cpus).max(host::processes_per_cpu(cpus)))
}

/// Finds everything that prevents a start before a result file is touched. Returns the hosts that will have ranks, by kind of ranks.
fn check(job: &Job, kinds: &[RankKind]) -> Result<Vec<Vec<RankHost>>> {
    let all = |medium| kinds.iter().all(|kind| kind.medium == medium);
    if matches!(job.start.launcher, Launcher::Mpiexec | Launcher::Srun | Launcher::Command(_))
        && all(Medium::Sockets)
    {
        return Err(Error::usage(
            "--launcher starts MPI ranks, but these ranks connect by sockets: leave it out, or put the launcher before ombx and \
             give --rendezvous",
        ));
    }
    if job.start.ranks.is_some() && all(Medium::Own) {
        return Err(Error::usage("-n starts ranks, which a pipeline does not have: give --nodes"));
    }
    for kind in kinds {
        preflight::check(&job.start, job.extent.ranks, kind.medium)?;
        preflight::check_limits(&job.start, job.extent.ranks, kind.medium)?;
        command(job, *kind, &job.settings, None)?;
    }
    if !all(Medium::Own) {
        preflight::note_quota(&job.start, job.extent.ranks);
    }
    let mut hosts: Vec<Vec<RankHost>> = Vec::new();
    for (at, kind) in kinds.iter().enumerate() {
        let reached = kinds[..at].iter().position(|other| other.medium == kind.medium);
        hosts.push(match reached {
            Some(at) => hosts[at].clone(),
            None => preflight::reach(job, kind.medium)?,
        });
    }
    Ok(hosts)
}

/// Returns the command that starts the ranks of one kind. A job may have reserved a server that runs some of them.
#[cfg_attr(not(feature = "sockets"), expect(unused_variables, reason = "such a build has no servers"))]
fn command(
    job: &Job,
    kind: RankKind,
    settings: &LaunchSettings,
    reserved: Option<&Reserved>,
) -> Result<Command> {
    let of_ranks = job.of_ranks(kind, settings)?;
    match kind.medium {
        Medium::Mpi => {
            mpiexec::command(&job.start, job.extent.ranks, kind.threading, rank_words(of_ranks)?.into())
        }
        #[cfg(feature = "sockets")]
        Medium::Sockets => coordinator::command(job, of_ranks, reserved),
        #[cfg(not(feature = "sockets"))]
        Medium::Sockets => Err(Error::usage(NO_SOCKETS)),
        Medium::Own if job.start.hostfile.is_some() => Err(Error::usage(
            "--hostfile is for ranks, which a pipeline does not have: give the hosts of its nodes by --hosts",
        )),
        Medium::Own => {
            let [program, rank, job] = rank_words(of_ranks)?;
            let mut command = Command::new(program);
            command.args([rank, job]).stdin(Stdio::null());
            Ok(command)
        }
    }
}

/// Returns the command line of a rank, the executable first.
fn rank_words(of_ranks: RankJob) -> Result<[OsString; 3]> {
    Ok([this_process::executable()?.into(), RANK.into(), of_ranks.word()?])
}
