//! Shares of datagrams that were lost, overtaken or repeated.

use super::{Figure, Figures};
use crate::stats::proportion_interval;

/// A share of datagrams: the start of the names of its figures, and the figures that count the part and the whole.
#[derive(Debug, Clone, Copy)]
pub struct Share {
    /// Start of the names: `lost` for `lost_percent`, `lost_low_percent` and `lost_high_percent`.
    pub name: &'static str,
    /// Figure that counts the part.
    pub part: &'static str,
    /// Figure that counts the whole.
    pub all: &'static str,
}

/// The shares that a round has.
pub const SHARES: [Share; 3] = [
    Share { name: "lost", part: "lost_datagrams", all: "sent_datagrams" },
    Share { name: "reordered", part: "reordered_datagrams", all: "arrived_datagrams" },
    Share { name: "duplicate", part: "duplicate_datagrams", all: "arrived_datagrams" },
];

impl Share {
    /// Returns the share with its interval in percent, as figures; the reason if the whole is 0.
    pub fn figures(&self, part: u64, all: u64) -> Figures {
        let name = self.name;
        let Some([low, high]) = proportion_interval(part, all) else {
            let why = Figure::Unresolved("no datagram arrived".into());
            return Figures::from([(format!("{name}_percent"), why)]);
        };
        let percent = |share: f64| Figure::Value(100.0 * share);
        Figures::from([
            (format!("{name}_percent"), percent(part as f64 / all as f64)),
            (format!("{name}_low_percent"), percent(low)),
            (format!("{name}_high_percent"), percent(high)),
        ])
    }
}
