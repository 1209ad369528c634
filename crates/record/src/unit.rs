//! Units as types: bytes and ranks, and how users write sizes, durations and percentages.

use std::{fmt, str::FromStr, time::Duration};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// A number of bytes, written `8`, `64K`, `4M`, `1G`. Suffixes are powers of 1024.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
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

impl Bytes {
    /// Formats the size with its noun: `1 byte`, `64K bytes`.
    pub fn with_noun(self) -> String {
        if self.0 == 1 { "1 byte".into() } else { format!("{self} bytes") }
    }
}

/// Formats a count with its noun: `1 row`, `2 rows`, `3 launches`.
pub fn counted<N: fmt::Display + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    if count == N::from(1) { format!("1 {noun}") } else { format!("{count} {}", plural(noun)) }
}

/// Returns the plural of a noun.
pub fn plural(noun: &str) -> String {
    let ending = if noun.ends_with(['s', 'x']) || noun.ends_with("ch") { "es" } else { "s" };
    format!("{noun}{ending}")
}

impl fmt::Display for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Reads a duration: `1s`, `500ms`, `2m`, `1h`.
///
/// # Errors
/// Usage error if it is malformed, has no unit, or is 0, shorter than a nanosecond or longer than a year.
pub fn parse_duration(text: &str) -> Result<Duration> {
    let trimmed = text.trim();
    let bad = || Error::usage(format!("duration {trimmed:?} is not a positive time such as 1s, 500ms or 2m"));
    let split = trimmed.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(split);
    let scale = match unit.trim() {
        "ns" => 1e-9,
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
        unit if number.parse::<f64>().is_ok_and(|time| time > 0.0) => {
            return Err(Error::usage(format!(
                "duration {trimmed:?}: the unit {unit:?} is unknown: write ns, us, ms, s, m or h"
            )));
        }
        _ => return Err(bad()),
    };
    let seconds = number.parse::<f64>().map_err(|_| bad())? * scale;
    let year = 365.0 * 86400.0;
    if seconds > year {
        return Err(Error::usage(format!("duration {trimmed:?} is longer than a year")));
    }
    if seconds.is_nan() || seconds <= 0.0 {
        return Err(bad());
    }
    Some(Duration::from_secs_f64(seconds))
        .filter(|time| !time.is_zero())
        .ok_or_else(|| Error::usage(format!("duration {trimmed:?} is shorter than a nanosecond")))
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

/// Maximum number of sizes in one list.
const MAX_SIZES: usize = 10_000;
/// Address space of a process on x86-64; a larger message is a typing error.
const MAX_SIZE: Bytes = Bytes(1 << 47);
/// Maximum factor between sizes.
const MAX_FACTOR: u64 = 1 << 32;

/// Reads a list of whole numbers from 1 to `most`: `8`, `1,4,16`, or `1..64`, which doubles; `1..64:x4` multiplies by 4. Returns `None` for
/// anything else.
pub fn parse_numbers(text: &str, most: u64) -> Option<Vec<u64>> {
    // Sizes have the same syntax and units in addition.
    let has_units =
        !text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b',' | b'.' | b':' | b'x'));
    let numbers: Vec<u64> =
        parse_sizes(text).ok().filter(|_| !has_units)?.into_iter().map(|size| size.0).collect();
    numbers.iter().all(|number| (1..=most).contains(number)).then_some(numbers)
}

/// Reads a list of sizes: `8`, `8,1K,64K`, `1..4M` (doubling), `1..4M:x4` (by another factor), `0..8` (0, 1, 2, 4, 8).
///
/// # Errors
/// Usage error for malformed or too many sizes.
pub fn parse_sizes(text: &str) -> Result<Vec<Bytes>> {
    let (mut sizes, mut largest) = (Vec::new(), None);
    for item in text.split(',') {
        for size in parse_item(item.trim())? {
            // Most lists increase. Every start of a process reads those of all benchmarks.
            if largest < Some(size) || !sizes.contains(&size) {
                sizes.push(size);
                largest = largest.max(Some(size));
            }
            if sizes.len() > MAX_SIZES {
                return Err(Error::usage(format!(
                    "sizes {text:?} are more than {MAX_SIZES}; use a range or a larger factor"
                )));
            }
        }
    }
    Ok(sizes)
}

fn addressable(size: Bytes) -> Result<Bytes> {
    if size > MAX_SIZE {
        Err(Error::usage(format!("size {size} is more than a process can address; use at most {MAX_SIZE}")))
    } else {
        Ok(size)
    }
}

fn parse_item(item: &str) -> Result<Vec<Bytes>> {
    let Some((from, rest)) = item.split_once("..") else {
        return Ok(vec![addressable(item.parse()?)?]);
    };
    let (to, factor) = match rest.split_once(':') {
        None => (rest, 2),
        Some((to, step)) => {
            let factor = step
                .trim()
                .strip_prefix('x')
                .and_then(|f| f.parse::<u64>().ok())
                .filter(|f| (2..=MAX_FACTOR).contains(f));
            let bad = || {
                Error::usage(format!(
                    "step {step:?} of sizes {item:?} is not a factor of at least 2, such as x4"
                ))
            };
            (to, factor.ok_or_else(bad)?)
        }
    };
    let (from, to): (Bytes, Bytes) = (from.parse()?, addressable(to.parse()?)?);
    if from > to {
        return Err(Error::usage(format!("sizes {item:?} decrease; write {to}..{from}")));
    }
    let mut sizes = Vec::new();
    let mut next = from.0;
    while next <= to.0 {
        sizes.push(Bytes(next));
        next = match next {
            0 => 1,
            n => match n.checked_mul(factor) {
                Some(n) => n,
                None => break,
            },
        };
    }
    Ok(sizes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::unit::*;

    #[test]
    fn counts_and_sizes_have_their_noun() {
        assert_eq!([counted(1_u64, "row"), counted(2_u64, "launch")], ["1 row", "2 launches"]);
        assert_eq!([counted(0_usize, "switch"), counted(3_usize, "rank")], ["0 switches", "3 ranks"]);
        assert_eq!([1, 65536].map(|bytes| Bytes(bytes).with_noun()), ["1 byte", "64K bytes"]);
    }

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
        assert_eq!(parse_duration("1ns").unwrap(), Duration::from_nanos(1));
        for (text, words) in [
            ("1d", "unit \"d\" is unknown"),
            ("0.1ns", "shorter than a nanosecond"),
            ("9999h", "longer than a year"),
        ] {
            let error = parse_duration(text).unwrap_err().to_string();
            assert!(error.contains(words) && !error.contains("positive"), "{error}");
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
        #![proptest_config(ombx_testkit::seeded())]
        #[test]
        fn printed_values_are_parsed_back(bytes in any::<u64>()) {
            prop_assert_eq!(Bytes(bytes).to_string().parse::<Bytes>().unwrap(), Bytes(bytes));
        }
    }
}

#[cfg(test)]
mod sizes_tests {
    use proptest::prelude::*;

    use crate::unit::*;

    fn read(text: &str) -> Vec<u64> {
        parse_sizes(text).unwrap().into_iter().map(|b| b.0).collect()
    }

    #[test]
    fn sizes_have_three_forms() {
        assert_eq!(read("1..16"), [1, 2, 4, 8, 16]);
        assert_eq!(read("8,1K,64K"), [8, 1024, 65536]);
        assert_eq!(read("1..4M:x4").last(), Some(&(4 << 20)));
        assert_eq!(read("1..4M").len(), 23);
        assert_eq!(read("0..4"), [0, 1, 2, 4]);
        assert_eq!(read("0,1..4,2"), [0, 1, 2, 4]);
        assert_eq!(read("3..20"), [3, 6, 12]);
        assert_eq!(read("8,2,8,4,2,16,4"), [8, 2, 4, 16]);
    }

    #[test]
    fn malformed_sizes_are_usage_errors() {
        for text in [
            "",
            ",",
            "4M..1",
            "1..",
            "..8",
            "1..8:x1",
            "1..8:4",
            "1..8:x0",
            "a..b",
            "1...4",
            "1-8",
            "1..4M:x4:x2",
        ] {
            let error = parse_sizes(text).unwrap_err();
            assert_eq!(error.kind(), crate::error::Kind::Usage, "{text}");
        }
        assert!(parse_sizes("4M..1").unwrap_err().to_string().contains("1..4M"));
    }

    #[test]
    fn ranges_end_at_the_largest_size() {
        assert_eq!(read("1..128T").len(), 48);
        for text in ["1..18446744073709551615", "18446744073709551615", "129T", "1..8:x18446744073709551615"]
        {
            assert!(parse_sizes(text).is_err(), "{text}");
        }
    }

    proptest! {
        #![proptest_config(ombx_testkit::seeded())]
        #[test]
        fn any_text_is_read_or_refused(text in "[0-9KMGx:.,]{0,20}") {
            let _ = parse_sizes(&text);
        }

        #[test]
        fn a_range_grows_by_its_factor(from in 1u64..1000, factor in 2u64..9) {
            let sizes = read(&format!("{from}..100000:x{factor}"));
            prop_assert!(sizes.windows(2).all(|w| w[1] == w[0] * factor));
            prop_assert!(sizes[sizes.len() - 1] * factor > 100_000);
        }
    }
}
