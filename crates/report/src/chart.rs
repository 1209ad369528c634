//! Curves over message size: both axes logarithmic, 95 % intervals, one mark and one colour for each series.

use maud::{Markup, html};
use ombx_core::{benchmark::work::Metric, result::Headline, unit::Bytes};
use ombx_results::{
    log_axis::{LogAxis, Round},
    render::figure,
};

use crate::svg::{interval, mark, n, polyline};

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 430.0;
const LEFT: f64 = 66.0;
const RIGHT: f64 = WIDTH - 18.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = HEIGHT - 48.0;
/// Room for messages of 0 bytes, which have no place on a logarithmic axis.
const ZERO: f64 = 44.0;

/// The median of launches at one size.
pub(crate) fn middle(launches: &[Point]) -> f64 {
    let mut values: Vec<f64> = launches.iter().map(|p| p.figure.value).collect();
    values.sort_by(f64::total_cmp);
    let n = values.len();
    if n == 0 { 0.0 } else { (values[(n - 1) / 2] + values[n / 2]) / 2.0 }
}

/// A curve.
pub(crate) struct Series {
    pub(crate) name: String,
    /// By size, ascending.
    pub(crate) points: Vec<Point>,
}

/// A row on a curve.
#[derive(Clone, Copy)]
pub(crate) struct Point {
    pub(crate) bytes: u64,
    pub(crate) figure: Headline,
    /// Whether a notice says that something could have spoiled it.
    pub(crate) doubtful: bool,
}

/// What a metric is called, with its unit.
pub(crate) fn axis_label(metric: Metric) -> &'static str {
    match metric {
        Metric::Latency => "time in µs",
        Metric::Bandwidth => "bandwidth in MB/s",
    }
}

/// The unit of a metric as the page writes it.
pub(crate) fn unit(metric: Metric) -> &'static str {
    match metric {
        Metric::Latency => "µs",
        Metric::Bandwidth => "MB/s",
    }
}

/// A figure with its interval.
pub(crate) fn told(head: &Headline, metric: Metric) -> String {
    let unit = unit(metric);
    match head.ci95 {
        Some([low, high]) => {
            format!("{} {unit}, 95 % interval {} to {}", figure(head.value), figure(low), figure(high))
        }
        None => format!("{} {unit}, no interval", figure(head.value)),
    }
}

/// What an axis has to hold of a figure.
pub(crate) fn reach(head: &Headline) -> [f64; 2] {
    head.ci95.map_or([head.value; 2], |[low, high]| [low.min(head.value), high.max(head.value)])
}

/// A figure without zeros that say nothing.
pub(crate) fn mark_label(value: f64) -> String {
    let text = figure(value);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// The drawing; `id` is unlike that of any other on the page.
pub(crate) fn draw(id: &str, title: &str, series: &[Series], metric: Metric) -> Markup {
    let points = || series.iter().flat_map(|s| &s.points);
    let sizes = points().filter(|p| p.bytes > 0).map(|p| p.bytes as f64);
    let x = LogAxis::holding(sizes, Round::Binary);
    let Some(y) = LogAxis::holding(points().flat_map(|p| reach(&p.figure)), Round::Decimal) else {
        return html! {};
    };
    let zero = points().any(|p| p.bytes == 0);
    let from = if zero { LEFT + ZERO } else { LEFT };
    let across = |bytes: u64| match (&x, bytes) {
        (_, 0) => LEFT + ZERO / 2.0,
        (Some(x), bytes) => from + 10.0 + x.at(bytes as f64) * (RIGHT - from - 20.0),
        (None, _) => from,
    };
    let down = |value: f64| BOTTOM - y.at(value) * (BOTTOM - TOP);
    html! {
        svg.plot viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img" aria-labelledby={ (id) "-t " (id) "-d" } {
            title id={ (id) "-t" } { (title) }
            desc id={ (id) "-d" } { (description(series, metric)) }
            @for value in y.marks(9) {
                @let at = n(down(value));
                path.grid d={ "M" (LEFT) " " (at) "H" (RIGHT) } {}
                text x=(LEFT - 8.0) y=(at) dy="4" text-anchor="end" { (mark_label(value)) }
            }
            @if zero {
                text x=(n(across(0))) y=(BOTTOM + 18.0) text-anchor="middle" { "0" }
                path.axis d={ "M" (n(from - 7.0)) " " (BOTTOM + 5.0) "l4-10m3 10l4-10" } {}
            }
            @for value in x.iter().flat_map(|x| x.marks(16)) {
                @let at = n(across(value as u64));
                path.grid d={ "M" (at) " " (TOP) "V" (BOTTOM) } {}
                text x=(at) y=(BOTTOM + 18.0) text-anchor="middle" { (Bytes(value as u64)) }
            }
            path.axis d={ "M" (LEFT) " " (TOP) "V" (BOTTOM) "H" (RIGHT) } {}
            text.soft x=((LEFT + RIGHT) / 2.0) y=(HEIGHT - 8.0) text-anchor="middle" { "message size in bytes" }
            text.soft transform={ "translate(14 " ((TOP + BOTTOM) / 2.0) ")rotate(-90)" } text-anchor="middle" {
                (axis_label(metric))
            }
            @for (at, one) in series.iter().enumerate() {
                g class={ "series s" (at) } {
                    @let line: Vec<_> = one.points.chunk_by(|a, b| a.bytes == b.bytes).filter(|same| same[0].bytes > 0)
                        .map(|same| (across(same[0].bytes), down(middle(same)))).collect();
                    path.line d=(polyline(&line)) {}
                    @for point in &one.points {
                        @let x = across(point.bytes);
                        @if let Some([low, high]) = point.figure.ci95 {
                            path.ci d=(interval(x, down(low), down(high))) {}
                        }
                        path class=(if point.doubtful { "mark open" } else { "mark" })
                            transform={ "translate(" (n(x)) " " (n(down(point.figure.value))) ")" } d=(mark(at)) {
                            title { (one.name) ", " (Bytes(point.bytes)) " bytes: " (told(&point.figure, metric)) }
                        }
                    }
                }
            }
        }
    }
}

/// The legend, whose entries show and hide curves.
pub(crate) fn keys(series: &[Series]) -> Markup {
    html! {
        fieldset.keys {
            legend { "Curves shown" }
            @for (at, one) in series.iter().enumerate() {
                label {
                    input class={ "t" (at) } type="checkbox" checked autocomplete="off";
                    svg class={ "series s" (at) } viewBox="0 0 34 14" aria-hidden="true" {
                        path.line d="M1 7H33" {}
                        path.mark transform="translate(17 7)" d=(mark(at)) {}
                    }
                    span { (one.name) }
                }
            }
        }
    }
}

/// What a reader hears who does not see the curves.
fn description(series: &[Series], metric: Metric) -> String {
    let of = |one: &Series| {
        let (first, last) = (one.points.first()?, one.points.last()?);
        let at =
            |p: &Point| format!("{} {} at {} bytes", figure(p.figure.value), unit(metric), Bytes(p.bytes));
        Some(match first.bytes == last.bytes {
            true => format!("{}: {}", one.name, at(first)),
            false => format!("{}: from {} to {}", one.name, at(first), at(last)),
        })
    };
    let each: Vec<String> = series.iter().filter_map(of).collect();
    format!("Median {} by message size, both axes logarithmic. {}.", axis_label(metric), each.join("; "))
}
