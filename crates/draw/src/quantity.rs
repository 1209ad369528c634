//! Quantities that charts show, with their units.

use ombx_estimate::number::{RateUnit, TimeUnit, Units};
use ombx_record::result::{Headline, MESSAGE_RATE_UNIT, Measurement, Metric};

/// What a chart shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// Time of a message or an operation.
    Latency(TimeUnit),
    /// Bytes per second.
    Bandwidth(RateUnit),
    /// Messages per second.
    MessageRate,
    /// Bus bandwidth of a collective operation.
    BusBandwidth(RateUnit),
}

impl Quantity {
    /// Returns the quantity of the headlines of a metric.
    pub fn new(metric: Metric, units: Units) -> Quantity {
        match metric {
            Metric::Latency => Quantity::Latency(units.of_times()),
            Metric::Bandwidth => Quantity::Bandwidth(units.of_rates()),
        }
    }

    /// Returns the figure of a row; `None` if it has none.
    pub fn headline(self, row: &Measurement) -> Option<Headline> {
        let headline_of = |metric: Metric| row.headline().filter(|_| row.metric == metric);
        let figure = match self {
            Quantity::Latency(_) => headline_of(Metric::Latency),
            Quantity::Bandwidth(_) => headline_of(Metric::Bandwidth),
            Quantity::MessageRate => row.message_rate(),
            Quantity::BusBandwidth(_) => row.bus_bandwidth(),
        };
        figure.map(|figure| self.of_headline(figure))
    }

    /// Converts a figure that is in µs or MB/s.
    pub fn of_headline(self, figure: Headline) -> Headline {
        let of = |value| self.of_value(value);
        Headline { value: of(figure.value), ci95: figure.ci95.map(|ends| ends.map(of)) }
    }

    /// Converts a value that is in µs or MB/s.
    pub fn of_value(self, value: f64) -> f64 {
        match self {
            Quantity::Latency(unit) => {
                Units { time: Some(unit), ..Units::default() }.convert(Metric::Latency, value)
            }
            Quantity::Bandwidth(unit) | Quantity::BusBandwidth(unit) => unit.of_mb(value),
            Quantity::MessageRate => value,
        }
    }

    /// Returns the name in titles of charts.
    pub const fn name(self) -> &'static str {
        match self {
            Quantity::Latency(_) => Metric::Latency.name(),
            Quantity::Bandwidth(_) => Metric::Bandwidth.name(),
            Quantity::MessageRate => "message rate",
            Quantity::BusBandwidth(_) => "bus bandwidth",
        }
    }

    /// Returns the title of an axis: the quantity and its unit.
    pub fn axis_title(self) -> String {
        let what = if let Quantity::Latency(_) = self { "time" } else { self.name() };
        format!("{what} in {}", self.unit())
    }

    /// Returns the unit.
    pub const fn unit(self) -> &'static str {
        match self {
            Quantity::Latency(unit) => unit.symbol(),
            Quantity::Bandwidth(unit) | Quantity::BusBandwidth(unit) => unit.name(),
            Quantity::MessageRate => MESSAGE_RATE_UNIT,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_the_unit_of_their_axis() {
        let units = Units { time: Some(TimeUnit::Ns), rate: Some(RateUnit::GigaBits) };
        let [time, rate] = [Metric::Latency, Metric::Bandwidth].map(|metric| Quantity::new(metric, units));
        assert_eq!([time.axis_title(), rate.axis_title()], ["time in ns", "bandwidth in Gbit/s"]);
        assert_eq!([time.of_value(2.5), rate.of_value(1000.0)], [2500.0, 8.0]);
        let usual = Quantity::new(Metric::Latency, Units::default());
        assert_eq!((usual.axis_title(), usual.of_value(0.1)), ("time in µs".into(), 0.1));
    }
}
