//! Headlines and rates of a row, derived from its median time and its work.

use serde::Serialize;

use crate::result::{ALONE, Figure, Measurement, Metric, OVERLAPPING, Outcome, interval_names};

/// A rate with its interval, derived from the time of an iteration.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rate {
    /// Median rate per second.
    pub median: f64,
    /// Low and high end of the 95 % interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ci95: Option<[f64; 2]>,
}

/// All rates of a row, derived from its times and its work.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Rates {
    /// Bandwidth in 10^6 bytes per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mb_per_s: Option<Rate>,
    /// Operations per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages_per_s: Option<Rate>,
    /// Algorithm bandwidth in 10^6 bytes per second, derived from `bus`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub algorithm_mb_per_s: Option<Rate>,
    /// Bus bandwidth in 10^6 bytes per second, derived from `bus`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bus_mb_per_s: Option<Rate>,
}

/// Unit of message rates in tables and charts: thousands of messages per second.
pub const MESSAGE_RATE_UNIT: &str = "kmsg/s";

/// Figure of a row that is shown first, in the unit of its metric: microseconds or MB/s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Headline {
    /// Median, above 0.
    pub value: f64,
    /// Low and high end of the 95 % interval.
    pub ci95: Option<[f64; 2]>,
}

impl Measurement {
    /// Returns the rates that are finite; `None` if there are none.
    pub fn rates(&self) -> Option<Rates> {
        let finite = |Rate { median, ci95 }: Rate| {
            let ci95 = ci95.filter(|ends| ends.iter().all(|end| end.is_finite()));
            median.is_finite().then_some(Rate { median, ci95 })
        };
        let rates = Rates {
            mb_per_s: self.mb_per_s().and_then(finite),
            messages_per_s: self.messages_per_s().and_then(finite),
            algorithm_mb_per_s: self.algorithm_mb_per_s().and_then(finite),
            bus_mb_per_s: self.bus_mb_per_s().and_then(finite),
        };
        (rates != Rates::default()).then_some(rates)
    }

    /// Returns the rate in MB/s (10^6 bytes); `None` if the metric is not bandwidth or no bytes move.
    pub fn mb_per_s(&self) -> Option<Rate> {
        let work = self.work.filter(|w| w.bytes > 0)?;
        self.rate(work.bytes as f64 / 1e6)
    }

    /// Returns the rate in messages per second; `None` if the metric is not bandwidth.
    pub fn messages_per_s(&self) -> Option<Rate> {
        self.rate(self.work?.ops as f64)
    }

    /// Returns the figure that is shown first; `None` if the row has no valid one.
    pub fn headline(&self) -> Option<Headline> {
        let summary = self.summary.as_ref().filter(|s| s.median > 0.0 && self.outcome == Outcome::Ok)?;
        let us = |ns: f64| ns / 1e3;
        let (value, ci95) = match self.metric {
            Metric::Bandwidth => self.mb_per_s().map(|rate| (rate.median, rate.ci95))?,
            Metric::Latency => (us(summary.median), summary.ci95.map(|ends| ends.map(us))),
        };
        value.is_finite().then_some(Headline { value, ci95 })
    }

    /// Returns the rate in [`MESSAGE_RATE_UNIT`]; `None` if the row has no valid one. Messages of 0 bytes have one too.
    pub fn message_rate(&self) -> Option<Headline> {
        let rate = self.messages_per_s().filter(|_| self.outcome == Outcome::Ok)?;
        let thousands = |per_s: f64| per_s / 1e3;
        let (value, ci95) = (thousands(rate.median), rate.ci95.map(|ends| ends.map(thousands)));
        value.is_finite().then_some(Headline { value, ci95 })
    }

    /// Returns the bus bandwidth in MB/s; `None` if the row has no valid one.
    pub fn bus_bandwidth(&self) -> Option<Headline> {
        let rate = self.bus_mb_per_s().filter(|rate| self.outcome == Outcome::Ok && rate.median > 0.0)?;
        rate.median.is_finite().then_some(Headline { value: rate.median, ci95: rate.ci95 })
    }

    /// Returns the algorithm bandwidth of a collective operation in MB/s: the bytes of its largest buffer over its time. An operation
    /// that computation overlaps has that of the operation alone.
    pub fn algorithm_mb_per_s(&self) -> Option<Rate> {
        self.operation_per_s(self.bus?.bytes as f64 / 1e6)
    }

    /// Returns the bus bandwidth of a collective operation in MB/s: what passes the busiest link of a rank over its time. An operation
    /// that computation overlaps has that of the operation alone.
    pub fn bus_mb_per_s(&self) -> Option<Rate> {
        let bus = self.bus?;
        self.operation_per_s(bus.bytes as f64 * bus.factor / 1e6)
    }

    fn rate(&self, per_iteration: f64) -> Option<Rate> {
        if self.metric == Metric::Bandwidth { self.amount_per_s(per_iteration) } else { None }
    }

    /// Returns an amount per iteration divided by the time of the operation without the computation that overlaps it.
    fn operation_per_s(&self, per_iteration: f64) -> Option<Rate> {
        if !self.figures.contains_key(OVERLAPPING) {
            return self.amount_per_s(per_iteration);
        }
        let us = |name: &str| match self.figures.get(name)? {
            Figure::Value(us) => Some(*us).filter(|us| *us > 0.0),
            Figure::Unresolved(_) => None,
        };
        let legs = self.work?.legs as f64;
        let of = |leg_us: f64| per_iteration / (leg_us * legs * 1e-6);
        let ends = interval_names(ALONE).and_then(|[low, high]| Some([of(us(&high)?), of(us(&low)?)]));
        Some(Rate { median: of(us(ALONE)?), ci95: ends })
    }

    /// Returns an amount per iteration divided by the time of an iteration.
    fn amount_per_s(&self, per_iteration: f64) -> Option<Rate> {
        let summary = self.summary.as_ref().filter(|s| s.median > 0.0 && per_iteration >= 0.0)?;
        let legs = self.work?.legs as f64;
        let of = |leg_ns: f64| per_iteration / (leg_ns * legs * 1e-9);
        let ci95 = summary.ci95.filter(|[low, _]| *low > 0.0).map(|[low, high]| [of(high), of(low)]);
        Some(Rate { median: of(summary.median), ci95 })
    }
}
