//! Parsers of numbers, days, hosts, programs and network interfaces. What goes on to launchers is refused if a launcher could take it for
//! an option, or a shell for a command.

use std::{fmt::Display, io::Read, ops::RangeInclusive, path::Path, str::FromStr};

use ombx_host::{
    host_name::{check_host, is_plain},
    node_set,
};
use ombx_record::{
    regular_file::{LONGEST_TEXT, open_found},
    unit::digits,
};

/// Hosts of a list, each as often as it is named.
#[derive(Debug, Clone, Default)]
pub(crate) struct HostList(pub(crate) Vec<String>);

/// Bytes of a file that are read to see whether it lists hosts.
const BEGINNING: u64 = 4096;

/// Accepts a number within a range, written as digits only.
pub(crate) fn number<N>(range: RangeInclusive<N>) -> impl Fn(&str) -> Result<N, String> + Clone
where
    N: FromStr + PartialOrd + Display,
    RangeInclusive<N>: Clone,
{
    move |text: &str| {
        let number = digits(text).filter(|number| range.contains(number));
        number.ok_or_else(|| format!("not a number from {} to {}", range.start(), range.end()))
    }
}

/// Accepts a day, written as `2026-03-01`.
pub(crate) fn date(text: &str) -> Result<String, String> {
    match text.parse::<jiff::civil::Date>() {
        Ok(day) if day.to_string() == text => Ok(text.to_owned()),
        _ => Err("not a day such as 2026-03-01".into()),
    }
}

/// Returns the hosts of a list such as `n01,n02` or `n[01-16,20]`.
pub(super) fn hosts(text: &str) -> Result<HostList, String> {
    let names = node_set::expand(text).map_err(|e| e.to_string())?;
    // Slurm writes n01*4 for four ranks on n01.
    let host = |name: &str| name.split('*').next().unwrap_or_default().to_owned();
    if let Some(file) = names.iter().find(|name| is_host_file(name)) {
        return Err(format!("{file} is a file: give it by --hostfile {file}"));
    }
    match names.iter().find(|name| check_host(&host(name)).is_err()) {
        None => Ok(HostList(names)),
        Some(name) => Err(format!("{name:?} is not a host name")),
    }
}

/// Returns whether a name is that of a file that lists hosts: its first word is a host. Nobody said that it is a file: it may be anything.
fn is_host_file(name: &str) -> bool {
    let mut start = String::new();
    let read = open_found(Path::new(name), LONGEST_TEXT)
        .and_then(|file| file.take(BEGINNING).read_to_string(&mut start));
    let mut lines = start.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let first = lines.next().and_then(|line| line.split([' ', '\t', ':', ',', '=']).next());
    read.is_ok() && first.is_some_and(|word| check_host(word).is_ok())
}

/// Accepts the name or path of a program. Launchers split it at blanks.
pub(super) fn program(text: &str) -> Result<String, String> {
    if is_plain(text, "-._/+@") {
        Ok(text.to_owned())
    } else {
        Err("not the name or path of a program without blanks".into())
    }
}

/// Accepts the name of a network interface, which the kernel limits to 15 bytes.
pub(super) fn interface(text: &str) -> Result<String, String> {
    if is_plain(text, "-._:") && text.len() < 16 {
        Ok(text.to_owned())
    } else {
        Err("not the name of a network interface".into())
    }
}
