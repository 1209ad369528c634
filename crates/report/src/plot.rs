//! Charts as SVG.

pub(crate) mod canvas;
pub(crate) mod dot_plot;
pub(crate) mod heat_map;
pub(crate) mod histogram;
pub(crate) mod label;
pub(crate) mod line_chart;
pub(crate) mod steps;
pub(crate) mod svg;
pub(crate) mod trend;
