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

/// Returns the names of the figures with the ends of a figure's 95 % interval: `overlap_low_percent` and `overlap_high_percent`
/// for `overlap_percent`. `None` for a name without unit.
pub fn interval_names(name: &str) -> Option<[String; 2]> {
    let (stem, unit) = name.rsplit_once('_')?;
    Some(["low", "high"].map(|end| format!("{stem}_{end}_{unit}")))
}
