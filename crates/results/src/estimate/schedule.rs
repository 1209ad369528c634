//! Rule that ends a run of several launches.

use std::time::Duration;

/// Numbers of launches after which the interval is looked at.
pub const LOOKS: [u32; 7] = [6, 9, 12, 15, 20, 25, 30];
/// A launch that takes more than this part of the budget extends it to [`LEAST_LAUNCHES`] launches.
const LONG_LAUNCH: u32 = 6;
/// Launches that a 95 % interval needs.
pub const LEAST_LAUNCHES: u32 = LOOKS[0];
/// Time over which launches are spread enough that a single look shows that the precision is out of reach. Six launches of few rows take
/// less, so that those runs have nine.
const SPREAD: Duration = Duration::from_secs(4);
/// Maximum time of a run whose launches are long.
const LONGEST_EXTENSION: Duration = Duration::from_secs(180);

/// Why no more launches are started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The interval of every row had the requested precision at two looks in a row.
    Precise,
    /// The scatter of some row was too large to reach the precision within the maximum number of launches: at two looks in a row, or
    /// at one after launches of at least 4 s.
    OutOfReach,
    /// The maximum number of launches.
    Most,
    /// Another launch would exceed the budget.
    Budget,
}

/// Decides after each launch whether another one is worth its time.
#[derive(Debug, Clone)]
pub struct Schedule {
    precision: f64,
    budget: Duration,
    enough: Duration,
    precise: u32,
    out_of_reach: u32,
}

impl Schedule {
    /// Creates a schedule for a precision, as a fraction of the median, and a time for all launches. From the second look on, the
    /// run has only the time `enough`.
    pub fn new(precision: f64, budget: Duration, enough: Duration) -> Schedule {
        Schedule { precision, budget, enough, precise: 0, out_of_reach: 0 }
    }

    /// Returns why the run ends after `done` launches, or `None` if another launch follows. Call it once after each launch.
    ///
    /// `reached` is the largest half width of all rows' intervals, as a fraction of the median. `spent` is the time of all launches.
    pub fn ending(&mut self, done: u32, reached: Option<f64>, spent: Duration) -> Option<Ending> {
        let most = LOOKS[LOOKS.len() - 1];
        if LOOKS.contains(&done) {
            let reached = reached.unwrap_or(f64::INFINITY);
            let at_most = reached * (f64::from(done) / f64::from(most)).sqrt();
            let next = |count: u32, condition: bool| if condition { count + 1 } else { 0 };
            self.precise = next(self.precise, reached <= self.precision);
            self.out_of_reach = next(self.out_of_reach, at_most > self.precision);
            if self.precise >= 2 {
                return Some(Ending::Precise);
            }
            if self.out_of_reach >= if spent >= SPREAD { 1 } else { 2 } {
                return Some(Ending::OutOfReach);
            }
        }
        if done >= most {
            return Some(Ending::Most);
        }
        let each = spent / done.max(1);
        let soon = spent + each;
        (soon > self.limit(each) || done >= LOOKS[1] && soon > self.enough).then_some(Ending::Budget)
    }

    /// Returns the launches that are expected, for a run that has `done` launches of `each`: those up to the earliest end.
    pub fn expected(&self, done: u32, each: Duration) -> u32 {
        let affordable = (self.limit(each).as_secs_f64() / each.as_secs_f64().max(1e-3)) as u32;
        // A short run does not end before its second look.
        let least = if each * LOOKS[0] < SPREAD { LOOKS[1] } else { LOOKS[0] };
        let look = LOOKS.into_iter().find(|look| *look > done && *look >= least).unwrap_or(done);
        look.min(affordable.max(done))
    }

    /// Returns the time for all launches, if each takes `each`.
    fn limit(&self, each: Duration) -> Duration {
        // `each` is rounded down to nanoseconds.
        let six = (each + Duration::from_nanos(1)) * LEAST_LAUNCHES;
        match each > self.budget / LONG_LAUNCH && six <= LONGEST_EXTENSION {
            true => self.budget.max(six),
            false => self.budget,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Returns the number of launches of a run whose precision after n launches is `reached(n)`, and why it ended.
    fn run(reached: impl Fn(u32) -> f64, each: Duration) -> (u32, Ending) {
        let mut schedule = Schedule::new(0.02, 30 * SECOND, 30 * SECOND);
        for done in 1.. {
            if let Some(ending) = schedule.ending(done, Some(reached(done)), each * done) {
                return (done, ending);
            }
        }
        unreachable!()
    }

    #[test]
    fn a_run_ends_when_it_is_precise_at_two_looks_in_a_row() {
        assert_eq!(run(|_| 0.01, SECOND / 10), (9, Ending::Precise));
        // Precise at the first look alone.
        let once = |done: u32| if done == 6 { 0.01 } else { 0.021 };
        assert_eq!(run(once, SECOND / 10), (30, Ending::Most));
    }

    #[test]
    fn a_run_ends_when_the_precision_is_out_of_reach() {
        assert_eq!(run(|_| 0.1, SECOND / 10), (9, Ending::OutOfReach));
        assert_eq!(run(|_| 0.1, SECOND), (6, Ending::OutOfReach));
        // At a single look only.
        assert_eq!(run(|done| if done == 6 { 0.1 } else { 0.021 }, SECOND / 10), (30, Ending::Most));
        // 0.07 / sqrt(n) reaches 0.02 before 30 launches.
        assert_eq!(run(|done| 0.07 / f64::from(done).sqrt(), SECOND / 10), (20, Ending::Precise));
    }

    #[test]
    fn a_run_ends_within_its_budget() {
        assert_eq!(run(|_| 0.021, 2 * SECOND), (15, Ending::Budget));
        // Long launches: six, within three minutes.
        assert_eq!(run(|_| 0.03, 10 * SECOND), (6, Ending::Budget));
        let mut schedule = Schedule::new(0.02, 30 * SECOND, 30 * SECOND);
        assert_eq!(schedule.ending(5, None, 50 * SECOND + Duration::from_nanos(3)), None);
        // Nine launches, although each takes more than a ninth of what is enough.
        let mut schedule = Schedule::new(0.02, 30 * SECOND, 3 * SECOND);
        let end = (1..).find(|done| schedule.ending(*done, Some(0.021), SECOND * *done).is_some());
        assert_eq!(end, Some(9));
        // Six would take more than three minutes: as many as fit into the budget.
        assert_eq!(run(|_| 0.1, 50 * SECOND), (1, Ending::Budget));
        assert_eq!(run(|_| 0.1, 400 * SECOND), (1, Ending::Budget));
    }
}
