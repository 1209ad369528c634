//! One row from the rows of all launches of a case.

use std::collections::BTreeMap;

use ombx_record::{
    order::{grouped, sort, sort_by_number, sort_by_value},
    result::{
        AcrossRanks, Aggregation, Check, Figure, Figures, Growth, Level, Mark, MarkCode, Measurement,
        Outcome, OverLaunches, Phases, SHARES, Share, SingleTimes, StateFigure, interval_names,
    },
    stats::{Summary, median, order_bounds},
    unit::counted,
};

use crate::{
    launches::LEAST_LONG_LAUNCHES,
    percentiles::{self, TAIL, upper_quantile},
    state::{self, States},
};

/// Codes of marks about the interval within a launch, which the interval over launches replaces.
const WITHIN_A_LAUNCH: [MarkCode; 3] =
    [MarkCode::NotConverged, MarkCode::NoInterval, MarkCode::Autocorrelated];

/// Returns the row over launches of a case in one state of the machine; `None` without rows.
pub fn estimate(rows: &[Measurement]) -> Option<Measurement> {
    let launches: Vec<usize> = (0..rows.len()).collect();
    estimate_in(rows, &launches, None, None)
}

/// Returns the row over all launches of a case; `None` without rows. The row of a single launch is returned as it is.
///
/// `rows` are in the order of launches, at most one per launch, and `launches` has the number of each one's launch in `states`; without
/// `states` all are in one. A failure in any launch is a failure of the row. The summary is that of the most frequent state; `elapsed_s` is the time of all launches.
pub(super) fn estimate_in(
    rows: &[Measurement],
    launches: &[usize],
    states: Option<&States>,
    elapsed_s: Option<f64>,
) -> Option<Measurement> {
    let (first, rest) = rows.split_first()?;
    if rest.is_empty() {
        return Some(first.clone());
    }
    let failed = rows.iter().find(|row| matches!(row.outcome, Outcome::Failed(_)));
    let is_measured = |row: &&Measurement| row.outcome == Outcome::Ok && row.summary.is_some();
    let measured: Vec<&Measurement> = rows.iter().filter(is_measured).collect();
    let numbers: Vec<usize> =
        rows.iter().zip(launches).filter(|(row, _)| is_measured(row)).map(|(_, launch)| *launch).collect();
    // Identity, and the reason of a failure or of a skipped row, come from one of the launches.
    let typical = failed.or(measured.last().copied()).unwrap_or(first);
    let mut row = Measurement {
        samples: Vec::new(),
        tail: Vec::new(),
        summary: None,
        launches: Some(OverLaunches { batch: 1, ..OverLaunches::default() }),
        ..typical.clone()
    };
    row.check = check(rows, &typical.check);
    row.checked = rows.iter().map(|row| row.checked).fold(0, u64::saturating_add);
    row.phases = rows.iter().filter_map(|row| row.phases).reduce(Phases::plus);
    row.figures = figures(rows);
    row.grown = Growth::summed(rows.iter().flat_map(|row| row.grown.iter().cloned()));
    let found = over_launches(&measured, &numbers, states).filter(|_| failed.is_none());
    row.trust = match &found {
        Some((summary, over, _)) => {
            let in_state = over.states.first().map_or(&[][..], |state| &state.launches);
            marks(in_state.iter().map(|at| measured[*at]), summary.precision())
        }
        None => marks(rows.iter(), None),
    };
    if let Some((summary, over, drift)) = found {
        row.trust.extend(drift);
        row.trust.extend(several_states(typical, &over.states));
        row.launches = Some(OverLaunches { elapsed_s, ..over });
        row.summary = Some(summary);
    }
    Some(row)
}

/// Returns the mark of a row whose launches were in several states.
fn several_states(row: &Measurement, states: &[StateFigure]) -> Option<Mark> {
    let [first, others @ ..] = states else { return None };
    let others: Vec<String> = others.iter().map(|state| state_in_words(row, state)).collect();
    (!others.is_empty()).then(|| {
        let advice = format!(
            "the machine changed its state between launches: {}, but {}; {}",
            state_in_words(row, first),
            others.join("; "),
            MarkCode::LaunchStates.advice()
        );
        Mark::with_advice(MarkCode::LaunchStates, format!("{} states", states.len()), advice)
    })
}

/// Returns the figure of a row in a state, with the number of launches.
fn state_in_words(row: &Measurement, state: &StateFigure) -> String {
    let value = row.in_unit(state.median_ns).map_or("n/a".into(), crate::number::figure);
    let apart = state.core_to_core_ns.map_or(String::new(), |ns| format!(", cores {ns:.0} ns apart"));
    let launches = counted(state.launches.len(), "launch");
    format!("{value} {} in {launches}{apart}", row.metric.unit())
}

/// Returns the worst check of the launches.
fn check(rows: &[Measurement], typical: &Check) -> Check {
    let worst = rows.iter().map(|row| &row.check).find(|check| matches!(check, Check::Failed(_)));
    worst.unwrap_or(typical).clone()
}

/// Returns the summary of the most frequent state, what it comes from, and a mark if its launches drift.
fn over_launches(
    all: &[&Measurement],
    launches: &[usize],
    states: Option<&States>,
) -> Option<(Summary, OverLaunches, Option<Mark>)> {
    let medians: Vec<f64> = all.iter().filter_map(|row| Some(row.summary.as_ref()?.median)).collect();
    let divided = match states {
        Some(states) => by_state(all, launches, states),
        None => vec![state::Launches { at: (0..medians.len()).collect(), core_to_core_ns: None }],
    };
    let figures: Vec<StateFigure> =
        divided.iter().filter_map(|launches| state_figure(launches, all)).collect();
    let rows: Vec<&Measurement> = divided.first()?.at.iter().map(|at| all[*at]).collect();
    let summaries: Vec<&Summary> = rows.iter().filter_map(|row| row.summary.as_ref()).collect();
    let all = |pick: fn(&Summary) -> f64| summaries.iter().map(|s| pick(s)).collect::<Vec<f64>>();
    let headlines = Headlines::new(&rows);
    let (headline, found) = (headlines.combined(&headlines.values)?, headlines.interval());
    let singles: Vec<&SingleTimes> = rows
        .iter()
        .filter_map(|row| row.launches.as_ref().map(|over| &over.singles))
        .filter(|singles| !singles.counts.is_empty())
        .collect();
    let percentile = |quantile: f64| percentiles::over_launches(&singles, quantile);
    let summary = Summary {
        n: summaries.iter().map(|s| s.n).sum(),
        median: headline,
        ci95: found.map(|found| [found.low, found.high]),
        min: all(|s| s.min).into_iter().reduce(f64::min)?,
        mean: headlines.combined(&all(|s| s.mean))?,
        max: all(|s| s.max).into_iter().reduce(f64::max)?,
        mad: median(&all(|s| s.mad))?,
        tail_n: summaries.iter().map(|s| s.tail_n).sum(),
        p95: percentile(0.95),
        p99: percentile(0.99),
        p999: percentile(0.999),
        chosen: summaries[0].chosen.iter().map(|(p, _)| (*p, percentile(p / 100.0))).collect(),
        lag1: median(&all(|s| s.lag1))?,
        bimodal: summaries.iter().filter(|s| s.bimodal).count() * 2 > summaries.len(),
    };
    let across: Vec<AcrossRanks> = rows.iter().filter_map(|row| row.across_ranks()).collect();
    let of_ranks = |pick: fn(&AcrossRanks) -> f64| median(&across.iter().map(pick).collect::<Vec<_>>());
    let across = of_ranks(|a| a.mean).zip(of_ranks(|a| a.min)).zip(of_ranks(|a| a.max));
    let over = OverLaunches {
        states: figures,
        batch: rows.iter().find_map(|row| row.batch()).unwrap_or(1),
        across: across.map(|((mean, min), max)| AcrossRanks { mean, min, max }),
        medians_ns: medians,
        elapsed_s: None,
        between: None,
        singles: SingleTimes::default(),
    };
    let drift = found.filter(|found| found.drift).map(|_| {
        let cause = "later launches differ from earlier ones, so that the interval is too narrow";
        Mark::new(MarkCode::LaunchesDrift, "launches drift", cause)
    });
    Some((summary, over, drift))
}

/// Divides the launches of a case, of which each has a row with a summary, by the state of the machine. `launches` has their numbers in
/// `states`.
pub(crate) fn by_state(rows: &[&Measurement], launches: &[usize], states: &States) -> Vec<state::Launches> {
    let Headlines { combining, values, .. } = Headlines::new(rows);
    match combining {
        Combining::Median => state::divide(&values, launches, states),
        // A pause belongs to the total: launches with long ones are no other state.
        Combining::Total => state::divide(&vec![1.0; values.len()], launches, states),
    }
}

/// Returns the figure of launches in one state; `None` without launches.
fn state_figure(one: &state::Launches, all: &[&Measurement]) -> Option<StateFigure> {
    let rows: Vec<&Measurement> = one.at.iter().map(|at| all[*at]).collect();
    let headlines = Headlines::new(&rows);
    let found = headlines.interval();
    Some(StateFigure {
        launches: one.at.clone(),
        median_ns: headlines.combined(&headlines.values)?,
        ends_ns: found.map(|found| [found.low, found.high]),
        coverage: found.map_or(0.0, |found| found.coverage),
        core_to_core_ns: one.core_to_core_ns,
    })
}

/// How the headlines of launches become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Combining {
    /// Their median.
    Median,
    /// Total time over total work: the headlines are means, and a median of means would hide pauses.
    Total,
}

/// Returns the weight of a launch in the headline of several launches, its number of samples, if this is total time over total work: of
/// several pairs that begin together the headline is a mean. It is a median of one pair; `None`.
pub fn weight_in_total(row: &Measurement) -> Option<f64> {
    let summary =
        row.summary.as_ref().filter(|s| row.aggregation == Aggregation::Pairs && s.median == s.mean);
    summary.map(|summary| summary.n as f64)
}

/// Returns total time over total work from the means and the weights of launches; `None` without launches.
pub fn total(means: &[f64], weights: &[f64]) -> Option<f64> {
    let sum: f64 = means.iter().zip(weights).map(|(mean, weight)| mean * weight).sum();
    (!means.is_empty()).then(|| sum / weights.iter().sum::<f64>())
}

/// Ratio of the two middle ones of an even number of values from which their mean is no figure: no launch was near it.
const APART: f64 = 1.25;

/// Returns the median; of an even number of values whose middle ones are 25 % apart, the smaller of these.
fn middle(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sort(&mut sorted);
    let low = sorted.get(sorted.len().checked_sub(1)? / 2)?;
    median(values).filter(|middle| 2.0 * middle - low < APART * low).or(Some(*low))
}

/// Headlines of launches of a case.
#[derive(Debug)]
struct Headlines {
    combining: Combining,
    values: Vec<f64>,
    /// Number of samples of each launch. All have as many iterations in a sample.
    weights: Vec<f64>,
}

impl Headlines {
    /// Returns the headlines of rows.
    fn new(rows: &[&Measurement]) -> Headlines {
        let is_total = !rows.is_empty() && rows.iter().all(|row| weight_in_total(row).is_some());
        let of_row =
            |row: &&Measurement| row.summary.as_ref().map_or((f64::NAN, 0.0), |s| (s.median, s.n as f64));
        let (values, weights) = rows.iter().map(of_row).unzip();
        let combining = if is_total { Combining::Total } else { Combining::Median };
        Headlines { combining, values, weights }
    }

    /// Returns the headline that these values of the launches have together; `None` without launches.
    fn combined(&self, values: &[f64]) -> Option<f64> {
        match self.combining {
            Combining::Median => middle(values),
            Combining::Total => total(values, &self.weights),
        }
    }

    /// Returns the interval of the headline; `None` for fewer than 2 launches.
    ///
    /// That of a total is the one of a ratio, total time over total work, with launches as units: +- t(0.975, n - 1) of its standard error.
    fn interval(&self) -> Option<Interval> {
        let found = interval(&self.values)?;
        if self.combining == Combining::Median {
            return Some(found);
        }
        let n = self.values.len();
        let headline = self.combined(&self.values)?;
        let total: f64 = self.weights.iter().sum();
        let parts =
            self.values.iter().zip(&self.weights).map(|(value, weight)| weight / total * (value - headline));
        let variance = parts.map(|part| part * part).sum::<f64>() * n as f64 / (n - 1) as f64;
        let half = upper_quantile(n - 1, TAIL) * variance.sqrt();
        // A time is positive, and so is each launch's.
        let least = self.values.iter().copied().fold(headline, f64::min);
        let low = if half < headline { headline - half } else { least };
        Some(Interval { low, high: headline + half, coverage: 1.0 - 2.0 * TAIL, drift: found.drift })
    }
}

/// Returns the median of each figure over the launches that resolved it, or the reason of a launch that did not.
///
/// A figure that has an interval in a launch has one over the launches instead, by the same rule as the headline.
fn figures(rows: &[Measurement]) -> Figures {
    let mut all: BTreeMap<&String, Vec<&Figure>> = BTreeMap::new();
    rows.iter()
        .flat_map(|row| &row.figures)
        .for_each(|(name, figure)| all.entry(name).or_default().push(figure));
    let values =
        |figures: &[&Figure]| figures.iter().filter_map(|figure| figure.value()).collect::<Vec<f64>>();
    let mut combined: Figures = BTreeMap::new();
    for (name, figures) in &all {
        let values = values(figures);
        let unresolved = figures.iter().find(|figure| matches!(figure, Figure::Unresolved(_)));
        let resolved = median(&values).filter(|_| values.len() * 2 > figures.len()).map(Figure::Value);
        combined.extend(
            resolved.or(unresolved.map(|why| (*why).clone())).map(|figure| ((*name).clone(), figure)),
        );
    }
    for (name, figures) in &all {
        let Some(ends) = interval_names(name).filter(|ends| ends.iter().all(|end| all.contains_key(end)))
        else {
            continue;
        };
        combined.retain(|name, _| !ends.contains(name));
        let is_resolved = combined.get(*name).is_some_and(|figure| figure.value().is_some());
        if let Some(found) = interval(&values(figures)).filter(|_| is_resolved) {
            combined.extend(ends.into_iter().zip([found.low, found.high].map(Figure::Value)));
        }
    }
    for share in SHARES {
        let sum = |name: &str| {
            let counts = values(all.get(&name.to_owned())?);
            (counts.len() == rows.len()).then(|| counts.iter().sum::<f64>())
        };
        if let (Some(part), Some(whole)) = (sum(share.part), sum(share.all)) {
            pool(&mut combined, share, part, whole);
        }
    }
    combined
}

/// Replaces a share of datagrams by that of all launches together. The interval covers both the one over launches and Wilson's
/// interval of the sums: if no launch has lost a datagram, the next one may lose some.
fn pool(combined: &mut Figures, share: Share, part: f64, all: f64) {
    let value = |figures: &Figures, name: &str| figures.get(name)?.value();
    let [low, high] = ["low", "high"].map(|end| format!("{}_{end}_percent", share.name));
    let mut pooled = share.figures(part as u64, all as u64);
    for (name, wider) in [(low, f64::min as fn(f64, f64) -> f64), (high, f64::max)] {
        if let (Some(over_launches), Some(of_sums)) = (value(combined, &name), value(&pooled, &name)) {
            pooled.insert(name, Figure::Value(wider(over_launches, of_sums)));
        }
    }
    combined.extend(pooled);
    combined.extend(
        [(share.part, part), (share.all, all)].map(|(name, sum)| (name.to_owned(), Figure::Value(sum))),
    );
}

/// Effect on a headline that is none: with one decimal of a percentage it is 0.0 %.
const NO_EFFECT: f64 = 0.0005;

/// Returns the marks that more than half of the launches have, at the level that more than half reach. A minority moves neither the
/// median nor much of the interval. The bound of an effect is one for the headline; its level follows from half the interval that is printed,
/// as a fraction.
fn marks<'r>(rows: impl ExactSizeIterator<Item = &'r Measurement>, printed: Option<f64>) -> Vec<Mark> {
    let count = rows.len();
    let rows: Vec<&Measurement> = rows.collect();
    let headlines = Headlines::new(&rows);
    let by_code = grouped((0..).zip(rows).flat_map(|(at, row)| {
        worst_by_code(row).into_iter().map(move |(code, mark)| (code, OfLaunch { at, mark }))
    }));
    let most = by_code.into_iter().filter(|(_, marks)| marks.len() * 2 > count);
    most.map(|(_, marks)| mark_of_most(marks, &headlines, printed)).collect()
}

/// Mark of a launch.
struct OfLaunch<'m> {
    /// Place of the launch.
    at: usize,
    mark: &'m Mark,
}

/// Returns the worst mark of each code of a launch.
fn worst_by_code(row: &Measurement) -> BTreeMap<&MarkCode, &Mark> {
    let mut worst: BTreeMap<&MarkCode, &Mark> = BTreeMap::new();
    for mark in row.trust.iter().filter(|mark| !is_within_a_launch(mark)) {
        let kept = worst.entry(&mark.code).or_insert(mark);
        *kept = if mark.level > kept.level { mark } else { kept };
    }
    worst
}

/// Returns the mark, of more than half of the launches, at the level that more than half reach.
fn mark_of_most(mut marks: Vec<OfLaunch<'_>>, headlines: &Headlines, printed: Option<f64>) -> Mark {
    let bound = bound_of_headline(&marks, headlines);
    let effect = |mark: &Mark| mark.effect.unwrap_or(f64::INFINITY);
    if bound.is_some() {
        sort_by_value(&mut marks, |one| -effect(one.mark));
    } else {
        sort_by_number(&mut marks, |one| -(one.mark.level as i64));
    }
    let mark = marks[headlines.values.len() / 2].mark.clone().bounded(bound);
    match printed.zip(bound) {
        Some((half, bound)) => Mark { level: Level::of_effect(bound, half.max(NO_EFFECT)), ..mark },
        None => mark,
    }
}

/// Returns by which fraction the headline of the launches is too high at most; `None` if that has no bound.
///
/// The time of each launch lies between its headline and what its bound leaves of it: nothing, if it has none. Medians and means of such times
/// are at least those of their lower ends.
fn bound_of_headline(marks: &[OfLaunch<'_>], headlines: &Headlines) -> Option<f64> {
    let mut lowest = headlines.values.clone();
    for OfLaunch { at, mark } in marks {
        lowest[*at] *= 1.0 - mark.effect.unwrap_or(1.0);
    }
    let (headline, lowest) = (headlines.combined(&headlines.values)?, headlines.combined(&lowest)?);
    (lowest > 0.0).then(|| 1.0 - lowest / headline)
}

/// Returns whether a mark is about the interval within a launch, which the interval over launches replaces.
pub fn is_within_a_launch(mark: &Mark) -> bool {
    WITHIN_A_LAUNCH.contains(&mark.code)
}

/// Standard errors of the autocorrelation above which launches are said to drift. Independent launches seldom exceed it; the
/// widening of the interval starts at 1.
const SURELY_DEPENDENT: f64 = 2.0;

/// Interval of the median within a run, from launches in one state of the machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Low end, in the unit of the launches' values.
    pub low: f64,
    /// High end, in the same unit.
    pub high: f64,
    /// Probability that order statistics at its ranks contain the median of all launches, if they are independent.
    pub coverage: f64,
    /// Whether the launches depend on each other by more than chance, and so much that even their range is too narrow for 95 %.
    pub drift: bool,
}

/// Returns the interval of the median, from values in the order of launches; `None` for fewer than 2.
///
/// The ends are order statistics, with ranks moved outward by sqrt((1 + q) / (1 - q)), where q is the lag-1 autocorrelation of the
/// launches' ranks plus 1 / n, if q exceeds 1 / sqrt(n). Nothing else widens them: the scatter within a run cannot tell how much runs
/// differ. With fewer than 6 launches the interval is their range, and with 6 to 8 the order statistics of 95 % are.
pub fn interval(values: &[f64]) -> Option<Interval> {
    let n = values.len();
    if n < 2 {
        return None;
    }
    let mut sorted = values.to_vec();
    sort(&mut sorted);
    let (least, most) = (sorted[0], sorted[n - 1]);
    let Some((lower, _)) = order_bounds(n, 0.5).filter(|_| n >= LEAST_LONG_LAUNCHES as usize) else {
        return Some(Interval { low: least, high: most, coverage: coverage(n, 1), drift: false });
    };
    let center = (n + 1) as f64 / 2.0;
    let q = correlation(values, &sorted) + 1.0 / n as f64;
    let exceeds = |errors: f64| q > errors / (n as f64).sqrt();
    let widening = if exceeds(1.0) { ((1.0 + q) / (1.0 - q).max(f64::EPSILON)).sqrt() } else { 1.0 };
    // The tolerance keeps a rank that rounding moves by a last digit.
    let moved = (center - (center - lower as f64) * widening + 1e-9).floor();
    let rank = moved.max(1.0) as usize;
    let (low, high) = (sorted[rank - 1], sorted[n - rank]);
    Some(Interval {
        low,
        high,
        coverage: coverage(n, if moved < 1.0 { 1 } else { lower }),
        drift: moved < 1.0 && exceeds(SURELY_DEPENDENT),
    })
}

/// Returns the probability that order statistics `lower` and `n + 1 - lower` enclose the median of independent launches.
fn coverage(n: usize, lower: usize) -> f64 {
    let mut term = 0.5f64.powi(i32::try_from(n).unwrap_or(i32::MAX));
    let mut outside = 0.0;
    for k in 0..lower {
        outside += term;
        term *= (n - k) as f64 / (k + 1) as f64;
    }
    1.0 - 2.0 * outside
}

/// Returns the lag-1 autocorrelation of the ranks of the values, which are also given sorted. Equal values share the mean of their ranks.
fn correlation(values: &[f64], sorted: &[f64]) -> f64 {
    let rank = |x: f64| {
        let below = sorted.partition_point(|other| *other < x);
        let not_above = sorted.partition_point(|other| *other <= x);
        (below + not_above - 1) as f64 / 2.0
    };
    let mean = (values.len() - 1) as f64 / 2.0;
    let deviations: Vec<f64> = values.iter().map(|x| rank(*x) - mean).collect();
    let variance: f64 = deviations.iter().map(|d| d * d).sum();
    let products: f64 = deviations.windows(2).map(|pair| pair[0] * pair[1]).sum();
    if variance > 0.0 { products / variance } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use ombx_record::result::{Metric, Samples, Work};

    use crate::{launches::case::*, state::Distances};

    fn launch(ns: u64) -> Measurement {
        let samples = vec![Samples { batch: 2, elapsed_ns: vec![2 * ns; 40], ..Samples::default() }];
        Measurement {
            bytes: Some(8),
            work: Some(Work { bytes: 8, ops: 1, legs: 1 }),
            summary: Summary::of_batches(&Measurement::combine(&samples, 1)),
            samples,
            ..Measurement::new("p2p.latency", "p2p.latency/bytes=8", Metric::Latency, 2)
        }
    }

    #[test]
    fn the_headline_is_the_median_of_the_launches() {
        let times = [300, 310, 290, 305, 500, 295, 302];
        let row = estimate(&times.map(launch)).unwrap();
        let headline = row.headline().unwrap();
        // Seven launches: the range.
        assert_eq!(headline.ci95, Some([0.29, 0.5]));
        assert_eq!(headline.value, 0.302);
        assert_eq!((row.launch_range(), row.batch()), (Some([0.29, 0.5]), Some(2)));
        let over = row.launches.unwrap();
        assert_eq!(over.medians_ns, times.map(|ns| ns as f64));
        assert!((over.coverage() - 0.984).abs() < 0.001 && over.states.len() == 1);
        assert!(row.samples.is_empty() && row.trust.is_empty());
        assert_eq!(row.summary.unwrap().n, 280);
    }

    #[test]
    fn a_headline_is_near_a_launch() {
        let headline = |times: &[u64]| {
            let rows: Vec<Measurement> = times.iter().map(|ns| launch(*ns)).collect();
            estimate(&rows).unwrap().headline().unwrap().value
        };
        assert_eq!([headline(&[300, 310, 500, 510]), headline(&[300, 310, 370, 380])], [0.31, 0.34]);
        assert_eq!([headline(&[300, 600]), headline(&[600, 300, 310])], [0.3, 0.31]);
    }

    #[test]
    fn each_state_of_the_machine_has_a_figure_and_none_is_pooled() {
        let rows = [304, 301, 308, 900, 300, 307, 905, 302, 306, 303, 305].map(launch);
        let distance = |ns: u64| Some(if ns > 800 { 252.0 } else { 51.0 });
        let distances = rows.each_ref().map(|row| {
            let ns = distance(row.summary.as_ref().unwrap().median as u64);
            Distances { before_ns: ns, after_ns: ns }
        });
        let numbers: Vec<usize> = (0..rows.len()).collect();
        let row = estimate_in(&rows, &numbers, Some(&States::new(&distances)), Some(2.9)).unwrap();
        let over = row.launches.as_ref().unwrap();
        assert_eq!((row.launch_count(), row.launches_in_state(), over.elapsed_s), (11, 9, Some(2.9)));
        assert_eq!((row.headline().unwrap().value, row.launch_range()), (0.304, Some([0.3, 0.308])));
        assert_eq!((over.states[1].median_ns, over.states[1].core_to_core_ns), (902.5, Some(252.0)));
        let mark = &row.trust[0];
        assert_eq!((&mark.code, mark.short.as_str()), (&MarkCode::LaunchStates, "2 states"));
        assert!(mark.advice.contains(
            "0.3040 us in 9 launches, cores 51 ns apart, but 0.9025 us in 2 launches, cores 252 ns apart"
        ));
    }

    /// A launch of several pairs with these times of samples.
    fn of_pairs(times: &[u64]) -> Measurement {
        let samples = Samples {
            batch: 1,
            elapsed_ns: times.to_vec(),
            started_ns: vec![0; times.len()],
            ..Samples::default()
        };
        let summary = Summary::of_total(&Measurement::combine(std::slice::from_ref(&samples), 1));
        Measurement { aggregation: Aggregation::Pairs, summary, samples: vec![samples], ..launch(1) }
    }

    #[test]
    fn several_pairs_have_the_total_time_over_the_total_work_of_all_launches() {
        let rows = [of_pairs(&[100; 4]), of_pairs(&[100, 100]), of_pairs(&[100, 100, 100, 500])];
        let row = estimate(&rows).unwrap();
        let summary = row.summary.as_ref().unwrap();
        assert_eq!((summary.median, summary.mean, row.launches_in_state()), (140.0, 140.0, 3));
        // Parts of 10 iterations: -16, -8 and 24. t(0.975, 2) = 4.303.
        let half = 4.302_65 * ((256.0 + 64.0 + 576.0) * 1.5f64).sqrt();
        let [low, high] = summary.ci95.unwrap();
        assert!((high - 140.0 - half).abs() < 0.1 && low == 100.0, "{low} {high} {half}");
        assert_eq!(row.launches.unwrap().coverage(), 0.95);
        // Launches with pauses are no other state of the machine.
        let rows = [100, 101, 900, 102, 103, 910, 104, 920, 105].map(|ns| of_pairs(&[ns; 4]));
        let states = States::new(&[Distances { before_ns: Some(51.0), after_ns: Some(51.0) }; 9]);
        let numbers: Vec<usize> = (0..9).collect();
        let row = estimate_in(&rows, &numbers, Some(&states), None).unwrap();
        assert_eq!((row.launches_in_state(), row.summary.unwrap().median), (9, 3345.0 / 9.0));
    }

    /// Shares of 2,000 simulated runs of nine launches whose interval contains the mean, by the number of pauses a launch has on average.
    /// A launch is of 40 samples of 100 ns; a pause takes 4 us. Without a pause in any launch, which is 7 % of runs with 0.3 pauses a launch, no
    /// interval contains it.
    #[test]
    fn the_interval_of_a_total_contains_the_mean_with_pauses() {
        let mut random = ombx_record::random::SplitMix64(7);
        for (pauses, least) in [(0.3, 0.90), (1.0, 0.92), (3.0, 0.93)] {
            let part = pauses / 40.0;
            let mut is_pause = || (random.next_u64() >> 11) as f64 / 2f64.powi(53) < part;
            let mut held = 0;
            for _ in 0..2000 {
                let values: Vec<f64> = (0..9)
                    .map(|_| (0..40).map(|_| if is_pause() { 4100.0 } else { 100.0 }).sum::<f64>() / 40.0)
                    .collect();
                let found = Headlines { combining: Combining::Total, values, weights: vec![40.0; 9] }
                    .interval()
                    .unwrap();
                held += u32::from((found.low..=found.high).contains(&(100.0 + 4000.0 * part)));
            }
            let share = f64::from(held) / 2000.0;
            assert!(share >= least, "{pauses} pauses a launch: {share}");
        }
    }

    #[test]
    fn one_launch_is_its_own_row() {
        assert_eq!(estimate(&[launch(300)]), Some(launch(300)));
        assert_eq!(estimate(&[]), None);
    }

    #[test]
    fn a_failure_in_one_launch_is_a_failure() {
        let mut rows = [300, 310, 320].map(launch);
        rows[1].outcome = Outcome::Failed("data arrived wrong".into());
        let row = estimate(&rows).unwrap();
        assert_eq!((&row.outcome, &row.summary), (&rows[1].outcome, &None));
    }

    #[test]
    fn a_mark_of_few_launches_is_none_of_the_row() {
        let mut rows = [300, 310, 320, 330, 340].map(launch);
        rows[0].trust.push(Mark::new(MarkCode::Waited, "waited 3%", "").at(Level::Caution));
        rows.iter_mut()
            .for_each(|row| row.trust.push(Mark::new(MarkCode::Oversubscribed, "oversubscribed", "")));
        let codes: Vec<MarkCode> = estimate(&rows).unwrap().trust.into_iter().map(|mark| mark.code).collect();
        assert_eq!(codes, [MarkCode::Oversubscribed]);
    }

    #[test]
    fn a_mark_has_the_level_that_most_launches_reach() {
        let levels = |marks: [Mark; 3]| {
            let mut rows = [300, 310, 320].map(launch);
            rows.iter_mut().zip(marks).for_each(|(row, mark)| row.trust.push(mark));
            estimate(&rows).unwrap().trust[0].level
        };
        let of = |level| Mark::new(MarkCode::Preempted, "preempted", "").at(level);
        use Level::{Caution, Invalid, Note};
        assert_eq!(levels([of(Note), of(Invalid), of(Invalid)]), Invalid);
        assert_eq!(levels([of(Invalid), of(Note), of(Note)]), Note);
        assert_eq!(levels([of(Invalid), of(Caution), of(Note)]), Caution);
    }

    #[test]
    fn the_level_of_an_effect_follows_from_the_interval_that_is_printed() {
        // Half the interval of nine launches is 1 % of the median.
        let of = |effect: f64| {
            let mut rows = [300, 297, 303, 299, 301, 296, 304, 298, 302].map(launch);
            let mark = Mark {
                effect: Some(effect),
                ..Mark::new(MarkCode::Waited, "waited 3%", "").at(Level::Caution)
            };
            rows.iter_mut().for_each(|row| row.trust.push(mark.clone()));
            estimate(&rows).unwrap().trust[0].level
        };
        assert_eq!(
            [0.0, 0.009, 0.011, 0.06].map(of),
            [Level::Note, Level::Note, Level::Caution, Level::Invalid]
        );
    }

    /// Launches of which each has a mark with this bound, at the level caution.
    fn with_effects<const N: usize>(times: [u64; N], effects: [Option<f64>; N]) -> Mark {
        let mut rows = times.map(launch);
        for (row, effect) in rows.iter_mut().zip(effects) {
            let mark = Mark::new(MarkCode::Preempted, "preempted 2x", "").at(Level::Caution);
            row.trust.push(mark.bounded(effect));
        }
        estimate(&rows).unwrap().trust.remove(0)
    }

    #[test]
    fn the_bound_of_a_mark_is_that_of_the_headline() {
        // The headline 310 is that of the second launch; the bounds of the others leave 150 and 319 ns.
        let mark = with_effects([300, 310, 320], [Some(0.5), Some(0.02), Some(0.003)]);
        assert!((mark.effect.unwrap() - 0.02).abs() < 1e-9 && mark.short == "preempted 2x (up to 2.0%)");
        // The lower ends are 300, 155 and 160 ns: the headline may be that of the third launch.
        let mark = with_effects([300, 310, 320], [Some(0.0), Some(0.5), Some(0.5)]);
        assert!((mark.effect.unwrap() - (1.0 - 160.0 / 310.0)).abs() < 1e-9, "{mark:?}");
        // One launch without a bound may have taken no time at all.
        let mark = with_effects([300, 310, 320], [None, Some(0.0), Some(0.0)]);
        assert_eq!((mark.effect, mark.short.as_str()), (Some(0.0), "preempted 2x (up to 0.0%)"));
    }

    #[test]
    fn most_launches_without_a_bound_leave_none() {
        let mark = with_effects([300, 310, 320], [None, None, Some(0.001)]);
        assert_eq!((mark.effect, mark.short.as_str(), mark.level), (None, "preempted 2x", Level::Caution));
    }

    /// In 2,000 simulated runs, the median and the mean of the true times of launches are never below the bound.
    #[test]
    fn no_headline_is_too_high_by_more_than_its_bound() {
        let part_of = |time: f64| (time - 1.0).clamp(0.0, 1.0);
        let mut noise = ombx_testkit::noise::Noise::Tailed { mean: 0.3, phi: 0.0 }.stream(1);
        for run in 0..2000 {
            let of_launches =
                [(); 9].map(|()| (noise.next_time(), part_of(noise.next_time()), part_of(noise.next_time())));
            let rows: Vec<Mark> = of_launches
                .map(|(_, effect, _)| {
                    Mark::new(MarkCode::Waited, "", "").bounded((effect < 0.9).then_some(effect))
                })
                .into();
            let marks: Vec<OfLaunch<'_>> = (0..)
                .zip(&rows)
                .filter(|(at, _)| at % 4 != 3)
                .map(|(at, mark)| OfLaunch { at, mark })
                .collect();
            let measured = of_launches.map(|(time, ..)| time);
            let mut truth = measured;
            for one in &marks {
                truth[one.at] *= 1.0 - of_launches[one.at].2 * one.mark.effect.unwrap_or(1.0);
            }
            for combining in [Combining::Median, Combining::Total] {
                let headlines = Headlines { combining, values: measured.into(), weights: vec![1.0; 9] };
                let bound = bound_of_headline(&marks, &headlines).unwrap_or(1.0);
                let off = 1.0 - headlines.combined(&truth).unwrap() / headlines.combined(&measured).unwrap();
                assert!(off <= bound + 1e-9, "{run}: {off} above {bound}");
            }
        }
    }

    #[test]
    fn a_figure_is_the_median_of_the_launches_that_resolve_it() {
        let mut rows = [300, 310, 320].map(launch);
        for (row, value) in rows.iter_mut().zip([1.0, 9.0, 2.0]) {
            row.figures.insert("overlap_percent".into(), Figure::Value(value));
        }
        rows[2].figures.insert("one_way_us".into(), Figure::Unresolved("too short".into()));
        let figures = estimate(&rows).unwrap().figures;
        assert_eq!(figures["overlap_percent"], Figure::Value(2.0));
        assert_eq!(figures["one_way_us"], Figure::Unresolved("too short".into()));
    }

    #[test]
    fn a_share_of_datagrams_is_that_of_all_launches() {
        let mut rows = [300; 7].map(launch);
        let lose = |rows: &mut [Measurement], lost: [u64; 7]| {
            for (row, lost) in rows.iter_mut().zip(lost) {
                row.figures = SHARES[0].figures(lost, 100);
                row.figures.insert("lost_datagrams".into(), Figure::Value(lost as f64));
                row.figures.insert("sent_datagrams".into(), Figure::Value(100.0));
            }
            let figures = estimate(rows).unwrap().figures;
            let value = |name: &str| match &figures[name] {
                Figure::Value(value) => *value,
                Figure::Unresolved(why) => panic!("{why}"),
            };
            ["lost_percent", "lost_low_percent", "lost_high_percent", "sent_datagrams"].map(value)
        };
        let [share, low, high, sent] = lose(&mut rows, [0; 7]);
        // Wilson's interval of 0 of 700.
        assert!(share == 0.0 && low == 0.0 && (high - 0.5458).abs() < 1e-3 && sent == 700.0, "{high}");
        // One launch loses many: the sum is 10 of 700, and the interval reaches to what that launch has lost.
        let [share, _, high, _] = lose(&mut rows, [0, 0, 10, 0, 0, 0, 0]);
        assert!((share - 100.0 * 10.0 / 700.0).abs() < 1e-9 && high >= 10.0, "{share} {high}");
    }

    #[test]
    fn the_interval_of_a_figure_is_that_over_the_launches() {
        let mut rows = [300; 7].map(launch);
        for (row, value) in rows.iter_mut().zip([20.0, 45.0, 33.0, 30.0, 28.0, 36.0, 31.0]) {
            for (name, value) in
                [("percent", value), ("low_percent", value - 1.0), ("high_percent", value + 1.0)]
            {
                row.figures.insert(format!("overlap_{name}"), Figure::Value(value));
            }
        }
        let ends = |figures: &Figures| {
            ["overlap_low_percent", "overlap_high_percent"].map(|name| figures.get(name).cloned())
        };
        let figures = estimate(&rows).unwrap().figures;
        assert_eq!(figures["overlap_percent"], Figure::Value(31.0));
        assert_eq!(ends(&figures), [20.0, 45.0].map(|end| Some(Figure::Value(end))));
        for row in &mut rows[..5] {
            row.figures = Figures::from([("overlap_percent".into(), Figure::Unresolved("noise".into()))]);
        }
        let figures = estimate(&rows).unwrap().figures;
        assert_eq!(
            (&figures["overlap_percent"], ends(&figures)),
            (&Figure::Unresolved("noise".into()), [None, None])
        );
    }

    /// 101 to 100 + n in an order that shows no dependence.
    fn alternating(n: usize) -> Vec<f64> {
        (0..n).map(|i| if i % 2 == 0 { i / 2 } else { n - 1 - i / 2 } as f64 + 101.0).collect()
    }

    #[test]
    fn ranks_and_coverage_are_those_of_the_method() {
        let table = [
            (2, 1, 50.0),
            (3, 1, 75.0),
            (4, 1, 87.5),
            (5, 1, 93.8),
            (6, 1, 96.9),
            (8, 1, 99.2),
            (9, 2, 96.1),
            (10, 2, 97.9),
            (12, 3, 96.1),
            (15, 4, 96.5),
            (20, 6, 95.9),
            (25, 8, 95.7),
            (30, 10, 95.7),
        ];
        for (n, lower, percent) in table {
            let found = interval(&alternating(n)).unwrap();
            let (low, high) = (100.0 + f64::from(lower), 101.0 + n as f64 - f64::from(lower));
            assert_eq!((found.low, found.high), (low, high), "{n}");
            assert!((found.coverage * 100.0 - percent).abs() < 0.1, "{n}: {}", found.coverage);
            assert!(!found.drift, "{n}");
        }
        assert_eq!(interval(&[1.0]), None);
    }

    #[test]
    fn dependence_widens_and_a_trend_is_a_drift() {
        // Ranks with a lag-1 autocorrelation of 0.3.
        let blocks = [12, 7, 13, 14, 2, 1, 3, 9, 6, 5, 8, 11, 15, 10, 4].map(|rank| f64::from(100 + rank));
        let (plain, widened) = (interval(&alternating(15)).unwrap(), interval(&blocks).unwrap());
        assert!(widened.low < plain.low && widened.high > plain.high && !widened.drift, "{widened:?}");
        let trend: Vec<f64> = (0..15).map(f64::from).collect();
        let found = interval(&trend).unwrap();
        assert!(found.drift && (found.low, found.high) == (0.0, 14.0), "{found:?}");
    }

    #[test]
    fn an_interval_lies_within_the_range_of_its_launches() {
        let outlier = [27.2, 27.0, 27.4, 307.0, 27.1, 27.3, 27.6, 27.5, 27.7];
        let found = interval(&outlier).unwrap();
        assert_eq!((found.low, found.high), (27.1, 27.7));
        let times = [110.0, 300.0, 550.0, 120.0, 540.0, 310.0, 290.0];
        let (time, rate) = (interval(&times).unwrap(), interval(&times.map(|x| 1.0 / x)).unwrap());
        assert_eq!([time.low, time.high], [1.0 / rate.high, 1.0 / rate.low]);
    }

    #[test]
    fn equal_launches_have_an_interval_of_width_zero() {
        let found = interval(&[7.0; 9]).unwrap();
        assert_eq!((found.low, found.high, found.drift), (7.0, 7.0, false));
    }
}
