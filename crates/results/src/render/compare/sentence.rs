//! The answer of a comparison as one sentence: what is faster or slower, by what factor, and what is the same.

use std::collections::BTreeSet;

use ombx_core::unit::Bytes;

use super::margin;
use crate::{
    compare::{CaseComparison, Comparison, Counts, DecidedBy, INSTRUCTIONS_MARGIN, Reason, Unit, Verdict},
    render::table::title,
};

/// Which way a case changed.
#[derive(Clone, Copy)]
enum Way {
    Slower,
    Faster,
}

impl Way {
    const fn word(self) -> &'static str {
        match self {
            Way::Slower => "slower",
            Way::Faster => "faster",
        }
    }

    /// Converts a relative difference of times to a factor.
    fn factor(self, change: f64) -> f64 {
        match self {
            Way::Slower => 1.0 + change,
            Way::Faster => 1.0 / (1.0 + change),
        }
    }
}

/// Returns the answer: `B is 1.08 times faster than A (1.03 to 1.13) for 8 bytes; same within 5% in 21 of 23 cases`.
pub fn sentence(comparison: &Comparison) -> String {
    let [base, new] = [&comparison.base.label, &comparison.new.label];
    let all = comparison.cases.len();
    let of = |verdict: &Verdict| -> Vec<&CaseComparison> {
        comparison.cases.iter().filter(|case| case.verdict == *verdict).collect()
    };
    let mut parts = Vec::new();
    for (way, cases) in [(Way::Slower, of(&Verdict::Worse)), (Way::Faster, of(&Verdict::Better))] {
        let subject = if parts.is_empty() { format!("{new} is") } else { "it is".into() };
        parts.extend(changed(comparison, way, &cases).map(|text| format!("{subject} {text}")));
    }
    let broken = comparison.broken.len();
    parts.extend((broken > 0).then(|| format!("{} failed only in {new}", count(broken))));
    let (same, within) = (of(&Verdict::Same).len(), margin(comparison.margin));
    parts.extend(match same {
        0 => None,
        same if same == all => {
            Some(format!("{new} and {base} are the same within {within} in {}", of_all(all, all)))
        }
        same => Some(format!("same within {within} in {}", of_all(same, all))),
    });
    let open = comparison.counts().inconclusive;
    parts.extend((open > 0).then(|| {
        let advice = advice(comparison);
        let advice = if advice.is_empty() { advice } else { format!(": {advice}") };
        format!("undecided in {}{advice}", of_all(open, all))
    }));
    parts.extend(by_instructions(comparison));
    let cores = comparison.state.core_to_core_ns.map(|ns| format!("; all with cores {ns:.0} ns apart"));
    parts.join("; ") + &cores.unwrap_or_default()
}

/// Returns what instructions say about the cases that times do not decide: `by instructions: B has 1.0% more than A for 8 bytes`.
fn by_instructions(comparison: &Comparison) -> Option<String> {
    let [base, new] = [&comparison.base.label, &comparison.new.label];
    let decided = comparison.cases.iter().filter(|case| case.decided_by() == Some(DecidedBy::Instructions));
    let (same, changed): (Vec<_>, Vec<_>) = decided
        .filter_map(|case| Some((case, case.instructions.as_deref()?)))
        .partition(|(_, counted)| counted.verdict == Verdict::Same);
    let part = |verdict: Verdict, word: &str| {
        let cases: Vec<_> = changed.iter().filter(|(_, counted)| counted.verdict == verdict).collect();
        let size = |counted: &CaseComparison| counted.change.estimate.abs();
        let (case, most) = cases.iter().max_by(|a, b| size(a.1).total_cmp(&size(b.1)))?;
        let which = match cases.len() {
            1 => format!("for {}", name(comparison, case)),
            some => {
                format!("in {}, most for {}", of_all(some, comparison.cases.len()), name(comparison, case))
            }
        };
        Some(format!("{new} has {:.1}% {word} than {base} {which}", size(most) * 100.0))
    };
    let same = (!same.is_empty()).then(|| {
        format!(
            "the same within {} in {}",
            margin(INSTRUCTIONS_MARGIN),
            of_all(same.len(), comparison.cases.len())
        )
    });
    let all = [part(Verdict::Worse, "more"), part(Verdict::Better, "fewer"), same];
    let all: Vec<String> = all.into_iter().flatten().collect();
    (!all.is_empty()).then(|| format!("by instructions: {}", all.join(", ")))
}

/// Returns what is said of the cases that are slower or faster; `None` without one.
fn changed(comparison: &Comparison, way: Way, cases: &[&CaseComparison]) -> Option<String> {
    let base = &comparison.base.label;
    let by_factor = |a: &&&CaseComparison, b: &&&CaseComparison| {
        a.change.estimate.abs().total_cmp(&b.change.estimate.abs())
    };
    let (least, most) = (cases.iter().min_by(by_factor)?, cases.iter().max_by(by_factor)?);
    let times = |change: f64| times(way.factor(change));
    let range = most.change.ci90.map(|[low, high]| {
        let ends = match way {
            Way::Slower => [low, high],
            Way::Faster => [high, low],
        };
        let [low, high] = ends.map(times);
        format!(" ({low} to {high})")
    });
    let range = range.unwrap_or_default();
    let (word, at, of) = (way.word(), name(comparison, most), of_all(cases.len(), comparison.cases.len()));
    let [least, most] = [least, most].map(|case| times(case.change.estimate));
    Some(match cases.len() {
        1 => format!("{most} times {word} than {base}{range} for {at}"),
        _ if least == most => format!("{most} times {word} than {base} in {of}, most for {at}{range}"),
        _ => format!("{least} to {most} times {word} than {base} in {of}, most for {at}{range}"),
    })
}

/// Returns the name of a case: its size, and the benchmark unless all cases share it.
fn name(comparison: &Comparison, case: &CaseComparison) -> String {
    let heading = |case: &CaseComparison| title(&case.id.bench, &case.id.axes, case.id.depth, case.id.pairs);
    let one_bench = comparison.cases.iter().all(|other| heading(other) == heading(case));
    match (case.id.bytes, one_bench) {
        (Some(bytes), true) => of_bytes(bytes),
        (Some(bytes), false) => format!("{} of {}", of_bytes(bytes), heading(case)),
        (None, _) => heading(case),
    }
}

fn of_bytes(bytes: u64) -> String {
    if bytes == 1 { "1 byte".into() } else { format!("{} bytes", Bytes(bytes)) }
}

/// Formats a factor with three digits.
fn times(factor: f64) -> String {
    match factor {
        x if x >= 100.0 => format!("{x:.0}"),
        x if x >= 10.0 => format!("{x:.1}"),
        x => format!("{x:.2}"),
    }
}

fn of_all(count: usize, all: usize) -> String {
    match (count, all) {
        (1, 1) => "the only case".into(),
        (2, 2) => "both cases".into(),
        (count, all) if count == all => format!("all {all} cases"),
        (count, all) => format!("{count} of {all} cases"),
    }
}

fn count(cases: usize) -> String {
    if cases == 1 { "1 case".into() } else { format!("{cases} cases") }
}

/// Returns one line with the number of cases of each verdict, and what would decide the others.
pub fn summary(comparison: &Comparison) -> String {
    let Counts { worse, better, same, inconclusive } = comparison.counts();
    let mut parts = vec![format!("{worse} worse")];
    parts.extend((better > 0).then(|| format!("{better} better")));
    parts.push(format!("{same} same within {}", super::margin(comparison.margin)));
    parts.push(format!("{inconclusive} undecided"));
    let line = parts.join(", ");
    let advice = advice(comparison);
    if advice.is_empty() { line } else { format!("{line}: {advice}") }
}

/// Returns what would decide the undecided cases.
pub(super) fn advice(comparison: &Comparison) -> String {
    let undecided = || {
        comparison.cases.iter().filter_map(|case| match &case.verdict {
            Verdict::Inconclusive(reason) => Some((case, reason)),
            Verdict::Worse | Verdict::Better | Verdict::Same => None,
        })
    };
    // More runs decide nothing if those that exist say nothing.
    let is_marked =
        |reason: &Reason| matches!(reason, Reason::Marked(_) | Reason::MachineChanged | Reason::UnknownState);
    let open: Vec<&CaseComparison> =
        undecided().filter(|(_, reason)| !is_marked(reason)).map(|(case, _)| case).collect();
    let marks: BTreeSet<&Reason> =
        undecided().map(|(_, reason)| reason).filter(|reason| is_marked(reason)).collect();
    let needed = |case: &&CaseComparison| match case.power {
        Some(power) => power.units_to_decide,
        None => Some(comparison.unit.least()),
    };
    let reachable: Vec<usize> = open.iter().filter_map(needed).collect();
    let units = match comparison.unit {
        Unit::Run => "runs a side",
        Unit::Turn => "turns",
    };
    let more = reachable.iter().max().map(|number| {
        let which = match (reachable.len() == undecided().count(), reachable.len()) {
            (true, 1) => "it".to_owned(),
            (true, _) => "them".to_owned(),
            (false, some) => format!("{some} of them"),
        };
        format!("{number} {units} would decide {which}")
    });
    let hopeless = open.len() - reachable.len();
    let hopeless = (hopeless > 0).then(|| format!("more than 100 {units} for {hopeless}"));
    more.into_iter()
        .chain(hopeless)
        .chain(marks.into_iter().map(Reason::to_string))
        .collect::<Vec<_>>()
        .join("; ")
}
