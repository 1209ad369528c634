//! The font of figures: DejaVu Sans, which a crate contains, so that figures look the same on every machine.

use std::sync::{Arc, OnceLock};

use svg2pdf::usvg::fontdb::Database;
use ttf_parser::Face;

/// Name of the font family.
pub(crate) const FAMILY: &str = "DejaVu Sans";

/// Returns a set of fonts with this one only.
pub(crate) fn database() -> Arc<Database> {
    static DATABASE: OnceLock<Arc<Database>> = OnceLock::new();
    let database = DATABASE.get_or_init(|| {
        let mut database = Database::new();
        database.load_font_data(dejavu::sans::regular().to_vec());
        database.set_sans_serif_family(FAMILY);
        Arc::new(database)
    });
    Arc::clone(database)
}

/// Returns the width of a text, in the unit of the font size.
pub(crate) fn width(text: &str, size: f64) -> f64 {
    static FACE: OnceLock<Option<Face<'static>>> = OnceLock::new();
    let Some(face) = FACE.get_or_init(|| Face::parse(dejavu::sans::regular(), 0).ok()) else {
        return 0.6 * size * text.chars().count() as f64;
    };
    let advance =
        |c: char| face.glyph_index(c).and_then(|glyph| face.glyph_hor_advance(glyph)).unwrap_or(1200);
    let units: f64 = text.chars().map(|c| f64::from(advance(c))).sum();
    units / f64::from(face.units_per_em()) * size
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_come_from_the_font() {
        assert!(width("m", 100.0) > 2.0 * width("i", 100.0));
        assert!((width("0000", 50.0) - 4.0 * width("0", 50.0)).abs() < 1e-9);
        assert!((55.0..75.0).contains(&width("0", 100.0)), "{}", width("0", 100.0));
    }
}
