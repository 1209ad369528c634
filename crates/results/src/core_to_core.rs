//! Latency between two cores just before a launch. It shows the state of the machine.

use ombx_core::{result::Run, stats::median};

/// Name in the plan of a run. The estimates over launches have the latencies of all of them, separated by commas.
pub(crate) const OPTION: &str = "core_to_core_ns";

/// Ratio of neighbouring latencies above which the machine was in another state. The latency within a state varies by about a tenth.
pub(crate) const OTHER_STATE: f64 = 2.0;

/// Returns the latencies of the launches of a run in nanoseconds. There are none if ranks ran on other hosts than the launcher.
pub(crate) fn of_run(run: &Run) -> Vec<f64> {
    let latencies = run.plan.get(OPTION).into_iter().flat_map(|all| all.split(','));
    latencies.filter_map(|ns| ns.trim().parse().ok()).filter(|ns: &f64| ns.is_finite() && *ns > 0.0).collect()
}

/// Divides sorted latencies by state of the machine.
pub(crate) fn states(sorted: &[f64]) -> Vec<&[f64]> {
    sorted.chunk_by(|low, high| high / low <= OTHER_STATE).collect()
}

/// Returns the median latency in each state, such as `35 or 178 ns`.
pub(crate) fn in_states(run: &Run) -> Option<String> {
    let mut all = of_run(run);
    all.sort_by(f64::total_cmp);
    let medians = states(&all).into_iter().filter_map(median);
    let words: Vec<String> = medians.map(|ns| format!("{ns:.0}")).collect();
    match words.split_last()? {
        (only, []) => Some(format!("{only} ns")),
        (last, others) => Some(format!("{} or {last} ns", others.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden;

    #[test]
    fn each_state_has_its_median() {
        let of = |latencies: &str| {
            let mut run = golden().run;
            run.plan.insert(OPTION.into(), latencies.into());
            in_states(&run)
        };
        assert_eq!(in_states(&golden().run), None);
        assert_eq!(of("unknown"), None);
        assert_eq!(of("35.344").unwrap(), "35 ns");
        assert_eq!(of("36,34,60,35,40").unwrap(), "36 ns");
        assert_eq!(of("170, 34, 36, 180, 35").unwrap(), "35 or 175 ns");
        assert_eq!(of("170,34,400").unwrap(), "34, 170 or 400 ns");
    }
}
