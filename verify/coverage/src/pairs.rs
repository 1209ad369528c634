//! Pairs of known noise: the headline beside the total work over wall time.

use ombx_testkit::sim_link::{MODELS, PairsRow, measure_pairs};
use ombx_toolchain::failure::{Failure, Result};

/// Numbers of pairs.
const PAIRS: [u32; 6] = [2, 4, 8, 16, 32, 64];
/// Maximum difference of the headline from total work over wall time.
const TOLERANCE: f64 = 0.01;

/// Measures all models with all numbers of pairs and prints a line for each. Returns whether one is outside the tolerance.
pub(crate) fn measure(seed: u64) -> Result<bool> {
    println!(
        "rate relative to total work over wall time, in %\n\
         | noise | pairs | samples | headline | slowest pair's own time | formula of osu_mbw_mr | |\n|---|---|---|---|---|---|---|"
    );
    let (mut rows, mut outside) = (0, 0);
    for (model, _) in MODELS {
        for pairs in PAIRS {
            let row =
                measure_pairs(pairs, model, seed).map_err(|e| Failure::Missing(format!("{model}: {e}")))?;
            let PairsRow { batch, samples, headline, slowest_own, osu } = row;
            let is_outside = [headline, slowest_own].iter().any(|rate| (rate - 1.0).abs() > TOLERANCE);
            let percent = |rate: f64| format!("{:+.2}", (rate - 1.0) * 100.0);
            println!(
                "| {model} | {pairs} | {samples} x {batch} | {} | {} | {} | {} |",
                percent(headline),
                percent(slowest_own),
                percent(osu),
                if is_outside { "OUTSIDE 1 %" } else { "" }
            );
            (rows, outside) = (rows + 1, outside + u64::from(is_outside));
        }
    }
    println!("\n{} of {rows} rows within 1 % of total work over wall time", rows - outside);
    Ok(outside > 0)
}
