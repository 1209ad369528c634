//! Sessions: a benchmark on its ranks under a plan, and the cases that follow.

use std::collections::BTreeMap;

use ombx_host::device_counters::DeviceCounters;
use ombx_record::{
    error::{Error, Kind, Result},
    event::Event,
    result::{Mark, Measurement, Outcome, Place, RowName, Run, Tally},
    unit::{Bytes, Rank},
};

use crate::{
    benchmark::{
        Assignment, Benchmark, Case, CaseValues, Choice, Depth, ElementType, Layout, Parameter,
        ParameterValue, Preset, Role, Streams, Threading, Value, memory,
    },
    clock::Clock,
    measure::{background::Background, collect::Pass, open_kernel::OpenKernel, plan::Plan},
    team::Team,
    trust,
};

/// A benchmark on its ranks, under a plan.
pub struct Session<'a> {
    /// Ranks of this benchmark; none is idle.
    pub team: &'a dyn Team,
    /// Roles of the ranks.
    pub assignment: Assignment,
    /// Plan of the user.
    pub plan: &'a Plan,
    /// Clock of this rank.
    pub clock: &'a Clock,
    /// Marks of every row.
    pub standing: &'a [Mark],
    /// Benchmark that runs.
    pub bench: &'static Benchmark,
    /// Sink of the rows; used on rank 0.
    pub sink: &'a mut dyn Sink,
    /// Counters of the devices of this host, if this rank watches them: what grows during a row is a part of it.
    pub watched: Option<&'a DeviceCounters>,
    /// What measures kernels instead of the engine; `None` in every run of ombx itself.
    pub instead: Option<&'a dyn MeasureKernel>,
    /// Load on other ranks, as rows name it; `None` without.
    pub under: Option<String>,
    /// Last case that earlier ranks have measured; `None` once it was passed.
    pub(crate) after: Option<RowName>,
    /// Samples that one pass has taken for several rows, by the key that these have in common.
    pub(crate) passes: BTreeMap<String, Pass>,
    /// What ends this session if it is the load of others; its cases are then repeated and not measured.
    pub(crate) background: Option<&'a dyn Background>,
    preset: Preset,
    /// Values that [`Session::split`] has chosen.
    given: CaseValues,
    excluded: Vec<&'static Parameter>,
}

impl<'a> Session<'a> {
    /// Returns a session without a chosen value.
    pub fn new(
        team: &'a dyn Team,
        assignment: Assignment,
        (plan, clock, standing): (&'a Plan, &'a Clock, &'a [Mark]),
        Choice { bench, preset }: Choice,
        sink: &'a mut dyn Sink,
    ) -> Session<'a> {
        Session {
            team,
            assignment,
            plan,
            clock,
            standing,
            bench,
            sink,
            watched: None,
            instead: None,
            under: None,
            after: None,
            passes: BTreeMap::new(),
            background: None,
            preset,
            given: CaseValues::default(),
            excluded: Vec::new(),
        }
    }

    /// Calls `each` for every selected value of a parameter. A benchmark dispatches the value to a type there, before any loop.
    ///
    /// # Errors
    /// The first error of `each`.
    pub fn split<V: ParameterValue>(
        &mut self,
        mut each: impl FnMut(&mut Session<'a>, V) -> Result<()>,
    ) -> Result<()> {
        self.with_each(V::PARAMETER, &mut |session, text| each(session, parsed(text)?))
    }

    /// Calls `each` for every selected text of a parameter. It is compiled once, not for each type that a value selects.
    fn with_each(
        &mut self,
        parameter: &'static Parameter,
        each: &mut dyn FnMut(&mut Session<'a>, &str) -> Result<()>,
    ) -> Result<()> {
        let own = self.bench.parameter(parameter.name);
        let texts = match own {
            Some(parameter) => self.selected(parameter),
            None => self.bench.default_of(parameter).into_iter().map(Value::from).collect(),
        };
        for text in texts {
            self.given.push(own.unwrap_or(parameter), Some(text.clone()));
            let done = each(self, &text);
            self.given.pop();
            done?;
        }
        Ok(())
    }

    /// Calls `then` without some parameters, because they do not apply to the values that are chosen.
    pub fn without(
        &mut self,
        parameters: &[&'static Parameter],
        then: impl FnOnce(&mut Session<'a>) -> Result<()>,
    ) -> Result<()> {
        let before = self.excluded.len();
        self.excluded.extend(parameters);
        let done = then(self);
        self.excluded.truncate(before);
        done
    }

    /// Returns whether these ranks measure the case of the row with this key. Earlier ranks may have measured it, or ended in it. It is
    /// asked of every case, in order.
    pub fn is_left(&mut self, key: &str) -> bool {
        if let Some(after) = self.after {
            self.after.take_if(|_| RowName::new(key) == after);
            return false;
        }
        !self.plan.settings.rest.leaves_out(key)
    }

    /// Returns the first selected value of a parameter; the default of its type if the benchmark does not have it.
    pub fn get<V: ParameterValue>(&self) -> V {
        let own = self.bench.parameter(V::PARAMETER.name);
        let first = own.and_then(|parameter| self.selected(parameter).into_iter().next());
        first.and_then(|text| V::parse(&text).ok()).unwrap_or(V::DEFAULT)
    }

    /// Returns the selected values of a parameter of the benchmark.
    fn selected(&self, parameter: &Parameter) -> Vec<Value> {
        selected(parameter, Choice { bench: self.bench, preset: self.preset }, self.plan)
    }

    /// Returns the cases of this session: all combinations of selected values of the remaining parameters, and of sizes.
    pub fn cases(&self) -> Result<Vec<Case>> {
        let sizes = sizes_of(self.bench, self.plan)?;
        let (pairs, ranks) = (self.assignment.pairs, self.assignment.ranks);
        let start = Case { bytes: Bytes(0), pairs, ranks, values: self.given.clone() };
        let is_open = |parameter: &&Parameter| {
            self.given.parameters().all(|known| known != *parameter) && !self.excluded.contains(parameter)
        };
        let open = self.bench.parameters().filter(is_open);
        let all = combinations(self.bench, start, open, |parameter| self.selected(parameter));
        let sized = |case: Case| {
            let sizes = self.sizes_in(&case, &sizes);
            sizes.into_iter().map(move |bytes| Case { bytes, ..case.clone() })
        };
        let all = all.into_iter().flat_map(sized);
        let cases = all.filter(|case| is_measured(self.bench, self.plan, case)).collect();
        Ok(match self.plan.settings.launch {
            Some(launch) => launch.arrange(cases),
            None => cases,
        })
    }

    /// Returns the sizes of a case: its element alone, or the sizes of the session.
    fn sizes_in(&self, case: &Case, sizes: &[Bytes]) -> Vec<Bytes> {
        if self.bench.messages.one_element && self.plan.sizes.is_none() {
            vec![Bytes((self.bench.messages.element)(case, self.plan))]
        } else {
            sizes.to_vec()
        }
    }
}

/// Returns a value of a parameter. It is compiled once for each parameter, not for each type that a value selects.
#[inline(never)]
fn parsed<V: ParameterValue>(text: &str) -> Result<V> {
    V::parse(text)
}

/// Returns a case for each combination of selected values. Only cases that stream have a number of operations in flight.
fn combinations(
    bench: &Benchmark,
    start: Case,
    parameters: impl Iterator<Item = &'static Parameter>,
    selected: impl Fn(&Parameter) -> Vec<Value>,
) -> Vec<Case> {
    let mut cases = vec![start];
    for parameter in parameters {
        let values = selected(parameter);
        cases = cases.iter().flat_map(|case| extended(bench, case, parameter, &values)).collect();
    }
    cases
}

/// Returns a case with each of these values of a parameter; one without a value if there are none, and the case itself for a depth
/// that it does not have.
fn extended(bench: &Benchmark, case: &Case, parameter: &'static Parameter, values: &[Value]) -> Vec<Case> {
    if parameter == Depth::PARAMETER && !bench.streams_in(case) {
        return vec![case.clone()];
    }
    let values = values.iter().map(|text| Some(Value::clone(text)));
    let values: Vec<Option<Value>> = if values.len() == 0 { vec![None] } else { values.collect() };
    let with = |value| {
        let mut case = case.clone();
        case.values.push(parameter, value);
        case
    };
    values.into_iter().map(with).collect()
}

/// Returns whether a case has a row: its combination exists, and its size is a multiple of the element, or the user has chosen it. A
/// chosen size that suits another of the selected element types only has no row.
fn is_measured(bench: &Benchmark, plan: &Plan, case: &Case) -> bool {
    let is_whole = |case: &Case| case.bytes.0.is_multiple_of((bench.messages.element)(case, plan));
    let with_type = |element: &Value| {
        let own = bench.parameter(ElementType::PARAMETER.name).unwrap_or(ElementType::PARAMETER);
        Case { values: case.values.with(own, Value::clone(element)), ..case.clone() }
    };
    let types = plan.chosen.texts(ElementType::PARAMETER);
    let suits_another = || types.iter().any(|element| is_whole(&with_type(element)));
    let is_chosen = plan.sizes.is_some() && bench.messages.sized;
    combines(bench, case, plan).is_ok() && (is_whole(case) || is_chosen && !suits_another())
}

/// Returns an error with the reason if a combination of values does not exist.
fn combines(bench: &Benchmark, case: &Case, plan: &Plan) -> std::result::Result<(), String> {
    memory::check(case, bench.ranks.layout).and_then(|()| (bench.own.combines)(case, plan))
}

/// Checks that every value which is selected for a benchmark has a combination with the others that exists. Where all values of a fixed
/// set are selected, those without one are not measured.
///
/// # Errors
/// Usage error with the reason of a value without one.
pub fn check_combinations(choice: Choice, plan: &Plan) -> Result<()> {
    let bench = choice.bench;
    bench.check()?;
    let start = Case { bytes: Bytes(0), pairs: 1, ranks: 1, values: CaseValues::default() };
    let all = combinations(bench, start, bench.parameters(), |parameter| selected(parameter, choice, plan));
    let tested: Vec<(Case, std::result::Result<(), String>)> = all
        .into_iter()
        .map(|case| {
            let result = combines(bench, &case, plan);
            (case, result)
        })
        .collect();
    let is_whole_set = |parameter: &Parameter| {
        let names = parameter.names();
        names.len() > 1 && selected(parameter, choice, plan).len() == names.len()
    };
    let nothing_exists = tested.iter().all(|(_, result)| result.is_err());
    for (case, result) in &tested {
        let Err(why) = result else { continue };
        let exists = |(parameter, value): (&Parameter, Option<&str>)| {
            let of_other = || tested.iter().any(|(other, r)| r.is_ok() && other.values.has(parameter, value));
            is_whole_set(parameter) || of_other()
        };
        if nothing_exists || !case.values.iter().all(exists) {
            return Err(Error::usage(why.clone()));
        }
    }
    Ok(())
}

/// Returns the values of a parameter that are measured: those of the user, else those of the benchmark's name, else the default.
pub fn selected(parameter: &Parameter, Choice { bench, preset }: Choice, plan: &Plan) -> Vec<Value> {
    let of_name = || preset.iter().find(|(name, _)| *name == parameter.name).map(|(_, value)| *value);
    match plan.chosen.texts(parameter) {
        [] => {
            let usual = of_name().or_else(|| bench.default_of(parameter));
            // The registry has checked the defaults.
            usual.and_then(|usual| parameter.read(usual).ok()).unwrap_or_default()
        }
        chosen => chosen.to_vec(),
    }
}

/// Returns whether a plan has cases of a benchmark that keep `depth` operations in flight.
pub fn streams(choice: Choice, plan: &Plan) -> bool {
    match choice.bench.own.streams {
        Streams::Never => false,
        Streams::Always => true,
        Streams::Only(parameter, value) => {
            selected(parameter, choice, plan).iter().any(|text| **text == *value)
        }
    }
}

/// Returns the sizes of a benchmark under a plan.
///
/// # Errors
/// Usage error if the parameter that replaces `--sizes` is malformed.
pub fn sizes_of(bench: &Benchmark, plan: &Plan) -> Result<Vec<Bytes>> {
    let own = bench.messages.sized_by.and_then(|parameter| plan.chosen.text(parameter));
    match (own, &plan.sizes) {
        (Some(text), _) => ombx_record::unit::parse_sizes(text),
        (None, Some(sizes)) if bench.messages.sized => Ok(sizes.clone()),
        (None, _) => ombx_record::unit::parse_sizes(bench.messages.sizes),
    }
}

/// Receives what happens in a run while it is measured.
pub trait Sink {
    /// Takes an event. Every rank calls it with [`Event::Benchmark`], [`Event::Starting`] and [`Event::Alive`]; only rank 0 calls it with others.
    ///
    /// # Errors
    /// The event cannot be written. Measuring ends.
    fn event(&mut self, event: &Event<'_>) -> Result<()>;
}

/// MeasureKernel open kernels instead of the engine: programs that compare kernels with other loops implement it.
pub trait MeasureKernel {
    /// MeasureKernel a kernel whose buffers are filled. The row of the case then has no samples. Every rank calls it.
    ///
    /// # Errors
    /// Errors that every rank returns.
    fn measure(&self, kernel: &mut dyn OpenKernel, case: &Case, role: Role) -> Result<()>;
}

/// A sink that keeps everything in memory, for tests and for programs that embed ombx.
#[derive(Debug, Default)]
pub struct Memory {
    /// Description of the run, once it began.
    pub run: Option<Run>,
    /// Rows, in order of measurement.
    pub rows: Vec<Measurement>,
    /// Numbers of rows, once the run ended.
    pub tally: Option<Tally>,
}

impl Sink for Memory {
    fn event(&mut self, event: &Event<'_>) -> Result<()> {
        match event {
            Event::Run(run) => self.run = Some(run.clone().into_owned()),
            Event::Row(row) => self.rows.push(row.clone().into_owned()),
            Event::End { tally, .. } => self.tally = Some(*tally),
            _ => {}
        }
        Ok(())
    }
}

/// The ranks of a team, of which a benchmark uses some.
pub(super) struct Ranks<'a> {
    pub(super) team: &'a dyn Team,
    pub(super) clock: &'a Clock,
    /// Places of all ranks of the team on its rank 0; empty on other ranks.
    pub(super) places: &'a [Place],
    /// Marks of every row.
    pub(super) standing: &'a [Mark],
    /// Counters of the devices of this host, on its first rank.
    pub(super) watched: Option<&'a DeviceCounters>,
    /// Thread support with which the library of this run was started.
    pub(super) threading: Threading,
    /// Last case of the benchmark that earlier ranks have measured.
    pub(super) after: Option<RowName>,
}

impl Ranks<'_> {
    /// MeasureKernel one benchmark on the ranks that it needs; the others return at once. Collective.
    ///
    /// `under` is what its rows name as the load.
    pub(super) fn measure(
        &self,
        choice: Choice,
        plan: &Plan,
        under: Option<&str>,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        let (bench, team) = (choice.bench, self.team);
        let available = (bench.available)().map_err(Error::unsupported);
        let ranks = plan.ranks.map_or(team.size(), |most| most.min(team.size()));
        let assignment = available.and_then(|()| bench.ranks.layout.assign(ranks, plan.pairs()));
        let assignment = match bench.ranks.layout {
            Layout::Fan(_) => {
                let nodes = self.nodes()?;
                assignment.and_then(|assignment| assignment.on_nodes(&nodes))
            }
            _ => assignment,
        };
        let assignment = match team.agree(assignment) {
            Ok(assignment) => assignment,
            Err(e) if e.kind() == Kind::Unsupported => {
                if team.rank() == Rank(0) {
                    sink.event(&Event::row(&skipped(bench, under, team.size(), e.to_string())))?;
                }
                return Ok(());
            }
            Err(e) => return Err(e),
        };
        let mut standing = self.standing.to_vec();
        // Idle ranks sleep.
        let places = self.places.get(..assignment.ranks as usize).unwrap_or_default();
        match bench.threads_of(plan) {
            Some(threads) => standing.extend(trust::crowded_threads(places, threads)),
            None if self.threading > plan.chosen.get() => standing.push(trust::thread_multiple()),
            None => {}
        }
        let part;
        let team = if assignment.ranks == team.size() {
            team
        } else {
            standing.push(trust::idle_ranks(assignment.ranks, team.size()));
            part = team.subteam(assignment.ranks)?;
            match &part {
                Some(part) => &**part,
                None => return Ok(()),
            }
        };
        let mut session = Session::new(team, assignment, (plan, self.clock, &standing), choice, sink);
        session.under = under.map(str::to_owned);
        session.after = self.after;
        session.watched = self.watched;
        (bench.run)(&mut session)?;
        // The rows of all loads arrive together, so that those of the first may be done without the last.
        if session.after.is_some() && under.is_none() {
            return Err(Error::fabric(format!(
                "{} has no case after which these ranks could go on",
                bench.name
            )));
        }
        Ok(())
    }

    /// Returns the lowest rank on the host of each rank. Collective.
    fn nodes(&self) -> Result<Vec<u32>> {
        let mut first: BTreeMap<&str, u32> = BTreeMap::new();
        let nodes = (0..).zip(self.places).map(|(rank, place)| *first.entry(&place.host).or_insert(rank));
        self.team.broadcast_message(nodes.collect())
    }
}

/// Returns the row of a benchmark that cannot run here.
pub(super) fn skipped(bench: &Benchmark, under: Option<&str>, ranks: u32, reason: String) -> Measurement {
    let axes = under.map(|under| ("under".to_owned(), under.to_owned()));
    let key = axes.iter().map(|(name, value)| format!("{name}={value}")).collect::<String>();
    Measurement {
        axes: axes.into_iter().collect(),
        aggregation: bench.ranks.layout.aggregation(),
        outcome: Outcome::Skipped(reason),
        ..Measurement::new(bench.name, format!("{}/{key}", bench.name), bench.described.metric, ranks)
    }
}
