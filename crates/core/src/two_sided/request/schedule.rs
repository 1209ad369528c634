//! Scheduled times of requests: rates, intervals and their option.

use crate::{
    benchmark::Setting,
    error::{Error, Result},
    measure::plan::parse_sizes,
    system::clock::Clock,
};

/// Largest offered rate. A reading of the clock takes a considerable part of shorter intervals.
const MAX_RATE: u64 = 10_000_000;

/// Option with the offered rates. Each has a row.
pub const RATE: Setting = Setting {
    name: "rate",
    value: "RATES",
    about: "Requests per second that are offered, each with a row, for example: --rate 1000,2000 or --rate 1000..64000:x4",
    default: Some("1000,10000,100000"),
    check: |text| parse_rates(text).map(|_| ()),
};

crate::axis! {
    /// Intervals between scheduled requests
    pub enum Arrivals: "arrivals", IfChosen, default Constant {
        /// All equal
        Constant = "constant",
        /// Exponentially distributed: a Poisson process, as of many independent senders
        Exponential = "exponential",
    }
}

/// Reads a list of rates in requests per second: `1000,2000` or `1000..64000:x4`.
///
/// # Errors
/// Usage error for malformed rates, rates of 0 and rates above 10 million.
pub fn parse_rates(text: &str) -> Result<Vec<u64>> {
    let bad = || {
        let examples = "use numbers such as 1000,2000 or a range such as 1000..64000:x4";
        Error::usage(format!("{text:?} is no list of 1 to {MAX_RATE} requests per second; {examples}"))
    };
    // Sizes have the same syntax and units in addition.
    if !text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b',' | b'.' | b':' | b'x')) {
        return Err(bad());
    }
    let rates: Vec<u64> = parse_sizes(text).map_err(|_| bad())?.into_iter().map(|rate| rate.0).collect();
    match rates.iter().all(|rate| (1..=MAX_RATE).contains(rate)) {
        true => Ok(rates),
        false => Err(bad()),
    }
}

/// Schedule of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    /// Requests per second.
    pub rate: u64,
    /// Distribution of the intervals.
    pub arrivals: Arrivals,
    /// Seed of random intervals.
    pub seed: u64,
}

impl Schedule {
    /// Returns the mean interval in nanoseconds.
    pub fn interval_ns(&self) -> f64 {
        1e9 / self.rate as f64
    }

    /// Returns the scheduled times in nanoseconds after the start. The last of n requests is due n mean intervals after the start.
    pub fn times_ns(&self, requests: usize) -> Vec<f64> {
        let mut at = 0.0;
        let mut random = fastrand::Rng::with_seed(self.seed ^ self.rate);
        let times: Vec<f64> = (0..requests)
            .map(|_| {
                at += match self.arrivals {
                    Arrivals::Constant => 1.0,
                    // The inverse of the distribution function, at a number of [0, 1).
                    Arrivals::Exponential => -(1.0 - random.f64()).ln(),
                };
                at
            })
            .collect();
        // Random intervals are scaled so that the offered rate of every round is exact.
        let scale = self.interval_ns() * requests as f64 / at.max(f64::MIN_POSITIVE);
        times.into_iter().map(|time| time * scale).collect()
    }

    /// Returns the scheduled times in raw ticks after the start.
    pub(in crate::two_sided) fn ticks(&self, requests: usize, clock: &Clock) -> Vec<u64> {
        let tick_ns = clock.tick_ns();
        self.times_ns(requests).into_iter().map(|ns| (ns / tick_ns).round() as u64).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_lists_and_ranges() {
        assert_eq!(parse_rates("1000,250").unwrap(), [1000, 250]);
        assert_eq!(parse_rates("1000..4000").unwrap(), [1000, 2000, 4000]);
        assert_eq!(parse_rates("10..1000:x10").unwrap(), [10, 100, 1000]);
        for text in ["", "0", "1K", "1e3", "-5", "fast", "20000000", "10..1", "1,,2", "1.5"] {
            let error = parse_rates(text).unwrap_err();
            assert_eq!(error.kind(), crate::error::Kind::Usage, "{text}");
            assert!(error.to_string().contains("requests per second"), "{error}");
        }
        (RATE.check)(RATE.default.unwrap()).unwrap();
    }

    #[test]
    fn schedules_have_the_offered_rate() {
        let schedule = Schedule { rate: 1000, arrivals: Arrivals::Constant, seed: 7 };
        assert_eq!(schedule.times_ns(3), [1e6, 2e6, 3e6]);
        let random = Schedule { arrivals: Arrivals::Exponential, ..schedule };
        let times = random.times_ns(10_000);
        assert!((times[9999] - 1e10).abs() < 1.0, "{}", times[9999]);
        assert!(times.is_sorted() && random.times_ns(0).is_empty());
        assert_ne!(times, Schedule { seed: 8, ..random }.times_ns(10_000));
        // The standard deviation of exponential intervals is their mean.
        let intervals = times.windows(2).map(|pair| (pair[1] - pair[0]) / 1e6 - 1.0);
        let variance = intervals.map(|x| x * x).sum::<f64>() / 9999.0;
        assert!((variance - 1.0).abs() < 0.1, "{variance}");
    }
}
