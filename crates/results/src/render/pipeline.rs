//! Drawing of a phase pipeline: nodes and phases with rates and waiting times.

use std::fmt::Write as _;

use super::plain;
use ombx_core::{benchmark::Figure, result::Measurement, unit::Bytes};

/// Maximum size of a drawing. Larger ones do not fit on a terminal.
const MOST_PHASES: usize = 5;
const MOST_NODES: usize = 16;
/// Columns from one phase to the next.
const STEP: usize = 20;
/// Columns before the first phase.
const MARGIN: usize = 13;

/// Returns whether a figure belongs to a node or phase. The drawing shows it, and the table has no column for it.
pub(super) fn is_part(figure: &str) -> bool {
    let rest = figure.strip_prefix("node").unwrap_or_default();
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    digits > 0 && rest[digits..].starts_with('_')
}

/// Returns the drawing of a row, or `None` if it is not a pipeline.
pub(super) fn drawing(row: &Measurement) -> Option<String> {
    let axis = |name: &str| row.axes.get(name).map(String::as_str);
    let count = |name: &str| axis(name)?.parse::<usize>().ok();
    let (nodes, phases, buffers) = (count("nodes")?, count("phases")?, count("buffers")?);
    let total = row.mb_per_s()?.median;
    let (source, sink) = (plain(axis("source")?), plain(axis("sink")?));
    let block = Bytes(row.bytes?);
    let figure = |name: String| match row.figures.get(&name) {
        Some(Figure::Value(x)) => Some(*x),
        _ => None,
    };
    let mut text = format!(
        "  {source} -> {nodes} x {phases} -> {sink}: {buffers} x {nodes} x {block} through each node, {total:.1} MB/s in all\n"
    );
    let started = figure("started_processes".into()).unwrap_or(0.0) as usize;
    let ends = nodes * nodes * (phases - 1);
    let _ = match started > nodes {
        true => writeln!(
            text,
            "  {started} processes: nodes: {nodes}, and {} started by them (phases: {}, senders: {ends}, receivers: {ends})",
            started - nodes,
            nodes * phases
        ),
        false => writeln!(
            text,
            "  nodes: {started} processes; phases: {}, senders: {ends}, receivers: {ends} threads",
            nodes * phases
        ),
    };
    let _ = writeln!(
        text,
        "  === all-to-all between nodes: unix inside a node{}",
        if nodes > 1 { ", tcp between nodes" } else { "" }
    );
    if nodes > MOST_NODES || phases > MOST_PHASES {
        return Some(text + "  too large for a drawing; the result file has all stages\n");
    }
    text += &format!("\n{:MARGIN$}", "");
    for phase in 1..=phases {
        let _ = write!(text, "{:<STEP$}", format!("phase {phase}"));
    }
    text.truncate(text.trim_end().len());
    for node in 0..nodes {
        let arrow = format!("[##]{}> ", "=".repeat(STEP - 6));
        let rate = figure(format!("node{node}_mb_per_s"))?;
        let _ = write!(
            text,
            "\n  {:<w$}{}[##]  {rate:.1} MB/s",
            format!("node {node}"),
            arrow.repeat(phases - 1),
            w = MARGIN - 2
        );
        for what in ["data", "room"] {
            let (label, noun) = if what == "data" { ("waits for", "data") } else { ("", "buffer") };
            let _ = write!(text, "\n  {label:<w$}", w = MARGIN - 2);
            for phase in 1..=phases {
                let ms = figure(format!("node{node}_phase{phase}_waited_for_{what}_ms"))?;
                let _ = write!(text, "{:<STEP$}", format!("{noun} {ms:.2} ms"));
            }
            text.truncate(text.trim_end().len());
        }
    }
    Some(text + "\n")
}
