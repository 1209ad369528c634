//! Limits of rows, and whether the interval of a row meets them.

use ombx_core::{
    benchmark::Metric,
    result::{Level, Mark, Measurement},
};

/// Mark of debug builds. Their figures are compared with limits of debug builds.
const OF_BUILD: &str = "debug_build";

/// How a row stands to a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// The whole interval meets the limit.
    Met,
    /// The limit is inside the interval, there is no interval, or other work disturbed the row.
    Undecided,
    /// The whole interval misses the limit.
    Missed,
}

/// Returns how a row stands to a limit in the unit of its headline: a maximum time, or a minimum bandwidth. `None` without a headline.
///
/// A row with an invalid mark misses the limit only if its fastest sample does: other work can slow samples down, not all of them up.
pub fn standing(row: &Measurement, limit: f64) -> Option<Standing> {
    let headline = row.headline()?;
    let misses = |value: f64| match row.metric {
        Metric::Latency => value > limit,
        Metric::Bandwidth => value < limit,
    };
    let fastest = || row.summary.as_ref().and_then(|summary| row.in_unit(summary.min));
    Some(match headline.ci95.map(|ends| ends.map(misses)) {
        Some([false, false]) => Standing::Met,
        Some([true, true]) if disturbance(row).is_none() || fastest().is_some_and(misses) => Standing::Missed,
        _ => Standing::Undecided,
    })
}

/// Returns a mark because of which no verdict may rest on the median of a row.
pub fn disturbance(row: &Measurement) -> Option<&Mark> {
    row.marks(Level::Invalid).find(|mark| mark.code != OF_BUILD)
}

#[cfg(test)]
mod tests {
    use ombx_core::{
        benchmark::{Aggregation, Work},
        result::Samples,
        stats::Summary,
        system::clock::Facts,
    };

    use super::*;

    /// Returns a row with this interval around 10 us; of a bandwidth of 1000 bytes in that time.
    fn row(metric: Metric, ends_us: Option<[f64; 2]>) -> Measurement {
        let samples =
            vec![Samples { batch: 1, elapsed_ns: vec![9_000, 10_000, 11_000], ..Samples::default() }];
        let clock = Facts { source: "tsc", resolution_ns: 1, overhead_ns: 1 };
        let summary: Option<Summary> = Measurement::summarise(&samples, 1, clock);
        let summary = summary.map(|s| Summary { ci95: ends_us.map(|ends| ends.map(|us| us * 1e3)), ..s });
        let work = Some(Work { bytes: 1000, ops: 1, legs: 1 });
        Measurement {
            summary,
            work,
            aggregation: Aggregation::Origin,
            ..Measurement::new("b", "b/", metric, 2)
        }
    }

    #[test]
    fn the_interval_decides() {
        let row = row(Metric::Latency, Some([9.5, 10.5]));
        let of = |limit| standing(&row, limit).unwrap();
        assert_eq!(
            [11.0, 10.5, 10.2, 9.5, 9.4].map(of),
            [Standing::Met, Standing::Met, Standing::Undecided, Standing::Undecided, Standing::Missed]
        );
    }

    #[test]
    fn a_bandwidth_has_a_minimum() {
        // 1000 bytes in 10 us are 100 MB/s.
        let row = row(Metric::Bandwidth, Some([8.0, 12.5]));
        let of = |limit| standing(&row, limit).unwrap();
        assert_eq!([70.0, 100.0, 130.0].map(of), [Standing::Met, Standing::Undecided, Standing::Missed]);
    }

    #[test]
    fn nothing_is_decided_without_an_interval_or_a_figure() {
        assert_eq!(standing(&row(Metric::Latency, None), 1.0), Some(Standing::Undecided));
        let skipped = Measurement::new("b", "b/", Metric::Latency, 2);
        assert_eq!(standing(&skipped, 1.0), None);
    }

    #[test]
    fn a_disturbed_row_misses_a_limit_only_with_its_fastest_sample() {
        let mut row = row(Metric::Latency, Some([9.9, 10.5]));
        row.trust = vec![Mark::invalid("debug_build", "debug build", "build with --release")];
        assert_eq!(standing(&row, 9.5), Some(Standing::Missed));
        row.trust.push(Mark::invalid("preempted", "preempted 9x", "other processes ran"));
        assert_eq!(standing(&row, 9.5), Some(Standing::Undecided));
        assert_eq!(standing(&row, 8.5), Some(Standing::Missed));
        assert_eq!(disturbance(&row).map(|mark| mark.code.as_str()), Some("preempted"));
    }
}
