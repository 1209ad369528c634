//! Threads per rank of multi-threaded benchmarks.

use ombx_record::{
    error::{Error, Result},
    unit::digits,
};
use serde::{Deserialize, Serialize};

use crate::benchmark::{Heading, Named, Parameter, ParameterValue, Role, if_chosen};

// Levels of MPI 4.1, 11.2.1, in increasing order.
crate::parameter! {
    /// Thread support for which MPI starts: by MPI_Init as most programs, or by MPI_Init_thread with a level; a library may be slower at a higher one. Benchmarks whose names end in _mt have multiple in any case
    #[derive(PartialOrd, Ord, Serialize, Deserialize)]
    pub enum Threading: "threading", First(if_chosen::<Threading>), default Single, under General {
        /// MPI_Init: a rank has one thread
        Single = "single",
        /// Only the main thread calls MPI
        Funneled = "funneled",
        /// One thread at a time calls MPI
        Serialized = "serialized",
        /// Several threads call MPI at the same time
        Multiple = "multiple",
    }
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
    pub const fn count(self, role: Role) -> u32 {
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
        self.count(Role::Active).max(self.count(Role::Passive))
    }
}

/// The parameter of benchmarks whose timed rank and answering rank may have different numbers of threads. Any thread may answer any
/// message. The default is that of `osu_latency_mt`.
pub const SHARED_THREADS: &Parameter =
    &Threads::PARAMETER.usually("1:2").named(Named::AfterSize(|values, _| {
        let threads: Threads = values.get();
        Some(format!("{}:{}", threads.count(Role::Active), threads.count(Role::Passive)))
    }));

/// The parameter of benchmarks whose ranks all have as many threads. Threads with the same number communicate, on a communicator of
/// their own.
pub const MATCHED_THREADS: &Parameter = &Threads::PARAMETER
    .usually("2")
    .named(Named::AfterSize(|values, _| Some(values.get::<Threads>().text())));

impl ParameterValue for Threads {
    const PARAMETER: &'static Parameter = &Parameter::list_of::<Threads>(
        "threads",
        "T|S:R",
        "Threads per rank of benchmarks with several threads, whose names end in _mt; of p2p.latency_mt \
         also sending and receiving ones, for example: --threads 1,2,4 or 2:4 [default: 2, and 1:2]",
    )
    .under(Heading::General);
    /// Of benchmarks with one thread per rank.
    const DEFAULT: Threads = Threads::Each(1);

    /// Reads a number, or `senders:receivers`.
    fn parse(text: &str) -> Result<Threads> {
        let number = |part: &str| digits::<u32>(part).filter(|threads| (1..=Threads::MAX).contains(threads));
        let threads = match text.split_once(':') {
            Some((s, r)) => {
                number(s).zip(number(r)).map(|(senders, receivers)| Threads::ByRole { senders, receivers })
            }
            None => number(text).map(Threads::Each),
        };
        threads.ok_or_else(|| {
            Error::usage(format!(
                "threads {text:?} is neither a number of threads per rank nor senders:receivers, from 1 to \
                 {} each, such as 4 or 2:4",
                Threads::MAX
            ))
        })
    }

    fn text(&self) -> String {
        match self {
            Threads::Each(threads) => threads.to_string(),
            Threads::ByRole { senders, receivers } => format!("{senders}:{receivers}"),
        }
    }
}

crate::parameter! {
    /// How MPI starts: as the world that every MPI has, or as a session of MPI 4 with a communicator of its own
    pub enum Initialization: "init", First(if_chosen::<Initialization>), default World, under General {
        /// MPI_Init or MPI_Init_thread, and a duplicate of MPI_COMM_WORLD
        World = "world",
        /// MPI_Session_init of MPI 4
        Session = "session",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_one_number_or_two() {
        assert_eq!(Threads::parse("2:4").unwrap(), Threads::ByRole { senders: 2, receivers: 4 });
        assert_eq!(Threads::parse("4").unwrap(), Threads::Each(4));
        for text in
            ["", ":", "0", "0:2", "2:0", "x", "x:1", "1:2:3", "65", "65:1", "1:65", "-1:2", "+1:2", "1: 2"]
        {
            assert!(Threads::parse(text).unwrap_err().to_string().contains("1 to 64"), "{text}");
        }
    }

    #[test]
    fn senders_and_receivers_have_their_own_numbers() {
        let threads = Threads::ByRole { senders: 1, receivers: 3 };
        assert_eq!([Role::Active, Role::Passive].map(|role| threads.count(role)), [1, 3]);
        assert_eq!([Role::Active, Role::Passive].map(|role| Threads::Each(2).count(role)), [2, 2]);
    }

    #[test]
    fn one_number_fits_every_benchmark() {
        let named = |parameter: &'static Parameter, text: &str| {
            let mut case = crate::benchmark::Case::of_pair(8);
            case.values.push(parameter, Some(text.into()));
            case.key("x.y", None)
        };
        assert_eq!(named(SHARED_THREADS, "1:2"), "x.y/bytes=8,threads=1:2");
        assert_eq!(named(SHARED_THREADS, "4"), "x.y/bytes=8,threads=4:4");
        assert_eq!(named(MATCHED_THREADS, "2"), "x.y/bytes=8,threads=2");
        assert_eq!([SHARED_THREADS, MATCHED_THREADS].map(|of| of.defaults().join(",")), ["1:2", "2"]);
    }
}
