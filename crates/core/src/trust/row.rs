//! Marks of one row: disturbances while it was measured, and properties of its samples.

use std::collections::BTreeSet;

use crate::{
    measure::stop::Ending,
    result::{Mark, Samples},
    stats::{self, Summary},
    system::environment::Counters,
};

/// A row is marked if its preemptions are more than this fraction of its samples.
const MAX_PREEMPTED: f64 = 0.01;
/// A row is marked if a hypervisor took more than this fraction of its CPU time.
const MAX_STOLEN: f64 = 0.01;
/// A row is marked if its ranks waited for a CPU for more than this fraction of its time.
const MAX_WAITED: f64 = 0.02;
/// A row is marked if a reading of the clock is more than this fraction of a sample.
const MAX_CLOCK: f64 = 0.01;
/// A row is marked if more than this fraction of its samples started late.
const MAX_LATE: f64 = 0.01;
/// A row of several pairs is marked if they started apart by more than this fraction of a sample.
const MAX_APART: f64 = 0.01;
/// Length of a clock tick in `/proc/stat`, in nanoseconds.
const TICK_NS: f64 = 1e7;

/// What is known of a row when its marks are decided.
#[derive(Debug, Clone, Copy)]
pub struct RowFacts<'a> {
    /// Summary of the samples.
    pub summary: &'a Summary,
    /// Sum of the counters of all ranks of the row.
    pub counters: Counters,
    /// Wall time of the samples times the number of ranks, in nanoseconds.
    pub cpu_ns: f64,
    /// Why sampling ended; `None` for a fixed number of iterations.
    pub ending: Option<Ending>,
    /// Requested precision, as a fraction of the median.
    pub precision: f64,
    /// Whether payloads were checked.
    pub verified: bool,
}

/// Returns the marks that follow from the facts of a row.
pub fn of_row(row: RowFacts<'_>) -> Vec<Mark> {
    let RowFacts { summary, counters, cpu_ns, ending, precision, verified } = row;
    let mut marks = disturbances(summary, counters, cpu_ns);
    marks.extend(no_interval(summary));
    if ending == Some(Ending::OutOfBudget) {
        marks.extend(not_converged(summary, precision));
    }
    if !summary.independent() {
        marks.push(Mark::new(
            "autocorrelated",
            format!("autocorrelated {:.2}", summary.lag1),
            "successive samples resemble each other, by drift or phases: look at the raw samples, raise --max-time",
        ));
    }
    if summary.bimodal {
        marks.push(Mark::new(
            "bimodal",
            "bimodal",
            "samples fall into two groups and the median is in one of them: look at the raw samples and at other launches",
        ));
    }
    if !verified {
        marks.push(Mark::new(
            "unverified",
            "unverified",
            "payloads were not checked: the row does not prove that data arrived right",
        ));
    }
    marks
}

/// Marks a row in which a reading of the clock is a considerable part of a sample.
pub fn costly_clock(overhead_ns: u64, sample_ns: f64) -> Option<Mark> {
    let part = overhead_ns as f64 / sample_ns.max(1.0);
    (part > MAX_CLOCK).then(|| {
        Mark::new(
            "clock_cost",
            format!("clock {:.0}%", part * 100.0),
            format!(
                "each sample contains one reading of the clock, {overhead_ns} ns, which is not subtracted: \
                 --batch 10 divides it by 10"
            ),
        )
    })
}

/// Marks a broadcast whose interval lies below the one-way time of an empty message.
pub fn below_one_way(summary: &Summary, one_way_ns: f64) -> Option<Mark> {
    let upper = summary.ci95.map_or(summary.median, |[_, high]| high);
    (upper < one_way_ns).then(|| {
        Mark::new(
            "below_one_way",
            "below one way",
            format!(
                "an empty message takes {:.3} us one way in this run, so broadcasts overlapped or ranks started apart: \
                 do not read this row as the time of a broadcast",
                one_way_ns / 1e3
            ),
        )
    })
}

/// Marks a row in which ranks started samples after the agreed time.
pub fn late_starts(samples: &[Samples]) -> Option<Mark> {
    let late: BTreeSet<u64> = samples.iter().flat_map(|s| s.late.iter().copied()).collect();
    let all = samples.iter().map(|s| s.elapsed_ns.len()).max().unwrap_or(0);
    let part = late.len() as f64 / all.max(1) as f64;
    (part > MAX_LATE).then(|| {
        Mark::new(
            "late_starts",
            format!("late {:.0}%", part * 100.0),
            "a rank started these samples after the agreed time, and they do not count: give each rank its own CPU",
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
            "starts_apart",
            format!("starts apart {:.0}%", part * 100.0),
            "the pairs started during this part of a sample, while not all of them communicated: give each rank its own CPU, \
             or raise --max-time",
        )
    })
}

/// Returns the mark of a 0-byte broadcast with acknowledgement, for which one byte was sent.
pub fn one_byte() -> Mark {
    Mark::new(
        "one_byte",
        "1 byte",
        "a broadcast of 0 bytes sends no message to acknowledge, so one byte was broadcast: compare it with 1-byte rows",
    )
}

/// Marks what took CPU time from the ranks.
fn disturbances(summary: &Summary, counters: Counters, cpu_ns: f64) -> Vec<Mark> {
    let percent = |part: f64| (part * 100.0).min(100.0);
    let mut marks = Vec::new();
    let preemptions = counters.preemptions;
    if preemptions as f64 > MAX_PREEMPTED * summary.n as f64 {
        marks.push(Mark::new(
            "preempted",
            format!("preempted {preemptions}x"),
            "other programs ran on the ranks' CPUs: stop them, or bind ranks elsewhere",
        ));
    }
    let waited = counters.waited_ns as f64 / cpu_ns.max(1.0);
    if waited > MAX_WAITED {
        marks.push(Mark::new(
            "waited",
            format!("waited {:.0}%", percent(waited)),
            "ranks waited for a CPU during this part of the time: stop other programs, or bind ranks elsewhere",
        ));
    }
    let stolen = counters.stolen_ticks as f64 * TICK_NS / cpu_ns.max(1.0);
    if stolen > MAX_STOLEN {
        marks.push(Mark::new(
            "stolen",
            format!("stolen {:.0}%", percent(stolen)),
            "the hypervisor took CPU time from this virtual machine: measure on a host with dedicated cores",
        ));
    }
    marks
}

fn no_interval(summary: &Summary) -> Option<Mark> {
    let why = match summary.independent() {
        _ if summary.ci95.is_some() => return None,
        false => "samples depend on earlier ones, even as medians of blocks",
        true => "fewer than 6 samples have no interval",
    };
    Some(Mark::new("no_interval", "no interval", format!("{why}: raise --max-time or --iterations")))
}

fn not_converged(summary: &Summary, precision: f64) -> Option<Mark> {
    let reached = match summary.precision() {
        None => "no interval".into(),
        Some(reached) if reached <= precision => return None,
        Some(reached) if reached > 1.0 => "over 100%".into(),
        Some(reached) => format!("{:.1}%", reached * 100.0),
    };
    Some(Mark::new(
        "not_converged",
        format!("not converged ({reached})"),
        format!("precision reached: {reached}, requested: {:.1}%: raise --max-time", precision * 100.0),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(facts: RowFacts<'_>) -> Vec<String> {
        of_row(facts).into_iter().map(|mark| mark.code).collect()
    }

    fn quiet(summary: &Summary) -> RowFacts<'_> {
        RowFacts {
            summary,
            counters: Counters::default(),
            cpu_ns: 1e9,
            ending: Some(Ending::Converged),
            precision: 0.01,
            verified: true,
        }
    }

    #[test]
    fn an_undisturbed_row_gets_no_mark() {
        let summary = Summary::of(&[10.0, 10.1, 10.0, 10.1, 10.0, 10.1, 10.05, 10.0, 10.1, 10.0]).unwrap();
        assert!(of_row(quiet(&summary)).is_empty(), "{:?}", of_row(quiet(&summary)));
    }

    #[test]
    fn each_disturbance_gets_its_mark() {
        let steady = Summary::of(&[10.0; 200]).unwrap();
        let with = |counters| RowFacts { counters, ..quiet(&steady) };
        let preempted = with(Counters { preemptions: 12, ..Counters::default() });
        assert_eq!(of_row(preempted)[0].short, "preempted 12x");
        assert_eq!(codes(with(Counters { stolen_ticks: 20, ..Counters::default() })), ["stolen"]);
        let waited_ns = (quiet(&steady).cpu_ns * 0.3) as u64;
        assert_eq!(of_row(with(Counters { waited_ns, ..Counters::default() }))[0].short, "waited 30%");
    }

    #[test]
    fn each_weakness_of_samples_gets_its_mark() {
        let steady = Summary::of(&[10.0; 200]).unwrap();
        assert_eq!(codes(RowFacts { verified: false, ..quiet(&steady) }), ["unverified"]);
        let wide = Summary::of(&[10.0, 30.0, 12.0, 28.0, 11.0, 29.0, 13.0]).unwrap();
        let late = RowFacts { ending: Some(Ending::OutOfBudget), ..quiet(&wide) };
        assert!(codes(late).contains(&"not_converged".into()));
        let few = Summary::of(&[10.0, 11.0]).unwrap();
        assert_eq!(codes(RowFacts { ending: None, ..quiet(&few) }), ["no_interval"]);
        let drift = Summary::of(&(0..100).map(f64::from).collect::<Vec<_>>()).unwrap();
        assert!(codes(quiet(&drift)).contains(&"autocorrelated".into()));
    }

    #[test]
    fn one_preemption_in_thousands_of_samples_gets_no_mark() {
        let steady = Summary::of(&[10.0; 1000]).unwrap();
        let once =
            RowFacts { counters: Counters { preemptions: 1, ..Counters::default() }, ..quiet(&steady) };
        assert!(of_row(once).is_empty());
    }
}
