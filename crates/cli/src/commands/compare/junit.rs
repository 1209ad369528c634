//! A comparison as a JUnit report.

use ombx_results::{
    compare::{CaseComparison, Comparison, Verdict},
    render::compare::{percent, verdict},
};

use crate::output::junit::{self, Case, Outcome};

/// Returns the report. A case is a failure if it is worse, an error if it fails on the new side, and skipped if it is inconclusive
/// or on one side only.
pub(crate) fn report(comparison: &Comparison) -> String {
    let state = comparison.state.core_to_core_ns.map(|ns| format!(", cores {ns:.0} ns apart"));
    let state = state.unwrap_or_default();
    let compared = comparison.cases.iter().map(|case| compared(case, comparison.margin, &state));
    let other = |key: &str, outcome: Outcome| Case {
        class: key.split('/').next().unwrap_or(key).to_owned(),
        name: key.to_owned(),
        outcome,
        text: String::new(),
    };
    let broken = comparison
        .broken
        .iter()
        .map(|(key, why)| other(key, Outcome::Broken(format!("failed on the new side: {why}"))));
    let lost = comparison.lost().map(|lost| {
        let why = format!("measured on one side only; the other: {}", lost.why);
        other(&lost.key, Outcome::Skipped(why))
    });
    let about = format!("{} against {}", comparison.new.name, comparison.base.name);
    junit::report("ombx compare", &about, compared.chain(broken).chain(lost))
}

fn compared(case: &CaseComparison, margin: f64, state: &str) -> Case {
    let (subject, change) = (&case.id, &case.change);
    let interval = change.ci90.map_or("no interval".into(), |[low, high]| {
        format!("90% interval {} .. {}", percent(low), percent(high))
    });
    let text = format!(
        "{}: {} {unit} before, {} {unit} now, time {}, {interval}{state}",
        verdict(&case.verdict, margin),
        case.base.median,
        case.new.median,
        percent(change.estimate),
        unit = subject.unit
    );
    let outcome = match case.verdict {
        Verdict::Worse => Outcome::Failed(text.clone()),
        Verdict::Inconclusive(_) => Outcome::Skipped(text.clone()),
        Verdict::Better | Verdict::Same => Outcome::Passed,
    };
    Case { class: subject.bench.clone(), name: subject.key.clone(), outcome, text }
}
