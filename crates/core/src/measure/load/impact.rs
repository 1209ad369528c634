//! Impact factors: how many times as long a case takes under a load as without.

use std::collections::BTreeMap;

use crate::{
    benchmark::{Figure, interval_names},
    measure::plan::Under,
    result::{Mark, Measurement, Outcome},
    stats::Summary,
};

/// Name of the load among the values that a row names.
const UNDER: &str = "under";
/// Figures with the factor of the median and of the 99th percentile.
const FACTORS: [&str; 2] = ["impact_times", "impact_p99_times"];
/// A row is marked if the case without load took this much longer or shorter after the loads than before, as a fraction.
const MOST_MOVED: f64 = 0.1;

/// A value with the ends of its interval, if it has one.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Timed {
    value: f64,
    ends: Option<[f64; 2]>,
}

impl Timed {
    /// Returns how many times `base` this is. The ends of the quotient are those of the worst case.
    fn over(self, base: Timed) -> Timed {
        let ends = self.ends.zip(base.ends).map(|([low, high], [least, most])| [low / most, high / least]);
        Timed { value: self.value / base.value, ends }
    }

    /// Returns the geometric mean of both.
    fn and(self, other: Timed) -> Timed {
        let mean = |a: f64, b: f64| (a * b).sqrt();
        let ends = self.ends.zip(other.ends).map(|(a, b)| [mean(a[0], b[0]), mean(a[1], b[1])]);
        Timed { value: mean(self.value, other.value), ends }
    }
}

/// Returns median and 99th percentile of a row; `None` for what it does not have.
fn times(row: &Measurement) -> [Option<Timed>; 2] {
    let summary: Option<&Summary> = row.summary.as_ref().filter(|_| row.outcome == Outcome::Ok);
    let positive = |timed: &Timed| timed.value > 0.0 && timed.ends.is_none_or(|[low, _]| low > 0.0);
    let median = summary.map(|s| Timed { value: s.median, ends: s.ci95 });
    let p99 = summary.and_then(|s| s.p99).map(|p| Timed { value: p.value, ends: p.ci95 });
    [median.filter(positive), p99.filter(positive)]
}

/// Adds impact factors to the rows of one benchmark in one launch: of each load against the case without load, which is the geometric
/// mean of both measurements if it was measured before and after; and of the second measurement against the first.
pub(super) fn describe(rows: &mut [Measurement]) {
    let [before, after] = [Under::Nothing.to_string(), format!("{}{}", Under::Nothing, Under::AGAIN)];
    let case = |row: &Measurement| {
        let mut axes = row.axes.clone();
        let under = axes.remove(UNDER).unwrap_or_default();
        (under, (axes, row.bytes, row.depth, row.pairs))
    };
    let mut bases: BTreeMap<_, [[Option<Timed>; 2]; 2]> = BTreeMap::new();
    for row in rows.iter() {
        let (under, case) = case(row);
        let base = bases.entry(case).or_default();
        match under {
            under if under == before => base[0] = times(row),
            under if under == after => base[1] = times(row),
            _ => {}
        }
    }
    for row in rows {
        let (under, case) = case(row);
        let Some([first, second]) = bases.get(&case).filter(|_| under != before) else { continue };
        let timed = times(row);
        for (at, name) in FACTORS.into_iter().enumerate() {
            let base = match (first[at], second[at]) {
                (Some(first), Some(second)) if under != after => Some(first.and(second)),
                (first, _) => first,
            };
            let Some(factor) = timed[at].zip(base).map(|(timed, base)| timed.over(base)) else { continue };
            row.figures.insert(name.into(), Figure::Value(factor.value));
            // Without an interval in this launch, the names of its ends let the launches together have one.
            let ends = factor.ends.map_or_else(
                || {
                    [(); 2].map(|()| {
                        Figure::Unresolved("an impact factor needs two rows with an interval".into())
                    })
                },
                |ends| ends.map(Figure::Value),
            );
            row.figures.extend(
                interval_names(name).into_iter().flat_map(|names| names.into_iter().zip(ends.clone())),
            );
        }
        row.trust.extend(moved(first[0], second[0]));
    }
}

/// Returns the mark of rows whose base was not the same before and after the loads.
fn moved(before: Option<Timed>, after: Option<Timed>) -> Option<Mark> {
    let factor = after?.over(before?).value;
    (!(1.0 / (1.0 + MOST_MOVED)..=1.0 + MOST_MOVED).contains(&factor)).then(|| {
        let advice = format!(
            "without load the case took {factor:.2} times as long after the loads as before: repeat when the machine is steady"
        );
        Mark::caution("base_moved", "base moved", advice)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{benchmark::Metric, stats::Percentile};

    fn row(under: &str, ns: u64, p99: f64) -> Measurement {
        let summary = Summary::of_batches(&[ns as f64; 40]).map(|summary| Summary {
            p99: Some(Percentile { value: p99, ci95: Some([p99 * 0.9, p99 * 1.1]) }),
            ..summary
        });
        Measurement {
            axes: [(UNDER.to_owned(), under.to_owned())].into(),
            bytes: Some(8),
            summary,
            ..Measurement::new("p2p.latency", format!("p2p.latency/under={under}"), Metric::Latency, 2)
        }
    }

    fn value(row: &Measurement, name: &str) -> Option<f64> {
        match row.figures.get(name) {
            Some(Figure::Value(value)) => Some(*value),
            _ => None,
        }
    }

    #[test]
    fn factors_are_against_the_mean_of_both_bases() {
        let mut rows = vec![
            row("nothing", 400, 500.0),
            row("p2p.bw:4K", 1200, 3000.0),
            row("nothing-again", 900, 500.0),
        ];
        rows[1].bytes = Some(16);
        describe(&mut rows);
        assert!(rows[1].figures.is_empty(), "there is no base of this size");

        rows[1].bytes = Some(8);
        describe(&mut rows);
        assert!(rows[0].figures.is_empty());
        assert_eq!(value(&rows[1], "impact_times"), Some(2.0));
        assert_eq!(value(&rows[1], "impact_p99_times"), Some(6.0));
        let [low, high] = ["low", "high"].map(|end| value(&rows[1], &format!("impact_p99_{end}_times")));
        assert!(low.unwrap() < 5.0 && high.unwrap() > 7.3, "{low:?} {high:?}");
        assert_eq!(value(&rows[2], "impact_times"), Some(2.25));
        assert!(rows[1].trust.iter().any(|mark| mark.code == "base_moved"));
    }

    #[test]
    fn a_factor_without_interval_names_the_ends() {
        let mut rows = vec![row("nothing", 100, 100.0), row("p2p.bw:4K", 300, 300.0)];
        for row in &mut rows {
            row.summary.as_mut().unwrap().ci95 = None;
        }
        describe(&mut rows);
        assert_eq!(value(&rows[1], "impact_times"), Some(3.0));
        assert!(matches!(rows[1].figures["impact_low_times"], Figure::Unresolved(_)));
        assert!(matches!(rows[1].figures["impact_high_times"], Figure::Unresolved(_)));
    }

    #[test]
    fn without_a_base_there_is_no_factor() {
        let mut rows = vec![row("p2p.bw:4K", 1200, 3000.0)];
        describe(&mut rows);
        assert!(rows[0].figures.is_empty() && rows[0].trust.is_empty());
        let mut rows = vec![row("nothing", 100, 100.0), row("p2p.bw:4K", 300, 300.0)];
        rows[1].outcome = Outcome::Failed("x".into());
        describe(&mut rows);
        assert!(rows[1].figures.is_empty(), "a failed row has no factor");
    }
}
