//! Runs the chosen benchmarks one after the other on a team, each on just the ranks that it needs.

use std::collections::BTreeMap;

use crate::{
    clock::Clock,
    engine::Session,
    env,
    error::{Error, Result},
    payload::Check,
    placement::Placement,
    plan::{Effort, Launch, Plan},
    registry::{Benchmark, Choice},
    result::{Measurement, Outcome, Run, Tally},
    session::selected,
    sink::Sink,
    team::{Place, Team},
    threads::Threading,
    trust::{self, Notice},
    unit::Rank,
};

/// Benchmarks that are run under one plan.
#[derive(Debug, Clone)]
pub struct Part {
    /// Which, in this order.
    pub choices: Vec<Choice>,
    /// What was chosen for them.
    pub plan: Plan,
}

/// Runs benchmarks in the given order, part by part. Every rank calls it with the same arguments; the sink of rank 0 gets the rows.
pub fn run_all(
    team: &dyn Team,
    parts: &[Part],
    clock: &Clock,
    sink: &mut dyn Sink,
    argv: Vec<String>,
) -> Result<Tally> {
    let Opening { mut sink, places, standing } = open(team, clock, sink, describe_all(parts), argv)?;
    let leader = team.rank() == Rank(0);
    let every = || parts.iter().flat_map(|part| part.choices.iter().map(move |choice| (*choice, &part.plan)));
    let multiple = every().any(|(choice, _)| choice.bench.threading == Threading::Multiple);
    let ordered = match parts.first().and_then(|part| part.plan.launch) {
        Some(launch) => launch.arrange(every().collect()),
        None => every().collect::<Vec<_>>(),
    };
    for (choice, plan) in ordered {
        let bench = choice.bench;
        let why = (bench.available)().map_err(Error::unsupported);
        let seating = team.agree(why.and_then(|()| bench.layout.seat(team.size(), plan.pairs)));
        let seating = match seating {
            Ok(seating) => seating,
            Err(e) if e.kind() == crate::error::Kind::Unsupported => {
                if leader {
                    sink.case(&skipped(bench, team.size(), e.to_string()))?;
                }
                continue;
            }
            Err(e) => return Err(e),
        };
        let mut standing = standing.clone();
        match bench.threads_of(plan) {
            Some(threads) => standing.extend(trust::crowded_threads(&places, threads)),
            None => standing.extend(multiple.then(trust::thread_multiple)),
        }
        if seating.ranks == team.size() {
            let mut session = Session::new(team, seating, (plan, clock, &standing), choice, &mut sink);
            (bench.run)(&mut session)?;
        } else if let Some(part) = team.take(seating.ranks)? {
            standing.push(trust::idle_ranks(seating.ranks, team.size()));
            let mut session = Session::new(&*part, seating, (plan, clock, &standing), choice, &mut sink);
            (bench.run)(&mut session)?;
        }
        team.rest()?;
    }
    if leader {
        sink.finish()?;
    }
    Ok(sink.tally)
}

/// A run that has begun.
pub(crate) struct Opening<'a> {
    /// Where rows go.
    pub(crate) sink: Counted<'a>,
    /// Where every rank runs; on rank 0 alone.
    pub(crate) places: Vec<Place>,
    /// Notices that hold for every row.
    pub(crate) standing: Vec<Notice>,
}

/// Begins a run: rank 0 learns where all ranks are, all of them learn what that means for rows, and the sink of rank 0 gets its first record.
pub(crate) fn open<'a>(
    team: &dyn Team,
    clock: &Clock,
    sink: &'a mut dyn Sink,
    plan: BTreeMap<String, String>,
    argv: Vec<String>,
) -> Result<Opening<'a>> {
    let places = gather_places(team)?;
    let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
    let standing = share(team, trust::standing(&places, clock.facts(), cfg!(debug_assertions)))?;
    let mut sink = Counted { tally: Tally::default(), sink };
    if team.rank() == Rank(0) {
        let fabric = team.fabric();
        let mut plan = plan;
        plan.insert("placement".into(), Placement::of(&places).name().into());
        sink.run(&Run {
            id: env::run_id(),
            argv,
            started: env::timestamp(),
            version: env!("CARGO_PKG_VERSION").into(),
            profile: profile.into(),
            fabric: fabric.name.into(),
            library: fabric.library,
            places: places.clone(),
            clock: clock.facts().into(),
            plan,
            env: env::kept_variables(),
        })?;
    }
    Ok(Opening { sink, places, standing })
}

/// Counts rows on their way to the sink.
pub(crate) struct Counted<'a> {
    pub(crate) tally: Tally,
    sink: &'a mut dyn Sink,
}

impl Counted<'_> {
    /// The last record.
    pub(crate) fn finish(&mut self) -> Result<()> {
        let tally = self.tally;
        self.sink.end(&tally)
    }
}

impl Sink for Counted<'_> {
    fn run(&mut self, run: &Run) -> Result<()> {
        self.sink.run(run)
    }

    fn starting(&mut self, bench: &str, case: &crate::case::Case) {
        self.sink.starting(bench, case);
    }

    fn alive(&self) {
        self.sink.alive();
    }

    fn case(&mut self, row: &Measurement) -> Result<()> {
        self.tally.add(row);
        self.sink.case(row)
    }

    fn end(&mut self, tally: &Tally) -> Result<()> {
        self.sink.end(tally)
    }
}

/// Where every rank runs, on rank 0; nothing elsewhere: a table of all ranks on every one of them is more than a large machine can hold.
fn gather_places(team: &dyn Team) -> Result<Vec<Place>> {
    let mine = serde_json::to_vec(&Place::here()).unwrap_or_default();
    let read = |all: Vec<Vec<u8>>| all.iter().map(|text| serde_json::from_slice(text)).collect();
    let places: std::result::Result<Vec<Place>, serde_json::Error> =
        team.gather(&mine)?.map_or(Ok(Vec::new()), read);
    team.agree(places.map_err(|e| {
        Error::fabric(format!(
            "ranks disagree on how to describe a host ({e}): is every rank the same build of ombx?"
        ))
    }))
}

/// Rank 0's notices, on every rank: any of them may be the one whose row counts.
fn share(team: &dyn Team, mine: Vec<Notice>) -> Result<Vec<Notice>> {
    let words: Vec<[&str; 3]> =
        mine.iter().map(|notice| [&*notice.code, &*notice.short, &*notice.advice]).collect();
    let mut text = serde_json::to_vec(&words).unwrap_or_default();
    text.resize(team.tell(text.len() as u64)? as usize, 0);
    team.broadcast(&mut text)?;
    let words: Vec<[String; 3]> = serde_json::from_slice(&text)
        .map_err(|e| Error::fabric(format!("what rank 0 says of this run cannot be read ({e})")))?;
    Ok(words.into_iter().map(|[code, short, advice]| Notice { code, short, advice }).collect())
}

/// The row of a benchmark that cannot run at all.
fn skipped(bench: &Benchmark, ranks: u32, reason: String) -> Measurement {
    Measurement {
        bench: bench.name.into(),
        key: format!("{}/", bench.name),
        metric: bench.metric,
        bytes: None,
        depth: None,
        pairs: 1,
        ranks,
        axes: BTreeMap::new(),
        work: None,
        across: bench.layout.across(),
        outcome: Outcome::Skipped(reason),
        check: Check::Off,
        samples: Vec::new(),
        summary: None,
        figures: BTreeMap::new(),
        trust: Vec::new(),
        phases: None,
    }
}

/// The plan of every part; where there are several, an option is named by its part: `2.sizes`.
fn describe_all(parts: &[Part]) -> BTreeMap<String, String> {
    let mut options: BTreeMap<String, String> = match parts {
        [Part { plan, choices }] => describe(plan, choices),
        parts => (1..)
            .zip(parts)
            .flat_map(|(n, part)| {
                let options = describe(&part.plan, &part.choices).into_iter();
                options.map(move |(name, value)| (format!("{n}.{name}"), value))
            })
            .collect(),
    };
    if let Some(Launch { number, of, order }) = parts.first().and_then(|part| part.plan.launch) {
        let told =
            [("launch", number.to_string()), ("launches", of.to_string()), ("order", order.to_string())];
        options.extend(told.map(|(name, value)| (name.to_owned(), value)));
    }
    options
}

/// The resolved plan, option by option, as it is kept in results.
pub(crate) fn describe(plan: &Plan, choices: &[Choice]) -> BTreeMap<String, String> {
    let mut options: BTreeMap<String, String> = BTreeMap::new();
    let mut set = |name: &str, value: String| options.insert(name.into(), value);
    set("benchmarks", choices.iter().map(|c| c.bench.name).collect::<Vec<_>>().join(","));
    if let Some(sizes) = &plan.sizes {
        set("sizes", sizes.iter().map(ToString::to_string).collect::<Vec<_>>().join(","));
    }
    set("window", plan.depth.to_string());
    match plan.effort {
        Effort::Precision { precision, max_time } => {
            set("precision", format!("{}%", precision * 100.0));
            set("max_time_s", max_time.as_secs_f64().to_string());
        }
        Effort::Fixed { iterations, warmup } => {
            set("iterations", iterations.to_string());
            set("warmup", warmup.to_string());
        }
    }
    if let Some((limit, Effort::Fixed { iterations, warmup })) = plan.effort_above {
        set("above", limit.to_string());
        set("iterations_above", iterations.to_string());
        set("warmup_above", warmup.to_string());
    }
    set("batch", plan.batch.map_or("auto".into(), |b| b.to_string()));
    set("verify", plan.verify.to_string());
    if let Some(pairs) = plan.pairs {
        set("pairs", pairs.to_string());
    }
    if let Some(threads) = choices.iter().find_map(|c| c.bench.threads_of(plan)) {
        set("threads", threads.to_string());
    }
    if choices.iter().any(|c| c.bench.rooted) {
        set("root", plan.root.to_string());
    }
    if let Some(limit) = plan.memory_limit {
        set("memory_limit", limit.to_string());
    }
    for choice in choices {
        for axis in choice.bench.axes {
            set(axis.name, selected(axis, *choice, plan).join(","));
        }
        for setting in choice.bench.settings {
            if let Some(value) = plan.setting(setting) {
                set(setting.name, value.into());
            }
        }
    }
    options
}
