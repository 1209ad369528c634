//! Figures that a benchmark reports in addition to times.

use std::collections::BTreeMap;

/// A figure of a row in addition to its times.
#[derive(Debug, Clone, PartialEq)]
pub enum Figure {
    /// Finite value, in the unit with which the figure's name ends.
    Value(f64),
    /// Reason why no value was resolved.
    Unresolved(String),
}

/// Figures by name. A name ends with its unit: `overlap_percent`, `round_trip_us`.
pub type Figures = BTreeMap<String, Figure>;
