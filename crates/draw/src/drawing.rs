//! A drawing: shapes in the order in which they are painted, and their painter for pages. [`crate::file`] has those for files.

use std::fmt::Write;

/// Units per point.
pub(crate) const POINT: f64 = 10.0;
/// Size of all text: 8 points, the smallest that publishers accept without question.
pub(crate) const TEXT: f64 = 8.0 * POINT;

/// Resolution of a figure as PNG. Publishers ask for 600 dots per inch of line art.
const DOTS_PER_INCH: f64 = 600.0;
/// Resolution of a grid of figures as PNG, which is for a screen.
const DOTS_PER_INCH_OF_GRID: f64 = 150.0;
/// Maximum number of figures beside each other in a grid.
const MOST_COLUMNS: usize = 3;
/// Distance from the middle of a text to its base line, in sizes of the font: half the height of a digit.
pub(crate) const BASE_LINE: f64 = 0.36;

/// A place: to the right of, and below the upper left corner, in tenths of a point.
pub type Point = (f64, f64);

/// Red, green and blue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Color(pub u8, pub u8, pub u8);

/// One shape. Lengths are in tenths of a point.
#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    /// Line through points.
    Line {
        /// Its points.
        points: Vec<Point>,
        /// Its colour.
        color: Color,
        /// Its width.
        width: f64,
        /// Lengths of dash and gap; none: solid.
        dash: Option<(f64, f64)>,
    },
    /// Filled polygon.
    Area {
        /// Its corners.
        corners: Vec<Point>,
        /// Its colour.
        color: Color,
        /// Its opacity, from 0 to 1.
        opacity: f64,
    },
    /// Text of 8 points.
    Text {
        /// One line of text.
        text: String,
        /// Place of its start, centre or end, in the middle of its height.
        at: Point,
        /// What is at that place.
        anchor: Anchor,
        /// Whether it is read from bottom to top.
        is_upright: bool,
    },
}

/// Part of a text that is at its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    /// The start.
    Start,
    /// The centre.
    Middle,
    /// The end.
    End,
}

/// A figure.
#[derive(Debug, Clone)]
pub struct Drawing {
    /// In the order in which they are painted.
    pub shapes: Vec<Shape>,
    /// Width and height in tenths of a point.
    pub(crate) size: (f64, f64),
    /// Number of cases that are drawn, and of all, if a figure cannot show all of them.
    pub drawn: Option<(usize, usize)>,
    /// Resolution as PNG.
    pub dots_per_inch: f64,
}

impl Drawing {
    pub(crate) fn new(shapes: Vec<Shape>, size: (f64, f64)) -> Drawing {
        Drawing { shapes, size, drawn: None, dots_per_inch: DOTS_PER_INCH }
    }

    /// Returns one figure with these beside and below each other, in rows of at most three; `None` without figures.
    pub fn grid(figures: &[Drawing]) -> Option<Drawing> {
        if let [only] = figures {
            return Some(only.clone());
        }
        let columns = if figures.len() > 4 { MOST_COLUMNS } else { 2 };
        let width = figures.iter().map(|figure| figure.size.0).reduce(f64::max)?;
        let height = figures.iter().map(|figure| figure.size.1).reduce(f64::max)?;
        let mut shapes = Vec::new();
        for (at, figure) in figures.iter().enumerate() {
            let by = ((at % columns) as f64 * width, (at / columns) as f64 * height);
            shapes.extend(figure.shapes.iter().map(|shape| shape.moved(by)));
        }
        let rows = figures.len().div_ceil(columns);
        let drawing = Drawing::new(shapes, (columns as f64 * width, rows as f64 * height));
        Some(Drawing { dots_per_inch: DOTS_PER_INCH_OF_GRID, ..drawing })
    }

    /// Returns width and height in points.
    pub fn points(&self) -> (f64, f64) {
        (self.size.0 / POINT, self.size.1 / POINT)
    }

    /// Returns SVG for a page: letters are text in a font that the page chooses.
    pub fn inline(&self) -> String {
        self.as_svg(&format!(" font-size=\"{TEXT}\""), |svg, text, anchor| {
            let anchor = match anchor {
                Anchor::Start => "start",
                Anchor::Middle => "middle",
                Anchor::End => "end",
            };
            let _ = write!(
                svg,
                "<text y=\"{}\" text-anchor=\"{anchor}\">{}</text>",
                n(BASE_LINE * TEXT),
                Escaped(text)
            );
        })
    }

    /// Writes SVG. `text` paints a text at the origin.
    pub(crate) fn as_svg(&self, attributes: &str, text: impl Fn(&mut String, &str, Anchor)) -> String {
        let ((width, height), (right, bottom)) = (self.points(), self.size);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}pt\" height=\"{height}pt\" \
             viewBox=\"0 0 {right} {bottom}\"{attributes}>\n"
        );
        for shape in &self.shapes {
            let _ = match shape {
                Shape::Line { points, color, width, dash } => {
                    let dash = dash
                        .map(|(dash, gap)| format!(" stroke-dasharray=\"{dash} {gap}\""))
                        .unwrap_or_default();
                    write!(
                        svg,
                        "<path d=\"{}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"{width}\"{dash}/>",
                        Path(points)
                    )
                }
                Shape::Area { corners, color, opacity } => {
                    let opacity =
                        if *opacity < 1.0 { format!(" fill-opacity=\"{opacity}\"") } else { String::new() };
                    write!(svg, "<path d=\"{}Z\" fill=\"{color}\"{opacity}/>", Path(corners))
                }
                Shape::Text { text: words, at, anchor, is_upright } => {
                    let turned = if *is_upright { " rotate(-90)" } else { "" };
                    let _ = write!(svg, "<g transform=\"translate({} {}){turned}\">", n(at.0), n(at.1));
                    text(&mut svg, words, *anchor);
                    write!(svg, "</g>")
                }
            };
            svg.push('\n');
        }
        svg + "</svg>\n"
    }
}

impl Shape {
    /// Returns the shape at another place.
    fn moved(&self, by: Point) -> Shape {
        let all = |points: &[Point]| points.iter().map(|(x, y)| (x + by.0, y + by.1)).collect();
        match self.clone() {
            Shape::Line { points, color, width, dash } => {
                Shape::Line { points: all(&points), color, width, dash }
            }
            Shape::Area { corners, color, opacity } => Shape::Area { corners: all(&corners), color, opacity },
            Shape::Text { text, at, anchor, is_upright } => {
                Shape::Text { text, at: (at.0 + by.0, at.1 + by.1), anchor, is_upright }
            }
        }
    }
}

impl std::fmt::Display for Color {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "#{:02X}{:02X}{:02X}", self.0, self.1, self.2)
    }
}

/// Formats a coordinate with at most one decimal.
pub fn n(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// The path of a line through points in SVG.
#[derive(Debug, Clone, Copy)]
pub struct Path<'a>(pub &'a [Point]);

impl std::fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0
            .iter()
            .enumerate()
            .try_for_each(|(at, (x, y))| write!(f, "{}{} {}", if at == 0 { 'M' } else { 'L' }, n(*x), n(*y)))
    }
}

/// A text between tags.
struct Escaped<'a>(&'a str);

impl std::fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.chars().try_for_each(|letter| match letter {
            '&' => f.write_str("&amp;"),
            '<' => f.write_str("&lt;"),
            '>' => f.write_str("&gt;"),
            other => f.write_char(other),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INK: Color = Color(0, 0, 0);

    #[test]
    fn a_grid_has_rows_of_at_most_three() {
        let square =
            Shape::Area { corners: vec![(0.0, 0.0), (9.0, 0.0), (9.0, 9.0)], color: INK, opacity: 1.0 };
        let figure = Drawing::new(vec![square], (1000.0, 500.0));
        let size = |count: usize| Drawing::grid(&vec![figure.clone(); count]).map(|grid| grid.size);
        assert_eq!(
            [0, 1, 2, 3].map(size),
            [None, Some((1000.0, 500.0)), Some((2000.0, 500.0)), Some((2000.0, 1000.0))]
        );
        assert_eq!(
            [4, 5, 7].map(size),
            [Some((2000.0, 1000.0)), Some((3000.0, 1000.0)), Some((3000.0, 1500.0))]
        );
        let grid = Drawing::grid(&[figure.clone(), figure]).unwrap().inline();
        assert!(grid.contains("M0 0L9 0L9 9Z") && grid.contains("M1000 0L1009 0L1009 9Z"), "{grid}");
    }

    #[test]
    fn svg_has_letters_that_a_page_can_show() {
        let text = Shape::Text {
            text: "<b> & \"µ\"".into(),
            at: (5.0, 7.25),
            anchor: Anchor::End,
            is_upright: true,
        };
        let line = Shape::Line {
            points: vec![(1.0, 2.0), (3.5, 4.0)],
            color: Color(0, 114, 178),
            width: 11.0,
            dash: Some((5.0, 2.0)),
        };
        let svg = Drawing::new(vec![text, line], (100.0, 50.0)).inline();
        assert!(
            svg.contains("translate(5 7.2) rotate(-90)") && svg.contains(">&lt;b&gt; &amp; \"µ\"</text>"),
            "{svg}"
        );
        assert!(
            svg.contains("d=\"M1 2L3.5 4\"") && svg.contains("#0072B2") && svg.contains("=\"5 2\""),
            "{svg}"
        );
        assert!(svg.contains("width=\"10pt\""), "{svg}");
    }
}
