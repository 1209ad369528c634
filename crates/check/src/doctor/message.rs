//! Whether messages from memory of devices arrive: a short run of this program tries it.

use std::{process::Command, time::Duration};

use ombx_core::benchmark::{ParameterValue, memory::BufferMemory};
use ombx_host::signals::Interruption;
use ombx_launch::{launch::finite_run, this_process};
use ombx_record::{
    error::{Error, Result},
    file,
    result::Outcome,
};

/// Benchmark that is tried, with two ranks of this host.
const RUN: [&str; 7] = ["run", "p2p.latency", "--sizes", "1K", "--quick", "--quiet", "--format=jsonl"];
/// Time after which the run has failed: drivers and libraries of devices may take tens of seconds to start.
const LONGEST: Duration = Duration::from_secs(120);

/// Sends messages between two ranks of this host from this memory. Returns a clause that says so.
///
/// # Errors
/// What `ombx run` says if the messages do not arrive.
pub(super) fn of_memory(memory: BufferMemory, interruption: &Interruption) -> Result<String> {
    let text = memory.text();
    let mut command = Command::new(this_process::executable()?);
    command.args(RUN).arg(format!("--memory={text}"));
    interruption.start()?;
    let texts = finite_run::run(command, LONGEST, || interruption.has_arrived());
    interruption.stop();
    let ([rows, messages], _) = texts?;
    let rows = file::read(rows.as_bytes()).map(|file| file.runs).unwrap_or_default();
    match rows.iter().flat_map(|run| &run.rows).map(|row| &row.outcome).next() {
        Some(Outcome::Ok) => {
            Ok(format!("messages of 1K bytes arrive right with --memory {text} on this host"))
        }
        Some(Outcome::Skipped(why) | Outcome::Failed(why)) => Err(Error::fabric(why.clone())),
        None => {
            let last =
                messages.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it says nothing");
            Err(Error::fabric(last.trim_start_matches("ombx: ")))
        }
    }
}
