//! What a rank does: connects to the others, measures, and ends the whole job on an error.

#[cfg_attr(
    not(any(feature = "mpi", feature = "sockets")),
    expect(dead_code, reason = "no rank of such a build has others to end")
)]
mod failure;
#[cfg(feature = "mpi")]
mod mpi;
mod sink;
#[cfg(feature = "sockets")]
pub mod sockets;

use std::{cell::Cell, fs::File, time::Duration};

use ombx_core::{
    benchmark::Medium,
    clock::Clock,
    measure::runner,
    team::{Alone, Fabric, Team},
};
use ombx_host::{environment::place_of_thread, host, since::Since, watchdog};
use ombx_record::{
    error::{Error, Result},
    order::each_once,
    unit::Rank,
};
use ombx_sweep::sweep;
use rustix::process::{Signal, set_parent_process_death_signal};

use crate::{
    job::{self, Job, Work, rank_job::RankJob},
    launch::detection,
    output::{Output, relay},
    rank::sink::RankSink,
    this_process,
};

#[cfg(feature = "sockets")]
use crate::launch::invitation::Invitation;

/// Time limit of the watchdog for a case, in multiples of that of the launching process, which therefore acts first.
const WATCHDOG_FACTOR: u32 = 4;

/// Tells the other ranks of the launcher about an error that this rank has found before it started MPI, and waits until rank 0 has printed it.
/// Without MPI there are none.
#[cfg_attr(not(feature = "mpi"), expect(unused_variables, reason = "only ranks of MPI share errors"))]
pub fn share(error: &Error) {
    #[cfg(feature = "mpi")]
    {
        mpi::share(error);
        mpi::let_rank_0_print();
    }
}

/// Measures as a rank that the launching process has started, by a launcher of MPI or alone.
pub(crate) fn run(job: RankJob) -> Result<u8> {
    let (mut state, work) = begin(&job)?;
    match job.kind.medium {
        // MPI is finalized after the output has ended.
        #[cfg(feature = "mpi")]
        Medium::Mpi => {
            let _mpi = mpi::measure(&mut state, &work)?;
            return state.finish();
        }
        #[cfg(not(feature = "mpi"))]
        Medium::Mpi => return Err(Error::usage(crate::launch::no_mpi::NO_MPI)),
        Medium::Sockets => return Err(Error::usage("ranks over sockets have an invitation: use ombx run")),
        Medium::Own => {
            // If the launching process dies it cannot end this one.
            let _ = set_parent_process_death_signal(Some(Signal::KILL));
            measure_alone(&mut state, &work)?;
        }
    }
    state.finish()
}

/// Measures as a rank over sockets that a coordinator has invited.
#[cfg(feature = "sockets")]
pub(crate) fn run_invited(invitation: &Invitation) -> Result<u8> {
    let (mut state, work) = begin(&invitation.job)?;
    sockets::measure_invited(&mut state, &work, invitation)?;
    state.finish()
}

/// Begins the part of a rank that the launching process has started. Returns what it measures.
fn begin(job: &RankJob) -> Result<(RankState<'static>, Work)> {
    let work = job.work();
    // The launching process ends its ranks first.
    let limit = job::job_time_limit(job.time, job.timeout).saturating_add(job::AFTER_JOB);
    watch(&work, job.timeout, limit, WATCHDOG_FACTOR);
    let (argv, pipe) = (job.argv.clone(), Some(relay::claim_stdout()?));
    Ok((RankState { argv, output_of: None, pipe, sink: None, code: 0 }, work))
}

/// Measures as a rank of the user's launcher, which uses one medium after the other.
pub(crate) fn run_under_launcher(job: &Job) -> Result<u8> {
    let timeout = job.start.timeout;
    // The number of rows is unknown here, and time limits are the user's. Ranks may wait for other benchmarks, but no longer than the user
    // says.
    let limit = timeout.map_or(Duration::MAX, |_| job::job_time_limit(job.extent.time, timeout));
    watch(&job.work, timeout, limit, if timeout.is_some() { 1 } else { WATCHDOG_FACTOR });
    let argv = this_process::as_typed();
    let mut state = RankState { argv, output_of: Some(job), pipe: None, sink: None, code: 0 };
    failure::plan(job);
    let works = of_media(&job.work);
    #[cfg(feature = "sockets")]
    if works.iter().any(|(medium, _)| *medium == Medium::Sockets) {
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
            Medium::Sockets => sockets::measure(&mut state, &work, &job.start)?,
            #[cfg(not(feature = "mpi"))]
            Medium::Mpi => return Err(Error::usage(crate::launch::no_mpi::NO_MPI)),
            #[cfg(not(feature = "sockets"))]
            Medium::Sockets => return Err(Error::usage(crate::launch::NO_SOCKETS)),
            // Only the first of several processes measures.
            Medium::Own if !detection::is_first_process() => {}
            Medium::Own => measure_alone(&mut state, &work)?,
        }
    }
    let code = state.finish()?;
    #[cfg(feature = "mpi")]
    drop(mpi);
    Ok(code)
}

/// Ends this process if it makes no progress for too long, which depends on the ranks that share a CPU, or after a limit.
fn watch(work: &Work, timeout: Option<Duration>, limit: Duration, factor: u32) {
    let (ranks, online) = (detection::ranks_here().unwrap_or(1), place_of_thread().online);
    let shared = u32::try_from(ranks.div_ceil(online.into())).unwrap_or(1);
    let silence = work.silence(timeout, shared.max(host::processes_per_cpu(online))).saturating_mul(factor);
    // Where no timer can be had, a launching process has a time limit too, and a launcher of the user its own.
    let _ = watchdog::start([job::start_time_limit(timeout).max(silence), silence], limit);
}

/// Returns the work over each medium, in the order in which the benchmarks name the media. MPI can be initialized once, so ranks of the
/// user's launcher have the thread support that the most demanding benchmark needs.
fn of_media(work: &Work) -> Vec<(Medium, Work)> {
    let media = each_once(work.kinds().iter().map(|kind| kind.medium));
    media.into_iter().map(|medium| (medium, work.over(medium))).collect()
}

struct RankState<'a> {
    /// Command line, for result files.
    argv: Vec<String>,
    /// Job whose output rank 0 writes, under the user's launcher; `None` if the launching process writes it.
    output_of: Option<&'a Job>,
    /// Pipe to the launching process, until rank 0 has put it into its sink.
    pipe: Option<File>,
    sink: Option<RankSink>,
    code: u8,
}

impl RankState<'_> {
    /// Measures work on a team.
    fn measure(&mut self, team: &dyn Team, work: &Work) -> Result<()> {
        let clock = Clock::measured();
        let sink = match &mut self.sink {
            Some(sink) => sink,
            empty => empty.insert(match (team.rank(), self.pipe.take(), self.output_of) {
                (Rank(0), Some(pipe), _) => RankSink::Relay(pipe, Cell::new(Since::now())),
                (Rank(0), None, Some(job)) => RankSink::Output(Box::new(Output::open(job)?)),
                _ => RankSink::None,
            }),
        };
        let argv = self.argv.clone();
        match work {
            Work::Benchmarks(parts) => runner::run_all(team, parts, &clock, sink, argv)?,
            Work::Links(task, plan) => sweep::run(team, task, plan, &clock, sink, argv)?,
        };
        if let (RankSink::Output(output), Some(job)) = (sink, self.output_of) {
            self.code = self.code.max(output.exit_code(job.output.allow_skips));
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

/// Measures in this process.
fn measure_alone(state: &mut RankState<'_>, work: &Work) -> Result<()> {
    let system = rustix::system::uname();
    let library = format!("{} {}", system.sysname().to_string_lossy(), system.release().to_string_lossy());
    state.measure(&Alone(Fabric { name: "sockets", library }), work)
}
