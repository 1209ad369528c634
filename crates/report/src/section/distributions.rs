//! Figures of the samples: for each benchmark its launches, distributions, and samples in the order of measurement.

use maud::{Markup, PreEscaped, html};
use ombx_draw::{Input, Kind, Options, draw};
use ombx_estimate::{knee::RATE, number::Units, samples::CaseSamples, text::title};

/// Maximum number of benchmarks with figures of their samples, which would make the page too large.
pub const MAX_BENCHMARKS: usize = 12;
/// Kinds of figures in the order of the page.
const KINDS: [(Kind, &str); 6] = [
    (Kind::Rate, "Time by offered rate"),
    (Kind::Launches, "Launches"),
    (Kind::Violin, "Samples by message size"),
    (Kind::Cdf, "Cumulative distribution"),
    (Kind::Histogram, "Histogram"),
    (Kind::Samples, "Samples in the order of measurement"),
];

/// Rows that differ in message size or offered rate only, of each side of a comparison.
struct Benchmark<'a> {
    name: String,
    inputs: Vec<Input<'a>>,
}

/// Returns the section, or `None` without samples. `all` is the number of benchmarks, of which the inputs have the first ones at least.
pub(crate) fn section(inputs: &[Input<'_>], all: usize, units: Units) -> Option<Markup> {
    let benchmarks = benchmarks(inputs);
    let drawn: Vec<(&Benchmark<'_>, Vec<Markup>)> = benchmarks
        .iter()
        .take(MAX_BENCHMARKS)
        .enumerate()
        .map(|(at, benchmark)| (benchmark, figures(at, benchmark, units)))
        .filter(|(_, figures)| !figures.is_empty())
        .collect();
    if drawn.is_empty() {
        return None;
    }
    let left_out = benchmarks.len().max(all).saturating_sub(MAX_BENCHMARKS);
    Some(html! {
        section #distributions aria-labelledby="distributions-h" {
            h2 #distributions-h { "Distributions" }
            p.soft {
                "Samples behind the medians. Figures with a curve for each message size show some sizes. "
                "Hollow symbols: rows with a mark. Of launches with very many samples, evenly spaced ones are drawn."
                @if left_out > 0 { " " (left_out) " more benchmarks: " code { "ombx plot FILE --kind violin --rows NAME -o FIGURE.svg" } "." }
            }
            @for (at, (benchmark, figures)) in drawn.iter().enumerate() {
                details open[at == 0] {
                    summary { (benchmark.name) }
                    div.figures { @for figure in figures { (figure) } }
                }
            }
        }
    })
}

/// Groups cases by setup and heading. Sides of a comparison share a group.
fn benchmarks<'a>(inputs: &[Input<'a>]) -> Vec<Benchmark<'a>> {
    let mut found: Vec<Benchmark<'a>> = Vec::new();
    for input in inputs {
        let same = |a: &CaseSamples, b: &CaseSamples| a.setup == b.setup && name(a) == name(b);
        let setups = input.cases.iter().map(|case| case.setup + 1).max().unwrap_or(1);
        for cases in input.cases.chunk_by(same) {
            let name = match setups {
                1 => name(&cases[0]),
                _ => format!("{}, setup {}", name(&cases[0]), cases[0].setup + 1),
            };
            let part = Input { label: input.label, cases };
            match found.iter_mut().find(|known| known.name == name) {
                Some(known) => known.inputs.push(part),
                None => found.push(Benchmark { name, inputs: vec![part] }),
            }
        }
    }
    found
}

/// Returns the heading of a row without the rate at which requests were offered.
fn name(case: &CaseSamples) -> String {
    let row = case.row();
    let axes = row.axes.iter().filter(|(name, _)| *name != RATE);
    title(&row.bench, axes, row.depth, row.pairs)
}

/// Draws the kinds that fit the rows.
fn figures(at: usize, benchmark: &Benchmark<'_>, units: Units) -> Vec<Markup> {
    let options = Options { units, ..Options::default() };
    let kinds = KINDS.iter().enumerate();
    let drawn = kinds.filter_map(|(number, (kind, caption))| {
        let drawing = draw(*kind, &benchmark.inputs, &options).ok()?;
        let (id, label) = (format!("f{at}-{number}"), format!("{}: {caption}", benchmark.name));
        Some(html! {
            figure id=(id) {
                figcaption { h3 { (caption) } }
                div role="img" aria-label=(label) { (PreEscaped(drawing.inline().replacen("<svg ", "<svg class=\"paper\" ", 1))) }
            }
        })
    });
    drawn.collect()
}
