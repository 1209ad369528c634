//! Figures of one size each, such as all synchronisations of an operation at 8 bytes: a dot and its interval on a line with its name.

use maud::{Markup, html};
use ombx_core::benchmark::work::Metric;
use ombx_results::{
    log_axis::{LogAxis, Round},
    render::figure,
};

use crate::{
    chart::{Point, axis_label, mark_label, middle, reach, told},
    svg::{mark, n, shortened},
};

const WIDTH: f64 = 960.0;
const LINE: f64 = 24.0;
const TOP: f64 = 8.0;
/// Width of a character of a label, at the most.
const CHARACTER: f64 = 7.4;
const LONGEST_NAME: usize = 52;
const RIGHT: f64 = WIDTH - 84.0;

/// A line of the drawing.
pub(crate) struct Dot {
    pub(crate) name: String,
    /// Of one launch or several.
    pub(crate) launches: Vec<Point>,
}

/// The drawing; `id` is unlike that of any other on the page.
pub(crate) fn draw(id: &str, title: &str, dots: &[Dot], metric: Metric) -> Markup {
    let Some(x) = LogAxis::holding(
        dots.iter().flat_map(|dot| &dot.launches).flat_map(|p| reach(&p.figure)),
        Round::Decimal,
    ) else {
        return html! {};
    };
    let longest = dots.iter().map(|dot| dot.name.chars().count()).max().unwrap_or(0).min(LONGEST_NAME);
    let left = longest as f64 * CHARACTER + 16.0;
    let bottom = TOP + LINE * dots.len() as f64;
    let across = |value: f64| left + x.at(value) * (RIGHT - left);
    html! {
        svg.plot viewBox={ "0 0 " (WIDTH) " " (n(bottom + 44.0)) } role="img" aria-labelledby={ (id) "-t " (id) "-d" } {
            title id={ (id) "-t" } { (title) }
            desc id={ (id) "-d" } {
                "Median " (axis_label(metric)) " on a logarithmic axis. "
                @for dot in dots { @for p in &dot.launches { (dot.name) ": " (told(&p.figure, metric)) ". " } }
            }
            @for value in x.marks(7) {
                @let at = n(across(value));
                path.grid d={ "M" (at) " " (TOP) "V" (n(bottom)) } {}
                text x=(at) y=(n(bottom + 17.0)) text-anchor="middle" { (mark_label(value)) }
            }
            path.axis d={ "M" (n(left)) " " (TOP) "V" (n(bottom)) "H" (n(RIGHT)) } {}
            text.soft x=(n((left + RIGHT) / 2.0)) y=(n(bottom + 36.0)) text-anchor="middle" { (axis_label(metric)) }
            @for (at, dot) in dots.iter().enumerate() {
                @let y = n(TOP + LINE * (at as f64 + 0.5));
                @let median = middle(&dot.launches);
                text x=(n(left - 8.0)) y=(y) dy="4" text-anchor="end" { (shortened(&dot.name, LONGEST_NAME)) }
                path.grid d={ "M" (n(left)) " " (y) "H" (n(across(median))) } {}
                g.series.s0 {
                    @for p in &dot.launches {
                        @if let Some([low, high]) = p.figure.ci95 {
                            path.ci d={ "M" (n(across(low))) " " (y) "m0-3v6m0-3H" (n(across(high))) "m0-3v6" } {}
                        }
                        path class=(if p.doubtful { "mark open" } else { "mark" })
                            transform={ "translate(" (n(across(p.figure.value))) " " (y) ")" } d=(mark(0)) {
                            title { (dot.name) ": " (told(&p.figure, metric)) }
                        }
                    }
                }
                text x=(n(RIGHT + 12.0)) y=(y) dy="4" { (figure(median)) }
            }
        }
    }
}
