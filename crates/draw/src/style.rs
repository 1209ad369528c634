//! Colours, symbols, dashes and text of figures. Lengths are in tenths of a point.

use crate::{
    drawing::{Anchor, Color, Point, Shape, TEXT},
    options::MAX_SERIES,
};

/// Width of curves, and of thin lines.
const LINE: f64 = 11.0;
const THIN_LINE: f64 = 7.0;
/// Half the length of the ends of an interval.
const CAP: f64 = 15.0;
/// Opacity of areas.
const FAINT: f64 = 0.22;

/// Colours of Okabe and Ito without yellow, which is hard to see on white.
const COLORS: [Color; MAX_SERIES] = [
    Color(0, 114, 178),
    Color(213, 94, 0),
    Color(0, 158, 115),
    Color(204, 121, 167),
    Color(230, 159, 0),
    Color(86, 180, 233),
    Color(0, 0, 0),
];
/// Lengths of dash and gap of each series; none: solid.
const DASHES: [Option<(f64, f64)>; MAX_SERIES] = [
    None,
    Some((50.0, 22.0)),
    Some((12.0, 20.0)),
    Some((90.0, 25.0)),
    Some((28.0, 14.0)),
    Some((60.0, 50.0)),
    Some((20.0, 40.0)),
];
/// Shades from fast to slow, each darker than the one before.
pub(crate) const SHADES: [Color; 7] = [
    Color(255, 251, 224),
    Color(255, 240, 176),
    Color(254, 217, 118),
    Color(253, 174, 75),
    Color(239, 122, 28),
    Color(189, 74, 10),
    Color(122, 42, 4),
];
pub(crate) const INK: Color = Color(0, 0, 0);
pub(crate) const GRID: Color = Color(224, 224, 224);
pub(crate) const PAPER: Color = Color(255, 255, 255);

/// Width of the letters from space to tilde, in 2048ths of the size of the font.
#[rustfmt::skip]
const ADVANCES: [u16; 95] = [
    651, 821, 942, 1716, 1303, 1946, 1597, 563, 799, 799, 1024, 1716, 651, 739, 651, 690, 1303, 1303, 1303,
    1303, 1303, 1303, 1303, 1303, 1303, 1303, 690, 690, 1716, 1716, 1716, 1087, 2048, 1401, 1405, 1430, 1577,
    1294, 1178, 1587, 1540, 604, 604, 1343, 1141, 1767, 1532, 1612, 1235, 1612, 1423, 1300, 1251, 1499, 1401,
    2025, 1403, 1251, 1403, 799, 690, 799, 1716, 1024, 1024, 1255, 1300, 1126, 1300, 1260, 721, 1300, 1298,
    569, 569, 1186, 569, 1995, 1298, 1253, 1300, 1300, 842, 1067, 803, 1298, 1212, 1675, 1212, 1212, 1075,
    1303, 690, 1303, 1716,
];
/// Estimated width of other letters: that of a digit.
const OTHER: u16 = 1303;

/// Whether a symbol is filled or only outlined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fill {
    Full,
    /// For rows with a mark.
    Hollow,
}

pub(crate) fn color(series: usize) -> Color {
    COLORS[series % MAX_SERIES]
}

/// Returns the width of a text.
pub(crate) fn width(text: &str) -> f64 {
    let advance =
        |letter: char| (letter as usize).checked_sub(0x20).and_then(|at| ADVANCES.get(at)).unwrap_or(&OTHER);
    let units: f64 = text.chars().map(|letter| f64::from(*advance(letter))).sum();
    units / 2048.0 * TEXT
}

/// Returns a text that begins, is centred, or ends at a place.
pub(crate) fn text(text: impl Into<String>, at: Point, anchor: Anchor) -> Shape {
    Shape::Text { text: text.into(), at, anchor, is_upright: false }
}

/// Returns a solid line.
pub(crate) fn stroke(points: Vec<Point>, color: Color, width: f64) -> Shape {
    Shape::Line { points, color, width, dash: None }
}

/// Returns a line in the colour and with the dashes of a series.
pub(crate) fn line(points: Vec<Point>, series: usize) -> Shape {
    Shape::Line { points, color: color(series), width: LINE, dash: DASHES[series % MAX_SERIES] }
}

/// Returns a thin solid line.
pub(crate) fn thin_line(points: Vec<Point>, color: Color) -> Shape {
    stroke(points, color, THIN_LINE)
}

/// Returns an area that is faintly filled in the colour of a series.
pub(crate) fn faint(corners: Vec<Point>, series: usize) -> Shape {
    Shape::Area { corners, color: color(series), opacity: FAINT }
}

/// Returns a filled rectangle between two corners.
pub(crate) fn rectangle([(left, top), (right, bottom)]: [Point; 2], color: Color) -> Shape {
    Shape::Area {
        corners: vec![(left, top), (right, top), (right, bottom), (left, bottom)],
        color,
        opacity: 1.0,
    }
}

/// Returns a vertical interval with caps, in the colour of a series.
pub(crate) fn interval(x: f64, [low, high]: [f64; 2], series: usize) -> [Shape; 3] {
    let cap = |y: f64| vec![(x - CAP, y), (x + CAP, y)];
    [vec![(x, low), (x, high)], cap(low), cap(high)].map(|points| thin_line(points, color(series)))
}

/// Returns the symbol of a series: its area and its outline.
pub(crate) fn symbol(at: Point, series: usize, fill: Fill) -> [Shape; 2] {
    let corners: Vec<Point> = outline(series).iter().map(|(x, y)| (at.0 + x, at.1 + y)).collect();
    let closed = corners.iter().chain(corners.first()).copied().collect();
    let inside = if fill == Fill::Full { color(series) } else { PAPER };
    [Shape::Area { corners, color: inside, opacity: 1.0 }, thin_line(closed, color(series))]
}

/// Returns the corners of a symbol around its centre: circle, square, triangle, diamond, triangle upside down, plus, pentagon. Symbols with
/// few corners have a larger radius, so that they do not look smaller.
fn outline(series: usize) -> Vec<Point> {
    let (arm, end) = (8.0, 24.0);
    match series % MAX_SERIES {
        0 => regular(24, 20.0, 0.0),
        1 => regular(4, 25.0, 0.125),
        2 => regular(3, 26.0, 0.0),
        3 => regular(4, 26.0, 0.0),
        4 => regular(3, 26.0, 0.5),
        5 => vec![
            (-arm, -end),
            (arm, -end),
            (arm, -arm),
            (end, -arm),
            (end, arm),
            (arm, arm),
            (arm, end),
            (-arm, end),
            (-arm, arm),
            (-end, arm),
            (-end, -arm),
            (-arm, -arm),
        ],
        _ => regular(5, 23.0, 0.0),
    }
}

/// Returns the corners of a regular polygon, turned by a part of a full turn.
fn regular(corners: u32, radius: f64, turn: f64) -> Vec<Point> {
    let corner = |at: u32| {
        let angle = (f64::from(at) / f64::from(corners) + turn) * std::f64::consts::TAU;
        (radius * angle.sin(), -radius * angle.cos())
    };
    (0..corners).map(corner).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_series_has_its_own_colour_symbol_and_dash() {
        let colors: BTreeSet<_> = COLORS.iter().collect();
        let dashes: BTreeSet<String> = DASHES.iter().map(|dash| format!("{dash:?}")).collect();
        let symbols: BTreeSet<String> =
            (0..MAX_SERIES).map(|series| format!("{:?}", outline(series))).collect();
        assert_eq!([colors.len(), dashes.len(), symbols.len()], [MAX_SERIES; 3]);
    }

    #[test]
    fn shades_become_darker() {
        let light = |c: &Color| 0.21 * f64::from(c.0) + 0.72 * f64::from(c.1) + 0.07 * f64::from(c.2);
        assert!(SHADES.windows(2).all(|pair| light(&pair[0]) > light(&pair[1]) + 8.0));
    }

    #[test]
    #[cfg(feature = "files")]
    fn widths_are_those_of_the_font() {
        for letter in ' '..='~' {
            let found = crate::file::painters::advance(letter) * TEXT;
            assert!((found - width(&letter.to_string())).abs() < 0.01, "{letter}: {found}");
        }
    }
}
