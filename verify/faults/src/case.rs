//! A case: a fault at a place of a benchmark, how it is brought about, and how the job has to end.

use std::{cell::OnceCell, fmt, path::Path, process::Command, rc::Rc, time::Duration};

use super::{
    interpose::Rule,
    run::{Done, Running},
    stage::Stage,
};

/// In what part of a job the fault happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// Before ranks are connected: command line, launcher, start of MPI.
    Start,
    /// While a case is opened: buffers, windows, communicators.
    Open,
    WarmUp,
    Calibration,
    Measuring,
    /// The payload is checked.
    Verifying,
    /// What a case has opened is closed.
    Closing,
    /// Between cases, in the harness's own messages.
    Between,
    /// Rows are written or shown.
    Output,
    /// The job ends.
    End,
}

/// A fault, and what must come of it. Made by [`Case::of`] and completed by the calls below.
pub(crate) struct Case {
    /// What goes wrong, in the words of the table.
    pub(crate) fault: String,
    pub(crate) place: Place,
    /// The benchmark, or what else runs.
    pub(crate) subject: String,
    /// Why it is not run here.
    pub(crate) skip: Option<String>,
    /// Whether every change has to pass it.
    pub(crate) gate: bool,
    /// Several cases may look at one job, which then runs once.
    pub(crate) job: Rc<Job>,
    pub(crate) expect: Expect,
}

/// What is done before the job starts, to the command of ombx that starts it.
pub(crate) type Prepare = Box<dyn Fn(&mut Command, &Stage, &Path) -> Result<(), String>>;
/// What is done to a job under way.
pub(crate) type Act = Box<dyn Fn(&mut Running<'_>) -> Result<(), String>>;
/// What else has to hold of a job that has ended: a remark for the table, or what is wrong.
pub(crate) type Look = Box<dyn Fn(&Done) -> Result<String, String>>;

/// How the fault is brought about.
pub(crate) struct Job {
    /// Arguments of ombx, separated by blanks.
    pub(crate) words: String,
    /// Whether `--out FILE` is added, which is read afterwards.
    pub(crate) out: bool,
    /// What the interposed library does in the ranks.
    pub(crate) rules: Vec<Rule>,
    /// Whether each of them has to come to act; some cases look themselves at what became of each.
    pub(crate) all_act: bool,
    pub(crate) prepare: Option<Prepare>,
    pub(crate) act: Option<Act>,
    pub(crate) deadline: Duration,
    /// What it did, once it has run.
    pub(crate) done: OnceCell<Result<Done, String>>,
}

/// How the job has to end.
pub(crate) struct Expect {
    /// Any of these exit codes; a signal that ends it is 128 and its number.
    pub(crate) codes: Vec<i32>,
    /// Each of these stands on standard error or in a row's reason.
    pub(crate) says: Vec<String>,
    /// Rows in the file at the end, at least; whatever there is has to be readable.
    pub(crate) rows: usize,
    pub(crate) look: Option<Look>,
}

impl Case {
    /// `ombx` with these words, with a result file and without a fault, which has to end with `code`.
    pub(crate) fn of(fault: &str, place: Place, subject: &str, words: &str, code: i32) -> Self {
        Self::about(fault, place, subject, Rc::new(Job::of(words)), code)
    }

    /// A job that other cases look at too.
    pub(crate) fn about(fault: &str, place: Place, subject: &str, job: Rc<Job>, code: i32) -> Self {
        let expect = Expect { codes: vec![code], says: Vec::new(), rows: 0, look: None };
        let (fault, subject) = (fault.to_owned(), subject.to_owned());
        Self { fault, place, subject, skip: None, gate: true, job, expect }
    }

    /// The interposed library does this in the ranks.
    pub(crate) fn rule(self, rule: Rule) -> Self {
        self.with(|job| job.rules.push(rule))
    }

    /// Something is done to the command before it starts; the path is the job's own directory.
    pub(crate) fn prepared(
        self,
        prepare: impl Fn(&mut Command, &Stage, &Path) -> Result<(), String> + 'static,
    ) -> Self {
        self.with(|job| job.prepare = Some(Box::new(prepare)))
    }

    /// Something is done to the job while it runs.
    pub(crate) fn act(self, act: impl Fn(&mut Running<'_>) -> Result<(), String> + 'static) -> Self {
        self.with(|job| job.act = Some(Box::new(act)))
    }

    /// Standard error or a row's reason says so.
    pub(crate) fn says(mut self, words: &[&str]) -> Self {
        self.expect.says.extend(words.iter().map(|&word| word.to_owned()));
        self
    }

    /// These exit codes are right too.
    pub(crate) fn or_code(mut self, code: i32) -> Self {
        self.expect.codes.push(code);
        self
    }

    /// So many rows at least are in the file.
    pub(crate) fn rows(mut self, rows: usize) -> Self {
        self.expect.rows = rows;
        self
    }

    /// More has to hold of how it ended.
    pub(crate) fn look(mut self, look: impl Fn(&Done) -> Result<String, String> + 'static) -> Self {
        self.expect.look = Some(Box::new(look));
        self
    }

    pub(crate) fn deadline(self, seconds: u64) -> Self {
        self.with(|job| job.deadline = Duration::from_secs(seconds))
    }

    /// Without `--out`.
    pub(crate) fn without_out(self) -> Self {
        self.with(|job| job.out = false)
    }

    /// Changes its job, which no other case looks at.
    fn with(mut self, change: impl FnOnce(&mut Job)) -> Self {
        change(Rc::get_mut(&mut self.job).expect("a job of one case"));
        self
    }

    /// Not run here if there is a reason.
    pub(crate) fn skip_if(mut self, why: Option<String>) -> Self {
        self.skip = self.skip.or(why);
        self
    }

    /// Not run for every change, only on demand.
    pub(crate) fn on_demand(mut self) -> Self {
        self.gate = false;
        self
    }

    /// Whether its line contains all words.
    pub(crate) fn matches(&self, words: &str) -> bool {
        let line = self.to_string().to_lowercase();
        words.to_lowercase().split_whitespace().all(|word| line.contains(word))
    }
}

impl Job {
    /// `ombx` with these words and a result file.
    pub(crate) fn of(words: &str) -> Self {
        Self {
            words: words.to_owned(),
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
