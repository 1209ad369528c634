//! Numbers as text in tables and charts.

use ombx_record::result::{Headline, Metric};

/// Formats a number with four significant digits or more. Values below 1 have four decimals, and values below 0.01 three significant
/// digits.
pub fn figure(value: f64) -> String {
    let digits: usize = match value.abs() {
        x if x >= 100_000.0 => 0,
        x if x >= 1000.0 => 1,
        x if x >= 100.0 => 2,
        x if x >= 1.0 => 3,
        x if x > 1e-12 && x < 0.01 => (2.0 - x.log10().floor()) as usize,
        _ => 4,
    };
    format!("{value:.digits$}")
}

/// Formats a number with four significant digits.
pub fn four_digits(value: f64) -> String {
    let size = value.abs();
    match size {
        0.0 => "0".into(),
        10_000.0.. => {
            let step = 10f64.powi(size.log10().floor() as i32 - 3);
            format!("{:.0}", (value / step).round() * step)
        }
        1.0.. => format!("{value:.0$}", (3.0 - size.log10().floor()) as usize),
        _ => figure(value),
    }
}

/// Unit of a column of figures, which keeps the largest of them below 10,000.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    /// Name of the unit.
    pub unit: &'static str,
    each: f64,
}

impl Scale {
    /// Returns the unit of times up to this one, in nanoseconds.
    pub fn of_times(longest_ns: f64) -> Scale {
        let units = [("us", 1e3), ("ms", 1e6), ("s", 1e9)];
        Scale::among(&units, longest_ns)
    }

    /// Returns the unit of rates up to this one, in MB/s.
    pub fn of_rates(largest: f64) -> Scale {
        Scale::among(&[("MB/s", 1.0), ("GB/s", 1e3)], largest)
    }

    fn among(units: &[(&'static str, f64)], largest: f64) -> Scale {
        let last = units.len() - 1;
        let fits = |(_, each): &&(&str, f64)| largest / each < 9999.5;
        let (unit, each) = *units.iter().find(fits).unwrap_or(&units[last]);
        Scale { unit, each }
    }

    /// Formats a time in nanoseconds or a rate in MB/s without its unit.
    pub fn format(self, value: f64) -> String {
        four_digits(value / self.each)
    }
}

/// Formats a time in nanoseconds with its unit.
pub fn time(ns: f64) -> String {
    let scale = Scale::of_times(ns);
    format!("{} {}", scale.format(ns), scale.unit)
}

/// Formats a rate in MB/s with its unit.
pub fn rate(mb_per_s: f64) -> String {
    let scale = Scale::of_rates(mb_per_s);
    format!("{} {}", scale.format(mb_per_s), scale.unit)
}

/// Number of decimals of a figure with an uncertainty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decimals(Option<usize>);

impl Decimals {
    /// Returns the decimals that show two significant digits of the shorter side of the interval of a value, and three of the value.
    /// Without an interval, or where it has no width, a number has the decimals of [`figure`].
    pub fn new(value: f64, interval: Option<[f64; 2]>) -> Decimals {
        let is_width = |x: &f64| x.is_finite() && *x > 0.0;
        let sides = interval.map(|[low, high]| [value - low, high - value]);
        let shorter = sides.into_iter().flatten().filter(is_width).reduce(f64::min);
        let decimals = |x: f64, digits: f64| (digits - 1.0 - x.log10().floor()).clamp(0.0, 9.0) as usize;
        let least = Some(value.abs()).filter(is_width).map_or(0, |size| decimals(size, 3.0));
        Decimals(shorter.map(|side| decimals(side, 2.0).max(least)))
    }

    /// Formats a number.
    pub fn format(self, value: f64) -> String {
        match self.0 {
            Some(decimals) => format!("{value:.decimals$}"),
            None => figure(value),
        }
    }

    /// Formats a number with at most the decimals of [`figure`].
    pub fn format_at_most_figure(self, value: f64) -> String {
        let (text, figure) = (self.format(value), figure(value));
        if text.len() < figure.len() { text } else { figure }
    }
}

/// Formats a fraction as a percentage of two digits, such as `6.1 %`, and of whole percentages from 10 % on.
pub fn percent(fraction: f64) -> String {
    let percent = fraction * 100.0;
    let text = if percent >= 10.0 { format!("{percent:.0}") } else { format!("{percent:.1}") };
    format!("{} %", text.strip_suffix(".0").unwrap_or(&text))
}

/// Formats the label of a tick: a [`figure`] without trailing zeros.
pub fn tick_label(value: f64) -> String {
    let text = figure(value);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

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

    /// Returns the symbol, with the letter µ where text is not plain.
    pub const fn symbol(self) -> &'static str {
        match self {
            TimeUnit::Us => "µs",
            TimeUnit::Ns | TimeUnit::Ms => self.name(),
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

    /// Returns the name in a column of CSV, such as `mb_per_s`.
    pub fn column(self) -> String {
        self.name().to_ascii_lowercase().replace('/', "_per_")
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

    /// Returns the symbol of the unit of a headline.
    pub fn symbol(self, metric: Metric) -> &'static str {
        match metric {
            Metric::Latency => self.of_times().symbol(),
            Metric::Bandwidth => self.of_rates().name(),
        }
    }

    /// Converts a value in the unit of its metric, which is us or MB/s.
    pub fn convert(self, metric: Metric, value: f64) -> f64 {
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
            None => name.replace(&RateUnit::MegaBytes.column(), &self.of_rates().column()),
        }
    }

    /// Converts the field of a column of CSV with this canonical name.
    pub fn of_field(self, name: &str, field: String) -> String {
        let number = || field.parse::<f64>().ok();
        let converted = match (self.time, self.rate) {
            (Some(unit), _) if name.ends_with("_ns") => number().map(|ns| unit.of_ns(ns)),
            (_, Some(unit)) if name.contains(&RateUnit::MegaBytes.column()) => {
                number().map(|mb_per_s| unit.of_mb(mb_per_s))
            }
            _ => None,
        };
        converted.map_or(field, |value| value.to_string())
    }

    /// Converts a headline.
    pub fn of_headline(self, metric: Metric, headline: Headline) -> Headline {
        let of = |value| self.convert(metric, value);
        Headline { value: of(headline.value), ci95: headline.ci95.map(|ends| ends.map(of)) }
    }
}

#[cfg(test)]
mod tests {
    use crate::number::*;

    #[test]
    fn a_figure_has_two_digits_of_the_shorter_side_and_at_least_three() {
        let shown = |value, half: f64| Decimals::new(value, Some([value - half, value + half])).format(value);
        assert_eq!(shown(0.41234, 0.055), "0.412");
        assert_eq!(shown(0.41234, 0.0012), "0.4123");
        assert_eq!(shown(10123.4, 350.0), "10123");
        assert_eq!(shown(10123.4, 3.5), "10123.4");
        assert_eq!(shown(0.314, 2.5), "0.314");
        let sides = |low, high| Decimals::new(0.7412, Some([low, high])).format(0.7412);
        assert_eq!(
            [sides(0.45, 16724.88), sides(0.7409, 3.0), sides(0.7412, 0.7412)],
            ["0.741", "0.74120", "0.7412"]
        );
        assert_eq!(shown(7.0, 1.2), "7.00");
        assert_eq!(Decimals::new(6.0129, None).format(6.0129), figure(6.0129));
        assert_eq!(shown(6.0129, 0.0), figure(6.0129));
        assert_eq!(Decimals::new(0.0, Some([0.0, 1.056])).format(0.0), "0.0");
    }

    #[test]
    fn times_and_rates_have_four_digits() {
        assert_eq!(
            [17.814, 950.0, 1179.04, 36_317.49, 119_715_060.0].map(|us| time(us * 1e3)),
            ["17.81 us", "950.0 us", "1179 us", "36.32 ms", "119.7 s"]
        );
        assert_eq!(
            [0.4, 28.94, 9999.4, 14_224.0].map(rate),
            ["0.4000 MB/s", "28.94 MB/s", "9999 MB/s", "14.22 GB/s"]
        );
        assert_eq!([0.0, 9.9996, 123_456.0].map(four_digits), ["0", "10.000", "123500"]);
    }

    #[test]
    fn small_numbers_keep_their_digits() {
        assert_eq!(
            [0.0, 0.25, 0.01, 0.001_351, 0.000_135_1].map(figure),
            ["0.0000", "0.2500", "0.0100", "0.00135", "0.000135"]
        );
    }

    #[test]
    fn a_sample_has_no_more_digits_than_a_figure() {
        let fine = Decimals::new(0.5755, Some([0.5705, 0.5780]));
        assert_eq!(fine.format_at_most_figure(5999.093), "5999.1");
        let coarse = Decimals::new(18.5, Some([17.4, 23.3]));
        assert_eq!(coarse.format_at_most_figure(25.317), "25.3");
    }

    #[test]
    fn values_are_converted() {
        assert_eq!((TimeUnit::Us.of_ns(357.6875), TimeUnit::Ms.of_ns(357_687.5)), (0.357_687_5, 0.357_687_5));
        assert_eq!(RateUnit::GigaBits.of_mb(12_500.0), 100.0);
        assert_eq!(RateUnit::MebiBytes.of_mb(1.048_576), 1.0);
        let units = Units { time: Some(TimeUnit::Ns), rate: Some(RateUnit::GigaBits) };
        assert_eq!(
            (units.convert(Metric::Latency, 0.25), units.convert(Metric::Bandwidth, 250.0)),
            (250.0, 2.0)
        );
        assert_eq!((units.name(Metric::Latency), units.name(Metric::Bandwidth)), ("ns", "Gbit/s"));
        assert_eq!(Units::default().convert(Metric::Latency, 0.1), 0.1);
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
