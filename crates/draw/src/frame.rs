//! What all figures have: their size, title, legend and axes.

use ombx_estimate::text::plain;

use crate::{
    axis::Axis,
    drawing::{Anchor, Color, Drawing, Point, Shape, TEXT},
    options::{Options, Width},
    style::{self, Fill, GRID, INK, PAPER},
};

/// Free space around the figure.
const MARGIN: f64 = 30.0;
/// Space between the legend and the axes: half of a label.
const BELOW_LEGEND: f64 = 30.0;
/// Length of tick marks. Labels have twice this distance from the axis.
const TICK: f64 = 25.0;
/// Height of the labels and the title of the horizontal axis.
const BELOW: f64 = 270.0;
/// Width of the axes, and of the lines of the grid.
const AXIS: f64 = 6.0;
const GRID_LINE: f64 = 4.0;

/// Height of a line of the legend, and of the title.
const LINE: f64 = 120.0;
/// Width of the sample of a series, and of the space around it.
const SAMPLE: f64 = 190.0;
const GAP: f64 = 40.0;
const BETWEEN: f64 = 110.0;
/// Width of a box or symbol in the legend.
const BOX: f64 = 70.0;

impl Width {
    /// Returns the width in tenths of a point.
    fn units(self) -> f64 {
        match self {
            Width::OneColumn => 2409.0,
            Width::TwoColumns => 5046.0,
        }
    }

    /// Returns the usual height of the area of the axes with their labels.
    fn height(self) -> f64 {
        match self {
            Width::OneColumn => 1520.0,
            Width::TwoColumns => 2150.0,
        }
    }

    /// Returns the largest number of ticks: horizontal, vertical.
    fn ticks(self) -> (usize, usize) {
        match self {
            Width::OneColumn => (8, 7),
            Width::TwoColumns => (16, 9),
        }
    }
}

/// One entry of the legend.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    pub(crate) text: String,
    pub(crate) sample: Sample,
}

/// What stands before the text of an entry.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Sample {
    /// Line and symbol of a series.
    LineAndSymbol(usize),
    /// Line of a series.
    Line(usize),
    /// Line of a series over its faint area.
    Area(usize),
    /// Thin solid line of a series over its faint area.
    Band(usize),
    /// Symbol of a series.
    Symbol(usize),
    /// A filled box.
    Shade(Color),
    /// Nothing: the text explains the entries after it.
    None,
}

impl Key {
    fn width(&self) -> f64 {
        self.sample_width() + style::width(&self.text).ceil()
    }

    fn sample_width(&self) -> f64 {
        match self.sample {
            Sample::None => 0.0,
            Sample::Shade(_) | Sample::Symbol(_) => BOX + GAP,
            Sample::LineAndSymbol(_) | Sample::Line(_) | Sample::Area(_) | Sample::Band(_) => SAMPLE + GAP,
        }
    }

    /// Draws the sample, whose left end is in the middle of the line.
    fn sample(&self, (x, y): Point) -> Vec<Shape> {
        let across = vec![(x, y), (x + SAMPLE, y)];
        let area = |series| {
            let (right, up, down) = (x + SAMPLE, y - 30.0, y + 30.0);
            style::faint(vec![(x, up), (right, up), (right, down), (x, down)], series)
        };
        match self.sample {
            Sample::LineAndSymbol(series) => {
                let mut shapes = vec![style::line(across, series)];
                shapes.extend(style::symbol((x + SAMPLE / 2.0, y), series, Fill::Full));
                shapes
            }
            Sample::Line(series) => vec![style::line(across, series)],
            Sample::Area(series) => vec![area(series), style::line(across, series)],
            Sample::Band(series) => vec![area(series), style::thin_line(across, style::color(series))],
            Sample::Symbol(series) => style::symbol((x + BOX / 2.0, y), series, Fill::Full).into(),
            Sample::Shade(shade) => {
                let [(left, top), (right, bottom)] = [(x, y - 35.0), (x + BOX, y + 35.0)];
                let outline = vec![(left, top), (right, top), (right, bottom), (left, bottom), (left, top)];
                vec![
                    style::rectangle([(left, top), (right, bottom)], shade),
                    style::stroke(outline, INK, 3.0),
                ]
            }
            Sample::None => Vec::new(),
        }
    }
}

/// Returns an entry for each series that has a name.
pub(crate) fn keys<'a>(names: impl IntoIterator<Item = &'a String>, sample: fn(usize) -> Sample) -> Vec<Key> {
    let named = names.into_iter().enumerate().filter(|(_, name)| !name.is_empty());
    named.map(|(at, name)| Key { text: plain(name), sample: sample(at) }).collect()
}

/// Divides entries into lines that are not wider than this.
fn lines(keys: &[Key], width: f64) -> Vec<Vec<&Key>> {
    let mut lines: Vec<Vec<&Key>> = Vec::new();
    let mut used = 0.0;
    for key in keys {
        match lines.last_mut().filter(|_| used + key.width() <= width) {
            Some(line) => line.push(key),
            None => {
                lines.push(vec![key]);
                used = 0.0;
            }
        }
        used += key.width() + BETWEEN;
    }
    lines
}

/// A figure without what is drawn between its axes.
pub(crate) struct Frame {
    /// Axes: horizontal, vertical.
    pub(crate) axes: (Axis, Axis),
    /// Their titles.
    pub(crate) titles: (String, String),
    pub(crate) keys: Vec<Key>,
    /// Whether the area between the axes is a square.
    pub(crate) square: bool,
}

/// The area between the axes. It draws in values of the axes.
pub(crate) struct Plane<'a> {
    axes: &'a (Axis, Axis),
    /// Upper left and lower right corner.
    corners: [Point; 2],
    shapes: Vec<Shape>,
}

impl Frame {
    /// Draws the figure. `inside` draws what is between the axes.
    pub(crate) fn draw(self, options: &Options<'_>, inside: impl FnOnce(&mut Plane<'_>)) -> Drawing {
        let (x, y) = &self.axes;
        let width = options.width.units();
        let (x_ticks, y_ticks) = options.width.ticks();
        let lines = lines(&self.keys, width - 2.0 * MARGIN);
        let title = if options.title.is_some() { LINE } else { 0.0 };
        let above = MARGIN + title + lines.len() as f64 * LINE + BELOW_LEGEND;
        let widest = |axis: &Axis, max| {
            let labels = axis.ticks(max).into_iter().map(|value| style::width(&axis.label(value)));
            labels.fold(0.0, f64::max).ceil()
        };
        let left = MARGIN + widest(y, y_ticks) + 2.0 * TICK + TEXT * 1.5;
        // The label of the last tick is centred below it.
        let label = widest(x, x_ticks);
        let right = width - MARGIN - label / 2.0 - 10.0;
        // Labels beside each other must not touch.
        let most = ((right - left) / (label + TEXT / 2.0)).max(2.0);
        let ticks = (x_ticks.min(most as usize), y_ticks);
        let body = if self.square { right - left + BELOW } else { options.width.height() };
        let height = above + body + 2.0 * MARGIN;
        let mut shapes = vec![style::rectangle([(0.0, 0.0), (width, height)], PAPER)];
        if let Some(title) = options.title {
            shapes.push(style::text(plain(title), (width / 2.0, MARGIN + LINE / 2.0), Anchor::Middle));
        }
        for (at, line) in lines.iter().enumerate() {
            let (mut x, y) = (MARGIN, MARGIN + title + LINE * (at as f64 + 0.5));
            for key in line {
                shapes.extend(key.sample((x, y)));
                shapes.push(style::text(key.text.clone(), (x + key.sample_width(), y), Anchor::Start));
                x += key.width() + BETWEEN;
            }
        }
        let corners = [(left, above + MARGIN), (right, height - MARGIN - BELOW)];
        let mut plane = Plane { axes: &self.axes, corners, shapes };
        plane.mesh(&self.titles, ticks);
        inside(&mut plane);
        Drawing::new(plane.shapes, (width, height))
    }
}

impl Plane<'_> {
    /// Returns the place of two values.
    fn place(&self, (x, y): (f64, f64)) -> Point {
        let [(left, top), (right, bottom)] = self.corners;
        let (across, up) = (self.axes.0.position(x), self.axes.1.position(y));
        (left + across * (right - left), bottom - up * (bottom - top))
    }

    fn places(&self, values: Vec<(f64, f64)>) -> Vec<Point> {
        values.into_iter().map(|pair| self.place(pair)).collect()
    }

    /// Draws grid, axes, ticks, labels and titles.
    fn mesh(&mut self, titles: &(String, String), (x_ticks, y_ticks): (usize, usize)) {
        let [(left, top), (right, bottom)] = self.corners;
        let axes = self.axes;
        let x_of = |value: &f64| left + axes.0.position(*value) * (right - left);
        let y_of = |value: &f64| bottom - axes.1.position(*value) * (bottom - top);
        let (across, down) = (axes.0.ticks(x_ticks), axes.1.ticks(y_ticks));
        for x in across.iter().map(x_of) {
            self.shapes.push(style::stroke(vec![(x, top), (x, bottom)], GRID, GRID_LINE));
        }
        for y in down.iter().map(y_of) {
            self.shapes.push(style::stroke(vec![(left, y), (right, y)], GRID, GRID_LINE));
        }
        for x in axes.0.marks().iter().map(x_of) {
            self.shapes.push(style::stroke(vec![(x, bottom), (x, bottom + TICK / 2.0)], INK, AXIS));
        }
        for value in across {
            let x = x_of(&value);
            self.shapes.push(style::stroke(vec![(x, bottom), (x, bottom + TICK)], INK, AXIS));
            let at = (x, bottom + 2.0 * TICK + TEXT / 2.0);
            self.shapes.push(style::text(axes.0.label(value), at, Anchor::Middle));
        }
        for value in down {
            let y = y_of(&value);
            self.shapes.push(style::stroke(vec![(left - TICK, y), (left, y)], INK, AXIS));
            self.shapes.push(style::text(axes.1.label(value), (left - 2.0 * TICK, y), Anchor::End));
        }
        self.shapes.push(style::stroke(vec![(left, top), (left, bottom), (right, bottom)], INK, AXIS));
        let below = (f64::midpoint(left, right), bottom + BELOW - TEXT / 2.0);
        self.shapes.push(style::text(titles.0.clone(), below, Anchor::Middle));
        self.shapes.push(Shape::Text {
            text: titles.1.clone(),
            at: (MARGIN + TEXT / 2.0, f64::midpoint(top, bottom)),
            anchor: Anchor::Middle,
            is_upright: true,
        });
    }

    /// Draws a line in the colour and with the dashes of a series.
    pub(crate) fn line(&mut self, values: Vec<(f64, f64)>, series: usize) {
        self.shapes.push(style::line(self.places(values), series));
    }

    /// Draws a thin line.
    pub(crate) fn thin_line(&mut self, values: Vec<(f64, f64)>, color: Color) {
        self.shapes.push(style::thin_line(self.places(values), color));
    }

    /// Fills an area faintly in the colour of a series.
    pub(crate) fn faint(&mut self, values: Vec<(f64, f64)>, series: usize) {
        self.shapes.push(style::faint(self.places(values), series));
    }

    /// Draws an interval of the values at one place, in the colour of a series.
    pub(crate) fn interval(&mut self, x: f64, ends: [f64; 2], series: usize) {
        let [(x, low), (_, high)] = ends.map(|y| self.place((x, y)));
        self.shapes.extend(style::interval(x, [low, high], series));
    }

    /// Draws the symbol of a series.
    pub(crate) fn symbol(&mut self, at: (f64, f64), series: usize, fill: Fill) {
        self.shapes.extend(style::symbol(self.place(at), series, fill));
    }

    /// Fills a rectangle between two corners.
    pub(crate) fn rectangle(&mut self, corners: [(f64, f64); 2], color: Color) {
        self.shapes.push(style::rectangle(corners.map(|corner| self.place(corner)), color));
    }

    /// Outlines a rectangle between two corners.
    pub(crate) fn outline(&mut self, [(left, top), (right, bottom)]: [(f64, f64); 2]) {
        let corners = vec![(left, top), (right, top), (right, bottom), (left, bottom), (left, top)];
        self.shapes.push(style::stroke(self.places(corners), INK, 8.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_that_do_not_fit_start_a_line() {
        let key = |text: &str| Key { text: text.into(), sample: Sample::Line(0) };
        let keys = ["first", "second", "a text that is rather long for one column", "last"].map(key);
        let texts = |width| lines(&keys, width).iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(texts(100_000.0), [4]);
        assert_eq!(texts(2200.0), [2, 1, 1]);
        assert_eq!(texts(1.0), [1, 1, 1, 1], "an entry that is too wide has a line of its own");
    }
}
