//! Models as CSV: one line per parameter, segment and switch.

use std::io::{Result, Write};

use super::Shown;
use crate::{
    model::{Estimate, Fit, MachineModel},
    render::csv::Lines,
    runs::library,
};

/// Columns in order. New columns are added at the end only. `low` and `high` are the 95 % interval of a value; without a value they
/// are bounds.
const COLUMNS: &str = "latency,stream,library,kind,name,from_bytes,to_bytes,value,low,high,unit,note";

/// Writes a header line, then the lines. A value that does not exist is empty.
pub fn csv(out: &mut dyn Write, shown: &Shown) -> Result<()> {
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
        let [low, high] = parameter.interval.map_or([None; 2], |ends| ends.map(Some));
        all.push(vec![
            "parameter".into(),
            parameter.symbol.into(),
            String::new(),
            String::new(),
            text(parameter.value),
            text(low),
            text(high),
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
    let both = |segment: &crate::model::Segment| {
        [
            line("segment", &format!("{curve}_fixed"), segment.bytes, segment.fixed.as_time(), "us"),
            line(
                "segment",
                &format!("{curve}_per_byte"),
                segment.bytes,
                segment.per_byte.as_time(),
                "ns/byte",
            ),
        ]
    };
    fit.segments.iter().flat_map(both).collect()
}

fn line(kind: &str, name: &str, bytes: [u64; 2], estimate: Option<Estimate>, unit: &str) -> Vec<String> {
    let [low, high] =
        estimate.and_then(|estimate| estimate.interval).map_or([None; 2], |ends| ends.map(Some));
    vec![
        kind.into(),
        name.into(),
        bytes[0].to_string(),
        bytes[1].to_string(),
        text(estimate.map(|estimate| estimate.value)),
        text(low),
        text(high),
        unit.into(),
        String::new(),
    ]
}

fn text(value: Option<f64>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}
