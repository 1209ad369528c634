//! An OSU program: which benchmark it is here, and what it does when nobody says otherwise.

use crate::lookup;
use ombx_core::{
    benchmark::{axis::Axis, entry::Choice, layout::Layout, preset::Osu, registry::Registry, work::Metric},
    error::{Error, Result},
    measure::plan::Effort,
    unit::Bytes,
};

use super::names;

/// Messages above this many bytes are large: fewer iterations.
const LARGE: Bytes = Bytes(8192);
/// OMB's largest message by default.
const LARGEST: Bytes = Bytes(4 << 20);
/// The same for a collective.
const LARGEST_COLLECTIVE: Bytes = Bytes(1 << 20);

/// OMB's programs by what they accept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    TwoSided,
    OneSided,
    Collective,
}

/// What is run under an OSU name.
pub(crate) struct Program {
    pub(super) osu: Osu,
    pub(super) choice: Choice,
    pub(super) family: Family,
}

impl Program {
    /// The program of a name, `osu_` being optional.
    pub(crate) fn find(registry: &Registry, name: &str) -> Result<Program> {
        let full = if name.starts_with("osu_") { name.to_owned() } else { format!("osu_{name}") };
        let mut all =
            registry.all().iter().flat_map(|bench| bench.osu_names().map(move |osu| (*bench, *osu)));
        let Some((bench, osu)) = all.find(|(_, osu)| osu.name == full) else {
            return Err(match names::uncovered(&full) {
                Some(why) => Error::usage(format!("{full} is not covered: {why}")),
                None => match lookup::find(registry, &glob_free(&full)) {
                    Err(error) => error,
                    Ok(_) => Error::usage(format!("{name} is no OSU program (ombx osu lists them)")),
                },
            });
        };
        let family = if bench.axes.iter().any(|axis| axis.name == "sync") {
            Family::OneSided
        } else if matches!(bench.layout, Layout::Everyone { .. }) {
            Family::Collective
        } else {
            Family::TwoSided
        };
        Ok(Program { osu, choice: Choice { bench, preset: osu.axes }, family })
    }

    /// The benchmark's axis of a name.
    pub(super) fn axis(&self, name: &str) -> Option<&'static Axis> {
        self.choice.bench.axes.iter().find(|axis| axis.name == name).copied()
    }

    /// What OMB 7.4 does on an axis by default, where that is not the benchmark's own default or its name's choice.
    pub(super) fn usual(&self, axis: &Axis) -> Option<&'static str> {
        let value = match (axis.name, self.osu.name) {
            _ if self.osu.axes.iter().any(|(name, _)| *name == axis.name) => return None,
            ("sync", "osu_put_bibw") => "pscw",
            ("sync", "osu_get_acc_latency") => "lock",
            ("win", "osu_get_acc_latency") => "create",
            ("sync", _) => "flush",
            ("buffers", _) => "single",
            _ => return None,
        };
        axis.values.iter().find(|known| **known == value).copied()
    }

    /// Smallest and largest message by default.
    pub(super) fn sizes(&self) -> (Bytes, Bytes) {
        match (self.family, self.choice.bench.metric) {
            (Family::Collective, _) => (Bytes(1), LARGEST_COLLECTIVE),
            (Family::TwoSided, Metric::Latency) => (Bytes(0), LARGEST),
            _ => (Bytes(1), LARGEST),
        }
    }

    /// Iterations and warm-ups of small messages, and of those above so many bytes.
    pub(super) fn effort(&self, iterations: Option<u64>, warmup: Option<u64>) -> (Effort, (Bytes, Effort)) {
        let fixed = |(usual, before)| Effort::Fixed {
            iterations: iterations.unwrap_or(usual),
            warmup: warmup.unwrap_or(before),
        };
        let (small, large) = match (self.family, self.choice.bench.metric) {
            (Family::Collective, _) => ((1000, 100), (100, 10)),
            (_, Metric::Bandwidth) => ((100, 10), (20, 2)),
            (_, Metric::Latency) => ((10_000, 100), (1000, 10)),
        };
        (fixed(small), (LARGE, fixed(large)))
    }
}

/// A name in which nothing means more than itself.
fn glob_free(name: &str) -> String {
    name.chars().filter(|c| !"*?[]".contains(*c)).collect()
}
