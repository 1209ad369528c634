//! What a difference rests on: launches where there are enough, few launches with Student's t, else samples beyond an allowance.
//!
//! All is done in logarithms, so that a difference is a ratio and the same seen from either side.

use super::{
    Change, Compared, Evidence, Level, Method, Note, Verdict,
    side::{Launch, Row, by_samples},
};
use crate::compare::{rank_sum, several};
use ombx_core::{benchmark::work::Metric, stats::median};

/// The chance of any wrong verdict among all cases that is accepted.
pub const LEVEL: f64 = 0.05;
/// From so many launches on each side, ranks of launches can say something.
const ENOUGH_LAUNCHES: usize = 5;
/// No verdict on differences that a row measured to the default precision does not resolve.
const LEAST: f64 = 0.01;
/// Few launches: what sides that are alike may differ by at the least. With one launch a side, more ...
const ALLOWANCE: f64 = 0.05;
/// ... as a multiple of how the differences of cases scatter ...
const SCATTERS: f64 = 5.0;
/// ... and where fewer than ...
const CASES_THAT_SCATTER: usize = 5;
/// ... tell how they scatter.
const BLIND_ALLOWANCE: f64 = 0.25;
/// Sides that did not take turns: what they may differ by as a multiple of how either side drifted by itself.
const DRIFTS: f64 = 2.0;
/// The median absolute deviation of a normal distribution, as a part of its standard deviation.
const MAD: f64 = 1.4826;

/// Whether launches of both sides followed each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turns {
    /// They overlap in time.
    Taken,
    /// All of one side came first: what changed on the machine meanwhile looks like a difference.
    NotTaken,
}

/// What is known of a case before it is judged with all others.
struct Finding {
    shift: f64,
    interval: Option<[f64; 2]>,
    method: Method,
    p: Option<f64>,
    allowance: Option<f64>,
}

/// Judges all cases of two sides together.
pub(super) fn judge(pairs: &[(&Row, &Row)], turns: Turns) -> (Vec<Compared>, Vec<Note>) {
    let shifts: Vec<f64> = pairs.iter().map(|(base, new)| shift(&base.launches, &new.launches)).collect();
    let methods: Vec<Method> = pairs.iter().map(|pair| method(*pair, pairs.len())).collect();
    // All as times, so that a launch that is slower in everything scatters little.
    let slower = |((base, _), shift): (&(&Row, &Row), &f64)| match base.subject.metric {
        Metric::Latency => *shift,
        Metric::Bandwidth => -shift,
    };
    let single = pairs.iter().zip(&shifts).zip(&methods).filter(|(_, method)| **method == Method::OneLaunch);
    let single: Vec<f64> = single.map(|(case, _)| slower(case)).collect();
    let allowance = allowance(&single);
    let findings: Vec<Finding> = pairs
        .iter()
        .zip(shifts.iter().zip(&methods))
        .map(|((base, new), (shift, method))| {
            let allowance = match (method, turns) {
                (Method::OneLaunch, _) => allowance,
                (_, Turns::Taken) => 0.0,
                (_, Turns::NotTaken) => DRIFTS * drift(&base.launches).max(drift(&new.launches)),
            };
            let least = if *method == Method::Launches { 0.0 } else { ALLOWANCE.ln_1p() };
            let allowance = f64::max(allowance, least);
            find(&base.launches, &new.launches, *shift, *method, allowance)
        })
        .collect();
    let tested: Vec<usize> = (0..findings.len()).filter(|at| findings[*at].p.is_some()).collect();
    let adjusted = several::holm(&tested.iter().filter_map(|at| findings[*at].p).collect::<Vec<f64>>());
    let mut p_adjusted = vec![None; findings.len()];
    tested.iter().zip(adjusted).for_each(|(at, p)| p_adjusted[*at] = Some(p));
    let notes = notes(pairs, &methods, allowance);
    let cases = pairs.iter().zip(findings).zip(p_adjusted);
    let mut cases: Vec<Compared> =
        cases.map(|((pair, finding), p_adjusted)| compared(*pair, finding, p_adjusted)).collect();
    confirm(&mut cases);
    (cases, notes)
}

/// One launch can have a mode of its own in one case, by far more than what scatters: what differs of one launch a side has to
/// differ the same way in two cases, where there are several.
fn confirm(cases: &mut [Compared]) {
    let is_single = |case: &Compared| case.evidence.method == Method::OneLaunch;
    let count =
        |wanted: Verdict| cases.iter().filter(|case| is_single(case) && case.verdict == wanted).count();
    let (better, worse) = (count(Verdict::Better), count(Verdict::Worse));
    let several = cases.iter().filter(|case| is_single(case)).count() > 1;
    for case in cases.iter_mut().filter(|case| several && is_single(case)) {
        if matches!((&case.verdict, better, worse), (Verdict::Better, 1, _) | (Verdict::Worse, _, 1)) {
            case.verdict = Verdict::Unresolved("one launch a side, and no other case differs so".into());
        }
    }
}

fn level(row: &Row) -> Level {
    let launches: Vec<f64> = row.launches.iter().map(|launch| launch.median).collect();
    Level {
        median: median(&launches).unwrap_or(f64::NAN),
        launches,
        doubts: row.launches.iter().flat_map(|launch| launch.doubts.iter().cloned()).collect(),
    }
}

fn logs(launches: &[Launch]) -> Vec<f64> {
    launches.iter().map(|launch| launch.median.ln()).collect()
}

/// The difference of the headlines, in logarithms.
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
        (a, b) if a.min(b) >= ENOUGH_LAUNCHES && can_resolve(a, b, cases) => Method::Launches,
        _ => Method::FewLaunches,
    }
}

/// Whether ranks of so many launches could give a p that is small enough for so many cases.
fn can_resolve(a: usize, b: usize, cases: usize) -> bool {
    rank_sum::smallest_p(a, b) * (cases as f64) < LEVEL
}

/// Launches on each side from which so many cases can be judged by launches alone.
pub fn launches_for(cases: usize) -> usize {
    (ENOUGH_LAUNCHES..).find(|n| can_resolve(*n, *n, cases)).unwrap_or(ENOUGH_LAUNCHES)
}

/// What two launches may differ by, in logarithms, as far as the cases of one launch on each side tell.
fn allowance(shifts: &[f64]) -> f64 {
    let Some(middle) = median(shifts).filter(|_| shifts.len() >= CASES_THAT_SCATTER) else {
        return BLIND_ALLOWANCE.ln_1p();
    };
    let off: Vec<f64> = shifts.iter().map(|shift| (shift - middle).abs()).collect();
    ALLOWANCE.ln_1p().max(SCATTERS * MAD * median(&off).unwrap_or(0.0))
}

/// How far the later half of the launches of a side lies from the earlier one.
fn drift(launches: &[Launch]) -> f64 {
    let mut ordered: Vec<&Launch> = launches.iter().collect();
    ordered.sort_by(|a, b| a.started.cmp(&b.started));
    let half = ordered.len() / 2;
    let middle = |part: &[&Launch]| median(&part.iter().map(|launch| launch.median.ln()).collect::<Vec<_>>());
    let (early, late) = (middle(&ordered[..half]), middle(&ordered[ordered.len() - half..]));
    early.zip(late).map_or(0.0, |(early, late)| (late - early).abs())
}

fn find(base: &[Launch], new: &[Launch], shift: f64, method: Method, allowance: f64) -> Finding {
    // Against a difference of the allowance instead of none: below it nothing is to be explained.
    let moved = allowance.min(shift.abs()).copysign(shift);
    let (a, b) = (logs(base), logs(new).into_iter().map(|x| x - moved).collect::<Vec<f64>>());
    let by_samples = || by_samples(base, new, moved);
    let (interval, p) = match method {
        Method::Launches => (rank_sum::shift_interval(&a, &b), rank_sum::mann_whitney(&a, &b)),
        Method::FewLaunches => {
            let both = several::student(&a, &b).zip(by_samples());
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
    Finding {
        shift,
        // The headline is a median of medians, the interval one of another estimate of the same: it holds both.
        interval: interval
            .map(|[low, high]| [low + moved - allowance, high + moved + allowance])
            .map(|[low, high]| [low.min(shift), high.max(shift)]),
        method,
        p: if shift.abs() > allowance { p } else { p.map(|_| 1.0) },
        allowance: (allowance > 0.0).then(|| allowance.exp_m1()),
    }
}

fn compared((base, new): (&Row, &Row), finding: Finding, p_adjusted: Option<f64>) -> Compared {
    let Finding { shift, interval, method, p, allowance } = finding;
    let (base_level, new_level) = (level(base), level(new));
    let verdict = match open(&finding, p_adjusted, [&base_level, &new_level]) {
        Some(why) => Verdict::Unresolved(why),
        None if (shift > 0.0) == (base.subject.metric == Metric::Bandwidth) => Verdict::Better,
        None => Verdict::Worse,
    };
    Compared {
        subject: base.subject.clone(),
        base: base_level,
        new: new_level,
        change: Change { median: shift.exp_m1(), ci95: interval.map(|ends| ends.map(f64::exp_m1)) },
        evidence: Evidence { method, p, p_adjusted, allowance },
        verdict,
    }
}

/// Why there is no verdict; `None` where there is one.
fn open(finding: &Finding, p_adjusted: Option<f64>, levels: [&Level; 2]) -> Option<String> {
    let (Some(interval), Some(p)) = (finding.interval, p_adjusted) else {
        return Some("samples give no interval".into());
    };
    let one = finding.method == Method::OneLaunch;
    let mut doubts = levels.iter().flat_map(|level| &level.doubts);
    if one && let Some(doubt) = doubts.next() {
        return Some(format!("one launch a side, {}", doubt.replace('_', " ")));
    }
    let holds_none = interval[0] <= 0.0 && interval[1] >= 0.0;
    let percent = |allowance: f64| format!("{:.0}%", allowance * 100.0);
    match finding.allowance {
        Some(allowance) if holds_none && one => {
            Some(format!("one launch a side: launches may differ by {}", percent(allowance)))
        }
        Some(allowance) if holds_none => {
            Some(format!("launches of one side may differ by {}", percent(allowance)))
        }
        _ if holds_none => Some("the interval holds 0".into()),
        _ if p >= LEVEL => Some("chance among so many cases".into()),
        _ if finding.shift.abs() < LEAST.ln_1p() => Some("below 1%".into()),
        _ => None,
    }
}

fn notes(pairs: &[(&Row, &Row)], methods: &[Method], allowance: f64) -> Vec<Note> {
    let mut notes = Vec::new();
    let needed = launches_for(pairs.len());
    if methods.contains(&Method::OneLaunch) {
        notes.push(Note {
            code: "one_launch",
            text: format!(
                "one launch a side does not show what launches differ by: only differences beyond {:.0}% between undisturbed rows get a verdict; {needed} launches a side (--launches {needed}) say more",
                allowance.exp_m1() * 100.0
            ),
        });
    }
    if methods.contains(&Method::FewLaunches) {
        notes.push(Note {
            code: "few_launches",
            text: format!(
                "weaker: with so few launches for so many cases only differences beyond 5% get a verdict, and it supposes that launches scatter normally; {needed} launches a side (--launches {needed}) do without"
            ),
        });
    }
    notes
}
