//! Runs the selected benchmarks one after the other, each on the ranks that it needs.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use ombx_host::{device_counters::DeviceCounters, environment, machine};
use ombx_record::{
    error::{Error, Result},
    event::Event,
    fact::{self, Fact, HostFacts, SentFacts},
    result::{Growth, Level, Mark, MarkCode, Place, Placement, RowName, Run, RunOutcome, Tally},
    runs::CONTINUES,
    unit::Rank,
};
use serde::{Deserialize, Serialize};

use crate::{
    benchmark::{Choice, Threading},
    clock::Clock,
    measure::{
        load,
        plan::{Effort, Launch, Plan},
        session::{Ranks, Sink, selected},
    },
    team::Team,
    trust,
};

/// Benchmarks that run under one plan.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Part {
    /// Selected benchmarks, in order.
    pub choices: Vec<Choice>,
    /// Plan of these benchmarks.
    pub plan: Plan,
}

/// Runs all benchmarks of all parts in order. Collective: every rank passes the same arguments. The sink of rank 0 gets the rows.
///
/// # Errors
/// Errors that every rank returns. A benchmark that cannot run here is a skipped row, not an error.
pub fn run_all(
    team: &dyn Team,
    parts: &[Part],
    clock: &Clock,
    sink: &mut dyn Sink,
    argv: Vec<String>,
) -> Result<Tally> {
    let mut run = open(team, clock, sink, describe_all(parts), argv)?;
    let planned = parts.iter().flat_map(|part| part.choices.iter().map(move |choice| (*choice, &part.plan)));
    let mut benchmarks: Vec<(Choice, &Plan)> = planned.collect();
    let needed = benchmarks.iter().map(|(choice, plan)| choice.bench.ranks.threading.max(plan.chosen.get()));
    let threading = needed.max().unwrap_or(Threading::Single);
    if let Some(launch) = parts.first().and_then(|part| part.plan.settings.launch) {
        benchmarks = launch.arrange(benchmarks);
    }
    let rest = parts.first().map(|part| part.plan.settings.rest.clone()).unwrap_or_default();
    for (number, (choice, plan)) in benchmarks.into_iter().enumerate().skip(rest.first) {
        if !plan.settings.rest.leaves_out(&format!("{}/", choice.bench.name)) {
            run.sink.event(&Event::Benchmark { number, bench: choice.bench.name.into() })?;
            let after = rest.after.filter(|_| number == rest.first);
            run.benchmark((team, clock, threading), choice, plan, after)?;
        }
    }
    run.finish(team)
}

/// A run whose first record is written.
pub struct OpenRun<'a> {
    /// Sink of the rows.
    pub sink: CountingSink<'a>,
    /// Places of all ranks on rank 0; empty on other ranks.
    pub places: Vec<Place>,
    /// Marks of every row.
    pub standing: Vec<Mark>,
    /// Counters of the devices, on the first rank of each host.
    pub watched: Option<DeviceCounters>,
}

impl OpenRun<'_> {
    /// Runs one benchmark on the ranks that it needs, while other ranks sleep or run its load. Collective.
    ///
    /// The level of thread support is that for which the library of this run was initialised. Cases up to `after` are done.
    fn benchmark(
        &mut self,
        (team, clock, threading): (&dyn Team, &Clock, Threading),
        choice: Choice,
        plan: &Plan,
        after: Option<RowName>,
    ) -> Result<()> {
        let (places, standing) = (&*self.places, &*self.standing);
        let watched = self.watched.as_ref();
        let ranks = Ranks { team, clock, places, standing, watched, threading, after };
        if plan.under.is_empty() {
            ranks.measure(choice, plan, None, &mut self.sink)?
        } else {
            load::measure(&ranks, choice, plan, &mut self.sink)?
        }
        // The next benchmark may run on other ranks of the same hosts.
        team.release_memory();
        team.sleeping_barrier()
    }

    /// Writes what grew since the counters of devices were read in a row, and the last record. Returns the numbers of rows. Collective.
    pub fn finish(self, team: &dyn Team) -> Result<Tally> {
        let CountingSink { tally, sink } = self.sink;
        let mine = self.watched.as_ref().map(DeviceCounters::rest).filter(|grown| !grown.is_empty());
        let all: Vec<(u32, Vec<Growth>)> = team.gather_some(mine.as_ref())?;
        if team.rank() == Rank(0) {
            let grown = Growth::summed(all.into_iter().flat_map(|(_, grown)| grown));
            if !grown.is_empty() {
                sink.event(&Event::Grown { grown: grown.into() })?;
            }
            sink.event(&Event::End { outcome: RunOutcome::Complete, tally })?;
        }
        Ok(tally)
    }
}

/// Opens a run. Collective. Rank 0 gathers the places of all ranks, broadcasts the marks that follow from them, and writes the
/// first record to its sink.
pub fn open<'a>(
    team: &dyn Team,
    clock: &Clock,
    sink: &'a mut dyn Sink,
    plan: BTreeMap<String, String>,
    argv: Vec<String>,
) -> Result<OpenRun<'a>> {
    let places = gather_places(team)?;
    let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
    let is_first = is_first_of_host(team, &places)?;
    let hosts = gather_hosts(team, &places, is_first.then(machine::facts))?;
    let mut standing = Vec::from_iter(cfg!(debug_assertions).then(trust::debug_build));
    standing.extend(trust::standing(&places, clock.facts()));
    let usable = trust::Usable::by_fabric(team.fabric().name);
    standing.extend(trust::far_device(&places, &hosts, usable));
    standing.extend(trust::interrupted(&places, &hosts, usable));
    let standing = broadcast_marks(team, standing)?;
    let watched = is_first.then(|| DeviceCounters::new(&team.place().host));
    let mut sink = CountingSink { tally: Tally::default(), sink };
    if team.rank() == Rank(0) {
        let fabric = team.fabric();
        let mut plan = plan;
        plan.insert("placement".into(), Placement::from_places(&places).name().into());
        sink.event(&Event::Run(Cow::Owned(Run {
            id: environment::run_id(),
            argv,
            started: environment::timestamp(),
            version: env!("CARGO_PKG_VERSION").into(),
            profile: profile.into(),
            fabric: fabric.name.into(),
            library: fabric.library,
            places: places.clone(),
            clock: clock.facts().into(),
            plan,
            env: environment::kept_variables(),
            software: team.software(),
            hosts,
            loaded: None,
            launched: None,
        })))?;
    }
    Ok(OpenRun { sink, places, standing, watched })
}

/// A sink that counts the rows that it passes on.
pub struct CountingSink<'a> {
    /// Numbers of rows until now.
    pub tally: Tally,
    sink: &'a mut dyn Sink,
}

impl Sink for CountingSink<'_> {
    fn event(&mut self, event: &Event<'_>) -> Result<()> {
        if let Event::Row(row) = event {
            self.tally.add(row);
        }
        self.sink.event(event)
    }
}

/// Gathers the places of all ranks on rank 0. Returns nothing on other ranks, because such a table on every rank does not scale.
fn gather_places(team: &dyn Team) -> Result<Vec<Place>> {
    let places: Option<Vec<Place>> = match team.gather(&team.place().to_bytes())? {
        Some(all) => all.iter().map(|bytes| Place::from_bytes(bytes)).collect(),
        None => Some(Vec::new()),
    };
    // Only rank 0 can fail here, and its caller ends the job.
    places.ok_or_else(|| {
        Error::fabric("cannot read the place of a rank; start the same build of ombx on every rank")
    })
}

/// Returns whether this rank is the first one of its host. Collective.
fn is_first_of_host(team: &dyn Team, places: &[Place]) -> Result<bool> {
    let mut seen = BTreeSet::new();
    let is_first: Vec<bool> = places.iter().map(|place| seen.insert(&place.host)).collect();
    let is_first = team.broadcast_message(is_first)?;
    Ok(is_first.get(team.rank().0 as usize) == Some(&true))
}

/// Gathers the facts about every host from its first rank, which has them. Returns nothing on ranks other than 0.
fn gather_hosts(team: &dyn Team, places: &[Place], mine: Option<&fact::Facts>) -> Result<Vec<HostFacts>> {
    let sent = |(name, fact): (&String, &Fact)| (name.clone(), fact.sent());
    let mine: Option<SentFacts> = mine.map(|facts| facts.iter().map(sent).collect());
    let all = team.gather_some(mine.as_ref())?.into_iter();
    let hosts = all.filter_map(|(rank, facts)| Some((places.get(rank as usize)?.host.clone(), facts)));
    Ok(HostFacts::grouped(hosts.map(|(host, facts)| (host, fact::received(facts)))))
}

/// Broadcasts the marks of rank 0, because rows of other ranks may be kept.
fn broadcast_marks(team: &dyn Team, mine: Vec<Mark>) -> Result<Vec<Mark>> {
    let mine: Vec<_> = mine
        .into_iter()
        .map(|Mark { level, code, short, advice, .. }| (level, code, short, advice))
        .collect();
    let marks: Vec<(Level, MarkCode, String, String)> = team.broadcast_message(mine)?;
    let mark = |(level, code, short, advice)| Mark { level, code, short, advice, effect: None };
    Ok(marks.into_iter().map(mark).collect())
}

/// Returns the plans of all parts. With several parts, names start with the number of the part: `2.sizes`.
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
    if let Some(Launch { number, of, order }) = parts.first().and_then(|part| part.plan.settings.launch) {
        let launch =
            [("launch", number.to_string()), ("launches", of.to_string()), ("order", order.to_string())];
        options.extend(launch.map(|(name, value)| (name.to_owned(), value)));
    }
    if let Some(run) = parts.first().and_then(|part| part.plan.settings.rest.run.clone()) {
        options.insert(CONTINUES.into(), run);
    }
    if let Some(latency) = parts.first().and_then(|part| part.plan.settings.core_to_core_ns) {
        options.insert("core_to_core_ns".into(), latency.to_string());
    }
    options
}

/// Returns the resolved plan as results keep it, by option.
pub fn describe(plan: &Plan, choices: &[Choice]) -> BTreeMap<String, String> {
    let mut options: BTreeMap<String, String> = BTreeMap::new();
    let mut set = |name: &str, value: String| drop(options.insert(name.into(), value));
    set("benchmarks", choices.iter().map(|c| c.bench.name).collect::<Vec<_>>().join(","));
    if let Some(sizes) = &plan.sizes {
        set("sizes", sizes.iter().map(ToString::to_string).collect::<Vec<_>>().join(","));
    }
    match plan.effort {
        Effort::Precision { precision, max_time } => {
            set("precision", format!("{}%", precision * 100.0));
            set("max_time_s", max_time.as_secs_f64().to_string());
        }
        Effort::Time(time) => set("row_time_s", time.as_secs_f64().to_string()),
        Effort::Fixed { iterations, warmup } => {
            set("iterations", iterations.to_string());
            set("warmup", warmup.to_string());
        }
    }
    if !plan.bounds.least_time.is_zero() {
        set("min_time_s", plan.bounds.least_time.as_secs_f64().to_string());
    }
    if let Some(most) = plan.bounds.most_time {
        set("max_time_s", most.as_secs_f64().to_string());
    }
    if let Some((limit, Effort::Fixed { iterations, warmup })) = plan.effort_above {
        set("above", limit.to_string());
        set("iterations_above", iterations.to_string());
        set("warmup_above", warmup.to_string());
    }
    set("batch", plan.batch.map_or("auto".into(), |b| b.to_string()));
    set("verify", plan.verify.name().into());
    if plan.counters.is_some() {
        set("counters", "on".into());
    }
    if let Some(ranks) = plan.ranks {
        set("most_ranks", ranks.to_string());
    }
    if !plan.under.is_empty() {
        set("under", plan.under.iter().map(ToString::to_string).collect::<Vec<_>>().join(","));
    }
    for choice in choices {
        for parameter in choice.bench.parameters() {
            let values = selected(parameter, *choice, plan);
            if !values.is_empty() {
                set(parameter.kept_name(), values.join(","));
            }
        }
    }
    options
}
