//! Dot plot for figures of one size each, such as all synchronisations of an operation: one line per name.

use maud::{Markup, html};
use ombx_results::{
    number::{Decimals, tick_label},
    plot::{LogAxis, Ticks},
};

use crate::plot::{
    Canvas, Labels, Quantity, describe, dots,
    line_chart::{BESIDE, MAX_DOTS, Point},
    n, symbol,
};

const TOP: f64 = 8.0;

/// One line of the plot.
pub(crate) struct Dot {
    pub(crate) name: String,
    /// Its figure; several if rows differ in nothing that the plot names.
    pub(crate) points: Vec<Point>,
}

/// Draws the plot. `id` must be unique on the page.
pub(crate) fn draw(id: &str, title: &str, lines: &[Dot], quantity: Quantity) -> Markup {
    Canvas::both(|canvas| plot(canvas, &canvas.id(id), title, lines, quantity))
}

/// Draws one size. Names stand beside the lines, or above them on a phone.
fn plot(canvas: Canvas, id: &str, title: &str, lines: &[Dot], quantity: Quantity) -> Markup {
    let labels = Labels::new(canvas, lines.iter().map(|dot| dot.name.clone()));
    let (width, line) = (canvas.width(), labels.height());
    let right = width - canvas.pick(84.0, 70.0);
    let points = || lines.iter().flat_map(|dot| &dot.points);
    let with_launches = canvas.is_wide() && points().map(|p| p.launches.len()).sum::<usize>() <= MAX_DOTS;
    let Some(x) = LogAxis::covering(points().flat_map(|p| p.values(with_launches)), Ticks::Decimal) else {
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
                @for dot in lines { @for p in &dot.points { (dot.name) ": " (describe(p, quantity)) ". " } }
            }
            @for value in x.ticks(if canvas.is_wide() { 7 } else { 4 }) {
                @let at = n(across(value));
                path.grid d={ "M" (at) " " (TOP) "V" (n(bottom)) } {}
                text x=(at) y=(n(bottom + 17.0)) text-anchor="middle" { (tick_label(value)) }
            }
            path.axis d={ "M" (n(left)) " " (TOP) "V" (n(bottom)) "H" (n(right)) } {}
            text.soft x=(n((left + right) / 2.0)) y=(n(bottom + 36.0)) text-anchor="middle" { (quantity.axis_title()) }
            @for (at, dot) in lines.iter().enumerate() {
                @let middle = TOP + labels.middle(at);
                @let y = n(middle);
                (labels.draw(at, middle))
                @if let Some(p) = dot.points.first() { path.grid d={ "M" (n(left)) " " (y) "H" (n(across(p.figure.value))) } {} }
                g.series.s0 {
                    @for p in &dot.points {
                        @if with_launches && !p.launches.is_empty() {
                            path.launches d=(dots(p.launches.iter().map(|value| (across(*value), middle + BESIDE)))) {}
                        }
                        @if let Some([low, high]) = p.figure.ci95 {
                            path.ci d={ "M" (n(across(low))) " " (y) "m0-3v6m0-3H" (n(across(high))) "m0-3v6" } {}
                        }
                        path class=(if p.marked { "mark open" } else { "mark" })
                            transform={ "translate(" (n(across(p.figure.value))) " " (y) ")" } d=(symbol(0)) {
                            title { (dot.name) ": " (describe(p, quantity)) }
                        }
                    }
                }
                @if let Some(p) = dot.points.last() {
                    text x=(n(right + 12.0)) y=(y) dy="4" { (Decimals::of(p.figure.value, p.figure.ci95).format(p.figure.value)) }
                }
            }
        }
    }
}
