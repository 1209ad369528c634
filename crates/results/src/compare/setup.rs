//! Differences between the setups of two sides: software, hosts, placement, options and time.

use std::collections::BTreeSet;

use ombx_core::{
    fact::Fact,
    result::Run,
    system::{node_set, placement::Placement},
};

use super::{comparison::Note, side::SideResults};
use crate::{
    run_info::{hosts, library},
    state,
};

/// Options that may differ between the sides without a note.
pub(crate) const EXPECTED_OPTIONS: [&str; 14] = [
    "benchmarks",
    "sizes",
    "placement",
    "launch",
    "launches",
    "order",
    "row_time_s",
    "turns",
    state::BEFORE,
    state::AFTER,
    "elapsed_s",
    "ended",
    "goal",
    "asked",
];
/// Maximum number of values per side in a note.
const MAX_LISTED: usize = 3;

pub(super) fn notes(base: &SideResults, new: &SideResults, took_turns: bool) -> Vec<Note> {
    let mut notes = Vec::new();
    let mut differ = |code: &'static str, what: &str, of: &dyn Fn(&Run) -> String| {
        let [a, b] = [base, new].map(|side| side.runs.iter().map(of).collect::<BTreeSet<String>>());
        if a != b && !a.is_empty() && !b.is_empty() {
            notes.push(Note { code, text: format!("{what}: base {}, new {}", list(&a), list(&b)) });
        }
    };
    differ("library", "library", &library);
    differ("hosts", "hosts", &|run| node_set::fold(hosts(run)));
    differ("ranks", "ranks", &|run| run.places.len().to_string());
    differ("binding", "CPUs of ranks", &|run| {
        run.places.iter().map(|place| place.cpus.as_str()).collect::<Vec<_>>().join(" ")
    });
    differ("placement", "placement", &|run| Placement::of(&run.places).name().to_owned());
    differ("clock", "clock", &|run| run.clock.source.clone());
    differ("version", "ombx", &|run| run.version.clone());
    differ("profile", "build", &|run| run.profile.clone());
    differ("env", "environment", &|run| pairs(run.env.iter()));
    differ("plan", "options", &|run| {
        pairs(run.plan.iter().filter(|(name, _)| !EXPECTED_OPTIONS.contains(&name.as_str())))
    });
    notes.extend(of_facts(base, new));
    if [base, new].iter().flat_map(|side| &side.runs).all(|run| run.profile == "debug") {
        notes.push(Note {
            code: "debug_build",
            text: "both sides are debug builds of ombx: build with --release for meaningful figures".into(),
        });
    }
    for (name, side) in [("base", base), ("new", new)] {
        let (runs, ended) = (side.runs.len(), side.complete);
        if ended < runs {
            let text = format!("{name}: {} of {runs} runs are incomplete", runs - ended);
            notes.push(Note { code: "incomplete", text });
        }
    }
    if !took_turns && base.count().max(new.count()) > 1 {
        let text = "the sides were measured one after the other, so a change of the machine in between looks like a difference; \
                    ombx ab alternates the sides"
            .into();
        notes.push(Note { code: "no_turns", text });
    }
    notes
}

/// Returns whether the launches of the sides overlap in time. Sides without launches do. Times are whole seconds.
pub(super) fn overlap(base: &SideResults, new: &SideResults) -> bool {
    let span = |side: &SideResults| {
        let starts = || side.runs.iter().map(|run| run.started.as_str());
        Some((starts().min()?.to_owned(), starts().max()?.to_owned()))
    };
    let spans = span(base).zip(span(new));
    spans.is_none_or(|((a_first, a_last), (b_first, b_last))| a_last > b_first && b_last > a_first)
}

/// Names the facts about software and machines that both sides know and that differ.
fn of_facts(base: &SideResults, new: &SideResults) -> Vec<Note> {
    let names: BTreeSet<&str> =
        [base, new].iter().flat_map(|side| facts_of(side).map(|(name, _)| name)).collect();
    let note = |name: &str| {
        let [a, b] = [base, new].map(|side| {
            let values = facts_of(side).filter(|(other, _)| *other == name);
            values.filter_map(|(_, fact)| Some(fact.known()?.to_owned())).collect::<BTreeSet<String>>()
        });
        let text = || format!("{}: base {}, new {}", name.replace('_', " "), list(&a), list(&b));
        (a != b && !a.is_empty() && !b.is_empty()).then(|| Note { code: "facts", text: text() })
    };
    names.into_iter().filter_map(note).collect()
}

fn facts_of(side: &SideResults) -> impl Iterator<Item = (&str, &Fact)> {
    let sets =
        side.runs.iter().flat_map(|run| run.hosts.iter().map(|group| &group.facts).chain([&run.software]));
    sets.flatten().map(|(name, fact)| (name.as_str(), fact))
}

fn pairs<'a>(options: impl Iterator<Item = (&'a String, &'a String)>) -> String {
    let all: Vec<String> = options.map(|(name, value)| format!("{name}={value}")).collect();
    if all.is_empty() { "none".into() } else { all.join(" ") }
}

fn list(values: &BTreeSet<String>) -> String {
    let some: Vec<&str> =
        values.iter().take(MAX_LISTED).map(|v| if v.is_empty() { "unknown" } else { v }).collect();
    let more = values.len().saturating_sub(MAX_LISTED);
    if more > 0 { format!("{} and {more} others", some.join(", ")) } else { some.join(", ") }
}

/// Name in the plan of a run: a name of the comparison, then `open` or `fixed`. The number of the turn is that of the launch.
const OPTION: &str = "turns";

/// Place of a launch in a comparison of two sides that took turns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// Name of the comparison.
    pub of: String,
    /// Number of the turn, from 1.
    pub number: u32,
    /// Whether the number of turns was open, so that it depends on what they showed.
    pub is_open: bool,
}

impl Turn {
    /// Returns the turn of a run; `None` for a run of another command.
    pub fn of_run(run: &Run) -> Option<Turn> {
        let (of, kind) = run.plan.get(OPTION)?.split_once(' ')?;
        let number = run.plan.get("launch")?.parse().ok()?;
        Some(Turn { of: of.to_owned(), number, is_open: kind == "open" })
    }

    /// Adds the turn to the plan of a run. The number must be that of its launch.
    pub fn add_to(&self, run: &mut Run) {
        let kind = if self.is_open { "open" } else { "fixed" };
        run.plan.insert(OPTION.into(), format!("{} {kind}", self.of));
        run.plan.insert("launch".into(), self.number.to_string());
    }
}

#[cfg(test)]
mod tests {
    use ombx_core::fact::HostFacts;

    use super::*;
    use crate::{file::RunWithRows, golden};

    #[test]
    fn facts_that_differ_are_noted_if_both_sides_know_them() {
        let side = |kernel: Option<&str>| {
            let facts = [("kernel".to_owned(), Fact::of(kernel, "unreadable"))].into();
            let mut launch: RunWithRows = golden();
            launch.run.hosts = vec![HostFacts { hosts: vec!["n01".into()], facts }];
            let mut side = SideResults::named("x");
            side.run(&launch);
            side
        };
        let texts = |one, other| {
            of_facts(&side(one), &side(other)).into_iter().map(|note| note.text).collect::<Vec<_>>()
        };
        assert_eq!(texts(Some("6.1"), Some("6.2")), ["kernel: base 6.1, new 6.2"]);
        assert!(texts(Some("6.1"), None).is_empty() && texts(Some("6.1"), Some("6.1")).is_empty());
    }
}
