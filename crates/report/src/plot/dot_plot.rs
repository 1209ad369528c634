//! Dot plot for figures of one size each, such as all synchronisations of an operation: one line per name.

use maud::{Markup, html};
use ombx_draw::terminal::{Histogram, LogAxis, Ticks};
use ombx_estimate::number::{Decimals, Units, figure, tick_label};
use ombx_links::verdict::{LinkSweep, LinkTimes};
use ombx_record::{
    result::Metric,
    unit::{Bytes, counted},
};

use crate::plot::{
    Canvas, Labels, Quantity, describe, dots,
    line_chart::{BESIDE, Curve, MAX_DOTS},
    n, symbol,
};

const TOP: f64 = 8.0;

/// Draws a line for each series, whose points differ in nothing that the plot names. `id` must be unique on the page.
pub(crate) fn draw(id: &str, title: &str, lines: &[Curve], quantity: Quantity) -> Markup {
    Canvas::both(|canvas| plot(canvas, &canvas.id(id), title, lines, quantity))
}

/// Draws one size. Names stand beside the lines, or above them on a phone.
fn plot(canvas: Canvas, id: &str, title: &str, lines: &[Curve], quantity: Quantity) -> Markup {
    let labels = Labels::new(canvas, lines.iter().map(|one| one.name.clone()));
    let (width, line) = (canvas.width(), labels.height());
    let right = width - canvas.pick(84.0, 70.0);
    let points = || lines.iter().flat_map(|one| &one.points);
    let with_launches = canvas.is_wide() && points().map(|p| p.launches.len()).sum::<usize>() <= MAX_DOTS;
    let launches = points().filter(|_| with_launches).flat_map(|p| p.launches.iter().copied());
    let values = points().flat_map(|p| p.values()).chain(launches);
    let Some(x) = LogAxis::covering(values, Ticks::Decimal) else {
        return html! {};
    };
    let left = labels.width();
    let bottom = TOP + line * lines.len() as f64;
    let across = |value: f64| left + x.position(value) * (right - left);
    html! {
        svg class=(canvas.class()) viewBox={ "0 0 " (width) " " (n(bottom + 44.0)) } role="img" aria-labelledby={ (id) "-t " (id) "-d" } {
            title id={ (id) "-t" } { (title) }
            desc id={ (id) "-d" } {
                "Median " (quantity.axis_title()) " on a logarithmic axis. "
                @for one in lines { @for p in &one.points { (one.name) ": " (describe(p, quantity)) ". " } }
            }
            @for value in x.ticks(if canvas.is_wide() { 7 } else { 4 }) {
                @let at = n(across(value));
                path.grid d={ "M" (at) " " (TOP) "V" (n(bottom)) } {}
                text x=(at) y=(n(bottom + 17.0)) text-anchor="middle" { (tick_label(value)) }
            }
            path.axis d={ "M" (n(left)) " " (TOP) "V" (n(bottom)) "H" (n(right)) } {}
            text.soft x=(n((left + right) / 2.0)) y=(n(bottom + 36.0)) text-anchor="middle" { (quantity.axis_title()) }
            @for (at, one) in lines.iter().enumerate() {
                @let middle = TOP + labels.middle(at);
                @let y = n(middle);
                (labels.draw(at, middle))
                @if let Some(p) = one.points.first() { path.grid d={ "M" (n(left)) " " (y) "H" (n(across(p.figure.value))) } {} }
                g.series.s0 {
                    @for p in &one.points {
                        @if with_launches && !p.launches.is_empty() {
                            path.launches d=(dots(p.launches.iter().map(|value| (across(*value), middle + BESIDE)))) {}
                        }
                        @if let Some([low, high]) = p.figure.ci95 {
                            path.ci d={ "M" (n(across(low))) " " (y) "m0-3v6m0-3H" (n(across(high))) "m0-3v6" } {}
                        }
                        path class=(if p.marked { "mark open" } else { "mark" })
                            transform={ "translate(" (n(across(p.figure.value))) " " (y) ")" } d=(symbol(0)) {
                            title { (one.name) ": " (describe(p, quantity)) }
                        }
                    }
                }
                @if let Some(p) = one.points.last() {
                    text x=(n(right + 12.0)) y=(y) dy="4" { (Decimals::new(p.figure.value, p.figure.ci95).format(p.figure.value)) }
                }
            }
        }
    }
}

const HEIGHT: f64 = 190.0;
const HISTOGRAM_TOP: f64 = 22.0;
const BOTTOM: f64 = HEIGHT - 40.0;
const GAP: f64 = 3.0;
/// Minimum distance of labels below the bars.
const LABEL: f64 = 60.0;

/// Draws the histogram. `id` must be unique on the page. Links of equal times have none.
pub(crate) fn draw_histogram(id: &str, sweep: &LinkSweep, times: &LinkTimes, units: Units) -> Markup {
    html! { div.wide { (Canvas::both(|canvas| bars(canvas, &canvas.id(id), sweep, times, units))) } }
}

fn bars(canvas: Canvas, id: &str, sweep: &LinkSweep, times: &LinkTimes, units: Units) -> Markup {
    let links = times.sweep.iter().map(|link| f64::from(link.ns));
    let Some(histogram) = Histogram::new(links).filter(|histogram| histogram.counts.len() > 1) else {
        return html! {};
    };
    let wide = canvas.width() / histogram.counts.len() as f64;
    let every = (LABEL / wide).ceil() as usize;
    let [unit, of_rates] = [Metric::Latency, Metric::Bandwidth].map(|metric| units.symbol(metric));
    let time = |ns: f64| figure(units.of_times().of_ns(ns));
    let describe = |[low, high]: [f64; 2], links: usize| {
        let rates = [high, low].map(|ns| sweep.mb_per_s(times.bytes, ns as f32));
        let rates = match rates {
            [Some(from), Some(to)] => {
                let [from, to] = [from, to].map(|rate| figure(units.of_rates().of_mb(rate)));
                format!(", {from} to {to} {of_rates}")
            }
            _ => String::new(),
        };
        format!("{} from {} to {} {unit}{rates}", counted(links, "link"), time(low), time(high))
    };
    html! {
            svg class=(canvas.class()) viewBox={ "0 0 " (canvas.width()) " " (HEIGHT) } role="img" aria-labelledby={ (id) "-t" } {
                title id={ (id) "-t" } { "Histogram of " (times.counted_links()) " at " (Bytes(times.bytes)) " bytes" }
                @for (at, (ends, links)) in histogram.ranges().enumerate() {
                    @let left = wide * at as f64;
                    @let high = (BOTTOM - HISTOGRAM_TOP) * links as f64 / histogram.most() as f64;
                    rect.count x=(n(left + GAP)) y=(n(BOTTOM - high)) width=(n(wide - 2.0 * GAP)) height=(n(high)) {
                        @if canvas.is_wide() { title { (describe(ends, links)) } }
                    }
                    text x=(n(left + wide / 2.0)) y=(n(BOTTOM - high - 5.0)) text-anchor="middle" { (links) }
                    @if at % every == 0 { text x=(n(left + GAP)) y=(n(BOTTOM + 16.0)) { (time(ends[0])) } }
                }
                path.axis d={ "M0 " (BOTTOM) "H" (canvas.width()) } {}
                text.soft x=(n(canvas.width() / 2.0)) y=(n(HEIGHT - 6.0)) text-anchor="middle" { "links by median time, from this number of " (unit) " on" }
            }
    }
}
