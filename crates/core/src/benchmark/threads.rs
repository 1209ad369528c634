//! Threads per rank of multi-threaded benchmarks.

use std::{fmt, str::FromStr};

use crate::{
    benchmark::Role,
    error::{Error, Result},
    unit::digits,
};

/// Thread support that a benchmark needs from the library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Threading {
    /// Only the main thread calls the library.
    Single,
    /// Several threads call the library at the same time. This mode may slow down all benchmarks of the run.
    Multiple,
}

/// Threads on the timed rank and on the rank that answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Threads {
    /// Threads on the timed rank, each timed separately.
    pub senders: u32,
    /// Threads on the rank that answers. Any of them may answer any message.
    pub receivers: u32,
}

impl Threads {
    /// Maximum number of threads on one rank.
    const MAX: u32 = 64;

    /// Returns the number of threads of a rank with this role.
    pub const fn of(self, role: Role) -> u32 {
        match role {
            Role::Active => self.senders,
            Role::Passive => self.receivers,
        }
    }
}

/// The default of `osu_latency_mt`.
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
        let number = |part: &str| digits::<u32>(part).filter(|threads| (1..=Threads::MAX).contains(threads));
        text.split_once(':')
            .and_then(|(s, r)| Some(Threads { senders: number(s)?, receivers: number(r)? }))
            .ok_or_else(|| {
                Error::usage(format!(
                    "threads {text:?} is not senders:receivers, from 1 to {} each, such as 2:4",
                    Threads::MAX
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
        for text in ["", "2", ":", "0:2", "2:0", "x", "x:1", "1:2:3", "65:1", "1:65", "-1:2", "+1:2", "1: 2"]
        {
            assert!(text.parse::<Threads>().unwrap_err().to_string().contains("1 to 64"), "{text}");
        }
    }
}
