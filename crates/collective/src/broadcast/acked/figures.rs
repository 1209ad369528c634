//! Figures of acknowledged broadcasts: what is subtracted, and whether the rest is resolved.

use ombx_core::{benchmark::Figure, result::Measurement, stats::Summary, trust};

/// Adds the figures of the method to a row. Removes the time if the correction is too large to resolve it.
pub(super) fn add_ack_figures(row: &mut Measurement, least: u64) {
    let Some(samples) = row.samples.first() else { return };
    let Some(trips) = &samples.round_trips else { return };
    let with_ack: Vec<f64> = samples.elapsed_ns.iter().map(|ns| *ns as f64 / samples.batch as f64).collect();
    let round_trips = trips.each_ns();
    let (Some(t), Some(rtt)) = (Summary::of(&with_ack), Summary::of(&round_trips)) else { return };
    let part = trips.halves as f64 / 2.0;
    let spread = variance(&with_ack) + part * part * variance(&round_trips);
    let mut add = |name: &str, value: f64| row.figures.insert(name.into(), Figure::Value(value));
    add("with_ack_us", t.median / 1e3);
    add("round_trip_us", rtt.median / 1e3);
    add("bound_us", rtt.median / 2e3);
    add("variance_us2", spread / 1e6);
    row.trust.extend(row.bytes.is_some_and(|bytes| bytes < least).then(trust::one_byte));
    let Some(summary) = &row.summary else { return };
    let [low, high] = summary.ci95.unwrap_or([summary.median; 2]);
    if summary.min > 0.0 && low > 0.0 {
        if trips.halves > 0 {
            row.trust
                .extend(trust::below_one_way(summary, rtt.ci95.map_or(rtt.median, |[low, _]| low) / 2.0));
        }
        return;
    }
    let why = format!(
        "not resolved: {:.3} us with the acknowledgement minus {part} round trips of {:.3} us is {:.3} us, with a 95 % interval \
         from {:.3} to {:.3} and a minimum of {:.3}",
        t.median / 1e3,
        rtt.median / 1e3,
        summary.median / 1e3,
        low / 1e3,
        high / 1e3,
        summary.min / 1e3
    );
    row.figures.insert("corrected_us".into(), Figure::Unresolved(why));
    row.summary = None;
    // This notice is about the removed time.
    row.trust.retain(|notice| notice.code != "not_converged");
}

/// Returns the sample variance.
fn variance(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1.0).max(1.0)
}
