//! Being a rank: joins the others, runs the benchmarks, and makes sure that an error here ends the job everywhere.

#[cfg(feature = "sockets")]
mod coordinator;
#[cfg(feature = "mpi")]
mod crew;
#[cfg(all(feature = "sockets", any(test, fuzzing)))]
mod fuzz;
#[cfg(feature = "sockets")]
mod hosts;
#[cfg(feature = "sockets")]
mod invitation;
#[cfg(feature = "mpi")]
mod mpi;
mod own;
#[cfg(feature = "sockets")]
mod rendezvous;
#[cfg(feature = "sockets")]
mod worker;

use std::{fs::File, time::Duration};

use ombx_core::{
    benchmark::entry::Medium,
    error::Result,
    measure::{runner, sink::Sink},
    system::clock::Clock,
    team::Team,
    unit::Rank,
};
use ombx_links::sweep;

#[cfg(all(feature = "sockets", any(test, fuzzing)))]
pub use self::fuzz::hosts as fuzz;
#[cfg(feature = "sockets")]
pub(crate) use self::{
    coordinator::{check, coordinate},
    invitation::invited_argv,
    worker::work,
};
use crate::{
    argv, deadline,
    job::{Job, Work},
    output::{self, Output, RelaySink, Silent},
    watchdog,
};

/// Is a rank of a job: under a process of ours for its one medium, under another launcher for one medium after the other.
pub(crate) fn be_a_rank(job: &Job<'_>) -> Result<u8> {
    // Under a launcher of the user's, how many rows there are is not known yet, and the user's time limit is theirs.
    let known = job.output.relay.is_some() || job.start.timeout.is_some();
    let whole = deadline::of_job(job.extent.time, job.start.timeout);
    let whole = if known { whole.saturating_add(deadline::BEYOND) } else { Duration::MAX };
    watchdog::guard(job.work.silence(job.start.timeout), whole);
    let mut stage = Stage { job, pipe: None, sink: None, code: 0 };
    stage.pipe = job.output.relay.map(|_| output::claim_stdout()).transpose()?;
    let parts = match (job.output.relay, invited_argv()) {
        (None, _) => job.parts(),
        _ if job.output.alone => vec![job.part(Medium::Own)],
        (Some(_), Some(_)) => vec![job.part(Medium::Sockets)],
        (Some(_), None) => vec![job.part(Medium::Mpi)],
    };
    if job.output.relay.is_none() {
        parts.iter().filter(|part| part.medium() == Medium::Sockets).try_for_each(check)?;
    }
    // MPI stays until the last of them has ended: a launcher of its takes an early end for a failure.
    let mut held = Vec::new();
    for part in &parts {
        match part.medium() {
            Medium::Mpi => held.push(mpi_part(&mut stage, part)?),
            Medium::Sockets => sockets_part(&mut stage, part)?,
            Medium::Own => own::take_part(&mut stage, part)?,
        }
    }
    if let Some(Kept::Output(output)) = &mut stage.sink {
        output.finish()?;
    }
    drop(held);
    Ok(stage.code)
}

#[cfg(feature = "mpi")]
fn mpi_part(stage: &mut Stage<'_>, part: &Job<'_>) -> Result<ombx_mpi::Mpi> {
    mpi::take_part(stage, part)
}

#[cfg(not(feature = "mpi"))]
fn mpi_part(_: &mut Stage<'_>, _: &Job<'_>) -> Result<()> {
    Err(ombx_core::error::Error::usage("this build has no MPI"))
}

#[cfg(feature = "sockets")]
fn sockets_part(stage: &mut Stage<'_>, part: &Job<'_>) -> Result<()> {
    worker::take_part(stage, part)
}

#[cfg(not(feature = "sockets"))]
mod without_sockets {
    use ombx_core::{
        benchmark::registry::Registry,
        error::{Error, Result},
    };

    use super::Stage;
    use crate::job::Job;

    fn none<T>() -> Result<T> {
        Err(Error::usage("this build has no ranks that are connected by sockets"))
    }

    pub(crate) fn sockets_part(_: &mut Stage<'_>, _: &Job<'_>) -> Result<()> {
        none()
    }

    pub(crate) fn check(_: &Job<'_>) -> Result<()> {
        none()
    }

    pub(crate) fn coordinate(_: &Job<'_>) -> Result<u8> {
        none()
    }

    pub(crate) fn work(_: &Registry) -> Result<u8> {
        none()
    }

    pub(crate) fn invited_argv() -> Option<Vec<String>> {
        None
    }
}
#[cfg(not(feature = "sockets"))]
use self::without_sockets::sockets_part;
#[cfg(not(feature = "sockets"))]
pub(crate) use self::without_sockets::{check, coordinate, invited_argv, work};

/// Where the rows of a rank go, over all parts of its job.
struct Stage<'a> {
    job: &'a Job<'a>,
    pipe: Option<File>,
    sink: Option<Kept>,
    code: u8,
}

enum Kept {
    Output(Box<Output>),
    Other(Box<dyn Sink>),
}

impl Stage<'_> {
    /// Measures a part of the job on a team.
    fn measure(&mut self, team: &dyn Team, part: &Job<'_>) -> Result<()> {
        let (job, clock) = (self.job, Clock::measured());
        let sink = match &mut self.sink {
            Some(sink) => sink,
            empty => empty.insert(match (team.rank(), self.pipe.take()) {
                (Rank(0), Some(pipe)) => Kept::Other(Box::new(RelaySink { pipe })),
                (Rank(0), None) => Kept::Output(Box::new(Output::open(job)?)),
                _ => Kept::Other(Box::new(Silent)),
            }),
        };
        let sink: &mut dyn Sink = match sink {
            Kept::Output(output) => &mut **output,
            Kept::Other(other) => &mut **other,
        };
        let argv = argv::shown();
        let tally = match &part.work {
            Work::Benchmarks(parts) => runner::run_all(team, parts, &clock, sink, argv)?,
            Work::Links(task, plan) => sweep::run(team, task, plan, &clock, sink, argv)?,
        };
        if team.rank() == Rank(0) && job.output.relay.is_none() {
            self.code = self.code.max(tally.exit_code(job.output.allow_skips));
        }
        Ok(())
    }
}
