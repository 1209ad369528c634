//! Jobs that a scheduler runs: submitted, followed by the files that they leave, and cancelled at their time limit.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use ombx_core::{
    clock::Since,
    error::{Error, Result},
};

use super::{batch, limit};
use crate::{
    cluster::{Cluster, Launcher},
    interrupt,
    plan::Job,
    remote::{Ended, ScriptFiles, at, output_of},
};

const POLL: Duration = Duration::from_millis(200);
/// Time between two queries of the scheduler.
const QUERY: Duration = Duration::from_secs(3);
/// Time after a job left the queue for its files to appear on a network file system.
const SETTLE: Duration = Duration::from_secs(10);

/// Submits a job and waits until it ends.
pub(super) fn run(cluster: &Cluster, job: &Job, script: &str, files: &ScriptFiles) -> Result<Ended> {
    let directory = cluster.record.job(job);
    fs::write(&files.script, script).map_err(at(&files.script))?;
    let path = directory.join("batch.sh");
    fs::write(&path, batch::script(cluster, job, &files.script)?).map_err(at(&path))?;
    follow(cluster, &directory, &path, limit(cluster, job))
}

/// Cancels a job that was submitted but not followed to its end, because that call was killed.
pub(super) fn withdraw(cluster: &Cluster, directory: &Path) {
    let answer = fs::read_to_string(directory.join("submitted")).unwrap_or_default();
    if !answer.is_empty() && !directory.join("exit").exists() {
        cancel(cluster, job_id(&answer));
    }
}

fn cancel(cluster: &Cluster, id: &str) {
    let command = match cluster.launcher {
        Launcher::Script { .. } => cluster.inventory.cancel.clone(),
        _ => vec!["scancel".to_owned()],
    };
    if let [program, arguments @ ..] = command.as_slice() {
        output_of(Command::new(program).args(arguments).arg(id));
    }
}

/// Whether the scheduler still knows a job; true if it cannot be asked.
fn is_queued(cluster: &Cluster, id: &str) -> bool {
    match (&cluster.launcher, cluster.inventory.status.as_slice()) {
        (Launcher::Script { .. }, []) => true,
        (Launcher::Script { .. }, [program, arguments @ ..]) => {
            let mut command = Command::new(program);
            command.args(arguments).arg(id).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            command.status().is_ok_and(|status| status.success())
        }
        // Soon after the end of a job, squeue fails without output.
        _ => !output_of(Command::new("squeue").args(["-h", "-o", "%T", "-j", id])).is_empty(),
    }
}

/// Returns the job id in the answer of a scheduler: `12`, `12.server`, `Job <12> is submitted`.
fn job_id(answer: &str) -> &str {
    let mut words = answer.split([';', ' ', '\n']);
    let has_digit = |word: &&str| word.contains(|c: char| c.is_ascii_digit());
    let word = words.clone().find(has_digit).or_else(|| words.next()).unwrap_or_default();
    word.trim_matches(|c: char| !c.is_alphanumeric())
}

/// Submits a batch script and returns what the scheduler printed, or why it refused.
fn submit(cluster: &Cluster, batch: &Path) -> Result<std::result::Result<String, Ended>> {
    let command = match cluster.launcher {
        Launcher::Script { .. } => cluster.inventory.submit.clone(),
        _ => vec!["sbatch".to_owned(), "--parsable".to_owned()],
    };
    let [program, arguments @ ..] = command.as_slice() else {
        return Err(Error::usage(
            "--launcher script needs `submit` in the inventory, such as submit = [\"qsub\"]",
        ));
    };
    let output = Command::new(program).args(arguments).arg(batch).output();
    let output =
        output.map_err(|e| Error::fabric(format!("cannot start {program}: {e}. Is it installed?")))?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
        return Ok(Err(Ended::NotRun(format!("{program} refused the job: {message}"))));
    }
    Ok(Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()))
}

/// Submits a batch script and waits for the file with its exit code. The time limit begins when the job starts.
fn follow(cluster: &Cluster, directory: &Path, batch: &Path, limit: Duration) -> Result<Ended> {
    let answer = match submit(cluster, batch)? {
        Ok(answer) => answer,
        Err(refused) => return Ok(refused),
    };
    let submitted = directory.join("submitted");
    fs::write(&submitted, format!("{answer}\n")).map_err(at(&submitted))?;
    let id = job_id(&answer);

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
        if started.is_some_and(|started| started.elapsed() > limit) {
            break Ended::TimedOut;
        }
        if left_queue.is_some_and(|left| left.elapsed() > SETTLE) {
            break Ended::NotRun(format!("job {id} left the queue without an exit code. Check its host."));
        }
        if left_queue.is_none() && queried.elapsed() > QUERY {
            queried = Since::now();
            left_queue = (!is_queued(cluster, id)).then(Since::now);
        }
        thread::sleep(POLL);
    };
    cancel(cluster, id);
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
