//! How many launches a comparison takes.

use std::{fmt, time::Duration};

use ombx_results::estimate::{LEAST_LONG_LAUNCHES as LEAST_TURNS, LOOKS};

/// Maximum number of launches per side.
pub(super) const MOST_LAUNCHES: u32 = LOOKS[LOOKS.len() - 1];
/// Time for the fewest launches of both sides, even if it exceeds the budget.
const LEAST_TIME: Duration = Duration::from_secs(180);

/// Decides after each turn whether another one follows.
#[derive(Debug)]
pub(super) struct Schedule {
    fixed: Option<u32>,
    budget: Duration,
    decided: bool,
}

impl Schedule {
    pub(super) fn new(fixed: Option<u32>, budget: Duration) -> Schedule {
        Schedule { fixed, budget, decided: false }
    }

    /// Returns whether `turns` turns, which took this time, are enough. Calls `decided` only at a look.
    pub(super) fn ends(&mut self, turns: u32, spent: Duration, decided: impl FnOnce() -> bool) -> bool {
        if let Some(fixed) = self.fixed {
            return turns >= fixed;
        }
        if LOOKS.contains(&turns) {
            let before = std::mem::replace(&mut self.decided, decided());
            if turns >= MOST_LAUNCHES || (before && self.decided) {
                return true;
            }
        }
        let each = spent / turns;
        let least = each * LEAST_TURNS;
        let budget = if least <= LEAST_TIME { self.budget.max(least) } else { self.budget };
        let spent_soon = spent + each > budget;
        if spent_soon && turns < LEAST_TURNS {
            stderr_line!(
                "ombx: {} took {:.0} s and no more fit into the budget: give a longer --budget",
                if turns == 1 { "1 turn".to_owned() } else { format!("{turns} turns") },
                spent.as_secs_f64()
            );
        }
        spent_soon
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.fixed {
            Some(1) => f.write_str("1 turn of both sides"),
            Some(fixed) => write!(f, "{fixed} turns of both sides"),
            None => write!(
                f,
                "{LEAST_TURNS} to {MOST_LAUNCHES} turns of both sides, until every case is decided or {} s have passed",
                self.budget.as_secs_f64()
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of turns of this many milliseconds each, if cases are decided from a number of turns on.
    fn turns(fixed: Option<u32>, budget_s: u64, each_ms: u64, decided_from: u32) -> u32 {
        let mut schedule = Schedule::new(fixed, Duration::from_secs(budget_s));
        let mut ends = |turns: u32| {
            schedule.ends(turns, Duration::from_millis(each_ms) * turns, || turns >= decided_from)
        };
        (1..100).find(|turns| ends(*turns)).unwrap()
    }

    #[test]
    fn turns_end_when_two_looks_agree_or_time_is_spent() {
        assert_eq!(turns(None, 60, 100, 1), 9);
        assert_eq!(turns(None, 60, 100, 10), 15);
        assert_eq!(turns(None, 60, 100, 1000), 30);
        assert_eq!(turns(Some(2), 60, 100, 1), 2);
        // Five seconds each: ten fit into 50 s.
        assert_eq!(turns(None, 50, 5000, 1000), 10);
        // Twenty seconds each: six take two minutes.
        assert_eq!(turns(None, 60, 20_000, 1000), 6);
        // A minute each: six would take six minutes.
        assert_eq!(turns(None, 130, 60_000, 1000), 2);
        assert_eq!(turns(None, 10, 60_000, 1000), 1);
    }
}
