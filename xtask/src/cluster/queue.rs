//! Jobs that a scheduler runs: submitted, followed by the files that they leave, and ended when they take too long.

use std::{
    fs,
    path::Path,
    process::{Command, ExitStatus, Stdio},
    sync::atomic::Ordering,
    time::Duration,
};

use ombx_core::system::clock::Since;

use super::{
    Cluster, Launcher,
    plan::Job,
    remote::{Ended, Files, INTERRUPTED, ask},
    script,
};
use crate::failure::{Failure, Result};

type Outcome = Result<std::result::Result<Ended, String>>;

const NAP: Duration = Duration::from_millis(200);
/// Between two questions to the scheduler.
const ASKING: Duration = Duration::from_secs(3);
/// A job that has left the queue may have files on their way through a network file system.
const SETTLING: Duration = Duration::from_secs(10);

/// A job script for sbatch.
pub(super) fn slurm(cluster: &Cluster, job: &Job, text: &str, files: &Files, limit: Duration) -> Outcome {
    let directory = write_script(text, files)?;
    let batch = directory.join("batch.sh");
    put(&batch, &slurm_script(cluster, job, &files.script, directory))?;
    let submit = ["sbatch".to_owned(), "--parsable".to_owned()];
    let alive = |id: &str| {
        // Squeue forgets a job soon after its end, and then fails.
        let state = ask(Command::new("squeue").args(["-h", "-o", "%T", "-j", id]));
        !state.is_empty()
    };
    follow(&submit, &cancel(cluster), &batch, directory, limit, alive)
}

/// The words of a job script for sbatch.
pub(super) fn slurm_script(cluster: &Cluster, job: &Job, script: &Path, directory: &Path) -> String {
    let out = directory.join("slurm.out");
    format!(
        "#!/bin/sh\n#SBATCH --job-name=ombx-{}\n#SBATCH --nodes={}\n#SBATCH --nodelist={}\n#SBATCH --ntasks-per-node={}\n\
         #SBATCH --time={}\n#SBATCH --output={}\n{}",
        job.name,
        job.hosts.len(),
        cluster.names(job).join(","),
        job.per_host,
        minutes(cluster, job),
        shell_words::quote(&out.to_string_lossy()),
        script::submitted(script, directory)
    )
}

/// The user's template.
pub(super) fn script(cluster: &Cluster, job: &Job, text: &str, files: &Files, limit: Duration) -> Outcome {
    let directory = write_script(text, files)?;
    let batch = directory.join("batch.sh");
    put(&batch, &rendered(cluster, job, &files.script, directory)?)?;
    let Cluster { inventory, .. } = cluster;
    let alive = |id: &str| match inventory.status.as_slice() {
        [program, arguments @ ..] => asks(program, arguments, id).is_ok_and(|status| status.success()),
        [] => true,
    };
    follow(&inventory.submit, &cancel(cluster), &batch, directory, limit, alive)
}

/// What ends a job by its number.
fn cancel(cluster: &Cluster) -> Vec<String> {
    match cluster.launcher {
        Launcher::Script => cluster.inventory.cancel.clone(),
        _ => vec!["scancel".to_owned()],
    }
}

/// Ends a job that was submitted and not seen to its end, because whoever followed it was killed.
pub(super) fn withdraw(cluster: &Cluster, directory: &Path) {
    let told = fs::read_to_string(directory.join("submitted")).unwrap_or_default();
    if let (false, [program, arguments @ ..]) = (directory.join("exit").exists(), cancel(cluster).as_slice())
        && !told.is_empty()
    {
        ask(Command::new(program).args(arguments).arg(number(&told)));
    }
}

/// The number of a job in what its scheduler said of it: `12`, `12.server`, `Job <12> is submitted`.
fn number(told: &str) -> &str {
    let mut words = told.split([';', ' ', '\n']);
    let counts = |word: &&str| word.contains(|c: char| c.is_ascii_digit());
    let word = words.clone().find(counts).or_else(|| words.next()).unwrap_or_default();
    word.trim_matches(|c: char| !c.is_alphanumeric())
}

/// A program of a scheduler with the number of a job, unattended.
fn asks(program: &str, arguments: &[String], id: &str) -> std::io::Result<ExitStatus> {
    let mut command = Command::new(program);
    command.args(arguments).arg(id).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status()
}

/// A template with its words filled in. Names are checked, so that none can be more than a word.
pub(super) fn rendered(cluster: &Cluster, job: &Job, script: &Path, directory: &Path) -> Result<String> {
    let template = cluster.template.as_deref().unwrap_or_default();
    let body = script::submitted(script, directory);
    let values = [
        ("name", format!("ombx-{}", job.name)),
        ("nodes", job.hosts.len().to_string()),
        ("hosts", cluster.names(job).join(",")),
        ("ranks", job.ranks().to_string()),
        ("ranks_per_host", job.per_host.to_string()),
        ("minutes", minutes(cluster, job).to_string()),
        ("directory", shell_words::quote(&directory.to_string_lossy()).into_owned()),
        ("command", body.trim_end().to_owned()),
    ];
    fill(template, &values)
}

fn fill(template: &str, values: &[(&str, String)]) -> Result<String> {
    let known = || values.iter().map(|(name, _)| format!("{{{{{name}}}}}")).collect::<Vec<_>>().join(" ");
    let (mut text, mut rest, mut runs) = (String::new(), template, false);
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, after) = after.split_once("}}").unwrap_or((after, ""));
        let value = values.iter().find(|(known, _)| *known == name.trim()).ok_or_else(|| {
            Failure::Usage(format!("the template has {{{{{name}}}}}, which is none of {}", known()))
        })?;
        text += before;
        text += &value.1;
        runs |= value.0 == "command";
        rest = after;
    }
    match runs {
        true => Ok(text + rest),
        false => Err(Failure::Usage("the template has no {{command}}, which is what it is to run".into())),
    }
}

/// Whole minutes, for schedulers.
fn minutes(cluster: &Cluster, job: &Job) -> u64 {
    (cluster.limit(job) + super::execute::BEYOND).as_secs().div_ceil(60)
}

fn write_script<'a>(text: &str, files: &'a Files) -> Result<&'a Path> {
    put(&files.script, text)?;
    Ok(files.script.parent().unwrap_or(Path::new(".")))
}

fn put(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).map_err(Failure::file(path))
}

/// Submits, and waits for the file with the exit code. The deadline begins when the job does.
fn follow(
    submit: &[String],
    cancel: &[String],
    batch: &Path,
    directory: &Path,
    limit: Duration,
    alive: impl Fn(&str) -> bool,
) -> Outcome {
    let [program, arguments @ ..] = submit else {
        return Err(Failure::Usage(
            "the launcher script needs submit = [\"qsub\"] or the like in the inventory".into(),
        ));
    };
    let output = Command::new(program).args(arguments).arg(batch).output();
    let output = output.map_err(|source| Failure::Run { program: program.clone(), source })?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
        return Ok(Err(format!("{program} refused it: {words}")));
    }
    let told = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let id = number(&told).to_owned();
    put(&directory.join("submitted"), &(told + "\n"))?;

    let (mut begun, mut asked, mut left) = (None::<Since>, Since::now(), None::<Since>);
    let why = loop {
        if let Ok(code) = fs::read_to_string(directory.join("exit")) {
            return Ok(Ok(code.trim().parse().map_or(Ended::Killed, Ended::Code)));
        }
        if begun.is_none() && directory.join("started").exists() {
            begun = Some(Since::now());
        }
        if INTERRUPTED.load(Ordering::Relaxed) {
            break Ok(Ended::Interrupted);
        }
        if begun.is_some_and(|begun| begun.elapsed() > limit) {
            break Ok(Ended::Deadline);
        }
        if left.is_some_and(|left| left.elapsed() > SETTLING) {
            break Err(format!("job {id} left the queue without an exit code: its host may have failed"));
        }
        if left.is_none() && asked.elapsed() > ASKING {
            asked = Since::now();
            left = (!alive(&id)).then(Since::now);
        }
        std::thread::sleep(NAP);
    };
    if let [program, arguments @ ..] = cancel {
        ask(Command::new(program).args(arguments).arg(&id));
    }
    Ok(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_known_by_its_number() {
        for (told, id) in [
            ("12", "12"),
            ("12;cluster", "12"),
            ("12.server", "12.server"),
            ("Job <12> is submitted to queue <normal>.", "12"),
            ("ƒ2x4Y", "ƒ2x4Y"),
            ("", ""),
        ] {
            assert_eq!(number(told), id);
        }
    }

    #[test]
    fn a_template_is_filled_in() {
        let values = [("name", "x".to_owned()), ("command", "sh run.sh".to_owned())];
        assert_eq!(fill("#PBS -N {{name}}\n{{command}}\n", &values).unwrap(), "#PBS -N x\nsh run.sh\n");
        assert!(fill("{{nam}} {{command}}", &values).unwrap_err().to_string().contains("{{name}}"));
        assert!(fill("{{name}}", &values).unwrap_err().to_string().contains("{{command}}"));
    }
}
