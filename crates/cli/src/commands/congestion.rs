//! `ombx congestion`: `ombx run` with loads, by default the suite of the same name.

use ombx_core::{error::Result, measure::plan::Under};

use super::run::arguments::RunArgs;
use crate::suite;

/// Suite that runs if no benchmark is named.
const SUITE: &str = "suite:congestion";
/// Loads of named benchmarks, as in the suite.
const LOADS: &str =
    "nothing,p2p.fan_in,collective.alltoall,rma.put_incast,collective.bcast,p2p.bw:128K,nothing";

/// Returns the arguments with what the user did not choose.
pub(crate) fn with_defaults(mut args: RunArgs) -> Result<RunArgs> {
    if args.patterns.is_empty() {
        args.patterns.push(SUITE.into());
    } else if args.under.is_empty() && !args.patterns.iter().any(|pattern| suite::is_suite(pattern)) {
        args.under = LOADS.split(',').map(str::parse).collect::<Result<Vec<Under>>>()?;
    }
    Ok(args)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_suite_has_the_same_loads() {
        let quoted: String = LOADS.split(',').map(|load| format!("{load:?}, ")).collect();
        let line = format!("under = [{}]", quoted.trim_end_matches(", "));
        assert!(include_str!("../../suites/congestion.toml").contains(&line), "{line}");
    }
}
