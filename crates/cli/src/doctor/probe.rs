//! Ranks that start no MPI, say where they are, and end.

use std::{
    io::Read,
    os::unix::process::CommandExt,
    process::{Command, Stdio},
    sync::mpsc,
    time::Duration,
};

use ombx_core::{
    error::{Error, Result},
    team::Place,
};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};

use crate::launch::detect;

/// Starting ranks on a tired cluster.
const PATIENCE: Duration = Duration::from_secs(60);
/// What the line of a rank begins with, among whatever a launcher says.
const MARK: &str = "ombx-probe ";

/// What a rank says of itself.
pub(super) struct Rank {
    pub(super) place: Place,
    /// The launcher that it sees.
    pub(super) by: Option<String>,
}

/// The line of this rank.
pub(super) fn words() -> String {
    let by = detect::launcher().map(|started| started.by);
    format!("{MARK}{}\n", json!({"place": Place::here(), "by": by}))
}

/// Runs a launcher and collects what its ranks say.
pub(super) fn ask(mut command: Command, ranks: u32, patience: Option<Duration>) -> Result<Vec<Rank>> {
    let program = command.get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child =
        command.spawn().map_err(|e| Error::fabric(format!("{program} could not be started: {e}")))?;
    let group = Pid::from_child(&child);
    let (sender, texts) = mpsc::channel();
    let pipes: [Option<Box<dyn Read + Send>>; 2] = [
        child.stdout.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>),
        child.stderr.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>),
    ];
    for pipe in pipes.into_iter().flatten() {
        let sender = sender.clone();
        std::thread::spawn(move || {
            let (mut pipe, mut text) = (pipe, Vec::new());
            let _ = pipe.read_to_end(&mut text);
            drop(sender.send(String::from_utf8_lossy(&text).into_owned()));
        });
    }
    drop(sender);
    let patience = patience.unwrap_or(PATIENCE);
    let said: Vec<String> = (0..2).map_while(|_| texts.recv_timeout(patience).ok()).collect();
    // Whoever is left of the job must not outlive it.
    let _ = kill_process_group(group, Signal::KILL);
    let _ = child.wait();
    if said.len() < 2 {
        return Err(Error::fabric(format!(
            "{program} did not end within {} s (--timeout gives it longer)",
            patience.as_secs()
        )));
    }
    let seen: Vec<Rank> = said.iter().flat_map(|text| text.lines()).filter_map(read).collect();
    if seen.len() == ranks as usize {
        return Ok(seen);
    }
    let last = said.iter().flat_map(|text| text.lines()).rfind(|line| !line.trim().is_empty());
    Err(Error::fabric(format!(
        "{program} started {} of {ranks} ranks; it said: {}",
        seen.len(),
        last.unwrap_or("nothing").trim()
    )))
}

fn read(line: &str) -> Option<Rank> {
    let (_, json) = line.split_once(MARK)?;
    let mut value: Value = serde_json::from_str(json).ok()?;
    let by = value["by"].as_str().map(str::to_owned);
    Some(Rank { place: serde_json::from_value(value["place"].take()).ok()?, by })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_is_understood_and_a_launchers_words_are_not() {
        let rank = read(&format!("[1,0]<stdout>:{}", words())).unwrap();
        assert_eq!(rank.place, Place::here());
        assert!(read("ombx-probe {").is_none() && read("hello").is_none());
    }

    #[test]
    fn a_launcher_that_hangs_or_fails_is_told() {
        let shell = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            command
        };
        let told = |command, patience| ask(command, 2, Some(patience)).err().unwrap().to_string();
        assert!(told(shell("sleep 90"), Duration::from_millis(100)).contains("did not end"));
        let why = told(shell("echo no such host >&2; exit 1"), PATIENCE);
        assert!(why.contains("started 0 of 2 ranks; it said: no such host"), "{why}");
    }
}
