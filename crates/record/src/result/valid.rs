//! Conditions that every row meets, both before it is written and after it is read. Errors name the violated one.

use crate::{
    order::sort,
    result::{Check, Figure, Launched, Measurement, Outcome, OverLaunches, Samples, StateFigure},
    stats::{Percentile, Summary, order_bounds, quantile_index},
};

pub(crate) fn is_finite_and_not_negative(ns: f64) -> bool {
    ns.is_finite() && ns >= 0.0
}

/// Checks a row, both before writing and after reading. The error names the violated condition.
pub(crate) fn check_row(row: &Measurement) -> Result<(), String> {
    let must = |ok: bool, message: &str| if ok { Ok(()) } else { Err(message.to_owned()) };
    must(row.ranks > 0 && row.pairs > 0, "ranks or pairs is 0")?;
    must(row.depth != Some(0), "depth is 0")?;
    must(row.work.is_none_or(|work| work.legs > 0), "work.legs is 0")?;
    must(row.bus.is_none_or(|bus| is_finite_and_not_negative(bus.factor)), "bus.factor is not a factor")?;
    must(row.samples.iter().all(|s| s.batch > 0), "batch is 0")?;
    must(row.tail.iter().all(|s| s.batch == 1), "tail has a batch that is not 1")?;
    let whole = |s: &Samples| s.started_ns.is_empty() || s.started_ns.len() == s.elapsed_ns.len();
    must(row.samples.iter().all(whole), "started_ns and elapsed_ns have different lengths")?;
    let divides = |s: &Samples| s.rounds.is_none_or(|rounds| rounds.samples > 1);
    let are_alike = row.samples.windows(2).all(|pair| pair[0].rounds == pair[1].rounds);
    must(
        row.samples.iter().all(divides) && are_alike,
        "rounds have no two samples, or differ between ranks",
    )?;
    must(row.tail.iter().all(|s| s.rounds.is_none()), "tail has rounds")?;
    let mut trips = row.samples.iter().chain(&row.tail).filter_map(|s| s.round_trips.as_ref());
    must(trips.all(|r| r.batch > 0 && r.halves <= 2), "round_trips has batch 0 or more than two halves")?;
    let corrupt = matches!(row.check, Check::Failed(_));
    let failed = matches!(row.outcome, Outcome::Failed(_));
    must(!corrupt || failed, "a failed check needs the outcome failed")?;
    let finite = |figure: &Figure| !matches!(figure, Figure::Value(x) if !x.is_finite());
    must(row.figures.values().all(finite), "a figure is not a finite number")?;
    row.launches.as_ref().map_or(Ok(()), check_launches)?;
    row.summary.as_ref().map_or(Ok(()), check_summary)
}

fn check_launches(over: &OverLaunches) -> Result<(), String> {
    if over.batch == 0 || !over.medians_ns.iter().all(|ns| is_finite_and_not_negative(*ns)) {
        return Err("launches has a median that is not a time, or batch 0".into());
    }
    let can_be = |state: &StateFigure| is_possible(state, over.medians_ns.len());
    if over.states.iter().all(can_be) && over.elapsed_s.is_none_or(is_finite_and_not_negative) {
        Ok(())
    } else {
        Err("launches has a state or a time that cannot be".into())
    }
}

/// Returns whether a state of a machine can be one of this number of launches.
fn is_possible(state: &StateFigure, launches: usize) -> bool {
    let ends = state.ends_ns.iter().flatten().chain(&state.core_to_core_ns);
    is_finite_and_not_negative(state.median_ns)
        && ends.copied().all(is_finite_and_not_negative)
        && (0.0..=1.0).contains(&state.coverage)
        && state.launches.iter().all(|at| *at < launches)
}

fn check_summary(summary: &Summary) -> Result<(), String> {
    let Summary { median, min, mean, max, mad, .. } = *summary;
    let times = [("median_ns", median), ("min_ns", min), ("mean_ns", mean), ("max_ns", max), ("mad_ns", mad)];
    let percentiles = [("p95", summary.p95), ("p99", summary.p99), ("p999", summary.p999)];
    let percentiles = percentiles.into_iter().filter_map(|(name, percentile)| Some((name, percentile?)));
    let values = percentiles.clone().map(|(name, Percentile { value, .. })| (name, value));
    for (name, time) in times.into_iter().chain(values) {
        if !is_finite_and_not_negative(time) {
            return Err(format!("{name} is {time}, which is not a time"));
        }
    }
    let intervals = percentiles.filter_map(|(name, Percentile { ci95, .. })| Some((name, ci95?)));
    for (name, [low, high]) in summary.ci95.map(|ends| ("ci95_ns", ends)).into_iter().chain(intervals) {
        if !(is_finite_and_not_negative(low) && high.is_finite() && low <= high) {
            return Err(format!("the interval of {name} is not two ascending times"));
        }
    }
    if summary.n == 0 {
        return Err("a summary has no samples".into());
    }
    if !summary.lag1.is_finite() {
        return Err(format!("lag1 is {}", summary.lag1));
    }
    if !(min <= median && median <= max) {
        return Err("median_ns is not between min_ns and max_ns".into());
    }
    Ok(())
}

/// Checks that the figures of a row follow from its samples, whatever its checksum says. A row without samples passes.
pub(crate) fn follows_from_samples(row: &Measurement) -> Result<(), String> {
    let (Some(given), Some(work)) = (&row.summary, row.work) else { return Ok(()) };
    let mut times = Measurement::combine(&row.samples, work.legs);
    let Some(last) = times.len().checked_sub(1) else { return Ok(()) };
    let mean = times.iter().sum::<f64>() / times.len() as f64;
    sort(&mut times);
    // The headline of several pairs is that of the total.
    let is_total = row.samples.iter().any(|samples| !samples.started_ns.is_empty());
    let rounds = Measurement::combine_rounds(&row.samples, work.legs);
    let in_rounds = Summary::of_rounds(&rounds).map(|summary| summary.median);
    let middle = match in_rounds {
        Some(mean) => [mean; 2],
        None if is_total => [mean; 2],
        None => [times[last / 2], times[last.div_ceil(2)]],
    };
    let narrowest = bounds(&times, 0.5);
    let mut single = Measurement::combine(row.of_single_iterations(), work.legs);
    sort(&mut single);
    let figures = [
        ("n", given.n == times.len()),
        ("median_ns", is_about(given.median, middle)),
        ("min_ns", is_about(given.min, [times[0]; 2])),
        ("mean_ns", is_about(given.mean, [mean; 2])),
        ("max_ns", is_about(given.max, [times[last]; 2])),
        ("ci95_ns", is_total || in_rounds.is_some() || contains(given.ci95, narrowest)),
        ("p95", is_percentile(given.p95.as_ref(), 0.95, &single)),
        ("p99", is_percentile(given.p99.as_ref(), 0.99, &single)),
        ("p999", is_percentile(given.p999.as_ref(), 0.999, &single)),
    ];
    match figures.into_iter().find(|(_, follows)| !follows) {
        None => Ok(()),
        Some((name, _)) => Err(format!("{name} of {} does not follow from its samples", row.key)),
    }
}

/// Returns the interval of a quantile of independent samples, which are sorted.
fn bounds(times: &[f64], quantile: f64) -> Option<[f64; 2]> {
    order_bounds(times.len(), quantile).map(|(low, high)| [times[low - 1], times[high - 1]])
}

/// Returns whether a percentile, if there is one, is that of sorted times of single iterations.
fn is_percentile(given: Option<&Percentile>, quantile: f64, single: &[f64]) -> bool {
    given.is_none_or(|given| {
        !single.is_empty()
            && is_about(given.value, [single[quantile_index(single.len(), quantile)]; 2])
            && contains(given.ci95, bounds(single, quantile))
    })
}

/// Returns whether a time lies between two others, but for rounding.
fn is_about(time: f64, [low, high]: [f64; 2]) -> bool {
    let rounding = 1e-6 * high.abs().max(1.0);
    (low - rounding..=high + rounding).contains(&time)
}

/// Returns whether an interval contains that of independent samples, the narrowest one. `None` passes: it claims nothing.
fn contains(interval: Option<[f64; 2]>, narrowest: Option<[f64; 2]>) -> bool {
    interval.is_none_or(|[low, high]| {
        narrowest.is_some_and(|[least, most]| {
            is_about(low.min(least), [low; 2]) && is_about(high.max(most), [high; 2])
        })
    })
}

/// Checks what is known when a launch has ended.
pub(crate) fn check_launched(
    Launched { core_to_core_ns, elapsed_s, ended }: &Launched,
) -> Result<(), String> {
    let mut numbers =
        [Some(*elapsed_s), *core_to_core_ns, ended.map(|ended| ended.precision)].into_iter().flatten();
    if numbers.all(is_finite_and_not_negative) {
        Ok(())
    } else {
        Err("it has a number that is not a time or a precision".into())
    }
}

#[cfg(test)]
mod tests {
    use crate::result::valid::*;

    #[test]
    fn every_interval_is_of_times() {
        let summary = Summary::of_batches(&[1.0; 20]).unwrap();
        assert_eq!(check_summary(&summary), Ok(()));
        for ends in [[-1.0, 2.0], [2.0, 1.0], [1.0, f64::INFINITY], [f64::NAN, 1.0]] {
            let why = "the interval of ci95_ns is not two ascending times".to_owned();
            assert_eq!(check_summary(&Summary { ci95: Some(ends), ..summary.clone() }), Err(why));
            let why = "the interval of p99 is not two ascending times".to_owned();
            let p99 = Some(Percentile { value: 1.0, ci95: Some(ends) });
            assert_eq!(check_summary(&Summary { p99, ..summary.clone() }), Err(why));
        }
    }
}
