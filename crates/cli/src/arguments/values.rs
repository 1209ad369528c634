//! Parsers of numbers, days, hosts, programs and network interfaces. What goes on to launchers is refused if a launcher could take it for
//! an option, or a shell for a command.

use std::{cell::RefCell, fmt::Display, io::Read, ops::RangeInclusive, path::Path, str::FromStr};

use ombx_host::{
    host_name::{check_host, is_plain},
    node_set,
};
use ombx_record::{
    order::each_once,
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

thread_local! {
    /// What was typed for numbers that have been read as C reads them, and what was read.
    static READ_AS_C: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Accepts what a parser accepts, and whole numbers as `atoi` of C reads them: what follows a number is ignored. [`notes_of_numbers`] says
/// so.
pub(crate) fn as_in_c<T, E: Display>(
    parser: impl Fn(&str) -> Result<T, E> + Clone,
) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text: &str| parser(text).or_else(|error| read_as_c(text, whole, &parser, &error))
}

/// Accepts what a parser accepts, and numbers as `atof` of C reads them.
pub(crate) fn decimal_in_c<T, E: Display>(
    parser: impl Fn(&str) -> Result<T, E> + Clone,
) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text: &str| parser(text).or_else(|error| read_as_c(text, decimal, &parser, &error))
}

/// Reads a text whose numbers are as long as `length` says. Fails with the error of the whole text.
fn read_as_c<T, E: Display>(
    text: &str,
    length: fn(&str) -> usize,
    parser: impl Fn(&str) -> Result<T, E>,
    error: &E,
) -> Result<T, String> {
    let short = shortened(text, length);
    let value = parser(&short).map_err(|_| error.to_string())?;
    if text.trim().trim_start_matches('+') != short {
        READ_AS_C.with_borrow_mut(|notes| notes.push(format!("{text:?} is read as {short:?}")));
    }
    Ok(value)
}

/// Accepts a number within a range, as [`as_in_c`].
pub(crate) fn c_number<N>(range: RangeInclusive<N>) -> impl Fn(&str) -> Result<N, String> + Clone
where
    N: FromStr + PartialOrd + Display + Clone,
{
    as_in_c(number(range))
}

/// Returns a note for each value that was shortened while the words of this process were read.
pub(crate) fn notes_of_numbers(suite: &str) -> Vec<String> {
    let note = |read| format!("{read}: {suite} ignores what follows a number");
    each_once(READ_AS_C.take().into_iter().map(note))
}

/// Returns a list with each number as long as `length` says. Other parts are kept.
fn shortened(list: &str, length: fn(&str) -> usize) -> String {
    let part = |part: &str| {
        let (part, end) = part.split_at(part.len() - usize::from(part.ends_with([',', ':'])));
        let number = part.trim_start();
        let number = number.strip_prefix('+').unwrap_or(number);
        let length = length(number);
        format!("{}{end}", if length > 0 { &number[..length] } else { part })
    };
    list.split_inclusive([',', ':']).map(part).collect()
}

/// Returns the length of the whole number at the beginning of a text.
fn whole(text: &str) -> usize {
    let sign = usize::from(text.starts_with('-'));
    let digits = text[sign..].bytes().take_while(u8::is_ascii_digit).count();
    if digits > 0 { sign + digits } else { 0 }
}

/// Returns the length of the number at the beginning of a text, with its decimals and its exponent.
fn decimal(text: &str) -> usize {
    let most = text.bytes().take_while(|byte| byte.is_ascii_digit() || b"+-.eE".contains(byte)).count();
    (1..=most).rev().find(|length| text[..*length].parse::<f64>().is_ok()).unwrap_or(0)
}

/// Accepts a text with parts of which each number is whole, and the names of files.
pub(crate) fn whole_parts(text: &str) -> Result<String, String> {
    let names_file =
        |kind: &str| text.get(..kind.len()).is_some_and(|start| start.eq_ignore_ascii_case(kind));
    let is_whole = |part: &str| !part.starts_with(|c: char| c.is_ascii_digit()) || whole(part) == part.len();
    if ["indx:", "graph:"].into_iter().any(names_file) || text.split(':').all(is_whole) {
        Ok(text.to_owned())
    } else {
        Err("not a whole number".into())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_a_number_is_ignored_and_noted() {
        let iterations = as_in_c(number::<u64>(1..=1000));
        let read =
            ["10", "010", "+10", " 10", "10x", "10.9", "1e1", "10,000", "0x10", "-10", "x", "", "2000x"]
                .map(|text| iterations(text).ok());
        let ten = Some(10);
        assert_eq!(read, [ten, ten, ten, ten, ten, ten, Some(1), None, None, None, None, None, None]);
        let noted = notes_of_numbers("OMB");
        assert_eq!(noted.len(), 3, "{noted:?}");
        assert_eq!(noted[0], "\"10x\" is read as \"10\": OMB ignores what follows a number");
        assert_eq!(notes_of_numbers("OMB"), Vec::<String>::new());
    }

    #[test]
    fn every_number_of_a_list_ends_where_c_ends_it() {
        let seconds = decimal_in_c(|text: &str| text.parse::<f64>().map_err(|e| e.to_string()));
        assert_eq!(
            ["1.5s", "1e1s", "2.", ".5h"].map(|text| seconds(text).ok()),
            [1.5, 10.0, 2.0, 0.5].map(Some)
        );
        let parts = as_in_c(whole_parts);
        let read = ["vect:16a:8b", "cart:1:1.5", "2x:3", "indx:4.txt", "GRAPH:1.adj"]
            .map(|text| parts(text).unwrap());
        assert_eq!(read, ["vect:16:8", "cart:1:1", "2:3", "indx:4.txt", "GRAPH:1.adj"]);
        notes_of_numbers("IMB");
    }
}
