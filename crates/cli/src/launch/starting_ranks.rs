//! Ranks on this host that have not reported themselves yet. They are found among the descendants of their launcher.

use std::{fs, os::unix::fs::MetadataExt};

use rustix::process::Pid;

use super::orphans::descendants;

/// Ranks that are being started.
pub(super) struct StartingRanks {
    launcher: Pid,
    /// Number of ranks of the job, if all are on this host.
    expected: Option<u32>,
    /// Largest and last number of ranks that ran.
    most: u32,
    last: u32,
}

impl StartingRanks {
    pub(super) fn of(launcher: Pid, expected: Option<u32>) -> StartingRanks {
        StartingRanks { launcher, expected, most: 0, last: 0 }
    }

    /// Returns whether a rank has ended: fewer run than have run, or than the job has, and no more than at the last call. A wrapper
    /// around ranks may hide all of them.
    pub(super) fn is_one_missing(&mut self) -> bool {
        let program = identity("self");
        let is_rank = |pid: &Pid| identity(&pid.as_raw_nonzero().to_string()) == program;
        let running = descendants(self.launcher).iter().filter(|pid| is_rank(pid)).count() as u32;
        self.is_missing(running)
    }

    fn is_missing(&mut self, running: u32) -> bool {
        self.most = self.most.max(running);
        let all = if self.most > 0 { self.expected.unwrap_or(0).max(self.most) } else { 0 };
        let grows = running > self.last;
        self.last = running;
        running < all && !grows
    }
}

/// Returns device and inode of the program that a process runs. A process that has ended has none.
fn identity(process: &str) -> Option<(u64, u64)> {
    let program = fs::metadata(format!("/proc/{process}/exe")).ok()?;
    Some((program.dev(), program.ino()))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::{super::orphans::end_family, *};

    fn missing(expected: Option<u32>, running: &[u32]) -> Vec<bool> {
        let mut ranks = StartingRanks::of(rustix::process::getpid(), expected);
        running.iter().map(|running| ranks.is_missing(*running)).collect()
    }

    #[test]
    fn a_rank_is_missing_if_no_further_one_starts() {
        assert_eq!(missing(Some(4), &[0, 2, 3, 3, 4, 4]), [false, false, false, true, false, false]);
        assert_eq!(missing(Some(2), &[2, 1, 0]), [false, true, true]);
        assert_eq!(missing(None, &[0, 1, 2, 2, 1]), [false, false, false, false, true]);
        assert_eq!(missing(Some(2), &[0, 0]), [false, false], "a wrapper hides the ranks");
    }

    #[test]
    fn only_processes_of_this_program_are_ranks() {
        // Other tests start processes of this program, but not as descendants of the shell.
        let mut child = Command::new("sh").args(["-c", "sleep 60 & wait"]).spawn().unwrap();
        let mut ranks = StartingRanks::of(Pid::from_child(&child), Some(1));
        assert!(!ranks.is_one_missing());
        assert_eq!(ranks.most, 0);
        assert_eq!(identity("self"), identity(&std::process::id().to_string()));
        assert!(identity(&child.id().to_string()).is_none_or(|program| Some(program) != identity("self")));
        end_family(Pid::from_child(&child));
        child.wait().unwrap();
        let none = identity(&u32::MAX.to_string());
        assert_eq!(none, None);
    }
}
