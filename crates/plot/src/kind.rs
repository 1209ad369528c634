//! The kinds of figures, each a function from series to a drawing.

pub(crate) mod curve;
pub(crate) mod distribution;
pub(crate) mod order;
