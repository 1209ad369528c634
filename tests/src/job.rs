//! Jobs: commands that must make progress. A job keeps its output and its exit code, and finds every process that it started.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::Read,
    os::unix::process::{CommandExt, ExitStatusExt},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    thread,
    time::Duration,
};

use ombx_host::since::Since;
use ombx_toolchain::process::{Mark, Process};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::mpi;

/// Time without progress after which a job is stuck, also on a busy machine.
const STUCK: Duration = Duration::from_secs(90);
/// Default limit of the whole time. Ranks that wait for each other use CPU time without getting further.
const LIMIT: Duration = Duration::from_secs(600);
/// CPU time that is progress, in ticks of 10 ms. A process that only waits uses less while it polls.
const TICKS: u64 = 100;
/// Interval of looking for progress.
const LOOK: Duration = Duration::from_secs(1);
/// Time without progress within which the processes of an ended job disappear, also on a busy machine.
const GONE: Duration = Duration::from_secs(30);
/// Interval of polling.
const POLL: Duration = Duration::from_millis(10);

/// Lock that lets one job run at a time. Ranks spin while they wait, so two jobs on the same cores would starve each other.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Command to run.
pub struct Job {
    command: Command,
    limit: Duration,
    mark: Mark,
    directory: TempDir,
    /// Runs of ombx have a single launch unless their options say otherwise. Tests of launches ask for several.
    one_launch: bool,
}

/// Options that choose the number of launches.
const OF_LAUNCHES: [&str; 5] = ["--launches", "--quick", "--budget", "--help", "--"];

impl Job {
    /// Returns a job of any program.
    pub fn new(program: impl AsRef<OsStr>) -> Job {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let value = format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let mark = Mark { variable: "OMBX_TEST_JOB", value };
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut command = Command::new(program);
        command.env(mark.variable, &mark.value).stdin(Stdio::null()).process_group(0);
        // Each test sets these itself.
        for name in ["OMBX_RANK_TEST", "LD_PRELOAD", "NO_COLOR", "CLICOLOR_FORCE"] {
            command.env_remove(name);
        }
        command.envs(mpi::without_search_for_fabrics());
        let set =
            |name: &str| File::create(directory.path().join(name)).expect("a file for output can be created");
        command.stdout(set("stdout")).stderr(set("stderr"));
        Job { command, limit: LIMIT, mark, directory, one_launch: false }
    }

    /// Returns a job of `ombx` with arguments separated by blanks.
    pub fn ombx(arguments: &str) -> Job {
        let job = Job::new(mpi::ombx()).env("OMBX_MPIEXEC", mpi::mpiexec()).with_one_launch();
        job.args(arguments.split_whitespace())
    }

    /// Returns a job of `ombx` as `ranks` ranks of an explicit `mpiexec`.
    pub fn mpiexec(ranks: u32, arguments: &str) -> Job {
        Job::on_ranks(ranks, mpi::ombx()).args(arguments.split_whitespace())
    }

    /// Returns a job of any program as `ranks` ranks of an explicit `mpiexec`.
    pub fn on_ranks(ranks: u32, program: &Path) -> Job {
        let job = Job::new(mpi::mpiexec()).args(mpi::launch_options(ranks));
        mpi::launch_environment().fold(job, |job, (name, value)| job.env(name, value)).arg(program)
    }

    /// Lets runs of ombx have a single launch, unless options choose another number.
    #[must_use]
    pub fn with_one_launch(self) -> Job {
        Job { one_launch: true, ..self }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Job {
        self.command.arg(argument);
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<A: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = A>) -> Job {
        self.command.args(arguments);
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Job {
        self.command.env(name, value);
        self
    }

    /// Replaces the environment by these variables. The mark that identifies the processes of the job stays.
    #[must_use]
    pub fn only_env(mut self, variables: &[(&str, &OsStr)]) -> Job {
        self.command.env_clear().env(self.mark.variable, &self.mark.value).envs(variables.iter().copied());
        self
    }

    /// Sets the working directory.
    #[must_use]
    pub fn directory(mut self, path: &Path) -> Job {
        self.command.current_dir(path);
        self
    }

    /// Sets standard output.
    #[must_use]
    pub fn stdout(mut self, to: impl Into<Stdio>) -> Job {
        self.command.stdout(to);
        self
    }

    /// Sets the limit of the whole time, and of the end of its processes.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Job {
        self.limit = limit;
        self
    }

    /// Waits until no other job runs and starts it.
    ///
    /// # Panics
    /// The program cannot be started.
    pub fn start(mut self) -> Running {
        if self.one_launch && self.is_run_without_launches() {
            self.command.arg("--quick");
        }
        let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let shown = format!("{:?}", self.command);
        let own = ["stdout", "stderr"].map(|name| self.directory.path().join(name));
        let written = self.command.get_args().map(PathBuf::from).filter(|path| path.is_absolute());
        let progress = Progress::new(own.into_iter().chain(written).collect());
        let child = self.command.spawn().unwrap_or_else(|e| panic!("{shown} could not be started: {e}"));
        let Job { limit, mark, directory, .. } = self;
        Running { child, progress, shown, limit, mark, directory, _alone: alone }
    }

    /// Returns whether this is `ombx run` with the default number of launches.
    fn is_run_without_launches(&self) -> bool {
        let chosen = |arg: &OsStr| {
            let arg = arg.to_string_lossy();
            let option = arg.split('=').next().unwrap_or_default();
            OF_LAUNCHES.contains(&option)
        };
        let mut arguments = self.command.get_args();
        arguments.next().is_some_and(|first| first == "run") && !arguments.any(chosen)
    }

    /// Runs the job to its end.
    ///
    /// # Panics
    /// The job is stuck or reaches its limit.
    pub fn run(self) -> Done {
        self.start().wait()
    }

    /// Runs the job to its end, or ends it at its limit: it then has neither an exit code nor a signal.
    pub fn run_to_limit(self) -> Done {
        let mut running = self.start();
        let status = running.end();
        running.output(status)
    }
}

/// Running job. Dropping it kills all its processes.
pub struct Running {
    child: Child,
    progress: Progress,
    shown: String,
    limit: Duration,
    mark: Mark,
    directory: TempDir,
    _alone: MutexGuard<'static, ()>,
}

impl Running {
    /// Returns the id of the first process of the job.
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Returns every process of the job, including the first.
    pub fn processes(&self) -> Vec<Process> {
        self.mark.processes()
    }

    /// Returns the processes of `ombx` that are MPI ranks.
    pub fn ranks(&self) -> Vec<Process> {
        self.processes().into_iter().filter(|process| process.is_rank_of(mpi::ombx())).collect()
    }

    /// Returns what the job has written to standard error so far.
    pub fn stderr(&self) -> String {
        self.output(None).stderr
    }

    /// Sends a signal to the first process of the job only.
    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("the job is there");
    }

    /// Waits until `condition` holds.
    ///
    /// # Panics
    /// The job ends first, is stuck, or reaches its limit.
    pub fn until(&mut self, what: &str, mut condition: impl FnMut(&Running) -> bool) {
        while !condition(self) {
            let ended = self.child.try_wait().expect("the job can be waited for");
            if ended.is_some() || self.is_late() {
                panic!("this did not happen: {what}\n{}", self.output(ended));
            }
            thread::sleep(POLL);
        }
    }

    /// Waits for the end of the job.
    ///
    /// # Panics
    /// The job is stuck or reaches its limit.
    pub fn wait(mut self) -> Done {
        if let Some(status) = self.end() {
            return self.output(Some(status));
        }
        let left: Vec<String> = self.processes().iter().map(ToString::to_string).collect();
        let output = self.output(None);
        drop(self);
        panic!("stuck, or not ended after its deadline, with {left:#?}\n{output}");
    }

    /// Waits for the end of the job; `None` if it is stuck or reaches its limit.
    fn end(&mut self) -> Option<ExitStatus> {
        loop {
            if let Some(status) = self.child.try_wait().expect("the job can be waited for") {
                return Some(status);
            }
            if self.is_late() {
                return None;
            }
            thread::sleep(POLL);
        }
    }

    /// Returns whether the job is stuck or has reached its limit.
    fn is_late(&mut self) -> bool {
        self.progress.look(&self.mark);
        self.progress.start.elapsed() > self.limit || self.progress.last.elapsed() > STUCK
    }

    fn output(&self, status: Option<ExitStatus>) -> Done {
        let text = |name: &str| {
            let mut bytes = Vec::new();
            let file = File::open(self.directory.path().join(name));
            file.and_then(|mut file| file.read_to_end(&mut bytes)).expect("output can be read");
            String::from_utf8_lossy(&bytes).into_owned()
        };
        Done {
            stdout: text("stdout"),
            stderr: text("stderr"),
            code: status.and_then(|s| s.code()),
            signal: status.and_then(|s| s.signal()),
            elapsed: self.progress.start.elapsed(),
            shown: self.shown.clone(),
            mark: self.mark.clone(),
            limit: self.limit,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            self.mark.kill();
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        if thread::panicking() {
            self.mark.kill();
        }
    }
}

/// Signs that a job gets further: bytes in its files, and CPU time of its processes.
struct Progress {
    start: Since,
    /// Last time at which there was progress.
    last: Since,
    looked: Since,
    files: Vec<PathBuf>,
    bytes: u64,
    ticks: u64,
}

impl Progress {
    fn new(files: Vec<PathBuf>) -> Progress {
        let now = Since::now;
        Progress { start: now(), last: now(), looked: now(), files, bytes: 0, ticks: 0 }
    }

    /// Looks for progress, unless it has just done so.
    fn look(&mut self, mark: &Mark) {
        if self.looked.elapsed() < LOOK {
            return;
        }
        self.looked = Since::now();
        let bytes = self.files.iter().map(|file| fs::metadata(file).map_or(0, |data| data.len())).sum();
        let ticks = mark.processes().iter().map(ticks_of).sum::<u64>();
        // The ticks of a process that ends are gone, which is a change too.
        if bytes != self.bytes || ticks.abs_diff(self.ticks) >= TICKS {
            (self.bytes, self.ticks, self.last) = (bytes, ticks, Since::now());
        }
    }
}

/// Returns the CPU time that a process has used, in ticks.
fn ticks_of(process: &Process) -> u64 {
    let text = fs::read_to_string(format!("/proc/{}/stat", process.pid.as_raw_nonzero())).unwrap_or_default();
    // The name of the program, in parentheses, may have blanks. User and system time are fields 14 and 15.
    let fields = text.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
    fields.filter_map(|field| field.parse::<u64>().ok()).sum()
}

/// Ended job.
pub struct Done {
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// Exit code, if the job exited.
    pub code: Option<i32>,
    /// Signal that ended the job, if one did.
    pub signal: Option<i32>,
    /// Time from the start of the job to its end.
    pub elapsed: Duration,
    shown: String,
    mark: Mark,
    limit: Duration,
}

impl Done {
    /// Panics with the output of the job unless it exited with this code.
    #[track_caller]
    pub fn expect(self, code: i32) -> Done {
        assert!(self.code == Some(code), "exit code {code} was expected\n{self}");
        self
    }

    /// Panics unless the table has this text, or says that the machine changed its state between launches, or that figures are of one launch
    /// of two, because the state of the other is unknown: then no test can know how many have one figure.
    #[track_caller]
    pub fn shows_in_one_state(&self, text: &str) {
        let has_changed = self.stdout.contains("the machine changed its state between launches");
        let has_changed = has_changed || self.stdout.contains(" 1 of 2 ");
        assert!(has_changed || self.stdout.contains(text), "{text}\n{self}");
    }

    /// Panics unless standard error contains each of `parts`.
    #[track_caller]
    pub fn complains(&self, parts: &[&str]) {
        for part in parts {
            assert!(self.stderr.contains(part), "stderr does not contain {part:?}\n{self}");
        }
    }

    /// Returns the only line of standard error, without `ombx: `. Panics if there is no line or more than one.
    #[track_caller]
    pub fn sentence(&self) -> &str {
        let sentence = self.stderr.strip_prefix("ombx: ").map(str::trim_end);
        match sentence {
            Some(one) if !one.is_empty() && !one.contains('\n') => one,
            _ => panic!("stderr is not one line that begins with `ombx: `\n{self}"),
        }
    }

    /// Panics if a process of the job is still running.
    #[track_caller]
    pub fn leaves_nothing(&self) {
        let mut progress = Progress::new(Vec::new());
        let mut empty = 0;
        loop {
            let left = self.mark.processes();
            // A process has no environment for a moment during exec.
            empty = if left.is_empty() { empty + 1 } else { 0 };
            if empty == 3 {
                return;
            }
            progress.look(&self.mark);
            if progress.start.elapsed() > self.limit || progress.last.elapsed() > GONE.min(self.limit) {
                self.mark.kill();
                let left: Vec<String> = left.iter().map(ToString::to_string).collect();
                panic!("still running after the job has ended: {left:#?}\n{self}");
            }
            thread::sleep(POLL);
        }
    }
}

impl std::fmt::Display for Done {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Done { shown, code, signal, elapsed, .. } = self;
        writeln!(f, "{shown}\nexit code {code:?}, signal {signal:?}, after {elapsed:.2?}")?;
        for (name, text) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            let mut indented = String::new();
            text.lines().for_each(|line| indented += &format!("    {line}\n"));
            write!(f, "  {name}:\n{indented}")?;
        }
        Ok(())
    }
}

/// Temporary directory for the files of one test.
pub struct Files(TempDir);

impl Default for Files {
    fn default() -> Files {
        Files(tempfile::tempdir().expect("a temporary directory"))
    }
}

impl Files {
    /// Returns the path of a file in the directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file in the directory and returns its path.
    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, text).expect("a file can be written");
        path
    }

    /// Returns the names of what is in the directory.
    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.root()).expect("the directory can be read");
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }

    /// Returns the path of the directory.
    pub fn root(&self) -> &Path {
        self.0.path()
    }
}
