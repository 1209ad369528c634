//! The kinds of figures, each a function from series to a drawing.

pub(crate) mod cdf;
pub(crate) mod curve;
pub(crate) mod heat_map;
pub(crate) mod histogram;
pub(crate) mod launches;
pub(crate) mod model;
pub(crate) mod samples;
mod values;
pub(crate) mod violin;
