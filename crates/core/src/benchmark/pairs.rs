//! Lists of pairs of numbers in options, such as `0:8,24:16`.

use std::sync::{Mutex, PoisonError};

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

/// What lists of this process describe, by their text. A job has few lists, which all its rows share.
pub(super) struct KnownLists<T: ?Sized + 'static>(Mutex<Vec<(String, &'static T)>>);

impl<T: ?Sized> KnownLists<T> {
    pub(super) const fn new() -> KnownLists<T> {
        KnownLists(Mutex::new(Vec::new()))
    }

    /// Returns what a text describes, which `parse` reads if it is new. It lives as long as the process.
    ///
    /// # Errors
    /// Those of `parse`.
    pub(super) fn of(&self, text: &str, parse: impl FnOnce(&str) -> Result<Box<T>>) -> Result<&'static T> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, list)) = known.iter().find(|(of, _)| of == text) {
            return Ok(list);
        }
        let list: &'static T = Box::leak(parse(text)?);
        known.push((text.to_owned(), list));
        Ok(list)
    }
}

/// Returns a number that differs between most lists of numbers.
pub(super) fn code(numbers: impl Iterator<Item = u64>) -> u16 {
    let mix = |code: u64, number: u64| (code ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
    numbers.fold(1, mix) as u16
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
