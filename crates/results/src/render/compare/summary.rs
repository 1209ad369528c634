//! Numbers of cases by verdict, and what would decide the others.

use std::collections::BTreeSet;

use crate::compare::{CaseComparison, Comparison, Counts, Reason, Unit, Verdict};

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
