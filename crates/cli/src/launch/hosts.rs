//! Hosts of a job, as the user names them on the command line or in a host file, each with its number of ranks.

use ombx_core::{
    error::{Error, Result},
    system::{host_name::check_host, node_set},
};

use super::hostfile::Hostfile;
use crate::arguments::start::StartArgs;

/// Maximum number of ranks that an entry may give to a host.
const MOST_SLOTS: u32 = 4096;

/// How a program that starts ranks wants hosts to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Notation {
    /// The mpiexec of MPICH and its derivatives: `n01:2`, in files also with `user=` and `binding=`.
    Hydra,
    /// Open MPI: `n01:2` on the command line, `n01 slots=2` in files.
    OpenMpi,
    /// Ranks over sockets: all of these, and `n01 2`.
    Sockets,
    /// Slurm, which knows its hosts and checks them itself.
    Slurm,
}

/// A host, with the number of ranks that it gets before the next one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Host {
    pub(crate) name: String,
    /// `None` if the entry does not say.
    pub(crate) slots: Option<u32>,
}

/// Returns the hosts of a job; none if they are left to the launcher.
///
/// # Errors
/// Usage error: an entry is no host, or its number of ranks is none. It names the file and the line.
pub(crate) fn hosts(start: &StartArgs, notation: Notation) -> Result<Vec<Host>> {
    if let Some(file) = &start.hostfile {
        let lines = Hostfile::read(file)?.each(|line| line_of_file(line, notation))?;
        return Ok(lines.concat());
    }
    let each = start.hosts().iter().map(|text| match notation {
        Notation::Slurm => Ok(Host { name: text.clone(), slots: None }),
        _ => host(text).map_err(|e| e.within("--hosts")),
    });
    each.collect()
}

/// Returns the hosts that a launcher gets on its command line, as `n01` or `n01:4`: those of `--hosts`, and those of a host file with
/// ranges, which launchers do not know. None if the launcher reads the host file itself.
#[cfg(feature = "mpi")]
pub(crate) fn for_command_line(start: &StartArgs, notation: Notation) -> Result<Vec<String>> {
    let Some(file) = &start.hostfile else { return Ok(start.hosts().to_vec()) };
    let lines = Hostfile::read(file)?.each(|line| {
        let (first, other) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        match node_set::has_range(first) {
            true if other.contains("user=") || other.contains("binding=") => Err(Error::usage(format!(
                "{line:?} has a range beside user= or binding=: write a line for each host"
            ))),
            has_range => Ok(has_range),
        }
    })?;
    if !lines.contains(&true) {
        return Ok(Vec::new());
    }
    let text = |Host { name, slots }: Host| slots.map_or(name.clone(), |slots| format!("{name}:{slots}"));
    Ok(hosts(start, notation)?.into_iter().map(text).collect())
}

/// Reads a line of a host file, which names one host, several or a range.
pub(crate) fn line_of_file(text: &str, notation: Notation) -> Result<Vec<Host>> {
    let mut words = text.split_whitespace();
    let first = words.next().unwrap_or_default();
    if notation == Notation::Slurm {
        return Ok(vec![Host { name: first.to_owned(), slots: None }]);
    }
    node_set::expand(first)?.iter().map(|first| host_of_line(first, words.clone(), text, notation)).collect()
}

/// Returns a host of a line. `others` are the words behind its first one.
fn host_of_line<'a>(
    first: &str,
    others: impl Iterator<Item = &'a str>,
    text: &str,
    notation: Notation,
) -> Result<Host> {
    let mut host = host(first)?;
    for other in others {
        let slots = other.strip_prefix("slots=");
        let bad = |why: &str| Err(Error::usage(format!("{text:?} {why}")));
        match notation {
            Notation::Hydra if other.starts_with("user=") || other.starts_with("binding=") => {}
            Notation::Hydra => {
                return bad("is not a host, host:N or \"host:N user=NAME\", as mpiexec of MPICH needs it");
            }
            Notation::OpenMpi if host.slots.is_some() && slots.is_some() => {
                return bad("gives two numbers of ranks");
            }
            Notation::OpenMpi => match slots {
                Some(count) => host.slots = Some(number(text, count)?),
                None if ["max_slots=", "max-slots=", "slots_max="]
                    .iter()
                    .any(|name| other.starts_with(name)) =>
                {
                    number(text, other.split_once('=').map_or("", |(_, count)| count))?;
                }
                None => {}
            },
            _ if host.slots.is_some() => return bad("gives two numbers of ranks"),
            _ => host.slots = Some(number(text, slots.unwrap_or(other))?),
        }
    }
    let has_slots = || text.split_whitespace().any(|word| word.starts_with("slots="));
    if notation == Notation::OpenMpi && host.slots.is_some() && !has_slots() {
        return Err(Error::usage(format!(
            "{text:?} is written \"{} slots=N\" in a host file of Open MPI",
            host.name
        )));
    }
    Ok(host)
}

/// Reads `host` or `host:N`.
fn host(text: &str) -> Result<Host> {
    let host = |name: &str, slots| Ok(Host { name: check_host(name)?.to_owned(), slots });
    // An IPv6 address has more than one colon.
    match text.split_once(':') {
        Some((name, slots)) if !slots.contains(':') && !name.is_empty() => {
            host(name, Some(number(text, slots)?))
        }
        _ => host(text, None),
    }
}

fn number(text: &str, slots: &str) -> Result<u32> {
    let slots = ombx_core::unit::digits(slots).filter(|slots| (1..=MOST_SLOTS).contains(slots));
    slots.ok_or_else(|| {
        Error::usage(format!("{text:?}: the number of ranks on a host is a number from 1 to {MOST_SLOTS}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, notation: Notation) -> Option<(String, Option<u32>)> {
        let hosts = line_of_file(text, notation).ok()?;
        let names: Vec<&str> = hosts.iter().map(|host| host.name.as_str()).collect();
        Some((names.join(" "), hosts.first()?.slots))
    }

    #[test]
    fn each_launcher_has_its_notation() {
        use Notation::{Hydra, OpenMpi, Slurm, Sockets};
        for (text, accepted) in [
            ("n01", &[Hydra, OpenMpi, Sockets, Slurm][..]),
            ("me@n01", &[Hydra, OpenMpi, Sockets, Slurm]),
            ("fe80::1", &[Hydra, OpenMpi, Sockets, Slurm]),
            ("n01:4", &[Hydra, Sockets, Slurm]),
            ("n01:4 user=me", &[Hydra, Slurm]),
            ("n01 slots=4", &[OpenMpi, Sockets, Slurm]),
            ("n01 slots=4 max_slots=8", &[OpenMpi, Slurm]),
            ("n01 4", &[OpenMpi, Sockets, Slurm]),
            ("n[01-04]", &[Hydra, OpenMpi, Sockets, Slurm]),
            ("n[01-04]:2", &[Hydra, Sockets, Slurm]),
            ("n[01-04,07] slots=2", &[OpenMpi, Sockets, Slurm]),
            ("n[04-01]", &[Slurm]),
            ("n[01-04", &[Slurm]),
            ("n01*4", &[Slurm]),
        ] {
            for notation in [Hydra, OpenMpi, Sockets, Slurm] {
                assert_eq!(
                    read(text, notation).is_some(),
                    accepted.contains(&notation),
                    "{text} {notation:?}"
                );
            }
        }
        assert_eq!(read("n01:4", Hydra), Some(("n01".into(), Some(4))));
        assert_eq!(read("n01 slots=4", OpenMpi), Some(("n01".into(), Some(4))));
        assert_eq!(read("n01 4", Sockets), Some(("n01".into(), Some(4))));
        assert_eq!(read("fe80::1", Hydra), Some(("fe80::1".into(), None)));
        assert_eq!(read("n[01-02,04] slots=4", OpenMpi), Some(("n01 n02 n04".into(), Some(4))));
        assert_eq!(read("me@n[9-10]:2", Sockets), Some(("me@n9 me@n10".into(), Some(2))));
    }

    #[test]
    fn numbers_of_ranks_are_checked() {
        for text in ["n01:0", "n01:-1", "n01:x", "n01:", "n01:4097", "n01:+2", "-x", "a;b", ""] {
            for notation in [Notation::Hydra, Notation::OpenMpi, Notation::Sockets] {
                assert_eq!(read(text, notation), None, "{text} {notation:?}");
            }
        }
        for text in ["n01 slots=0", "n01 slots=-1", "n01 slots=", "n01 slots=2 max_slots=0", "n01 slots=1-4"]
        {
            assert_eq!(read(text, Notation::OpenMpi), None, "{text}");
        }
        assert_eq!(read("n01 1 2", Notation::Sockets), None);
    }

    #[test]
    fn an_error_in_a_host_file_names_the_line() {
        let file = Hostfile::parse("f", "n01\nn02:0 # two").unwrap();
        let error = file.each(|line| line_of_file(line, Notation::Hydra)).unwrap_err();
        assert!(error.to_string().starts_with("f, line 2"), "{error}");
        assert!(Hostfile::parse("f", "# none\n\n").is_err());
    }
}
