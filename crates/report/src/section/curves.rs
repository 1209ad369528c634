//! Charts of all rows. A chart has the rows of a family of benchmarks, or of one benchmark if these are too many.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};
use ombx_draw::{Abscissa, name_parts};
use ombx_estimate::text::heading;
use ombx_record::{
    order::{grouped, sort_by_number},
    result::Outcome,
    unit::Bytes,
};

use crate::{
    plot::{
        MAX_SERIES, Quantity, dot_plot,
        line_chart::{self, Curve, Point},
    },
    run_list::{RunList, is_link},
};

/// Maximum number of lines in a dot plot.
const MAX_DOTS: usize = 40;

/// Rows of one run that differ only in message size.
struct Sweep<'a> {
    quantity: Quantity,
    bench: &'a str,
    /// Parts of the name: benchmark, axes, window, pairs, run.
    parts: Vec<String>,
    points: Vec<Point>,
    bytes: Option<u64>,
    /// Number of the case, which the sweeps of several runs share.
    case: usize,
}

/// Returns the section, or `None` without figures.
pub(crate) fn section(runs: &RunList<'_>) -> Option<Markup> {
    let sweeps = sweeps(runs);
    if sweeps.is_empty() {
        return None;
    }
    let (curves, single): (Vec<&Sweep<'_>>, Vec<&Sweep<'_>>) =
        sweeps.iter().partition(|s| s.points.iter().map(|p| p.bytes).collect::<BTreeSet<_>>().len() > 1);
    let charts = [charts(&curves, MAX_SERIES), charts(&single, MAX_DOTS)];
    let marked = sweeps.iter().flat_map(|s| &s.points).any(|p| p.marked);
    let several = sweeps.iter().flat_map(|s| &s.points).any(|p| p.launches.len() > 1);
    let failed = runs.rows().any(|r| matches!(r.row.outcome, Outcome::Failed(_)));
    Some(html! {
        section #curves aria-labelledby="curves-h" {
            h2 #curves-h { "Curves" }
            p.soft {
                @if several { "Medians of the launches in the most frequent state of the machine, with 95 \
                               % intervals within the run: another run may differ by more. Small dots are \
                               single launches, of other states too (not drawn if they are too many)." }
                @else { "Medians with 95 % intervals within one launch: the next launch may differ by more." }
                " An interval that is not visible is narrower than the symbol. All axes are logarithmic."
                @if marked { " Hollow symbols: rows with a mark." }
                @if failed { " Failed rows are not drawn." }
            }
            @for (at, (title, sweeps)) in charts[0].iter().enumerate() { (curve(&format!("c{at}"), title, sweeps)) }
            @for (at, (title, sweeps)) in charts[1].iter().enumerate() { (dot(&format!("d{at}"), title, sweeps)) }
        }
    })
}

fn sweeps<'a>(runs: &RunList<'a>) -> Vec<Sweep<'a>> {
    let mut found: Vec<Sweep<'a>> = Vec::new();
    let mut known: BTreeMap<(usize, String, &'static str), usize> = BTreeMap::new();
    let mut cases: BTreeMap<String, usize> = BTreeMap::new();
    let several = runs.entries.iter().filter(|entry| !entry.swept.is_sweep()).count() > 1;
    for (at, entry) in runs.entries.iter().enumerate() {
        for row in entry.rows().map(|numbered| numbered.row).filter(|row| !is_link(row)) {
            let bus = Quantity::BusBandwidth(runs.units.of_rates());
            for quantity in [Quantity::new(row.metric, runs.units), Quantity::MessageRate, bus] {
                let Some(point) = Point::from_row(row, quantity) else { continue };
                let place = *known.entry((at, heading(row), quantity.name())).or_insert_with(|| {
                    let mut parts = name_parts(row, Abscissa::Size);
                    if several {
                        parts.push(entry.name.clone());
                    }
                    let next = cases.len();
                    found.push(Sweep {
                        case: *cases.entry(heading(row)).or_insert(next),
                        quantity,
                        bench: &row.bench,
                        parts,
                        points: vec![],
                        bytes: row.bytes,
                    });
                    found.len() - 1
                });
                found[place].points.push(point);
            }
        }
    }
    found.iter_mut().for_each(|sweep| {
        sort_by_number(&mut sweep.points, |point| i64::try_from(point.bytes).unwrap_or(i64::MAX))
    });
    // The sides of a comparison lie over each other in one chart.
    sort_by_number(&mut found, |sweep| sweep.case as i64);
    found
}

/// Divides sweeps into charts with titles. A chart has at max `max` sweeps.
fn charts<'a, 'b>(sweeps: &[&'b Sweep<'a>], max: usize) -> Vec<(String, Vec<&'b Sweep<'a>>)> {
    let family = |sweep: &Sweep<'a>| sweep.bench.split('.').next().unwrap_or_default().to_owned();
    let mut charts = Vec::new();
    let by_family = sweeps.iter().map(|&sweep| ((sweep.quantity.name(), family(sweep)), sweep));
    for ((metric, family), of_family) in grouped(by_family) {
        if of_family.len() <= max {
            charts.push((format!("{family}: {metric}"), of_family));
            continue;
        }
        for (bench, of_bench) in grouped(of_family.into_iter().map(|sweep| (sweep.bench, sweep))) {
            let several = of_bench.len() > max;
            for (at, chunk) in of_bench.chunks(max).enumerate() {
                let part = if several {
                    format!(", {} to {} of {}", at * max + 1, at * max + chunk.len(), of_bench.len())
                } else {
                    String::new()
                };
                charts.push((format!("{bench}: {metric}{part}"), chunk.to_vec()));
            }
        }
    }
    charts
}

/// Returns the common parts of the names, and the name of each sweep without them.
fn names(sweeps: &[&Sweep<'_>]) -> (String, Vec<String>) {
    let shared = |part: &String| sweeps.len() > 1 && sweeps.iter().all(|s| s.parts.contains(part));
    let join = |parts: Vec<&String>| parts.into_iter().map(String::as_str).collect::<Vec<_>>().join(" · ");
    let common =
        sweeps.first().map(|s| join(s.parts.iter().filter(|p| shared(p)).collect())).unwrap_or_default();
    let names = sweeps.iter().map(|s| {
        let own = join(s.parts.iter().filter(|p| !shared(p)).collect());
        if own.is_empty() { s.bench.to_owned() } else { own }
    });
    (common, names.collect())
}

fn caption(title: &str, common: &str) -> Markup {
    html! {
        h3 { (title) }
        @if !common.is_empty() { p { (common) } }
    }
}

fn curve(id: &str, title: &str, sweeps: &[&Sweep<'_>]) -> Markup {
    let Some(Sweep { quantity, .. }) = sweeps.first() else { return html! {} };
    let (common, names) = names(sweeps);
    let curves: Vec<Curve> =
        names.into_iter().zip(sweeps).map(|(name, s)| Curve { name, points: s.points.clone() }).collect();
    html! {
        figure id=(id) {
            figcaption { (caption(title, &common)) (line_chart::legend(&curves)) }
            div.wide role="group" aria-label={ (title) ", chart" } { (line_chart::draw(id, title, &curves, *quantity)) }
        }
    }
}

fn dot(id: &str, title: &str, sweeps: &[&Sweep<'_>]) -> Markup {
    let Some(Sweep { quantity, .. }) = sweeps.first() else { return html! {} };
    let sizes: BTreeSet<Option<u64>> = sweeps.iter().map(|s| s.bytes).collect();
    let size = |bytes: Option<u64>| bytes.map(|b| format!("{} bytes", Bytes(b)));
    let (mut common, names) = names(sweeps);
    let one_size = (sizes.len() == 1).then(|| sizes.first().copied().flatten()).flatten();
    if let Some(size) = size(one_size) {
        common = if common.is_empty() { size } else { format!("{common} · {size}") };
    }
    let lines: Vec<Curve> = names
        .iter()
        .zip(sweeps)
        .map(|(name, s)| {
            let own = size(s.bytes).filter(|_| sizes.len() > 1).map(|size| format!(" · {size}"));
            Curve { name: format!("{name}{}", own.unwrap_or_default()), points: s.points.clone() }
        })
        .collect();
    html! {
        figure id=(id) {
            figcaption { (caption(title, &common)) }
            div.wide role="group" aria-label={ (title) ", chart" } { (dot_plot::draw(id, title, &lines, *quantity)) }
        }
    }
}
