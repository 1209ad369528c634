//! The phases of a command, and how much time each took.

use std::{
    cell::{Cell, RefCell},
    time::Duration,
};

use ombx_host::since::Since;

/// Phases of a command, in the order of their first appearance. Launches repeat those from `Cores` to `Pauses`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Checking hosts, opening the result file, asking the library for its transports.
    Preparation,
    /// Measuring the latency between two cores.
    Cores,
    /// Starting the launcher, until a rank runs.
    Start,
    /// Initializing MPI or connections, the handshake of ranks, and facts about their hosts.
    Initialization,
    /// From the first record of the ranks to the last: all rows.
    Rows,
    /// Finalizing MPI, and the end of ranks and launcher.
    End,
    /// Estimates over the launches until now.
    Statistics,
    /// Waiting for the next launch.
    Pauses,
    /// The last estimates, tables and files.
    Output,
}

/// Names of the phases, in their order.
const PHASES: [&str; Phase::Output as usize + 1] =
    ["preparation", "cores", "start", "initialization", "rows", "end", "statistics", "pauses", "output"];

/// Time of each phase. The phases follow one another without gaps.
pub(crate) struct Timeline {
    since: Since,
    phase: Cell<Phase>,
    entered: Cell<Duration>,
    spent: RefCell<[Duration; PHASES.len()]>,
}

impl Timeline {
    /// Starts with the first phase.
    pub(crate) fn start() -> Timeline {
        Timeline {
            since: Since::now(),
            phase: Cell::new(Phase::Preparation),
            entered: Cell::new(Duration::ZERO),
            spent: RefCell::default(),
        }
    }

    /// Ends the current phase and begins another one.
    pub(crate) fn enter(&self, phase: Phase) {
        let now = self.since.elapsed();
        let last = self.phase.replace(phase);
        self.spent.borrow_mut()[last as usize] += now - self.entered.replace(now);
    }

    /// Notes that a rank runs.
    pub(crate) fn rank_started(&self) {
        // Ranks of other hosts may report later.
        if self.phase.get() == Phase::Start {
            self.enter(Phase::Initialization);
        }
    }

    /// Returns one line with the time of each phase until now, in seconds.
    pub(crate) fn line(&self) -> String {
        self.enter(self.phase.get());
        let spent = self.spent.borrow();
        let parts =
            PHASES.iter().zip(*spent).map(|(phase, time)| format!("{phase} {:.3}", time.as_secs_f64()));
        let parts = parts.collect::<Vec<_>>().join(", ");
        format!("time {:.3} s: {parts}", spent.iter().sum::<Duration>().as_secs_f64())
    }
}

#[cfg(test)]
mod timeline_tests {
    use crate::launch::timeline::*;

    #[test]
    fn phases_add_up_to_the_whole() {
        use Phase::{Cores, End, Initialization, Output, Pauses, Preparation, Rows, Start, Statistics};
        for phase in [Preparation, Cores, Start, Initialization, Rows, End, Statistics, Pauses, Output] {
            assert_eq!(PHASES[phase as usize], format!("{phase:?}").to_lowercase());
        }
        let timeline = Timeline::start();
        for phase in [Phase::Start, Phase::Rows, Phase::End, Phase::Start, Phase::Rows, Phase::Rows] {
            std::thread::sleep(Duration::from_millis(2));
            timeline.enter(phase);
        }
        let line = timeline.line();
        let spent = timeline.spent.borrow();
        assert!(spent[Phase::Start as usize] >= Duration::from_millis(4), "{line}");
        assert!(spent[Phase::Rows as usize] >= Duration::from_millis(4), "{line}");
        assert_eq!(spent[Phase::Output as usize], Duration::ZERO);
        assert_eq!(spent.iter().sum::<Duration>(), timeline.entered.get());
        assert!(line.starts_with("time ") && line.contains(" s: preparation "), "{line}");
    }
}
