//! Figures that a benchmark reports in addition to times.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::codec;

/// A figure of a row in addition to its times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Figure {
    /// Finite value, in the unit with which the figure's name ends.
    Value(f64),
    /// Reason why no value was resolved.
    Unresolved(String),
}

/// Figures by name. A name ends with its unit: `overlap_percent`, `round_trip_us`.
pub type Figures = BTreeMap<String, Figure>;

/// Counters of the kernel for the connections from a rank, since they were opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ConnectionCounters {
    /// Segments that were sent again.
    pub retransmits: u64,
    /// Congestion windows now: how many bytes may be in flight.
    pub cwnd_bytes: u64,
}

impl ConnectionCounters {
    /// Returns the numbers under their names.
    #[must_use]
    pub fn named(self) -> [(&'static str, u64); 2] {
        [("retransmits", self.retransmits), ("cwnd_bytes", self.cwnd_bytes)]
    }

    /// Returns the numbers as figures of a row.
    #[must_use]
    pub fn figures(self) -> Figures {
        let figure = |(name, value): (&str, u64)| (name.to_owned(), Figure::Value(value as f64));
        self.named().map(figure).into()
    }
}

/// Encodes figures for another rank.
pub(crate) fn encode_figures(figures: &Figures) -> Vec<u8> {
    let figures = figures.iter().map(|(name, figure)| match figure {
        Figure::Value(value) => (name, Ok(value)),
        Figure::Unresolved(why) => (name, Err(why)),
    });
    codec::encode(&figures.collect::<BTreeMap<_, _>>())
}

/// Decodes what [`encode_figures`] wrote; `None` for anything else.
pub(crate) fn decode_figures(bytes: &[u8]) -> Option<Figures> {
    let figure = |figure: Result<f64, String>| figure.map_or_else(Figure::Unresolved, Figure::Value);
    let figures: BTreeMap<String, _> = codec::decode(bytes)?;
    Some(figures.into_iter().map(|(name, one)| (name, figure(one))).collect())
}

/// Figure of a row whose operation was overlapped with computation: time of one leg of the operation alone, in microseconds.
pub const ALONE: &str = "pure_us";

/// Figure of the same row: time of the computation alone, in microseconds.
pub const OVERLAPPING: &str = "compute_us";

/// Returns the names of the figures with the ends of a figure's 95 % interval: `overlap_low_percent` and `overlap_high_percent`
/// for `overlap_percent`. `None` for a name without unit.
pub fn interval_names(name: &str) -> Option<[String; 2]> {
    let (stem, unit) = name.rsplit_once('_')?;
    Some(["low", "high"].map(|end| format!("{stem}_{end}_{unit}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_arrive_as_they_were_sent() {
        let figures = Figures::from([
            ("lost_percent".to_owned(), Figure::Value(0.1 + 0.2)),
            ("jitter_us".to_owned(), Figure::Unresolved("the jitter needs 41 datagrams".to_owned())),
        ]);
        assert_eq!(decode_figures(&encode_figures(&figures)), Some(figures.clone()));
        assert_eq!(decode_figures(&encode_figures(&Figures::new())), Some(Figures::new()));
        let bytes = encode_figures(&figures);
        assert!(decode_figures(&bytes[..bytes.len() - 1]).is_none());
    }
}
