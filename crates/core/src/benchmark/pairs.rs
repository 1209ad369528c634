//! Lists of pairs of numbers in options, such as `0:8,24:16`.

use crate::{
    error::{Error, Result},
    unit::digits,
};

/// Most pairs of a list.
const MOST: usize = 1 << 20;

/// Reads pairs of numbers.
///
/// # Errors
/// Usage error that names the option and what is no pair.
pub(super) fn pairs(option: &str, text: &str) -> Result<Vec<(u64, u64)>> {
    let pair = |part: &str| {
        let found = part.split_once(':').and_then(|(one, other)| Some((digits(one)?, digits(other)?)));
        found.ok_or_else(|| {
            Error::usage(format!(
                "{option}: {part:?} is no pair of numbers: give pairs as in 0:8,24:16, or @FILE"
            ))
        })
    };
    let all: Vec<(u64, u64)> = text.split(',').map(pair).collect::<Result<_>>()?;
    match all.len() {
        0..=MOST => Ok(all),
        more => Err(Error::usage(format!("{option}: {more} pairs are more than {MOST}: give fewer"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_read() {
        assert_eq!(pairs("--x", "0:8,24:16").unwrap(), [(0, 8), (24, 16)]);
        for text in ["", "1", "1:", "1:2,", "-1:2", "1:2:3", "1: 2", "a:b", "99999999999999999999:1"] {
            assert!(pairs("--x", text).unwrap_err().to_string().starts_with("--x: "), "{text}");
        }
    }
}
