//! Run of a job, from its start to its end or its deadline.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    os::unix::process::{CommandExt, ExitStatusExt},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::Duration,
};

use ombx_host::since::Since;
use ombx_record::file::{self, ReadError};
use ombx_toolchain::process::{Mark, Process};
use rustix::process::{Pid, Signal, kill_process};

use super::{case::Job, left::Before, stage::Stage};

const POLL: Duration = Duration::from_millis(5);

/// Running job.
pub(crate) struct Running<'a> {
    child: Child,
    since: Since,
    /// Length of the result file, and the time since it was another one.
    length: u64,
    unchanged: Since,
    deadline: Duration,
    mark: &'a Mark,
    /// Path of the result file of the job.
    pub(crate) out: PathBuf,
    pub(crate) stage: &'a Stage,
}

/// Ended job.
pub(crate) struct Done {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    /// Exit code, or 128 plus the signal that ended it; `None` at the deadline.
    pub(crate) code: Option<i32>,
    pub(crate) took: Duration,
    /// Result file; `None` if there is none.
    pub(crate) out: Option<Result<file::ResultFile, ReadError>>,
    /// Leftovers.
    pub(crate) left: Vec<String>,
    /// Error of the action on the running job.
    pub(crate) action_error: Option<String>,
    /// Rules that acted, and their ranks.
    pub(crate) acted: BTreeSet<(usize, u32)>,
}

impl Running<'_> {
    pub(crate) fn processes(&self) -> Vec<Process> {
        self.mark.processes()
    }

    /// Waits for the process of an MPI rank and returns it.
    pub(crate) fn rank(&mut self, rank: u32) -> Result<Process, String> {
        let ombx = self.stage.ombx.clone();
        let is_it = move |p: &Process| p.rank() == Some(rank) && p.is_rank_of(&ombx);
        let mut found = None;
        self.until(&format!("rank {rank} runs"), |job| {
            found = job.processes().into_iter().find(|p| is_it(p));
            found.is_some()
        })?;
        found.ok_or_else(|| format!("no rank {rank}"))
    }

    /// Sends a signal to the first process of the job, and to no other.
    pub(crate) fn signal(&self, signal: Signal) {
        let _ = kill_process(Pid::from_child(&self.child), signal);
    }

    /// Returns the number of rows in the result file so far.
    pub(crate) fn rows(&self) -> usize {
        let text = fs::read_to_string(&self.out).unwrap_or_default();
        text.split_inclusive('\n').filter(|l| l.contains("\"kind\":\"case\"") && l.ends_with('\n')).count()
    }

    /// Waits until the file has this many rows.
    pub(crate) fn until_rows(&mut self, rows: usize) -> Result<(), String> {
        self.until(&format!("{rows} rows are in the file"), |job| job.rows() >= rows)
    }

    /// Waits until all ranks have started: the file has its first record.
    pub(crate) fn until_started(&mut self) -> Result<(), String> {
        self.until("the ranks have started", |job| {
            fs::read_to_string(&job.out).is_ok_and(|text| text.contains('\n'))
        })
    }

    /// Waits until a condition holds. An error if the job ends or its deadline passes before.
    pub(crate) fn until(&mut self, what: &str, mut holds: impl FnMut(&Self) -> bool) -> Result<(), String> {
        while !holds(self) {
            let ended = matches!(self.child.try_wait(), Ok(Some(_)));
            if ended || self.is_late() {
                return Err(format!("this never happened: {what}"));
            }
            thread::sleep(POLL);
        }
        Ok(())
    }

    /// Returns whether nothing was added to the result file for the time of the deadline. A job may be slow, as where others build.
    fn is_late(&mut self) -> bool {
        let length = self.out.metadata().map_or(0, |file| file.len());
        if length != self.length {
            (self.length, self.unchanged) = (length, Since::now());
        }
        self.unchanged.elapsed() > self.deadline
    }
}

/// Runs a job. The error says why it could not be started.
pub(crate) fn run(job: &Job, stage: &Stage) -> Result<Done, String> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let value = format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let mark = Mark { variable: "OMBX_FAULT_JOB", value };
    let directory =
        tempfile::Builder::new().prefix("of").tempdir().map_err(|e| format!("no directory: {e}"))?;
    let temporary = directory.path().join("t");
    let [out, stdout, stderr, log] =
        ["out.jsonl", "stdout", "stderr", "log"].map(|name| directory.path().join(name));
    fs::create_dir(&temporary).map_err(|e| e.to_string())?;
    let before = Before::now();

    let mut command = Command::new(&stage.ombx);
    command.args(job.arguments.split_whitespace()).args(stage.arguments(&job.rules, &log));
    // The faults are about one launch: rules count the calls of all ranks since their start.
    if job.arguments.starts_with("run ") {
        command.arg("--quick");
    }
    if job.out {
        command.arg("--output").arg(&out);
    }
    stage.mpi.launch_with(&mut command);
    command.env(mark.variable, &mark.value).env("TMPDIR", &temporary).env("OMPI_MCA_plm_rsh_agent", "sh");
    // Open MPI chooses this component on a machine without a fabric; its search for one sleeps. A choice of the user stays.
    if std::env::var_os("OMPI_MCA_pml").is_none() {
        command.env("OMPI_MCA_pml", "ob1");
    }
    for name in ["LD_PRELOAD", "NO_COLOR", "CLICOLOR_FORCE"] {
        command.env_remove(name);
    }
    let file = |path: &Path| File::create(path).map_err(|e| format!("{}: {e}", path.display()));
    command.stdin(Stdio::null()).stdout(file(&stdout)?).stderr(file(&stderr)?).process_group(0);
    if let Some(prepare) = &job.prepare {
        prepare(&mut command, stage, directory.path())?;
    }

    let since = Since::now();
    let child = command.spawn().map_err(|e| format!("{} could not be started: {e}", stage.ombx.display()))?;
    let (length, unchanged, deadline) = (0, Since::now(), job.deadline);
    let mut running =
        Running { child, since, length, unchanged, deadline, mark: &mark, out: out.clone(), stage };
    let action_error = job.act.as_ref().and_then(|act| act(&mut running).err());
    let status = end(&mut running);
    let took = running.since.elapsed();
    let left = before.left(&mark, &temporary);
    let text = |path: &Path| {
        fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    };
    Ok(Done {
        stdout: text(&stdout),
        stderr: text(&stderr),
        code: status.and_then(|s| s.code().or(s.signal().map(|signal| 128 + signal))),
        took,
        // The file is empty if the job ended before its first record.
        out: out.metadata().is_ok_and(|file| file.len() > 0).then(|| file::open(&out)),
        left,
        action_error,
        acted: text(&log).lines().filter_map(acted).collect(),
    })
}

/// Parses a line of the log of the interposed library: rule and rank.
fn acted(line: &str) -> Option<(usize, u32)> {
    let (rule, rank) = line.split_once(' ')?;
    Some((rule.parse().ok()?, rank.parse().ok()?))
}

/// Waits for the end of a job. At its deadline, kills all its processes and returns `None`.
fn end(running: &mut Running<'_>) -> Option<ExitStatus> {
    loop {
        match running.child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if !running.is_late() => thread::sleep(POLL),
            _ => {
                running.mark.kill();
                let _ = running.child.kill();
                let _ = running.child.wait();
                return None;
            }
        }
    }
}
