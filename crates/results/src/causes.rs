//! What may explain that a host is slow: its devices differ from those of most hosts, do less than they can, or count errors.

use std::collections::{BTreeMap, BTreeSet};

use ombx_core::{
    fact::{Fact, Facts, HostFacts},
    result::Growth,
    stats,
    system::machine::{LOCAL_CPUS, device_of},
};

/// Facts about a host itself that are compared with those of other hosts.
const OF_HOST: [&str; 6] = ["cpu", "microcode", "governor", "turbo", "smt", "kernel"];
/// Properties of devices that are not compared: slots differ, and a limit of the frequency is there only where it limits.
const NOT_COMPARED: [&str; 3] = [LOCAL_CPUS, "NUMA node", "frequency limit"];
/// What facts about all CPUs name as their device.
const CPU: &str = "cpu";
/// Hosts that are needed for a majority.
const LEAST_HOSTS: usize = 3;
/// A counter that also grows in healthy operation stands out if it grew by more than this many times the median of the other hosts, and
/// by more than [`FEW`].
const MANY_TIMES: f64 = 5.0;
const FEW: f64 = 10.0;
/// Maximum number of causes in a sentence.
const NAMED: usize = 4;

/// What may explain that a host is slow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// Host.
    pub host: String,
    /// Clause, such as `eth0 speed 1 Gbit/s, others 10 Gbit/s`.
    pub text: String,
}

impl Cause {
    fn new(host: &str, text: String) -> Cause {
        Cause { host: host.to_owned(), text }
    }
}

impl std::fmt::Display for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.host, self.text)
    }
}

/// Returns what distinguishes hosts from others, what limits their devices, and the errors that their devices counted.
pub fn of_hosts(hosts: &[HostFacts], grown: &[Growth]) -> Vec<Cause> {
    let differing = differing(hosts);
    let mut all: Vec<Cause> = differing.iter().map(|(_, cause)| cause.clone()).collect();
    let limits = limits(hosts).into_iter();
    let is_new = |(name, limit): &(&str, Cause)| {
        !differing.iter().any(|(known, cause)| known == name && cause.host == limit.host)
    };
    all.extend(limits.filter(is_new).map(|(_, cause)| cause));
    let errors = grown.iter().filter(|one| one.is_error());
    all.extend(errors.map(|one| Cause::new(&one.host, one.to_string())));
    all
}

/// Returns the counters that also grow in healthy operation, but grew on one host much more than on the others.
pub fn under_load(hosts: usize, grown: &[Growth]) -> Vec<Cause> {
    let mut by_counter: BTreeMap<(&str, &str), Vec<&Growth>> = BTreeMap::new();
    for one in grown.iter().filter(|one| !one.is_error()) {
        by_counter.entry((&one.device, &one.counter)).or_default().push(one);
    }
    let stands_out = |all: &[&Growth], one: &Growth| {
        // A counter that stood still on a host is not in the list.
        let mut others: Vec<f64> =
            all.iter().filter(|other| other.host != one.host).map(|other| other.by as f64).collect();
        others.resize(hosts.saturating_sub(1), 0.0);
        stats::median(&others).is_some_and(|usual| one.by as f64 > FEW + MANY_TIMES * usual)
    };
    let of_counter = |all: Vec<&Growth>| {
        let outstanding = all.iter().filter(|one| stands_out(&all, one));
        outstanding.map(|one| Cause::new(&one.host, one.to_string())).collect::<Vec<_>>()
    };
    by_counter.into_values().flat_map(of_counter).collect()
}

/// Returns the causes in one clause; `None` without a cause.
pub fn sentence(causes: &[Cause]) -> Option<String> {
    let named = causes.iter().take(NAMED).map(Cause::to_string);
    let more = causes.len().saturating_sub(NAMED);
    let more = (more > 0).then(|| format!("{more} more"));
    (!causes.is_empty()).then(|| named.chain(more).collect::<Vec<_>>().join("; "))
}

/// Returns the facts in which a host differs from more than half of all hosts, with their names.
fn differing(hosts: &[HostFacts]) -> Vec<(&str, Cause)> {
    let all = hosts.iter().map(|group| group.hosts.len()).sum::<usize>();
    let mut names: Vec<&str> =
        hosts.iter().flat_map(|group| group.facts.keys()).map(String::as_str).collect();
    names.sort_unstable();
    names.dedup();
    let mut found = Vec::new();
    for name in names.into_iter().filter(|name| is_compared(name)) {
        let mut values: BTreeMap<&str, usize> = BTreeMap::new();
        for group in hosts {
            if let Some(value) = known(&group.facts, name) {
                *values.entry(value).or_default() += group.hosts.len();
            }
        }
        let usual = values.into_iter().find(|(_, count)| 2 * count > all).filter(|_| all >= LEAST_HOSTS);
        let Some((usual, _)) = usual else { continue };
        for group in hosts.iter().filter(|group| known(&group.facts, name) != Some(usual)) {
            let text = match (known(&group.facts, name), device_of(name)) {
                (Some(value), _) => format!("{name} {value}, others {usual}"),
                (None, Some(device)) if device != CPU && !has_device(&group.facts, device) => {
                    format!("no {device} that is up, others have one")
                }
                (None, _) => format!("{name} not known, others {usual}"),
            };
            found.extend(group.hosts.iter().map(|host| (name, Cause::new(host, text.clone()))));
        }
    }
    // A device that is missing lacks all its properties.
    let mut seen = BTreeSet::new();
    found.retain(|(_, cause): &(&str, Cause)| seen.insert((cause.host.clone(), cause.text.clone())));
    found
}

fn is_compared(name: &str) -> bool {
    match device_of(name) {
        Some(_) => !NOT_COMPARED.iter().any(|property| name.ends_with(property)),
        None => OF_HOST.contains(&name),
    }
}

fn known<'f>(facts: &'f Facts, name: &str) -> Option<&'f str> {
    facts.get(name).and_then(Fact::known)
}

fn has_device(facts: &Facts, device: &str) -> bool {
    facts.keys().any(|name| device_of(name) == Some(device))
}

/// Returns the devices that do less than they can, with the names of the facts that say so. What limits most hosts is one cause of these.
fn limits(hosts: &[HostFacts]) -> Vec<(&str, Cause)> {
    let is_limit = |name: &str, value: &str| match device_of(name) {
        // `8.0 GT/s x8 of 16.0 GT/s x16`
        Some(_) => {
            value.contains(" of ") && !name.ends_with("driver") || name.ends_with("duplex") && value == "half"
        }
        None => false,
    };
    let mut by_limit: BTreeMap<(&str, &str), Vec<&String>> = BTreeMap::new();
    for group in hosts {
        for (name, fact) in &group.facts {
            if let Some(value) = fact.known().filter(|value| is_limit(name, value)) {
                by_limit.entry((name, value)).or_default().extend(&group.hosts);
            }
        }
    }
    let all = hosts.iter().map(|group| group.hosts.len()).sum::<usize>();
    let mut found = Vec::new();
    for ((name, value), limited) in by_limit {
        let cause = |host: &str| (name, Cause::new(host, format!("{name} {value}")));
        if all >= LEAST_HOSTS && 2 * limited.len() > all {
            found.push(cause(&format!("{} of {all} hosts", limited.len())));
        } else {
            found.extend(limited.into_iter().map(|host| cause(host)));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str, facts: &[(&str, &str)]) -> (String, Facts) {
        let facts = facts.iter().map(|(name, value)| ((*name).to_owned(), Fact::Known((*value).to_owned())));
        (name.to_owned(), facts.collect())
    }

    fn texts(causes: &[Cause]) -> Vec<String> {
        causes.iter().map(Cause::to_string).collect()
    }

    fn grown(host: &str, counter: &str, by: u64) -> Growth {
        Growth { host: host.into(), device: "Tcp".into(), counter: counter.into(), by }
    }

    const USUAL: [(&str, &str); 4] = [
        ("kernel", "Linux 6.1"),
        ("mlx5_0 PCIe", "16.0 GT/s x16"),
        ("mlx5_0 firmware", "20.35"),
        ("mlx5_0 NUMA node", "0"),
    ];

    #[test]
    fn hosts_that_differ_from_most_are_named() {
        let n3 = [
            ("mlx5_0 PCIe", "16.0 GT/s x8 of 16.0 GT/s x16"),
            ("mlx5_0 firmware", "20.35"),
            ("kernel", "Linux 6.1"),
        ];
        let n4 = [
            ("mlx5_0 PCIe", "16.0 GT/s x16"),
            ("mlx5_0 firmware", "20.31"),
            ("kernel", "Linux 6.1"),
            ("mlx5_0 NUMA node", "1"),
        ];
        let hosts =
            [host("n1", &USUAL), host("n2", &USUAL), host("n3", &n3), host("n4", &n4), host("n5", &USUAL)];
        let causes = of_hosts(&HostFacts::grouped(hosts), &[]);
        let expected = [
            "n3: mlx5_0 PCIe 16.0 GT/s x8 of 16.0 GT/s x16, others 16.0 GT/s x16",
            "n4: mlx5_0 firmware 20.31, others 20.35",
        ];
        assert_eq!(texts(&causes), expected);
        assert_eq!(sentence(&causes).unwrap(), expected.join("; "));
        assert_eq!(sentence(&[]), None);
    }

    #[test]
    fn a_missing_device_is_one_cause_and_two_hosts_have_no_majority() {
        let facts = |hosts: [(String, Facts); 3]| texts(&of_hosts(&HostFacts::grouped(hosts), &[]));
        let bare = host("n3", &[("kernel", "Linux 6.1")]);
        let usual = || host("n1", &USUAL);
        let limit = [("cpu frequency limit", "2.00 GHz of 3.50 GHz")];
        let limited = |name| host(name, &limit);
        assert_eq!(
            facts([limited("n1"), limited("n2"), bare.clone()]),
            ["2 of 3 hosts: cpu frequency limit 2.00 GHz of 3.50 GHz"]
        );
        assert_eq!(
            facts([usual(), host("n2", &USUAL), bare.clone()]),
            ["n3: no mlx5_0 that is up, others have one"]
        );
        assert!(of_hosts(&HostFacts::grouped([usual(), bare]), &[]).is_empty());
    }

    #[test]
    fn limits_and_errors_of_one_host_are_causes() {
        let facts = [
            ("eth0 PCIe", "8.0 GT/s x4 of 8.0 GT/s x8"),
            ("eth0 duplex", "half"),
            ("eth0 speed", "10 Gbit/s"),
        ];
        let hosts = HostFacts::grouped([host("n1", &facts)]);
        let causes = of_hosts(&hosts, &[grown("n1", "InErrs", 3), grown("n1", "RetransSegs", 400)]);
        assert_eq!(
            texts(&causes),
            ["n1: eth0 PCIe 8.0 GT/s x4 of 8.0 GT/s x8", "n1: eth0 duplex half", "n1: Tcp InErrs +3"]
        );
    }

    #[test]
    fn a_counter_that_grows_under_load_stands_out_on_one_host_only() {
        let all =
            [grown("n1", "RetransSegs", 4), grown("n2", "RetransSegs", 90), grown("n3", "RetransSegs", 6)];
        assert_eq!(texts(&under_load(4, &all)), ["n2: Tcp RetransSegs +90"]);
        assert!(under_load(4, &all.clone().map(|one| Growth { by: 90, ..one })).is_empty());
        assert!(under_load(1, &all[..1]).is_empty());
    }
}
