//! Sizes of a chart: it is drawn for wide screens and paper, and again for phones, where only that drawing is visible.

use maud::{Markup, html};

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
