//! Which rank a launcher says was the first to end.

use serde_json::Value;

/// Process and host of each rank.
#[derive(Debug, Default)]
pub(super) struct Crew(Vec<(u64, String)>);

impl Crew {
    /// As rank 0 tells it.
    pub(super) fn of(line: &Value) -> Crew {
        let ranks = line["ranks"].as_array().into_iter().flatten();
        Crew(
            ranks
                .map(|rank| (rank[0].as_u64().unwrap_or(0), rank[1].as_str().unwrap_or_default().to_owned()))
                .collect(),
        )
    }

    /// `rank 1 on n01`, if the launcher's words name it.
    pub(super) fn lost(&self, words: &[String]) -> Option<String> {
        let rank = words.iter().find_map(|line| self.hydra(line).or_else(|| open_mpi(line)))?;
        let (_, host) = self.0.get(rank)?;
        Some(format!("rank {rank} on {host}"))
    }

    /// Whether a process on this host has ended, though its launcher may not know.
    pub(super) fn is_missing(&self) -> bool {
        self.gone().is_some()
    }

    /// `rank 1 on n01`, which is this host, and its process is no more.
    pub(super) fn gone(&self) -> Option<String> {
        let here = ombx_core::system::environment::hostname();
        // Of one that has ended and that nobody has waited for, it is not told which program it was.
        let lives = |pid: u64| std::fs::read_link(format!("/proc/{pid}/exe")).is_ok();
        let mut ours = (0..).zip(&self.0).filter(|(_, (_, host))| *host == here);
        ours.find(|(_, (pid, _))| !lives(*pid)).map(|(rank, (_, host))| format!("rank {rank} on {host}"))
    }

    /// `=   PID 4711 RUNNING AT n01`
    fn hydra(&self, line: &str) -> Option<usize> {
        let (pid, host) = line.split_once("PID ")?.1.split_once(" RUNNING AT ")?;
        let (pid, host): (u64, &str) = (pid.trim().parse().ok()?, host.trim());
        self.0.iter().position(|(known, place)| (*known, place.as_str()) == (pid, host))
    }
}

/// `mpiexec noticed that process rank 1 with PID 0 on node n01 exited on signal 9`, `Process name: [[57341,1],1]`
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn launchers_name_who_was_lost() {
        let crew = Crew::of(&json!({"ranks": [[4710, "n01"], [4711, "n02"]]}));
        for line in [
            "=   PID 4711 RUNNING AT n02",
            "mpiexec noticed that process rank 1 with PID 0 on node n02 exited on signal 9 (Killed).",
            "  Process name: [[57341,1],1]",
        ] {
            let words = ["==========".to_owned(), line.to_owned()];
            assert_eq!(crew.lost(&words).as_deref(), Some("rank 1 on n02"), "{line}");
        }
        for line in ["", "=   PID 4711 RUNNING AT n01", "Process name: [[57341,1],7]", "PID x RUNNING AT y"] {
            assert_eq!(crew.lost(&[line.to_owned()]), None, "{line}");
        }
    }
}
