//! Units in which tables and CSV show times and rates. Result files keep nanoseconds.

use ombx_core::{benchmark::Metric, result::Headline};

/// Unit of a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TimeUnit {
    /// Nanoseconds.
    Ns,
    /// Microseconds.
    #[default]
    Us,
    /// Milliseconds.
    Ms,
}

/// Unit of a bandwidth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RateUnit {
    /// 10^6 bytes per second.
    #[default]
    MegaBytes,
    /// 2^20 bytes per second.
    MebiBytes,
    /// 10^9 bits per second.
    GigaBits,
}

/// Units that the user chose; without a choice, each format has its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Units {
    /// Unit of times.
    pub time: Option<TimeUnit>,
    /// Unit of bandwidths.
    pub rate: Option<RateUnit>,
}

impl TimeUnit {
    /// Returns the name.
    pub const fn name(self) -> &'static str {
        match self {
            TimeUnit::Ns => "ns",
            TimeUnit::Us => "us",
            TimeUnit::Ms => "ms",
        }
    }

    /// Converts nanoseconds.
    pub fn of_ns(self, ns: f64) -> f64 {
        match self {
            TimeUnit::Ns => ns,
            TimeUnit::Us => ns / 1e3,
            TimeUnit::Ms => ns / 1e6,
        }
    }

    /// Formats a time to 10 ns.
    pub fn coarse(self, ns: f64) -> String {
        let decimals = match self {
            TimeUnit::Ns => 0,
            TimeUnit::Us => 2,
            TimeUnit::Ms => 5,
        };
        format!("{:.decimals$}", self.of_ns(ns))
    }
}

impl RateUnit {
    /// Returns the name.
    pub const fn name(self) -> &'static str {
        match self {
            RateUnit::MegaBytes => "MB/s",
            RateUnit::MebiBytes => "MiB/s",
            RateUnit::GigaBits => "Gbit/s",
        }
    }

    /// Returns the name in a column of CSV.
    pub const fn column(self) -> &'static str {
        match self {
            RateUnit::MegaBytes => "mb_per_s",
            RateUnit::MebiBytes => "mib_per_s",
            RateUnit::GigaBits => "gbit_per_s",
        }
    }

    /// Converts MB/s.
    pub fn of_mb(self, mb_per_s: f64) -> f64 {
        match self {
            RateUnit::MegaBytes => mb_per_s,
            RateUnit::MebiBytes => mb_per_s * 1e6 / f64::from(1 << 20),
            RateUnit::GigaBits => mb_per_s * 8.0 / 1e3,
        }
    }
}

impl Units {
    /// Returns the unit of times in tables.
    pub fn of_times(self) -> TimeUnit {
        self.time.unwrap_or_default()
    }

    /// Returns the unit of rates.
    pub fn of_rates(self) -> RateUnit {
        self.rate.unwrap_or_default()
    }

    /// Returns the name of the unit of a headline.
    pub fn name(self, metric: Metric) -> &'static str {
        match metric {
            Metric::Latency => self.of_times().name(),
            Metric::Bandwidth => self.of_rates().name(),
        }
    }

    /// Converts a value in the unit of its metric, which is us or MB/s.
    pub fn of(self, metric: Metric, value: f64) -> f64 {
        match (metric, self.of_times()) {
            // Without a detour through nanoseconds, which would round.
            (Metric::Latency, TimeUnit::Us) => value,
            (Metric::Latency, unit) => unit.of_ns(value * 1e3),
            (Metric::Bandwidth, _) => self.of_rates().of_mb(value),
        }
    }

    /// Returns the name of a column of CSV, whose canonical name ends with `_ns` or contains `mb_per_s`, in the chosen unit.
    pub fn column(self, name: &str) -> String {
        match name.strip_suffix("_ns") {
            Some(stem) => format!("{stem}_{}", self.time.unwrap_or(TimeUnit::Ns).name()),
            None => name.replace(RateUnit::MegaBytes.column(), self.of_rates().column()),
        }
    }

    /// Converts the field of a column of CSV with this canonical name.
    pub fn of_field(self, name: &str, field: String) -> String {
        let number = || field.parse::<f64>().ok();
        let converted = match (self.time, self.rate) {
            (Some(unit), _) if name.ends_with("_ns") => number().map(|ns| unit.of_ns(ns)),
            (_, Some(unit)) if name.contains(RateUnit::MegaBytes.column()) => {
                number().map(|mb_per_s| unit.of_mb(mb_per_s))
            }
            _ => None,
        };
        converted.map_or(field, |value| value.to_string())
    }

    /// Converts a headline.
    pub fn of_headline(self, metric: Metric, headline: Headline) -> Headline {
        let of = |value| self.of(metric, value);
        Headline { value: of(headline.value), ci95: headline.ci95.map(|ends| ends.map(of)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_converted() {
        assert_eq!((TimeUnit::Us.of_ns(357.6875), TimeUnit::Ms.of_ns(357_687.5)), (0.357_687_5, 0.357_687_5));
        assert_eq!(RateUnit::GigaBits.of_mb(12_500.0), 100.0);
        assert_eq!(RateUnit::MebiBytes.of_mb(1.048_576), 1.0);
        let units = Units { time: Some(TimeUnit::Ns), rate: Some(RateUnit::GigaBits) };
        assert_eq!((units.of(Metric::Latency, 0.25), units.of(Metric::Bandwidth, 250.0)), (250.0, 2.0));
        assert_eq!((units.name(Metric::Latency), units.name(Metric::Bandwidth)), ("ns", "Gbit/s"));
        assert_eq!(Units::default().of(Metric::Latency, 0.1), 0.1);
    }

    #[test]
    fn columns_of_csv_are_converted_with_their_names() {
        let both = |units: Units, name: &str| (units.column(name), units.of_field(name, "250".into()));
        let of = |name: &str, field: &str| (name.to_owned(), field.to_owned());
        let units = Units { time: Some(TimeUnit::Us), rate: Some(RateUnit::GigaBits) };
        assert_eq!(both(units, "ci95_low_ns"), of("ci95_low_us", "0.25"));
        assert_eq!(both(units, "mb_per_s_low"), of("gbit_per_s_low", "2"));
        assert_eq!(both(units, "bus_mb_per_s"), of("bus_gbit_per_s", "2"));
        assert_eq!(both(units, "messages_per_s"), of("messages_per_s", "250"));
        for name in ["median_ns", "mb_per_s"] {
            assert_eq!(both(Units::default(), name), of(name, "250"));
        }
        assert_eq!(units.of_field("p99_ns", String::new()), "");
    }
}
