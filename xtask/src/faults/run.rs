//! A job from its start to its end or its deadline.

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

use ombx_core::system::clock::Since;
use ombx_results::file::{self, ReadError};
use rustix::process::{Pid, Signal, kill_process};

use super::{
    case::Job,
    left::Before,
    marked::{self, MARK, Process},
    stage::Stage,
};

const NAP: Duration = Duration::from_millis(5);

/// A job under way, for what is done to it.
pub(super) struct Running<'a> {
    child: Child,
    since: Since,
    deadline: Duration,
    mark: &'a str,
    /// Its result file.
    pub(super) out: PathBuf,
    pub(super) stage: &'a Stage,
}

/// What a job did.
pub(super) struct Done {
    pub(super) stdout: String,
    pub(super) stderr: String,
    /// Its exit code, or 128 and the signal that ended it; `None` if the deadline did.
    pub(super) code: Option<i32>,
    pub(super) took: Duration,
    /// Its result file; `None` if there is none.
    pub(super) out: Option<Result<file::ResultFile, ReadError>>,
    /// What is left of it.
    pub(super) left: Vec<String>,
    /// What could not be done to it.
    pub(super) spoilt: Option<String>,
    /// Which of its rules have acted, and on which ranks.
    pub(super) acted: BTreeSet<(usize, u32)>,
}

impl Running<'_> {
    pub(super) fn processes(&self) -> Vec<Process> {
        marked::processes(self.mark)
    }

    /// The process that is a rank of MPI, once it is there.
    pub(super) fn rank(&mut self, rank: u32) -> Result<Process, String> {
        let ombx = fs::canonicalize(&self.stage.ombx).unwrap_or_default();
        let is_it = move |p: &Process| p.rank() == Some(rank) && p.program == ombx;
        let mut found = None;
        self.until(&format!("rank {rank} is there"), |job| {
            found = job.processes().into_iter().find(|p| is_it(p));
            found.is_some()
        })?;
        found.ok_or_else(|| format!("no rank {rank}"))
    }

    /// Sends a signal to ombx, and to it alone.
    pub(super) fn signal(&self, signal: Signal) {
        let _ = kill_process(Pid::from_child(&self.child), signal);
    }

    /// Rows in the result file so far.
    pub(super) fn rows(&self) -> usize {
        let text = fs::read_to_string(&self.out).unwrap_or_default();
        text.split_inclusive('\n').filter(|l| l.contains("\"kind\":\"case\"") && l.ends_with('\n')).count()
    }

    /// Waits until so many rows are in the file.
    pub(super) fn until_rows(&mut self, rows: usize) -> Result<(), String> {
        self.until(&format!("{rows} rows are in the file"), |job| job.rows() >= rows)
    }

    /// Waits until something holds; the job must not end before.
    pub(super) fn until(&mut self, what: &str, mut holds: impl FnMut(&Self) -> bool) -> Result<(), String> {
        while !holds(self) {
            let ended = matches!(self.child.try_wait(), Ok(Some(_)));
            if ended || self.since.elapsed() > self.deadline {
                return Err(format!("it never came to this: {what}"));
            }
            thread::sleep(NAP);
        }
        Ok(())
    }
}

/// Runs the job of a case.
pub(super) fn run(job: &Job, stage: &Stage) -> Result<Done, String> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let mark = format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let room = tempfile::Builder::new().prefix("of").tempdir().map_err(|e| format!("no directory: {e}"))?;
    let temporary = room.path().join("t");
    let [out, stdout, stderr, log] =
        ["out.jsonl", "stdout", "stderr", "log"].map(|name| room.path().join(name));
    fs::create_dir(&temporary).map_err(|e| e.to_string())?;
    let before = Before::now();

    let mut command = Command::new(&stage.ombx);
    command.args(job.words.split_whitespace()).args(stage.arguments(&job.rules, &log));
    if job.out {
        command.arg("--out").arg(&out);
    }
    stage.mpi.launch_with(&mut command);
    command.env(MARK, &mark).env("TMPDIR", &temporary).env("OMPI_MCA_plm_rsh_agent", "sh");
    for name in ["LD_PRELOAD", "NO_COLOR", "CLICOLOR_FORCE"] {
        command.env_remove(name);
    }
    let file = |path: &Path| File::create(path).map_err(|e| format!("{}: {e}", path.display()));
    command.stdin(Stdio::null()).stdout(file(&stdout)?).stderr(file(&stderr)?).process_group(0);
    if let Some(prepare) = &job.prepare {
        prepare(&mut command, stage, room.path())?;
    }

    let since = Since::now();
    let child = command.spawn().map_err(|e| format!("{} could not be started: {e}", stage.ombx.display()))?;
    let (deadline, mark) = (job.deadline, mark.as_str());
    let mut running = Running { child, since, deadline, mark, out: out.clone(), stage };
    let spoilt = job.act.as_ref().and_then(|act| act(&mut running).err());
    let status = end(&mut running);
    let took = running.since.elapsed();
    let left = before.left(mark, &temporary);
    let text = |path: &Path| {
        fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    };
    Ok(Done {
        stdout: text(&stdout),
        stderr: text(&stderr),
        code: status.and_then(|s| s.code().or(s.signal().map(|signal| 128 + signal))),
        took,
        // One that ended before its first record has an empty file.
        out: out.metadata().is_ok_and(|file| file.len() > 0).then(|| file::open(&out)),
        left,
        spoilt,
        acted: text(&log).lines().filter_map(acted).collect(),
    })
}

/// A line of what the interposed library writes.
fn acted(line: &str) -> Option<(usize, u32)> {
    let (rule, rank) = line.split_once(' ')?;
    Some((rule.parse().ok()?, rank.parse().ok()?))
}

/// How it ended; past its deadline it is ended, with all that belongs to it.
fn end(running: &mut Running<'_>) -> Option<ExitStatus> {
    loop {
        match running.child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if running.since.elapsed() < running.deadline => thread::sleep(NAP),
            _ => {
                marked::kill(running.mark);
                let _ = running.child.kill();
                let _ = running.child.wait();
                return None;
            }
        }
    }
}
