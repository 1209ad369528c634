//! Painters: SVG with outlines of letters, PDF with an embedded font, PNG with pixels.

use std::{collections::BTreeMap, fmt::Write};

use miniz_oxide::deflate::compress_to_vec_zlib;
use pdf_writer::{
    Content, Filter, Finish, Name, Pdf, Rect, Ref, Str,
    types::{CidFontType, FontFlags, LineCapStyle, LineJoinStyle, SystemInfo, UnicodeCmap},
};
use skrifa::{
    FontRef, GlyphId, MetadataProvider,
    instance::{LocationRef, Size},
    outline::{DrawSettings, OutlinePen},
};
use tiny_skia::{
    FillRule, LineCap, LineJoin, Paint, Path, PathBuilder, PathSegment, Pixmap, Stroke, StrokeDash, Transform,
};

use crate::{
    drawing::{Anchor, BASE_LINE, Color, Drawing, POINT, Point, Shape, TEXT},
    error::PlotError,
};

/// DejaVu Sans, so that figures look the same on every machine.
const FONT: &[u8] = include_bytes!("../../font/DejaVuSans.ttf");
/// Its name in PDF. The six letters say that it is a subset.
const FONT_NAME: &[u8] = b"OMBXPL+DejaVuSans";
/// Units of the em of a font in PDF.
const PDF_EM: f32 = 1000.0;
const POINTS_PER_INCH: f64 = 72.0;
/// Effort of the compression of PDF, of 10.
const EFFORT: u8 = 6;
const SYSTEM: SystemInfo<'_> =
    SystemInfo { registry: Str(b"Adobe"), ordering: Str(b"Identity"), supplement: 0 };

/// Returns the font. It is part of the program, and a test reads it.
fn font() -> FontRef<'static> {
    FontRef::new(FONT).expect("a test reads the font")
}

/// Returns the glyph of a letter. Letters that the font does not have are boxes.
fn glyph(font: &FontRef<'_>, letter: char) -> GlyphId {
    font.charmap().map(letter).unwrap_or_default()
}

fn glyph_width(font: &FontRef<'_>, glyph: GlyphId) -> f64 {
    let metrics = font.glyph_metrics(Size::unscaled(), LocationRef::default());
    f64::from(metrics.advance_width(glyph).unwrap_or_default()) / 2048.0
}

/// Returns the width of a letter, as a part of the size of the font.
#[cfg(test)]
pub(crate) fn advance(letter: char) -> f64 {
    let font = font();
    glyph_width(&font, glyph(&font, letter))
}

/// Returns the glyphs of a text, each with the place where it starts on the base line. The origin is the place of the text.
fn letters(font: &FontRef<'_>, text: &str, anchor: Anchor) -> Vec<(GlyphId, f64)> {
    let glyphs: Vec<GlyphId> = text.chars().map(|letter| glyph(font, letter)).collect();
    let width: f64 = glyphs.iter().map(|glyph| glyph_width(font, *glyph) * TEXT).sum();
    let mut x = match anchor {
        Anchor::Start => 0.0,
        Anchor::Middle => -width / 2.0,
        Anchor::End => -width,
    };
    let place = |glyph: GlyphId| {
        let at = x;
        x += glyph_width(font, glyph) * TEXT;
        (glyph, at)
    };
    glyphs.into_iter().map(place).collect()
}

/// Outlines of letters as a path. Glyphs move to their places, and their vertical axis turns downwards.
struct Outlines {
    path: PathBuilder,
    /// Start of the glyph.
    x: f32,
    /// Its base line.
    y: f32,
}

impl OutlinePen for Outlines {
    fn move_to(&mut self, x: f32, y: f32) {
        self.path.move_to(self.x + x, self.y - y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.path.line_to(self.x + x, self.y - y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        self.path.quad_to(self.x + x1, self.y - y1, self.x + x, self.y - y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        self.path.cubic_to(self.x + x1, self.y - y1, self.x + x2, self.y - y2, self.x + x, self.y - y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}

/// Returns the outlines of a text, whose place is the origin; `None` without any.
fn outlines(font: &FontRef<'_>, text: &str, anchor: Anchor) -> Option<Path> {
    let mut pen = Outlines { path: PathBuilder::new(), x: 0.0, y: (BASE_LINE * TEXT) as f32 };
    for (glyph, x) in letters(font, text, anchor) {
        pen.x = x as f32;
        let settings = DrawSettings::unhinted(Size::new(TEXT as f32), LocationRef::default());
        if let Some(outline) = font.outline_glyphs().get(glyph) {
            // A glyph of the font in this crate has an outline that can be drawn.
            let _ = outline.draw(settings, &mut pen);
        }
    }
    pen.path.finish()
}

/// Returns a self-contained SVG file: letters are outlines.
pub(crate) fn svg(drawing: &Drawing) -> String {
    let font = font();
    drawing.as_svg("", |svg, text, anchor| {
        svg.push_str("<path d=\"");
        for segment in outlines(&font, text, anchor).iter().flat_map(Path::segments) {
            let _ = match segment {
                PathSegment::MoveTo(to) => write!(svg, "M{:.2} {:.2}", to.x, to.y),
                PathSegment::LineTo(to) => write!(svg, "L{:.2} {:.2}", to.x, to.y),
                PathSegment::QuadTo(by, to) => {
                    write!(svg, "Q{:.2} {:.2} {:.2} {:.2}", by.x, by.y, to.x, to.y)
                }
                PathSegment::CubicTo(by, and, to) => {
                    let [(x1, y1), (x2, y2), (x, y)] = [by, and, to].map(|point| (point.x, point.y));
                    write!(svg, "C{x1:.2} {y1:.2} {x2:.2} {y2:.2} {x:.2} {y:.2}")
                }
                PathSegment::Close => write!(svg, "Z"),
            };
        }
        svg.push_str("\"/>");
    })
}

/// Returns a PDF file of one page with vector text in an embedded font.
pub(crate) fn pdf(drawing: &Drawing) -> Vec<u8> {
    let [catalog, pages, page, contents, states, font_of_text, of_glyphs, about, file, unicode] =
        std::array::from_fn(|at| Ref::new(at as i32 + 1));
    let (width, height) = drawing.points();
    let font = font();
    let mut used: BTreeMap<u16, char> = BTreeMap::new();
    let mut opacities: Vec<f64> = Vec::new();
    let content = page_content(drawing, &font, &mut used, &mut opacities);

    let mut pdf = Pdf::new();
    pdf.catalog(catalog).pages(pages);
    pdf.pages(pages).kids([page]).count(1);
    let mut sheet = pdf.page(page);
    sheet.parent(pages).media_box(Rect::new(0.0, 0.0, width as f32, height as f32)).contents(contents);
    let mut resources = sheet.resources();
    resources.fonts().pair(Name(b"F"), font_of_text);
    let mut named = resources.ext_g_states();
    for at in 0..opacities.len() {
        named.pair(Name(state_name(at).as_bytes()), Ref::new(states.get() + 100 + at as i32));
    }
    named.finish();
    resources.finish();
    sheet.finish();
    for (at, opacity) in opacities.iter().enumerate() {
        pdf.ext_graphics(Ref::new(states.get() + 100 + at as i32)).non_stroking_alpha(*opacity as f32);
    }
    let content = compress_to_vec_zlib(&content, EFFORT);
    pdf.stream(contents, &content).filter(Filter::FlateDecode);

    let name = Name(FONT_NAME);
    pdf.type0_font(font_of_text)
        .base_font(name)
        .encoding_predefined(Name(b"Identity-H"))
        .descendant_font(of_glyphs)
        .to_unicode(unicode);
    let mut glyphs = pdf.cid_font(of_glyphs);
    glyphs.subtype(CidFontType::Type2).base_font(name).system_info(SYSTEM).font_descriptor(about);
    glyphs.cid_to_gid_map_predefined(Name(b"Identity"));
    let mut widths = glyphs.widths();
    for glyph in used.keys() {
        widths.consecutive(*glyph, [glyph_width(&font, GlyphId::from(*glyph)) as f32 * PDF_EM]);
    }
    widths.finish();
    glyphs.finish();
    let metrics = font.metrics(Size::new(PDF_EM), LocationRef::default());
    let bounds = metrics.bounds.unwrap_or_default();
    pdf.font_descriptor(about)
        .name(name)
        .flags(FontFlags::NON_SYMBOLIC)
        .bbox(Rect::new(bounds.x_min, bounds.y_min, bounds.x_max, bounds.y_max))
        .italic_angle(0.0)
        .ascent(metrics.ascent)
        .descent(metrics.descent)
        .cap_height(metrics.cap_height.unwrap_or(metrics.ascent))
        .stem_v(80.0)
        .font_file2(file);
    let data = compress_to_vec_zlib(FONT, EFFORT);
    pdf.stream(file, &data).filter(Filter::FlateDecode).pair(Name(b"Length1"), FONT.len() as i32);
    let mut letters = UnicodeCmap::<u16>::new(Name(b"ombx"), SYSTEM);
    used.iter().for_each(|(glyph, letter)| letters.pair(*glyph, *letter));
    pdf.stream(unicode, &letters.finish());
    pdf.finish()
}

/// Returns the name of an opacity.
fn state_name(at: usize) -> String {
    format!("G{at}")
}

/// Returns what is painted on the page. It collects the glyphs with their letters, and the opacities.
fn page_content(
    drawing: &Drawing,
    font: &FontRef<'_>,
    used: &mut BTreeMap<u16, char>,
    opacities: &mut Vec<f64>,
) -> Vec<u8> {
    let mut content = Content::new();
    let points = 1.0 / POINT as f32;
    // The vertical axis of PDF points up.
    content.transform([points, 0.0, 0.0, -points, 0.0, drawing.points().1 as f32]);
    content.set_line_cap(LineCapStyle::ButtCap).set_line_join(LineJoinStyle::RoundJoin);
    for shape in &drawing.shapes {
        match shape {
            Shape::Line { points, color, width, dash } => {
                let [r, g, b] = parts(*color);
                content.set_stroke_rgb(r, g, b).set_line_width(*width as f32);
                content
                    .set_dash_pattern(dash.iter().flat_map(|(dash, gap)| [*dash as f32, *gap as f32]), 0.0);
                trace(&mut content, points);
                content.stroke();
            }
            Shape::Area { corners, color, opacity } => {
                let at = opacities.iter().position(|known| known == opacity).unwrap_or_else(|| {
                    opacities.push(*opacity);
                    opacities.len() - 1
                });
                let [r, g, b] = parts(*color);
                content.set_parameters(Name(state_name(at).as_bytes())).set_fill_rgb(r, g, b);
                trace(&mut content, corners);
                content.close_path().fill_nonzero();
            }
            Shape::Text { text, at, anchor, is_upright } => {
                let placed = letters(font, text, *anchor);
                let Some((_, start)) = placed.first() else { continue };
                let codes = placed.iter().zip(text.chars()).flat_map(|((glyph, _), letter)| {
                    let code = glyph.to_u32() as u16;
                    used.entry(code).or_insert(letter);
                    code.to_be_bytes()
                });
                let codes: Vec<u8> = codes.collect();
                let (along, below) = (*start as f32, (BASE_LINE * TEXT) as f32);
                let (x, y) = (at.0 as f32, at.1 as f32);
                // The text matrix turns the vertical axis up again.
                let matrix = if *is_upright {
                    [0.0, -1.0, -1.0, 0.0, x + below, y - along]
                } else {
                    [1.0, 0.0, 0.0, -1.0, x + along, y + below]
                };
                if let Some(opaque) = opacities.iter().position(|known| *known == 1.0) {
                    content.set_parameters(Name(state_name(opaque).as_bytes()));
                }
                content.set_fill_rgb(0.0, 0.0, 0.0).begin_text();
                content
                    .set_font(Name(b"F"), TEXT as f32)
                    .set_text_matrix(matrix)
                    .show(Str(&codes))
                    .end_text();
            }
        }
    }
    content.finish().into_vec()
}

fn trace(content: &mut Content, points: &[Point]) {
    let Some(((x, y), others)) = points.split_first() else { return };
    content.move_to(*x as f32, *y as f32);
    for (x, y) in others {
        content.line_to(*x as f32, *y as f32);
    }
}

/// Returns the parts of a colour from 0 to 1.
fn parts(color: Color) -> [f32; 3] {
    [color.0, color.1, color.2].map(|part| f32::from(part) / 255.0)
}

/// Returns a PNG file.
pub(crate) fn png(drawing: &Drawing) -> Result<Vec<u8>, PlotError> {
    let scale = drawing.dots_per_inch / POINTS_PER_INCH / POINT;
    let [width, height] = [drawing.size.0, drawing.size.1].map(|units| (units * scale).round() as u32);
    let mut pixels =
        Pixmap::new(width, height).ok_or_else(|| PlotError::Library("it is too large".into()))?;
    let (font, whole) = (font(), Transform::from_scale(scale as f32, scale as f32));
    for shape in &drawing.shapes {
        match shape {
            Shape::Line { points, color, width, dash } => {
                let dash = dash.and_then(|(dash, gap)| StrokeDash::new(vec![dash as f32, gap as f32], 0.0));
                let stroke = Stroke {
                    width: *width as f32,
                    line_cap: LineCap::Butt,
                    line_join: LineJoin::Round,
                    dash,
                    ..Stroke::default()
                };
                if let Some(path) = path(points).and_then(PathBuilder::finish) {
                    pixels.stroke_path(&path, &paint(*color, 1.0), &stroke, whole, None);
                }
            }
            Shape::Area { corners, color, opacity } => {
                if let Some(mut path) = path(corners) {
                    path.close();
                    let Some(path) = path.finish() else { continue };
                    pixels.fill_path(&path, &paint(*color, *opacity), FillRule::Winding, whole, None);
                }
            }
            Shape::Text { text, at, anchor, is_upright } => {
                let turned = if *is_upright { Transform::from_rotate(-90.0) } else { Transform::identity() };
                let placed = turned.post_translate(at.0 as f32, at.1 as f32).post_concat(whole);
                if let Some(path) = outlines(&font, text, *anchor) {
                    pixels.fill_path(&path, &paint(Color(0, 0, 0), 1.0), FillRule::Winding, placed, None);
                }
            }
        }
    }
    pixels.encode_png().map_err(|e| PlotError::Library(e.to_string()))
}

/// Returns an open path through points; `None` without points.
fn path(points: &[Point]) -> Option<PathBuilder> {
    let ((x, y), others) = points.split_first()?;
    let mut path = PathBuilder::new();
    path.move_to(*x as f32, *y as f32);
    others.iter().for_each(|(x, y)| path.line_to(*x as f32, *y as f32));
    Some(path)
}

fn paint(color: Color, opacity: f64) -> Paint<'static> {
    let mut paint = Paint { anti_alias: true, ..Paint::default() };
    paint.set_color_rgba8(color.0, color.1, color.2, (opacity * 255.0).round() as u8);
    paint
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_font_has_the_letters_of_figures() {
        let font = font();
        for letter in "Aaz09 µ·×–…éßЖω".chars() {
            assert_ne!(glyph(&font, letter), GlyphId::default(), "{letter}");
        }
        assert_eq!(glyph(&font, '漢'), GlyphId::default());
        assert_eq!(font.metrics(Size::unscaled(), LocationRef::default()).units_per_em, 2048);
    }

    #[test]
    fn letters_follow_each_other_from_the_anchor() {
        let font = font();
        let at = |anchor| letters(&font, "00", anchor).into_iter().map(|(_, x)| x).collect::<Vec<_>>();
        let digit = advance('0') * TEXT;
        assert_eq!(at(Anchor::Start), [0.0, digit]);
        assert_eq!(at(Anchor::End), [-2.0 * digit, -digit]);
        assert!((at(Anchor::Middle)[1]).abs() < 1e-9);
    }
}
