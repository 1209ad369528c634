//! Conditions that every record of a file fulfils.

use ombx_core::{
    benchmark::{Figure, payload::Check},
    result::{Measurement, Outcome, OverLaunches, Samples, StateFigure},
    stats::{Percentile, Summary},
};

use super::record::Launched;

fn is_time(ns: f64) -> bool {
    ns.is_finite() && ns >= 0.0
}

/// Checks a row, both before writing and after reading. The error names the violated condition.
pub(super) fn row(row: &Measurement) -> Result<(), String> {
    let must = |ok: bool, message: &str| if ok { Ok(()) } else { Err(message.to_owned()) };
    must(row.ranks > 0 && row.pairs > 0, "ranks or pairs is 0")?;
    must(row.depth != Some(0), "depth is 0")?;
    must(row.work.is_none_or(|work| work.legs > 0), "work.legs is 0")?;
    must(row.bus.is_none_or(|bus| is_time(bus.factor)), "bus.factor is not a factor")?;
    must(row.samples.iter().all(|s| s.batch > 0), "batch is 0")?;
    must(row.tail.iter().all(|s| s.batch == 1), "tail has a batch that is not 1")?;
    let whole = |s: &Samples| s.started_ns.is_empty() || s.started_ns.len() == s.elapsed_ns.len();
    must(row.samples.iter().all(whole), "started_ns and elapsed_ns have different lengths")?;
    let mut trips = row.samples.iter().chain(&row.tail).filter_map(|s| s.round_trips.as_ref());
    must(trips.all(|r| r.batch > 0 && r.halves <= 2), "round_trips has batch 0 or more than two halves")?;
    let corrupt = matches!(row.check, Check::Failed(_));
    let failed = matches!(row.outcome, Outcome::Failed(_));
    must(!corrupt || failed, "a failed check needs the outcome failed")?;
    let finite = |figure: &Figure| !matches!(figure, Figure::Value(x) if !x.is_finite());
    must(row.figures.values().all(finite), "a figure is not a finite number")?;
    row.launches.as_ref().map_or(Ok(()), launches)?;
    row.summary.as_ref().map_or(Ok(()), summary)
}

fn launches(over: &OverLaunches) -> Result<(), String> {
    if over.batch == 0 || !over.medians_ns.iter().all(|ns| is_time(*ns)) {
        return Err("launches has a median that is not a time, or batch 0".into());
    }
    let is_state = |state: &StateFigure| {
        let ends = state.ends_ns.iter().flatten().chain(&state.core_to_core_ns);
        is_time(state.median_ns)
            && ends.copied().all(is_time)
            && (0.0..=1.0).contains(&state.coverage)
            && state.launches.iter().all(|at| *at < over.medians_ns.len())
    };
    if over.states.iter().all(is_state) && over.elapsed_s.is_none_or(is_time) {
        Ok(())
    } else {
        Err("launches has a state or a time that cannot be".into())
    }
}

fn summary(summary: &Summary) -> Result<(), String> {
    let Summary { median, min, mean, max, mad, .. } = *summary;
    let times = [("median_ns", median), ("min_ns", min), ("mean_ns", mean), ("max_ns", max), ("mad_ns", mad)];
    let percentiles = [("p95", summary.p95), ("p99", summary.p99), ("p999", summary.p999)];
    let percentiles = percentiles.into_iter().filter_map(|(name, percentile)| Some((name, percentile?)));
    let lows = summary.ci95.iter().map(|ends| ("ci95_ns", ends[0]));
    let values = percentiles.clone().map(|(name, Percentile { value, .. })| (name, value));
    for (name, time) in times.into_iter().chain(lows).chain(values) {
        if !is_time(time) {
            return Err(format!("{name} is {time}, which is not a time"));
        }
    }
    if summary.n == 0 {
        return Err("a summary has no samples".into());
    }
    if !summary.lag1.is_finite() {
        return Err(format!("lag1 is {}", summary.lag1));
    }
    let intervals = percentiles.filter_map(|(name, Percentile { ci95, .. })| Some((name, ci95?)));
    for (name, [low, high]) in summary.ci95.map(|ends| ("ci95_ns", ends)).into_iter().chain(intervals) {
        if !(low <= high && low.is_finite() && high.is_finite()) {
            return Err(format!("the low end of the interval of {name} is above the high end"));
        }
    }
    if !(min <= median && median <= max) {
        return Err("median_ns is not between min_ns and max_ns".into());
    }
    Ok(())
}

/// Checks what is known when a launch has ended.
pub(super) fn launched(Launched { core_to_core_ns, elapsed_s, ended }: &Launched) -> Result<(), String> {
    let mut numbers =
        [Some(*elapsed_s), *core_to_core_ns, ended.map(|ended| ended.precision)].into_iter().flatten();
    if numbers.all(is_time) {
        Ok(())
    } else {
        Err("it has a number that is not a time or a precision".into())
    }
}
