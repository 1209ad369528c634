//! A comparison as a JUnit report, which CI systems show.

use ombx_results::{
    compare::{CaseComparison, Comparison, Verdict},
    render::compare::percent,
};
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

/// Returns the report. A case is a failure if it is worse by more than `threshold`, an error if it fails on the new side, and
/// skipped if it is on one side only.
pub(crate) fn report(comparison: &Comparison, threshold: f64) -> String {
    let mut suite = TestSuite::new(format!("{} against {}", comparison.new.name, comparison.base.name));
    suite.add_test_cases(comparison.cases.iter().map(|case| compared(case, threshold)));
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
    let broke = |key: &str| comparison.broken.iter().any(|(other, _)| other == key);
    suite.add_test_cases(comparison.unmatched.iter().filter(|lost| !broke(&lost.key)).map(|lost| {
        let mut status = TestCaseStatus::skipped();
        status.set_message(format!("measured on one side only; the other: {}", lost.why));
        other(&lost.key, status)
    }));
    let mut report = Report::new("ombx compare");
    report.add_test_suite(suite);
    report.to_string().unwrap_or_default()
}

fn compared(case: &CaseComparison, threshold: f64) -> TestCase {
    let (subject, change) = (&case.id, &case.change);
    let interval = change.ci95.map_or("no interval".into(), |[low, high]| {
        format!("95% interval {} .. {}", percent(low), percent(high))
    });
    let text = format!(
        "{}: {} {unit} before, {} {unit} now, {}, {interval}",
        case.verdict.name(),
        case.base.median,
        case.new.median,
        percent(change.median),
        unit = subject.unit
    );
    let failed = case.verdict == Verdict::Worse && change.median.abs() > threshold;
    let mut status = match failed {
        true => TestCaseStatus::non_success(NonSuccessKind::Failure),
        false => TestCaseStatus::success(),
    };
    if failed {
        status.set_message(text.clone());
    }
    let mut case = TestCase::new(subject.key.as_str(), status);
    case.set_classname(subject.bench.as_str()).set_system_out(text);
    case
}
