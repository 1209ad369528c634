//! Chart of a case over time: its runs, the level between two changes, and each change.

use jiff::Timestamp;
use maud::{Markup, html};
use ombx_compare::history::{History, Series};
use ombx_draw::terminal::ValueAxis;
use ombx_estimate::number::{figure, tick_label};
use ombx_record::stats::median;

use crate::plot::{dots, n};

const WIDTH: f64 = 440.0;
const HEIGHT: f64 = 190.0;
const LEFT: f64 = 52.0;
const RIGHT: f64 = WIDTH - 14.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = HEIGHT - 28.0;
/// Maximum number of drawn runs. Of longer series, neighbours are joined.
const MOST_DOTS: usize = 400;
/// Maximum number of dates below the chart.
const MOST_DATES: i64 = 3;
/// Distance of a label from the line of its change.
const BESIDE: f64 = 4.0;
const DAY: i64 = 24 * 60 * 60;

/// Run at its place in time, or the median of neighbours.
struct Dot {
    at: i64,
    value: f64,
}

/// Values between two changes.
struct Level {
    from: i64,
    to: i64,
    value: f64,
}

/// Positions of times and values.
struct PlotArea {
    first: i64,
    last: i64,
    values: ValueAxis,
}

impl PlotArea {
    fn across(&self, at: i64) -> f64 {
        // A series of one instant is drawn in the middle.
        let part = if self.last > self.first {
            (at - self.first) as f64 / (self.last - self.first) as f64
        } else {
            0.5
        };
        LEFT + 8.0 + part * (RIGHT - LEFT - 16.0)
    }

    fn down(&self, value: f64) -> f64 {
        BOTTOM - self.values.position(value) * (BOTTOM - TOP)
    }

    /// Returns seconds and text of the dates on the axis: midnights, or both ends of a series of less than two days.
    fn dates(&self) -> Vec<(i64, String)> {
        if self.last - self.first < 2 * DAY {
            let mut ends = vec![self.first, self.last];
            ends.dedup();
            return ends.into_iter().map(|at| (at, text(at, "%m-%d %H:%M"))).collect();
        }
        let (first, last) = (self.first.div_euclid(DAY) + 1, self.last.div_euclid(DAY));
        let step = ((last - first) / MOST_DATES + 1).max(1);
        (first..=last)
            .step_by(step.unsigned_abs() as usize)
            .map(|day| (day * DAY, text(day * DAY, "%Y-%m-%d")))
            .collect()
    }
}

/// Draws the chart of a series. `id` must be unique on the page.
pub(crate) fn draw(id: &str, title: &str, history: &History, series: &Series) -> Markup {
    let (dots_of_runs, levels) = parts(history, series);
    let values = dots_of_runs.iter().map(|dot| dot.value);
    let (Some(values), Some(first), Some(last)) =
        (ValueAxis::covering(values), dots_of_runs.first(), dots_of_runs.last())
    else {
        return html! {};
    };
    let area = PlotArea { first: first.at, last: last.at, values };
    html! {
        svg.trend viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img" aria-labelledby={ (id) "-t" } {
            title id={ (id) "-t" } { (title) }
            (axes(&area, series.metric.unit()))
            g.series.s0 {
                path.launches d=(dots(dots_of_runs.iter().map(|dot| (area.across(dot.at), area.down(dot.value))))) {}
            }
            @for level in &levels {
                @let y = n(area.down(level.value));
                path.level d={ "M" (n(area.across(level.from) - 2.0)) " " (y) "H" (n(area.across(level.to) + 2.0)) } {
                    title { "median " (figure(level.value)) " " (series.metric.unit()) }
                }
            }
            (changes(&area, history, series))
        }
    }
}

/// Returns the dots, and the level of each segment.
fn parts(history: &History, series: &Series) -> (Vec<Dot>, Vec<Level>) {
    let at = |point: usize| seconds(history.started(series, point));
    let joined = series.points.len().div_ceil(MOST_DOTS);
    let starts = std::iter::once(0).chain(series.changes.iter().map(|change| change.at));
    let ends = series.changes.iter().map(|change| change.at).chain([series.points.len()]);
    let (mut dots, mut levels) = (Vec::new(), Vec::new());
    for (start, end) in starts.zip(ends).filter(|(start, end)| start < end) {
        let values: Vec<f64> = series.points[start..end].iter().map(|point| point.value).collect();
        levels.extend(median(&values).map(|value| Level { from: at(start), to: at(end - 1), value }));
        for (chunk, values) in values.chunks(joined).enumerate() {
            let middle = start + chunk * joined + values.len() / 2;
            dots.extend(median(values).map(|value| Dot { at: at(middle), value }));
        }
    }
    (dots, levels)
}

fn axes(area: &PlotArea, unit: &str) -> Markup {
    html! {
        @for value in area.values.ticks(5) {
            @let at = n(area.down(value));
            path.grid d={ "M" (LEFT) " " (at) "H" (RIGHT) } {}
            text x=(LEFT - 6.0) y=(at) dy="4" text-anchor="end" { (tick_label(value)) }
        }
        @for (at, label) in area.dates() {
            @let x = area.across(at);
            path.axis d={ "M" (n(x)) " " (BOTTOM) "v5" } {}
            text x=(n(x.clamp(LEFT + 20.0, RIGHT - 34.0))) y=(BOTTOM + 18.0) text-anchor="middle" { (label) }
        }
        path.axis d={ "M" (LEFT) " " (TOP) "V" (BOTTOM) "H" (RIGHT) } {}
        text.soft x=(LEFT - 6.0) y="11" text-anchor="end" { (unit.replace("us", "µs")) }
    }
}

/// Draws a line between the last run before each change and the first run after it.
fn changes(area: &PlotArea, history: &History, series: &Series) -> Markup {
    html! {
        @for change in &series.changes {
            @let class = if change.ratio > 1.0 { "slower" } else { "faster" };
            @let [before, since] = [change.at - 1, change.at].map(|at| area.across(seconds(history.started(series, at))));
            @let x = f64::midpoint(before, since);
            path class=(class) d={ "M" (n(x)) " " (TOP) "V" (BOTTOM) } {}
            @let is_left = x > f64::midpoint(LEFT, RIGHT);
            text class=(class) x=(n(if is_left { x - BESIDE } else { x + BESIDE })) y="14"
                text-anchor=(if is_left { "end" } else { "start" }) { (format!("{:.2} x", change.ratio)) }
        }
    }
}

/// Returns the seconds of a start since 1970; 0 if it is no date, which the readers of files exclude.
fn seconds(started: &str) -> i64 {
    started.parse::<Timestamp>().map_or(0, Timestamp::as_second)
}

fn text(seconds: i64, format: &str) -> String {
    Timestamp::from_second(seconds).map_or_else(|_| String::new(), |at| at.strftime(format).to_string())
}
