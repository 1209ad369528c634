//! Charts as SVG.

pub(crate) mod dot_plot;
pub(crate) mod heat_map;
pub(crate) mod line_chart;
pub(crate) mod steps;
pub(crate) mod trend;

use maud::{Markup, html};
use ombx_estimate::number::Decimals;
use ombx_show::wrapped_at;

use self::line_chart::Point;

pub(crate) use ombx_draw::{Path, Quantity, coordinate as n};

/// Size of a drawing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Canvas {
    /// For wide screens and paper.
    Wide,
    /// For phones.
    Narrow,
}

impl Canvas {
    /// Draws a chart in both sizes.
    pub(crate) fn both(draw: impl Fn(Canvas) -> Markup) -> Markup {
        html! { (draw(Canvas::Wide)) (draw(Canvas::Narrow)) }
    }

    /// Returns the width of the drawing.
    pub(crate) const fn width(self) -> f64 {
        self.pick(960.0, 380.0)
    }

    /// Returns the value for this size.
    pub(crate) const fn pick(self, wide: f64, narrow: f64) -> f64 {
        match self {
            Canvas::Wide => wide,
            Canvas::Narrow => narrow,
        }
    }

    /// Returns the class of the drawing. The style sheet shows one of both.
    pub(crate) const fn class(self) -> &'static str {
        match self {
            Canvas::Wide => "plot",
            Canvas::Narrow => "phone",
        }
    }

    /// Returns an identifier that is unique among both drawings.
    pub(crate) fn id(self, id: &str) -> String {
        match self {
            Canvas::Wide => id.to_owned(),
            Canvas::Narrow => format!("{id}-n"),
        }
    }

    pub(crate) const fn is_wide(self) -> bool {
        matches!(self, Canvas::Wide)
    }
}

/// Maximum width of a character of a label.
const CHARACTER: f64 = 7.4;
/// Most characters of a line of a label.
const LONGEST_LINE: usize = 52;
/// Height of a line of a label.
const LINE: f64 = 14.0;

/// Names of the lines of a chart: beside them, or above them on a phone.
pub(crate) struct Labels {
    canvas: Canvas,
    /// The lines of text of each.
    texts: Vec<Vec<String>>,
}

impl Labels {
    pub(crate) fn new(canvas: Canvas, names: impl Iterator<Item = String>) -> Self {
        Self { canvas, texts: names.map(|name| wrapped_at(" · ", &name, LONGEST_LINE)).collect() }
    }

    /// Returns the distance of the edge of the drawing from that of the plot.
    pub(crate) fn width(&self) -> f64 {
        let longest = self.texts.iter().flatten().map(|text| text.chars().count()).max().unwrap_or(0);
        self.canvas.pick(longest as f64 * CHARACTER + 16.0, 12.0)
    }

    /// Returns the height of a line of the chart with its label.
    pub(crate) fn height(&self) -> f64 {
        let most = self.texts.iter().map(Vec::len).max().unwrap_or(1) as f64;
        self.canvas.pick(10.0, 28.0) + LINE * most
    }

    /// Returns where a line of the chart is, from the top of the first one.
    pub(crate) fn middle(&self, at: usize) -> f64 {
        let height = self.height();
        height * at as f64 + self.canvas.pick(height / 2.0, height - 13.0)
    }

    /// Draws the label of a line of the chart at this height.
    pub(crate) fn draw(&self, at: usize, middle: f64) -> Markup {
        let (x, anchor) = (self.width() - 8.0, if self.canvas.is_wide() { "end" } else { "start" });
        let texts = &self.texts[at];
        let most = texts.len() as f64 - 1.0;
        let first = middle + self.canvas.pick(4.0 - most * LINE / 2.0, -12.0 - most * LINE);
        html! {
            @for (row, text) in texts.iter().enumerate() {
                text x=(n(x)) y=(n(first + row as f64 * LINE)) text-anchor=(anchor) { (text) }
            }
        }
    }
}

/// Formats a figure with its unit, its interval, and the number of launches.
pub(crate) fn describe(point: &Point, quantity: Quantity) -> String {
    let ci95 = point.figure.ci95;
    let decimals = Decimals::new(point.figure.value, ci95);
    let mut text = format!("{} {}", decimals.format(point.figure.value), quantity.unit());
    // Fewer than 6 launches have no interval of 95 %.
    let percent = point.coverage.map_or(95.0, |coverage| (coverage * 100.0).min(95.0));
    text += &match ci95 {
        Some([low, high]) => {
            let within = if point.coverage.is_some() { "run" } else { "launch" };
            format!(
                ", {percent:.0} % interval within this {within} {} to {}",
                decimals.format(low),
                decimals.format(high)
            )
        }
        None => ", no interval".into(),
    };
    if !point.launches.is_empty() {
        text += &format!(", {} launches", point.launches.len());
    }
    text
}

/// Shortens a label to this many characters.
pub(crate) fn shortened(text: &str, max: usize) -> String {
    if text.chars().count() <= max {
        return text.to_owned();
    }
    let kept: String = text.chars().take(max.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

/// Maximum number of series in one chart. There is one colour and one symbol for each.
pub(crate) const MAX_SERIES: usize = 8;

/// Returns the outline of the symbol of a series, centred at the origin. Shapes differ for readers who do not see colours.
pub(crate) fn symbol(series: usize) -> &'static str {
    [
        "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
        "M-3.6-3.6h7.2v7.2h-7.2z",
        "M0-4.8L4.6 3.4H-4.6z",
        "M0-5.2L5.2 0L0 5.2L-5.2 0z",
        "M0 4.8L4.6-3.4H-4.6z",
        "M-1.6-4.6h3.2v3h3v3.2h-3v3h-3.2v-3h-3v-3.2h3z",
        "M0-5L4.8-1.5L2.9 4.1H-2.9L-4.8-1.5z",
        "M-5-2.6h10v5.2h-10z",
    ][series % MAX_SERIES]
}

/// Returns the path of a vertical interval with caps.
pub(crate) fn interval(x: f64, low: f64, high: f64) -> String {
    format!("M{0} {2}h6m-3 0V{3}m-3 0h6M{1} {3}", n(x - 3.0), n(x + 3.0), n(low), n(high))
}

/// Returns the path of dots: segments of no length, which round ends of the line make visible.
pub(crate) fn dots(points: impl Iterator<Item = (f64, f64)>) -> String {
    points.map(|(x, y)| format!("M{} {}h0", n(x), n(y))).collect()
}
