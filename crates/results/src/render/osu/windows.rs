//! Tables of `osu_mbw_mr -V`: a row for each message size and a column for each window size.

use std::collections::{BTreeMap, BTreeSet};

use ombx_core::result::Measurement;

/// Bandwidths and message rates by message size and window size.
#[derive(Default)]
pub(super) struct Windows(BTreeMap<u64, BTreeMap<u32, [String; 2]>>);

impl Windows {
    /// Adds the bandwidth and the message rate of a row.
    pub(super) fn add(&mut self, row: &Measurement, figures: [String; 2]) {
        let sizes = self.0.entry(row.bytes.unwrap_or_default()).or_default();
        sizes.insert(row.depth.unwrap_or(1), figures);
    }

    /// Returns the tables: bandwidths, and message rates if they are asked for.
    pub(super) fn tables(&self, rate: bool) -> String {
        let rates = if rate { format!("\n# Message Rate Profile\n{}", self.table(1)) } else { String::new() };
        if self.0.is_empty() { String::new() } else { self.table(0) + &rates }
    }

    fn table(&self, figure: usize) -> String {
        let windows: BTreeSet<u32> = self.0.values().flat_map(BTreeMap::keys).copied().collect();
        let titles: String = windows.iter().map(|window| format!("  {window:>10}")).collect();
        let line = |(size, figures): (&u64, &BTreeMap<u32, [String; 2]>)| {
            let cell = |window| figures.get(window).map_or("n/a", |figures| &figures[figure]);
            let cells: String = windows.iter().map(|window| format!("  {:>10}", cell(window))).collect();
            format!("{size:<7}{cells}\n")
        };
        format!("#      {titles}\n") + &self.0.iter().map(line).collect::<String>()
    }
}
