//! Figures of good days, and the limits of later days that follow from them.

use std::collections::BTreeMap;

use ombx_record::{
    file::RunWithRows,
    result::{Level, Mark, MarkCode, Measurement, Metric, Run, RunOutcome},
    runs::hosts,
    stats::median,
};

use crate::{
    launches::Cases,
    percentiles::upper_quantile,
    runs::moments_of_logarithms,
    state::{self, Distances, States, is_same},
};

/// Number of days below which the variation between days is not known well enough for a limit. With three days, the limit of prediction
/// is 22 standard deviations away, with seven 5.6.
const LEAST_DAYS: usize = 7;
/// Probability that any limit of a check on a further good day is below the time of its row, if the logarithms of the times of days
/// have a normal distribution. Other distributions have longer tails: `docs/EVIDENCE.md` has simulated shares. A limit is missed only on two
/// days.
const FALSE_ALARM: f64 = 0.001;

/// Results of good days.
#[derive(Debug, Clone, Default)]
pub struct Baseline {
    cases: BTreeMap<CaseOnHosts, Vec<GoodFigure>>,
}

/// A case on its hosts. Keys of rows do not name hosts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct CaseOnHosts {
    key: String,
    ranks: u32,
    hosts: Vec<String>,
}

/// Time of one result.
#[derive(Debug, Clone)]
struct GoodFigure {
    /// Date in UTC.
    date: String,
    leg_ns: f64,
    /// Time of a cache line between two cores in the state of the machine; `None` if it is unknown.
    core_to_core_ns: Option<f64>,
}

/// Why a row has no good days to be compared with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Missing {
    /// The case was not measured on these hosts.
    Case,
    /// It was measured in other states of the machine only. The row was measured in this one, in nanoseconds between two cores.
    State(f64),
    /// The state of the machine in which the row was measured is unknown, and good days have several.
    UnknownState,
}

/// Times of one case on good days, in nanoseconds per leg.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reference {
    /// Number of results.
    pub results: usize,
    /// Number of days on which they were measured.
    pub days: usize,
    /// Median of the days, each the median of its results.
    pub median_ns: f64,
    /// Slowest result.
    pub slowest_ns: f64,
    /// Time that a further good day exceeds with a probability of 0.1 %, divided by the number of limits of the check; `None` for
    /// fewer than seven days.
    pub predicted_ns: Option<f64>,
}

/// Limit of a time that follows from good days.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tolerance {
    /// Maximum time of one leg in nanoseconds.
    pub limit_ns: f64,
    /// Limit divided by the median of the good days, minus 1.
    pub part: f64,
    /// Whether the good days vary by more than what the user tolerates, so that their variation is the limit.
    pub is_variation: bool,
}

impl Baseline {
    /// Adds the runs of one result. Runs that are not complete are left out.
    pub fn add(&mut self, runs: &[RunWithRows]) {
        let mut cases = Cases::default();
        runs.iter().for_each(|run| cases.launch(run));
        for group in cases.groups().iter().filter(|group| group.outcome() == RunOutcome::Complete) {
            let date = group.run.started.get(..10).unwrap_or_default();
            let states = group.states();
            for row in group.estimates().iter().filter(|row| row.headline().is_some()) {
                let figures = state::state_figures(row, &states).into_iter().map(|figure| GoodFigure {
                    date: date.to_owned(),
                    leg_ns: figure.median_ns,
                    core_to_core_ns: figure.core_to_core_ns,
                });
                self.cases.entry(CaseOnHosts::new(&group.run, row)).or_default().extend(figures);
            }
        }
    }

    /// Returns the good days of the case of a row on the hosts of its run and in its state of the machine, for a check with this many limits
    /// from good days.
    ///
    /// # Errors
    /// Why there is no good day.
    pub fn reference(&self, run: &Run, row: &Measurement, limits: usize) -> Result<Reference, Missing> {
        let all = self.cases.get(&CaseOnHosts::new(run, row)).ok_or(Missing::Case)?;
        let (of_states, _) = state::divided_by_state(all.iter().collect(), |good| good.core_to_core_ns);
        let figures = match (&of_states[..], state_of(run, row)) {
            // One state is known, or none.
            ([(_, all)], row) => {
                let mut known = all.iter().filter_map(|good| good.core_to_core_ns);
                match (row, known.next()) {
                    (Some(row), Some(good))
                        if !is_same(row, good) && known.all(|good| !is_same(row, good)) =>
                    {
                        return Err(Missing::State(row));
                    }
                    _ => all,
                }
            }
            (_, None) => return Err(Missing::UnknownState),
            (states, Some(row)) => {
                let same = |good: &&GoodFigure| good.core_to_core_ns.is_some_and(|good| is_same(row, good));
                let found = states.iter().find(|(_, of_state)| of_state.iter().any(same));
                found.map(|(_, of_state)| of_state).ok_or(Missing::State(row))?
            }
        };
        Reference::new(figures, limits).ok_or(Missing::Case)
    }
}

/// Returns the state of the machine in which a row was measured, as nanoseconds between two cores; `None` if it is unknown.
pub fn state_of(run: &Run, row: &Measurement) -> Option<f64> {
    let states = States::new(&[Distances::of_run(run)]);
    state::state_figures(row, &states).first().and_then(|figure| figure.core_to_core_ns)
}

impl CaseOnHosts {
    fn new(run: &Run, row: &Measurement) -> CaseOnHosts {
        let hosts = hosts(run).into_iter().map(str::to_owned).collect();
        CaseOnHosts { key: row.key.clone(), ranks: row.ranks, hosts }
    }
}

impl Reference {
    fn new(figures: &[&GoodFigure], limits: usize) -> Option<Reference> {
        let mut by_day: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        figures.iter().for_each(|figure| by_day.entry(&figure.date).or_default().push(figure.leg_ns));
        let days: Vec<f64> = by_day.values().filter_map(|times| median(times)).collect();
        Some(Reference {
            results: figures.len(),
            days: days.len(),
            median_ns: median(&days)?,
            slowest_ns: figures.iter().map(|figure| figure.leg_ns).reduce(f64::max)?,
            predicted_ns: limit_of_days(&days, limits),
        })
    }

    /// Returns whether the good days are too few to show how much days vary.
    pub fn is_thin(&self) -> bool {
        self.days < LEAST_DAYS
    }

    /// Returns the limit if days may take longer than the median by this part. The limit is never below what good days need.
    pub fn tolerance(&self, within: f64) -> Tolerance {
        let wanted = self.median_ns * (1.0 + within);
        let varied = self.predicted_ns.map_or(self.slowest_ns, |predicted| predicted.max(self.slowest_ns));
        let limit_ns = wanted.max(varied);
        Tolerance { limit_ns, part: limit_ns / self.median_ns - 1.0, is_variation: varied > wanted }
    }
}

/// Returns the upper limit of prediction of a further day for one of several limits, from the logarithms of times; `None` for fewer
/// than seven days.
pub fn limit_of_days(days: &[f64], limits: usize) -> Option<f64> {
    let [mean, deviation] = moments_of_logarithms(days).filter(|_| days.len() >= LEAST_DAYS)?;
    // Bonferroni's correction holds whatever the rows of a day have in common.
    let quantile = upper_quantile(days.len() - 1, FALSE_ALARM / limits.max(1) as f64);
    Some((mean + quantile * deviation * (1.0 + 1.0 / days.len() as f64).sqrt()).exp())
}

/// How a row stands to a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// The whole interval meets the limit.
    Met,
    /// The limit is inside the interval, there is no interval, or other work disturbed the row.
    Undecided,
    /// The whole interval misses the limit.
    Missed,
}

/// Returns how a row stands to a limit in the unit of its headline: a maximum time, or a minimum bandwidth. `None` without a headline.
///
/// A row with an invalid mark misses the limit only if its fastest sample does: other work can slow samples down, not all of them up.
pub fn standing(row: &Measurement, limit: f64) -> Option<Standing> {
    let headline = row.headline()?;
    let misses = |value: f64| match row.metric {
        Metric::Latency => value > limit,
        Metric::Bandwidth => value < limit,
    };
    let fastest = || row.summary.as_ref().and_then(|summary| row.in_unit(summary.min));
    Some(match headline.ci95.map(|ends| ends.map(misses)) {
        Some([false, false]) => Standing::Met,
        Some([true, true]) if disturbance(row).is_none() || fastest().is_some_and(misses) => Standing::Missed,
        _ => Standing::Undecided,
    })
}

/// Returns a mark because of which no verdict may rest on the median of a row.
pub fn disturbance(row: &Measurement) -> Option<&Mark> {
    // Figures of debug builds are compared with limits of debug builds.
    row.marks(Level::Invalid).find(|mark| mark.code != MarkCode::DebugBuild)
}

#[cfg(test)]
mod tests {
    use ombx_record::result::Launched;
    use ombx_testkit::golden;

    use crate::{baseline::*, state};

    fn reference(days: &[(&str, f64)]) -> Reference {
        let figure = |&(date, leg_ns): &(&str, f64)| good(date, leg_ns, None);
        let figures: Vec<GoodFigure> = days.iter().map(figure).collect();
        Reference::new(&figures.iter().collect::<Vec<_>>(), 1).unwrap()
    }

    fn good(date: &str, leg_ns: f64, core_to_core_ns: Option<f64>) -> GoodFigure {
        GoodFigure { date: date.into(), leg_ns, core_to_core_ns }
    }

    #[test]
    fn few_days_have_a_thin_baseline() {
        let one = reference(&[("2026-01-01", 100.0), ("2026-01-01", 110.0), ("2026-01-01", 104.0)]);
        assert_eq!((one.results, one.days, one.median_ns, one.slowest_ns), (3, 1, 104.0, 110.0));
        assert!(one.is_thin() && one.predicted_ns.is_none());
        let tolerance = one.tolerance(0.2);
        assert!((tolerance.limit_ns - 124.8).abs() < 1e-9 && !tolerance.is_variation);
        let narrow = one.tolerance(0.01);
        assert!(narrow.limit_ns == 110.0 && narrow.is_variation, "the slowest good result is good");
    }

    #[test]
    fn the_tolerance_covers_the_variation_between_days() {
        let days = [("d1", 100.0), ("d2", 100.0), ("d2", 300.0), ("d3", 100.0)];
        let week = |ns: [f64; 7]| {
            let names = ["d1", "d2", "d3", "d4", "d5", "d6", "d7"];
            reference(&names.into_iter().zip(ns).collect::<Vec<_>>())
        };
        let steady = week([100.0, 100.5, 99.5, 100.0, 100.5, 99.5, 100.0]);
        let varying = week([100.0, 130.0, 80.0, 100.0, 130.0, 80.0, 100.0]);
        assert!(!steady.is_thin() && !steady.tolerance(0.2).is_variation);
        let tolerance = varying.tolerance(0.2);
        assert!(tolerance.is_variation && tolerance.part > 0.5, "{tolerance:?}");
        // Days count alike: the day with two results has a median of 200.
        assert_eq!(reference(&days).median_ns, 100.0);
        // The predicted limit of seven days by the table of Student: t(6; 0.001) = 5.208.
        let s = 2.0 * (0.005f64.ln_1p().powi(2) + (-0.005f64).ln_1p().powi(2)) / 6.0;
        let expected = 100.0 * (5.208 * (s * 8.0 / 7.0).sqrt()).exp();
        assert!((steady.predicted_ns.unwrap() / expected - 1.0).abs() < 1e-3, "{steady:?} {expected}");
    }

    #[test]
    fn a_case_is_compared_with_its_own_hosts_and_ranks() {
        let good = golden();
        let mut baseline = Baseline::default();
        baseline.add(std::slice::from_ref(&good));
        let row = &good.rows[0];
        let found = baseline.reference(&good.run, row, 1).unwrap();
        assert_eq!((found.results, found.days), (1, 1));
        let mut other = good.run.clone();
        other.places.iter_mut().for_each(|place| place.host = "elsewhere".into());
        assert_eq!(baseline.reference(&other, row, 1), Err(Missing::Case));
        let crowded = Measurement { ranks: 99, ..row.clone() };
        assert_eq!(baseline.reference(&good.run, &crowded, 1), Err(Missing::Case));
    }

    #[test]
    fn a_case_is_compared_with_its_own_state_of_the_machine() {
        let one = golden();
        let (row, mut run) = (&one.rows[0], one.run.clone());
        let figures = |distances: &[f64]| {
            let day = |(day, ns): (usize, &f64)| {
                good(
                    &format!("d{day}"),
                    if *ns > 100.0 { 900.0 } else { 300.0 },
                    Some(*ns).filter(|ns| *ns > 0.0),
                )
            };
            let figures = distances.iter().enumerate().map(day).collect();
            Baseline { cases: BTreeMap::from([(CaseOnHosts::new(&one.run, row), figures)]) }
        };
        let mut found = |baseline: &Baseline, ns: Option<f64>| {
            run.plan.remove(state::BEFORE);
            run.plan.extend(ns.map(|ns| (state::BEFORE.to_owned(), ns.to_string())));
            run.launched = Some(Launched { core_to_core_ns: ns, ..Launched::default() });
            baseline.reference(&run, row, 1).map(|found| (found.days, found.median_ns))
        };
        let two = figures(&[51.0, 250.0, 52.0, 251.0, 50.0, 0.0]);
        assert_eq!(found(&two, Some(55.0)), Ok((3, 300.0)));
        assert_eq!(found(&two, Some(240.0)), Ok((2, 900.0)));
        assert_eq!(found(&two, Some(1000.0)), Err(Missing::State(1000.0)));
        assert_eq!(found(&two, None), Err(Missing::UnknownState));
        let single = figures(&[51.0, 0.0, 52.0]);
        assert_eq!(found(&single, None), Ok((3, 300.0)));
        assert_eq!(found(&single, Some(60.0)), Ok((3, 300.0)));
        assert_eq!(found(&single, Some(250.0)), Err(Missing::State(250.0)));
        assert_eq!(found(&figures(&[0.0, 0.0]), Some(250.0)), Ok((2, 300.0)));
    }

    /// Many checks of good days whose times have a normal distribution, as a day is measured without error.
    #[test]
    fn a_check_of_many_limits_seldom_has_a_false_alarm() {
        const LIMITS: usize = 20;
        const CHECKS: u32 = 5000;
        let mut random = fastrand::Rng::with_seed(7);
        // Sum of twelve uniform numbers: its tails are no longer than those of the normal distribution.
        let mut day = || (0.02 * ((0..12).map(|_| random.f64()).sum::<f64>() - 6.0)).exp();
        let mut alarms = 0;
        for _ in 0..CHECKS {
            let mut is_above = || {
                let good: Vec<f64> = (0..7).map(|_| day()).collect();
                day() > limit_of_days(&good, LIMITS).unwrap()
            };
            alarms += u32::from((0..LIMITS).any(|_| is_above()));
        }
        // 5 are expected; 16 or more have a probability below 0.0001.
        assert!((1..16).contains(&alarms), "{alarms} of {CHECKS}");
    }
}

#[cfg(test)]
mod limit_tests {
    use ombx_record::{
        result::{Aggregation, ClockProperties, Samples, Work},
        stats::Summary,
    };

    use crate::baseline::*;

    /// Returns a row with this interval around 10 us; of a bandwidth of 1000 bytes in that time.
    fn row(metric: Metric, ends_us: Option<[f64; 2]>) -> Measurement {
        let samples =
            vec![Samples { batch: 1, elapsed_ns: vec![9_000, 10_000, 11_000], ..Samples::default() }];
        let clock = ClockProperties { source: "tsc", resolution_ns: 1, overhead_ns: 1 };
        let summary: Option<Summary> = Measurement::summarise(&samples, 1, clock);
        let summary = summary.map(|s| Summary { ci95: ends_us.map(|ends| ends.map(|us| us * 1e3)), ..s });
        let work = Some(Work { bytes: 1000, ops: 1, legs: 1 });
        Measurement {
            summary,
            work,
            aggregation: Aggregation::Origin,
            ..Measurement::new("b", "b/", metric, 2)
        }
    }

    #[test]
    fn the_interval_decides() {
        let row = row(Metric::Latency, Some([9.5, 10.5]));
        let of = |limit| standing(&row, limit).unwrap();
        assert_eq!(
            [11.0, 10.5, 10.2, 9.5, 9.4].map(of),
            [Standing::Met, Standing::Met, Standing::Undecided, Standing::Undecided, Standing::Missed]
        );
    }

    #[test]
    fn a_bandwidth_has_a_minimum() {
        // 1000 bytes in 10 us are 100 MB/s.
        let row = row(Metric::Bandwidth, Some([8.0, 12.5]));
        let of = |limit| standing(&row, limit).unwrap();
        assert_eq!([70.0, 100.0, 130.0].map(of), [Standing::Met, Standing::Undecided, Standing::Missed]);
    }

    #[test]
    fn nothing_is_decided_without_an_interval_or_a_figure() {
        assert_eq!(standing(&row(Metric::Latency, None), 1.0), Some(Standing::Undecided));
        let skipped = Measurement::new("b", "b/", Metric::Latency, 2);
        assert_eq!(standing(&skipped, 1.0), None);
    }

    #[test]
    fn a_disturbed_row_misses_a_limit_only_with_its_fastest_sample() {
        let mut row = row(Metric::Latency, Some([9.9, 10.5]));
        row.trust = vec![Mark::new(MarkCode::DebugBuild, "debug build", "x")];
        assert_eq!(standing(&row, 9.5), Some(Standing::Missed));
        row.trust
            .push(Mark::new(MarkCode::Preempted, "preempted 9x", "other processes ran").at(Level::Invalid));
        assert_eq!(standing(&row, 9.5), Some(Standing::Undecided));
        assert_eq!(standing(&row, 8.5), Some(Standing::Missed));
        assert_eq!(disturbance(&row).map(|mark| &mark.code), Some(&MarkCode::Preempted));
    }
}
