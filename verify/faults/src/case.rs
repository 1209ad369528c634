//! Case: a fault at a place of a benchmark, how it is produced, and how the job must end.

use std::{
    cell::OnceCell,
    fmt, fs,
    path::Path,
    process::{Command, Stdio},
    rc::Rc,
    time::Duration,
};

use ombx_toolchain::Share;

use super::{
    run::{Done, Running},
    stage::Stage,
};

/// Part of a job in which the fault happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// Before ranks are connected: command line, launcher, start of MPI.
    Start,
    /// While a case is opened: buffers, windows, communicators.
    Open,
    WarmUp,
    Calibration,
    Measuring,
    /// While the payload is checked.
    Verifying,
    /// While the resources of a case are freed.
    Closing,
    /// Between cases, in the messages of ombx itself.
    Between,
    /// While rows are written or printed.
    Output,
    /// While the job ends.
    End,
}

/// Fault and the required end of its job, built by [`Case::new`] and the methods below.
pub(crate) struct Case {
    /// Description of the fault in the table.
    pub(crate) fault: String,
    pub(crate) place: Place,
    /// Benchmark or subcommand.
    pub(crate) subject: String,
    /// Reason why the case is not run here.
    pub(crate) skip: Option<String>,
    /// Whether every change of ombx must pass the case.
    pub(crate) gate: bool,
    /// Cases may share a job, which then runs once.
    pub(crate) job: Rc<Job>,
    pub(crate) expect: Expect,
}

/// Change of the command before the job starts; the path is the directory of the job.
pub(crate) type Prepare = Box<dyn Fn(&mut Command, &Stage, &Path) -> Result<(), String>>;
/// Action on the running job.
pub(crate) type Act = Box<dyn Fn(&mut Running<'_>) -> Result<(), String>>;
/// Additional check of the ended job: a remark for the table, or what is wrong.
pub(crate) type Look = Box<dyn Fn(&Done) -> Result<String, String>>;

/// Job with a fault.
pub(crate) struct Job {
    /// Arguments of ombx, separated by blanks.
    pub(crate) arguments: String,
    /// Whether `--output FILE` is added; the file is read afterwards.
    pub(crate) out: bool,
    /// Rules of the interposed library in the ranks, as `interpose.c` describes them.
    pub(crate) rules: Vec<String>,
    /// Whether each rule must act. Cases that check each rule themselves set this to false.
    pub(crate) all_act: bool,
    pub(crate) prepare: Option<Prepare>,
    pub(crate) act: Option<Act>,
    pub(crate) deadline: Duration,
    /// Result, once the case has run.
    pub(crate) done: OnceCell<Result<Done, String>>,
}

/// Required end of a job.
pub(crate) struct Expect {
    /// Accepted exit codes; a signal counts as 128 plus its number.
    pub(crate) codes: Vec<i32>,
    /// Parts of standard error or of the reason of a row.
    pub(crate) messages: Vec<String>,
    /// Least number of rows in the file, which must be readable.
    pub(crate) rows: usize,
    pub(crate) look: Option<Look>,
}

impl Case {
    /// Returns a case of `ombx` with these arguments and a result file that must end with `code`. It is about the first benchmark, or the
    /// subcommand.
    pub(crate) fn new(fault: &str, place: Place, words: &str, code: i32) -> Self {
        let (command, rest) = words.split_once(' ').unwrap_or((words, ""));
        let bench = rest.split(' ').next().filter(|_| command == "run" && !rest.starts_with("suite:"));
        Self::about(fault, place, bench.unwrap_or(command), Rc::new(Job::new(words)), code)
    }

    /// Sets what the case is about.
    pub(crate) fn subject(self, subject: &str) -> Self {
        Self { subject: subject.to_owned(), ..self }
    }

    /// Returns a case of a shared job.
    pub(crate) fn about(fault: &str, place: Place, subject: &str, job: Rc<Job>, code: i32) -> Self {
        let expect = Expect { codes: vec![code], messages: Vec::new(), rows: 0, look: None };
        let (fault, subject) = (fault.to_owned(), subject.to_owned());
        Self { fault, place, subject, skip: None, gate: false, job, expect }
    }

    /// Returns a case that acts on a job of many rows after two. The job must end and keep them.
    pub(crate) fn harmed(
        fault: &str,
        words: &str,
        code: i32,
        act: impl Fn(&mut Running<'_>) + 'static,
    ) -> Self {
        let case = Self::new(fault, Place::Measuring, words, code).rows(2);
        case.says(&["measured row"]).act(move |job| {
            job.until_rows(2)?;
            act(job);
            Ok(())
        })
    }

    /// Adds a rule of the interposed library.
    pub(crate) fn rule(self, rule: impl Into<String>) -> Self {
        self.with(|job| job.rules.push(rule.into()))
    }

    /// Sets the change of the command before the job starts.
    pub(crate) fn prepared(
        self,
        prepare: impl Fn(&mut Command, &Stage, &Path) -> Result<(), String> + 'static,
    ) -> Self {
        self.with(|job| job.prepare = Some(Box::new(prepare)))
    }

    /// Starts the command through a shell script, in which it is `"$@"`.
    pub(crate) fn shell(self, script: impl Into<String>) -> Self {
        let script = script.into();
        self.prepared(move |command, _, directory| shell(command, directory, &script))
    }

    /// Sets the action on the running job.
    pub(crate) fn act(self, act: impl Fn(&mut Running<'_>) -> Result<(), String> + 'static) -> Self {
        self.with(|job| job.act = Some(Box::new(act)))
    }

    /// Requires these parts on standard error or in the reason of a row.
    pub(crate) fn says(mut self, parts: &[&str]) -> Self {
        self.expect.messages.extend(parts.iter().map(|&part| part.to_owned()));
        self
    }

    /// Accepts another exit code.
    pub(crate) fn or_code(mut self, code: i32) -> Self {
        self.expect.codes.push(code);
        self
    }

    /// Requires at least this many rows in the file.
    pub(crate) fn rows(mut self, rows: usize) -> Self {
        self.expect.rows = rows;
        self
    }

    /// Sets an additional check of the ended job.
    pub(crate) fn look(mut self, look: impl Fn(&Done) -> Result<String, String> + 'static) -> Self {
        self.expect.look = Some(Box::new(look));
        self
    }

    /// Requires something of the ended job, or says what is wrong.
    pub(crate) fn must(self, why: impl Into<String>, holds: impl Fn(&Done) -> bool + 'static) -> Self {
        let why = why.into();
        self.look(move |done| if holds(done) { Ok(String::new()) } else { Err(why.clone()) })
    }

    pub(crate) fn deadline(self, seconds: u64) -> Self {
        self.with(|job| job.deadline = Duration::from_secs(seconds))
    }

    /// Runs without `--output`.
    pub(crate) fn without_out(self) -> Self {
        self.with(|job| job.out = false)
    }

    /// Changes the job, which must not be shared.
    fn with(mut self, change: impl FnOnce(&mut Job)) -> Self {
        change(Rc::get_mut(&mut self.job).expect("a job of one case"));
        self
    }

    /// Skips the case if there is a reason.
    pub(crate) fn skip_if(mut self, why: Option<String>) -> Self {
        self.skip = self.skip.or(why);
        self
    }

    /// Sets whether every change of ombx must pass the case.
    pub(crate) fn gate(self, gate: bool) -> Self {
        Self { gate, ..self }
    }

    /// Returns whether the line of the case contains all words, in any case of letters.
    pub(crate) fn matches(&self, words: &str) -> bool {
        let line = self.to_string().to_lowercase();
        words.to_lowercase().split_whitespace().all(|word| line.contains(word))
    }
}

impl Job {
    /// Returns a job of `ombx` with these arguments and a result file.
    pub(crate) fn new(arguments: &str) -> Self {
        Self {
            arguments: arguments.to_owned(),
            out: true,
            rules: Vec::new(),
            all_act: true,
            prepare: None,
            act: None,
            deadline: Duration::from_secs(25),
            done: OnceCell::new(),
        }
    }
}

/// Sets for each case whether its fault is one of those that every change must pass.
///
/// # Panics
/// No case has one of these faults.
pub(crate) fn gated(cases: impl IntoIterator<Item = Case>, faults: &[&str]) -> Vec<Case> {
    let gated = |case: Case| {
        let gate = faults.contains(&case.fault.as_str());
        case.gate(gate)
    };
    let cases: Vec<Case> = cases.into_iter().map(gated).collect();
    let absent = faults.iter().find(|fault| cases.iter().all(|case| case.fault != **fault));
    assert_eq!(absent, None, "no case has this fault");
    cases
}

/// Returns the cases of one share of the jobs. Cases of the same job stay together.
pub(crate) fn shared(cases: Vec<Case>, share: Share, seed: Option<u64>) -> Vec<Case> {
    let mut jobs: Vec<Vec<Case>> = Vec::new();
    for case in cases {
        match jobs.last_mut() {
            Some(job) if Rc::ptr_eq(&job[0].job, &case.job) => job.push(case),
            _ => jobs.push(vec![case]),
        }
    }
    share.select(jobs, seed).into_iter().flatten().collect()
}

/// Starts the command through a shell script, in which it is `"$@"`.
pub(crate) fn shell(command: &mut Command, directory: &Path, script: &str) -> Result<(), String> {
    use std::os::unix::process::CommandExt;
    let mut through = Command::new("sh");
    through.args(["-c", script, "sh"]).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => through.env(name, value),
            None => through.env_remove(name),
        };
    }
    let file = |name: &str| {
        fs::OpenOptions::new().append(true).open(directory.join(name)).map_err(|e| e.to_string())
    };
    through.env("DIRECTORY", directory).stdin(Stdio::null()).process_group(0);
    through.stdout(file("stdout")?).stderr(file("stderr")?);
    *command = through;
    Ok(())
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}, {}", self.fault, self.place, self.subject)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Start => "start",
            Self::Open => "open",
            Self::WarmUp => "warm-up",
            Self::Calibration => "calibration",
            Self::Measuring => "measuring",
            Self::Verifying => "verifying",
            Self::Closing => "closing",
            Self::Between => "between cases",
            Self::Output => "output",
            Self::End => "end",
        })
    }
}
