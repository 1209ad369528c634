//! How many threads send and how many receive, where a benchmark runs several in a rank.

use std::{fmt, str::FromStr};

use crate::{
    benchmark::work::Role,
    error::{Error, Result},
};

/// What a benchmark asks of the library for threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Threading {
    /// The main thread alone calls it.
    Single,
    /// Several threads call it at the same time; a library that allows this may be slower for everyone.
    Multiple,
}

/// Threads on the timed rank and on the one that answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Threads {
    /// On the timed rank, each timed by itself.
    pub senders: u32,
    /// On the rank that answers; any of them answers any message.
    pub receivers: u32,
}

impl Threads {
    /// The most on one rank.
    const MOST: u32 = 64;

    /// Threads of a rank that does this.
    pub const fn of(self, role: Role) -> u32 {
        match role {
            Role::Active => self.senders,
            Role::Passive => self.receivers,
        }
    }
}

/// As the OSU benchmark has it.
impl Default for Threads {
    fn default() -> Threads {
        Threads { senders: 1, receivers: 2 }
    }
}

impl fmt::Display for Threads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.senders, self.receivers)
    }
}

impl FromStr for Threads {
    type Err = Error;

    /// Reads `senders:receivers`.
    fn from_str(text: &str) -> Result<Threads> {
        let number =
            |part: &str| part.parse::<u32>().ok().filter(|threads| (1..=Threads::MOST).contains(threads));
        text.split_once(':')
            .and_then(|(s, r)| Some(Threads { senders: number(s)?, receivers: number(r)? }))
            .ok_or_else(|| {
                Error::usage(format!(
                    "{text:?} is not senders:receivers, from 1 to {} of each, such as 2:4",
                    Threads::MOST
                ))
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_two_numbers() {
        assert_eq!("2:4".parse::<Threads>().unwrap(), Threads { senders: 2, receivers: 4 });
        assert_eq!(Threads::default().to_string(), "1:2");
        for text in ["", "2", ":", "0:2", "2:0", "x", "x:1", "1:2:3", "65:1", "1:65", "-1:2", "1: 2"] {
            assert!(text.parse::<Threads>().unwrap_err().to_string().contains("1 to 64"), "{text}");
        }
    }
}
