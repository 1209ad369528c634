//! A finished figure, as SVG, PDF or PNG.

use resvg::{
    tiny_skia::{Pixmap, Transform},
    usvg::{self, Tree, WriteOptions},
};
use svg2pdf::{ConversionOptions, PageOptions};

use crate::{error::PlotError, font, style::POINT};

/// Resolution of PNG files. Publishers ask for 600 dots per inch of line art.
const DOTS_PER_INCH: f64 = 600.0;
/// Pixels of CSS per inch.
const CSS_PER_INCH: f64 = 96.0;

/// A figure.
#[derive(Debug, Clone)]
pub struct Drawing {
    /// SVG whose letters are text.
    svg: String,
    /// Width and height in tenths of a point.
    size: (i32, i32),
    /// Cases that are drawn, of all.
    drawn: Option<(usize, usize)>,
}

impl Drawing {
    /// Takes what the backend wrote. `size` is in tenths of a point.
    pub(crate) fn new(svg: &str, size: (i32, i32)) -> Drawing {
        let [width, height] = [size.0, size.1].map(|units| f64::from(units) / POINT);
        let svg = with_size(
            svg,
            &format!("width=\"{width}pt\" height=\"{height}pt\" viewBox=\"0 0 {} {}\"", size.0, size.1),
        );
        // The backend centres texts at half the height of small letters. Digits are higher.
        Drawing { svg: svg.replace("dy=\"0.5ex\"", "dy=\"0.36em\""), size, drawn: None }
    }

    pub(crate) fn of_cases(self, drawn: Option<(usize, usize)>) -> Drawing {
        Drawing { drawn, ..self }
    }

    /// Returns the number of cases that are drawn, and of all, if a figure cannot show all of them.
    pub fn drawn(&self) -> Option<(usize, usize)> {
        self.drawn
    }

    /// Returns SVG for a page: letters are text in a font that the page chooses.
    pub fn inline(&self) -> &str {
        &self.svg
    }

    /// Returns a self-contained SVG file: letters are outlines.
    ///
    /// # Errors
    /// The library rejects the drawing.
    pub fn svg(&self) -> Result<String, PlotError> {
        let tree = self.tree()?;
        let svg = tree.to_string(&WriteOptions::default());
        let [width, height] = [self.size.0, self.size.1].map(|units| f64::from(units) / POINT);
        let pixels = tree.size();
        let view = format!("viewBox=\"0 0 {} {}\"", pixels.width(), pixels.height());
        Ok(with_size(&svg, &format!("width=\"{width}pt\" height=\"{height}pt\" {view}")))
    }

    /// Returns a PDF file of one page with vector text in an embedded font.
    ///
    /// # Errors
    /// The library rejects the drawing.
    pub fn pdf(&self) -> Result<Vec<u8>, PlotError> {
        let page = PageOptions { dpi: CSS_PER_INCH as f32 };
        svg2pdf::to_pdf(&self.tree()?, ConversionOptions::default(), page)
            .map_err(|e| PlotError::Library(e.to_string()))
    }

    /// Returns a PNG file with 600 dots per inch.
    ///
    /// # Errors
    /// The library rejects the drawing.
    pub fn png(&self) -> Result<Vec<u8>, PlotError> {
        let (tree, scale) = (self.tree()?, (DOTS_PER_INCH / CSS_PER_INCH) as f32);
        let size = tree.size().to_int_size().scale_by(scale);
        let mut pixels = size
            .and_then(|size| Pixmap::new(size.width(), size.height()))
            .ok_or_else(|| PlotError::Library("it is too large".into()))?;
        resvg::render(&tree, Transform::from_scale(scale, scale), &mut pixels.as_mut());
        pixels.encode_png().map_err(|e| PlotError::Library(e.to_string()))
    }

    fn tree(&self) -> Result<Tree, PlotError> {
        let options = usvg::Options {
            fontdb: font::database(),
            font_family: font::FAMILY.into(),
            dpi: CSS_PER_INCH as f32,
            ..usvg::Options::default()
        };
        Tree::from_str(&self.svg, &options).map_err(|e| PlotError::Library(e.to_string()))
    }
}

/// Replaces the attributes of the root element.
fn with_size(svg: &str, attributes: &str) -> String {
    let body = svg.split_once('>').map_or("", |(_, body)| body);
    format!("<svg xmlns=\"http://www.w3.org/2000/svg\" {attributes}>{body}")
}
