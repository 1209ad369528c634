//! Threads per rank of multi-threaded benchmarks.

use std::{fmt, str::FromStr};

use crate::{
    benchmark::Role,
    error::{Error, Result},
    unit::digits,
};

/// Level of thread support for which MPI is initialised (MPI 4.1, 11.2.1), in increasing order. A library may be slower at a higher level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Threading {
    /// `MPI_Init`: a rank has one thread.
    #[default]
    Single,
    /// Only the main thread calls the library.
    Funneled,
    /// One thread at a time calls the library.
    Serialized,
    /// Several threads call the library at the same time.
    Multiple,
}

impl Threading {
    /// Name of the option, and of the label of rows.
    pub const NAME: &'static str = "threading";
    /// All levels.
    pub const ALL: [Threading; 4] =
        [Threading::Single, Threading::Funneled, Threading::Serialized, Threading::Multiple];

    /// Returns the name on the command line and in results.
    pub const fn name(self) -> &'static str {
        match self {
            Threading::Single => "single",
            Threading::Funneled => "funneled",
            Threading::Serialized => "serialized",
            Threading::Multiple => "multiple",
        }
    }

    /// Returns the label of rows: none for the default.
    pub fn label(self) -> Option<(&'static str, &'static str)> {
        (self != Threading::default()).then(|| (Threading::NAME, self.name()))
    }
}

impl FromStr for Threading {
    type Err = Error;

    fn from_str(text: &str) -> Result<Threading> {
        Threading::ALL.into_iter().find(|level| level.name() == text).ok_or_else(|| {
            Error::usage("not a level of thread support: give single, funneled, serialized or multiple")
        })
    }
}

/// Which threads a benchmark with several threads per rank has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadRoles {
    /// The timed rank and the rank that answers may have different numbers. Any thread may answer any message.
    Shared,
    /// Every rank has as many. Threads with the same number communicate, on a communicator of their own.
    Matched,
}

/// Threads of each rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Threads {
    /// As many on every rank.
    Each(u32),
    /// Different numbers by role.
    ByRole {
        /// Threads on the timed rank.
        senders: u32,
        /// Threads on the rank that answers.
        receivers: u32,
    },
}

impl Threads {
    /// Maximum number of threads on one rank.
    const MAX: u32 = 64;

    /// Returns the number of threads of a rank with this role.
    pub const fn of(self, role: Role) -> u32 {
        match (self, role) {
            (Threads::Each(threads), _) => threads,
            (Threads::ByRole { senders, .. }, Role::Active) => senders,
            (Threads::ByRole { receivers, .. }, Role::Passive) => receivers,
        }
    }

    /// Returns whether one number gives the threads of every rank.
    pub const fn is_one_number(self) -> bool {
        matches!(self, Threads::Each(_))
    }

    /// Returns the largest number of threads of a rank.
    pub fn most(self) -> u32 {
        self.of(Role::Active).max(self.of(Role::Passive))
    }
}

impl ThreadRoles {
    /// Returns the threads of a benchmark if the user has chosen these, or none.
    pub fn threads(self, chosen: Option<Threads>) -> Threads {
        match (self, chosen) {
            // The default of `osu_latency_mt`.
            (ThreadRoles::Shared, None) => Threads::ByRole { senders: 1, receivers: 2 },
            (ThreadRoles::Shared, Some(chosen)) => {
                Threads::ByRole { senders: chosen.of(Role::Active), receivers: chosen.of(Role::Passive) }
            }
            (ThreadRoles::Matched, chosen) => Threads::Each(chosen.map_or(2, Threads::most)),
        }
    }
}

impl fmt::Display for Threads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Threads::Each(threads) => threads.fmt(f),
            Threads::ByRole { senders, receivers } => write!(f, "{senders}:{receivers}"),
        }
    }
}

impl FromStr for Threads {
    type Err = Error;

    /// Reads a number, or `senders:receivers`.
    fn from_str(text: &str) -> Result<Threads> {
        let number = |part: &str| digits::<u32>(part).filter(|threads| (1..=Threads::MAX).contains(threads));
        let threads = match text.split_once(':') {
            Some((s, r)) => {
                number(s).zip(number(r)).map(|(senders, receivers)| Threads::ByRole { senders, receivers })
            }
            None => number(text).map(Threads::Each),
        };
        threads.ok_or_else(|| {
            Error::usage(format!(
                "threads {text:?} is neither a number of threads per rank nor senders:receivers, from 1 to {} each, such as 4 or 2:4",
                Threads::MAX
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_one_number_or_two() {
        assert_eq!("2:4".parse::<Threads>().unwrap(), Threads::ByRole { senders: 2, receivers: 4 });
        assert_eq!("4".parse::<Threads>().unwrap(), Threads::Each(4));
        for text in
            ["", ":", "0", "0:2", "2:0", "x", "x:1", "1:2:3", "65", "65:1", "1:65", "-1:2", "+1:2", "1: 2"]
        {
            assert!(text.parse::<Threads>().unwrap_err().to_string().contains("1 to 64"), "{text}");
        }
    }

    #[test]
    fn senders_and_receivers_have_their_own_numbers() {
        let threads = Threads::ByRole { senders: 1, receivers: 3 };
        assert_eq!([Role::Active, Role::Passive].map(|role| threads.of(role)), [1, 3]);
        assert_eq!([Role::Active, Role::Passive].map(|role| Threads::Each(2).of(role)), [2, 2]);
    }

    #[test]
    fn one_number_fits_every_benchmark() {
        let named = |roles: ThreadRoles, text: Option<&str>| {
            roles.threads(text.map(|text| text.parse().unwrap())).to_string()
        };
        assert_eq!(named(ThreadRoles::Shared, None), "1:2");
        assert_eq!(named(ThreadRoles::Shared, Some("4")), "4:4");
        assert_eq!(named(ThreadRoles::Matched, None), "2");
        assert_eq!(named(ThreadRoles::Matched, Some("4")), "4");
    }
}
