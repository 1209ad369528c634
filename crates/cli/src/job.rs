//! A job with every mistake found: what is measured, on which ranks, and where rows go. It starts ranks, or is one of them.

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    time::Duration,
};

use ombx_core::{
    benchmark::{
        entry::{Choice, Medium},
        threads::Threading,
    },
    error::{Error, Result},
    measure::{
        plan::{Launch, Plan},
        runner::Part,
    },
};
use ombx_links::sweep;

use crate::{
    args::{Launcher, LaunchesArgs, OutputArgs, StartArgs},
    deadline, fabric, launch, select,
};

/// What `ombx run` and `ombx links` have in common.
pub(crate) struct Job<'a> {
    pub(crate) start: &'a StartArgs,
    pub(crate) output: &'a OutputArgs,
    pub(crate) work: Work,
    pub(crate) extent: Extent,
    pub(crate) launches: Launches,
}

/// Exit codes from here on say which signal ended a job.
pub(crate) const INTERRUPTED: u8 = 128;

/// How often the ranks are started.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Launches {
    pub(crate) count: u32,
    pub(crate) seed: u64,
}

impl Launches {
    pub(crate) const fn one() -> Launches {
        Launches { count: 1, seed: 0 }
    }

    pub(crate) fn of(args: &LaunchesArgs) -> Launches {
        // Every hasher of the standard library has keys of its own, which no one else can foresee.
        let seed = args.seed.unwrap_or_else(|| RandomState::new().build_hasher().finish());
        Launches { count: args.launches.unwrap_or(1), seed }
    }

    /// What each is told: nothing where there is but one.
    pub(crate) fn each(self) -> impl Iterator<Item = Option<Launch>> {
        let launch =
            move |number| Launch { number, of: self.count, order: self.seed.wrapping_add(u64::from(number)) };
        (1..=self.count).map(move |number| (self.count > 1).then(|| launch(number)))
    }
}

/// What is measured.
#[derive(Clone)]
pub(crate) enum Work {
    /// Part after part, all of them in one start of the ranks.
    Benchmarks(Vec<Part>),
    Links(sweep::Task, Box<Plan>),
}

impl Work {
    /// What it asks of the library for threads.
    pub(crate) fn threading(&self) -> Threading {
        match self {
            Work::Benchmarks(parts) => select::threading(parts.iter().flat_map(|part| &part.choices)),
            Work::Links(..) => Threading::Single,
        }
    }

    fn choices(&self) -> Vec<Choice> {
        match self {
            Work::Benchmarks(parts) => parts.iter().flat_map(|part| part.choices.iter().copied()).collect(),
            Work::Links(task, _) => vec![task.choice],
        }
    }

    /// The part of it whose ranks are connected so.
    fn over(&self, medium: Medium) -> Work {
        let over = |part: &Part| {
            let of_it = part.choices.iter().filter(|choice| choice.bench.medium == medium);
            let choices: Vec<Choice> = of_it.copied().collect();
            (!choices.is_empty()).then(|| Part { choices, plan: part.plan.clone() })
        };
        match self {
            Work::Benchmarks(parts) => Work::Benchmarks(parts.iter().filter_map(over).collect()),
            Work::Links(task, plan) => Work::Links(task.clone(), plan.clone()),
        }
    }

    /// How long a rank may be without a sign of life.
    pub(crate) fn silence(&self, wish: Option<Duration>) -> Duration {
        let plans: Vec<&Plan> = match self {
            Work::Benchmarks(parts) => parts.iter().map(|part| &part.plan).collect(),
            Work::Links(_, plan) => vec![plan],
        };
        plans.into_iter().map(|plan| deadline::of_silence(plan, wish)).max().unwrap_or_default()
    }
}

/// How much that is, if this process starts the ranks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extent {
    pub(crate) ranks: u32,
    pub(crate) rows: u64,
    /// The time that they may take; those measured at the same time count once.
    pub(crate) time: Duration,
}

impl<'a> Job<'a> {
    pub(crate) fn run(&self) -> Result<u8> {
        if self.output.coordinator {
            return fabric::coordinate(self);
        }
        let started_by_us = self.output.relay.is_some();
        let is_rank = match self.start.launcher {
            Launcher::None => true,
            Launcher::Auto => launch::detect::launcher().is_some(),
            Launcher::Mpiexec | Launcher::Srun => false,
        };
        if started_by_us || is_rank {
            if !started_by_us && (!self.start.hosts.is_empty() || self.start.hostfile.is_some()) {
                return Err(Error::usage(
                    "--hosts and --hostfile say where to start ranks, but a launcher has started them",
                ));
            }
            if !started_by_us && self.launches.count > 1 {
                return Err(self.not_started_here());
            }
            if !started_by_us
                && launch::detect::launcher().is_none()
                && self.start.ranks.is_some_and(|n| n > 1)
            {
                return Err(Error::usage("-n says how many ranks to start, and --launcher none starts none"));
            }
            fabric::be_a_rank(self)
        } else if self.start.rendezvous.is_some() {
            Err(Error::usage("--rendezvous is for ranks that a launcher has started, and none has"))
        } else {
            launch::launch(self)
        }
    }

    fn not_started_here(&self) -> Error {
        Error::usage(format!(
            "--launches {} starts ranks so often, but a launcher has started these: repeat the launcher's command and join the files",
            self.launches.count
        ))
    }

    /// What connects the ranks of its first benchmark; of all, if it is a part.
    pub(crate) fn medium(&self) -> Medium {
        self.work.choices().first().map_or(Medium::Mpi, |choice| choice.bench.medium)
    }

    /// A job for each medium that it needs, in the order in which its benchmarks name them.
    pub(crate) fn parts(&self) -> Vec<Job<'a>> {
        let mut media: Vec<Medium> = Vec::new();
        for choice in self.work.choices() {
            if !media.contains(&choice.bench.medium) {
                media.push(choice.bench.medium);
            }
        }
        media.into_iter().map(|medium| self.part(medium)).collect()
    }

    /// The part of it whose ranks are connected so.
    pub(crate) fn part(&self, medium: Medium) -> Job<'a> {
        let Job { start, output, ref work, extent, launches } = *self;
        Job { start, output, work: work.over(medium), extent, launches }
    }
}
