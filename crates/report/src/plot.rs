//! Charts as SVG.

pub(crate) mod dot_plot;
pub(crate) mod heat_map;
pub(crate) mod label;
pub(crate) mod line_chart;
pub(crate) mod svg;
