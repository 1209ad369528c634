//! Process and host of each rank, which identify the rank that ended first.

use std::{fs, path::Path};

use ombx_core::system::environment;
use signal_hook::low_level::signal_name;

use crate::output::relay::RankProcess;

/// Process of each rank.
#[derive(Debug, Default)]
pub(super) struct RankTable(pub(super) Vec<RankProcess>);

impl RankTable {
    /// Returns the rank that the launcher's output names as lost, as `rank 1 on n01`.
    pub(super) fn lost(&self, output: &[String]) -> Option<String> {
        let rank = output.iter().find_map(|line| self.hydra(line).or_else(|| open_mpi(line)))?;
        self.0.get(rank).map(|process| format!("rank {rank} on {}", process.host))
    }

    /// Returns the processes of the ranks on this host.
    pub(super) fn here(&self) -> impl Iterator<Item = u64> {
        let here = environment::hostname();
        self.0.iter().filter(move |process| process.host == here).map(|process| process.pid)
    }

    /// Returns a rank on this host whose process has ended, as `rank 1 on n01`. Its launcher may not have noticed.
    pub(super) fn ended_here(&self) -> Option<String> {
        let here = environment::hostname();
        // A zombie has no executable.
        let lives = |pid: u64| fs::read_link(Path::new("/proc").join(pid.to_string()).join("exe")).is_ok();
        let mut ours = (0..).zip(&self.0).filter(|(_, process)| process.host == here);
        ours.find(|(_, process)| !lives(process.pid))
            .map(|(rank, process)| format!("rank {rank} on {}", process.host))
    }

    /// Reads `=   PID 4711 RUNNING AT n01`.
    fn hydra(&self, line: &str) -> Option<usize> {
        let (pid, host) = line.split_once("PID ")?.1.split_once(" RUNNING AT ")?;
        let (pid, host): (u64, &str) = (pid.trim().parse().ok()?, host.trim());
        self.0.iter().position(|process| process.pid == pid && process.host == host)
    }
}

/// Reads `mpiexec noticed that process rank 1 with PID 0 on node n01 exited on signal 9` or `Process name: [[57341,1],1]`.
fn open_mpi(line: &str) -> Option<usize> {
    let number = |text: &str| {
        let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    };
    match line.split_once("process rank ") {
        Some((_, after)) => number(after),
        None => number(line.split_once("Process name: [[")?.1.split_once("],")?.1),
    }
}

/// Returns the name of the signal by which the launcher's output says that a rank died: `EXIT STRING: Killed (signal 9)` or `exited on
/// signal 9 (Killed)`.
pub(super) fn signal_in(output: &[String]) -> Option<String> {
    let number = |line: &String| {
        let (before, after) = line.split_once("signal ")?;
        let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
        let says = before.ends_with('(') || before.ends_with("on ");
        digits.parse::<i32>().ok().filter(|_| says)
    };
    let number = output.iter().find_map(number)?;
    Some(signal_name(number).map_or_else(|| format!("signal {number}"), str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launchers_name_the_signal() {
        for line in [
            "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)",
            "mpiexec noticed that process rank 1 with PID 0 on node n02 exited on signal 9 (Killed).",
        ] {
            assert_eq!(signal_in(&["x".to_owned(), line.to_owned()]).as_deref(), Some("SIGKILL"), "{line}");
        }
        assert_eq!(signal_in(&["typical reasons are listed under signal 7".to_owned()]), None);
    }

    #[test]
    fn launchers_name_the_lost_rank() {
        let ranks = RankTable(
            [(4710, "n01"), (4711, "n02")].map(|(pid, host)| RankProcess { pid, host: host.into() }).into(),
        );
        for line in [
            "=   PID 4711 RUNNING AT n02",
            "mpiexec noticed that process rank 1 with PID 0 on node n02 exited on signal 9 (Killed).",
            "  Process name: [[57341,1],1]",
        ] {
            let output = ["==========".to_owned(), line.to_owned()];
            assert_eq!(ranks.lost(&output).as_deref(), Some("rank 1 on n02"), "{line}");
        }
        for line in ["", "=   PID 4711 RUNNING AT n01", "Process name: [[57341,1],7]", "PID x RUNNING AT y"] {
            assert_eq!(ranks.lost(&[line.to_owned()]), None, "{line}");
        }
    }
}
