//! Units as types: bytes and ranks, and how users write sizes, durations and percentages.

use std::{fmt, str::FromStr, time::Duration};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// A number of bytes, written `8`, `64K`, `4M`, `1G`. Suffixes are powers of 1024.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

/// A rank of a team: 0 to size - 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rank(pub u32);

const SUFFIXES: [(&str, u32); 4] = [("T", 40), ("G", 30), ("M", 20), ("K", 10)];

impl FromStr for Bytes {
    type Err = Error;

    fn from_str(text: &str) -> Result<Bytes> {
        let trimmed = text.trim();
        let upper = trimmed.to_ascii_uppercase();
        let short = upper.strip_suffix("IB").or_else(|| upper.strip_suffix('B')).unwrap_or(&upper);
        let (digits, shift) = SUFFIXES
            .iter()
            .find_map(|(suffix, shift)| short.strip_suffix(suffix).map(|rest| (rest, *shift)))
            .unwrap_or((short, 0));
        let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        let number = plain.then(|| digits.parse::<u64>().ok()).flatten();
        number.and_then(|n| n.checked_mul(1 << shift)).map(Bytes).ok_or_else(|| {
            Error::usage(format!("size {trimmed:?} is not a number of bytes such as 8, 64K, 4M or 1G"))
        })
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match SUFFIXES.iter().find(|(_, shift)| self.0 != 0 && self.0.is_multiple_of(1 << shift)) {
            Some((suffix, shift)) => f.pad(&format!("{}{suffix}", self.0 >> shift)),
            None => f.pad(&self.0.to_string()),
        }
    }
}

impl fmt::Display for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Reads a duration: `1s`, `500ms`, `2m`, `1h`.
///
/// # Errors
/// Usage error if it is malformed, has no unit, or is 0 or longer than a year.
pub fn parse_duration(text: &str) -> Result<Duration> {
    let trimmed = text.trim();
    let bad = || Error::usage(format!("duration {trimmed:?} is not a positive time such as 1s, 500ms or 2m"));
    let split = trimmed.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(split);
    let scale = match unit.trim() {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "" if number.parse::<f64>().is_ok_and(|time| time > 0.0) => {
            return Err(Error::usage(format!(
                "duration {trimmed:?} has no unit: write {trimmed}s or {trimmed}ms"
            )));
        }
        _ => return Err(bad()),
    };
    let seconds = number.parse::<f64>().map_err(|_| bad())? * scale;
    let year = 365.0 * 86400.0;
    if !(seconds > 0.0 && seconds <= year) {
        return Err(bad());
    }
    // Less than a nanosecond rounds to 0.
    Some(Duration::from_secs_f64(seconds)).filter(|time| !time.is_zero()).ok_or_else(bad)
}

/// Reads a number that is written as digits only; `None` for anything else, such as `+1`.
pub fn digits<N: FromStr>(text: &str) -> Option<N> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// Reads an amount of memory.
///
/// # Errors
/// Usage error if it is malformed or 0.
pub fn parse_memory(text: &str) -> Result<Bytes> {
    match text.parse()? {
        Bytes(0) => {
            Err(Error::usage("a memory limit of 0 allows no buffers; give a number of bytes such as 512M"))
        }
        some => Ok(some),
    }
}

/// Reads an unsigned percentage, with or without `%`: `2.5%` is 2.5.
pub fn percentage(text: &str) -> Option<f64> {
    let trimmed = text.trim();
    let number = trimmed.strip_suffix('%').unwrap_or(trimmed).trim();
    number.parse().ok().filter(|_| number.starts_with(|c: char| c.is_ascii_digit() || c == '.'))
}

/// Returns an error if a number could be a fraction: `0.05` is 0.05 % or 5 %, but `0.05%` and `5` are clear.
///
/// # Errors
/// Usage error that asks which of both is meant.
pub fn check_no_fraction(text: &str) -> Result<()> {
    match percentage(text).filter(|v| *v > 0.0 && *v < 1.0 && !text.contains('%')) {
        Some(fraction) => {
            let percent = (fraction * 1e8).round() / 1e6;
            Err(Error::usage(format!("did you mean {percent} %? Write {percent}% for that, or {fraction}%")))
        }
        None => Ok(()),
    }
}

/// Reads a percentage above 0 and at most 100 as a fraction: `1%` or `1` is 0.01.
///
/// # Errors
/// Usage error for anything else, and for numbers below 1 without `%`.
pub fn parse_percent(text: &str) -> Result<f64> {
    let trimmed = text.trim();
    check_no_fraction(text)?;
    match percentage(text) {
        Some(v) if v > 0.0 && v <= 100.0 => Ok(v / 100.0),
        _ => Err(Error::usage(format!(
            "percentage {trimmed:?} is not a number above 0 and at most 100, such as 1%"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_read_and_print() {
        for (text, bytes) in
            [("0", 0), ("8", 8), ("64K", 65536), ("64KiB", 65536), ("4m", 4 << 20), ("1GB", 1 << 30)]
        {
            assert_eq!(text.parse::<Bytes>().unwrap(), Bytes(bytes), "{text}");
        }
        for text in ["", "K", "-1", "+1", "1.5K", "1Q", "99999999999999T", "1 0", "٣"] {
            let error = text.parse::<Bytes>().unwrap_err();
            assert!(error.to_string().contains("not a number of bytes"), "{text}");
        }
        assert_eq!(Bytes(1536).to_string(), "1536");
        assert_eq!(Bytes(3 << 20).to_string(), "3M");
    }

    #[test]
    fn malformed_durations_and_percentages_are_refused() {
        assert_eq!(parse_duration("1.5s").unwrap(), Duration::from_millis(1500));
        assert_eq!(parse_duration("250ms").unwrap(), Duration::from_millis(250));
        for text in ["", "0s", "-1s", "1 fortnight", "nan", "inf", "1e400s", "99999999h", "0.0000000001s"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
        assert!((parse_percent("2.5%").unwrap() - 0.025).abs() < 1e-12);
        assert!((parse_percent("0.05%").unwrap() - 0.0005).abs() < 1e-12);
        let asked = parse_percent("0.05").unwrap_err().to_string();
        assert_eq!(asked, "did you mean 5 %? Write 5% for that, or 0.05%");
        for text in ["", "0", "-1%", "+1", "101%", "1%%", "NaN", "inf%"] {
            assert!(parse_percent(text).is_err(), "{text}");
        }
    }

    proptest! {
        #![proptest_config(crate::testkit::seeded())]
        #[test]
        fn printed_values_are_parsed_back(bytes in any::<u64>()) {
            prop_assert_eq!(Bytes(bytes).to_string().parse::<Bytes>().unwrap(), Bytes(bytes));
        }
    }
}
