//! Histogram of the links of one message size: a bar for each range of times.

use maud::{Markup, html};
use ombx_core::unit::Bytes;
use ombx_results::{
    number::figure,
    plot::Histogram,
    verdict::{LinkSweep, LinkTimes},
};

use crate::{
    page::count,
    plot::{Canvas, n},
};

const HEIGHT: f64 = 190.0;
const TOP: f64 = 22.0;
const BOTTOM: f64 = HEIGHT - 40.0;
const GAP: f64 = 3.0;
/// Minimum distance of labels below the bars.
const LABEL: f64 = 60.0;

/// Draws the histogram. `id` must be unique on the page. Links of equal times have none.
pub(crate) fn draw(id: &str, sweep: &LinkSweep, times: &LinkTimes) -> Markup {
    html! { div.wide { (Canvas::both(|canvas| bars(canvas, &canvas.id(id), sweep, times))) } }
}

fn bars(canvas: Canvas, id: &str, sweep: &LinkSweep, times: &LinkTimes) -> Markup {
    let links = times.sweep.iter().map(|link| f64::from(link.ns));
    let Some(histogram) = Histogram::of(links).filter(|histogram| histogram.counts.len() > 1) else {
        return html! {};
    };
    let wide = canvas.width() / histogram.counts.len() as f64;
    let every = (LABEL / wide).ceil() as usize;
    let us = |ns: f64| figure(ns / 1e3);
    let describe = |[low, high]: [f64; 2], links: usize| {
        let rates = [high, low].map(|ns| sweep.mb_per_s(times.bytes, ns as f32));
        let rates = match rates {
            [Some(from), Some(to)] => format!(", {} to {} MB/s", figure(from), figure(to)),
            _ => String::new(),
        };
        format!("{} from {} to {} µs{rates}", count(links, "link"), us(low), us(high))
    };
    html! {
            svg class=(canvas.class()) viewBox={ "0 0 " (canvas.width()) " " (HEIGHT) } role="img" aria-labelledby={ (id) "-t" } {
                title id={ (id) "-t" } { "Histogram of " (count(times.sweep.len(), "link")) " at " (Bytes(times.bytes)) " bytes" }
                @for (at, (ends, links)) in histogram.ranges().enumerate() {
                    @let left = wide * at as f64;
                    @let high = (BOTTOM - TOP) * links as f64 / histogram.most() as f64;
                    rect.h4 x=(n(left + GAP)) y=(n(BOTTOM - high)) width=(n(wide - 2.0 * GAP)) height=(n(high)) {
                        @if canvas.is_wide() { title { (describe(ends, links)) } }
                    }
                    text x=(n(left + wide / 2.0)) y=(n(BOTTOM - high - 5.0)) text-anchor="middle" { (links) }
                    @if at % every == 0 { text x=(n(left + GAP)) y=(n(BOTTOM + 16.0)) { (us(ends[0])) } }
                }
                path.axis d={ "M0 " (BOTTOM) "H" (canvas.width()) } {}
                text.soft x=(n(canvas.width() / 2.0)) y=(n(HEIGHT - 6.0)) text-anchor="middle" { "links by median time, from this number of µs on" }
            }
    }
}
