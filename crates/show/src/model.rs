//! A model of the machine as text: parameters of LogGP, the lines of both curves, and the switches between them.

use std::io::{Result, Write};

use ombx_compare::model::{Estimate, Fit, MachineModel, Parameter, Protocol, Segment, Switch};
use ombx_estimate::{number::Decimals, publishable::Publishable, runs::banner, text::plain};
use ombx_record::{
    result::Run,
    runs::{hosts, library},
    unit::{Bytes, counted},
};
use serde_json::{Value, json};

use crate::{
    Paint,
    compare::present,
    csv::{Lines, ends, text},
    table::cells::{NO_VALUE, aligned, broken, interval},
};

/// What is shown: the models, the first run of each setup, and which rows they rest on.
#[derive(Debug)]
pub struct Shown {
    /// Models in the order of setups.
    pub models: Vec<MachineModel>,
    /// First run of each setup.
    pub setups: Vec<Run>,
    /// Which of the rows can be published.
    pub rows: Publishable,
}

/// Writes the tables of each model and what its rows are worth. Lines fit into this many columns of a terminal; `None` means that there is no
/// limit.
pub fn table(out: &mut dyn Write, shown: &Shown, paint: Paint, columns: Option<usize>) -> Result<()> {
    let fit = |text: &str| broken(&plain(text), columns, "");
    for model in &shown.models {
        if let Some(run) = shown.setups.get(model.setup) {
            writeln!(out, "{}\n", fit(&banner(run)))?;
        }
        writeln!(out, "{}", paint.heading(&fit(&heading(model))))?;
        writeln!(out, "{}\n", parameters(&model.parameters, columns))?;
        if let Some(one_way) = &model.one_way {
            lines_of(out, "one-way time", one_way, columns)?;
            for sentence in sentences(model) {
                writeln!(out, "{}", fit(&sentence))?;
            }
            writeln!(out)?;
        }
        if let Some(gaps) = &model.gaps {
            lines_of(out, "gap between messages of the stream", gaps, columns)?;
            writeln!(out)?;
        }
        for note in notes(model) {
            writeln!(out, "{}", fit(&note))?;
        }
    }
    writeln!(out, "{}", fit(&shown.rows.to_string()))
}

fn heading(model: &MachineModel) -> String {
    let stream = model.stream.as_ref().map(|stream| format!(" and {}", stream.name)).unwrap_or_default();
    let launches = model
        .one_way
        .as_ref()
        .map(|fit| format!(" · {}", counted(fit.launches, "launch")))
        .unwrap_or_default();
    format!("LogGP of {}{stream}{launches}", model.latency.name)
}

fn parameters(parameters: &[Parameter], columns: Option<usize>) -> String {
    let titles = ["parameter", "value", "95% interval", "unit", "from"].map(str::to_owned).to_vec();
    aligned(1..3, titles, parameters.iter().map(parameter_cells).collect(), columns)
}

/// Returns the cells of a parameter.
fn parameter_cells(parameter: &Parameter) -> Vec<String> {
    let decimals = Decimals::new(
        parameter.value.or(parameter.interval.map(|ends| ends[1])).unwrap_or(0.0),
        parameter.interval,
    );
    vec![
        parameter.symbol.to_owned(),
        parameter.value.map_or(NO_VALUE.into(), |value| decimals.format(value)),
        interval(parameter.interval, |end| decimals.format(end)),
        parameter.unit.to_owned(),
        parameter.note.clone(),
    ]
}

fn lines_of(out: &mut dyn Write, what: &str, fit: &Fit, columns: Option<usize>) -> Result<()> {
    let titles = ["bytes", "us at 1 byte", "95% interval", "ns/byte", "95% interval", "distance"];
    let rows = fit.segments.iter().map(segment_cells).collect();
    writeln!(out, "{what}: lines")?;
    writeln!(out, "{}", aligned(1..6, titles.map(str::to_owned).to_vec(), rows, columns))
}

/// Returns the cells of a line: its range of sizes, the fixed time, the time per byte and the distance, with their intervals.
fn segment_cells(segment: &Segment) -> Vec<String> {
    let [from, to] = segment.bytes.map(Bytes);
    let time = |estimate: Estimate| estimate.as_time().map_or([NO_VALUE; 2].map(str::to_owned), cells);
    let [fixed, fixed_ends] = time(segment.fixed);
    let [per_byte, per_byte_ends] = time(segment.per_byte);
    let distance = format!("{:.1}%", 100.0 * segment.residual);
    vec![format!("{from} .. {to}"), fixed, fixed_ends, per_byte, per_byte_ends, distance]
}

/// Formats a value and its interval.
fn cells(estimate: Estimate) -> [String; 2] {
    let decimals = Decimals::new(estimate.value, estimate.interval);
    [decimals.format(estimate.value), interval(estimate.interval, |end| decimals.format(end))]
}

/// Describes each switch of the one-way times.
fn sentences(model: &MachineModel) -> Vec<String> {
    let Some(fit) = &model.one_way else { return Vec::new() };
    if fit.switches.is_empty() {
        return vec![format!("no switch of the protocol found among {} message sizes", fit.points.len())];
    }
    fit.switches.iter().zip(&model.protocols).map(|(switch, protocol)| sentence(switch, *protocol)).collect()
}

fn sentence(switch: &Switch, protocol: Protocol) -> String {
    let [before, after] = switch.between.map(Bytes);
    let (what, change, unit) = match protocol {
        Protocol::Rendezvous => ("the fixed time changes by", switch.fixed, "us"),
        Protocol::StepUp | Protocol::StepDown => ("the time changes by", switch.step, "us"),
        Protocol::MorePerByte | Protocol::LessPerByte => {
            ("the time per byte changes by", switch.per_byte, "ns")
        }
    };
    let [value, ends] = cells(change);
    format!("between {before} and {after} bytes: {}: {what} {value} {unit} ({ends})", protocol.name())
}

fn notes(model: &MachineModel) -> Vec<String> {
    let mut notes = Vec::new();
    if model.one_way.as_ref().is_some_and(|fit| fit.launches == 1) {
        notes.push(
            "1 launch: no value has an interval, and no switch was checked in a second launch".to_owned(),
        );
    }
    for pattern in [Some(&model.latency), model.stream.as_ref()].into_iter().flatten() {
        if pattern.left_out > 0 {
            let sizes = counted(pattern.left_out, "size");
            notes.push(format!(
                "{}: {sizes} left out, of which a launch has no time, or launches form two groups",
                pattern.name
            ));
        }
        if pattern.other_states > 0 {
            let launches = counted(pattern.other_states, "launch");
            notes.push(format!(
                "{}: {launches} left out, in which the machine was in another state",
                pattern.name
            ));
        }
    }
    notes
}

/// Columns in order. New columns are added at the end only. `low` and `high` are the 95 % interval of a value; without a value they
/// are bounds.
const COLUMNS: &str = "latency,stream,library,kind,name,from_bytes,to_bytes,value,low,high,unit,note";

/// Writes a header line, then the lines. A value that does not exist is empty.
pub fn model_csv(out: &mut dyn Write, shown: &Shown) -> Result<()> {
    let mut lines = Lines::default();
    for model in &shown.models {
        let stream = model.stream.as_ref().map(|stream| stream.name.clone()).unwrap_or_default();
        let library = shown.setups.get(model.setup).map(library).unwrap_or_default();
        for fields in fields(model) {
            let first = vec![model.latency.name.clone(), stream.clone(), library.clone()];
            lines.write(out, COLUMNS, &[first, fields].concat())?;
        }
    }
    out.flush()
}

fn fields(model: &MachineModel) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    for parameter in &model.parameters {
        let [low, high] = ends(parameter.interval);
        all.push(vec![
            "parameter".into(),
            parameter.symbol.into(),
            String::new(),
            String::new(),
            text(parameter.value),
            low,
            high,
            parameter.unit.into(),
            parameter.note.clone(),
        ]);
    }
    for (curve, fit) in [("one_way", &model.one_way), ("gap", &model.gaps)] {
        all.extend(fit.iter().flat_map(|fit| segments(curve, fit)));
    }
    let named = model.one_way.iter().flat_map(|fit| fit.switches.iter().zip(&model.protocols));
    all.extend(
        named.map(|(switch, protocol)| {
            line("switch", protocol.name(), switch.between, Some(switch.step), "us")
        }),
    );
    all
}

fn segments(curve: &str, fit: &Fit) -> Vec<Vec<String>> {
    fit.segments.iter().flat_map(|segment| segment_lines(curve, segment)).collect()
}

/// Returns the lines of CSV of a segment: its fixed time and its time per byte.
fn segment_lines(curve: &str, segment: &Segment) -> [Vec<String>; 2] {
    [
        line("segment", &format!("{curve}_fixed"), segment.bytes, segment.fixed.as_time(), "us"),
        line("segment", &format!("{curve}_per_byte"), segment.bytes, segment.per_byte.as_time(), "ns/byte"),
    ]
}

fn line(kind: &str, name: &str, bytes: [u64; 2], estimate: Option<Estimate>, unit: &str) -> Vec<String> {
    let [low, high] = ends(estimate.and_then(|estimate| estimate.interval));
    vec![
        kind.into(),
        name.into(),
        bytes[0].to_string(),
        bytes[1].to_string(),
        text(estimate.map(|estimate| estimate.value)),
        low,
        high,
        unit.into(),
        String::new(),
    ]
}

/// Name, major and minor version of the schema.
const SCHEMA: (&str, u32, u32) = ("ombx.model", 1, 0);

/// Returns the JSON object of models.
pub fn model_json(shown: &Shown) -> Value {
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
