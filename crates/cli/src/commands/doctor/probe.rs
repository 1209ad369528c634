//! Processes of a launcher that print where they run, start no MPI, and end.

use std::{process::Command, time::Duration};

use ombx_core::{
    error::{Error, Result},
    fact::Facts,
    system::machine,
    team::Place,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::launch::{detection, finite_run};

/// Default time limit, which a slow cluster needs.
const LIMIT: Duration = Duration::from_secs(60);
/// Start of the line of a rank, among the launcher's own output.
const MARK: &str = "ombx-probe ";

/// Facts that a rank reports about itself.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Rank {
    pub(super) place: Place,
    /// Launcher that the rank detects.
    pub(super) launcher: Option<String>,
    /// Facts about its host.
    pub(super) facts: Facts,
}

/// Returns the line that describes this rank.
pub(super) fn line() -> String {
    let launcher = detection::launcher().map(|started| started.launcher.to_string());
    format!("{MARK}{}\n", json!(Rank { place: Place::here(), launcher, facts: machine::facts().clone() }))
}

/// Runs a launcher and returns its ranks. Fails if the launcher hangs or does not start all of them.
pub(super) fn run(command: Command, ranks: u32, limit: Option<Duration>) -> Result<Vec<Rank>> {
    let program = command.get_program().to_string_lossy().into_owned();
    let texts = finite_run::texts_of(command, limit.unwrap_or(LIMIT), || false)?;
    let seen: Vec<Rank> = texts.iter().flat_map(|text| text.lines()).filter_map(read).collect();
    if seen.len() == ranks as usize {
        return Ok(seen);
    }
    let mut lines = texts.iter().flat_map(|text| text.lines()).map(str::trim).filter(|line| !line.is_empty());
    let said = match (lines.next(), lines.next_back()) {
        (Some(first), Some(last)) => format!("it says: {first} .. {last}"),
        (Some(only), None) => format!("it says: {only}"),
        (None, _) => "it says nothing".to_owned(),
    };
    Err(Error::fabric(format!("{program} started {} of {ranks} ranks; {said}", seen.len())))
}

fn read(line: &str) -> Option<Rank> {
    let (_, json) = line.split_once(MARK)?;
    serde_json::from_str(json).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_a_rank_is_read_and_other_lines_are_not() {
        let rank = read(&format!("[1,0]<stdout>:{}", line())).unwrap();
        assert_eq!((rank.place, &rank.facts), (Place::here(), machine::facts()));
        assert!(read("ombx-probe {").is_none() && read("hello").is_none());
    }

    #[test]
    fn a_launcher_that_hangs_or_fails_is_reported() {
        let shell = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            command
        };
        let error = |command, limit| run(command, 2, Some(limit)).err().unwrap().to_string();
        assert!(error(shell("sleep 90"), Duration::from_millis(100)).contains("did not end"));
        let why = error(shell("echo no such host >&2; echo; echo bye >&2; exit 1"), LIMIT);
        assert!(why.contains("started 0 of 2 ranks; it says: no such host .. bye"), "{why}");
    }
}
