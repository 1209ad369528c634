//! Provenance of a result by name, and in what two results differ.

use std::collections::BTreeMap;

use ombx_core::{
    fact::HostFacts,
    result::Run,
    system::{node_set, placement::Placement},
};

use crate::{
    compare::EXPECTED_OPTIONS,
    provenance::title,
    run_info::{hosts, library},
};

/// Beginning of the names of options.
const OPTION: &str = "option ";
/// Beginning of the names of environment variables.
const VARIABLE: &str = "variable ";
/// Value of an option or variable that only the other side has.
const UNSET: &str = "unset";

/// A fact that differs between two runs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Difference {
    /// Name, such as `kernel`.
    pub name: String,
    /// Value in the earlier run.
    pub before: String,
    /// Value in the later run.
    pub after: String,
}

/// Returns the provenance of a run by name.
pub(super) fn of(run: &Run) -> BTreeMap<String, String> {
    let mut facts: BTreeMap<String, String> = [
        ("library", library(run)),
        ("ombx", format!("{} ({})", run.version, run.profile)),
        ("hosts", node_set::fold(hosts(run))),
        ("placement", Placement::of(&run.places).name().to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    let known = run.software.iter().filter_map(|(name, fact)| Some((title(name), fact.known()?.to_owned())));
    facts.extend(known);
    facts.extend(of_hosts(&run.hosts));
    facts.extend(run.env.iter().map(|(name, value)| (format!("{VARIABLE}{name}"), value.clone())));
    let options = run.plan.iter().filter(|(name, _)| !EXPECTED_OPTIONS.contains(&name.as_str()));
    facts.extend(options.map(|(name, value)| (format!("{OPTION}{name}"), value.clone())));
    facts
}

/// Returns the known facts of hosts. A value that not all hosts have is followed by those that have it.
fn of_hosts(groups: &[HostFacts]) -> BTreeMap<String, String> {
    let mut values: BTreeMap<&str, BTreeMap<&str, Vec<&str>>> = BTreeMap::new();
    for group in groups {
        for (name, fact) in &group.facts {
            let Some(value) = fact.known() else { continue };
            let hosts = values.entry(name).or_default().entry(value).or_default();
            hosts.extend(group.hosts.iter().map(String::as_str));
        }
    }
    let text = |values: BTreeMap<&str, Vec<&str>>| match values.len() {
        1 => values.into_keys().collect(),
        _ => {
            let each =
                values.into_iter().map(|(value, hosts)| format!("{value} on {}", node_set::fold(hosts)));
            each.collect::<Vec<_>>().join(", ")
        }
    };
    values.into_iter().map(|(name, values)| (title(name), text(values))).collect()
}

/// Returns the facts that both runs know and that differ, and options and variables that one of them lacks.
pub(super) fn differences(
    before: &BTreeMap<String, String>,
    after: &BTreeMap<String, String>,
) -> Vec<Difference> {
    let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let value = |facts: &BTreeMap<String, String>, name: &str| {
        let can_be_unset = name.starts_with(OPTION) || name.starts_with(VARIABLE);
        facts.get(name).cloned().or_else(|| can_be_unset.then(|| UNSET.to_owned()))
    };
    let differs = |name: &String| {
        let (before, after) = (value(before, name)?, value(after, name)?);
        (before != after).then(|| Difference { name: name.clone(), before, after })
    };
    names.into_iter().filter_map(differs).collect()
}

#[cfg(test)]
mod tests {
    use ombx_core::fact::Fact;

    use super::*;
    use crate::golden;

    fn host(name: &str, kernel: &str) -> HostFacts {
        let facts = [("kernel".to_owned(), Fact::Known(kernel.into()))].into();
        HostFacts { hosts: vec![name.into()], facts }
    }

    #[test]
    fn facts_that_differ_are_named_with_both_values() {
        let mut run = golden().run;
        run.hosts = vec![host("n01", "6.1"), host("n02", "6.1")];
        let before = of(&run);
        run.hosts = vec![host("n01", "6.1"), host("n02", "6.2")];
        run.library = "MPICH Version: 4.2.0".into();
        run.env.insert("UCX_NET_DEVICES".into(), "mlx5_0".into());
        run.plan.insert("launch".into(), "7".into());
        let found = differences(&before, &of(&run));
        let texts: Vec<String> =
            found.iter().map(|d| format!("{}: {} -> {}", d.name, d.before, d.after)).collect();
        assert_eq!(
            texts,
            [
                "kernel: 6.1 -> 6.1 on n01, 6.2 on n02",
                "library: MPICH Version: 4.0.2 -> MPICH Version: 4.2.0",
                "variable UCX_NET_DEVICES: unset -> mlx5_0",
            ]
        );
        assert!(differences(&before, &before).is_empty());
    }

    #[test]
    fn a_fact_that_one_run_lacks_is_no_difference() {
        let before = of(&golden().run);
        let mut run = golden().run;
        run.hosts = vec![host("n01", "6.1")];
        assert!(differences(&before, &of(&run)).is_empty());
    }
}
