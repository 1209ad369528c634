//! How many iterations a row of IMB has: `-iter`, `-iter_policy` and `-time`.

use std::time::Duration;

use clap::ValueEnum;
use ombx_core::error::{Error, Result};

/// IMB's `-iter`: iterations, and the volume that limits them for large messages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Iterations {
    pub(super) most: u64,
    /// Bytes.
    pub(super) volume: u64,
    /// Iterations of writes that are each completed by a synchronisation of the file.
    pub(super) single: u64,
}

impl Default for Iterations {
    fn default() -> Iterations {
        Iterations { most: 1000, volume: 40 << 20, single: Iterations::SINGLE }
    }
}

impl Iterations {
    /// Default of IMB-P2P.
    pub(super) const PEER_TO_PEER: Iterations =
        Iterations { most: 100_000, volume: 800 << 20, single: Iterations::SINGLE };
    /// Default of writes that are each completed by a synchronisation of the file.
    const SINGLE: u64 = 100;

    pub(super) fn parse(text: &str) -> Result<Iterations> {
        let (most, volume) = text.split_once(',').unwrap_or((text, "40"));
        let (volume, single) = volume.split_once(',').unwrap_or((volume, "100"));
        let number = |text: &str, most: u64| text.parse::<u64>().ok().filter(|n| (1..=most).contains(n));
        match (number(most, 1 << 32), number(volume, 1 << 30), number(single, 1 << 32)) {
            (Some(most), Some(volume), Some(single)) => Ok(Iterations { most, volume: volume << 20, single }),
            _ => Err(Error::usage(
                "not a number of iterations: give 100, 1000,40 with a limit in MiB, or 1000,40,100 with the iterations of writes that are synchronised one by one",
            )),
        }
    }

    /// Returns the numbers for writes that are each completed by a synchronisation of the file.
    pub(super) fn of_single(self) -> Iterations {
        Iterations { most: self.most.min(self.single), ..self }
    }

    /// Returns the iterations for messages of this size.
    pub(super) fn for_size(self, bytes: u64) -> u64 {
        self.volume.checked_div(bytes).map_or(self.most, |fit| self.most.min(fit).max(1))
    }
}

/// IMB's `-iter_policy`: what changes the number of iterations beside the volume of large messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum IterationPolicy {
    /// Fewer iterations if they would take longer than -time
    #[default]
    Dynamic,
    /// A multiple of the number of processes
    #[value(name = "multiple_np")]
    Multiple,
    /// As multiple_np if the collective has a root, otherwise as dynamic
    Auto,
    /// Nothing
    Off,
}

impl IterationPolicy {
    /// Default of `-time`.
    const TIME: Duration = Duration::from_secs(10);

    /// Returns the policy of a benchmark, which is not [`IterationPolicy::Auto`].
    pub(super) const fn of(self, is_rooted: bool) -> IterationPolicy {
        match self {
            IterationPolicy::Auto if is_rooted => IterationPolicy::Multiple,
            IterationPolicy::Auto => IterationPolicy::Dynamic,
            policy => policy,
        }
    }

    /// Returns the iterations of a row that would have `iterations`.
    pub(super) fn iterations(self, iterations: u64, processes: Option<u32>) -> u64 {
        match (self, processes) {
            (IterationPolicy::Multiple, Some(processes)) => {
                iterations.next_multiple_of(u64::from(processes.max(1)))
            }
            _ => iterations,
        }
    }

    /// Returns the maximum time of a row, if it has one. `given` is that of the user.
    pub(super) fn most_time(self, given: Option<Duration>) -> Option<Duration> {
        (self == IterationPolicy::Dynamic).then(|| given.unwrap_or(IterationPolicy::TIME))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_messages_have_fewer_iterations() {
        let usual = Iterations::parse("1000").unwrap();
        let found =
            [0, 1, 32 << 10, 64 << 10, 128 << 10, 4 << 20, 1 << 30].map(|bytes| usual.for_size(bytes));
        assert_eq!(found, [1000, 1000, 1000, 640, 320, 10, 1]);
        assert_eq!(Iterations::parse("10,1,5").unwrap().for_size(1 << 20), 1);
        let of_single = |text: &str| Iterations::parse(text).unwrap().of_single().for_size(8);
        assert_eq!(["1000", "1000,40,5", "7"].map(of_single), [100, 5, 7]);
        for text in ["", "0", "-1", "10,x", "10,0", "10,1,x"] {
            assert!(Iterations::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_policy_changes_the_number_of_iterations() {
        use IterationPolicy::{Auto, Dynamic, Multiple, Off};
        let of = |policy: IterationPolicy, is_rooted| {
            let policy = policy.of(is_rooted);
            (policy.iterations(1000, Some(3)), policy.most_time(None).map(|time| time.as_secs()))
        };
        assert_eq!(of(Dynamic, true), (1000, Some(10)));
        assert_eq!([of(Multiple, false), of(Auto, true)], [(1002, None); 2]);
        assert_eq!(of(Auto, false), (1000, Some(10)));
        assert_eq!(of(Off, true), (1000, None));
        let given = Some(Duration::from_millis(1500));
        assert_eq!((Dynamic.most_time(given), Off.most_time(given)), (given, None));
        assert_eq!(Multiple.iterations(1000, None), 1000);
    }
}
