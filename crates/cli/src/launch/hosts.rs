//! Hosts of a job, as the user names them on the command line or in a host file, and how many ranks each gets.
//!
//! ombx reads every form that launchers accept, and passes names and numbers of ranks to each launcher in its own form. So a host file
//! of one launcher serves the others, and ranks over sockets.

use ombx_core::{
    error::{Error, Result},
    system::{host_name::check_host, node_set},
    unit,
};

use super::hostfile::Hostfile;
use crate::arguments::start::StartArgs;

/// Maximum number of ranks that an entry may give to a host.
const MOST_SLOTS: u32 = 4096;

/// Words of host files of Open MPI before the number of ranks on a host, and before the largest number.
const SLOTS: [&str; 3] = ["slots", "count", "cpu"];
const MOST: [&str; 4] = ["max_slots", "slots_max", "max_count", "max_cpu"];
/// Words of host files of Hydra and Open MPI before the user's name on a host.
const USER: [&str; 3] = ["user", "username", "user_name"];

/// A host, with the number of ranks that it gets before the next one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Host {
    /// Name or address, with the user's name there before an `@` if one is given.
    pub(crate) name: String,
    /// `None` if the entry does not say.
    pub(crate) slots: Option<u32>,
    /// Number of ranks that the host may have at most, if the entry says so.
    most: Option<u32>,
}

impl Host {
    pub(crate) fn new(name: &str) -> Host {
        Host { name: name.to_owned(), slots: None, most: None }
    }

    /// Returns the name without that of the user.
    #[cfg(feature = "mpi")]
    pub(crate) fn address(&self) -> &str {
        self.name.split_once('@').map_or(&self.name, |(_, host)| host)
    }
}

/// Returns the hosts of a job; none if they are left to the launcher.
///
/// # Errors
/// Usage error: an entry is no host, or its number of ranks is none. It names the file and the line.
pub(crate) fn hosts(start: &StartArgs) -> Result<Vec<Host>> {
    match &start.hostfile {
        Some(file) => Ok(Hostfile::read(file)?.each(hosts_of_line)?.concat()),
        None => start.hosts().iter().map(|text| host(text).map_err(|e| e.within("--hosts"))).collect(),
    }
}

/// Returns the number of ranks that the hosts of a job have room for: their slots, and one on each host without; 0 without hosts.
pub(crate) fn slots(start: &StartArgs) -> Result<u32> {
    Ok(hosts(start)?.iter().fold(0, |sum, host| sum.saturating_add(host.slots.unwrap_or(1))))
}

/// Returns the number of ranks of each host. They fill the slots of one host after the other, and begin again at the first. If no host
/// has slots, all get the same number, or the first ones one more.
///
/// # Errors
/// Usage error: a host would have more ranks than its entry allows.
pub(crate) fn ranks_by_host(hosts: &[Host], ranks: u32) -> Result<Vec<u32>> {
    let slots = |host: &Host| u64::from(host.slots.unwrap_or(1));
    let all = hosts.iter().map(slots).sum::<u64>().max(1);
    let (rounds, mut rest) = (u64::from(ranks) / all, u64::from(ranks) % all);
    let count = |host: &Host| {
        let more = rest.min(slots(host));
        rest -= more;
        rounds * slots(host) + more
    };
    let counts: Vec<u32> =
        hosts.iter().map(count).map(|count| u32::try_from(count).unwrap_or(u32::MAX)).collect();
    match hosts.iter().zip(&counts).find(|(host, count)| host.most.is_some_and(|most| **count > most)) {
        Some((host, count)) => Err(Error::usage(format!(
            "{count} ranks on {} are more than the host file allows there: give a smaller -n",
            host.name
        ))),
        None => Ok(counts),
    }
}

/// Reads a line of a host file, which names one host, several or a range.
pub(crate) fn hosts_of_line(text: &str) -> Result<Vec<Host>> {
    let text = joined(text);
    let mut words = text.split_whitespace();
    let first = words.next().unwrap_or_default();
    if first.starts_with(['^', '+']) {
        return Err(Error::usage(format!(
            "{first:?} chooses hosts of an allocation of Open MPI: name the hosts that have ranks"
        )));
    }
    node_set::expand(first)?.iter().map(|first| host_of_line(first, words.clone(), &text)).collect()
}

/// Removes the blanks around `=` and replaces `-` before it, as `max-slots = 4` is `max_slots=4`.
fn joined(text: &str) -> String {
    let parts: Vec<&str> = text.split('=').map(str::trim).collect();
    let (last, before) = parts.split_last().map_or(("", &[][..]), |(last, before)| (*last, before));
    let name = |part: &&str| match part.rsplit_once(char::is_whitespace) {
        Some((before, name)) => format!("{before} {}=", name.replace('-', "_")),
        None => format!("{part}="),
    };
    before.iter().map(name).collect::<String>() + last
}

/// Returns a host of a line. `others` are the words behind its first one.
fn host_of_line<'a>(first: &str, others: impl Iterator<Item = &'a str>, text: &str) -> Result<Host> {
    let mut host = host(first)?;
    for other in others {
        let (name, value) = other.split_once('=').unwrap_or(("slots", other));
        if SLOTS.contains(&name) && (other.contains('=') || unit::digits::<u64>(other).is_some()) {
            if host.slots.is_some() {
                return Err(Error::usage(format!("{text:?} gives two numbers of ranks")));
            }
            host.slots = Some(number(text, value)?);
        } else if MOST.contains(&name) {
            host.most = Some(number(text, value)?);
        } else if USER.contains(&name) && !host.name.contains('@') {
            host.name = check_host(&format!("{value}@{}", host.name))?.to_owned();
        } else {
            return Err(Error::usage(format!(
                "{text:?}: {other:?} is not read. Write a host, host:N, \"host slots=N\" or \"host user=NAME\", and several hosts \
                 in several lines or between commas; --bind chooses the cores"
            )));
        }
    }
    match host.slots.zip(host.most) {
        Some((slots, most)) if slots > most => {
            Err(Error::usage(format!("{text:?} gives more slots than it allows ranks")))
        }
        _ => Ok(host),
    }
}

/// Reads `host`, `host:N` or `host*N`.
fn host(text: &str) -> Result<Host> {
    let host = |name: &str, slots| Ok(Host { slots, ..Host::new(check_host(name)?) });
    // An IPv6 address has more than one colon.
    match text.split_once('*').or_else(|| text.split_once(':')) {
        Some((name, slots)) if !slots.contains(':') && !name.is_empty() => {
            host(name, Some(number(text, slots)?))
        }
        _ => host(text, None),
    }
}

fn number(text: &str, slots: &str) -> Result<u32> {
    let slots = unit::digits(slots).filter(|slots| (1..=MOST_SLOTS).contains(slots));
    slots.ok_or_else(|| {
        Error::usage(format!("{text:?}: the number of ranks on a host is a number from 1 to {MOST_SLOTS}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<(String, Option<u32>)> {
        let hosts = hosts_of_line(text).ok()?;
        let names: Vec<&str> = hosts.iter().map(|host| host.name.as_str()).collect();
        Some((names.join(" "), hosts.first()?.slots))
    }

    #[test]
    fn every_form_that_a_launcher_accepts_is_read() {
        for (text, names, slots) in [
            ("n01", "n01", None),
            ("me@n01", "me@n01", None),
            ("fe80::1", "fe80::1", None),
            ("n01:4", "n01", Some(4)),
            ("n01*4", "n01", Some(4)),
            ("n01 4", "n01", Some(4)),
            ("n01:4 user=me", "me@n01", Some(4)),
            ("n01 slots=4", "n01", Some(4)),
            ("n01 slots = 4 max-slots = 8", "n01", Some(4)),
            ("n01 max_slots=8", "n01", None),
            ("n01 count=1 username=me", "me@n01", Some(1)),
            ("n01,n02", "n01 n02", None),
            ("n01,n02 slots=2", "n01 n02", Some(2)),
            ("n[01-04]", "n01 n02 n03 n04", None),
            ("n[01-02]:2", "n01 n02", Some(2)),
            ("me@n[9-10]:2", "me@n9 me@n10", Some(2)),
            ("n[01-02,04] slots=4", "n01 n02 n04", Some(4)),
            ("10.0.0.1:2", "10.0.0.1", Some(2)),
        ] {
            assert_eq!(read(text), Some((names.into(), slots)), "{text}");
        }
    }

    #[test]
    fn other_forms_are_refused() {
        for text in
            ["n01:0", "n01:-1", "n01:x", "n01:", "n01:4097", "n01:+2", "-x", "a;b", "", "n[04-01]", "n[01"]
        {
            assert_eq!(read(text), None, "{text}");
        }
        for text in ["n01 slots=0", "n01 slots=-1", "n01 slots=", "n01 slots=2 max_slots=0", "n01 slots=1-4"]
        {
            assert_eq!(read(text), None, "{text}");
        }
        for text in [
            "n01 1 2",
            "n01:1 slots=1",
            "n01 n02",
            "n01 binding=rr",
            "rank 0=n01 slot=0",
            "n01 slots=4 max_slots=2",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
        for text in ["^n01", "+n1"] {
            let error = hosts_of_line(text).unwrap_err().to_string();
            assert!(error.contains("allocation"), "{error}");
        }
    }

    #[test]
    fn ranks_fill_slots_and_are_spread_without() {
        let counts = |lines: &[&str], ranks| {
            let hosts: Vec<Host> = lines.iter().flat_map(|line| hosts_of_line(line).unwrap()).collect();
            ranks_by_host(&hosts, ranks).ok()
        };
        assert_eq!(counts(&["n[1-4]"], 4), Some(vec![1, 1, 1, 1]));
        assert_eq!(counts(&["n[1-4]"], 2), Some(vec![1, 1, 0, 0]));
        assert_eq!(counts(&["n[1-4]"], 6), Some(vec![2, 2, 1, 1]));
        assert_eq!(counts(&["n[1-2] slots=2"], 3), Some(vec![2, 1]));
        assert_eq!(counts(&["n1:3", "n2"], 6), Some(vec![5, 1]));
        assert_eq!(counts(&["n1 max_slots=2"], 2), Some(vec![2]));
        assert_eq!(counts(&["n1 max_slots=2"], 3), None);
    }

    #[test]
    fn an_error_in_a_host_file_names_the_line() {
        let file = Hostfile::parse("f", "n01\nn02:0 # two\n").unwrap();
        let error = file.each(hosts_of_line).unwrap_err();
        assert!(error.to_string().starts_with("f, line 2"), "{error}");
        assert!(Hostfile::parse("f", "# none\n\n// none\n").is_err());
    }
}
