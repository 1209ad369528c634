//! Statistical evaluation of a comparison: difference, interval, p value and verdict of each case.
//!
//! With enough launches, the launches are tested. With few launches, Student's t test is used. With one launch per side, the
//! samples are tested against an allowance for the difference between launches. All tests use logarithms: a difference is
//! then a ratio, and swapping the sides only changes its sign.

use super::{
    comparison::{CaseComparison, Change, Evidence, LaunchMedians, Method, Note, Order, Verdict},
    holm, rank_sum,
    side::{Launch, Row, by_samples},
    student,
};
use ombx_core::{benchmark::Metric, stats::median};

/// Accepted probability of at least one wrong verdict among all cases.
pub const SIGNIFICANCE: f64 = 0.05;
/// Minimum number of launches per side for a rank test of launches.
const MIN_LAUNCHES: usize = 5;
/// Smallest difference with a verdict. Rows measured to the default precision do not resolve smaller ones.
const MIN_CHANGE: f64 = 0.01;
/// Smallest allowance for the difference between equal sides with few launches.
const MIN_ALLOWANCE: f64 = 0.05;
/// Allowance for one launch per side, in standard deviations of the differences of all cases.
const SCATTER_FACTOR: f64 = 5.0;
/// Minimum number of cases from which that standard deviation is estimated.
const MIN_SCATTER_CASES: usize = 5;
/// Allowance for one launch per side with fewer cases.
const DEFAULT_ALLOWANCE: f64 = 0.25;
/// Allowance for consecutive sides, as a multiple of the larger drift within a side.
const DRIFT_FACTOR: f64 = 2.0;
/// Standard deviation of a normal distribution, in median absolute deviations.
const MAD_TO_SIGMA: f64 = 1.4826;

/// Difference of one case, before correction for multiple testing. Differences are logarithms of ratios.
struct Estimate {
    shift: f64,
    interval: Option<[f64; 2]>,
    method: Method,
    p: Option<f64>,
    /// Allowed difference of equal sides, as a fraction.
    allowance: Option<f64>,
}

/// Evaluates all cases of two sides. The p values are corrected for the number of cases.
pub(super) fn evaluate(pairs: &[(&Row, &Row)], order: Order) -> (Vec<CaseComparison>, Vec<Note>) {
    let shifts: Vec<f64> = pairs.iter().map(|(base, new)| shift(&base.launches, &new.launches)).collect();
    let methods: Vec<Method> = pairs.iter().map(|pair| method(*pair, pairs.len())).collect();
    // A launch that is slower in everything must not count as scatter: bandwidths are turned into times.
    let slower = |((base, _), shift): (&(&Row, &Row), &f64)| match base.id.metric {
        Metric::Latency => *shift,
        Metric::Bandwidth => -shift,
    };
    let single = pairs.iter().zip(&shifts).zip(&methods).filter(|(_, method)| **method == Method::OneLaunch);
    let single: Vec<f64> = single.map(|(case, _)| slower(case)).collect();
    let allowance = allowance(&single);
    let estimates: Vec<Estimate> = pairs
        .iter()
        .zip(shifts.iter().zip(&methods))
        .map(|((base, new), (shift, method))| {
            let allowance = match (method, order) {
                (Method::OneLaunch, _) => allowance,
                (_, Order::Interleaved) => 0.0,
                (_, Order::Consecutive) => DRIFT_FACTOR * drift(&base.launches).max(drift(&new.launches)),
            };
            let least = if *method == Method::Launches { 0.0 } else { MIN_ALLOWANCE.ln_1p() };
            let allowance = f64::max(allowance, least);
            estimate(&base.launches, &new.launches, *shift, *method, allowance)
        })
        .collect();
    let tested: Vec<usize> = (0..estimates.len()).filter(|at| estimates[*at].p.is_some()).collect();
    let adjusted = holm::holm(&tested.iter().filter_map(|at| estimates[*at].p).collect::<Vec<f64>>());
    let mut p_adjusted = vec![None; estimates.len()];
    tested.iter().zip(adjusted).for_each(|(at, p)| p_adjusted[*at] = Some(p));
    let notes = notes(pairs, &methods, allowance);
    let cases = pairs.iter().zip(estimates).zip(p_adjusted);
    let mut cases: Vec<CaseComparison> =
        cases.map(|((pair, estimate), p_adjusted)| compared(*pair, estimate, p_adjusted)).collect();
    confirm(&mut cases);
    (cases, notes)
}

/// Withdraws a verdict on single launches that no other case confirms.
///
/// A launch can have another mode in one case, far outside the scatter. With several cases, two must therefore differ
/// in the same direction.
fn confirm(cases: &mut [CaseComparison]) {
    let is_single = |case: &CaseComparison| case.evidence.method == Method::OneLaunch;
    let count =
        |wanted: Verdict| cases.iter().filter(|case| is_single(case) && case.verdict == wanted).count();
    let (better, worse) = (count(Verdict::Better), count(Verdict::Worse));
    let several = cases.iter().filter(|case| is_single(case)).count() > 1;
    for case in cases.iter_mut().filter(|case| several && is_single(case)) {
        if matches!((&case.verdict, better, worse), (Verdict::Better, 1, _) | (Verdict::Worse, _, 1)) {
            case.verdict = Verdict::Unresolved(
                "one launch per side, and no other case changed in this direction".into(),
            );
        }
    }
}

fn medians(row: &Row) -> LaunchMedians {
    let launches: Vec<f64> = row.launches.iter().map(|launch| launch.median).collect();
    LaunchMedians {
        median: median(&launches).unwrap_or(f64::NAN),
        launches,
        marks: row.launches.iter().flat_map(|launch| launch.marks.iter().cloned()).collect(),
    }
}

fn logs(launches: &[Launch]) -> Vec<f64> {
    launches.iter().map(|launch| launch.median.ln()).collect()
}

/// Returns the logarithm of the ratio of the medians.
fn shift(base: &[Launch], new: &[Launch]) -> f64 {
    let of = |side: &[Launch]| {
        let medians: Vec<f64> = side.iter().map(|launch| launch.median).collect();
        median(&medians).map_or(f64::NAN, f64::ln)
    };
    of(new) - of(base)
}

fn method((base, new): (&Row, &Row), cases: usize) -> Method {
    match (base.launches.len(), new.launches.len()) {
        (1, 1) => Method::OneLaunch,
        (a, b) if a.min(b) >= MIN_LAUNCHES && can_resolve(a, b, cases) => Method::Launches,
        _ => Method::FewLaunches,
    }
}

/// Returns whether the smallest p value of a rank test is significant after correction for the number of cases.
fn can_resolve(a: usize, b: usize, cases: usize) -> bool {
    rank_sum::smallest_p(a, b) * (cases as f64) < SIGNIFICANCE
}

/// Returns the number of launches per side from which a rank test of launches can judge this number of cases.
pub fn launches_needed(cases: usize) -> usize {
    (MIN_LAUNCHES..).find(|n| can_resolve(*n, *n, cases)).unwrap_or(MIN_LAUNCHES)
}

/// Estimates from the scatter of all single-launch cases how much two launches may differ, as a logarithm.
fn allowance(shifts: &[f64]) -> f64 {
    let Some(middle) = median(shifts).filter(|_| shifts.len() >= MIN_SCATTER_CASES) else {
        return DEFAULT_ALLOWANCE.ln_1p();
    };
    let off: Vec<f64> = shifts.iter().map(|shift| (shift - middle).abs()).collect();
    MIN_ALLOWANCE.ln_1p().max(SCATTER_FACTOR * MAD_TO_SIGMA * median(&off).unwrap_or(0.0))
}

/// Returns the distance between the medians of the earlier and the later half of the launches, as a logarithm.
fn drift(launches: &[Launch]) -> f64 {
    let mut ordered: Vec<&Launch> = launches.iter().collect();
    ordered.sort_by(|a, b| a.started.cmp(&b.started));
    let half = ordered.len() / 2;
    let middle = |part: &[&Launch]| median(&part.iter().map(|launch| launch.median.ln()).collect::<Vec<_>>());
    let (early, late) = (middle(&ordered[..half]), middle(&ordered[ordered.len() - half..]));
    early.zip(late).map_or(0.0, |(early, late)| (late - early).abs())
}

fn estimate(base: &[Launch], new: &[Launch], shift: f64, method: Method, allowance: f64) -> Estimate {
    // The null hypothesis is a difference of the allowance, not of zero.
    let moved = allowance.min(shift.abs()).copysign(shift);
    let (a, b) = (logs(base), logs(new).into_iter().map(|x| x - moved).collect::<Vec<f64>>());
    let by_samples = || by_samples(base, new, moved);
    let (interval, p) = match method {
        Method::Launches => (rank_sum::shift_interval(&a, &b), rank_sum::mann_whitney(&a, &b)),
        Method::FewLaunches => {
            let both = student::student(&a, &b).zip(by_samples());
            (
                both.map(|((ends, _), _)| ends),
                both.map(|((_, by_launch), by_sample)| by_launch.max(by_sample)),
            )
        }
        Method::OneLaunch => {
            let ends = base[0].interval().zip(new[0].interval());
            let below = |old: [f64; 2], now: [f64; 2]| (now[0] - b[0] - moved).hypot(old[1] - a[0]);
            let above = |old: [f64; 2], now: [f64; 2]| (now[1] - b[0] - moved).hypot(old[0] - a[0]);
            let at = b[0] - a[0];
            (ends.map(|(old, now)| [at - below(old, now), at + above(old, now)]), by_samples())
        }
    };
    Estimate {
        shift,
        // The interval belongs to another estimator than the median of medians. It is widened to contain both.
        interval: interval
            .map(|[low, high]| [low + moved - allowance, high + moved + allowance])
            .map(|[low, high]| [low.min(shift), high.max(shift)]),
        method,
        p: if shift.abs() > allowance { p } else { p.map(|_| 1.0) },
        allowance: (allowance > 0.0).then(|| allowance.exp_m1()),
    }
}

fn compared((base, new): (&Row, &Row), estimate: Estimate, p_adjusted: Option<f64>) -> CaseComparison {
    let Estimate { shift, interval, method, p, allowance } = estimate;
    let (base_medians, new_medians) = (medians(base), medians(new));
    let verdict = match unresolved_reason(&estimate, p_adjusted, [&base_medians, &new_medians]) {
        Some(why) => Verdict::Unresolved(why),
        None if (shift > 0.0) == (base.id.metric == Metric::Bandwidth) => Verdict::Better,
        None => Verdict::Worse,
    };
    CaseComparison {
        id: base.id.clone(),
        base: base_medians,
        new: new_medians,
        change: Change { median: shift.exp_m1(), ci95: interval.map(|ends| ends.map(f64::exp_m1)) },
        evidence: Evidence { method, p, p_adjusted, allowance },
        verdict,
    }
}

/// Returns why a case has no verdict, or `None` if it has one.
fn unresolved_reason(
    estimate: &Estimate,
    p_adjusted: Option<f64>,
    sides: [&LaunchMedians; 2],
) -> Option<String> {
    let (Some(interval), Some(p)) = (estimate.interval, p_adjusted) else {
        return Some("the samples give no interval".into());
    };
    let one = estimate.method == Method::OneLaunch;
    let mut marks = sides.iter().flat_map(|side| &side.marks);
    if one && let Some(mark) = marks.next() {
        return Some(format!("one launch per side, marked {}", mark.replace('_', " ")));
    }
    let contains_zero = interval[0] <= 0.0 && interval[1] >= 0.0;
    let percent = |allowance: f64| format!("{:.0}%", allowance * 100.0);
    match estimate.allowance {
        Some(allowance) if contains_zero && one => {
            Some(format!("no difference shown: single launches may differ by {}", percent(allowance)))
        }
        Some(allowance) if contains_zero => {
            Some(format!("no difference shown: launches of one side may differ by {}", percent(allowance)))
        }
        _ if contains_zero => Some("no difference shown: the interval contains 0".into()),
        _ if p >= SIGNIFICANCE => Some("no difference shown: the corrected p value is 0.05 or more".into()),
        _ if estimate.shift.abs() < MIN_CHANGE.ln_1p() => Some("the difference is below 1%".into()),
        _ => None,
    }
}

fn notes(pairs: &[(&Row, &Row)], methods: &[Method], allowance: f64) -> Vec<Note> {
    let mut notes = Vec::new();
    let needed = launches_needed(pairs.len());
    if methods.contains(&Method::OneLaunch) {
        notes.push(Note {
            code: "one_launch",
            text: format!(
                "one launch per side does not show how much launches differ, so only differences above {:.0}% between unmarked rows get a verdict; use --launches {needed} for a stronger test",
                allowance.exp_m1() * 100.0
            ),
        });
    }
    if methods.contains(&Method::FewLaunches) {
        notes.push(Note {
            code: "few_launches",
            text: format!(
                "too few launches for a rank test of {} cases: only differences above 5% get a verdict, and the test assumes a normal distribution; use --launches {needed} to avoid both", pairs.len()
            ),
        });
    }
    notes
}
