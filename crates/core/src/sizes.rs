//! Lists of sizes and of numbers, as users write them.

use crate::{
    error::{Error, Result},
    unit::Bytes,
};

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
    match size > MAX_SIZE {
        true => Err(Error::usage(format!(
            "size {size} is more than a process can address; use at most {MAX_SIZE}"
        ))),
        false => Ok(size),
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
    use super::*;
    use proptest::prelude::*;

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
        #![proptest_config(crate::testkit::seeded())]
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
