//! A comparison as a JUnit report, which CI systems show.

use ombx_results::{
    compare::{CaseComparison, Comparison, Verdict},
    render::compare::{percent, verdict},
};
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

/// Returns the report. A case is a failure if it is worse, an error if it fails on the new side, and skipped if it is inconclusive
/// or on one side only.
pub(crate) fn report(comparison: &Comparison) -> String {
    let mut suite = TestSuite::new(format!("{} against {}", comparison.new.name, comparison.base.name));
    let state = comparison.state.core_to_core_ns.map(|ns| format!(", cores {ns:.0} ns apart"));
    let state = state.unwrap_or_default();
    suite.add_test_cases(comparison.cases.iter().map(|case| compared(case, comparison.margin, &state)));
    let other = |key: &str, status: TestCaseStatus| {
        let mut case = TestCase::new(key, status);
        case.set_classname(key.split('/').next().unwrap_or(key));
        case
    };
    suite.add_test_cases(comparison.broken.iter().map(|(key, why)| {
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
        status.set_message(format!("failed on the new side: {why}"));
        other(key, status)
    }));
    suite.add_test_cases(comparison.lost().map(|lost| {
        let mut status = TestCaseStatus::skipped();
        status.set_message(format!("measured on one side only; the other: {}", lost.why));
        other(&lost.key, status)
    }));
    let mut report = Report::new("ombx compare");
    report.add_test_suite(suite);
    report.to_string().unwrap_or_default()
}

fn compared(case: &CaseComparison, margin: f64, state: &str) -> TestCase {
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
    let mut status = match case.verdict {
        Verdict::Worse => TestCaseStatus::non_success(NonSuccessKind::Failure),
        Verdict::Inconclusive(_) => TestCaseStatus::skipped(),
        Verdict::Better | Verdict::Same => TestCaseStatus::success(),
    };
    if matches!(case.verdict, Verdict::Worse | Verdict::Inconclusive(_)) {
        status.set_message(text.clone());
    }
    let mut case = TestCase::new(subject.key.as_str(), status);
    case.set_classname(subject.bench.as_str()).set_system_out(text);
    case
}
