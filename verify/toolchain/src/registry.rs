//! Registered benchmarks of a built ombx, as `ombx list --format json` describes them.

use std::{path::Path, process::Command};

use serde_json::Value;

use crate::{
    command::output,
    failure::{Failure, Result},
    workspace::{list, text},
};

/// Registered benchmark.
#[derive(Clone, Debug)]
pub struct Bench {
    /// Name with family.
    pub name: String,
    /// Reason why it cannot run with this MPI.
    pub unavailable: Option<String>,
    /// Whether it has several operations in flight.
    pub streams: bool,
    /// Default sizes.
    pub sizes: String,
    /// Options with a fixed set of values.
    pub axes: Vec<Axis>,
    /// Names of the programs of OMB that it replaces.
    pub osu: Vec<String>,
}

/// Option with a fixed set of values.
#[derive(Clone, Debug)]
pub struct Axis {
    /// Name of the option.
    pub name: String,
    /// Value without the option.
    pub default: String,
    /// All values.
    pub values: Vec<String>,
}

impl Bench {
    /// Returns whether it works on one element: its default is a single size.
    pub fn has_one_size(&self) -> bool {
        self.sizes.parse::<u64>().is_ok()
    }

    /// Finds an axis by its name.
    pub fn axis(&self, name: &str) -> Option<&Axis> {
        self.axes.iter().find(|axis| axis.name == name)
    }
}

/// Returns all benchmarks of a built ombx.
///
/// # Errors
/// The binary does not run, or prints no list.
pub fn read(ombx: &Path) -> Result<Vec<Bench>> {
    parse(&output(Command::new(ombx).args(["list", "--format", "json"]))?)
}

fn parse(text: &str) -> Result<Vec<Bench>> {
    let listed: Vec<Value> = serde_json::from_str(text)
        .map_err(|source| Failure::Output { program: "ombx list --format json", source })?;
    Ok(listed.iter().map(bench).collect())
}

fn bench(listed: &Value) -> Bench {
    Bench {
        name: text(&listed["name"]),
        unavailable: listed["available"].as_str().map(str::to_owned),
        streams: listed["streams"].as_bool().unwrap_or_default(),
        sizes: text(&listed["sizes"]),
        axes: list(&listed["axes"]).map(axis).collect(),
        osu: list(&listed["osu"]).map(text).collect(),
    }
}

fn axis(listed: &Value) -> Axis {
    Axis {
        name: text(&listed["name"]),
        default: text(&listed["default"]),
        values: list(&listed["values"]).map(text).collect(),
    }
}

/// Collective operation in its three modes.
#[derive(Clone, Debug)]
pub struct Collective<'a> {
    /// Name without family and mode.
    pub name: &'a str,
    /// Benchmark of the blocking form.
    pub blocking: &'a Bench,
}

impl Collective<'_> {
    /// Returns the names of the benchmarks: blocking, nonblocking, persistent.
    pub fn benchmarks(&self) -> [String; 3] {
        let Self { name, .. } = self;
        [format!("collective.{name}"), format!("collective.i{name}"), format!("collective.{name}_persistent")]
    }
}

/// Returns the collective operations: the benchmarks that are registered in three modes.
pub fn collectives(benches: &[Bench]) -> impl Iterator<Item = Collective<'_>> {
    let operations = benches.iter().filter_map(|blocking| {
        let name = blocking.name.strip_prefix("collective.")?;
        Some(Collective { name, blocking })
    });
    operations.filter(|operation| {
        operation.benchmarks().iter().all(|name| benches.iter().any(|bench| bench.name == *name))
    })
}

/// One-sided benchmark: an operation in a mode.
#[derive(Clone, Debug)]
pub struct OneSided<'a> {
    /// Name without family and mode.
    pub operation: &'a str,
    /// `latency`, `bw` or `bibw`.
    pub mode: &'a str,
    /// The benchmark.
    pub bench: &'a Bench,
}

/// Returns the one-sided benchmarks of two ranks.
pub fn one_sided(benches: &[Bench]) -> impl Iterator<Item = OneSided<'_>> {
    benches.iter().filter_map(|bench| {
        let (operation, mode) = bench.name.strip_prefix("rma.")?.rsplit_once('_')?;
        // Those of several targets have no choice of synchronisation.
        let is_one = ["latency", "bw", "bibw"].contains(&mode) && !operation.ends_with("_many");
        is_one.then_some(OneSided { operation, mode, bench })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_follow_from_the_names_of_benchmarks() {
        let names = [
            "collective.scan",
            "collective.iscan",
            "collective.scan_persistent",
            "collective.bcast_ack",
            "rma.get_acc_bw",
            "rma.put_many_bw",
        ];
        let list: Vec<Value> =
            names.iter().map(|name| serde_json::json!({"name": name, "sizes": "8"})).collect();
        let benches = parse(&Value::from(list).to_string()).unwrap();
        assert_eq!(collectives(&benches).map(|operation| operation.name).collect::<Vec<_>>(), ["scan"]);
        let one_sided: Vec<_> = one_sided(&benches).map(|one| (one.operation, one.mode)).collect();
        assert_eq!(one_sided, [("get_acc", "bw")]);
        assert!(benches[0].has_one_size() && benches[0].unavailable.is_none());
    }
}
