//! Which rows can be published, and what keeps the others from it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    time::Duration,
};

use ombx_record::{
    link,
    order::sort_by_number,
    result::{Check, Ended, Ending, MarkCode, Measurement, Outcome, Run},
    runs::number,
    stats::Summary,
    unit::{Bytes, counted},
};

use crate::{
    launches::{LEAST_LAUNCHES, LEAST_LONG_LAUNCHES, is_long},
    number::percent,
};

/// Largest half width of the interval of a row that is fit to publish, as a fraction of its median.
pub const WIDEST: f64 = 0.1;
/// Minimum number of checked operations of a row that is fit to publish: they find data that is wrong in 5 % of operations with 95 %
/// probability.
pub const LEAST_CHECKED: u64 = 59;

/// Returns what keeps a row from being published, as nouns; nothing for a row that is fit.
///
/// An obstacle is a caution or an invalid mark, the outcome, or a lack of launches (9 in one state of the machine, or 6 long ones), checks or
/// precision.
pub fn obstacles(row: &Measurement) -> BTreeSet<String> {
    let outcome = match (&row.check, &row.outcome) {
        (Check::Failed(_), _) => Some("wrong data"),
        (_, Outcome::Failed(_)) => Some("a failure"),
        (_, Outcome::Skipped(_)) => Some("skipped"),
        (_, Outcome::Ok) => None,
    };
    if let Some(outcome) = outcome {
        return BTreeSet::from([outcome.to_owned()]);
    }
    let marks = row.doubts().map(|mark| mark.code.phrase());
    let unverified = (row.check == Check::Off).then(|| MarkCode::Unverified.phrase());
    let is_link = row.bench == link::BENCH;
    // The next launch may differ by more than the interval of one launch says.
    let few = (row.launches_in_state() < least_launches(row) && !is_link)
        .then(|| format!("fewer than {LEAST_LAUNCHES} launches"));
    let is_checked = row.check != Check::Passed || row.checked_operations() >= LEAST_CHECKED;
    let few_checks =
        (!is_checked && !is_link).then(|| format!("fewer than {LEAST_CHECKED} checked operations"));
    let half = row.summary.as_ref().and_then(Summary::precision);
    let interval = match half {
        // A link in a round has neither samples nor an interval.
        None => (!is_link || !row.samples.is_empty()).then(|| MarkCode::NoInterval.phrase()),
        Some(half) => (half > WIDEST).then(|| "an interval wider than 10 % on either side".to_owned()),
    };
    marks.chain(unverified).chain(few).chain(few_checks).chain(interval).collect()
}

/// Returns the number of launches that a row needs to be fit to publish: fewer where a launch is long.
fn least_launches(row: &Measurement) -> usize {
    let each = row.over_launches().and_then(|over| {
        Some(Duration::try_from_secs_f64(over.elapsed_s?).ok()? / over.medians_ns.len() as u32)
    });
    let least = if each.is_some_and(is_long) { LEAST_LONG_LAUNCHES } else { LEAST_LAUNCHES };
    least as usize
}

/// Returns the smallest part of operations with wrong data that the checks of a row would have found with 95 % probability; `None` if
/// nothing was checked, or something was found.
pub fn found_from(row: &Measurement) -> Option<f64> {
    (row.check == Check::Passed && row.checked > 0).then(|| excluded_from(row.checked_operations()))
}

fn excluded_from(checked: u64) -> f64 {
    1.0 - 0.05f64.powf(1.0 / checked as f64)
}

/// Numbers of rows that can and cannot be published. Skipped rows do not count.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Publishable {
    rows: usize,
    publishable: usize,
    /// Number of rows by obstacle.
    obstacles: BTreeMap<String, usize>,
    /// Number of checked operations of all rows whose check has passed.
    checked: u64,
    /// Number of the least checked row; `None` if nothing was checked.
    least_checked: Option<u64>,
}

impl Publishable {
    /// Counts a row.
    pub fn add(&mut self, row: &Measurement) {
        if matches!(row.outcome, Outcome::Skipped(_)) {
            return;
        }
        let obstacles = obstacles(row);
        if row.check == Check::Passed && row.checked > 0 {
            let checked = row.checked_operations();
            self.checked = self.checked.saturating_add(checked);
            self.least_checked = Some(self.least_checked.map_or(checked, |least| least.min(checked)));
        }
        self.rows += 1;
        self.publishable += usize::from(obstacles.is_empty());
        for obstacle in obstacles {
            *self.obstacles.entry(obstacle).or_default() += 1;
        }
    }

    /// Returns whether every row can be published.
    pub fn is_complete(&self) -> bool {
        self.publishable == self.rows
    }

    /// Returns how many operations were checked; `None` if nothing was.
    pub fn verified(&self) -> Option<String> {
        let (checked, least) = (self.checked, self.least_checked?);
        Some(match self.rows {
            1 if checked == 1 => "verified: the only checked operation was right".into(),
            1 => format!("verified: all {checked} checked operations were right"),
            _ => format!(
                "verified: all {checked} checked operations were right ({least} in the least checked row)"
            ),
        })
    }

    /// Returns which wrong data the checks exclude in every row; `None` if nothing was checked.
    pub fn excluded(&self) -> Option<String> {
        let percent = excluded_from(self.least_checked?) * 100.0;
        let decimals = (1.0 - percent.log10().floor()).clamp(0.0, 6.0) as usize;
        Some(format!(
            "errors in more than {percent:.decimals$} % of the operations of any row are excluded with 95 % probability"
        ))
    }

    /// Returns whether no row was counted.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }
}

impl fmt::Display for Publishable {
    /// Writes `22 of 24 rows are fit to publish; 2 not: samples in two groups (1), preempted ranks (1)`, the most frequent obstacle first.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Publishable { rows, publishable, obstacles, .. } = self;
        let are = if *publishable == 1 || *rows == 1 { "is" } else { "are" };
        write!(f, "{publishable} of {} {are} fit to publish", counted(*rows, "row"))?;
        if publishable < rows {
            let mut found: Vec<_> = obstacles.iter().collect();
            sort_by_number(&mut found, |(_, count)| -(**count as i64));
            let found: Vec<String> =
                found.into_iter().map(|(what, count)| format!("{what} ({count})")).collect();
            write!(f, "; {} not: {}", rows - publishable, found.join(", "))?;
        }
        Ok(())
    }
}

/// Probability that an interval contains the median of the launches. The range of fewer than 6 launches has less.
pub const INTERVAL: f64 = 0.95;

/// Counts the rows of a run that reached its precision. A range of few launches is no interval and has none.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reached {
    launches: u32,
    ended: Option<Ended>,
    rows: usize,
    precise: usize,
    /// Rows of too few launches for an interval of 95 %.
    ranges: usize,
    /// Half the interval of the widest row, as a fraction of its median, and the row's name; without an interval it is infinite.
    widest: Option<(f64, String)>,
    /// Benchmarks, in the order of rows.
    benches: Vec<String>,
}

impl Reached {
    /// Returns the counts of a run that says why its launches ended.
    pub fn new(run: &Run) -> Reached {
        let launches = number(run, "launches").unwrap_or(1);
        let ended = run.launched.and_then(|launched| launched.ended);
        // Several runs are together as their user wanted, whatever the precision.
        let ended = ended.filter(|_| launches > 1 && !run.plan.contains_key("runs"));
        Reached { launches, ended, ..Reached::default() }
    }

    /// Counts a row.
    pub fn add(&mut self, row: &Measurement) {
        let Some(ended) = self.ended.filter(|_| row.outcome == Outcome::Ok) else { return };
        let is_range = row.over_launches().is_some_and(|over| over.coverage() < INTERVAL);
        let half = row.summary.as_ref().and_then(Summary::precision).filter(|_| !is_range);
        let half = half.unwrap_or(f64::INFINITY);
        self.rows += 1;
        self.ranges += usize::from(is_range);
        self.precise += usize::from(half <= ended.precision);
        if !self.benches.contains(&row.bench) {
            self.benches.push(row.bench.clone());
        }
        if self.widest.as_ref().is_none_or(|(widest, _)| half > *widest) {
            let size = row.bytes.map(|bytes| format!(" {}", Bytes(bytes))).unwrap_or_default();
            self.widest = Some((half, format!("{}{size}", row.bench)));
        }
    }

    /// Returns whether the user asked for a precision that a row does not have.
    pub fn is_missed(&self) -> bool {
        self.ended.is_some_and(|ended| ended.is_asked) && self.precise < self.rows
    }
}

impl std::fmt::Display for Reached {
    /// Writes `ended after 9 launches: ±2 % reached in 20 of 23 rows; widest ±6.1 % (4M); ..`, or nothing if it is unknown.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (Some(ended), Some((widest, name))) = (self.ended, &self.widest) else { return Ok(()) };
        let Reached { launches, rows, precise, benches, .. } = self;
        if self.ranges == *rows {
            return write!(
                f,
                "ended after {}: too few for an interval of 95 %",
                counted(*launches as usize, "launch")
            );
        }
        let goal = percent(ended.precision);
        let of = counted(*rows, "row");
        write!(f, "ended after {launches} launches: ±{goal} reached in {precise} of {of}")?;
        // The heading has the benchmark if there is one.
        let name = if benches.len() == 1 { name.split_once(' ').map_or("", |(_, size)| size) } else { name };
        let name = if name.is_empty() || *rows == 1 { String::new() } else { format!(" ({name})") };
        if widest.is_finite() {
            write!(f, "; widest ±{}{name}", percent(*widest))?
        } else {
            write!(f, "; no interval in the widest row{name}")?
        }
        f.write_str(match ended.why {
            Ending::Precise | Ending::Fixed => "",
            Ending::Most => "; a run has at most 30 launches",
            Ending::Enough => "; the time of a first answer is over: --precision or --budget give more",
            Ending::Budget => "; the budget is spent: --budget gives more",
        })
    }
}

#[cfg(test)]
mod tests {
    use ombx_record::{
        result::{Launched, Level, Mark, Metric, Mismatch, OverLaunches, Samples},
        stats::Summary,
        unit::Rank,
    };

    use crate::publishable::*;

    fn good() -> Measurement {
        let launches = OverLaunches::of_one_state(vec![10.0; 9], 10.0, Some([10.0; 2]), 0.96);
        Measurement {
            check: Check::Passed,
            checked: 576,
            launches: Some(launches),
            summary: Summary::new(&[10.0; 50]),
            ..Measurement::new("p2p.latency", "p2p.latency/bytes=8", Metric::Latency, 2)
        }
    }

    fn marked(marks: &[Mark]) -> Measurement {
        Measurement { trust: marks.to_vec(), ..good() }
    }

    #[test]
    fn the_checks_of_a_row_find_wrong_data_above_a_part() {
        let checked = |checked: u64| Measurement { checked, ..good() };
        assert_eq!(found_from(&checked(0)), None);
        assert!((found_from(&checked(1)).unwrap() - 0.95).abs() < 1e-12);
        // About three in n.
        assert!((found_from(&checked(1000)).unwrap() - 0.003).abs() < 1e-5);
        let mut both = Publishable::default();
        both.add(&checked(738));
        assert_eq!(both.verified().unwrap(), "verified: all 738 checked operations were right");
        both.add(&checked(9));
        assert_eq!(
            both.verified().unwrap(),
            "verified: all 747 checked operations were right (9 in the least checked row)"
        );
        assert!(both.excluded().unwrap().starts_with("errors in more than 28 % of"), "{both:?}");
        assert!(excluded_from(LEAST_CHECKED) < 0.05 && excluded_from(LEAST_CHECKED - 1) > 0.05);
    }

    #[test]
    fn a_row_with_an_interval_and_at_most_notes_can_be_published() {
        assert!(obstacles(&good()).is_empty());
        assert!(obstacles(&marked(&[Mark::with_advice(MarkCode::Governor, "g", "a")])).is_empty());
        assert!(obstacles(&Measurement { check: Check::Unsupported, ..good() }).is_empty());
    }

    #[test]
    fn each_obstacle_is_named() {
        let found = |row: Measurement| obstacles(&row).into_iter().collect::<Vec<_>>();
        let marks = [
            Mark::with_advice(MarkCode::Bimodal, "b", "a"),
            Mark::with_advice(MarkCode::Oversubscribed, "o", "a"),
        ];
        assert_eq!(found(marked(&marks)), ["more ranks than CPUs", "samples in two groups"]);
        assert_eq!(found(Measurement { check: Check::Off, ..good() }), ["data that was not checked"]);
        assert_eq!(found(Measurement { outcome: Outcome::Failed("x".into()), ..good() }), ["a failure"]);
        assert_eq!(found(Measurement { outcome: Outcome::Skipped("x".into()), ..good() }), ["skipped"]);
        let wrong = Check::Failed(Mismatch { rank: Rank(0), slot: 0, byte: 0, expected: 1, actual: 2 });
        let outcome = Outcome::Failed("data arrived wrong".into());
        assert_eq!(found(Measurement { check: wrong, outcome, ..good() }), ["wrong data"]);
        assert_eq!(found(Measurement { summary: Summary::new(&[1.0]), ..good() }), ["no interval"]);
        assert_eq!(found(Measurement { summary: None, ..good() }), ["no interval"]);
        let link = Measurement { bench: link::BENCH.into(), summary: Summary::new(&[1.0]), ..good() };
        assert!(found(link.clone()).is_empty(), "a link in a round");
        assert_eq!(found(Measurement { samples: vec![Samples::default()], ..link }), ["no interval"]);
        assert_eq!(found(Measurement { launches: None, ..good() }), ["fewer than 9 launches"]);
        assert_eq!(found(Measurement { checked: 58, ..good() }), ["fewer than 59 checked operations"]);
        let wide = |half: f64| Summary { ci95: Some([10.0 - half, 10.0 + half]), ..good().summary.unwrap() };
        assert_eq!(
            found(Measurement { summary: Some(wide(1.01)), ..good() }),
            ["an interval wider than 10 % on either side"]
        );
        assert!(found(Measurement { summary: Some(wide(0.99)), ..good() }).is_empty());
    }

    #[test]
    fn six_launches_are_enough_where_they_are_long() {
        let of = |launches: usize, seconds: f64| {
            let over = OverLaunches::of_one_state(vec![10.0; launches], 10.0, Some([10.0; 2]), 0.97);
            let over = OverLaunches { elapsed_s: Some(seconds), ..over };
            obstacles(&Measurement { launches: Some(over), ..good() }).is_empty()
        };
        assert_eq!([of(6, 6.0), of(6, 60.0), of(5, 60.0), of(9, 3.0)], [false, true, false, true]);
    }

    #[test]
    fn one_line_sums_up_all_rows() {
        let mut sum = Publishable::default();
        assert!(sum.is_empty());
        sum.add(&Measurement { outcome: Outcome::Skipped("needs 4 ranks".into()), ..good() });
        assert!(sum.is_empty(), "skipped rows do not count");
        sum.add(&good());
        assert_eq!(sum.to_string(), "1 of 1 row is fit to publish");
        sum.add(&marked(&[
            Mark::with_advice(MarkCode::ClockCost, "c", "a").at(Level::Caution),
            Mark::with_advice(MarkCode::Preempted, "p", "a").at(Level::Caution),
        ]));
        sum.add(&marked(&[Mark::with_advice(MarkCode::Preempted, "p", "a").at(Level::Invalid)]));
        assert_eq!(
            sum.to_string(),
            "1 of 3 rows is fit to publish; 2 not: preempted ranks (2), a costly reading of the clock (1)"
        );
    }

    fn row(bytes: u64, half: f64) -> Measurement {
        let summary =
            Summary { ci95: Some([100.0 - half, 100.0 + half]), ..Summary::new(&[100.0; 9]).unwrap() };
        Measurement { bytes: Some(bytes), summary: Some(summary), ..ombx_testkit::golden().rows.remove(0) }
    }

    #[test]
    fn a_run_says_why_it_ended_and_how_wide_its_widest_row_is() {
        let of = |why, is_asked| {
            let mut run = ombx_testkit::golden().run;
            run.plan.insert("launches".into(), "9".into());
            let ended = Some(Ended { why, precision: 0.02, is_asked });
            run.launched = Some(Launched { ended, elapsed_s: 2.9, core_to_core_ns: None });
            let mut reached = Reached::new(&run);
            [(8, 1.0), (4 << 20, 6.14), (64, 2.0)]
                .iter()
                .for_each(|(bytes, half)| reached.add(&row(*bytes, *half)));
            reached
        };
        assert_eq!(
            of(Ending::Fixed, false).to_string(),
            "ended after 9 launches: ±2 % reached in 2 of 3 rows; widest ±6.1 % (4M)"
        );
        assert!(of(Ending::Budget, false).to_string().ends_with("--budget gives more"));
        let mut ranges =
            Reached { rows: 0, precise: 0, widest: None, launches: 3, ..of(Ending::Fixed, true) };
        let over = OverLaunches::of_one_state(vec![100.0; 3], 100.0, Some([99.0, 101.0]), 0.75);
        ranges.add(&Measurement { launches: Some(over), ..row(8, 1.0) });
        assert_eq!(ranges.to_string(), "ended after 3 launches: too few for an interval of 95 %");
        assert!(ranges.is_missed());
        assert!(of(Ending::Budget, true).is_missed() && !of(Ending::Budget, false).is_missed());
        assert_eq!(Reached::new(&ombx_testkit::golden().run).to_string(), "");
    }
}
