//! Being a rank: starts the fabric, runs the benchmarks, and makes sure that an error here ends the job everywhere.

#[cfg(feature = "mpi")]
pub(crate) use self::mpi::be_a_rank;

#[cfg(not(feature = "mpi"))]
pub(crate) fn be_a_rank(_: &crate::job::Job<'_>) -> ombx_core::error::Result<u8> {
    Err(ombx_core::error::Error::usage("this build has no benchmarks that need ranks"))
}

#[cfg(feature = "mpi")]
mod mpi {
    use std::{fs::File, time::Duration};

    use ombx_core::{
        clock::Clock,
        engine,
        error::{Error, Result},
        links, runner,
        sink::Sink,
        team::Team,
        unit::Rank,
    };
    use ombx_mpi::Mpi;

    use crate::{
        deadline,
        job::{Job, Work},
        launch,
        output::{self, Output, RelaySink, Silent},
        watchdog,
    };

    /// An error that all ranks have is told by the first; the others give it this long.
    const FIRST_SPEAKS: Duration = Duration::from_millis(300);

    pub(crate) fn be_a_rank(job: &Job<'_>) -> Result<u8> {
        watchdog::guard(deadline::of_silence(&job.plan, job.start.timeout));
        let pipe = job.output.relay.map(|_| output::claim_stdout()).transpose()?;
        Mpi::abort_on_panic();
        let mpi = Mpi::start(job.work.threading())?;
        let team = mpi.team();
        launch::detect::refuse_singletons(team.size())?;
        let clock = Clock::measured();
        match measure(job, team, &clock, pipe) {
            Ok(code) => Ok(code),
            Err(error) => fail(team, &error),
        }
    }

    fn measure(job: &Job<'_>, team: &dyn Team, clock: &Clock, pipe: Option<File>) -> Result<u8> {
        let mut sink: Box<dyn Sink> = match (team.rank(), job.output.relay.zip(pipe)) {
            (Rank(0), Some((relay, pipe))) => Box::new(RelaySink { relay, pipe }),
            (Rank(0), None) => Box::new(Output::open(job.output, &job.work)?),
            _ => Box::new(Silent),
        };
        let argv = launch::shown_argv();
        let tally = match &job.work {
            Work::Benchmarks(choices) => runner::run_all(team, choices, &job.plan, clock, &mut *sink, argv)?,
            Work::Links(task) => links::run(team, task, &job.plan, clock, &mut *sink, argv)?,
        };
        let leads = team.rank() == Rank(0) && job.output.relay.is_none();
        Ok(if leads { tally.exit_code(job.output.allow_skips) } else { 0 })
    }

    fn fail(team: &dyn Team, error: &Error) -> ! {
        if team.rank() != Rank(0) {
            std::thread::sleep(FIRST_SPEAKS);
        }
        eprintln!("ombx: rank {} on {}: {error}", team.rank(), ombx_core::env::hostname());
        engine::give_up(team, error)
    }
}
