//! What a rank does: connects to the others, measures, and ends the whole job on an error.

#[cfg_attr(
    not(any(feature = "mpi", feature = "sockets")),
    expect(dead_code, unused_imports, reason = "no rank of such a build has others to end")
)]
mod failure;
#[cfg(feature = "mpi")]
pub(crate) mod mpi;
mod sink;
#[cfg(feature = "sockets")]
pub(crate) mod sockets;

use std::{cell::Cell, ffi::OsString, fs::File, time::Duration};

use ombx_core::{
    benchmark::Medium,
    error::Result,
    measure::runner,
    system::{
        clock::{Clock, Since},
        host, watchdog,
    },
    team::{Alone, Fabric, Place, Team},
    unit::Rank,
};
use ombx_links::sweep;
use rustix::process::{Signal, set_parent_process_death_signal};

use self::sink::RankSink;
use crate::{
    arguments::argv,
    job::{self, Job, Work, selection},
    launch::detection,
    output::{Output, relay},
};

#[cfg(not(all(feature = "mpi", feature = "sockets")))]
use ombx_core::error::Error;

/// How many times longer a rank of the launching process may make no progress than a case.
const WATCHDOG_FACTOR: u32 = 4;

/// Measures as a rank. A rank of the launching process has one medium; a rank of the user's launcher uses one medium after the other.
pub(crate) fn run(job: &Job) -> Result<u8> {
    // Under the user's launcher the number of rows is unknown here, and time limits are the user's.
    let limited = job.role.kind.is_some() || job.start.timeout.is_some();
    let limit = if limited { job::job_time_limit(job.extent.time, job.start.timeout) } else { Duration::MAX };
    // The launching process ends its ranks first.
    let limit = if job.role.kind.is_some() { limit.saturating_add(job::AFTER_JOB) } else { limit };
    // Without a watchdog, the launching process has a time limit too.
    // The launching process ends a case that makes no progress earlier. Ranks of a user's launcher may wait for other benchmarks, but no
    // longer than the user says.
    let is_limited = job.role.kind.is_none() && job.start.timeout.is_some();
    let factor = if is_limited { 1 } else { WATCHDOG_FACTOR };
    let (timeout, ranks) = (job.start.timeout, detection::ranks_here().unwrap_or(1));
    let online = Place::here().online;
    let shared = u32::try_from(ranks.div_ceil(online.into())).unwrap_or(1);
    let shared = shared.max(host::processes_per_cpu(online));
    let silence = job.work.silence(timeout, shared).saturating_mul(factor);
    let _ = watchdog::start([job::start_time_limit(timeout).max(silence), silence], limit);
    let mut state = RankState::new(job)?;
    failure::plan(job);
    let works = match job.role.kind {
        None => of_media(&job.work),
        Some(kind) => vec![(kind.medium, job.work.of_kind(kind))],
    };
    #[cfg(feature = "sockets")]
    if job.role.kind.is_none() && works.iter().any(|(medium, _)| *medium == Medium::Sockets) {
        sockets::check(&job.start)?;
    }
    // MPI is finalized after the last medium: its launcher takes an earlier end of a rank for a failure.
    #[cfg(feature = "mpi")]
    let mut mpi = Vec::new();
    for (medium, work) in works {
        match medium {
            #[cfg(feature = "mpi")]
            Medium::Mpi => mpi.push(mpi::measure(&mut state, &work)?),
            #[cfg(feature = "sockets")]
            Medium::Sockets => sockets::measure(&mut state, &work)?,
            #[cfg(not(feature = "mpi"))]
            Medium::Mpi => return Err(Error::usage(crate::launch::no_mpi::NO_MPI)),
            #[cfg(not(feature = "sockets"))]
            Medium::Sockets => return Err(Error::usage(crate::launch::NO_SOCKETS)),
            Medium::Own => measure_alone(&mut state, &work)?,
        }
    }
    let code = state.finish()?;
    #[cfg(feature = "mpi")]
    drop(mpi);
    Ok(code)
}

/// Returns the work over each medium, in the order in which the benchmarks name the media. MPI can be initialized once, so ranks of the
/// user's launcher have the thread support that the most demanding benchmark needs.
fn of_media(work: &Work) -> Vec<(Medium, Work)> {
    let media = selection::each_once(work.kinds().iter().map(|kind| kind.medium));
    media.into_iter().map(|medium| (medium, work.over(medium))).collect()
}

struct RankState<'a> {
    job: &'a Job,
    /// Pipe to the launching process, until rank 0 has put it into its sink.
    pipe: Option<File>,
    sink: Option<RankSink>,
    code: u8,
}

impl RankState<'_> {
    fn new(job: &Job) -> Result<RankState<'_>> {
        let pipe = job.role.kind.map(|_| relay::claim_stdout()).transpose()?;
        Ok(RankState { job, pipe, sink: None, code: 0 })
    }

    /// Measures work on a team.
    fn measure(&mut self, team: &dyn Team, work: &Work) -> Result<()> {
        let clock = Clock::measured();
        let sink = match &mut self.sink {
            Some(sink) => sink,
            empty => empty.insert(match (team.rank(), self.pipe.take()) {
                (Rank(0), Some(pipe)) => RankSink::Relay(pipe, Cell::new(Since::now())),
                (Rank(0), None) => RankSink::Output(Box::new(Output::open(self.job)?)),
                _ => RankSink::None,
            }),
        };
        let argv = argv::as_typed(command_line());
        match work {
            Work::Benchmarks(parts) => {
                let mut parts = parts.clone();
                parts.iter_mut().for_each(|part| part.plan.rest = self.job.role.rest.clone());
                runner::run_all(team, &parts, &clock, sink, argv)?
            }
            Work::Links(task, plan) => sweep::run(team, task, plan, &clock, sink, argv)?,
        };
        if let RankSink::Output(output) = sink {
            self.code = self.code.max(output.exit_code(self.job.output.allow_skips));
        }
        Ok(())
    }

    /// Ends the output and returns the exit code.
    fn finish(self) -> Result<u8> {
        if let Some(RankSink::Output(mut output)) = self.sink {
            output.finish()?;
        }
        Ok(self.code)
    }
}

/// Returns the words of this rank's command line; a worker's are in its invitation.
fn command_line() -> Vec<OsString> {
    #[cfg(feature = "sockets")]
    if let Some(invitation) = crate::launch::coordinator::accepted() {
        return invitation.argv.iter().map(Into::into).collect();
    }
    argv::typed()
}

/// Measures in this process. If the user's launcher has started several processes, only the first measures.
fn measure_alone(state: &mut RankState<'_>, work: &Work) -> Result<()> {
    if state.job.role.kind.is_some() {
        // If the launching process dies it cannot end this one.
        let _ = set_parent_process_death_signal(Some(Signal::KILL));
    } else if !detection::is_first_process() {
        return Ok(());
    }
    let system = rustix::system::uname();
    let library = format!("{} {}", system.sysname().to_string_lossy(), system.release().to_string_lossy());
    state.measure(&Alone(Fabric { name: "sockets", library }), work)
}
