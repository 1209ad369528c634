//! Facts about a host, and the differences between hosts that prevent a measurement.

use std::collections::BTreeMap;

use serde::Serialize;

/// Facts by name; a name may have several values.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub(crate) struct Facts(BTreeMap<String, Vec<String>>);

impl Facts {
    /// Parses lines of a name, a blank and a value.
    pub(super) fn parse(text: &str) -> Self {
        let mut facts = Self::default();
        for line in text.lines() {
            let (name, value) = line.split_once(' ').unwrap_or((line, ""));
            facts.add(name, value.trim());
        }
        facts
    }

    pub(super) fn add(&mut self, name: &str, value: &str) {
        self.0.entry(name.to_owned()).or_default().push(value.to_owned());
    }

    /// Returns the first value of a name.
    pub(crate) fn first(&self, name: &str) -> Option<&str> {
        self.all(name).first().map(String::as_str)
    }

    fn all(&self, name: &str) -> &[String] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }
}

/// Returns the hosts that prevent a measurement, each with the reason. `checksum` is that of ombx on this machine.
pub(super) fn differences(facts: &[Facts], checksum: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (host, own) in facts.iter().enumerate() {
        let mut add = |reason: String| found.push((host, reason));
        if own.first("binary") != Some(checksum) {
            add("its ombx differs from the one on this machine. Use the same build on all hosts.".into());
        } else if let Some(message) = own.first("broken") {
            add(format!("ombx does not start there: {message}. Check `setup` in the inventory."));
        }
        for name in own.all("unresolved") {
            add(format!("it cannot resolve the host name {name}. Check its /etc/hosts or DNS."));
        }
        if own.all("library") != facts[0].all("library") {
            let list = |facts: &Facts| match facts.all("library") {
                [] => "none".to_owned(),
                libraries => libraries.join(", "),
            };
            add(format!("its MPI library is {}, but the first host has {}", list(own), list(&facts[0])));
        }
        let same = |name: &str| facts[..host].iter().any(|other| other.first(name) == own.first(name));
        if same("boot_id") && same("hostname") {
            add("it is the same machine as another host of the inventory. Remove one of them.".into());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(name: &str, value: &str) -> Facts {
        let mut facts = Facts::default();
        for (usual, text) in [("binary", "1"), ("library", "/l/libmpi.so 7")] {
            facts.add(usual, if usual == name { value } else { text });
        }
        if !["binary", "library"].contains(&name) {
            facts.add(name, value);
        }
        facts
    }

    #[test]
    fn hosts_that_differ_are_named() {
        let good = [facts("boot_id", "a"), facts("boot_id", "b")];
        assert!(differences(&good, "1").is_empty());
        for (name, value, part) in [
            ("binary", "2", "ombx differs"),
            ("library", "/l/libmpi.so 8", "MPI library"),
            ("unresolved", "n3", "name n3"),
            ("broken", "no libmpi.so.12", "does not start"),
            ("boot_id", "a", "same machine"),
        ] {
            let found = differences(&[good[0].clone(), facts(name, value)], "1");
            assert!(found.len() == 1 && found[0].0 == 1 && found[0].1.contains(part), "{found:?}");
        }
    }
}
