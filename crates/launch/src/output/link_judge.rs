//! Verdict on the links of a job at the end of its last launch, and what is confirmed to be slow before.

use std::collections::BTreeSet;

use ombx_links::verdict::{FailOn, LinkSweep};
use ombx_record::{
    error::Exit,
    event::Event,
    link::RETEST,
    result::{Measurement, RunOutcome, Tally},
    verdict::{Component, Conclusion, Verdict},
};

use crate::stderr;

/// Links of a sweep and what the user demands of them.
#[derive(Default)]
pub(super) struct LinkJudge {
    pub(super) sweep: LinkSweep,
    pub(super) fail_on: FailOn,
    /// Whether the screen shows the verdict. Otherwise it goes to standard error.
    pub(super) is_shown: bool,
    /// Whether the exit code is that of a monitoring plugin.
    pub(super) is_monitored: bool,
    /// Whether slow parts are printed to standard error before the end.
    pub(super) is_interim: bool,
    /// What was printed before the end.
    pub(super) named: BTreeSet<Component>,
    /// Whether the last row is of a link that was measured again.
    pub(super) is_again: bool,
    /// Rows of all launches.
    pub(super) tally: Tally,
    /// Verdict on all launches; `None` before the last one has ended.
    pub(super) verdict: Option<Verdict>,
}

impl LinkJudge {
    /// Takes an event. Returns the verdict at the end of the last launch, if it is complete.
    pub(super) fn event(&mut self, event: &Event<'_>) -> Option<Verdict> {
        match event {
            Event::Run(run) => self.sweep.begin(run),
            Event::Row(row) => self.add(row),
            Event::Round(round) => {
                if self.is_again {
                    self.name_slow_parts();
                }
                self.tally.cases += round.len() as u64;
                self.sweep.add_round(round);
            }
            Event::Grown { grown } => self.sweep.add_grown(grown),
            Event::End { outcome: RunOutcome::Complete, .. } if !self.sweep.is_last() => {
                self.name_slow_parts()
            }
            Event::End { outcome: RunOutcome::Complete, .. } if self.sweep.is_last() => {
                let verdict = self.sweep.verdict();
                if !self.is_shown {
                    for line in verdict.lines() {
                        note_line!("ombx: {}", stderr::printable(&line));
                    }
                }
                self.verdict = Some(verdict.clone());
                return Some(verdict);
            }
            _ => {}
        }
        None
    }

    fn add(&mut self, row: &Measurement) {
        let was_again = std::mem::replace(&mut self.is_again, row.axes.contains_key(RETEST));
        if was_again && !self.is_again {
            self.name_slow_parts();
        }
        self.tally.add(row);
        self.sweep.add(row);
    }

    /// Prints what is confirmed to be slow and was not printed before.
    fn name_slow_parts(&mut self) {
        self.is_again = false;
        if !self.is_interim {
            return;
        }
        for slow in self.sweep.slow_so_far() {
            let sentence = slow.sentence(&self.sweep.hosts);
            if self.named.insert(slow.component) {
                note_line!("ombx: confirmed while the sweep goes on: {}", stderr::printable(&sentence));
            }
        }
    }

    pub(super) fn exit_code(&self) -> u8 {
        match (self.fail_on, self.verdict.as_ref().map(|verdict| verdict.conclusion)) {
            (FailOn::Nothing, _) | (_, None | Some(Conclusion::Clear)) => 0,
            (_, Some(Conclusion::None)) => Exit::NoVerdict.code(),
            (_, Some(Conclusion::Errors)) => Exit::Errors.code(),
            (_, Some(Conclusion::Slow | Conclusion::Unsteady | Conclusion::Shared)) => Exit::Slow.code(),
        }
    }
}
