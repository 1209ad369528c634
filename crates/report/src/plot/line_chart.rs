//! Line chart over message size: logarithmic axes, 95 % intervals, one symbol and one colour per series.

use maud::{Markup, html};
use ombx_draw::{Axis, Scale, Unit, terminal::extent};
use ombx_estimate::number::figure;
use ombx_record::{
    result::{Headline, Measurement, OverLaunches},
    unit::Bytes,
};

use crate::plot::{Canvas, Path, Quantity, describe, dots, interval, n, symbol};

const TOP: f64 = 14.0;
/// Maximum number of launches of all points together that are drawn as dots.
pub(crate) const MAX_DOTS: usize = 500;
/// Distance of these dots from the interval.
pub(crate) const BESIDE: f64 = 7.0;
/// Distance from messages of 0 bytes to the break of the axis.
const BREAK: f64 = 16.0;

/// One curve.
pub(crate) struct Curve {
    pub(crate) name: String,
    /// Points in ascending order of size.
    pub(crate) points: Vec<Point>,
}

/// Figure of one row.
#[derive(Clone)]
pub(crate) struct Point {
    pub(crate) bytes: u64,
    pub(crate) figure: Headline,
    /// Figure of each launch; empty for the row of a single launch.
    pub(crate) launches: Vec<f64>,
    /// Coverage of the interval, if it is over launches.
    pub(crate) coverage: Option<f64>,
    /// Whether the row has a mark.
    pub(crate) marked: bool,
}

impl Point {
    /// Returns the figure of a row; `None` if it has none.
    pub(crate) fn from_row(row: &Measurement, quantity: Quantity) -> Option<Point> {
        let median_ns = row.summary.as_ref()?.median;
        let figure = quantity.headline(row)?;
        let at = |ns: &f64| match quantity {
            Quantity::MessageRate | Quantity::BusBandwidth(_) => Some(figure.value * median_ns / ns),
            Quantity::Latency(_) | Quantity::Bandwidth(_) => {
                row.in_unit(*ns).map(|value| quantity.of_value(value))
            }
        };
        let over = row.over_launches();
        let medians = over.map_or(&[][..], |over| &over.medians_ns);
        Some(Point {
            bytes: row.bytes.unwrap_or(0),
            figure,
            launches: medians.iter().filter_map(at).filter(|value| value.is_finite()).collect(),
            coverage: over.map(OverLaunches::coverage),
            marked: row.doubts().next().is_some(),
        })
    }

    /// Returns the values of the figure that an axis must cover.
    pub(crate) fn values(&self) -> impl Iterator<Item = f64> {
        extent(&self.figure).into_iter()
    }
}

/// Draws the chart. `id` must be unique on the page.
pub(crate) fn draw(id: &str, title: &str, curves: &[Curve], quantity: Quantity) -> Markup {
    Canvas::both(|canvas| chart(canvas, &canvas.id(id), title, curves, quantity))
}

fn chart(canvas: Canvas, id: &str, title: &str, curves: &[Curve], quantity: Quantity) -> Markup {
    let (width, height) = (canvas.width(), canvas.pick(430.0, 330.0));
    let (left, right, bottom) = (canvas.pick(66.0, 58.0), width - canvas.pick(18.0, 14.0), height - 48.0);
    let points = || curves.iter().flat_map(|s| &s.points);
    let with_launches = canvas.is_wide() && points().map(|p| p.launches.len()).sum::<usize>() <= MAX_DOTS;
    let x = Axis::points(points().map(|p| p.bytes as f64), Unit::Bytes, Scale::Log);
    let launches = points().filter(|_| with_launches).flat_map(|p| p.launches.iter().copied());
    let y = Axis::values(points().flat_map(Point::values).chain(launches), Scale::Log);
    let (Some(x), Some(y)) = (x, y) else { return html! {} };
    let across = |bytes: f64| left + x.position(bytes) * (right - left);
    let down = |value: f64| bottom - y.position(value) * (bottom - TOP);
    html! {
        svg class=(canvas.class()) viewBox={ "0 0 " (width) " " (height) } role="img" aria-labelledby={ (id) "-t " (id) "-d" } {
            title id={ (id) "-t" } { (title) }
            desc id={ (id) "-d" } { (description(curves, quantity)) }
            @for value in y.ticks(9) {
                @let at = n(down(value));
                path.grid d={ "M" (left) " " (at) "H" (right) } {}
                text x=(left - 8.0) y=(at) dy="4" text-anchor="end" { (y.label(value)) }
            }
            @for bytes in x.ticks(if canvas.is_wide() { 16 } else { 8 }) {
                @let at = n(across(bytes));
                path.grid d={ "M" (at) " " (TOP) "V" (bottom) } {}
                text x=(at) y=(bottom + 18.0) text-anchor="middle" { (x.label(bytes)) }
            }
            @if points().any(|p| p.bytes == 0) {
                path.axis d={ "M" (n(across(0.0) + BREAK)) " " (bottom + 5.0) "l4-10m3 10l4-10" } {}
            }
            path.axis d={ "M" (left) " " (TOP) "V" (bottom) "H" (right) } {}
            text.soft x=((left + right) / 2.0) y=(height - 8.0) text-anchor="middle" { "message size in bytes" }
            text.soft transform={ "translate(14 " ((TOP + bottom) / 2.0) ")rotate(-90)" } text-anchor="middle" {
                (quantity.axis_title())
            }
            @for (at, one) in curves.iter().enumerate() {
                g class={ "series s" (at) } {
                    @let line: Vec<_> = one.points.iter().filter(|point| point.bytes > 0)
                        .map(|point| (across(point.bytes as f64), down(point.figure.value))).collect();
                    path.line d=(Path(&line)) {}
                    @for point in &one.points {
                        @let x = across(point.bytes as f64);
                        @if with_launches && !point.launches.is_empty() {
                            path.launches d=(dots(point.launches.iter().map(|value| (x + BESIDE, down(*value))))) {}
                        }
                        @if let Some([low, high]) = point.figure.ci95 {
                            path.ci d=(interval(x, down(low), down(high))) {}
                        }
                        path class=(if point.marked { "mark open" } else { "mark" })
                            transform={ "translate(" (n(x)) " " (n(down(point.figure.value))) ")" } d=(symbol(at)) {
                            // Phones have no pointer that could rest on a symbol.
                            @if canvas.is_wide() {
                                title { (one.name) ", " (Bytes(point.bytes)) " bytes: " (describe(point, quantity)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Draws the legend. Its check boxes show and hide curves.
pub(crate) fn legend(curves: &[Curve]) -> Markup {
    html! {
        fieldset.keys {
            legend { "Curves shown" }
            @for (at, one) in curves.iter().enumerate() {
                label {
                    input class={ "t" (at) } type="checkbox" checked autocomplete="off";
                    svg class={ "series s" (at) } viewBox="0 0 34 14" aria-hidden="true" {
                        path.line d="M1 7H33" {}
                        path.mark transform="translate(17 7)" d=(symbol(at)) {}
                    }
                    span { (one.name) }
                }
            }
        }
    }
}

/// Describes the curves for screen readers.
fn description(curves: &[Curve], quantity: Quantity) -> String {
    let each: Vec<String> = curves.iter().filter_map(|one| ends_in_words(one, quantity)).collect();
    format!("Median {} by message size, both axes logarithmic. {}.", quantity.axis_title(), each.join("; "))
}

/// Describes the first and the last point of a curve; `None` if it has no points.
fn ends_in_words(one: &Curve, quantity: Quantity) -> Option<String> {
    let (first, last) = (one.points.first()?, one.points.last()?);
    let at =
        |p: &Point| format!("{} {} at {} bytes", figure(p.figure.value), quantity.unit(), Bytes(p.bytes));
    if first.bytes == last.bytes {
        return Some(format!("{}: {}", one.name, at(first)));
    }
    Some(format!("{}: from {} to {}", one.name, at(first), at(last)))
}
