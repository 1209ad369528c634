//! Sessions: a benchmark on its ranks under a plan, and the cases that follow.

use crate::{
    benchmark::{
        Assignment, Axis, AxisValue, Benchmark, Case, Choice, ElementType, Groups, IMBALANCE, Imbalance,
        Medium, Named, Neighbourhood, Preset, memory,
    },
    error::{Error, Result},
    measure::{background::Background, plan::Plan, sink::Sink},
    result::Mark,
    system::clock::Clock,
    team::Team,
    unit::Bytes,
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
    /// Load on other ranks, as rows name it; `None` without.
    pub under: Option<String>,
    /// Name and value that rows have in addition to the axes of their case.
    pub label: Option<(&'static str, String)>,
    /// What ends this session if it is the load of others; its cases are then repeated and not measured.
    pub(crate) background: Option<&'a dyn Background>,
    preset: Preset,
    chosen: Vec<(&'static Axis, &'static str)>,
    excluded: Vec<&'static str>,
}

impl<'a> Session<'a> {
    /// Returns a session without a chosen value on any axis.
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
            under: None,
            label: None,
            background: None,
            preset,
            chosen: Vec::new(),
            excluded: Vec::new(),
        }
    }

    /// Calls `each` for every selected value of an axis. A benchmark dispatches the value to a type there, before any loop.
    ///
    /// # Errors
    /// The first error of `each`.
    pub fn split<A: AxisValue>(
        &mut self,
        mut each: impl FnMut(&mut Session<'a>, A) -> Result<()>,
    ) -> Result<()> {
        for name in self.selected(A::AXIS) {
            let value = A::parse(name)?;
            self.chosen.push((A::AXIS, name));
            let done = each(self, value);
            self.chosen.pop();
            done?;
        }
        Ok(())
    }

    /// Calls `then` without some axes, because they do not apply to the values that are chosen.
    pub fn without(
        &mut self,
        axes: &[&'static Axis],
        then: impl FnOnce(&mut Session<'a>) -> Result<()>,
    ) -> Result<()> {
        let before = self.excluded.len();
        self.excluded.extend(axes.iter().map(|axis| axis.name));
        let done = then(self);
        self.excluded.truncate(before);
        done
    }

    /// Returns the selected values of an axis; the default if the benchmark does not have the axis.
    fn selected(&self, axis: &Axis) -> Vec<&'static str> {
        match self.bench.axes.iter().any(|own| own.name == axis.name) {
            true => selected(axis, Choice { bench: self.bench, preset: self.preset }, self.plan),
            false => vec![self.bench.default_of(axis)],
        }
    }

    /// Returns the groups of ranks that run the operation at the same time.
    pub fn groups(&self) -> Groups {
        if self.bench.grouped { self.plan.groups } else { Groups::ONE }
    }

    /// Returns how unequal the blocks of ranks are.
    fn imbalance(&self) -> Imbalance {
        let has_blocks = self.bench.settings.iter().any(|setting| setting.name == IMBALANCE.name);
        if has_blocks { Imbalance::of(&self.plan.settings) } else { Imbalance::NONE }
    }

    /// Returns the cases of this session: all combinations of selected values on the remaining axes, and of sizes.
    pub fn cases(&self) -> Result<Vec<Case>> {
        let sizes = sizes_of(self.bench, self.plan)?;
        let chosen = self.chosen.iter().filter_map(|(axis, value)| named(axis, value));
        let start = [self.plan.init.label(), self.plan.threading.label()];
        let start = start.into_iter().flatten().filter(|_| self.bench.medium == Medium::Mpi);
        let mut combinations: Vec<Vec<_>> = vec![start.chain(chosen).collect()];
        let open = |axis: &&&Axis| {
            self.chosen.iter().all(|(known, _)| known.name != axis.name)
                && !self.excluded.contains(&axis.name)
        };
        for axis in self.bench.axes.iter().filter(open) {
            let values = self.selected(axis);
            combinations = combinations
                .iter()
                .flat_map(|c| values.iter().map(|v| [c.as_slice(), named(axis, v).as_slice()].concat()))
                .collect();
        }
        let case = |axes: &Vec<_>| Case {
            bytes: Bytes(0),
            depth: 1,
            pairs: self.assignment.pairs,
            ranks: self.assignment.ranks,
            threads: self.bench.threads_of(self.plan),
            root: self.bench.rooted.then_some(self.plan.root),
            groups: self.groups(),
            imbalance: self.imbalance(),
            neighbourhood: Neighbourhood::of(&self.plan.settings),
            axes: axes.clone(),
        };
        let depths = |case: Case| {
            let depths = if self.bench.streams_in(&case) { self.plan.depths().collect() } else { vec![1] };
            depths.into_iter().map(move |depth| Case { depth, ..case.clone() })
        };
        let all = combinations.iter().map(case).flat_map(depths);
        let sizes_in = |case: &Case| match self.bench.one_element && self.plan.sizes.is_none() {
            true => vec![Bytes((self.bench.element)(case, self.plan))],
            false => sizes.clone(),
        };
        let sized = |case: Case| {
            let sizes = sizes_in(&case);
            sizes.into_iter().map(move |bytes| Case { bytes, ..case.clone() })
        };
        let all = all.flat_map(sized);
        let cases = all.filter(|case| is_measured(self.bench, self.plan, case)).collect();
        Ok(match self.plan.launch {
            Some(launch) => launch.arrange(cases),
            None => cases,
        })
    }
}

/// Returns whether a case has a row: its combination exists, and its size is a multiple of the element, or the user has chosen it. A
/// chosen size that suits another of the selected element types only has no row.
fn is_measured(bench: &Benchmark, plan: &Plan, case: &Case) -> bool {
    let is_whole = |case: &Case| case.bytes.0.is_multiple_of((bench.element)(case, plan));
    let with_type = |element: &&'static str| {
        let others = case.axes.iter().filter(|(name, _)| *name != ElementType::AXIS.name).copied();
        Case { axes: others.chain([(ElementType::AXIS.name, *element)]).collect(), ..case.clone() }
    };
    let types = plan.axes.get(ElementType::AXIS.name).map_or(&[][..], Vec::as_slice);
    let suits_another = || types.iter().any(|element| is_whole(&with_type(element)));
    let is_chosen = plan.sizes.is_some() && bench.sized;
    combines(bench, case, plan).is_ok() && (is_whole(case) || is_chosen && !suits_another())
}

/// Returns an error with the reason if a combination of values on axes does not exist.
fn combines(bench: &Benchmark, case: &Case, plan: &Plan) -> std::result::Result<(), String> {
    memory::check(case, bench.layout).and_then(|()| (bench.combines)(case, plan))
}

/// Checks that every value which is selected on the axes of a benchmark has a combination with the others that exists. Where all
/// values of an axis are selected, those without one are not measured.
///
/// # Errors
/// Usage error with the reason of a value without one.
pub fn check_combinations(choice: Choice, plan: &Plan) -> Result<()> {
    let axes = choice.bench.axes;
    let mut combinations: Vec<Vec<(&'static str, &'static str)>> = vec![Vec::new()];
    for axis in axes {
        let values = selected(axis, choice, plan);
        let extended = combinations
            .iter()
            .flat_map(|known| values.iter().map(move |value| [&known[..], &[(axis.name, *value)]].concat()));
        combinations = extended.collect();
    }
    let case = |axes| Case {
        bytes: Bytes(0),
        depth: 1,
        pairs: 1,
        ranks: 1,
        threads: None,
        root: None,
        groups: Groups::ONE,
        imbalance: Imbalance::NONE,
        neighbourhood: Neighbourhood::of(&plan.settings),
        axes,
    };
    let tested: Vec<(Case, std::result::Result<(), String>)> = combinations
        .into_iter()
        .map(|axes| {
            let case = case(axes);
            let result = combines(choice.bench, &case, plan);
            (case, result)
        })
        .collect();
    let every_value = |name: &str| {
        let axis = axes.iter().find(|axis| axis.name == name);
        axis.is_some_and(|axis| {
            axis.values.len() > 1 && selected(axis, choice, plan).len() == axis.values.len()
        })
    };
    let nothing_exists = tested.iter().all(|(_, result)| result.is_err());
    for (case, result) in &tested {
        let Err(why) = result else { continue };
        let exists = |value: &(&str, &str)| {
            every_value(value.0) || tested.iter().any(|(other, r)| r.is_ok() && other.axes.contains(value))
        };
        if nothing_exists || !case.axes.iter().all(exists) {
            return Err(Error::usage(why.clone()));
        }
    }
    Ok(())
}

/// Returns the axis and value if rows name them.
fn named(axis: &Axis, value: &'static str) -> Option<(&'static str, &'static str)> {
    (axis.named == Named::Always || value != axis.default).then_some((axis.name, value))
}

/// Returns the values of an axis that are measured: those of the user, else those of the benchmark's name, else the default.
pub fn selected(axis: &Axis, Choice { bench, preset }: Choice, plan: &Plan) -> Vec<&'static str> {
    let named = || preset.iter().find(|(name, _)| *name == axis.name).map(|(_, value)| *value);
    plan.axes.get(axis.name).cloned().unwrap_or_else(|| vec![named().unwrap_or(bench.default_of(axis))])
}

/// Returns whether a plan has cases of a benchmark that keep `depth` operations in flight.
pub fn streams(choice: Choice, plan: &Plan) -> bool {
    let bench = choice.bench;
    let is_selected = |(axis, value): (&Axis, &str)| selected(axis, choice, plan).contains(&value);
    bench.streams && bench.streams_only.is_none_or(is_selected)
}

/// Returns the sizes of a benchmark under a plan.
///
/// # Errors
/// Usage error if the setting that replaces `--sizes` is malformed.
pub fn sizes_of(bench: &Benchmark, plan: &Plan) -> Result<Vec<Bytes>> {
    let own = bench.sized_by.and_then(|setting| plan.settings.get(setting.name));
    match (own, &plan.sizes) {
        (Some(text), _) => crate::measure::plan::parse_sizes(text),
        (None, Some(sizes)) if bench.sized => Ok(sizes.clone()),
        (None, _) => crate::measure::plan::parse_sizes(bench.sizes),
    }
}
