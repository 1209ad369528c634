//! Jobs that a scheduler runs: submitted, followed by the files that they leave, and cancelled at their time limit.

use std::{
    ffi::OsStr,
    fs::{self, File},
    path::Path,
    process::Command,
    thread,
    time::Duration,
};

use ombx_host::since::Since;
use ombx_record::{
    error::{Error, Result},
    regular_file::read_found_text,
};

use crate::{
    cluster::{Cluster, Launcher},
    inventory::Inventory,
    parallel,
    plan::Job,
    remote::{self, ScriptEnd, ScriptFiles, at},
};

const POLL: Duration = Duration::from_millis(200);
/// Time between two queries of the scheduler.
const QUERY: Duration = Duration::from_secs(3);
/// Time limit of a command of the scheduler.
const ANSWER: Duration = Duration::from_secs(120);
/// Longest file in bytes that a scheduler or a job leaves for ombx.
const LONGEST: u64 = 1 << 16;
/// Time after a job left the queue for its files to appear on a network file system.
const SETTLE: Duration = Duration::from_secs(10);

/// Returns the commands of a scheduler that submit and cancel a job, and one that fails once it has left the queue, empty if there is none.
/// The last two get the job id as their last argument.
fn commands(cluster: &Cluster) -> [Vec<String>; 3] {
    let Inventory { submit, cancel, status, .. } = &cluster.inventory;
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
    match cluster.launcher {
        Launcher::Script { .. } => [submit, cancel, status].map(Vec::clone),
        _ => [
            words(&["sbatch", "--parsable"]),
            words(&["scancel"]),
            // The exit code of squeue is 0 for some time after the end of a job.
            words(&["sh", "-c", "squeue -h -o %T -j \"$0\" | grep -q ."]),
        ],
    }
}

/// Runs a command with one more argument and without input; none if the command is empty. Its output goes to these files.
fn run_command(
    command: &[String],
    argument: impl AsRef<OsStr>,
    files: &ScriptFiles,
) -> Option<Result<ScriptEnd>> {
    let (program, arguments) = command.split_first()?;
    let mut command = Command::new(program);
    command.args(arguments).arg(argument);
    let null = Path::new("/dev/null");
    let input = File::open(null).map_err(at(null));
    Some(input.and_then(|input| remote::run_command(command, input, files, ANSWER, parallel::ignored)))
}

/// Cancels a job that was submitted but not followed to its end, because that call was killed.
pub(super) fn withdraw(cluster: &Cluster, directory: &Path) {
    let answer = read_found_text(&directory.join("submitted"), LONGEST).unwrap_or_default();
    if !answer.is_empty() && !directory.join("exit").exists() {
        let files = ScriptFiles::named(directory, "cancel");
        let [_, cancel, _] = commands(cluster);
        run_command(&cancel, job_id(&answer), &files);
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
pub(super) fn run(cluster: &Cluster, job: &Job, script: &str, files: &ScriptFiles) -> Result<ScriptEnd> {
    let directory = cluster.record.job(job);
    let write = |path: &Path, text: &str| fs::write(path, text).map_err(at(path));
    let batch = directory.join("batch.sh");
    write(&files.script, script)?;
    write(&batch, &batch_script(cluster, job, &files.script)?)?;
    let [submit, cancel, status] = commands(cluster);
    let [submitted, queried, cancelled] =
        ["submit", "status", "cancel"].map(|name| ScriptFiles::named(&directory, name));
    let ended = run_command(&submit, &batch, &submitted).ok_or_else(|| {
        Error::usage("--launcher script needs `submit` in the inventory, such as submit = [\"qsub\"]")
    })??;
    if ended != ScriptEnd::Code(0) {
        let (program, message) = (&submit[0], submitted.message());
        return Ok(ScriptEnd::NotRun(format!("{program} refused the job ({ended}): {message}")));
    }
    let answer = submitted.text();
    write(&directory.join("submitted"), &format!("{}\n", answer.trim()))?;
    let id = job_id(&answer);
    let is_queued =
        || run_command(&status, id, &queried).is_none_or(|ended| matches!(ended, Ok(ScriptEnd::Code(0))));

    let (mut started, mut left_queue) = (None::<Since>, None::<Since>);
    let mut last_query = Since::now();
    let reason = loop {
        if let Ok(code) = read_found_text(&directory.join("exit"), LONGEST) {
            return Ok(code.trim().parse().map_or(ScriptEnd::Killed, ScriptEnd::Code));
        }
        if started.is_none() && directory.join("started").exists() {
            started = Some(Since::now());
        }
        if parallel::requested() {
            break ScriptEnd::Interrupted;
        }
        if files.is_endless() {
            break ScriptEnd::Endless;
        }
        if started.is_some_and(|started| started.elapsed() > cluster.launch_limit(job)) {
            break ScriptEnd::TimedOut;
        }
        if left_queue.is_some_and(|left| left.elapsed() > SETTLE) {
            break ScriptEnd::NotRun(format!(
                "job {id} left the queue without an exit code. Check its host."
            ));
        }
        if left_queue.is_none() && last_query.elapsed() > QUERY {
            last_query = Since::now();
            left_queue = (!is_queued()).then(Since::now);
        }
        thread::sleep(POLL);
    };
    run_command(&cancel, id, &cancelled);
    Ok(reason)
}

/// Template for sbatch.
const SLURM: &str = include_str!("slurm.sh");

/// Returns the batch script that runs the script of a job.
pub(crate) fn batch_script(cluster: &Cluster, job: &Job, script: &Path) -> Result<String> {
    let directory = cluster.record.job(job);
    let template = match &cluster.launcher {
        Launcher::Script { template } => template,
        _ => SLURM,
    };
    let values = [
        ("name", format!("ombx-{}", job.name)),
        ("nodes", job.hosts.len().to_string()),
        ("hosts", cluster.host_names(job).join(",")),
        ("ranks", job.ranks().to_string()),
        ("ranks_per_host", job.ranks_per_host.to_string()),
        ("minutes", cluster.launch_limit(job).as_secs().div_ceil(60).to_string()),
        ("directory", shell_words::quote(&directory.to_string_lossy()).into_owned()),
        ("command", crate::script::batch_body(script, &directory).trim_end().to_owned()),
    ];
    fill(template, &values)
}

/// Replaces each `{{name}}` of a template by its value.
fn fill(template: &str, values: &[(&str, String)]) -> Result<String> {
    let (mut text, mut remainder, mut has_command) = (String::new(), template, false);
    while let Some((before, after)) = remainder.split_once("{{") {
        let (name, after) = after.split_once("}}").unwrap_or((after, ""));
        let (known, value) = values.iter().find(|(known, _)| *known == name.trim()).ok_or_else(|| {
            let known: Vec<String> = values.iter().map(|(name, _)| format!("{{{{{name}}}}}")).collect();
            Error::usage(format!(
                "the template has {{{{{name}}}}}, which is not known. Use {}.",
                known.join(" ")
            ))
        })?;
        text += before;
        text += value;
        has_command |= *known == "command";
        remainder = after;
    }
    if has_command {
        Ok(text + remainder)
    } else {
        Err(Error::usage("the template has no {{command}}. Add it where the job is to run."))
    }
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

    #[test]
    fn a_template_needs_known_names_and_a_command() {
        let values = [("name", "x".to_owned()), ("command", "sh run.sh".to_owned())];
        assert_eq!(fill("#PBS -N {{name}}\n{{command}}\n", &values).unwrap(), "#PBS -N x\nsh run.sh\n");
        assert!(fill("{{nam}} {{command}}", &values).unwrap_err().to_string().contains("{{name}}"));
        assert!(fill("{{name}}", &values).unwrap_err().to_string().contains("{{command}}"));
    }
}
