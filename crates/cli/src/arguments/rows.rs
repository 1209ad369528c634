//! Arguments that choose rows of result files.

use clap::Args;
use ombx_core::{
    error::{Error, Result},
    unit::Bytes,
};
use ombx_results::samples::CaseSamples;

use super::effort::Sizes;

/// Which rows of result files are drawn.
#[derive(Debug, Args)]
pub(crate) struct RowArgs {
    /// Only these benchmarks or row keys, for example p2p.latency, 'p2p.*' or 'rma.put_bw/*sync=lock*'; may be repeated
    #[arg(long, value_name = "PATTERN", value_parser = pattern)]
    rows: Vec<glob::Pattern>,
    /// Only these message sizes: 1..4M (doubling), 8,1K,64K (list), 1..4M:x4 (growing by 4)
    #[arg(long, value_parser = Sizes::parse)]
    pub(crate) sizes: Option<Sizes>,
}

impl RowArgs {
    /// Returns whether all rows are chosen.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.sizes.is_none()
    }

    /// Returns whether benchmarks or row keys are chosen.
    pub(crate) fn has_patterns(&self) -> bool {
        !self.rows.is_empty()
    }

    /// Keeps the chosen rows. `name` says where they come from.
    ///
    /// # Errors
    /// No row remains.
    pub(crate) fn choose(&self, mut cases: Vec<CaseSamples>, name: &str) -> Result<Vec<CaseSamples>> {
        if self.is_empty() || cases.is_empty() {
            return Ok(cases);
        }
        let mut names: Vec<String> = cases.iter().map(|case| case.row().bench.clone()).collect();
        names.dedup();
        cases.retain(|case| self.contains(case));
        if cases.is_empty() {
            let names = names.join(", ");
            return Err(Error::usage(format!("no row of {name} fits --rows and --sizes: there are {names}")));
        }
        Ok(cases)
    }

    fn contains(&self, case: &CaseSamples) -> bool {
        let row = case.row();
        let named = |pattern: &glob::Pattern| pattern.matches(&row.bench) || pattern.matches(&row.key);
        let sized = |sizes: &Sizes| row.bytes.is_some_and(|bytes| sizes.0.contains(&Bytes(bytes)));
        (self.rows.is_empty() || self.rows.iter().any(named)) && self.sizes.as_ref().is_none_or(sized)
    }
}

/// Reads a pattern of benchmarks or row keys.
pub(crate) fn pattern(text: &str) -> std::result::Result<glob::Pattern, String> {
    glob::Pattern::new(text).map_err(|e| e.to_string())
}
