//! Text of figures in charts.

use maud::{Markup, html};
pub(crate) use ombx_plot::Quantity;
use ombx_results::number::Decimals;

use crate::plot::{canvas::Canvas, line_chart::Point, svg::n};

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
        Self { canvas, texts: names.map(|name| wrapped(&name)).collect() }
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

/// Breaks a name between its parts where a line would be too long.
fn wrapped(name: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in name.split(" · ") {
        match lines.last_mut() {
            Some(line) if line.chars().count() + part.chars().count() + 3 <= LONGEST_LINE => {
                *line += " · ";
                *line += part;
            }
            _ => lines.push(part.to_owned()),
        }
    }
    lines
}

/// Formats a figure with its unit, its interval, and the number of launches.
pub(crate) fn describe(point: &Point, quantity: Quantity) -> String {
    let ci95 = point.figure.ci95;
    let decimals = Decimals::of(point.figure.value, ci95);
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
