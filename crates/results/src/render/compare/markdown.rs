//! Comparison as a Markdown document: the answer, the sides, and one table.

use serde_json::{Map, Value, json};

use super::{describe, heading, percent, sentence, verdict};
use crate::{
    compare::{
        CaseComparison, CaseId, Comparison, Counts, DecidedBy, Power, Side, SideInfo, StateOfSides, Unit,
        UnitMedians, Unmatched, Verdict,
    },
    number::figure,
    render::{
        plain,
        table::fit::{interval, size},
    },
};

/// Returns the Markdown text of a comparison.
pub fn markdown(comparison: &Comparison) -> String {
    let sides = [&comparison.base, &comparison.new];
    let [base, new] = sides.map(|side| cell(&side.label));
    let mut lines = vec![format!("**{}.**", cell(&sentence(comparison))), String::new()];
    lines.extend(sides.map(|side| format!("- {}: {}", cell(&side.label), cell(&describe(side)))));
    lines.extend([
        String::new(),
        format!("| case | bytes | {base} | {new} | unit | time | 90% interval | verdict |"),
        "|:---|---:|---:|---:|:---|---:|---:|:---|".into(),
    ]);
    lines.extend(comparison.cases.iter().map(|case| row(case, comparison.margin)));
    let remarks: Vec<String> = comparison
        .broken
        .iter()
        .map(|(key, why)| format!("- failed only in {new}: {}", cell(&format!("{key}: {why}"))))
        .chain(comparison.notes.iter().map(|note| format!("- {}", cell(&note.text))))
        .collect();
    if !remarks.is_empty() {
        lines.push(String::new());
        lines.extend(remarks);
    }
    lines.join("\n") + "\n"
}

fn row(case: &CaseComparison, margin: f64) -> String {
    let cells = [
        cell(&heading(&case.id)),
        size(case.id.bytes),
        figure(case.base.median),
        figure(case.new.median),
        case.id.unit.to_owned(),
        percent(case.change.estimate),
        interval(case.change.ci90, percent),
        cell(&verdict(&case.verdict, margin)),
    ];
    format!("| {} |", cells.join(" | "))
}

/// Escapes what Markdown would read as markup: text of a file stays text.
fn cell(text: &str) -> String {
    plain(text)
        .chars()
        .flat_map(|c| ['\\'].into_iter().filter(move |_| "\\|`*_<>[]#".contains(c)).chain([c]))
        .collect()
}

/// Name, major and minor version of the schema.
const SCHEMA: (&str, u32, u32) = ("ombx.comparison", 1, 0);

/// Returns the JSON object of a comparison.
pub fn comparison_json(comparison: &Comparison) -> Value {
    let Counts { worse, better, same, inconclusive } = comparison.counts();
    json!({
        "schema": {"name": SCHEMA.0, "major": SCHEMA.1, "minor": SCHEMA.2},
        "base": side(&comparison.base),
        "new": side(&comparison.new),
        "margin": comparison.margin,
        "unit": if comparison.unit == Unit::Run { "run" } else { "turn" },
        "state": state(comparison.state),
        "summary": {
            "cases": comparison.cases.len(), "worse": worse, "better": better, "same": same,
            "inconclusive": inconclusive, "text": super::sentence(comparison),
        },
        "cases": comparison.cases.iter().map(case).collect::<Vec<_>>(),
        "unmatched": comparison.unmatched.iter().map(unmatched).collect::<Vec<_>>(),
        "broken": comparison.broken.iter().map(|(key, why)| json!({"key": key, "reason": why})).collect::<Vec<_>>(),
        "notes": comparison.notes.iter().map(|n| json!({"code": n.code, "text": n.text})).collect::<Vec<_>>(),
    })
}

fn side(side: &SideInfo) -> Value {
    json!({"label": side.label, "name": side.name, "launches": side.runs, "libraries": side.libraries})
}

fn state(StateOfSides { core_to_core_ns, units, of }: StateOfSides) -> Value {
    present(json!({"core_to_core_ns": core_to_core_ns, "units": units, "of": of}))
}

fn case(case: &CaseComparison) -> Value {
    let CaseId { bench, key, metric, unit, bytes, depth, pairs, axes } = &case.id;
    let reason = match &case.verdict {
        Verdict::Inconclusive(reason) => Some(reason.to_string()),
        Verdict::Better | Verdict::Worse | Verdict::Same => None,
    };
    let power = |of: fn(&Power) -> Option<usize>| case.power.as_ref().and_then(of);
    present(json!({
        "bench": bench, "key": key, "metric": metric.name(), "unit": unit, "bytes": bytes, "depth": depth,
        "pairs": pairs, "axes": axes,
        "base": level(&case.base),
        "new": level(&case.new),
        "time_change": present(json!({"estimate": case.change.estimate, "ci90": case.change.ci90})),
        "p_adjusted": case.p_adjusted, "p_beyond_margin": case.p_beyond,
        "detectable": case.power.map(|power| power.detectable),
        "units_to_decide": power(|power| power.units_to_decide),
        "not_slower": case.is_not_slower,
        "verdict": case.verdict.name(), "reason": reason,
        "decided_by": case.decided_by().map(DecidedBy::name),
        "instructions": case.instructions.as_deref().map(instructions),
    }))
}

/// Returns the comparison of a case by instructions per operation.
fn instructions(case: &CaseComparison) -> Value {
    present(json!({
        "base": case.base.median, "new": case.new.median,
        "change": present(json!({"estimate": case.change.estimate, "ci90": case.change.ci90})),
        "verdict": case.verdict.name(),
    }))
}

fn level(level: &UnitMedians) -> Value {
    json!({"median": level.median, "values": level.values, "range": level.range(), "trust": level.marks})
}

fn unmatched(lost: &Unmatched) -> Value {
    let only = match lost.only {
        Side::Base => "base",
        Side::New => "new",
    };
    json!({"key": lost.key, "only": only, "reason": lost.why})
}

/// Removes fields that are null.
pub(in crate::render) fn present(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            Value::Object(fields.into_iter().filter(|(_, field)| !field.is_null()).collect::<Map<_, _>>())
        }
        other => other,
    }
}
