//! A job: what is measured, on which ranks, and where rows go. Commands prepare it and check all of it before it runs.

#[cfg(feature = "mpi")]
pub mod accelerator;
#[cfg(feature = "io")]
pub(crate) mod directory;
pub mod launches;
pub mod rank_job;
pub mod selection;

use std::{path::PathBuf, time::Duration};

use ombx_core::{
    benchmark::{Benchmark, Choice, Initialization, Medium, RankMatrix, Threading},
    measure::{
        plan::{Effort, LaunchSettings, Plan, Verify},
        runner::Part,
    },
};
use ombx_record::{error::Result, order::each_once};
use ombx_sweep::sweep;
use serde::{Deserialize, Serialize};

use crate::{
    job::{launches::Launches, rank_job::RankJob},
    launch::start::{Bind, Start},
    output::{
        destination::{Destination, Existing, LinksFiles},
        target,
    },
    this_process,
};

#[cfg(feature = "mpi")]
use crate::launch::detection;

/// Job of `ombx run`, `ombx links` or `ombx osu`.
pub struct Job {
    /// How the ranks are started.
    pub start: Start,
    /// Where rows go.
    pub output: Destination,
    /// What the user or `ombx ab` gives to every launch.
    pub settings: LaunchSettings,
    /// What is measured.
    pub work: Work,
    /// Size of the job.
    pub extent: Extent,
    /// How many launches there are.
    pub launches: Launches,
    /// Suite, reference and groups that the command reads, with their descriptions.
    pub read_from: Vec<(&'static str, PathBuf)>,
    /// Earlier runs that the user names.
    pub against: Option<PathBuf>,
}

impl Job {
    /// Returns the job of a program of another suite, which has one launch, after finding what contradicts. `known` is the number of ranks
    /// that the user or a launcher has chosen, `ranks` the one to start.
    pub fn one_launch(
        start: Start,
        output: Destination,
        parts: Vec<Part>,
        known: Option<u32>,
        ranks: u32,
    ) -> Result<Job> {
        selection::check_ranks(known, &parts)?;
        let extent = extent(&start, &parts, ranks)?;
        let (work, launches) = (Work::Benchmarks(parts), Launches::ONE);
        let (settings, read_from) = (LaunchSettings::default(), Vec::new());
        Ok(Job { start, output, settings, work, extent, launches, read_from, against: None })
    }

    /// Returns what ranks of one kind get in a launch.
    pub(crate) fn of_ranks(&self, kind: RankKind, settings: &LaunchSettings) -> Result<RankJob> {
        let mut argv = this_process::as_typed();
        argv[0] = this_process::executable()?.to_string_lossy().into_owned();
        Ok(RankJob {
            kind,
            argv,
            work: self.work.of_kind(kind),
            settings: settings.clone(),
            time: self.extent.time,
            timeout: self.start.timeout,
            binds: self.start.bind != Bind::None,
        })
    }

    /// Returns the value of a parameter that the user chose.
    pub(crate) fn chosen(&self, name: &str) -> Option<&str> {
        self.work.plans().into_iter().find_map(|plan| plan.chosen.named(name))
    }

    /// Refuses a file that the job would use twice.
    pub(crate) fn check_files(&self) -> Result<()> {
        let Destination { screen, file, existing, openmetrics, .. } = &self.output;
        let files = screen.links_files().into_iter().flat_map(LinksFiles::by_option);
        let written: Vec<_> = [("-o", file.as_ref()), ("--openmetrics", openmetrics.as_ref())]
            .into_iter()
            .chain(files)
            .collect();
        // Rows that are added to a file of earlier runs replace none of them.
        let is_added = *existing == Existing::Append;
        let against = self.against.iter().filter(|_| !is_added).cloned();
        let earlier = against.map(|path| ("the earlier runs that are read", path)).collect();
        let used = [files_used(&self.start, &self.work.plans()), self.read_from.clone(), earlier].concat();
        target::check_all(&written, &used)
    }
}

/// Returns the host file, the file of the token, and the files that benchmarks read and write, with their descriptions.
pub fn files_used(start: &Start, plans: &[&Plan]) -> Vec<(&'static str, PathBuf)> {
    let named =
        [("the host file that is read", &start.hostfile), ("the file of the token", &start.token_file)];
    let of_start = named.into_iter().filter_map(|(what, path)| Some((what, path.clone()?)));
    of_start.chain(plans.iter().flat_map(|plan| files_of_plan(plan))).collect()
}

/// Returns the files that the benchmarks of a plan read and write, with their descriptions.
fn files_of_plan(plan: &Plan) -> Vec<(&'static str, PathBuf)> {
    let nodes = plan.chosen.named("nodes").and_then(|nodes| nodes.parse().ok()).unwrap_or(1u32);
    let mut files = Vec::new();
    for (name, what) in [("source", "the source that is read"), ("sink", "the sink that is written")] {
        let end = plan.chosen.named(name);
        let Some(path) = end.and_then(|end| end.strip_prefix("file:")) else { continue };
        // The path may stand for a file of each node.
        files.extend((0..nodes).map(|node| (what, path.replace("{node}", &node.to_string()).into())));
    }
    files
}

/// Size of a job whose ranks this process starts.
#[derive(Debug, Clone, Copy, Default)]
pub struct Extent {
    /// Number of ranks.
    pub ranks: u32,
    /// Number of rows of a launch.
    pub rows: u64,
    /// Time limit of all rows; rows that are measured at the same time count once.
    pub time: Duration,
    /// Benchmarks before the first one that is measured.
    pub left_out: usize,
}

/// Returns the size of a job on this many ranks. The process that starts them checks the devices and the directories that parts use.
#[cfg_attr(
    not(feature = "mpi"),
    expect(unused_variables, reason = "only ranks of MPI have devices and files")
)]
pub fn extent(start: &Start, parts: &[Part], ranks: u32) -> Result<Extent> {
    let mut extent = Extent { ranks, ..Extent::default() };
    for Part { choices, plan } in parts {
        let rows = selection::rows(plan, choices)?;
        extent.rows = extent.rows.saturating_add(rows);
        extent.time = extent.time.saturating_add(rows_time_limit(plan, rows));
    }
    #[cfg(feature = "mpi")]
    {
        let is_here = detection::launcher().is_some() || start.are_all_here();
        parts.iter().try_for_each(|part| accelerator::check(&part.plan, is_here))?;
        #[cfg(feature = "io")]
        directory::check(parts, ranks, is_here)?;
    }
    Ok(extent)
}

/// Kind of ranks that some benchmarks need. One start of ranks gives ranks of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankKind {
    /// What connects the ranks.
    pub medium: Medium,
    /// Thread support of the library. Its locks and its unbound ranks would spoil benchmarks that need none.
    pub threading: Threading,
}

impl RankKind {
    fn new(bench: &Benchmark) -> RankKind {
        RankKind { medium: bench.ranks.medium, threading: bench.ranks.threading }
    }
}

/// What a job measures.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Work {
    /// Parts that run one after the other, on the same ranks where these are of one kind.
    Benchmarks(Vec<Part>),
    /// Sweep over all pairs of ranks.
    Links(sweep::Task, Box<Plan>),
}

impl Work {
    /// Returns the plans of all parts.
    pub fn plans(&self) -> Vec<&Plan> {
        match self {
            Work::Benchmarks(parts) => parts.iter().map(|part| &part.plan).collect(),
            Work::Links(_, plan) => vec![plan],
        }
    }

    /// Returns whether rows are measured under loads.
    pub(crate) fn has_loads(&self) -> bool {
        self.plans().iter().any(|plan| !plan.under.is_empty())
    }

    pub(crate) fn choices(&self) -> Vec<Choice> {
        match self {
            Work::Benchmarks(parts) => parts.iter().flat_map(|part| part.choices.iter().copied()).collect(),
            Work::Links(task, _) => vec![task.choice],
        }
    }

    /// Returns the level of thread support for which MPI is initialised: the user's, or what a benchmark needs beyond it.
    pub(crate) fn threading(&self) -> Threading {
        self.chosen_threading().max(selection::threading(&self.choices()))
    }

    /// Returns the level of thread support that the user asks for. [`selection::check_ranks`] has found that it is that of all parts.
    pub(crate) fn chosen_threading(&self) -> Threading {
        self.plans().first().map_or(Threading::Single, |plan| plan.chosen.get())
    }

    /// Returns how the work initialises MPI. [`selection::check_ranks`] has found that all parts do it in the same way.
    pub(crate) fn initialization(&self) -> Initialization {
        self.plans().first().map_or(Initialization::World, |plan| plan.chosen.get())
    }

    /// Returns the matrix by which ranks are numbered anew, which is that of all parts.
    pub(crate) fn numbering(&self) -> Option<RankMatrix> {
        self.plans().first().and_then(|plan| plan.chosen.chosen())
    }

    /// Returns the kinds of ranks that the benchmarks need, in the order in which the benchmarks name them, each once.
    pub fn kinds(&self) -> Vec<RankKind> {
        each_once(self.choices().iter().map(|choice| RankKind::new(choice.bench)))
    }

    /// Returns the work of ranks of one kind.
    pub(crate) fn of_kind(&self, kind: RankKind) -> Work {
        self.select(|bench| RankKind::new(bench) == kind)
    }

    /// Returns the work of the ranks that one medium connects.
    pub(crate) fn over(&self, medium: Medium) -> Work {
        self.select(|bench| bench.ranks.medium == medium)
    }

    fn select(&self, wanted: impl Fn(&Benchmark) -> bool) -> Work {
        let over = |part: &Part| {
            let choices = part.choices.iter().filter(|choice| wanted(choice.bench));
            let choices: Vec<Choice> = choices.copied().collect();
            (!choices.is_empty()).then(|| Part { choices, plan: part.plan.clone() })
        };
        match self {
            Work::Benchmarks(parts) => Work::Benchmarks(parts.iter().filter_map(over).collect()),
            links @ Work::Links(..) => links.clone(),
        }
    }

    /// Returns the maximum time of a row in a launch, within which launches choose it. `None` if it is the same in all launches: with
    /// a fixed number of iterations, and in sweeps over links.
    pub(crate) fn row_time(&self) -> Option<Duration> {
        match self {
            Work::Benchmarks(parts) => parts.iter().filter_map(|part| part.plan.effort.time()).max(),
            Work::Links(..) => None,
        }
    }

    /// Returns the time within which each row should end, if every row has such a time.
    pub(crate) fn row_limit(&self) -> Option<Duration> {
        self.plans().into_iter().map(row_time_limit).collect::<Option<Vec<Duration>>>()?.into_iter().max()
    }

    /// Returns how long a case may make no progress, on ranks of which `shared` share a CPU.
    pub(crate) fn silence(&self, timeout: Option<Duration>, shared: u32) -> Duration {
        let plans = self.plans().into_iter();
        plans.map(|plan| silence_time_limit(plan, timeout, shared)).max().unwrap_or_default()
    }
}

/// Time for starting MPI on a slow cluster.
const START_LIMIT: Duration = Duration::from_secs(120);
/// Time for opening, warming up and verifying a row, in addition to measuring it.
const ROW_LIMIT: Duration = Duration::from_secs(20);
/// Shortest time without progress that ends a case.
const SILENCE: Duration = Duration::from_secs(30);
/// The same where iterations are fixed, whose warm-up takes an unknown time.
const FIXED_SILENCE: Duration = Duration::from_secs(300);
/// Time for a row with a fixed number of iterations, whose duration is unknown.
const FIXED_ROW: Duration = Duration::from_secs(3600);

/// Time that the launcher and its ranks have for ending by themselves after the launching process has ended the job.
pub const AFTER_JOB: Duration = Duration::from_secs(10);

/// Returns the limit for starting the ranks and measuring rows that take up to `rows`.
pub(crate) fn job_time_limit(rows: Duration, timeout: Option<Duration>) -> Duration {
    timeout.unwrap_or_else(|| START_LIMIT.saturating_add(rows))
}

/// Returns the limit for measuring this many rows one after the other.
pub fn rows_time_limit(plan: &Plan, rows: u64) -> Duration {
    row_time_limit(plan).unwrap_or(FIXED_ROW).saturating_mul(u32::try_from(rows).unwrap_or(u32::MAX))
}

/// Returns the limit for measuring one row, if it has one.
pub(crate) fn row_time_limit(plan: &Plan) -> Option<Duration> {
    row_time(plan).map(|time| time.saturating_mul(10).saturating_add(ROW_LIMIT))
}

/// Returns the limit for a case that shows no progress. Cases show it when a round of samples ends. Without a known time, a warm-up of a
/// fixed number of iterations tells how many of them are a round. Ranks of which `shared` share a CPU take longer.
pub(crate) fn silence_time_limit(plan: &Plan, timeout: Option<Duration>, shared: u32) -> Duration {
    let of_time = |time: Duration| time.saturating_mul(3).max(SILENCE);
    let silence = match plan.effort {
        Effort::Fixed { warmup: 0, .. } => FIXED_ROW,
        Effort::Fixed { .. } => FIXED_SILENCE,
        Effort::Precision { .. } | Effort::Time(_) => plan.row_time().map_or(FIXED_ROW, of_time),
    };
    let silence = silence.saturating_mul(shared.max(1));
    timeout.map_or(silence, |timeout| timeout.min(silence))
}

/// Returns the limit for a rank that does not begin its first case.
pub(crate) fn start_time_limit(timeout: Option<Duration>) -> Duration {
    timeout.map_or(START_LIMIT, |timeout| timeout.min(START_LIMIT))
}

/// Returns the time of a row if it is known. How long it takes to verify every iteration is not.
fn row_time(plan: &Plan) -> Option<Duration> {
    plan.row_time().filter(|_| plan.verify != Verify::Full)
}

#[cfg(test)]
mod time_limit_tests {
    use crate::job::*;

    #[test]
    fn a_case_without_progress_has_a_limit_that_fits() {
        let s = Duration::from_secs;
        let of = |effort, timeout, shared| {
            silence_time_limit(&Plan { effort, ..Plan::default() }, timeout, shared)
        };
        let precision = |max_time| Effort::Precision { precision: 0.01, max_time };
        assert_eq!(of(precision(Duration::from_millis(100)), None, 1), s(30));
        assert_eq!(of(precision(s(60)), None, 1), s(180));
        assert_eq!(of(precision(s(1)), None, 32), s(960));
        assert_eq!(of(precision(s(1)), Some(s(5)), 32), s(5));
        let fixed = |warmup| Effort::Fixed { iterations: 1000, warmup };
        assert_eq!([fixed(10), fixed(0)].map(|effort| of(effort, None, 1)), [FIXED_SILENCE, FIXED_ROW]);
        assert_eq!([None, Some(s(5))].map(start_time_limit), [START_LIMIT, s(5)]);
    }
}
