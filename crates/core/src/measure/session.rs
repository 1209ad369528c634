//! What a benchmark runs in, and the cases that a plan makes of it.

use crate::{
    benchmark::{
        axis::{Axis, AxisValue, Named},
        case::Case,
        entry::{Benchmark, Choice},
        layout::Assignment,
        preset::Preset,
    },
    error::Result,
    measure::{plan::Plan, sink::Sink},
    result::Notice,
    system::clock::Clock,
    team::Team,
    unit::Bytes,
};

/// What a benchmark runs in: its ranks, the plan, and where rows go.
pub struct Session<'a> {
    /// The ranks of this benchmark, none of them idle.
    pub team: &'a dyn Team,
    /// What each does.
    pub assignment: Assignment,
    /// What the user chose.
    pub plan: &'a Plan,
    /// The clock.
    pub clock: &'a Clock,
    /// Notices that hold for every row.
    pub standing: &'a [Notice],
    /// The benchmark.
    pub bench: &'static Benchmark,
    /// Where rows go; used on rank 0.
    pub sink: &'a mut dyn Sink,
    preset: Preset,
    chosen: Vec<(&'static str, &'static str)>,
    meaningless: Vec<&'static str>,
}

impl<'a> Session<'a> {
    /// A session in which no axis is chosen yet.
    pub fn new(
        team: &'a dyn Team,
        assignment: Assignment,
        (plan, clock, standing): (&'a Plan, &'a Clock, &'a [Notice]),
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
            preset,
            chosen: Vec::new(),
            meaningless: Vec::new(),
        }
    }

    /// Calls `each` for every value of an axis that the plan selects, so that it can be dispatched to a type before any loop.
    pub fn split<A: AxisValue>(
        &mut self,
        mut each: impl FnMut(&mut Session<'a>, A) -> Result<()>,
    ) -> Result<()> {
        for name in self.selected(A::AXIS) {
            let value = A::parse(name)?;
            self.chosen.push((A::AXIS.name, name));
            let done = each(self, value);
            self.chosen.pop();
            done?;
        }
        Ok(())
    }

    /// Calls `then` with axes left out that mean nothing to what was chosen before.
    pub fn without(
        &mut self,
        axes: &[&'static Axis],
        then: impl FnOnce(&mut Session<'a>) -> Result<()>,
    ) -> Result<()> {
        let before = self.meaningless.len();
        self.meaningless.extend(axes.iter().map(|axis| axis.name));
        let done = then(self);
        self.meaningless.truncate(before);
        done
    }

    fn selected(&self, axis: &Axis) -> Vec<&'static str> {
        selected(axis, Choice { bench: self.bench, preset: self.preset }, self.plan)
    }

    /// The cases of this session: every selected value of every axis that is not chosen yet, by every size.
    pub fn cases(&self) -> Result<Vec<Case>> {
        let sizes = sizes_of(self.bench, self.plan)?;
        let mut combinations = vec![self.chosen.clone()];
        let open = |axis: &&&Axis| {
            self.chosen.iter().all(|(name, _)| *name != axis.name) && !self.meaningless.contains(&axis.name)
        };
        for axis in self.bench.axes.iter().filter(open) {
            let values = self.selected(axis);
            combinations = combinations
                .iter()
                .flat_map(|c| values.iter().map(|v| [c.as_slice(), named(axis, v).as_slice()].concat()))
                .collect();
        }
        let case = |axes: &Vec<_>, bytes: Bytes| Case {
            bytes,
            depth: if self.bench.streams { self.plan.depth } else { 1 },
            pairs: self.assignment.pairs,
            ranks: self.assignment.ranks,
            threads: self.bench.threads_of(self.plan),
            root: self.bench.rooted.then_some(self.plan.root),
            axes: axes.clone(),
        };
        let cases =
            combinations.iter().flat_map(|axes| sizes.iter().map(move |bytes| case(axes, *bytes))).collect();
        Ok(match self.plan.launch {
            Some(launch) => launch.arrange(cases),
            None => cases,
        })
    }
}

/// What rows say of a value.
fn named(axis: &Axis, value: &'static str) -> Option<(&'static str, &'static str)> {
    (axis.named == Named::Always || value != axis.default).then_some((axis.name, value))
}

/// The values of an axis that are measured: the user's, else those of the name that was asked for, else the default.
pub fn selected(axis: &Axis, Choice { bench, preset }: Choice, plan: &Plan) -> Vec<&'static str> {
    let named = || preset.iter().find(|(name, _)| *name == axis.name).map(|(_, value)| *value);
    plan.axes.get(axis.name).cloned().unwrap_or_else(|| vec![named().unwrap_or(bench.default_of(axis))])
}

/// The sizes of a benchmark under a plan.
pub fn sizes_of(bench: &Benchmark, plan: &Plan) -> Result<Vec<Bytes>> {
    let own = bench.sized_by.and_then(|setting| plan.settings.get(setting.name));
    match (own, &plan.sizes) {
        (Some(text), _) => crate::measure::plan::parse_sizes(text),
        (None, Some(sizes)) if bench.sized => Ok(sizes.clone()),
        (None, _) => crate::measure::plan::parse_sizes(bench.sizes),
    }
}
