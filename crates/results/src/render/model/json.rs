//! Models as one JSON object. Missing values are absent.

use serde_json::{Value, json};

use super::Shown;
use crate::{
    model::{Estimate, Fit, MachineModel, Parameter, Segment, Switch},
    render::compare::present,
    runs::{hosts, library},
};

/// Name, major and minor version of the schema.
const SCHEMA: (&str, u32, u32) = ("ombx.model", 1, 0);

/// Returns the JSON object of models.
pub fn json(shown: &Shown) -> Value {
    json!({
        "schema": {"name": SCHEMA.0, "major": SCHEMA.1, "minor": SCHEMA.2},
        "models": shown.models.iter().map(|one| model(one, shown)).collect::<Vec<_>>(),
        "rows": shown.rows.to_string(),
    })
}

fn model(model: &MachineModel, shown: &Shown) -> Value {
    let run = shown.setups.get(model.setup);
    let switches = |fit: &Fit| {
        let named = fit.switches.iter().zip(&model.protocols);
        named.map(|(found, protocol)| switch(found, Some(protocol.name()))).collect::<Vec<_>>()
    };
    let unnamed = |fit: &Fit| fit.switches.iter().map(|found| switch(found, None)).collect::<Vec<_>>();
    present(json!({
        "latency": model.latency.name,
        "stream": model.stream.as_ref().map(|stream| &stream.name),
        "library": run.map(library),
        "hosts": run.map(hosts),
        "launches": model.one_way.as_ref().map(|fit| fit.launches),
        "parameters": model.parameters.iter().map(parameter).collect::<Vec<_>>(),
        "one_way": model.one_way.as_ref().map(|fit| lines(fit, switches(fit))),
        "gaps": model.gaps.as_ref().map(|fit| lines(fit, unnamed(fit))),
    }))
}

fn parameter(parameter: &Parameter) -> Value {
    let name = if parameter.value.is_some() { "ci95" } else { "bounds" };
    let mut fields = json!({
        "symbol": parameter.symbol, "unit": parameter.unit, "value": parameter.value, "note": parameter.note,
    });
    fields[name] = json!(parameter.interval);
    present(fields)
}

fn lines(fit: &Fit, switches: Vec<Value>) -> Value {
    json!({
        "segments": fit.segments.iter().map(segment).collect::<Vec<_>>(),
        "switches": switches,
        "points": fit.points.iter().map(|(bytes, us)| json!({"bytes": bytes, "us": us})).collect::<Vec<_>>(),
    })
}

fn segment(segment: &Segment) -> Value {
    present(json!({
        "bytes": segment.bytes,
        "fixed_us": segment.fixed.as_time().map(estimate),
        "per_byte_ns": segment.per_byte.as_time().map(estimate),
        "residual": segment.residual,
    }))
}

fn switch(switch: &Switch, name: Option<&str>) -> Value {
    present(json!({
        "between": switch.between, "name": name, "step_us": estimate(switch.step),
        "fixed_us": estimate(switch.fixed), "per_byte_ns": estimate(switch.per_byte),
    }))
}

fn estimate(estimate: Estimate) -> Value {
    present(json!({"value": estimate.value, "ci95": estimate.interval}))
}
