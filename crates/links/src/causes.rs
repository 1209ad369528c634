//! What may explain that a host is slow: its devices differ from those of most hosts, do less than they can, or count errors.

use std::collections::{BTreeMap, BTreeSet};

use ombx_host::{
    device_counters::{is_error, is_throttling},
    machine::{INTERRUPTS, LOCAL_CPUS, device_of},
};
use ombx_record::{
    fact::{Fact, Facts, HostFacts},
    result::Growth,
};

/// Facts about a host itself that are compared with those of other hosts.
const OF_HOST: [&str; 7] = ["cpu", "microcode", "governor", "turbo", "smt", "kernel", "cpu_quota"];
/// Properties of devices that are not compared: slots differ, and a limit of the frequency is there only where it limits.
const NOT_COMPARED: [&str; 4] = [LOCAL_CPUS, INTERRUPTS, "NUMA node", "frequency limit"];
/// What facts about all CPUs name as their device.
const CPU: &str = "cpu";
/// Hosts that are needed for a majority.
const LEAST_HOSTS: usize = 3;
/// Probability that a counter that also grows in healthy operation stands out on any of equal hosts. The tests of all hosts and counters
/// share it.
const LEVEL: f64 = 0.01;
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
    let count = hosts.iter().map(|group| group.hosts.len()).sum();
    let errors = grown.iter().filter(|one| is_error(one));
    all.extend(errors.map(|one| Cause::new(&one.host, beside_others(one, grown, count))));
    all
}

/// Returns a counter of a host with the most of the others: `Tcp InErrs +12, others 0`.
fn beside_others(one: &Growth, all: &[Growth], hosts: usize) -> String {
    let same = |other: &&Growth| {
        other.host != one.host && (&other.device, &other.counter) == (&one.device, &one.counter)
    };
    match all.iter().filter(same).map(|other| other.by).max() {
        _ if hosts < 2 => one.to_string(),
        None => format!("{one}, others 0"),
        Some(most) => format!("{one}, others at most {most}"),
    }
}

/// Growth of the counters of all hosts over the rows of a sweep.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Totals(BTreeMap<[String; 3], Total>);

/// Growth of a counter over several rows.
#[derive(Debug, Clone, PartialEq)]
struct Total {
    sum: Growth,
    /// Sum of the squares over rows.
    squares: f64,
    /// Largest growth in a row.
    most: u64,
}

impl Totals {
    /// Adds the growth of a counter in one row.
    pub fn add(&mut self, one: &Growth) {
        self.add_total(&Total { sum: one.clone(), squares: (one.by as f64).powi(2), most: one.by });
    }

    /// Adds the growth of other rows.
    pub(crate) fn join(&mut self, others: &Totals) {
        others.0.values().for_each(|total| self.add_total(total));
    }

    fn add_total(&mut self, other: &Total) {
        let key = [&other.sum.device, &other.sum.counter, &other.sum.host].map(String::clone);
        let empty = || Total { sum: Growth { by: 0, ..other.sum.clone() }, squares: 0.0, most: 0 };
        let total = self.0.entry(key).or_insert_with(empty);
        total.sum.by = total.sum.by.saturating_add(other.sum.by);
        total.squares += other.squares;
        total.most = total.most.max(other.most);
    }

    /// Returns the sums over the rows.
    pub fn sums(&self) -> Vec<Growth> {
        self.0.values().map(|total| total.sum.clone()).collect()
    }

    /// Returns the counters that also grow in healthy operation, but grew on one of several hosts by more than chance explains.
    ///
    /// If all hosts with a device are equal, the growth in a row is that of any of them with the same probability. A host stands out if its
    /// sum exceeds what this explains with the probability of a false verdict, divided by the number of hosts and counters. Counters of a protocol
    /// are those of all hosts, whose number is `hosts`.
    pub fn under_load(&self, hosts: usize, facts: &[HostFacts]) -> Vec<Cause> {
        let by_counter = self.by_counter(|one| !is_error(one));
        let level = LEVEL / (hosts * by_counter.len()).max(1) as f64;
        let mut found = Vec::new();
        for ([device, _], totals) in &by_counter {
            let hosts = hosts_with(device, totals, hosts, facts);
            for one in beyond_chance(totals, totals, 1.0 / hosts as f64, level) {
                found.push(Cause::new(&one.host, beside_others(one, &sums_of(totals), hosts)));
            }
        }
        found
    }

    /// Returns the totals of the counters of a kind on each host, by device and counter.
    fn by_counter(&self, is_kind: impl Fn(&Growth) -> bool) -> BTreeMap<[&String; 2], Vec<&Total>> {
        let mut by_counter: BTreeMap<[&String; 2], Vec<&Total>> = BTreeMap::new();
        for ([device, counter, _], total) in self.0.iter().filter(|(_, total)| is_kind(&total.sum)) {
            by_counter.entry([device, counter]).or_default().push(total);
        }
        by_counter
    }
}

/// Errors that devices and protocols counted over the rows of a sweep.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Errors {
    /// By the host that counted them.
    counted: Totals,
    /// By each of the two hosts that communicated: the one that counted them, and its partner.
    between: Totals,
}

impl Errors {
    /// Adds a counter that grew while its host communicated with a partner; `None` if that is not known.
    pub fn add(&mut self, one: &Growth, partner: Option<&str>) {
        if !is_error(one) || is_throttling(one) {
            return;
        }
        self.counted.add(one);
        self.between.add(one);
        if let Some(host) = partner {
            self.between.add(&Growth { host: host.to_owned(), ..one.clone() });
        }
    }

    /// Adds the errors of other rows.
    pub(crate) fn join(&mut self, others: &Errors) {
        self.counted.join(&others.counted);
        self.between.join(&others.between);
    }

    /// Returns a sentence on each counter of errors by which one host stands out, with the host.
    ///
    /// Two tests share the error probability, each for every host and counter. A host counts more errors than others: it receives damaged
    /// packets. Or errors are counted by hosts that communicate with it: it sends them. In both, the errors of a row are those of any
    /// host, or of any two, with the same probability.
    pub fn findings(&self, hosts: usize, facts: &[HostFacts]) -> Vec<Cause> {
        let counted = self.counted.by_counter(|_| true);
        let between = self.between.by_counter(|_| true);
        let level = LEVEL / (2 * hosts * counted.len()).max(1) as f64;
        let mut found = Vec::new();
        for (key, totals) in &counted {
            let [device, counter] = key;
            let hosts_of = hosts_with(device, totals, hosts, facts);
            let what = if is_checksum(counter) { "wrong checksums" } else { "errors of a device" };
            let guess = |host: &str| format!("a guess: cable, port or adapter of {host}");
            let own = beyond_chance(totals, totals, 1.0 / hosts_of as f64, level);
            for one in &own {
                let counts = beside_others(one, &sums_of(totals), hosts);
                let text = format!("{what}: {} counted {counts}; {}", one.host, guess(&one.host));
                found.push(Cause::new(&one.host, text));
            }
            let all: u64 = totals.iter().map(|total| total.sum.by).sum();
            let pairs = between.get(key).filter(|_| own.is_empty() && hosts_of > 2);
            let with_them = pairs
                .into_iter()
                .flat_map(|pairs| beyond_chance(pairs, totals, 2.0 / hosts_of as f64, level));
            for one in with_them {
                let text = format!(
                    "{what}: {one} while hosts communicated with {}, +{} otherwise; {}",
                    one.host,
                    all - one.by.min(all),
                    guess(&one.host)
                );
                found.push(Cause::new(&one.host, text));
            }
        }
        found
    }
}

/// Returns whether a counter counts packets whose checksum is wrong. TCP counts other damaged headers too.
fn is_checksum(counter: &str) -> bool {
    let name = counter.to_lowercase();
    ["inerrs", "csum", "crc"].iter().any(|part| name.contains(part))
}

fn sums_of(totals: &[&Total]) -> Vec<Growth> {
    totals.iter().map(|total| total.sum.clone()).collect()
}

/// Returns the number of hosts that have a device. Counters of a protocol are those of all hosts.
fn hosts_with(device: &str, totals: &[&Total], hosts: usize, facts: &[HostFacts]) -> usize {
    // A counter may be that of a port: `mlx5_0 port 1`.
    let device = device_of(device).unwrap_or(device);
    let with_device = facts.iter().filter(|group| device != CPU && has_device(&group.facts, device));
    let with_device: usize = with_device.map(|group| group.hosts.len()).sum();
    if with_device > 0 { with_device.max(totals.len()) } else { hosts.max(1) }
}

/// Returns the sums that chance explains with at most this probability, if the growth in each of all rows is part of a host's sum with the
/// probability `share`.
fn beyond_chance<'a>(sums: &[&'a Total], all: &[&Total], share: f64, level: f64) -> Vec<&'a Growth> {
    let stands_out = |total: &&&Total| chance(total.sum.by, all, share) <= level;
    sums.iter().filter(stands_out).map(|total| &total.sum).collect()
}

/// Returns an upper bound of the probability of at least this sum, if the growth in each row is part of it with the probability `share`:
/// Bernstein's inequality (Boucheron, Lugosi and Massart, Concentration Inequalities, 2013, section 2.8). It holds for rows of
/// any size, where a normal approximation does not: TCP sends segments again in bursts.
fn chance(own: u64, totals: &[&Total], share: f64) -> f64 {
    let all = totals.iter().map(|total| total.sum.by as f64).sum::<f64>();
    let excess = own as f64 - share * all;
    if excess <= 0.0 {
        return 1.0;
    }
    let variance = share * (1.0 - share) * totals.iter().map(|total| total.squares).sum::<f64>();
    let most = (1.0 - share) * totals.iter().map(|total| total.most).max().unwrap_or(0) as f64;
    (-0.5 * excess * excess / (variance + most * excess / 3.0)).exp()
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
    let usual = usual_facts(hosts);
    let renamed: Vec<BTreeSet<&str>> =
        hosts.iter().map(|group| renamed_devices(&group.facts, &usual)).collect();
    let mut found = Vec::new();
    for (name, usual) in usual {
        for (group, renamed) in hosts.iter().zip(&renamed) {
            let own = known(&group.facts, name);
            let device = device_of(name);
            if own == Some(usual) || device.is_some_and(|device| renamed.contains(device)) {
                continue;
            }
            let text = match (own, device) {
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

/// Returns the compared facts that more than half of all hosts share, with their names; none if the hosts are too few.
fn usual_facts(hosts: &[HostFacts]) -> BTreeMap<&str, &str> {
    let all = hosts.iter().map(|group| group.hosts.len()).sum::<usize>();
    let mut values: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for group in hosts {
        for (name, fact) in &group.facts {
            if let Some(value) = fact.known().filter(|_| is_compared(name)) {
                *values.entry((name, value)).or_default() += group.hosts.len();
            }
        }
    }
    let usual = values.into_iter().filter(|(_, count)| all >= LEAST_HOSTS && 2 * count > all);
    usual.map(|(fact, _)| fact).collect()
}

/// Returns the devices of most hosts that a host has under another name: one that most hosts lack, with the compared properties that the
/// device has on most hosts. The driver must be among them: bonds and VLANs have too few properties to be recognised.
///
/// A host with another port of the same card does not have the device: the cable may be in the wrong port.
fn renamed_devices<'h>(facts: &'h Facts, usual: &BTreeMap<&'h str, &'h str>) -> BTreeSet<&'h str> {
    let own: BTreeSet<&str> = facts.keys().filter_map(|name| device_of(name)).collect();
    let of_most: BTreeSet<&str> = usual.keys().copied().filter_map(device_of).collect();
    let cards: BTreeSet<&str> = own.iter().copied().map(card).collect();
    let mut others: Vec<&str> = own.difference(&of_most).copied().collect();
    let mut found = BTreeSet::new();
    for device in of_most.difference(&own).copied().filter(|device| !cards.contains(card(device))) {
        let properties: Vec<(&str, &str)> = usual
            .iter()
            .filter_map(|(&name, &value)| Some((name.strip_prefix(device)?.strip_prefix(' ')?, value)))
            .collect();
        let has_driver = properties.iter().any(|(property, _)| *property == "driver");
        let has_all = |other: &&str| {
            let has = |(property, value): &(&str, &str)| {
                known(facts, &format!("{other} {property}")) == Some(*value)
            };
            has_driver && properties.iter().all(has)
        };
        if let Some(at) = others.iter().position(has_all) {
            others.remove(at);
            found.insert(device);
        }
    }
    found
}

/// Returns the part of a device's name that its card has: all before the number of the port, as `ens1f` of `ens1f0` and `ens1f0np0`.
fn card(device: &str) -> &str {
    let name = device.trim_end_matches(|c: char| c.is_ascii_digit());
    let name = name.strip_suffix("np").unwrap_or(name);
    name.trim_end_matches(|c: char| c.is_ascii_digit())
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

/// Returns whether a fact says that a device does less than it can.
fn is_limit(name: &str, value: &str) -> bool {
    match device_of(name) {
        // `8.0 GT/s x8 of 16.0 GT/s x16`
        Some(_) => {
            (value.contains(" of ") && !name.ends_with("driver"))
                || (name.ends_with("duplex") && value == "half")
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use ombx_record::random::SplitMix64;

    use crate::causes::*;

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
    fn a_device_may_have_another_name_on_one_host() {
        let interface = |name: &str, mtu: &str| {
            [("driver", "mlx5_core"), ("speed", "100 Gbit/s"), ("MTU", mtu)]
                .map(|(property, value)| (format!("{name} {property}"), Fact::Known(value.to_owned())))
        };
        let host = |name: &str, interfaces: &[[(String, Fact); 3]]| {
            (name.to_owned(), interfaces.iter().flatten().cloned().collect::<Facts>())
        };
        let of_last = |interfaces: &[[(String, Fact); 3]]| {
            let both = [interface("ens1f0", "9000"), interface("ens1f1", "9000")];
            let hosts = [host("n1", &both), host("n2", &both), host("n3", &both), host("n4", interfaces)];
            texts(&of_hosts(&HostFacts::grouped(hosts), &[]))
        };
        let missing = |name: &str| format!("n4: no {name} that is up, others have one");
        assert!(of_last(&[interface("ens2f0", "9000"), interface("ens2f1", "9000")]).is_empty());
        assert_eq!(of_last(&[]), [missing("ens1f0"), missing("ens1f1")]);
        assert_eq!(of_last(&[interface("ens2f0", "9000")]), [missing("ens1f1")]);
        assert_eq!(of_last(&[interface("ens1f0", "9000")]), [missing("ens1f1")]);
        assert_eq!(of_last(&[interface("ens2f0", "1500"), interface("ens2f1", "9000")]), [missing("ens1f1")]);
    }

    #[test]
    fn another_port_or_vlan_is_no_other_name() {
        let of_last = |usual: &[(&str, &str)], last: &[(&str, &str)]| {
            let hosts = [host("n1", usual), host("n2", usual), host("n3", usual), host("n4", last)];
            texts(&of_hosts(&HostFacts::grouped(hosts), &[]))
        };
        let missing = |name: &str| format!("n4: no {name} that is up, others have one");
        let port = [("ens1f0 driver", "ice"), ("ens1f0 speed", "100 Gbit/s")];
        let other_port = [("ens1f1 driver", "ice"), ("ens1f1 speed", "100 Gbit/s")];
        let other_slot = [("ens2f0 driver", "ice"), ("ens2f0 speed", "100 Gbit/s")];
        assert_eq!(of_last(&port, &other_port), [missing("ens1f0")]);
        assert!(of_last(&port, &other_slot).is_empty());
        assert_eq!(of_last(&[("vlan100 MTU", "9000")], &[("vlan200 MTU", "9000")]), [missing("vlan100")]);
        assert_eq!(of_last(&[("bond0 MTU", "9000")], &[("team0 MTU", "9000")]), [missing("bond0")]);
        for (device, expected) in [
            ("ens1f0", "ens1f"),
            ("enp65s0f1np1", "enp65s0f"),
            ("eno2", "eno"),
            ("mlx5_0", "mlx5_"),
            ("cpu", "cpu"),
        ] {
            assert_eq!(card(device), expected);
        }
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
        let hosts = HostFacts::grouped([host("n1", &[]), host("n2", &[])]);
        let causes = of_hosts(&hosts, &[grown("n1", "InErrs", 3), grown("n2", "InErrs", 40)]);
        assert_eq!(
            texts(&causes),
            ["n1: Tcp InErrs +3, others at most 40", "n2: Tcp InErrs +40, others at most 3"]
        );
        assert_eq!(texts(&of_hosts(&hosts, &[grown("n1", "InErrs", 3)])), ["n1: Tcp InErrs +3, others 0"]);
    }

    fn totals(rows: impl IntoIterator<Item = Growth>) -> Totals {
        let mut totals = Totals::default();
        rows.into_iter().for_each(|one| totals.add(&one));
        totals
    }

    #[test]
    fn a_counter_that_grows_under_load_stands_out_on_one_host_only() {
        let rows = |host: &str, rows: usize| vec![grown(host, "RetransSegs", 3); rows];
        let uneven = totals([rows("n1", 2), rows("n2", 30), rows("n3", 1)].concat());
        assert_eq!(texts(&uneven.under_load(4, &[])), ["n2: Tcp RetransSegs +90, others at most 6"]);
        assert_eq!(uneven.sums()[1].by, 90);
        assert!(
            totals([rows("n1", 30), rows("n2", 30), rows("n3", 30)].concat()).under_load(4, &[]).is_empty()
        );
        // One burst may be that of any host.
        assert!(totals([grown("n2", "RetransSegs", 500)]).under_load(4, &[]).is_empty());
        assert!(totals(rows("n1", 30)).under_load(1, &[]).is_empty());
        // Of four hosts, two have the device.
        let facts = HostFacts::grouped([
            host("n1", &[("Tcp speed", "1")]),
            host("n2", &[("Tcp speed", "1")]),
            host("n3", &[]),
            host("n4", &[]),
        ]);
        let both = totals([rows("n1", 12), rows("n2", 18)].concat());
        assert!(both.under_load(2, &facts).is_empty() && both.under_load(4, &facts).is_empty());
        let errors = totals(vec![grown("n1", "InErrs", 3); 30]);
        assert!(errors.under_load(4, &[]).is_empty(), "an error needs no other hosts");
    }

    /// Simulates rows that each hit one of the hosts, the last one so many times as often, in bursts of 1 to `longest`. Returns how many of
    /// 400 sweeps name a host.
    fn named(seed: u64, hosts: usize, rows: usize, last: f64, longest: i32) -> usize {
        let mut dice = fastrand::Rng::with_seed(seed);
        let mut sweep = || {
            let row = |_| {
                let host = (dice.f64() * (hosts as f64 - 1.0 + last)) as usize;
                // Most bursts are short, a few are long: the logarithm is uniform.
                let by = f64::from(longest).powf(dice.f64()) as u64;
                grown(&format!("n{}", host.min(hosts - 1)), "RetransSegs", by)
            };
            !totals((0..rows).map(row)).under_load(hosts, &[]).is_empty()
        };
        (0..400).filter(|_| sweep()).count()
    }

    #[test]
    fn equal_hosts_seldom_stand_out_and_a_bad_one_does() {
        for (hosts, rows, longest) in [(2, 20, 1), (4, 10, 1), (4, 100, 50), (16, 60, 300), (64, 300, 1000)] {
            let wrong = named(2012, hosts, rows, 1.0, longest);
            assert!(wrong <= 8, "{wrong} of 400: {hosts} hosts, {rows} rows, bursts up to {longest}");
        }
        for (hosts, rows, longest) in [(4, 40, 1), (4, 200, 50), (16, 200, 50)] {
            let found = named(2013, hosts, rows, 10.0, longest);
            assert!(found >= 380, "{found} of 400: {hosts} hosts, {rows} rows, bursts up to {longest}");
        }
    }

    /// Errors of a sweep over five hosts: each link has a row in both directions, and in three attempts.
    fn errors(seed: u64, of_row: impl Fn(&mut SplitMix64, [&str; 2]) -> [u64; 2]) -> Vec<Cause> {
        let mut random = SplitMix64(seed * 7919 + 13);
        let names = ["h1", "h2", "h3", "h4", "h5"];
        let mut errors = Errors::default();
        let ends = names.iter().flat_map(|a| names.iter().map(move |b| [*a, *b])).filter(|[a, b]| a != b);
        for [a, b] in ends {
            for _ in 0..if a < b { 4 } else { 1 } {
                let [on_a, on_b] = of_row(&mut random, [a, b]);
                errors.add(&grown(a, "InErrs", on_a), Some(b));
                errors.add(&grown(b, "InErrs", on_b), Some(a));
            }
        }
        errors.findings(names.len(), &[])
    }

    /// Draws a number of errors: none in most rows, and bursts of up to 1000.
    fn burst(random: &mut SplitMix64, share: f64) -> u64 {
        let mut uniform = || (random.next_u64() >> 11) as f64 / 2f64.powi(53);
        if uniform() < share { 1000f64.powf(uniform()) as u64 } else { 0 }
    }

    #[test]
    fn errors_of_equal_hosts_are_chance() {
        for share in [0.02, 0.2, 0.8] {
            let found = (0..500).filter(|seed| {
                !errors(*seed, |random, _| [burst(random, share), burst(random, share)]).is_empty()
            });
            let found = found.count();
            // If 1 % were false, more than 12 of 500 would have a probability below 1 %.
            assert!(found <= 12, "{found} of 500, {share} of rows with errors");
        }
    }

    #[test]
    fn a_host_that_receives_or_sends_damaged_packets_is_named() {
        let of = |is_receiver: bool| {
            move |random: &mut SplitMix64, ends: [&str; 2]| {
                let errors = 20 + random.next_u64() % 20;
                ends.map(|host| {
                    let is_faulty = host == "h4";
                    if ends.contains(&"h4") && is_faulty == is_receiver { errors } else { 0 }
                })
            }
        };
        for (is_receiver, start) in
            [(true, "wrong checksums: h4 counted Tcp InErrs +"), (false, "wrong checksums: Tcp InErrs +")]
        {
            for seed in 0..100 {
                let found = errors(seed, of(is_receiver));
                let [one] = &found[..] else { panic!("{found:?}") };
                assert!(one.host == "h4" && one.text.starts_with(start), "{one}");
                assert!(one.text.ends_with("a guess: cable, port or adapter of h4"), "{one}");
            }
        }
        let text = &errors(1, of(false))[0].text;
        assert!(text.contains(" while hosts communicated with h4, +0 otherwise; "), "{text}");
        assert!(errors(1, |_, _| [0, 0]).is_empty());
    }
}
