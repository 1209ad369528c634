//! Facts about machines and software that a reader needs to judge and to repeat a measurement.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A fact, or the reason why it is unknown.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Fact {
    /// The fact.
    Known(String),
    /// The reason why it is unknown.
    Unknown {
        /// The reason.
        #[serde(rename = "unknown")]
        reason: String,
    },
}

impl Fact {
    /// Returns a known fact, or an unknown one with this reason.
    pub fn new(value: Option<impl Into<String>>, reason: &str) -> Fact {
        value.map_or_else(|| Fact::Unknown { reason: reason.to_owned() }, |value| Fact::Known(value.into()))
    }

    /// Returns the fact if it is known.
    pub fn known(&self) -> Option<&str> {
        match self {
            Fact::Known(value) => Some(value),
            Fact::Unknown { .. } => None,
        }
    }

    /// Returns the fact as ranks send it.
    pub fn sent(&self) -> SentFact {
        match self {
            Fact::Known(value) => Ok(value.clone()),
            Fact::Unknown { reason } => Err(reason.clone()),
        }
    }
}

/// Facts by name, such as `cpu`.
pub type Facts = BTreeMap<String, Fact>;

/// A fact, or the reason why it is unknown, as ranks send it: the codec has no untagged values.
pub type SentFact = std::result::Result<String, String>;
/// Facts by name, as ranks send them.
pub type SentFacts = BTreeMap<String, SentFact>;

/// Returns the facts that a rank has sent.
pub fn received(sent: SentFacts) -> Facts {
    let fact = |sent: SentFact| sent.map_or_else(|reason| Fact::Unknown { reason }, Fact::Known);
    sent.into_iter().map(|(name, sent)| (name, fact(sent))).collect()
}

/// Facts about hosts that are equal.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostFacts {
    /// Names of the hosts.
    pub hosts: Vec<String>,
    /// Facts about each of them.
    pub facts: Facts,
}

impl HostFacts {
    /// Groups hosts that have the same facts. Groups and hosts keep their order.
    pub fn grouped(each: impl IntoIterator<Item = (String, Facts)>) -> Vec<HostFacts> {
        let mut groups: Vec<HostFacts> = Vec::new();
        for (host, facts) in each {
            match groups.iter_mut().find(|group| group.facts == facts) {
                Some(group) => group.hosts.push(host),
                None => groups.push(HostFacts { hosts: vec![host], facts }),
            }
        }
        groups
    }
}

/// Names of facts with their titles, in the order of the sections. Other facts follow under their own names.
pub const TITLES: [(&str, &str); 26] = [
    ("commit", "commit"),
    ("compiler", "compiler"),
    ("device", "MPI device"),
    ("transport", "transport"),
    ("library_files", "libraries"),
    ("library_compiler", "MPI's compiler"),
    ("library_configuration", "MPI's configuration"),
    ("cpu", "CPU"),
    ("microcode", "microcode"),
    ("sockets", "sockets"),
    ("cores", "cores"),
    ("threads", "hardware threads"),
    ("smt", "SMT"),
    ("numa", "NUMA"),
    ("governor", "governor"),
    ("turbo", "turbo"),
    ("cpu_quota", "CPU quota"),
    ("memory", "memory"),
    ("network", "network"),
    ("tcp_congestion", "TCP's congestion control"),
    ("os", "operating system"),
    ("kernel", "kernel"),
    ("kernel_command_line", "kernel command line"),
    ("virtual_machine", "virtual machine"),
    ("container", "container"),
    ("mpi_settings", "MPI's settings"),
];

/// Returns the title of a fact. Of one without a title, its words; a name with a blank begins with that of a device.
pub fn title_of(name: &str) -> String {
    match TITLES.iter().find(|(known, _)| *known == name) {
        Some((_, title)) => (*title).to_owned(),
        None if name.contains(' ') => name.to_owned(),
        None => name.replace('_', " "),
    }
}

#[cfg(test)]
mod tests {
    use crate::fact::*;

    fn facts(cpu: &str) -> Facts {
        let governor = Fact::new(None::<String>, "no cpufreq");
        [("cpu".to_owned(), Fact::Known(cpu.into())), ("governor".to_owned(), governor)].into()
    }

    #[test]
    fn facts_are_received_as_they_were_sent() {
        let sent = facts("a").iter().map(|(name, fact)| (name.clone(), fact.sent())).collect();
        assert_eq!(received(sent), facts("a"));
    }

    #[test]
    fn equal_hosts_form_a_group() {
        let hosts = [("n01", "a"), ("n02", "b"), ("n03", "a")].map(|(host, cpu)| (host.into(), facts(cpu)));
        let groups = HostFacts::grouped(hosts);
        let named: Vec<&[String]> = groups.iter().map(|group| group.hosts.as_slice()).collect();
        assert_eq!(named, [&["n01", "n03"][..], &["n02"][..]]);
        assert_eq!(groups[1].facts["cpu"].known(), Some("b"));
        assert_eq!(groups[1].facts["governor"].known(), None);
    }
}
