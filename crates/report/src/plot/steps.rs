//! Steps of a sweep over links: least, mean and largest figure of the links that were measured at the same time.

use maud::{Markup, html};
use ombx_draw::terminal::{LogAxis, Ticks};
use ombx_estimate::number::{Units, figure, tick_label};
use ombx_links::verdict::{Step, join_steps};
use ombx_record::{
    result::Metric,
    unit::{Bytes, counted},
};

use crate::plot::{Canvas, Path, n};

const HEIGHT: f64 = 260.0;
const LEFT: f64 = 66.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = HEIGHT - 40.0;
/// Maximum number of points of a curve, and of lines of the table. More steps are joined.
const MOST_POINTS: usize = 240;
const MOST_LINES: usize = 64;
const NAMES: [&str; 3] = ["minimum", "mean", "maximum"];

/// Draws the steps of one message size. `id` must be unique on the page.
pub(crate) fn draw(id: &str, bytes: u64, steps: &[Step], units: Units) -> Markup {
    if steps.len() < 2 {
        return html! {};
    }
    html! {
        div.wide { (Canvas::both(|canvas| chart(canvas, &canvas.id(id), bytes, steps, units))) }
        (legend(steps))
        (table(steps, units))
    }
}

/// Returns the least, the mean and the largest time.
fn times(step: &Step, units: Units) -> [f64; 3] {
    [step.range_ns[0], step.mean_ns(), step.range_ns[1]].map(|ns| units.of_times().of_ns(ns))
}

/// Returns the least, the mean and the largest figure: a bandwidth, or a time of steps without bandwidths.
fn figures(step: &Step, units: Units) -> [f64; 3] {
    match (step.range_mb_per_s, step.mean_mb_per_s()) {
        (Some([low, high]), Some(mean)) => [low, mean, high].map(|rate| units.of_rates().of_mb(rate)),
        _ => times(step, units),
    }
}

fn chart(canvas: Canvas, id: &str, bytes: u64, steps: &[Step], units: Units) -> Markup {
    let right = canvas.width() - 18.0;
    let points = join_steps(steps, MOST_POINTS);
    let Some(y) = LogAxis::covering(points.iter().flat_map(|(_, step)| figures(step, units)), Ticks::Decimal)
    else {
        return html! {};
    };
    let have_rates = points.iter().all(|(_, step)| step.range_mb_per_s.is_some());
    let unit = units.symbol(if have_rates { Metric::Bandwidth } else { Metric::Latency });
    let across = |step: usize| LEFT + (right - LEFT) * (step - 1) as f64 / (steps.len() - 1) as f64;
    let down = |value: f64| BOTTOM - y.position(value) * (BOTTOM - TOP);
    html! {
            svg class=(canvas.class()) viewBox={ "0 0 " (canvas.width()) " " (HEIGHT) } role="img" aria-labelledby={ (id) "-t" } {
                title id={ (id) "-t" } {
                    "Minimum, mean and maximum " (unit) " of the links of each step at " (Bytes(bytes)) " bytes"
                }
                @for value in y.ticks(6) {
                    @let at = n(down(value));
                    path.grid d={ "M" (LEFT) " " (at) "H" (right) } {}
                    text x=(LEFT - 8.0) y=(at) dy="4" text-anchor="end" { (tick_label(value)) }
                }
                path.axis d={ "M" (LEFT) " " (TOP) "V" (BOTTOM) "H" (right) } {}
                text x=(n(LEFT)) y=(n(BOTTOM + 16.0)) text-anchor="middle" { "1" }
                text x=(n(right)) y=(n(BOTTOM + 16.0)) text-anchor="middle" { (steps.len()) }
                text.soft x=((LEFT + right) / 2.0) y=(HEIGHT - 8.0) text-anchor="middle" { "step" }
                text.soft transform={ "translate(14 " ((TOP + BOTTOM) / 2.0) ")rotate(-90)" } text-anchor="middle" { (unit) }
                @for (at, name) in NAMES.into_iter().enumerate() {
                    @let line: Vec<_> = points.iter().map(|(first, step)| (across(*first), down(figures(step, units)[at]))).collect();
                    g class={ "series s" (at) } { path.line d=(Path(&line)) { title { (name) } } }
                }
            }
    }
}

fn legend(steps: &[Step]) -> Markup {
    html! {
        ul.legend aria-label="Curves" {
            @for (at, name) in NAMES.into_iter().enumerate() {
                li { svg class={ "series s" (at) } aria-hidden="true" viewBox="0 0 14 14" { path.line d="M0 7H14" {} } (name) }
            }
            li { (counted(steps.len(), "step")) ": the links of a step were measured at the same time" }
        }
    }
}

fn table(steps: &[Step], units: Units) -> Markup {
    html! {
        details {
            summary { "Steps as a table" }
            div.wide role="group" aria-label="Steps" {
                table {
                    caption { "Links that were measured at the same time" }
                    thead { tr {
                        th scope="col" { "step" } th scope="col" { "links" }
                        @for metric in [Metric::Latency, Metric::Bandwidth] { @for name in NAMES { th scope="col" { (name) " " (units.symbol(metric)) } } }
                    } }
                    tbody {
                        @for (first, step) in join_steps(steps, MOST_LINES) {
                            tr {
                                td { (first) } td { (step.links) }
                                @for time in times(&step, units) { td { (figure(time)) } }
                                @if step.range_mb_per_s.is_some() {
                                    @for rate in figures(&step, units) { td { (figure(rate)) } }
                                } @else {
                                    td {} td {} td {}
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
