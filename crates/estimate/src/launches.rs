//! Estimates over launches: one row per case from the rows of all launches, and when there are enough launches.
//!
//! Launches of the same binary differ by more than the samples of one launch show. The headline is therefore the median of the
//! launches' medians, with a distribution-free interval over launches.

mod case;
mod cases;

use std::{collections::BTreeMap, time::Duration};

use ombx_record::{
    result::{Ending, Measurement, RowName},
    stats::{Summary, median},
};

use crate::runs::moments_of_logarithms;

pub(crate) use self::{
    case::by_state,
    cases::{SetupLaunches, have_same_setup, without_samples},
};
pub use self::{
    case::{Interval, estimate, interval, is_within_a_launch, total, weight_in_total},
    cases::{Cases, Group, tally},
};

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

/// What the launches of a run have reached.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress<'a> {
    /// Number of launches.
    pub done: u32,
    /// Time of all launches.
    pub spent: Duration,
    /// Every measured row.
    pub rows: &'a [RowProgress],
}

/// What the launches of a row have reached.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RowProgress {
    /// Its name.
    pub name: RowName,
    /// Launches in its most frequent state of the machine.
    pub in_state: u32,
    /// Half width of its interval, as a fraction of the median; `None` without an interval.
    pub reached: Option<f64>,
}

/// Looks at the interval of a row.
#[derive(Debug, Clone, Copy, Default)]
struct Looks {
    /// Launches in one state at the last look.
    last: u32,
    /// Looks in a row at which the row was precise.
    precise: u32,
}

impl Looks {
    /// Looks at the row if it has reached the launches of another look. Returns whether it was precise at two looks in a row.
    fn look(&mut self, row: &RowProgress, precision: f64) -> bool {
        if !self.is_done() && LOOKS.iter().any(|look| self.last < *look && *look <= row.in_state) {
            self.last = row.in_state;
            let is_precise = row.reached.is_some_and(|reached| reached <= precision);
            self.precise = if is_precise { self.precise + 1 } else { 0 };
        }
        self.is_done()
    }

    fn is_done(self) -> bool {
        self.precise >= 2
    }
}

/// Decides after each launch whether another one is worth its time, and for which rows.
#[derive(Debug, Clone)]
pub struct Schedule {
    precision: f64,
    budget: Duration,
    enough: Duration,
    /// Whether rows, and with them the run, may end before its time is spent.
    ends_early: bool,
    /// Whether launches measure rows that have ended, because figures of others are quotients of both in one launch.
    keeps_rows: bool,
    rows: BTreeMap<RowName, Looks>,
}

impl Schedule {
    /// Creates a schedule for a precision, as a fraction of the median, and a time for all launches. With [`LEAST_LAUNCHES`] in one
    /// state, the run has only the time `enough`.
    pub fn new(precision: f64, budget: Duration, enough: Duration) -> Schedule {
        Schedule { precision, budget, enough, ends_early: true, keeps_rows: false, rows: BTreeMap::new() }
    }

    /// Creates a schedule for launches that are spread over a time, whatever they reach before its end.
    pub fn spread(over: Duration) -> Schedule {
        Schedule { ends_early: false, ..Schedule::new(0.0, over, over) }
    }

    /// Returns the schedule for a run all of whose launches measure every row.
    #[must_use]
    pub fn keeping_rows(self) -> Schedule {
        Schedule { keeps_rows: true, ..self }
    }

    /// Returns why the run ends, or `None` if another launch follows. Call it once after each launch.
    ///
    /// Each row ends by its own looks, as if it were measured alone: rows that are precise need no further launch.
    pub fn ending(&mut self, progress: Progress<'_>) -> Option<Ending> {
        let Progress { done, spent, rows } = progress;
        let each = spent / done.max(1);
        let mut least = None;
        for row in rows {
            let looks = self.rows.entry(row.name).or_default();
            if !(self.ends_early && looks.look(row, self.precision)) {
                least = Some(least.map_or(row.in_state, |least: u32| least.min(row.in_state)));
            }
        }
        let Some(least) = least.or_else(|| rows.is_empty().then_some(0)) else {
            return Some(Ending::Precise);
        };
        if done >= MOST_LAUNCHES {
            return Some(Ending::Most);
        }
        let soon = spent + each;
        match () {
            () if soon > self.limit(each) => Some(Ending::Budget),
            () if least >= LEAST_LAUNCHES && soon > self.enough => Some(Ending::Enough),
            () => None,
        }
    }

    /// Returns whether the next launch leaves a row out, because it needs no further one.
    pub fn leaves_out(&self, row: RowName) -> bool {
        !self.keeps_rows && self.rows.get(&row).is_some_and(|looks| looks.is_done())
    }

    /// Returns the rows that the next launch leaves out.
    pub fn left_out(&self) -> impl Iterator<Item = RowName> {
        self.rows.keys().copied().filter(move |row| self.leaves_out(*row))
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
/// Minimum time of a row in a launch. Where launches scattered by several percent, shorter rows had wider intervals, and longer ones about
/// the same (verify/cost/src/bin/speed/method.md).
const LEAST: Duration = Duration::from_millis(4);
/// Half widths of a 95 % interval in standard errors.
const HALF_WIDTH: f64 = 1.96;

/// Returns the time of a row in the next launch, which measures the rows that `is_left` names: sqrt(A T / R) / s, at least 4 ms.
///
/// A is the squared standard error of a row times its time, s the standard
/// deviation between launches, both as a fraction of the median. T is `fixed`, the time of a launch without its samples, and R
/// the number of rows. More time per row would narrow the intervals less than more launches do in the same time.
pub fn row_time(
    cases: &Cases,
    is_left: impl Fn(RowName) -> bool,
    fixed: Duration,
    most: Duration,
) -> Duration {
    let is_left = |rows: &&Vec<Measurement>| rows.first().is_some_and(|row| is_left(RowName::new(&row.key)));
    let left: Vec<&Vec<Measurement>> = cases.all().filter(is_left).collect();
    let wanted: Vec<f64> = left.iter().filter_map(|rows| ratio(rows)).collect();
    let Some(ratio) = median(&wanted) else { return FIRST_ROW_TIME.min(most) };
    let seconds = ratio * (fixed.as_secs_f64() / left.len() as f64).sqrt();
    let least = LEAST.min(most);
    Duration::try_from_secs_f64(seconds).unwrap_or(most).clamp(least, most)
}

/// Returns sqrt(A) / s of a case, in square roots of a second; `None` if its launches do not show both.
fn ratio(rows: &[Measurement]) -> Option<f64> {
    let scatter = between(rows)?;
    let areas = rows.iter().filter_map(|row| {
        let error = standard_error(row.summary.as_ref()?)?;
        Some(error * error * row.phases?.sample_ns as f64 * 1e-9)
    });
    let area = median(&areas.collect::<Vec<_>>())?;
    (scatter > 0.0).then(|| area.sqrt() / scatter)
}

/// Standard errors of the median of 3, 4 and 5 samples as a part of their range, for a normal distribution: sqrt(0.4487), sqrt(0.2982)
/// and sqrt(0.2868) standard deviations (order statistics), over the expected range of 1.693, 2.059 and 2.326 standard deviations.
const PARTS_OF_RANGE: [f64; 3] = [0.396, 0.265, 0.230];

/// Returns the standard error of the median of a row as a fraction of it; `None` if the samples do not show it.
fn standard_error(summary: &Summary) -> Option<f64> {
    let few = summary.n.checked_sub(3).and_then(|at| PARTS_OF_RANGE.get(at).copied());
    let of_range = |part: f64| part * (summary.max - summary.min) / summary.median;
    few.map(of_range).or_else(|| Some(summary.precision()? / HALF_WIDTH)).filter(|error| error.is_finite())
}

/// Returns the standard deviation of the launches' medians as a fraction of the median; `None` for fewer than 2.
fn between(rows: &[Measurement]) -> Option<f64> {
    let medians = rows.iter().filter_map(|row| Some(row.summary.as_ref()?.median)).filter(|ns| *ns > 0.0);
    moments_of_logarithms(&medians.collect::<Vec<f64>>()).map(|[_, deviation]| deviation)
}

#[cfg(test)]
mod schedule_tests {
    use crate::launches::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Returns the number of launches of a run whose precision after n launches is `reached(n)`, and why it ended.
    fn run(reached: impl Fn(u32) -> f64, each: Duration) -> (u32, Ending) {
        run_in_states(reached, |done| done, each)
    }

    fn row(name: &str, in_state: u32, reached: f64) -> RowProgress {
        RowProgress { name: RowName::new(name), in_state, reached: Some(reached) }
    }

    fn run_in_states(
        reached: impl Fn(u32) -> f64,
        in_state: impl Fn(u32) -> u32,
        each: Duration,
    ) -> (u32, Ending) {
        let mut schedule = Schedule::new(0.02, 30 * SECOND, 30 * SECOND);
        for done in 1.. {
            let in_state = in_state(done);
            let rows = [row("a", in_state, reached(in_state))];
            if let Some(ending) = schedule.ending(Progress { done, spent: each * done, rows: &rows }) {
                return (done, ending);
            }
        }
        unreachable!()
    }

    #[test]
    fn rows_end_by_their_own_looks() {
        let mut schedule = Schedule::new(0.02, 30 * SECOND, 30 * SECOND);
        let mut ends = Vec::new();
        for done in 1.. {
            // The second row is precise at the looks 6, 12 and 15.
            let other = if (9..=11).contains(&done) { 0.03 } else { 0.01 };
            let rows = [row("a", done, 0.01), row("b", done, other)];
            let ending = schedule.ending(Progress { done, spent: SECOND / 10 * done, rows: &rows });
            if ends.len() < schedule.left_out().count() {
                ends.push((done, schedule.leaves_out(RowName::new("a"))));
            }
            if ending.is_some() {
                assert_eq!(ending, Some(Ending::Precise));
                break;
            }
        }
        assert_eq!(ends, [(9, true), (15, true)]);
        let mut spread = Schedule::spread(30 * SECOND);
        for done in 1..30 {
            let rows = [row("a", done, 0.001)];
            assert_eq!(spread.ending(Progress { done, spent: SECOND / 10 * done, rows: &rows }), None);
        }
        assert_eq!(spread.left_out().count(), 0);
    }

    #[test]
    fn rows_with_loads_keep_their_base() {
        let new = || Schedule::new(0.02, 30 * SECOND, 30 * SECOND);
        let [alone, together] = [new(), new().keeping_rows()].map(|mut schedule| {
            let mut left_out = 0_usize;
            let end = (1..).find(|done| {
                left_out = left_out.max(schedule.left_out().count());
                let loaded = if *done < 20 { 0.05 } else { 0.01 };
                let rows = [row("b/under=nothing", *done, 0.01), row("b/under=load", *done, loaded)];
                let spent = SECOND / 10 * *done;
                schedule.ending(Progress { done: *done, spent, rows: &rows }).is_some()
            });
            (end, left_out)
        });
        assert_eq!((alone, together), ((Some(25), 1), (Some(25), 0)));
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
        let ending = |schedule: &mut Schedule, done: u32, spent| {
            schedule.ending(Progress { done, spent, rows: &[row("a", done, 0.021)] })
        };
        let mut schedule = Schedule::new(0.02, 30 * SECOND, 30 * SECOND);
        assert_eq!(ending(&mut schedule, 5, 50 * SECOND + Duration::from_nanos(3)), None);
        // Nine launches, although each takes more than a ninth of what is enough.
        let mut schedule = Schedule::new(0.02, 30 * SECOND, 3 * SECOND);
        let end = (1..).find(|done| ending(&mut schedule, *done, SECOND * *done).is_some());
        assert_eq!(end, Some(9));
        // Six would take more than three minutes: as many as fit into the budget.
        assert_eq!(run(|_| 0.1, 50 * SECOND), (1, Ending::Budget));
        assert_eq!(run(|_| 0.1, 400 * SECOND), (1, Ending::Budget));
        assert!(is_long(4 * SECOND) && !is_long(3 * SECOND));
    }
}

#[cfg(test)]
mod allocation_tests {
    use std::borrow::Cow;

    use ombx_record::{
        event::Event,
        result::{Measurement, Metric, Phases, Samples},
        stats::Summary,
    };

    use crate::launches::{cases::Cases, *};

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
            cases.event(&Event::Run(Cow::Owned(ombx_testkit::golden().run)));
            cases.event(&Event::Row(Cow::Owned(row("p2p.latency/bytes=8", *median_ns))));
        }
        cases
    }

    #[test]
    fn rows_are_short_where_launches_scatter_and_longer_where_they_do_not() {
        let ms = Duration::from_millis(1);
        let most = 100 * ms;
        let of = |launches: &[u64], fixed| row_time(&cases(launches), |_| true, fixed, most);
        assert_eq!(of(&[100_000], 300 * ms), FIRST_ROW_TIME);
        let scattered = of(&[100_000, 150_000, 80_000], 300 * ms);
        let steady = of(&[100_000, 100_100, 100_050], 300 * ms);
        assert_eq!((scattered, steady), (LEAST, most));
        let between = of(&[100_000, 101_000, 99_500], 3000 * ms);
        assert!(LEAST < between && between < most, "{between:?}");
    }

    #[test]
    fn the_time_of_rows_that_have_ended_goes_to_the_others() {
        let ms = Duration::from_millis(1);
        let mut cases = Cases::default();
        for median_ns in [100_000, 101_000, 99_500] {
            cases.event(&Event::Run(Cow::Owned(ombx_testkit::golden().run)));
            for key in
                ["p2p.latency/bytes=8", "p2p.latency/bytes=9", "p2p.latency/bytes=10", "p2p.latency/bytes=11"]
            {
                cases.event(&Event::Row(Cow::Owned(row(key, median_ns))));
            }
        }
        let last = RowName::new("p2p.latency/bytes=11");
        let of = |is_left: &dyn Fn(RowName) -> bool| row_time(&cases, is_left, 30_000 * ms, 1000 * ms);
        let [all, one] = [of(&|_| true), of(&|name| name == last)];
        assert!(all > LEAST && (one.as_secs_f64() / all.as_secs_f64() - 2.0).abs() < 1e-3, "{all:?} {one:?}");
        assert_eq!(of(&|_| false), FIRST_ROW_TIME);
    }

    #[test]
    fn few_samples_show_their_standard_error_by_their_range() {
        let error = |times: &[u64]| {
            let samples = vec![Samples { batch: 1, elapsed_ns: times.to_vec(), ..Samples::default() }];
            standard_error(&Summary::of_batches(&Measurement::combine(&samples, 1)).unwrap())
        };
        assert_eq!(error(&[100, 110]), None);
        assert!((error(&[100, 110, 90]).unwrap() - 0.0792).abs() < 1e-9);
        assert!((error(&[100, 110, 90, 105, 95]).unwrap() - 0.046).abs() < 1e-9);
        // The interval of six samples is their range.
        assert!((error(&[90, 110, 95, 105, 92, 108]).unwrap() - 0.1 / HALF_WIDTH).abs() < 1e-9);
    }
}
