//! Which rows share a chart: a family's, or a benchmark's where that would be too many to tell apart.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};
use ombx_core::{
    benchmark::work::Metric,
    result::{Measurement, Outcome},
    unit::Bytes,
};
use ombx_results::render::heading;

use crate::{
    book::{Book, is_link},
    chart::{self, Point, Series},
    dots::{self, Dot},
    svg::MOST_SERIES,
};

/// Dots below each other in one drawing.
const MOST_DOTS: usize = 40;

/// Rows of one run, or of launches of the same, that differ in their size alone.
struct Sweep<'a> {
    metric: Metric,
    bench: &'a str,
    /// What tells it from others: benchmark, each axis, window, pairs, run.
    parts: Vec<String>,
    points: Vec<Point>,
    bytes: Option<u64>,
}

/// The section, if there is anything to draw.
pub(crate) fn section(book: &Book<'_>) -> Option<Markup> {
    let sweeps = sweeps(book);
    if sweeps.is_empty() {
        return None;
    }
    let (curves, single): (Vec<&Sweep<'_>>, Vec<&Sweep<'_>>) =
        sweeps.iter().partition(|s| s.points.iter().map(|p| p.bytes).collect::<BTreeSet<_>>().len() > 1);
    let charts = [grouped(&curves, MOST_SERIES), grouped(&single, MOST_DOTS)];
    let doubtful = sweeps.iter().flat_map(|s| &s.points).any(|p| p.doubtful);
    let failed = book.rows().any(|r| matches!(r.row.outcome, Outcome::Failed(_)));
    Some(html! {
        section #curves aria-labelledby="curves-h" {
            h2 #curves-h { "Curves" }
            p.soft {
                "Medians with their 95 % intervals; where an interval is not seen it is narrower than the mark. All axes are logarithmic."
                @if doubtful { " Hollow marks: a notice says what could have spoiled the row." }
                @if book.sets() < book.runs.len() { " Launches of the same are one curve, through the median of each size." }
                @if failed { " Rows that failed are not drawn." }
            }
            @for (at, (title, sweeps)) in charts[0].iter().enumerate() { (curve(&format!("c{at}"), title, sweeps)) }
            @for (at, (title, sweeps)) in charts[1].iter().enumerate() { (dot(&format!("d{at}"), title, sweeps)) }
        }
    })
}

fn sweeps<'a>(book: &Book<'a>) -> Vec<Sweep<'a>> {
    let mut found: Vec<Sweep<'a>> = Vec::new();
    let mut known: BTreeMap<(usize, String, &'static str), usize> = BTreeMap::new();
    for chapter in &book.runs {
        for row in chapter.rows().map(|numbered| numbered.row).filter(|row| !is_link(row)) {
            let Some(figure) = row.headline() else { continue };
            let place = *known.entry((chapter.set, heading(row), row.metric.name())).or_insert_with(|| {
                let mut parts = parts(row);
                if book.sets() > 1 {
                    parts.push(book.set_name(chapter.set).to_owned());
                }
                found.push(Sweep {
                    metric: row.metric,
                    bench: &row.bench,
                    parts,
                    points: vec![],
                    bytes: row.bytes,
                });
                found.len() - 1
            });
            let doubtful = !row.trust.is_empty();
            found[place].points.push(Point { bytes: row.bytes.unwrap_or(0), figure, doubtful });
        }
    }
    found.iter_mut().for_each(|sweep| sweep.points.sort_by_key(|p| p.bytes));
    found
}

fn parts(row: &Measurement) -> Vec<String> {
    let axes = row.axes.iter().map(|(name, value)| format!("{name}={value}"));
    let depth = row.depth.map(|depth| format!("window {depth}"));
    let pairs = (row.pairs > 1).then(|| format!("{} pairs", row.pairs));
    std::iter::once(row.bench.clone()).chain(axes).chain(depth).chain(pairs).collect()
}

/// Charts with their titles, each of at most `most` sweeps.
fn grouped<'a, 'b>(sweeps: &[&'b Sweep<'a>], most: usize) -> Vec<(String, Vec<&'b Sweep<'a>>)> {
    let family = |sweep: &Sweep<'a>| sweep.bench.split('.').next().unwrap_or_default().to_owned();
    let mut charts = Vec::new();
    for ((metric, family), of_family) in by(sweeps, |s| (s.metric.name(), family(s))) {
        if of_family.len() <= most {
            charts.push((format!("{family}: {metric}"), of_family));
            continue;
        }
        for (bench, of_bench) in by(&of_family, |s| s.bench) {
            let several = of_bench.len() > most;
            for (at, chunk) in of_bench.chunks(most).enumerate() {
                let part = if several {
                    format!(", {} to {} of {}", at * most + 1, at * most + chunk.len(), of_bench.len())
                } else {
                    String::new()
                };
                charts.push((format!("{bench}{part}"), chunk.to_vec()));
            }
        }
    }
    charts
}

/// Groups in the order in which each first appears.
fn by<'a, 'b, K: Ord + Clone>(
    sweeps: &[&'b Sweep<'a>],
    key: impl Fn(&Sweep<'a>) -> K,
) -> Vec<(K, Vec<&'b Sweep<'a>>)> {
    let mut places: BTreeMap<K, usize> = BTreeMap::new();
    let mut groups: Vec<(K, Vec<&'b Sweep<'a>>)> = Vec::new();
    for sweep in sweeps {
        let key = key(sweep);
        let place = *places.entry(key.clone()).or_insert_with(|| {
            groups.push((key, Vec::new()));
            groups.len() - 1
        });
        groups[place].1.push(sweep);
    }
    groups
}

/// What all sweeps of a chart share, and each one's name without it.
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
    let (common, names) = names(sweeps);
    let series: Vec<Series> =
        names.into_iter().zip(sweeps).map(|(name, s)| Series { name, points: s.points.clone() }).collect();
    let metric = sweeps.first().map_or(Metric::Latency, |s| s.metric);
    html! {
        figure id=(id) {
            figcaption { (caption(title, &common)) (chart::keys(&series)) }
            div.wide role="group" aria-label={ (title) ", chart" } { (chart::draw(id, title, &series, metric)) }
        }
    }
}

fn dot(id: &str, title: &str, sweeps: &[&Sweep<'_>]) -> Markup {
    let sizes: BTreeSet<Option<u64>> = sweeps.iter().map(|s| s.bytes).collect();
    let size = |bytes: Option<u64>| bytes.map(|b| format!("{} bytes", Bytes(b)));
    let (mut common, names) = names(sweeps);
    let one_size = (sizes.len() == 1).then(|| sizes.first().copied().flatten()).flatten();
    if let Some(size) = size(one_size) {
        common = if common.is_empty() { size } else { format!("{common} · {size}") };
    }
    let dots: Vec<Dot> = names
        .iter()
        .zip(sweeps)
        .map(|(name, s)| {
            let own = size(s.bytes).filter(|_| sizes.len() > 1).map(|size| format!(" · {size}"));
            Dot { name: format!("{name}{}", own.unwrap_or_default()), launches: s.points.clone() }
        })
        .collect();
    let metric = sweeps.first().map_or(Metric::Latency, |s| s.metric);
    html! {
        figure id=(id) {
            figcaption { (caption(title, &common)) }
            div.wide role="group" aria-label={ (title) ", chart" } { (dots::draw(id, title, &dots, metric)) }
        }
    }
}
