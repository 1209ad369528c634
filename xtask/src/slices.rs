//! Slices of the nightly checks. Every change runs one of them, so that no check sleeps for long.

use std::{
    fmt::{self, Write as _},
    process::Command,
};

use ombx_toolchain::{Failure, Flavour, Result, Share, Which, Workspace, output};

use crate::checks::{CHECKS, Check};

/// A check, or a part of it.
#[derive(Clone, Copy)]
pub(crate) struct Part {
    /// Name of the check.
    pub(crate) check: &'static str,
    /// MPI to test with [default: every installed one].
    pub(crate) mpi: Option<Which>,
    /// Part of the tests, cases or libraries of the check.
    pub(crate) share: Option<Share>,
}

impl Part {
    /// Returns a whole check.
    pub(crate) const fn whole(check: &'static str) -> Self {
        Self { check, mpi: None, share: None }
    }

    /// Returns a check with one MPI.
    const fn with(check: &'static str, mpi: Which) -> Self {
        Self { check, mpi: Some(mpi), share: None }
    }

    /// Returns the same with one of several shares.
    const fn share(self, part: usize, of: usize) -> Self {
        Self { share: Some(Share::new(part, of)), ..self }
    }

    /// Returns the check.
    ///
    /// # Panics
    /// There is none of this name.
    pub(crate) fn check(&self) -> &'static Check {
        CHECKS.iter().find(|check| check.name == self.check).expect("the name of a check")
    }

    /// Returns whether it tests with an MPI.
    pub(crate) fn has(&self, flavour: Flavour) -> bool {
        self.mpi.is_none_or(|which| which.flavours().contains(&flavour))
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.check)?;
        if let Some(mpi) = self.mpi {
            write!(f, " --mpi {}", mpi.flavours()[0].key())?;
        }
        self.share.map_or(Ok(()), |share| write!(f, " --share {share}"))
    }
}

/// Parts of checks that together take at most 12 minutes on 2 cores, with what they install and build.
pub(crate) struct Slice {
    pub(crate) parts: &'static [Part],
    /// Usual time in minutes after the checks of a change, in a fresh clone.
    minutes: u32,
}

const fn slice(minutes: u32, parts: &'static [Part]) -> Slice {
    Slice { parts, minutes }
}

/// All slices. Their number is a prime number: changes of equally many commits, if not of a multiple of it, come to every slice.
pub(crate) const SLICES: &[Slice] = &[
    slice(7, &[Part::with("matrices", Which::Mpich).share(1, 2)]),
    slice(11, &[Part::with("hosts", Which::Mpich).share(1, 3)]),
    slice(10, &[Part::with("fault-table", Which::Mpich)]),
    slice(12, &[Part::whole("libraries").share(1, 2), Part::whole("wheel")]),
    slice(9, &[Part::with("matrices", Which::Openmpi).share(1, 2)]),
    slice(11, &[Part::with("hosts", Which::Openmpi).share(1, 3)]),
    slice(12, &[Part::whole("published").share(1, 2)]),
    slice(11, &[Part::with("hosts", Which::Mpich).share(2, 3)]),
    slice(10, &[Part::with("fault-table", Which::Openmpi)]),
    slice(11, &[Part::whole("soak"), Part::whole("fuzz")]),
    slice(
        5,
        &[
            Part::whole("dependencies"),
            Part::whole("advisories"),
            Part::whole("oldest-rust"),
            Part::whole("without-mpi"),
            Part::whole("browser"),
            Part::whole("monitoring"),
        ],
    ),
    slice(10, &[Part::whole("sanitize"), Part::whole("instructions"), Part::whole("work")]),
    slice(7, &[Part::with("matrices", Which::Mpich).share(2, 2)]),
    slice(6, &[Part::with("matrices", Which::Openmpi).share(2, 2)]),
    slice(11, &[Part::with("hosts", Which::Openmpi).share(2, 3)]),
    slice(12, &[Part::whole("libraries").share(2, 2)]),
    slice(11, &[Part::with("hosts", Which::Mpich).share(3, 3)]),
    slice(11, &[Part::with("hosts", Which::Openmpi).share(3, 3)]),
    slice(12, &[Part::whole("published").share(2, 2), Part::whole("easybuild")]),
];

/// Returns the number of commits up to the one that is checked out.
pub(crate) fn commits(workspace: &Workspace) -> Result<u64> {
    let count =
        output(Command::new("git").args(["rev-list", "--count", "HEAD"]).current_dir(&workspace.root))?;
    count.trim().parse().map_err(|_| Failure::Missing(format!("git counts {count} commits")))
}

/// Returns the number of the slice that a commit runs.
pub(crate) fn of_commit(commits: u64) -> usize {
    (commits % SLICES.len() as u64) as usize + 1
}

/// Returns a line for each slice: number, usual time, parts.
pub(crate) fn listed() -> String {
    let mut text = String::new();
    for (number, slice) in (1..).zip(SLICES) {
        let _ = writeln!(text, "{number:2}  {:2} min  {slice}", slice.minutes);
    }
    let minutes: u32 = SLICES.iter().map(|slice| slice.minutes).sum();
    let _ = writeln!(text, "    {minutes} min together, on 2 cores");
    text
}

impl fmt::Display for Slice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, part) in self.parts.iter().enumerate() {
            write!(f, "{}{part}", if at > 0 { ", " } else { "" })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::checks::Tier;

    /// Longest usual time of a slice, and of all, in minutes.
    const LONGEST: [u32; 2] = [12, 200];

    #[test]
    fn slices_are_short_and_all_are_seen_in_twenty_changes() {
        assert!(SLICES.iter().all(|slice| slice.minutes <= LONGEST[0]));
        assert!(SLICES.iter().map(|slice| slice.minutes).sum::<u32>() <= LONGEST[1]);
        assert!(SLICES.len() <= 20);
        assert!((2..SLICES.len()).all(|divisor| !SLICES.len().is_multiple_of(divisor)), "a prime number");
        let seen: BTreeSet<usize> = (1000..1020).map(of_commit).collect();
        assert!(seen.into_iter().eq(1..=SLICES.len()));
    }

    /// Each nightly check is in slices with both MPIs, or with what it takes itself, and each share is in one of them.
    #[test]
    fn slices_together_are_the_nightly_checks() {
        for check in CHECKS.iter().filter(|check| check.tier == Tier::Nightly) {
            let parts = SLICES.iter().flat_map(|slice| slice.parts).filter(|part| part.check == check.name);
            for flavour in Flavour::ALL {
                let mut covered: Vec<_> =
                    parts.clone().filter(|part| part.has(flavour)).map(|part| part.share).collect();
                covered.sort_by_key(|share| share.map(|share| share.to_string()));
                let whole = match covered.len() {
                    1 => vec![None],
                    many => (1..=many).map(|part| Some(Share::new(part, many))).collect(),
                };
                assert_eq!(covered, whole, "{} with {flavour}", check.name);
            }
        }
        assert!(SLICES.iter().flat_map(|slice| slice.parts).all(|part| part.check().tier == Tier::Nightly));
    }
}
