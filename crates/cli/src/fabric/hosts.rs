//! On which host each rank starts: a list, or a file with a host on each line.

use std::{collections::BTreeMap, fs, path::Path};

use ombx_core::{
    error::{Error, Result},
    system::host_name::check_host,
};
use ombx_sockets::host;

use crate::args::StartArgs;

/// The most ranks of a session: the coordinator has a thread and a connection for each.
const MOST_RANKS: u32 = 4096;

/// A rank's place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seat {
    /// Its host, if not this one.
    pub(crate) host: Option<String>,
    /// Which of its host's ranks it is, and how many there are.
    pub(crate) of_host: (u32, u32),
}

/// The places of ranks: round the hosts in turn, each taking as many as it has slots.
pub(crate) fn seats(start: &StartArgs, ranks: u32) -> Result<Vec<Seat>> {
    let listed = match &start.hostfile {
        Some(file) => read(file)?,
        None => start.hosts.iter().map(|text| entry(text)).collect::<Result<_>>()?,
    };
    if ranks > MOST_RANKS {
        return Err(Error::usage(format!(
            "-n {ranks} is too many: ranks over sockets are {MOST_RANKS} at the most"
        )));
    }
    let hosts = if listed.is_empty() { vec![("localhost".to_owned(), 1)] } else { listed };
    let slots = hosts.iter().flat_map(|(host, slots)| std::iter::repeat_n(host, *slots as usize));
    let names: Vec<&String> = slots.cycle().take(ranks as usize).collect();
    let mut of_hosts: BTreeMap<&str, (bool, u32)> = BTreeMap::new();
    for name in &names {
        of_hosts.entry(name).or_insert_with(|| (host::is_here(name), 0)).1 += 1;
    }
    let mut seated: BTreeMap<&str, u32> = BTreeMap::new();
    let seats = names.into_iter().map(|name| {
        let (here, all) = of_hosts[name.as_str()];
        let before = seated.entry(name).or_insert(0);
        *before += 1;
        Seat { host: (!here).then(|| name.clone()), of_host: (*before - 1, all) }
    });
    Ok(seats.collect())
}

fn read(file: &Path) -> Result<Vec<(String, u32)>> {
    let text = fs::read_to_string(file)
        .map_err(|e| Error::usage(format!("the host file {} cannot be read: {e}", file.display())))?;
    listed(&text, &file.display().to_string())
}

/// The hosts of a host file and their slots.
pub(super) fn listed(text: &str, file: &str) -> Result<Vec<(String, u32)>> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    let hosts: Vec<(String, u32)> = lines
        .zip(1..)
        .filter(|(line, _)| !line.is_empty())
        .map(|(line, number)| entry(line).map_err(|e| e.within(format!("{file}, line {number}"))))
        .collect::<Result<_>>()?;
    match hosts.is_empty() {
        true => Err(Error::usage(format!("the host file {file} names no host"))),
        false => Ok(hosts),
    }
}

/// `host`, `host:slots`, `host slots=N` or `host N`: the forms of MPI launchers.
fn entry(text: &str) -> Result<(String, u32)> {
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
            assert_eq!(entry(text).unwrap(), (name.into(), slots), "{text}");
        }
        assert!(listed("# none\n\n", "f").is_err());
        assert!(listed("n01\nn02 0 # two", "f").unwrap_err().to_string().starts_with("f, line 2"));
        for text in ["", "-x", "n01:0", "n01:x", "n01 slots=-1", "n01 1 2", "a;b", "n01:99999"] {
            assert!(entry(text).is_err(), "{text}");
        }
    }
}
