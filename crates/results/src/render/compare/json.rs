//! Comparison as one JSON object. Missing values are absent.

use serde_json::{Map, Value, json};

use crate::compare::{CaseComparison, CaseId, Comparison, LaunchMedians, Side, SideInfo, Unmatched, Verdict};

/// Name, major and minor version of the schema.
const SCHEMA: (&str, u32, u32) = ("ombx.comparison", 1, 0);

/// Returns the JSON object of a comparison.
pub fn json(comparison: &Comparison) -> Value {
    let [worse, better, unresolved] = comparison.verdict_counts();
    json!({
        "schema": {"name": SCHEMA.0, "major": SCHEMA.1, "minor": SCHEMA.2},
        "base": side(&comparison.base),
        "new": side(&comparison.new),
        "summary": {
            "cases": comparison.cases.len(), "worse": worse, "better": better, "unresolved": unresolved,
        },
        "cases": comparison.cases.iter().map(case).collect::<Vec<_>>(),
        "unmatched": comparison.unmatched.iter().map(unmatched).collect::<Vec<_>>(),
        "broken": comparison.broken.iter().map(|(key, why)| json!({"key": key, "reason": why})).collect::<Vec<_>>(),
        "notes": comparison.notes.iter().map(|n| json!({"code": n.code, "text": n.text})).collect::<Vec<_>>(),
    })
}

fn side(side: &SideInfo) -> Value {
    json!({"name": side.name, "runs": side.runs, "libraries": side.libraries})
}

fn case(case: &CaseComparison) -> Value {
    let CaseId { bench, key, metric, unit, bytes, depth, pairs, axes } = &case.id;
    let (change, evidence) = (&case.change, &case.evidence);
    let why = match &case.verdict {
        Verdict::Unresolved(why) => Some(why),
        Verdict::Better | Verdict::Worse => None,
    };
    present(json!({
        "bench": bench, "key": key, "metric": metric.name(), "unit": unit, "bytes": bytes, "depth": depth,
        "pairs": pairs, "axes": axes,
        "base": level(&case.base),
        "new": level(&case.new),
        "change": present(json!({"median": change.median, "ci95": change.ci95})),
        "method": evidence.method.name(), "p": evidence.p, "p_adjusted": evidence.p_adjusted,
        "allowance": evidence.allowance,
        "verdict": case.verdict.name(), "reason": why,
    }))
}

fn level(level: &LaunchMedians) -> Value {
    present(json!({
        "median": level.median, "launches": level.launches, "spread": level.spread(), "trust": level.marks,
    }))
}

fn unmatched(lost: &Unmatched) -> Value {
    let only = match lost.only {
        Side::Base => "base",
        Side::New => "new",
    };
    json!({"key": lost.key, "only": only, "reason": lost.why})
}

/// Removes fields that are null.
fn present(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            Value::Object(fields.into_iter().filter(|(_, field)| !field.is_null()).collect::<Map<_, _>>())
        }
        other => other,
    }
}
