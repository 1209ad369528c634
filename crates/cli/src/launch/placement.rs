//! Placement of ranks over sockets on hosts.

use std::collections::BTreeMap;

use ombx_core::{
    error::{Error, Result},
    system::host_name::check_host,
};
use ombx_sockets::host;

use super::hostfile::Hostfile;
use crate::arguments::start::StartArgs;

/// Maximum number of ranks. The coordinator has a thread and a connection for each.
const MOST_RANKS: u32 = 4096;

/// Place of one rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Placement {
    /// Host, or `None` for this one.
    pub(crate) host: Option<String>,
    /// Number of this rank among those of its host, and their count.
    pub(crate) on_host: (u32, u32),
}

/// Returns the place of each rank. Ranks fill the slots of each host in turn, and begin again at the first.
pub(crate) fn of_ranks(start: &StartArgs, ranks: u32) -> Result<Vec<Placement>> {
    let hosts = match &start.hostfile {
        Some(file) => Hostfile::read(file)?.each(host_and_slots)?,
        None => start.hosts.iter().map(|text| host_and_slots(text)).collect::<Result<_>>()?,
    };
    if ranks > MOST_RANKS {
        return Err(Error::usage(format!(
            "-n {ranks} is too large: sockets connect at most {MOST_RANKS} ranks"
        )));
    }
    let hosts = if hosts.is_empty() { vec![("localhost".to_owned(), 1)] } else { hosts };
    let slots = hosts.iter().flat_map(|(host, slots)| std::iter::repeat_n(host, *slots as usize));
    let names: Vec<&String> = slots.cycle().take(ranks as usize).collect();
    let mut counts: BTreeMap<&str, (bool, u32)> = BTreeMap::new();
    for name in &names {
        counts.entry(name).or_insert_with(|| (host::is_here(name), 0)).1 += 1;
    }
    let mut placed: BTreeMap<&str, u32> = BTreeMap::new();
    let placements = names.into_iter().map(|name| {
        let (here, count) = counts[name.as_str()];
        let before = placed.entry(name).or_insert(0);
        *before += 1;
        Placement { host: (!here).then(|| name.clone()), on_host: (*before - 1, count) }
    });
    Ok(placements.collect())
}

/// Reads `host`, `host:slots`, `host slots=N` or `host N`, the formats of MPI launchers.
pub(crate) fn host_and_slots(text: &str) -> Result<(String, u32)> {
    let bad = || Error::usage(format!("{text:?} is not a host, host:slots or \"host slots=N\""));
    let mut words = text.split_whitespace();
    let first = words.next().ok_or_else(bad)?;
    let (name, slots) = match (first.split_once(':'), words.next()) {
        // An IPv6 address has more than one colon.
        (Some((name, slots)), None) if !slots.contains(':') && !name.is_empty() => (name, slots),
        (_, Some(word)) => (first, word.strip_prefix("slots=").unwrap_or(word)),
        _ => (first, "1"),
    };
    if words.next().is_some() {
        return Err(bad());
    }
    let slots = slots.parse().ok().filter(|slots| (1..=4096).contains(slots)).ok_or_else(bad)?;
    Ok((check_host(name)?.to_owned(), slots))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_slots() {
        for (text, name, slots) in [
            ("n01", "n01", 1),
            ("n01:4", "n01", 4),
            ("n01 slots=2", "n01", 2),
            ("n01 3", "n01", 3),
            ("fe80::1", "fe80::1", 1),
        ] {
            assert_eq!(host_and_slots(text).unwrap(), (name.into(), slots), "{text}");
        }
        for text in ["", "-x", "n01:0", "n01:x", "n01 slots=-1", "n01 1 2", "a;b", "n01:99999"] {
            assert!(host_and_slots(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_error_in_a_host_file_names_the_line() {
        assert!(Hostfile::parse("f", "# none\n\n").is_err());
        let file = Hostfile::parse("f", "n01\nn02 0 # two").unwrap();
        assert!(file.each(host_and_slots).unwrap_err().to_string().starts_with("f, line 2"));
    }
}
