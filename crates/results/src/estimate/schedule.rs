//! Rule that ends a run of several launches.

use std::time::Duration;

use ombx_core::{result::Measurement, stats::median};
use serde::{Deserialize, Serialize};

use crate::estimate::cases::Cases;

/// Numbers of launches in one state of the machine after which the interval is looked at.
pub const LOOKS: [u32; 7] = [6, 9, 12, 15, 20, 25, 30];
/// Maximum number of launches of a run whose number is open.
pub const MOST_LAUNCHES: u32 = LOOKS[LOOKS.len() - 1];
/// Launches in one state that a run needs: the fewest whose interval of 95 % leaves out their extremes.
pub const LEAST_LAUNCHES: u32 = 9;
/// Launches that suffice where [`LEAST_LAUNCHES`] exceed the usual budget: the fewest whose range covers 95 %.
pub const LEAST_LONG_LAUNCHES: u32 = LOOKS[0];
/// Usual time for all launches.
pub const USUAL_BUDGET: Duration = Duration::from_secs(30);
/// Maximum time of a run whose launches are long.
const LONGEST_EXTENSION: Duration = Duration::from_secs(180);

/// Returns whether launches of `each` are long: [`LEAST_LAUNCHES`] of them take more than the usual budget.
pub fn is_long(each: Duration) -> bool {
    each * LEAST_LAUNCHES > USUAL_BUDGET
}

/// Why no more launches are started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Ending {
    /// The interval of every row had the requested precision at two looks in a row.
    Precise,
    /// The maximum number of launches.
    Most,
    /// Another launch would exceed the time that is enough for a first answer.
    Enough,
    /// Another launch would exceed the budget.
    Budget,
    /// The user chose the number of launches.
    Fixed,
}

impl Ending {
    /// All endings.
    pub const ALL: [Ending; 5] =
        [Ending::Precise, Ending::Most, Ending::Enough, Ending::Budget, Ending::Fixed];

    /// Returns the name in result files.
    pub const fn name(self) -> &'static str {
        match self {
            Ending::Precise => "precise",
            Ending::Most => "most",
            Ending::Enough => "enough",
            Ending::Budget => "budget",
            Ending::Fixed => "fixed",
        }
    }

    /// Returns the ending with a name.
    pub fn from_name(name: &str) -> Option<Ending> {
        Ending::ALL.into_iter().find(|ending| ending.name() == name)
    }
}

/// What the launches of a run have reached.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Number of launches.
    pub done: u32,
    /// Launches in the most frequent state of the machine, in the row that has the fewest.
    pub in_state: u32,
    /// Largest half width of all rows' intervals, as a fraction of the median; `None` if some row has no interval.
    pub reached: Option<f64>,
    /// Time of all launches.
    pub spent: Duration,
}

/// Decides after each launch whether another one is worth its time.
#[derive(Debug, Clone)]
pub struct Schedule {
    precision: f64,
    budget: Duration,
    enough: Duration,
    /// Whether the run may end before its time is spent.
    ends_early: bool,
    /// Launches in one state at the last look.
    looked: u32,
    precise: u32,
}

impl Schedule {
    /// Creates a schedule for a precision, as a fraction of the median, and a time for all launches. With [`LEAST_LAUNCHES`] in one
    /// state, the run has only the time `enough`.
    pub fn new(precision: f64, budget: Duration, enough: Duration) -> Schedule {
        Schedule { precision, budget, enough, ends_early: true, looked: 0, precise: 0 }
    }

    /// Creates a schedule for launches that are spread over a time, whatever they reach before its end.
    pub fn spread(over: Duration) -> Schedule {
        Schedule { ends_early: false, ..Schedule::new(0.0, over, over) }
    }

    /// Returns why the run ends, or `None` if another launch follows. Call it once after each launch.
    pub fn ending(&mut self, progress: Progress) -> Option<Ending> {
        let Progress { done, in_state, reached, spent } = progress;
        let each = spent / done.max(1);
        if self.ends_early && LOOKS.iter().any(|look| self.looked < *look && *look <= in_state) {
            self.looked = in_state;
            let reached = reached.unwrap_or(f64::INFINITY);
            self.precise = if reached <= self.precision { self.precise + 1 } else { 0 };
            if self.precise >= 2 {
                return Some(Ending::Precise);
            }
        }
        if done >= MOST_LAUNCHES {
            return Some(Ending::Most);
        }
        let soon = spent + each;
        match () {
            () if soon > self.limit(each) => Some(Ending::Budget),
            () if in_state >= LEAST_LAUNCHES && soon > self.enough => Some(Ending::Enough),
            () => None,
        }
    }

    /// Returns the launches that are expected, for a run that has `done` launches of `each`: those up to the earliest end.
    pub fn expected(&self, done: u32, each: Duration) -> u32 {
        let affordable = (self.limit(each).as_secs_f64() / each.as_secs_f64().max(1e-3)) as u32;
        let look = LOOKS.into_iter().find(|look| *look > done && *look >= LEAST_LAUNCHES).unwrap_or(done);
        look.min(affordable.max(done))
    }

    /// Returns the time for all launches, if each takes `each`.
    fn limit(&self, each: Duration) -> Duration {
        // `each` is rounded down to nanoseconds.
        let six = (each + Duration::from_nanos(1)) * LEAST_LONG_LAUNCHES;
        if six > self.budget && six <= LONGEST_EXTENSION { six } else { self.budget }
    }
}

/// Time of a row until two launches have shown how they scatter.
pub const FIRST_ROW_TIME: Duration = Duration::from_millis(20);
/// Minimum time of a row in a launch.
const LEAST: Duration = Duration::from_millis(10);
/// Half widths of a 95 % interval in standard errors.
const HALF_WIDTH: f64 = 1.96;

/// Returns the time of a row in the next launch: sqrt(A T / R) / s, at least 10 ms.
///
/// A is the squared standard error of a row times its time, s the standard
/// deviation between launches, both as a fraction of the median. T is `fixed`, the time of a launch without its samples, and R
/// the number of rows. More time per row would narrow the intervals less than more launches do in the same time.
pub fn row_time(cases: &Cases, fixed: Duration, most: Duration) -> Duration {
    let wanted: Vec<f64> = cases.all().filter_map(|rows| ratio(rows)).collect();
    let Some(ratio) = median(&wanted) else { return FIRST_ROW_TIME.min(most) };
    let seconds = ratio * (fixed.as_secs_f64() / cases.all().count().max(1) as f64).sqrt();
    let least = LEAST.min(most);
    Duration::try_from_secs_f64(seconds).unwrap_or(most).clamp(least, most)
}

/// Returns sqrt(A) / s of a case, in square roots of a second; `None` if its launches do not show both.
fn ratio(rows: &[Measurement]) -> Option<f64> {
    let scatter = between(rows)?;
    let areas = rows.iter().filter_map(|row| {
        let error = row.summary.as_ref()?.precision()? / HALF_WIDTH;
        Some(error * error * row.phases?.sample_ns as f64 * 1e-9)
    });
    let area = median(&areas.collect::<Vec<_>>())?;
    (scatter > 0.0).then(|| area.sqrt() / scatter)
}

/// Returns the standard deviation of the launches' medians as a fraction of the median; `None` for fewer than 2.
fn between(rows: &[Measurement]) -> Option<f64> {
    let logs: Vec<f64> = rows
        .iter()
        .filter_map(|row| Some(row.summary.as_ref()?.median))
        .filter(|x| *x > 0.0)
        .map(f64::ln)
        .collect();
    let n = logs.len() as f64;
    let mean = logs.iter().sum::<f64>() / n;
    let squares: f64 = logs.iter().map(|x| (x - mean) * (x - mean)).sum();
    (logs.len() >= 2).then(|| (squares / (n - 1.0)).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Returns the number of launches of a run whose precision after n launches is `reached(n)`, and why it ended.
    fn run(reached: impl Fn(u32) -> f64, each: Duration) -> (u32, Ending) {
        run_in_states(reached, |done| done, each)
    }

    fn run_in_states(
        reached: impl Fn(u32) -> f64,
        in_state: impl Fn(u32) -> u32,
        each: Duration,
    ) -> (u32, Ending) {
        let mut schedule = Schedule::new(0.02, 30 * SECOND, 30 * SECOND);
        for done in 1.. {
            let in_state = in_state(done);
            let progress = Progress { done, in_state, reached: Some(reached(in_state)), spent: each * done };
            if let Some(ending) = schedule.ending(progress) {
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
    fn a_run_goes_on_until_one_state_has_nine_launches() {
        assert_eq!(run_in_states(|_| 0.01, |done| done.div_ceil(2), SECOND / 10), (17, Ending::Precise));
        assert_eq!(run_in_states(|_| 0.01, |done| done / 4, SECOND / 10), (30, Ending::Most));
    }

    #[test]
    fn a_run_goes_on_while_launches_narrow_its_intervals() {
        assert_eq!(run(|_| 0.1, SECOND / 10), (30, Ending::Most));
        // 0.07 / sqrt(n) reaches 0.02 before 30 launches.
        assert_eq!(run(|done| 0.07 / f64::from(done).sqrt(), SECOND / 10), (20, Ending::Precise));
    }

    #[test]
    fn a_run_ends_within_its_budget() {
        assert_eq!(run(|_| 0.021, 2 * SECOND), (15, Ending::Budget));
        // Long launches: six, within three minutes.
        assert_eq!(run(|_| 0.03, 10 * SECOND), (6, Ending::Budget));
        let progress = |done: u32, spent| Progress { done, in_state: done, reached: Some(0.021), spent };
        let mut schedule = Schedule::new(0.02, 30 * SECOND, 30 * SECOND);
        assert_eq!(schedule.ending(progress(5, 50 * SECOND + Duration::from_nanos(3))), None);
        // Nine launches, although each takes more than a ninth of what is enough.
        let mut schedule = Schedule::new(0.02, 30 * SECOND, 3 * SECOND);
        let end = (1..).find(|done| schedule.ending(progress(*done, SECOND * *done)).is_some());
        assert_eq!(end, Some(9));
        // Six would take more than three minutes: as many as fit into the budget.
        assert_eq!(run(|_| 0.1, 50 * SECOND), (1, Ending::Budget));
        assert_eq!(run(|_| 0.1, 400 * SECOND), (1, Ending::Budget));
        assert!(is_long(4 * SECOND) && !is_long(3 * SECOND));
    }
}

#[cfg(test)]
mod allocation_tests {
    use ombx_core::{
        benchmark::Metric,
        measure::engine::Phases,
        result::{Measurement, Samples},
        stats::Summary,
    };

    use super::*;
    use crate::{estimate::cases::Cases, file::Record};

    /// A row of 10 ms whose samples scatter by about 1 % around `median_ns`.
    fn row(key: &str, median_ns: u64) -> Measurement {
        let elapsed_ns =
            (0..100).map(|i| median_ns + median_ns * (i * 37 % 100) / 5000 - median_ns / 100).collect();
        let samples = vec![Samples { batch: 1, elapsed_ns, ..Samples::default() }];
        Measurement {
            summary: Summary::of_batches(&Measurement::combine(&samples, 1)),
            samples,
            phases: Some(Phases { sample_ns: 10_000_000, ..Phases::default() }),
            ..Measurement::new("p2p.latency", key, Metric::Latency, 2)
        }
    }

    fn cases(launches: &[u64]) -> Cases {
        let mut cases = Cases::default();
        for median_ns in launches {
            cases.record(&Record::Run(Box::new(crate::golden().run)));
            cases.record(&Record::Launch(Box::new(row("p2p.latency/bytes=8", *median_ns))));
        }
        cases
    }

    #[test]
    fn rows_are_short_where_launches_scatter_and_longer_where_they_do_not() {
        let ms = Duration::from_millis(1);
        let most = 100 * ms;
        assert_eq!(row_time(&cases(&[100_000]), 300 * ms, most), FIRST_ROW_TIME);
        let scattered = row_time(&cases(&[100_000, 150_000, 80_000]), 300 * ms, most);
        let steady = row_time(&cases(&[100_000, 100_100, 100_050]), 300 * ms, most);
        assert_eq!((scattered, steady), (LEAST, most));
        let between = row_time(&cases(&[100_000, 101_000, 99_500]), 3000 * ms, most);
        assert!(LEAST < between && between < most, "{between:?}");
    }
}
