//! The knee of latency against offered load: the highest offered rate that was achieved.

use std::collections::BTreeMap;

use ombx_record::result::{ACHIEVED, BACKLOG, Measurement, OFFERED, Outcome, SATURATED_PERCENT};

use crate::number::figure;

/// Name of the offered rate among the values that a row names.
pub const RATE: &str = "rate";
/// Figures with the ends of the interval of the achieved rate.
pub const ENDS: [&str; 2] = ["achieved_low_rps", "achieved_high_rps"];

/// One offered rate of a series.
#[derive(Debug, Clone, PartialEq)]
struct Load {
    offered: f64,
    achieved: f64,
    /// Ends of the interval of the achieved rate.
    interval: Option<[f64; 2]>,
    saturated: bool,
}

impl Load {
    /// Returns the load of a row; `None` if the row has none or its figures are unresolved.
    fn from_row(row: &Measurement) -> Option<Load> {
        let interval = row.figure(ENDS[0]).zip(row.figure(ENDS[1])).map(<[f64; 2]>::from);
        Some(Load {
            offered: row.figure(OFFERED)?,
            achieved: row.figure(ACHIEVED)?,
            interval,
            saturated: row.figure(BACKLOG)? > SATURATED_PERCENT,
        })
    }

    fn in_words(&self) -> String {
        let interval = self.interval.map(|ends| {
            let [low, high] = ends.map(figure);
            format!(", 95% interval {low} .. {high}")
        });
        format!("{} of {:.0} requests/s{}", figure(self.achieved), self.offered, interval.unwrap_or_default())
    }
}

/// Knee of a series of offered rates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Knee {
    /// Highest offered rate that was achieved, below the lowest that was not, in requests per second; `None` if none was.
    pub achieved: Option<f64>,
    /// Lowest offered rate that was not achieved; `None` if all were.
    pub saturated: Option<f64>,
}

/// Rows that differ in the rate only.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct RateSeries {
    bench: String,
    bytes: u64,
    depth: Option<u32>,
    /// Every value that the rows name but the rate.
    axes: BTreeMap<String, String>,
}

/// Loads by series.
#[derive(Debug, Clone, Default)]
pub struct Knees(BTreeMap<RateSeries, Vec<Load>>);

impl Knees {
    /// Adds a row if it has an offered rate.
    pub fn add(&mut self, row: &Measurement) {
        let Some(load) = Load::from_row(row).filter(|_| row.outcome == Outcome::Ok) else { return };
        let mut axes = row.axes.clone();
        axes.remove(RATE);
        let (bench, bytes) = (row.bench.clone(), row.bytes.unwrap_or(0));
        let series = RateSeries { bench, bytes, depth: row.depth, axes };
        self.0.entry(series).or_default().push(load);
    }

    /// Returns the knee of each series.
    pub fn knees(&self) -> Vec<Knee> {
        self.0.values().map(|loads| knee(loads)).collect()
    }

    /// Returns a sentence for each series of at least two rates.
    pub fn sentences(&self) -> Vec<String> {
        let several = self.0.iter().filter(|(_, loads)| loads.len() > 1);
        several
            .map(|(series, loads)| {
                let size = format!("knee of {}", self.in_words(series));
                match ends(loads) {
                    (Some(achieved), Some(saturated)) => format!(
                        "{size}: between {:.0} requests/s, which was achieved, and {:.0}, which was not (achieved: {})",
                        achieved.offered,
                        saturated.offered,
                        saturated.in_words()
                    ),
                    (None, Some(saturated)) => format!(
                        "{size}: below {:.0} requests/s, the lowest rate (achieved: {}); offer less",
                        saturated.offered,
                        saturated.in_words()
                    ),
                    (Some(achieved), None) => format!(
                        "{size}: above {:.0} requests/s, the highest rate, which was achieved; offer more",
                        achieved.offered
                    ),
                    (None, None) => format!("{size}: n/a"),
                }
            })
            .collect()
    }

    /// Returns benchmark and size of a series, and the values in which others of the benchmark differ from it.
    fn in_words(&self, series: &RateSeries) -> String {
        let RateSeries { bench, bytes, depth, axes } = series;
        let others = || self.0.keys().filter(|other| other.bench == *bench);
        let differs =
            |(name, value): &(&String, &String)| others().any(|o| o.axes.get(*name) != Some(*value));
        let values = axes.iter().filter(differs).map(|(name, value)| format!(" {name}={value}"));
        let window = depth.filter(|_| others().any(|other| other.depth != *depth));
        let window = window.map_or(String::new(), |depth| format!(" window {depth}"));
        format!("{bench}{}{window} at {bytes} bytes", values.collect::<String>())
    }
}

/// Returns the knee of the loads of a series.
fn knee(loads: &[Load]) -> Knee {
    let (achieved, saturated) = ends(loads);
    Knee { achieved: achieved.map(|load| load.offered), saturated: saturated.map(|load| load.offered) }
}

/// Returns the lowest load that was not achieved, and the highest one below it.
fn ends(loads: &[Load]) -> (Option<&Load>, Option<&Load>) {
    let by_rate = |a: &&Load, b: &&Load| a.offered.total_cmp(&b.offered);
    let saturated = loads.iter().filter(|load| load.saturated).min_by(by_rate);
    let below = |load: &&Load| saturated.is_none_or(|saturated| load.offered < saturated.offered);
    (loads.iter().filter(below).max_by(by_rate), saturated)
}

#[cfg(test)]
mod tests {
    use ombx_record::result::{Figure, Metric};

    use crate::knee::*;

    fn row(offered: f64, achieved: f64) -> Measurement {
        let figures =
            [(OFFERED, offered), (ACHIEVED, achieved), (BACKLOG, 100.0 * (offered / achieved - 1.0))];
        Measurement {
            bytes: Some(64),
            figures: figures.map(|(name, value)| (name.to_owned(), Figure::Value(value))).into(),
            axes: [(RATE.to_owned(), offered.to_string())].into(),
            ..Measurement::new("sockets.request", offered.to_string(), Metric::Latency, 2)
        }
    }

    fn knees(rows: &[[f64; 2]]) -> (Vec<Knee>, Vec<String>) {
        let mut knees = Knees::default();
        rows.iter().for_each(|[offered, achieved]| knees.add(&row(*offered, *achieved)));
        (knees.knees(), knees.sentences())
    }

    #[test]
    fn the_knee_lies_between_the_highest_achieved_and_the_lowest_saturated_rate() {
        let (found, sentences) =
            knees(&[[1000.0, 1000.0], [4000.0, 2900.0], [2000.0, 1999.0], [8000.0, 2900.0]]);
        assert_eq!(found, [Knee { achieved: Some(2000.0), saturated: Some(4000.0) }]);
        assert_eq!(
            sentences,
            ["knee of sockets.request at 64 bytes: between 2000 requests/s, which was achieved, and \
                 4000, which was not (achieved: 2900.0 of 4000 requests/s)"]
        );
    }

    #[test]
    fn series_with_other_values_are_named() {
        let mut knees = Knees::default();
        for arrivals in ["constant", "exponential"] {
            for rate in [1000.0, 2000.0] {
                let mut row = row(rate, rate);
                row.axes.insert("arrivals".into(), arrivals.into());
                row.axes.insert("ip".into(), "4".into());
                knees.add(&row);
            }
        }
        let sentences = knees.sentences();
        assert!(
            sentences[0].starts_with("knee of sockets.request arrivals=constant at 64 bytes: above 2000")
        );
        assert_eq!(sentences.len(), 2, "{sentences:?}");
    }

    #[test]
    fn a_knee_outside_of_the_rates_says_so() {
        let (_, above) = knees(&[[1000.0, 1000.0], [2000.0, 2000.0]]);
        assert!(above[0].contains("above 2000 requests/s") && above[0].contains("offer more"), "{above:?}");
        let (_, below) = knees(&[[1000.0, 500.0], [2000.0, 500.0]]);
        assert!(below[0].contains("below 1000 requests/s") && below[0].contains("offer less"), "{below:?}");
        assert_eq!(knees(&[[1000.0, 500.0]]).1, Vec::<String>::new());
        assert_eq!(knees(&[]).0, []);
    }
}
