//! Latency under load: how much longer a case takes while other ranks load the network, in one sentence for each series.

use std::{cmp::Ordering, collections::BTreeMap};

use ombx_record::{
    result::{LOAD_AGAIN, Measurement, Metric, NO_LOAD, Outcome, interval_names},
    unit::Bytes,
};

use crate::number::{Decimals, Units, four_digits};

/// Name of the load among the values that a row names.
pub const UNDER: &str = "under";
/// Figures with the factor of the median and of the 99th percentile.
const FACTOR: &str = "impact_times";
const P99: &str = "impact_p99_times";

/// Rows that differ in size and load only.
#[derive(Debug, Clone, PartialEq, Eq)]
struct LoadSeries {
    bench: String,
    depth: Option<u32>,
    pairs: u32,
    /// Every value that the rows name but the load.
    axes: BTreeMap<String, String>,
}

/// A row that names its load.
#[derive(Debug, Clone)]
struct Row {
    series: LoadSeries,
    under: String,
    bytes: Option<u64>,
    metric: Metric,
    /// Headline in the unit of the metric.
    value: f64,
    /// Number of launches of the headline. Factors are medians of the quotients of each launch.
    launches: usize,
    /// Factor against the case without load.
    factor: Option<Factor>,
    p99: Option<Factor>,
}

/// How many times as long something takes, with the ends of the interval if there is one.
#[derive(Debug, Clone, Copy)]
struct Factor {
    times: f64,
    ends: Option<[f64; 2]>,
}

impl Factor {
    /// Returns a figure of a row.
    fn new(row: &Measurement, name: &str) -> Option<Factor> {
        let ends = interval_names(name).and_then(|[low, high]| Some([row.figure(&low)?, row.figure(&high)?]));
        Some(Factor { times: row.figure(name)?, ends })
    }

    /// Returns the low end, if the interval shows that the load makes messages slower.
    fn shown(self) -> Option<f64> {
        self.ends.map(|[low, _]| low).filter(|low| *low > 1.0)
    }

    /// Returns the order of factors by what they show: first those without effect or interval, by their size, then those with an effect, by
    /// the low ends of their intervals.
    fn by_evidence(self, other: Factor) -> Ordering {
        match [self, other].map(Factor::shown) {
            [Some(low), Some(other)] => low.total_cmp(&other),
            [None, None] => self.times.total_cmp(&other.times),
            [one, other] => one.is_some().cmp(&other.is_some()),
        }
    }

    /// Returns the number with its unit, and the interval with what it leaves open.
    fn in_words(self, unit: &str) -> String {
        let decimals = Decimals::new(self.times, self.ends);
        let interval = match self.ends {
            None => "the interval is unknown".to_owned(),
            Some(ends) => {
                let [low, high] = ends.map(|end| decimals.format(end));
                let is_open = (ends[0]..=ends[1]).contains(&1.0);
                let what = if is_open { "; the interval contains 1: an effect is not shown" } else { "" };
                format!("{low} to {high}{what}")
            }
        };
        format!("{} {unit} ({interval})", decimals.format(self.times))
    }
}

impl Row {
    /// Returns whether there was no load, before the loads or after them.
    fn is_idle(&self) -> bool {
        self.under.strip_prefix(NO_LOAD).is_some_and(|rest| rest.is_empty() || rest == LOAD_AGAIN)
    }
}

/// Rows with and without load.
#[derive(Debug, Clone, Default)]
pub struct LoadImpacts(Vec<Row>);

impl LoadImpacts {
    /// Adds a row if it names its load and was measured.
    pub fn add(&mut self, row: &Measurement) {
        let (Some(under), Some(headline), Outcome::Ok) = (row.axes.get(UNDER), row.headline(), &row.outcome)
        else {
            return;
        };
        let mut axes = row.axes.clone();
        axes.remove(UNDER);
        self.0.push(Row {
            series: LoadSeries { bench: row.bench.clone(), depth: row.depth, pairs: row.pairs, axes },
            under: under.clone(),
            bytes: row.bytes,
            metric: row.metric,
            value: headline.value,
            launches: row.launches_in_state(),
            factor: Factor::new(row, FACTOR),
            p99: Factor::new(row, P99),
        });
    }

    /// Returns a sentence for each series, in the order of rows: on the size and load whose factor is surest above 1, or the largest factor if
    /// none is shown to be above 1. Intervals are those of a row alone. `unit` names the units of values.
    pub fn sentences(&self, units: Units, unit: fn(Units, Metric) -> &'static str) -> Vec<String> {
        let mut series: Vec<&LoadSeries> = Vec::new();
        for row in &self.0 {
            if !series.contains(&&row.series) {
                series.push(&row.series);
            }
        }
        let figure = |metric: Metric, value: f64| {
            format!("{} {}", four_digits(units.convert(metric, value)), unit(units, metric))
        };
        series.into_iter().filter_map(|series| self.sentence(series, &figure)).collect()
    }

    fn sentence(&self, series: &LoadSeries, figure: &dyn Fn(Metric, f64) -> String) -> Option<String> {
        let rows = || self.0.iter().filter(|row| row.series == *series);
        let factors = rows().filter(|row| !row.is_idle()).filter_map(|row| Some((row, row.factor?)));
        let (row, factor) = factors.clone().max_by(|a, b| a.1.by_evidence(b.1))?;
        // The base of the factor is the geometric mean of the cases before and after the loads.
        let logs: Vec<f64> = rows()
            .filter(|other| other.is_idle() && other.bytes == row.bytes)
            .map(|idle| idle.value.ln())
            .collect();
        let idle = (!logs.is_empty()).then(|| (logs.iter().sum::<f64>() / logs.len() as f64).exp())?;
        let (verb, subject) = match row.metric {
            Metric::Latency => ("takes", ""),
            Metric::Bandwidth => ("has", "a message takes "),
        };
        // Figures over several launches are medians of their own, so that their quotient is another.
        let median = if row.launches > 1 { "in the median launch " } else { "" };
        let mut text = format!(
            "{} under load: {} {verb} {} under {} and {} idle; {median}{subject}{}",
            row.metric.name(),
            self.in_words(row),
            figure(row.metric, row.value),
            row.under,
            figure(row.metric, idle),
            factor.in_words("times as long")
        );
        text += &row.p99.map_or(String::new(), |p99| format!("; p99 {}", p99.in_words("times")));
        let all = factors.count();
        let chosen = if factor.shown().is_some() { "the surest" } else { "the largest" };
        Some(if all > 1 { format!("{text}; {chosen} of {all} factors") } else { text })
    }

    /// Returns benchmark and size of a row, and the values in which other rows of the benchmark differ from it.
    fn in_words(&self, row: &Row) -> String {
        let Row { series: LoadSeries { bench, depth, pairs, axes }, bytes, .. } = row;
        let others = || self.0.iter().map(|other| &other.series).filter(|other| other.bench == *bench);
        let differs =
            |(name, value): &(&String, &String)| others().any(|other| other.axes.get(*name) != Some(*value));
        let mut text = bench.clone();
        axes.iter().filter(differs).for_each(|(name, value)| text += &format!(" {name}={value}"));
        if let Some(depth) = depth.filter(|_| others().any(|other| other.depth != *depth)) {
            text += &format!(" window {depth}");
        }
        if others().any(|other| other.pairs != *pairs) {
            text += &format!(" of {pairs} pairs");
        }
        text + &bytes.map_or(String::new(), |bytes| format!(" at {} bytes", Bytes(bytes)))
    }
}

#[cfg(test)]
mod tests {
    use ombx_record::{
        result::{Figure, OverLaunches, Work},
        stats::Summary,
    };

    use crate::impact::*;

    fn row(bytes: u64, under: &str, us: f64, factor: Option<[f64; 3]>) -> Measurement {
        let figures = factor.map(|[factor, low, high]| {
            let [low_name, high_name] = interval_names(FACTOR).unwrap();
            let [p99_low, p99_high] = interval_names(P99).unwrap();
            let median = [(FACTOR.to_owned(), factor), (low_name, low), (high_name, high)];
            let p99 = [(P99.to_owned(), 2.0 * factor), (p99_low, 2.0 * low), (p99_high, 2.0 * high)];
            [median, p99].concat()
        });
        let figures = figures.into_iter().flatten().map(|(name, value)| (name, Figure::Value(value)));
        Measurement {
            bytes: Some(bytes),
            axes: [(UNDER.to_owned(), under.to_owned()), ("ip".to_owned(), "4".to_owned())].into(),
            work: Some(Work { bytes: 2 * bytes, ops: 2, legs: 2 }),
            summary: Summary::new(&[us * 1e3; 6]),
            figures: figures.collect(),
            ..Measurement::new("sockets.latency", format!("{bytes}/{under}"), Metric::Latency, 4)
        }
    }

    fn sentences(rows: &[Measurement]) -> Vec<String> {
        let mut impacts = LoadImpacts::default();
        rows.iter().for_each(|row| impacts.add(row));
        impacts.sentences(Units::default(), Units::name)
    }

    #[test]
    fn both_figures_and_the_factor_are_in_one_sentence() {
        let rows = [
            row(8, "nothing", 40.0, None),
            row(8, "sockets.bw:1M", 812.0, Some([20.05, 18.9, 21.7])),
            row(8, "nothing-again", 41.0, Some([1.025, 1.0, 1.05])),
        ];
        assert_eq!(
            sentences(&rows),
            ["latency under load: sockets.latency at 8 bytes takes 812.0 us under sockets.bw:1M and \
                 40.50 us idle; 20.1 times as long (18.9 to 21.7); p99 40.1 times (37.8 to 43.4)"]
        );
    }

    #[test]
    fn over_launches_the_factor_is_said_to_be_that_of_the_median_launch() {
        let over = |bytes, under, us: f64, factor| {
            let mut row = row(bytes, under, us, factor);
            row.launches = Some(OverLaunches { medians_ns: vec![us * 1e3; 6], ..OverLaunches::default() });
            row
        };
        let rows = [over(8, "nothing", 40.0, None), over(8, "a:1M", 80.0, Some([1.5, 1.25, 1.75]))];
        let [sentence] = &sentences(&rows)[..] else { panic!() };
        assert!(
            sentence.contains("idle; in the median launch 1.50 times as long (1.25 to 1.75)"),
            "{sentence}"
        );
    }

    #[test]
    fn a_factor_of_a_bandwidth_is_that_of_the_time_of_a_message() {
        let rate = |under: &str, us: f64, factor| Measurement {
            metric: Metric::Bandwidth,
            ..row(1_000_000, under, us, factor)
        };
        let rows = [rate("nothing", 2000.0, None), rate("a:1M", 8000.0, Some([4.0, 3.5, 4.5]))];
        let [sentence] = &sentences(&rows)[..] else { panic!() };
        assert!(
            sentence.starts_with("bandwidth under load: sockets.latency at 1000000 bytes has "),
            "{sentence}"
        );
        assert!(sentence.contains(" idle; a message takes 4.00 times as long (3.50 to 4.50)"), "{sentence}");
    }

    #[test]
    fn a_factor_that_is_shown_precedes_a_larger_one_that_is_not() {
        let loads = [("a:1M", [3.0, 0.8, 11.0]), ("b:1M", [2.9, 2.8, 3.0]), ("c:1M", [2.95, 1.1, 4.0])];
        let mut rows = vec![row(8, "nothing", 40.0, None)];
        rows.extend(loads.map(|(under, factor)| row(8, under, 40.0 * factor[0], Some(factor))));
        let [sentence] = &sentences(&rows)[..] else { panic!() };
        assert!(
            sentence.contains(" under b:1M and 40.00 us idle; 2.90 times as long (2.80 to 3.00)"),
            "{sentence}"
        );
        assert!(sentence.ends_with("; the surest of 3 factors"), "{sentence}");
    }

    #[test]
    fn of_several_sizes_and_loads_the_largest_factor_counts() {
        let rows = [
            row(8, "nothing", 40.0, None),
            row(1024, "nothing", 80.0, None),
            row(8, "a:1M", 40.0, Some([1.0, 0.98, 1.04])),
            row(1024, "a:1M", 88.0, Some([1.1, 0.99, 1.2])),
        ];
        let [sentence] = &sentences(&rows)[..] else { panic!() };
        assert!(
            sentence.contains("at 1K bytes takes 88.00 us under a:1M and 80.00 us idle; 1.100 times"),
            "{sentence}"
        );
        assert!(
            sentence.contains("(0.990 to 1.200; the interval contains 1: an effect is not shown)"),
            "{sentence}"
        );
        assert!(sentence.ends_with("; the largest of 2 factors"), "{sentence}");
    }

    #[test]
    fn rows_without_a_base_or_a_load_have_no_sentence() {
        assert_eq!(sentences(&[row(8, "a:1M", 40.0, None), row(8, "nothing", 40.0, None)]), [""; 0]);
        assert_eq!(sentences(&[row(8, "a:1M", 40.0, Some([2.0, 1.9, 2.1]))]), [""; 0]);
        let mut loaded = row(8, "a:1M", 80.0, Some([2.0, 1.9, 2.1]));
        loaded.figures.retain(|name, _| name == FACTOR);
        let [sentence] = &sentences(&[row(8, "nothing", 40.0, None), loaded])[..] else { panic!() };
        assert!(sentence.ends_with("2.000 times as long (the interval is unknown)"), "{sentence}");
    }
}
