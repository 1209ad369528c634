//! Scheduled times of requests: rates, intervals and their option.

use std::fmt;

use crate::{
    benchmark::{CaseValues, Named, Parameter, ParameterValue, Reader},
    error::{Error, Result},
    sizes::parse_numbers,
    system::clock::Clock,
    unit::Bytes,
};

/// Largest offered rate. A reading of the clock takes a considerable part of shorter intervals.
const MAX_RATE: u64 = 10_000_000;

crate::parameter! {
    /// Intervals between scheduled requests
    pub enum Arrivals: "arrivals", IfChosen, default Constant {
        /// All equal
        Constant = "constant",
        /// Exponentially distributed: a Poisson process, as of many independent senders
        Exponential = "exponential",
    }
}

/// Offered rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rate {
    /// Messages per second.
    Messages(u64),
    /// Bits of payload per second.
    Bits(u64),
}

impl Rate {
    /// Returns the rate of messages of this many bytes, per second.
    ///
    /// # Errors
    /// [`Error::unsupported`] if no whole number of messages from 1 to 10 million has the rate within 1 %.
    pub fn of_messages(self, bytes: u64) -> Result<u64> {
        let bits = match self {
            Rate::Messages(rate) => return Ok(rate),
            Rate::Bits(bits) => bits as f64,
        };
        let exact = bits / (8.0 * bytes as f64);
        let rate = exact.round();
        match (1.0..=MAX_RATE as f64).contains(&rate) && (rate / exact - 1.0).abs() <= LARGEST_ERROR {
            true => Ok(rate as u64),
            false => Err(Error::unsupported(format!(
                "{self} are {exact:.3} messages of {bytes} bytes per second; possible are whole numbers from 1 to {MAX_RATE}"
            ))),
        }
    }
}

impl ParameterValue for Rate {
    const PARAMETER: &'static Parameter = &Parameter::read_by(
        "rate",
        "RATES",
        "Messages per second that are offered, or bits per second of their payload, each with a row, for example: --rate 1000..64000:x4 or \
         --rate 100Mbit/s,1Gbit/s",
        Reader::List(|text| Ok(parse_rates(text)?.iter().map(ToString::to_string).collect())),
    )
    .usually("1000,10000,100000")
    .named(Named::First(shown));
    const DEFAULT: Rate = Rate::Messages(1000);

    fn parse(text: &str) -> Result<Rate> {
        match *parse_rates(text)? {
            [rate] => Ok(rate),
            _ => Err(Error::usage(format!("{text:?} is not one rate"))),
        }
    }

    fn text(self) -> String {
        self.to_string()
    }
}

/// Returns the messages per second of a case; the rate itself if it is not possible.
fn shown(values: &CaseValues, bytes: Bytes) -> Option<String> {
    let rate: Rate = values.text(Rate::PARAMETER).and_then(|text| Rate::parse(text).ok())?;
    Some(rate.of_messages(bytes.0).map_or(rate.to_string(), |rate| rate.to_string()))
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rate::Messages(rate) => rate.fmt(f),
            Rate::Bits(bits) => {
                let (name, unit) =
                    BIT_UNITS.iter().find(|(_, unit)| bits.is_multiple_of(*unit)).unwrap_or(&("bit/s", 1));
                write!(f, "{}{name}", bits / unit)
            }
        }
    }
}

/// Largest relative error of a rate in bits per second.
const LARGEST_ERROR: f64 = 0.01;
/// Units of bits per second.
const BIT_UNITS: [(&str, u64); 4] =
    [("Gbit/s", 1_000_000_000), ("Mbit/s", 1_000_000), ("kbit/s", 1000), ("bit/s", 1)];

/// Reads a list of rates: messages per second as `1000,2000` or `1000..64000:x4`, bits per second as `100Mbit/s,1Gbit/s`.
///
/// # Errors
/// Usage error for malformed rates, rates of 0 and rates above 10 million messages.
pub fn parse_rates(text: &str) -> Result<Vec<Rate>> {
    let bad = || {
        let examples = "use numbers such as 1000,2000, a range such as 1000..64000:x4, or bits such as 100Mbit/s,1Gbit/s";
        Error::usage(format!("{text:?} is no list of 1 to {MAX_RATE} messages per second; {examples}"))
    };
    if text.ends_with("bit/s") {
        let bits = |text: &str| {
            let (number, unit) =
                BIT_UNITS.iter().find_map(|(name, unit)| Some((text.strip_suffix(name)?, unit)))?;
            let digits = number.len() <= 9 && number.bytes().all(|b| b.is_ascii_digit());
            let bits = number.parse::<u64>().ok().filter(|_| digits)?.checked_mul(*unit)?;
            (bits > 0).then_some(Rate::Bits(bits))
        };
        let mut rates = Vec::new();
        for item in text.split(',') {
            let rate = bits(item).ok_or_else(bad)?;
            if !rates.contains(&rate) {
                rates.push(rate);
            }
        }
        return Ok(rates);
    }
    let rates = parse_numbers(text, MAX_RATE).ok_or_else(bad)?;
    Ok(rates.into_iter().map(Rate::Messages).collect())
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
        assert_eq!(parse_rates("1000,250").unwrap(), [1000, 250].map(Rate::Messages));
        assert_eq!(parse_rates("1000..4000").unwrap(), [1000, 2000, 4000].map(Rate::Messages));
        assert_eq!(parse_rates("10..1000:x10").unwrap(), [10, 100, 1000].map(Rate::Messages));
        assert_eq!(parse_rates("64kbit/s,1Gbit/s").unwrap(), [64_000, 1_000_000_000].map(Rate::Bits));
        assert_eq!(parse_rates("1Gbit/s,1000Mbit/s").unwrap(), [Rate::Bits(1_000_000_000)]);
        for text in [
            "",
            "0",
            "1K",
            "1e3",
            "-5",
            "fast",
            "20000000",
            "10..1",
            "1,,2",
            "1.5",
            "0Mbit/s",
            "1.5Gbit/s",
            "1000,1Mbit/s",
            "Mbit/s",
            "-1bit/s",
            "1Mbit",
            "9999999999bit/s",
        ] {
            let error = parse_rates(text).unwrap_err();
            assert_eq!(error.kind(), crate::error::Kind::Usage, "{text}");
            assert!(error.to_string().contains("messages per second"), "{error}");
        }
        assert_eq!(Rate::PARAMETER.defaults().join(","), "1000,10000,100000");
    }

    #[test]
    fn bits_are_messages_of_a_size() {
        assert_eq!(Rate::Bits(100_000_000).of_messages(1250).unwrap(), 10_000);
        assert_eq!(Rate::Messages(7).of_messages(1250).unwrap(), 7);
        assert_eq!(Rate::Bits(100_000_000).of_messages(1400).unwrap(), 8929);
        assert_eq!(
            [Rate::Bits(900_000_000_000), Rate::Bits(1_500_000)].map(|rate| rate.to_string()),
            ["900Gbit/s", "1500kbit/s"]
        );
        // 1.9 messages per second, and messages without bits.
        for (bits, bytes) in [(1000, 1400), (100_000_000_000, 64), (1_000_000, 65536), (8000, 0)] {
            let error = Rate::Bits(bits).of_messages(bytes).unwrap_err();
            assert_eq!(error.kind(), crate::error::Kind::Unsupported, "{error}");
        }
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
