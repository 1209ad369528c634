//! State of a rank over all media of its job: where its rows go, and its exit code.

use std::{cell::Cell, ffi::OsString, fs::File};

use ombx_core::{
    error::Result,
    measure::runner,
    system::clock::{Clock, Since},
    team::Team,
    unit::Rank,
};
use ombx_links::sweep;

use super::sink::RankSink;
use crate::{
    arguments::argv,
    job::{Job, Work},
    output::{Output, relay},
};

pub(super) struct RankState<'a> {
    pub(super) job: &'a Job,
    /// Pipe to the launching process, until rank 0 has put it into its sink.
    pub(super) pipe: Option<File>,
    sink: Option<RankSink>,
    code: u8,
}

impl RankState<'_> {
    pub(super) fn new(job: &Job) -> Result<RankState<'_>> {
        let pipe = job.role.relay.map(|_| relay::claim_stdout()).transpose()?;
        Ok(RankState { job, pipe, sink: None, code: 0 })
    }

    /// Measures work on a team.
    pub(super) fn measure(&mut self, team: &dyn Team, work: &Work) -> Result<()> {
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
                let rest = self.job.role.rest.clone().unwrap_or_default();
                parts.iter_mut().for_each(|part| part.plan.rest = rest.clone());
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
    pub(super) fn finish(self) -> Result<u8> {
        if let Some(RankSink::Output(mut output)) = self.sink {
            output.finish()?;
        }
        Ok(self.code)
    }
}

/// Returns the words of this rank's command line; a worker's are in its invitation.
fn command_line() -> Vec<OsString> {
    #[cfg(feature = "sockets")]
    if let Some(invitation) = crate::launch::invitation::accepted() {
        return invitation.argv.iter().map(Into::into).collect();
    }
    argv::typed()
}
