//! Jobs that a scheduler runs: submitted, followed by the files that they leave, and cancelled at their time limit.

use std::{
    ffi::OsStr,
    fs, io,
    path::Path,
    process::{Command, Output, Stdio},
    thread,
    time::Duration,
};

use ombx_core::{
    error::{Error, Result},
    system::clock::Since,
};

use super::batch;
use crate::{
    cluster::{Cluster, Launcher},
    interrupt,
    plan::Job,
    remote::{Ended, ScriptFiles, at},
};

const POLL: Duration = Duration::from_millis(200);
/// Time between two queries of the scheduler.
const QUERY: Duration = Duration::from_secs(3);
/// Time after a job left the queue for its files to appear on a network file system.
const SETTLE: Duration = Duration::from_secs(10);

/// Commands of a scheduler. The last two get the job id as their last argument.
struct Commands {
    submit: Vec<String>,
    cancel: Vec<String>,
    /// Command that fails once the job has left the queue. Empty if the scheduler has no such command.
    status: Vec<String>,
}

impl Commands {
    fn of(cluster: &Cluster) -> Self {
        let inventory = &cluster.inventory;
        match cluster.launcher {
            Launcher::Script { .. } => Self {
                submit: inventory.submit.clone(),
                cancel: inventory.cancel.clone(),
                status: inventory.status.clone(),
            },
            _ => Self {
                submit: ["sbatch", "--parsable"].map(str::to_owned).to_vec(),
                cancel: vec!["scancel".to_owned()],
                // The exit code of squeue is 0 for some time after the end of a job.
                status: ["sh", "-c", "squeue -h -o %T -j \"$0\" | grep -q ."].map(str::to_owned).to_vec(),
            },
        }
    }
}

/// Runs a command with one more argument and without input; none if the command is empty.
fn run_command(command: &[String], argument: impl AsRef<OsStr>) -> Option<io::Result<Output>> {
    let (program, arguments) = command.split_first()?;
    Some(Command::new(program).args(arguments).arg(argument).stdin(Stdio::null()).output())
}

/// Cancels a job that was submitted but not followed to its end, because that call was killed.
pub(super) fn withdraw(cluster: &Cluster, directory: &Path) {
    let answer = fs::read_to_string(directory.join("submitted")).unwrap_or_default();
    if !answer.is_empty() && !directory.join("exit").exists() {
        run_command(&Commands::of(cluster).cancel, job_id(&answer));
    }
}

/// Returns the job id in the answer of a scheduler: `12`, `12.server`, `Job <12> is submitted`.
fn job_id(answer: &str) -> &str {
    let mut words = answer.split([';', ' ', '\n']);
    let has_digit = |word: &&str| word.contains(|c: char| c.is_ascii_digit());
    let word = words.clone().find(has_digit).or_else(|| words.next()).unwrap_or_default();
    word.trim_matches(|c: char| !c.is_alphanumeric())
}

/// Submits a job and waits for the file with its exit code. The time limit begins when the job starts.
pub(super) fn run(cluster: &Cluster, job: &Job, script: &str, files: &ScriptFiles) -> Result<Ended> {
    let directory = cluster.record.job(job);
    let write = |path: &Path, text: &str| fs::write(path, text).map_err(at(path));
    let batch = directory.join("batch.sh");
    write(&files.script, script)?;
    write(&batch, &batch::script(cluster, job, &files.script)?)?;
    let Commands { submit, cancel, status } = Commands::of(cluster);
    let output = run_command(&submit, &batch).ok_or_else(|| {
        Error::usage("--launcher script needs `submit` in the inventory, such as submit = [\"qsub\"]")
    })?;
    let program = &submit[0];
    let output =
        output.map_err(|e| Error::fabric(format!("cannot start {program}: {e}. Is it installed?")))?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
        return Ok(Ended::NotRun(format!("{program} refused the job: {message}")));
    }
    let answer = String::from_utf8_lossy(&output.stdout);
    write(&directory.join("submitted"), &format!("{}\n", answer.trim()))?;
    let id = job_id(&answer);
    let is_queued = || run_command(&status, id).is_none_or(|output| output.is_ok_and(|o| o.status.success()));

    let (mut started, mut left_queue) = (None::<Since>, None::<Since>);
    let mut queried = Since::now();
    let reason = loop {
        if let Ok(code) = fs::read_to_string(directory.join("exit")) {
            return Ok(code.trim().parse().map_or(Ended::Killed, Ended::Code));
        }
        if started.is_none() && directory.join("started").exists() {
            started = Some(Since::now());
        }
        if interrupt::requested() {
            break Ended::Interrupted;
        }
        if started.is_some_and(|started| started.elapsed() > cluster.launch_limit(job)) {
            break Ended::TimedOut;
        }
        if left_queue.is_some_and(|left| left.elapsed() > SETTLE) {
            break Ended::NotRun(format!("job {id} left the queue without an exit code. Check its host."));
        }
        if left_queue.is_none() && queried.elapsed() > QUERY {
            queried = Since::now();
            left_queue = (!is_queued()).then(Since::now);
        }
        thread::sleep(POLL);
    };
    run_command(&cancel, id);
    Ok(reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_job_id_is_found_in_any_answer() {
        for (answer, id) in [
            ("12", "12"),
            ("12;cluster", "12"),
            ("12.server", "12.server"),
            ("Job <12> is submitted to queue <normal>.", "12"),
            ("ƒ2x4Y", "ƒ2x4Y"),
            ("", ""),
        ] {
            assert_eq!(job_id(answer), id);
        }
    }
}
