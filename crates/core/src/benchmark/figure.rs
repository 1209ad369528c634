//! Figures that a benchmark reports beside times.

use std::collections::BTreeMap;

/// A figure of a row beside its times.
#[derive(Debug, Clone, PartialEq)]
pub enum Figure {
    /// In the unit that the figure's name ends with; finite.
    Value(f64),
    /// It could not be resolved, and why.
    Unresolved(String),
}

/// Figures by name; a name ends with its unit: `overlap_percent`, `round_trip_us`.
pub type Figures = BTreeMap<String, Figure>;
