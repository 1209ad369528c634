//! Share of a list: checks that take long run a part of it at a time.

use std::{fmt, str::FromStr};

use fastrand::Rng;

/// One of several parts of equal length. All parts together are the whole list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    part: usize,
    of: usize,
}

impl Share {
    /// Returns the `part`-th of `of` parts; the first is 1.
    ///
    /// # Panics
    /// There is no such part.
    pub const fn new(part: usize, of: usize) -> Self {
        assert!(1 <= part && part <= of, "parts are counted from 1");
        Self { part, of }
    }

    /// Returns the elements of this part, in their order. A seed deals the elements into parts at random; without one, every
    /// `of`-th element belongs to the same part.
    pub fn select<T>(self, list: Vec<T>, seed: Option<u64>) -> Vec<T> {
        let mut dealt: Vec<usize> = (0..list.len()).map(|at| at % self.of).collect();
        if let Some(seed) = seed {
            Rng::with_seed(seed).shuffle(&mut dealt);
        }
        list.into_iter().zip(dealt).filter(|(_, part)| part + 1 == self.part).map(|(one, _)| one).collect()
    }
}

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers =
            text.split_once('/').and_then(|(part, of)| Some((part.parse().ok()?, of.parse().ok()?)));
        match numbers {
            Some((part, of)) if (1..=of).contains(&part) => Ok(Self { part, of }),
            _ => Err("give the number of a part and the number of all parts, for example 2/3".into()),
        }
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.part, self.of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(seed: Option<u64>) -> Vec<Vec<usize>> {
        (1..=3).map(|part| Share::new(part, 3).select((0..10).collect(), seed)).collect()
    }

    #[test]
    fn without_a_seed_every_third_element_is_in_a_part() {
        assert_eq!(parts(None), [vec![0, 3, 6, 9], vec![1, 4, 7], vec![2, 5, 8]]);
    }

    #[test]
    fn a_seed_deals_every_element_into_one_part() {
        let dealt = parts(Some(7));
        assert!(dealt.iter().all(|part| part.is_sorted() && part.len() >= 3), "{dealt:?}");
        let mut all = dealt.concat();
        all.sort_unstable();
        assert_eq!(all, (0..10).collect::<Vec<_>>());
        assert_eq!(dealt, parts(Some(7)));
        assert!((0..5).any(|seed| parts(Some(seed)) != dealt));
    }

    #[test]
    fn a_share_is_read_as_it_is_written() {
        assert_eq!("2/3".parse(), Ok(Share::new(2, 3)));
        assert_eq!(Share::new(2, 3).to_string(), "2/3");
        for wrong in ["", "2", "0/3", "4/3", "1/0", "a/b"] {
            assert!(wrong.parse::<Share>().is_err(), "{wrong}");
        }
    }
}
