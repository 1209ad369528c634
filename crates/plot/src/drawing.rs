//! A finished figure, as SVG, PDF or PNG.

use resvg::{
    tiny_skia::{Pixmap, Transform},
    usvg::{self, Tree, WriteOptions},
};
use svg2pdf::{ConversionOptions, PageOptions};

use crate::{error::PlotError, font, style::POINT};

/// Resolution of a figure as PNG. Publishers ask for 600 dots per inch of line art.
const DOTS_PER_INCH: f64 = 600.0;
/// Resolution of a grid of figures as PNG, which is for a screen.
const DOTS_PER_INCH_OF_GRID: f64 = 150.0;
/// Maximum number of figures beside each other in a grid.
const MOST_COLUMNS: usize = 3;
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
    /// Resolution as PNG.
    dots_per_inch: f64,
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
        let svg = svg.replace("dy=\"0.5ex\"", "dy=\"0.36em\"");
        Drawing { svg, size, drawn: None, dots_per_inch: DOTS_PER_INCH }
    }

    /// Returns one figure with these beside and below each other, in rows of at most three; `None` without figures.
    pub fn grid(figures: &[Drawing]) -> Option<Drawing> {
        if let [only] = figures {
            return Some(only.clone());
        }
        let columns = if figures.len() > 4 { MOST_COLUMNS } else { 2 };
        let largest = |size: fn(&Drawing) -> i32| figures.iter().map(size).max();
        let (width, height) = (largest(|figure| figure.size.0)?, largest(|figure| figure.size.1)?);
        let mut svg = String::from("<svg>");
        for (at, figure) in (0..).zip(figures) {
            let place = [at % columns as i32 * width, at / columns as i32 * height];
            let (x, y, (w, h)) = (place[0], place[1], figure.size);
            let attributes =
                format!("x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\"");
            svg += &with_size(&figure.svg, &attributes);
        }
        svg += "</svg>";
        let rows = figures.len().div_ceil(columns) as i32;
        let drawing = Drawing::new(&svg, (columns as i32 * width, rows * height));
        Some(Drawing { dots_per_inch: DOTS_PER_INCH_OF_GRID, ..drawing })
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

    /// Returns a PNG file with 600 dots per inch, of a grid with 150.
    ///
    /// # Errors
    /// The library rejects the drawing.
    pub fn png(&self) -> Result<Vec<u8>, PlotError> {
        let (tree, scale) = (self.tree()?, (self.dots_per_inch / CSS_PER_INCH) as f32);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grid_has_rows_of_at_most_three() {
        let figure = Drawing::new("<svg><rect width=\"10\" height=\"10\"/></svg>", (1000, 500));
        let size = |count: usize| Drawing::grid(&vec![figure.clone(); count]).map(|grid| grid.size);
        assert_eq!([0, 1, 2, 3].map(size), [None, Some((1000, 500)), Some((2000, 500)), Some((2000, 1000))]);
        assert_eq!([4, 5, 7].map(size), [Some((2000, 1000)), Some((3000, 1000)), Some((3000, 1500))]);
        let grid = Drawing::grid(&[figure.clone(), figure]).unwrap();
        assert_eq!(grid.inline().matches("<rect").count(), 2);
        assert!(grid.inline().contains("x=\"1000\" y=\"0\""), "{}", grid.inline());
        let png = grid.png().unwrap();
        assert!(png.starts_with(b"\x89PNG") && grid.pdf().unwrap().starts_with(b"%PDF"));
    }
}
