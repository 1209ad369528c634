//! Marks of one row: disturbances while it was measured, and properties of its samples.

use std::collections::BTreeSet;

use ombx_host::{
    control_group::QuotaStops,
    device_counters::{is_error, is_throttling},
    environment::Counters,
};
use ombx_record::{
    order::{sort, sort_by_number},
    result::{
        BACKLOG, Check, CpuQuota, Figures, Growth, Level, Mark, MarkCode, Measurement, OFFERED,
        SATURATED_PERCENT, Samples,
    },
    stats::{self, HeadlineOf, Summary},
};

use crate::{measure::stop::Ending, trust::tolerated};

/// A row is marked if a hypervisor took more than this fraction of its CPU time.
const MAX_STOLEN: f64 = 0.01;
/// A row is marked if its ranks waited for a CPU for more than this fraction of its time.
const MAX_WAITED: f64 = 0.02;
/// A row that waited for more than this fraction of its time, in more than this fraction of its samples, is at least a caution: the
/// programs that ran meanwhile also used the caches, whose effect on later samples has no bound.
const OFTEN_WAITED: [f64; 2] = [0.1, 0.05];
/// A row is marked if a reading of the clock is more than this fraction of a sample.
const MAX_CLOCK: f64 = 0.01;
/// A row is marked if more than this fraction of its samples started late.
const MAX_LATE: f64 = 0.01;
/// A row of several pairs is marked if they started apart by more than this fraction of a sample.
const MAX_APART: f64 = 0.01;
/// Stolen time below three ticks of the kernel's clock is not distinguished from rounding.
const MIN_STOLEN_NS: u64 = 30_000_000;
/// A row is marked if synchronised clocks differ by more than this fraction of its time.
const MAX_CLOCKS_APART: f64 = 0.05;

/// A row is invalid if a clock differs from that of its host by more than this fraction.
const MAX_CLOCK_ERROR: f64 = 1e-3;

/// What is known of a row when its marks are decided.
#[derive(Debug, Clone, Copy)]
pub struct RowFacts<'a> {
    /// Aggregated time of one leg for each sample, in nanoseconds.
    pub samples: HeadlineOf<'a>,
    /// Summary of these samples.
    pub summary: &'a Summary,
    /// Number of legs in one sample.
    pub legs_per_sample: f64,
    /// Counters of all ranks of the row.
    pub counters: Counters,
    /// Smallest CPU quota of the control groups of the ranks.
    pub quota: Option<CpuQuota>,
    /// Counters of the hosts' devices that grew.
    pub grown: &'a [Growth],
    /// Wall time of sampling, in nanoseconds.
    pub wall_ns: f64,
    /// Number of ranks, or of CPUs that are busy at a time.
    pub ranks: u32,
    /// Why sampling ended; `None` for a fixed number of iterations.
    pub ending: Option<Ending>,
    /// Requested precision, as a fraction of the median.
    pub precision: f64,
    /// Result of the payload verification.
    pub check: &'a Check,
    /// Number of whole iterations whose payload was checked; `None` if another launch checks them.
    pub checked: Option<u64>,
}

/// Returns the marks that follow from the facts of a row.
pub fn of_row(row: RowFacts<'_>) -> Vec<Mark> {
    let RowFacts { summary, ending, precision, .. } = row;
    let mut marks = disturbances(row);
    if ending == Some(Ending::OutOfBudget) {
        marks.extend(not_converged(summary, precision));
    }
    if ending == Some(Ending::Slowed) {
        marks.push(slowed());
    }
    marks.extend(of_samples(summary));
    marks.extend(unverified(row.check, row.checked));
    marks
}

/// Returns the marks that follow from the samples alone.
pub fn of_samples(summary: &Summary) -> Vec<Mark> {
    let mut marks = Vec::from_iter(no_interval(summary));
    if !summary.independent() {
        marks.push(Mark::new(
            MarkCode::Autocorrelated,
            format!("autocorrelated {:.2}", summary.lag1),
            "successive samples resemble each other, by drift or phases",
        ));
    }
    if summary.bimodal {
        marks.push(Mark::new(
            MarkCode::Bimodal,
            "bimodal",
            "samples fall into two groups and the median is in one of them",
        ));
    }
    marks
}

/// Minimum samples of a round whose quartiles count.
const LEAST_OF_ROUND: usize = 15;
/// Factor by which levels differ.
const LEVELS_APART: f64 = 1.1;

/// Marks a row whose rounds differ by more than their scatter, to and fro. Successive rounds differ in the number of messages before them,
/// and little in time: the lower quartile of a slow round is above 1.1 times the upper quartile of a fast one. They are those at 10 and 90 % of the rounds.
pub fn several_levels(rounds: &[Vec<f64>], row: &Measurement) -> Option<Mark> {
    let mut levels: Vec<[f64; 3]> = rounds.iter().filter_map(|round| quartiles(round)).collect();
    let medians: Vec<f64> = levels.iter().map(|[_, median, _]| *median).collect();
    levels.sort_by(|one, other| one[1].total_cmp(&other[1]));
    let fast = stats::quantile_index(levels.len().max(1), 0.1);
    let (fast, slow) = (levels.get(fast)?, levels.get(levels.len().checked_sub(1 + fast)?)?);
    let differs = slow[0] > LEVELS_APART * fast[2] && stats::lag1(&medians) <= stats::DRIFT;
    let ends = row.in_unit(fast[1]).zip(row.in_unit(slow[1])).filter(|_| differs);
    ends.map(|(one, other)| {
        let levels = format!(
            "levels from {} to {} {}",
            number(one.min(other)),
            number(one.max(other)),
            row.metric.unit()
        );
        let cause = format!(
            "{levels}: rounds differ by more than their samples scatter, to and fro; the figure is their mean"
        );
        Mark::new(MarkCode::SeveralLevels, levels, cause)
    })
}

/// Returns the quartiles of a round; `None` of a short one.
fn quartiles(round: &[f64]) -> Option<[f64; 3]> {
    let mut sorted = round.to_vec();
    sort(&mut sorted);
    let all = [0.25, 0.5, 0.75].map(|q| stats::quantile(&sorted, q));
    let [Some(low), Some(median), Some(high)] = all else { return None };
    (round.len() >= LEAST_OF_ROUND).then_some([low, median, high])
}

/// Returns three significant digits.
fn number(value: f64) -> String {
    let decimals = (2 - value.abs().max(1e-9).log10().floor() as i32).clamp(0, 6) as usize;
    format!("{value:.decimals$}")
}

/// Part of a sample above which a reading of the clock is more than a note. Launches differ by more than a smaller one.
const CLOCK_PART_OF_CAUTION: f64 = 0.05;

/// Marks a row in which a reading of the clock is a considerable part of a sample.
pub fn costly_clock(overhead_ns: u64, sample_ns: f64) -> Option<Mark> {
    let part = overhead_ns as f64 / sample_ns.max(1.0);
    let level = if part > CLOCK_PART_OF_CAUTION { Level::Caution } else { Level::Note };
    (part > MAX_CLOCK).then(|| {
        let cause = format!(
            "each sample contains one reading of the clock, {overhead_ns} ns, which is not subtracted"
        );
        Mark::new(MarkCode::ClockCost, format!("clock {:.0}%", part * 100.0), cause).at(level)
    })
}

/// Marks a row in which the clock of a rank ran faster or slower than the clock of its host, by these parts. The kernel moves its clock by
/// 0.05 % at most to adjust it.
pub fn wrong_clock(errors: impl Iterator<Item = f64>) -> Option<Mark> {
    let (rank, error) = (0..).zip(errors).max_by(|a: &(u32, f64), b| a.1.total_cmp(&b.1))?;
    (error > MAX_CLOCK_ERROR).then(|| {
        let percent = error * 100.0;
        Mark::new(
            MarkCode::WrongClock,
            format!("clock off {percent:.1}%"),
            format!(
                "the clock of rank {rank} differs from that of its host by {percent:.1} %, and so do its times: \
                 the time stamp counter was measured wrong, or changed, as when a virtual machine moves"
            ),
        )
    })
}

/// Marks a broadcast whose interval lies below the one-way time of an empty message.
pub fn below_one_way(summary: &Summary, one_way_ns: f64) -> Option<Mark> {
    let upper = summary.ci95.map_or(summary.median, |[_, high]| high);
    (upper < one_way_ns).then(|| {
        let cause = format!(
            "an empty message takes {:.3} us one way in this run, so broadcasts overlapped or ranks started apart",
            one_way_ns / 1e3
        );
        Mark::new(MarkCode::BelowOneWay, "below one way", cause)
    })
}

/// Marks a row in which ranks started samples after the agreed time.
pub fn late_starts(samples: &[Samples]) -> Option<Mark> {
    let late: BTreeSet<u64> = samples.iter().flat_map(|s| s.late.iter().copied()).collect();
    let all = samples.iter().map(|s| s.elapsed_ns.len()).max().unwrap_or(0);
    let part = late.len() as f64 / all.max(1) as f64;
    (part > MAX_LATE).then(|| {
        Mark::new(
            MarkCode::LateStarts,
            format!("late {:.0}%", part * 100.0),
            "a rank started these samples after the agreed time, and they do not count",
        )
    })
}

/// Marks a row of several pairs whose starts were apart by more than 1 % of a sample.
pub fn starts_apart(samples: &[Samples]) -> Option<Mark> {
    let number = samples.iter().map(|s| s.started_ns.len()).min().filter(|number| *number > 0)?;
    let median_of = |of: &dyn Fn(&Samples, usize) -> u64| {
        let largest = |i| samples.iter().map(|s| of(s, i)).max().unwrap_or(0) as f64;
        stats::median(&(0..number).map(largest).collect::<Vec<f64>>())
    };
    let part = median_of(&|s, i| s.started_ns[i])? / median_of(&Samples::until_end_ns)?;
    (part > MAX_APART).then(|| {
        Mark::new(
            MarkCode::StartsApart,
            format!("starts apart {:.0}%", part * 100.0),
            "the pairs started during this part of a sample, while not all of them communicated",
        )
    })
}

/// Marks a row of requests whose backlog grew: its latency depends on how long the row lasts.
pub fn saturated(figures: &Figures) -> Option<Mark> {
    let value = |name: &str| figures.get(name)?.value();
    let (offered, backlog) = (value(OFFERED)?, value(BACKLOG)?);
    (backlog > SATURATED_PERCENT).then(|| {
        Mark::with_advice(
            MarkCode::Saturated,
            "saturated",
            format!(
                "less than the offered rate was achieved, so that the latency grew during the row and \
                 depends on its duration: offer less than {offered} requests per second, or raise --window \
                 if the achieved rate is below that of the link"
            ),
        )
    })
}

/// Marks a row in windows whose clocks differ by a considerable part of its time.
pub fn clocks_apart(range_ns: f64, summary: &Summary) -> Option<Mark> {
    let part = range_ns / summary.median.max(1.0);
    (part > MAX_CLOCKS_APART).then(|| {
        let cause = format!(
            "the synchronised clocks differ by up to {:.3} us, and the time from the first start to the last end \
             contains it",
            range_ns / 1e3
        );
        Mark::new(MarkCode::ClocksApart, format!("clocks apart {:.0}%", part * 100.0), cause)
    })
}

/// Returns the mark of a 0-byte broadcast with acknowledgement, for which one byte was sent.
pub fn one_byte() -> Mark {
    let cause = "a broadcast of 0 bytes sends no message to acknowledge, so one byte was broadcast";
    Mark::new(MarkCode::OneByte, "1 byte", cause)
}

/// Names at most this many counters.
const NAMED_COUNTERS: usize = 3;

/// Returns a phrase about counters that grew, `n2 eth0 rx_errors +12`, and the sum of their increases.
fn named<'a>(grown: impl Iterator<Item = &'a Growth>) -> (String, u64) {
    let mut all: Vec<&Growth> = grown.collect();
    let sum = all.iter().map(|one| one.by).fold(0, u64::saturating_add);
    sort_by_number(&mut all, |one| -i64::try_from(one.by).unwrap_or(i64::MAX));
    let named = all.iter().take(NAMED_COUNTERS).map(|one| format!("{} {one}", one.host));
    let more = all.len().saturating_sub(NAMED_COUNTERS);
    let more = (more > 0).then(|| format!("{more} more"));
    (named.chain(more).collect::<Vec<_>>().join(", "), sum)
}

/// Marks a row if CPUs were too hot and lowered their frequency in it, or since the row before it.
pub fn throttled(grown: &[Growth]) -> Option<Mark> {
    let (named, number) = named(grown.iter().filter(|one| is_throttling(one)));
    (number > 0).then(|| {
        Mark::new(
            MarkCode::Throttled,
            named,
            "CPUs were too hot and lowered their frequency in this row, or in the second before it, \
             which slows every sample",
        )
    })
}

/// Marks what took CPU time from the ranks. The level follows from the largest effect that it can have on the headline. Without such a bound
/// it is at least a caution.
fn disturbances(row: RowFacts<'_>) -> Vec<Mark> {
    let RowFacts { counters, wall_ns, ranks, legs_per_sample, samples, .. } = row;
    let tolerated = tolerated(row.summary, row.precision);
    let cpu_ns = (wall_ns * f64::from(ranks)).max(1.0);
    let part = |fall: f64| samples.value().filter(|value| *value > 0.0).map(|value| (fall / value).max(0.0));
    let interrupted = |count: u64| samples.fall_without_samples(count).and_then(part);
    let delayed = |ns: f64| samples.fall_without_delays(ns / legs_per_sample).and_then(part);
    let mut marks = Vec::new();
    let is_stopped = counters.stops.number > 0;
    let mut add = |code: MarkCode, what: String, effect: Option<f64>, cause: &str| {
        // Ranks that their quota stops are counted as interrupted and as waiting, and no other program need be at fault.
        let takes_cpus = matches!(code, MarkCode::Preempted | MarkCode::Waited);
        let remedy = if is_stopped && takes_cpus { &MarkCode::QuotaStops } else { &code };
        let (level, extent) = match effect {
            Some(effect) => (
                Level::of_effect(effect, tolerated),
                "which makes the time of the row at most the part in brackets too long",
            ),
            None => {
                (Level::Caution, "and no sample is known to be undisturbed, so that the effect is unknown")
            }
        };
        let advice = format!("{cause}, {extent}: {}", remedy.advice());
        marks.push(Mark::with_advice(code, what, advice).at(level).bounded(effect));
    };
    // The kernel counts each wait of an interrupted rank, if it counts waits.
    let waits = (counters.slices > 0).then_some(counters.waited_ns as f64).and_then(delayed);
    if is_stopped {
        let QuotaStops { number: stops, ns } = counters.stops;
        // Each stop may interrupt every rank, for as long as the group was stopped.
        let all = u64::from(ranks);
        let effect = least([interrupted(stops.saturating_mul(all)), delayed(ns as f64 * all as f64)]);
        let quota = row.quota.map_or_else(String::new, |quota| format!(", with a quota of {quota},"));
        let times = if stops == 1 { "once".into() } else { format!("{stops} times") };
        let ms = number(ns as f64 / 1e6);
        let cause =
            format!("the control group{quota} stopped the ranks {times}, for {ms} ms added over CPUs");
        add(MarkCode::QuotaStops, format!("stopped {stops}x by quota"), effect, &cause);
    }
    if counters.preemptions > 0 {
        let cause = if is_stopped {
            "the kernel took the CPU from ranks, among other reasons because their quota was used up"
        } else {
            "other programs ran on the ranks' CPUs"
        };
        add(
            MarkCode::Preempted,
            format!("preempted {}x", counters.preemptions),
            least([interrupted(counters.preemptions), waits]),
            cause,
        );
    }
    let errors = row.grown.iter().filter(|one| is_error(one) && !is_throttling(one));
    let (errors, number) = named(errors);
    if number > 0 {
        add(
            MarkCode::DeviceErrors,
            errors,
            interrupted(number),
            "these counters grew in this row, or in the second before it; they stand still while hardware is \
             healthy, and each error may have delayed a message",
        );
    }
    let waited = counters.waited_ns as f64 / cpu_ns;
    if waited > MAX_WAITED {
        let in_samples = counters.slices as f64 / samples.samples().max(1) as f64;
        let is_often = waited > OFTEN_WAITED[0] && in_samples > OFTEN_WAITED[1];
        let cause = if is_stopped {
            "ranks waited for a CPU during the first part of the time, among other reasons because their quota was used up"
        } else if is_often {
            "ranks waited for a CPU during this part of the time, and what ran meanwhile also used the caches"
        } else {
            "ranks waited for a CPU during the first part of the time"
        };
        let effect = least([interrupted(counters.slices), waits]).filter(|_| !is_often);
        add(MarkCode::Waited, format!("waited {:.0}%", (waited * 100.0).min(100.0)), effect, cause);
    }
    let stolen = counters.stolen_ns as f64 / wall_ns.max(1.0);
    if stolen > MAX_STOLEN && counters.stolen_ns >= MIN_STOLEN_NS {
        add(
            MarkCode::Stolen,
            format!("stolen {:.0}%", (stolen * 100.0).min(100.0)),
            delayed(stolen * cpu_ns),
            "the hypervisor took CPU time from this virtual machine",
        );
    }
    marks
}

/// Returns the smallest of the bounds that exist.
fn least(bounds: [Option<f64>; 2]) -> Option<f64> {
    bounds.into_iter().flatten().reduce(f64::min)
}

fn unverified(check: &Check, checked: Option<u64>) -> Option<Mark> {
    let (level, why) = match check {
        Check::Passed if checked == Some(0) => (
            Level::Note,
            "each check sees a part of what an iteration delivers, and there was no time to check a whole \
             one (--verify full, or a smaller --window)",
        ),
        Check::Passed | Check::Failed(_) => return None,
        Check::Unsupported => (Level::Note, "this benchmark cannot check payloads"),
        Check::Off => (Level::Caution, "payloads were not checked, because verification is off"),
    };
    let advice = format!("{why}: the row does not prove that data arrived right");
    Some(Mark::with_advice(MarkCode::Unverified, "unverified", advice).at(level))
}

fn no_interval(summary: &Summary) -> Option<Mark> {
    if summary.ci95.is_some() {
        return None;
    }
    let why = if summary.independent() {
        "fewer than 6 samples have no interval"
    } else {
        "samples depend on earlier ones, even as medians of blocks"
    };
    Some(Mark::new(MarkCode::NoInterval, "no interval", why))
}

/// Marks a row that took many times longer than planned.
fn slowed() -> Mark {
    let cause = "the row took ten times as long as planned and was ended with fewer samples";
    Mark::new(MarkCode::Slowed, "became slow", cause)
}

fn not_converged(summary: &Summary, precision: f64) -> Option<Mark> {
    let reached = match summary.precision() {
        None => "no interval".into(),
        Some(reached) if reached <= precision => return None,
        Some(reached) if reached > 1.0 => "over 100%".into(),
        Some(reached) => format!("{:.1}%", reached * 100.0),
    };
    Some(Mark::new(
        MarkCode::NotConverged,
        format!("not converged ({reached})"),
        format!("precision reached: {reached}, requested: {:.1}%", precision * 100.0),
    ))
}

#[cfg(test)]
mod tests;
