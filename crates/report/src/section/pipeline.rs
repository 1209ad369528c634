//! Phase pipelines: a drawing of nodes, phases and connections, with the waiting time of each phase.

use std::collections::BTreeMap;

use maud::{Markup, html};
use ombx_estimate::number::{RateUnit, figure, tick_label};
use ombx_record::{
    result::{Figure, Measurement},
    unit::{Bytes, counted},
};

use crate::{
    plot::{Quantity, describe, line_chart::Point, n},
    run_list::{RunList, is_ok},
};

/// Maximum number of rows in the section. The table of rows has all.
const MAX_ROWS: usize = 12;
/// Maximum number of nodes and phases in a drawing. Larger pipelines get a table.
const MAX_NODES: usize = 12;
const MAX_PHASES: usize = 12;

const BOX: (f64, f64) = (168.0, 62.0);
const GAP: (f64, f64) = (92.0, 22.0);
const SIDE: f64 = 108.0;
const TOP: f64 = 34.0;
const SHADES: usize = 7;

/// Nodes and phases of one row.
struct Pipeline {
    nodes: usize,
    phases: usize,
    mb_per_s: BTreeMap<usize, f64>,
    /// Milliseconds that a phase of a node waited for data and for free buffers. Nodes count from 0, phases from 1.
    waited: BTreeMap<(usize, usize), [Option<f64>; 2]>,
}

impl Pipeline {
    /// Reads the figures `nodeN_mb_per_s`, `nodeN_phaseP_waited_for_data_ms` and `nodeN_phaseP_waited_for_room_ms`.
    fn from_row(row: &Measurement) -> Option<Pipeline> {
        let (mut mb_per_s, mut waited) = (BTreeMap::new(), BTreeMap::new());
        for (name, value) in &row.figures {
            let (Some((node, rest)), Figure::Value(value)) = (of_node(name), value) else { continue };
            if rest == "mb_per_s" {
                mb_per_s.insert(node, *value);
            } else if let Some((phase, what)) =
                rest.strip_prefix("phase").and_then(|rest| rest.split_once("_waited_for_"))
            {
                let at = ["data_ms", "room_ms"].iter().position(|known| *known == what);
                if let (Ok(phase @ 1..), Some(at)) = (phase.parse::<usize>(), at) {
                    waited.entry((node, phase)).or_insert([None; 2])[at] = Some(*value);
                }
            }
        }
        let nodes = waited.keys().map(|(node, _)| node + 1).max()?;
        let phases = waited.keys().map(|(_, phase)| *phase).max()?;
        Some(Pipeline { nodes, phases, mb_per_s, waited })
    }

    fn total(&self, node: usize, phase: usize) -> Option<f64> {
        let waited = self.waited.get(&(node, phase))?;
        Some(waited.iter().flatten().sum())
    }
}

/// Splits the name of a figure into the number of the node and the remaining name.
fn of_node(name: &str) -> Option<(usize, &str)> {
    let (node, rest) = name.strip_prefix("node")?.split_once('_')?;
    Some((node.parse().ok().filter(|node| *node < 1_000_000)?, rest))
}

/// Returns whether the drawing contains a figure. Such figures have no column in the table of rows.
pub(crate) fn is_drawn(row: &Measurement, figure: &str) -> bool {
    is_of_pipeline(row) && of_node(figure).is_some()
}

fn is_of_pipeline(row: &Measurement) -> bool {
    ["nodes", "phases"].iter().all(|axis| row.axes.contains_key(*axis))
}

/// Returns the section, or `None` without rows of a pipeline.
pub(crate) fn section(runs: &RunList<'_>) -> Option<Markup> {
    let found: Vec<_> = runs
        .rows()
        .filter(|r| is_of_pipeline(r.row) && is_ok(r.row))
        .filter_map(|r| Some((r, Pipeline::from_row(r.row)?)))
        .collect();
    (!found.is_empty()).then(|| {
        html! {
            section #pipeline aria-labelledby="pipeline-h" {
                h2 #pipeline-h { "Pipeline" }
                p.soft {
                    "A box is a phase of a node. Its shade shows the waiting time: for data of the \
                     previous phase, or for free buffers of the next phase. "
                    "The phase with the shortest waiting time limits the pipeline."
                    @if found.len() > MAX_ROWS { " The first " (MAX_ROWS) " of " (found.len()) " rows." }
                }
                @for (r, pipeline) in found.iter().take(MAX_ROWS) {
                    figure {
                        figcaption {
                            h3 { (counted(pipeline.nodes, "node")) ", " (counted(pipeline.phases, "phase")) ", blocks of " (Bytes(r.row.bytes.unwrap_or(0))) " bytes" }
                            p {
                                @let quantity = Quantity::new(r.row.metric, runs.units);
                                @if let Some(point) = Point::from_row(r.row, quantity) { "All nodes: " (describe(&point, quantity)) ". " }
                                code { (r.row.key) }
                                @if runs.entries.len() > 1 { ", " (runs.run_of(r.at).map_or("", |entry| &entry.name)) }
                            }
                        }
                        @if pipeline.nodes <= MAX_NODES && pipeline.phases <= MAX_PHASES {
                            div.wide role="group" aria-label="Pipeline, drawing" { (draw(&format!("p{}", r.at), r.row, pipeline, runs.units.of_rates())) }
                        } @else {
                            (table(pipeline))
                        }
                    }
                }
            }
        }
    })
}

fn draw(id: &str, row: &Measurement, pipeline: &Pipeline, rates: RateUnit) -> Markup {
    let Pipeline { nodes, phases, .. } = *pipeline;
    let x = |phase: usize| SIDE + (BOX.0 + GAP.0) * (phase - 1) as f64;
    let y = |node: usize| TOP + (BOX.1 + GAP.1) * node as f64;
    let width = 2.0 * SIDE + BOX.0 * phases as f64 + GAP.0 * (phases - 1) as f64;
    let height = y(nodes);
    let longest =
        pipeline.waited.keys().filter_map(|(node, phase)| pipeline.total(*node, *phase)).fold(0.0, f64::max);
    let shade =
        |ms: f64| if longest > 0.0 { ((ms / longest * SHADES as f64) as usize).min(SHADES - 1) } else { 0 };
    let end = |axis: &str| row.axes.get(axis).map_or("memory", String::as_str);
    let ms = |ms: Option<f64>| ms.map_or("n/a".to_owned(), |ms| format!("{} ms", tick_label(ms)));
    html! {
        svg.plot.pipe viewBox={ "0 0 " (n(width)) " " (n(height)) } role="img" aria-labelledby={ (id) "-t " (id) "-d" } {
            title id={ (id) "-t" } { "Pipeline of " (counted(nodes, "node")) " and " (counted(phases, "phase")) }
            desc id={ (id) "-d" } {
                @for ((node, phase), [data, space]) in &pipeline.waited {
                    "Node " (node) ", phase " (phase) " waited " (ms(*data)) " for data and " (ms(*space)) " for buffers. "
                }
            }
            @for phase in 1..=phases { text x=(n(x(phase) + BOX.0 / 2.0)) y=(n(TOP - 14.0)) text-anchor="middle" { "phase " (phase) } }
            @for phase in 1..phases {
                @for from in 0..nodes {
                    @for to in 0..nodes {
                        path.(if from == to { "unix" } else { "tcp" })
                            d={ "M" (n(x(phase) + BOX.0)) " " (n(y(from) + BOX.1 / 2.0)) "L" (n(x(phase + 1))) " " (n(y(to) + BOX.1 / 2.0)) } {}
                    }
                }
            }
            @for node in 0..nodes {
                @let middle = y(node) + BOX.1 / 2.0;
                text x="2" y=(n(middle - 6.0)) { "node " (node) }
                text.soft x="2" y=(n(middle + 12.0)) { "from " (end("source")) }
                path.unix d={ "M" (n(SIDE - 22.0)) " " (n(middle)) "H" (n(SIDE)) "M" (n(x(phases) + BOX.0)) " " (n(middle)) "h22" } {}
                @let after = x(phases) + BOX.0 + 28.0;
                @if let Some(rate) = pipeline.mb_per_s.get(&node) { text x=(n(after)) y=(n(middle - 6.0)) { (figure(rates.of_mb(*rate))) " " (rates.name()) } }
                text.soft x=(n(after)) y=(n(middle + 12.0)) { "to " (end("sink")) }
                @for phase in 1..=phases {
                    @let [data, space] = pipeline.waited.get(&(node, phase)).copied().unwrap_or_default();
                    @let level = shade(pipeline.total(node, phase).unwrap_or(0.0));
                    rect.stage.{ "h" (level) } x=(n(x(phase))) y=(n(y(node))) width=(n(BOX.0)) height=(n(BOX.1)) rx="6" {}
                    @for (line, (what, waited)) in [("for data", data), ("for buffers", space)].into_iter().enumerate() {
                        text.on.(if level > 4 { "high" } else { "low" }) x=(n(x(phase) + 10.0)) y=(n(y(node) + 26.0 + 20.0 * line as f64)) {
                            (what) " " (ms(waited))
                        }
                    }
                }
            }
        }
        ul.legend aria-label="Lines and shades" {
            li { svg.pipe aria-hidden="true" viewBox="0 0 14 14" { path.unix d="M0 7H14" {} } "inside a node (Unix-domain)" }
            @if nodes > 1 { li { svg.pipe aria-hidden="true" viewBox="0 0 14 14" { path.tcp d="M0 7H14" {} } "between nodes (TCP)" } }
            li { "shade: from 0 to " (tick_label(longest)) " ms waiting time" }
        }
    }
}

/// Returns a table for a pipeline that is too large for a drawing.
fn table(pipeline: &Pipeline) -> Markup {
    let ms = |ms: Option<f64>| ms.map_or("n/a".to_owned(), figure);
    html! {
        div.wide role="group" aria-label="Waiting of each phase" {
            table {
                thead { tr { th scope="col" { "node" } th scope="col" { "phase" } th scope="col" { "waited for data, ms" } th scope="col" { "waited for buffers, ms" } } }
                tbody {
                    @for ((node, phase), [data, space]) in &pipeline.waited {
                        tr { td { (node) } td { (phase) } td { (ms(*data)) } td { (ms(*space)) } }
                    }
                }
            }
        }
    }
}
