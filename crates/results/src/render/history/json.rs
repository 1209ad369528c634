//! Results over time as one JSON object. Missing values are absent.

use serde_json::{Value, json};

use crate::{
    history::{Change, Difference, Event, History, Series, events},
    render::compare::present,
};

/// Name, major and minor version of the schema.
const SCHEMA: (&str, u32, u32) = ("ombx.history", 1, 0);

/// Returns the JSON object of a history.
pub fn json(history: &History) -> Value {
    json!({
        "schema": {"name": SCHEMA.0, "major": SCHEMA.1, "minor": SCHEMA.2},
        "summary": super::summary(history),
        "cases": history.series.iter().map(|series| case(history, series)).collect::<Vec<_>>(),
        "events": events(history).iter().map(event).collect::<Vec<_>>(),
        "copies": history.copies,
        "namesakes": history.namesakes,
        "future": history.future,
    })
}

fn case(history: &History, series: &Series) -> Value {
    let (case, (level, ends)) = (&series.case, series.level());
    let run = |at: usize| {
        let point = series.points[at];
        let result = &history.results[point.result];
        present(
            json!({"run": result.run, "started": result.started, "value": point.value, "ci95": point.ci95}),
        )
    };
    present(json!({
        "key": case.key, "bench": case.bench(), "fabric": case.fabric, "ranks": case.ranks, "hosts": case.hosts,
        "ends": case.ends, "core_to_core_ns": case.core_to_core_ns, "unit": series.metric.unit(), "judged": series.is_judged(), "left_out": series.left_out,
        "level": present(json!({"value": level, "interval": ends})),
        "runs": (0..series.points.len()).map(run).collect::<Vec<_>>(),
        "changes": series.changes.iter().map(|found| change(history, series, found)).collect::<Vec<_>>(),
    }))
}

fn change(history: &History, series: &Series, change: &Change) -> Value {
    let difference = |d: &Difference| json!({"name": d.name, "before": d.before, "after": d.after});
    present(json!({
        "since": history.started(series, change.at), "before": history.started(series, change.at - 1),
        "time_ratio": present(json!({"estimate": change.ratio, "ci90": change.ci90})),
        "differences": change.differences.iter().map(difference).collect::<Vec<_>>(),
    }))
}

fn event(event: &Event<'_>) -> Value {
    let name = |series: &Series| {
        present(json!({"key": series.case.key, "hosts": series.case.hosts, "ends": series.case.ends}))
    };
    present(json!({
        "since": event.since, "before": event.before, "slower": event.slower, "hosts": event.hosts,
        "cases": event.changes.iter().map(|(series, _)| name(series)).collect::<Vec<_>>(),
    }))
}
