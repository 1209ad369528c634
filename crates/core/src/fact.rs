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
    pub fn of(value: Option<impl Into<String>>, reason: &str) -> Fact {
        value.map_or_else(|| Fact::Unknown { reason: reason.to_owned() }, |value| Fact::Known(value.into()))
    }

    /// Returns the fact if it is known.
    pub fn known(&self) -> Option<&str> {
        match self {
            Fact::Known(value) => Some(value),
            Fact::Unknown { .. } => None,
        }
    }
}

/// Facts by name, such as `cpu`.
pub type Facts = BTreeMap<String, Fact>;

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

/// Encodes facts as texts: the name, `=` or `?`, and the value or the reason.
pub(crate) fn to_texts(facts: &Facts) -> Vec<&str> {
    let texts = facts.iter().flat_map(|(name, fact)| match fact {
        Fact::Known(value) => [name.as_str(), "=", value],
        Fact::Unknown { reason } => [name.as_str(), "?", reason],
    });
    texts.collect()
}

/// Decodes what [`to_texts`] has encoded.
pub(crate) fn from_texts(texts: &[String]) -> Option<Facts> {
    let fact = |text: &[String]| match text {
        [name, kind, value] if kind == "=" => Some((name.clone(), Fact::Known(value.clone()))),
        [name, kind, value] if kind == "?" => Some((name.clone(), Fact::Unknown { reason: value.clone() })),
        _ => None,
    };
    texts.chunks(3).map(fact).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(cpu: &str) -> Facts {
        let governor = Fact::of(None::<String>, "no cpufreq");
        [("cpu".to_owned(), Fact::Known(cpu.into())), ("governor".to_owned(), governor)].into()
    }

    #[test]
    fn facts_are_read_as_they_were_written() {
        let texts: Vec<String> = to_texts(&facts("a")).into_iter().map(str::to_owned).collect();
        assert_eq!(from_texts(&texts), Some(facts("a")));
        assert_eq!(from_texts(&texts[..2]), None);
        assert_eq!(from_texts(&["cpu".into(), "!".into(), "a".into()]), None);
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
