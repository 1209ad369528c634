//! Colours, symbols, dashes and text of figures. Lengths are in tenths of a point.

use plotters::{
    coord::{CoordTranslate, Shift},
    drawing::DrawingAreaErrorKind,
    element::DashedPathElement,
    prelude::*,
    style::text_anchor::{HPos, Pos, VPos},
};

use crate::{axis::Axis, font};

/// Maximum number of series in one figure. There is one colour, symbol and dash for each.
pub const MAX_SERIES: usize = 7;

/// Units per point.
pub(crate) const POINT: f64 = 10.0;
/// Size of all text: 8 points, the smallest that publishers accept without question.
pub(crate) const TEXT: f64 = 8.0 * POINT;
/// Width of curves, and of outlines.
const LINE: u32 = 11;
const OUTLINE: u32 = 7;
/// Opacity of bands and areas.
const FAINT: f64 = 0.22;
/// The SVG backend divides font sizes by this number.
const BACKEND_FACTOR: f64 = 1.24;

/// Colours of Okabe and Ito without yellow, which is hard to see on white.
const COLORS: [RGBColor; MAX_SERIES] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 0, 0),
];
/// Lengths of dash and gap of each series; none: solid.
const DASHES: [Option<(i32, i32)>; MAX_SERIES] =
    [None, Some((50, 22)), Some((12, 20)), Some((90, 25)), Some((28, 14)), Some((60, 50)), Some((20, 40))];
/// Shades from fast to slow, each darker than the one before.
pub(crate) const SHADES: [RGBColor; 7] = [
    RGBColor(255, 251, 224),
    RGBColor(255, 240, 176),
    RGBColor(254, 217, 118),
    RGBColor(253, 174, 75),
    RGBColor(239, 122, 28),
    RGBColor(189, 74, 10),
    RGBColor(122, 42, 4),
];
pub(crate) const INK: RGBColor = RGBColor(0, 0, 0);
pub(crate) const GRID: RGBColor = RGBColor(224, 224, 224);

/// The whole figure, in its own units.
pub(crate) type Page<'a> = DrawingArea<SVGBackend<'a>, Shift>;
/// The area between the axes, in values of the axes.
pub(crate) type Plane<'a> = DrawingArea<SVGBackend<'a>, Cartesian2d<Axis, Axis>>;
/// Result of drawing.
pub(crate) type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

/// Whether a symbol is filled or only outlined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fill {
    Full,
    /// For rows with a mark.
    Hollow,
}

pub(crate) fn color(series: usize) -> RGBColor {
    COLORS[series % MAX_SERIES]
}

/// Returns the style of a text that begins, is centred, or ends at its position.
pub(crate) fn text(at: HPos) -> TextStyle<'static> {
    let font = FontDesc::new(FontFamily::Name(font::FAMILY), TEXT * BACKEND_FACTOR, FontStyle::Normal);
    TextStyle::from(font).color(&INK).pos(Pos::new(at, VPos::Center))
}

/// Draws a line through points in the colour and with the dashes of a series.
pub(crate) fn line<C: CoordTranslate>(
    area: &DrawingArea<SVGBackend<'_>, C>,
    points: Vec<C::From>,
    series: usize,
) -> Drawn
where
    C::From: Clone,
{
    let style = color(series).stroke_width(LINE);
    match DASHES[series % MAX_SERIES] {
        None => area.draw(&PathElement::new(points, style)),
        Some((dash, gap)) => area.draw(&DashedPathElement::new(points, dash, gap, style)),
    }
}

/// Draws a thin line through points in a colour.
pub(crate) fn thin_line<C: CoordTranslate>(
    area: &DrawingArea<SVGBackend<'_>, C>,
    points: Vec<C::From>,
    color: RGBColor,
) -> Drawn {
    area.draw(&PathElement::new(points, color.stroke_width(OUTLINE)))
}

/// Fills an area faintly in the colour of a series.
pub(crate) fn faint<C: CoordTranslate>(
    area: &DrawingArea<SVGBackend<'_>, C>,
    outline: Vec<C::From>,
    series: usize,
) -> Drawn {
    area.draw(&Polygon::new(outline, color(series).mix(FAINT).filled()))
}

/// Draws the symbol of a series.
pub(crate) fn symbol<C: CoordTranslate>(
    area: &DrawingArea<SVGBackend<'_>, C>,
    at: C::From,
    series: usize,
    fill: Fill,
) -> Drawn {
    let outline = outline(series);
    let closed: Vec<(i32, i32)> = outline.iter().chain(outline.first()).copied().collect();
    let inside = if fill == Fill::Full { color(series) } else { WHITE };
    area.draw(
        &(EmptyElement::at(at)
            + Polygon::new(outline, inside.filled())
            + PathElement::new(closed, color(series).stroke_width(OUTLINE))),
    )
}

/// Returns the corners of a symbol around its centre.
fn outline(series: usize) -> Vec<(i32, i32)> {
    let regular = |corners: u32, radius: f64, turn: f64| {
        let corner = |at: u32| {
            let angle = (f64::from(at) / f64::from(corners) + turn) * std::f64::consts::TAU;
            ((radius * angle.sin()).round() as i32, (-radius * angle.cos()).round() as i32)
        };
        (0..corners).map(corner).collect()
    };
    match series % MAX_SERIES {
        0 => regular(24, 20.0, 0.0),
        1 => regular(4, 25.0, 0.125),
        2 => regular(3, 26.0, 0.0),
        3 => regular(4, 26.0, 0.0),
        4 => regular(3, 26.0, 0.5),
        5 => vec![
            (-8, -24),
            (8, -24),
            (8, -8),
            (24, -8),
            (24, 8),
            (8, 8),
            (8, 24),
            (-8, 24),
            (-8, 8),
            (-24, 8),
            (-24, -8),
            (-8, -8),
        ],
        _ => regular(5, 23.0, 0.0),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_series_has_its_own_colour_symbol_and_dash() {
        let colors: BTreeSet<_> = COLORS.iter().map(|c| (c.0, c.1, c.2)).collect();
        let dashes: BTreeSet<_> = DASHES.iter().collect();
        let symbols: BTreeSet<_> = (0..MAX_SERIES).map(outline).collect();
        assert_eq!([colors.len(), dashes.len(), symbols.len()], [MAX_SERIES; 3]);
    }

    #[test]
    fn shades_become_darker() {
        let light = |c: &RGBColor| 0.21 * f64::from(c.0) + 0.72 * f64::from(c.1) + 0.07 * f64::from(c.2);
        assert!(SHADES.windows(2).all(|pair| light(&pair[0]) > light(&pair[1]) + 8.0));
    }
}
