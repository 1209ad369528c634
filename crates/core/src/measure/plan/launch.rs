//! Launches: repetitions of the whole job.

use std::{fmt, str::FromStr};

use crate::{
    error::{Error, Result},
    measure::shuffle::Shuffle,
};

/// One of several launches of the same plan. Each runs the cases in another order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Launch {
    /// Number of this launch, from 1.
    pub number: u32,
    /// Number of launches.
    pub of: u32,
    /// Seed of the order of cases.
    pub order: u64,
}

impl Launch {
    /// Returns the items in the order of this launch.
    pub fn arrange<T>(&self, items: Vec<T>) -> Vec<T> {
        let shuffle = Shuffle::new(u32::try_from(items.len()).unwrap_or(u32::MAX), self.order);
        let mut placed: Vec<(u32, T)> =
            (0..).zip(items).map(|(at, item)| (shuffle.forth(at), item)).collect();
        placed.sort_by_key(|(at, _)| *at);
        placed.into_iter().map(|(_, item)| item).collect()
    }
}

impl fmt::Display for Launch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.number, self.of, self.order)
    }
}

/// Reads `2/5/42`: the second of five launches, in the order of seed 42.
impl FromStr for Launch {
    type Err = Error;

    fn from_str(text: &str) -> Result<Launch> {
        let mut parts = text.split('/');
        let mut next = || parts.next().and_then(|part| part.parse::<u64>().ok());
        let small = |n: u64| u32::try_from(n).ok().filter(|n| *n > 0);
        let read = (next().and_then(small), next().and_then(small), next());
        match (read, parts.next()) {
            ((Some(number), Some(of), Some(order)), None) if number <= of => Ok(Launch { number, of, order }),
            _ => Err(Error::usage(format!("launch {text:?} is not number/count/seed, such as 2/5/42"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launches_are_parsed_printed_and_shuffle_rows() {
        let launch: Launch = "2/5/42".parse().unwrap();
        assert_eq!((launch.number, launch.of, launch.order), (2, 5, 42));
        assert_eq!(launch.to_string(), "2/5/42");
        for text in ["", "2", "2/5", "0/5/1", "6/5/1", "1/1/1/1", "a/b/c"] {
            assert!(text.parse::<Launch>().is_err(), "{text}");
        }
        let items: Vec<u32> = (0..40).collect();
        let arranged = launch.arrange(items.clone());
        assert_ne!(arranged, items);
        assert_ne!(arranged, Launch { order: 43, ..launch }.arrange(items.clone()));
        let mut sorted = arranged;
        sorted.sort_unstable();
        assert_eq!(sorted, items);
        assert!(launch.arrange(Vec::<u32>::new()).is_empty());
    }
}
