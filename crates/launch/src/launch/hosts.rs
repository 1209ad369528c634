//! Hosts of a job, as the user names them on the command line or in a host file, and how many ranks each gets.
//!
//! ombx reads every form that launchers accept, and passes names and numbers of ranks to each launcher in its own form. So a host file
//! of one launcher serves the others, and ranks over sockets.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io::{self, Read, Seek},
    path::Path,
    process::{Child, ExitStatus, Stdio},
    thread,
    time::Duration,
};

use ombx_host::{
    host_name::check_host,
    limits::{is_limit, start_error},
    node_set,
    remote_shell::RemoteShell,
    signals::end_with_this_thread,
    since::Since,
};
use ombx_record::{
    error::{Error, Result},
    order::sort_by_number,
    regular_file::{read_named, shown_name},
    unit,
};
use rustix::{
    fs::{MemfdFlags, memfd_create},
    process::Pid,
};

use crate::{
    build::{self, Build},
    launch::{orphans, start::Start},
    this_process,
};

/// Maximum number of ranks that an entry may give to a host.
const MOST_SLOTS: u32 = 4096;

/// Maximum number of hosts of a job.
const MOST_HOSTS: usize = 1 << 14;

/// Words of host files of Open MPI before the number of ranks on a host, and before the largest number.
const SLOTS: [&str; 4] = ["slots", "count", "cpu", "cpus"];
const MOST: [&str; 7] =
    ["max_slots", "slots_max", "max_count", "count_max", "max_cpu", "cpu_max", "max_cpus"];
/// Words of host files of Open MPI that describe the machine, and that start nothing.
const OF_MACHINE: [&str; 6] =
    ["boards", "board", "sockets", "socket", "sockets_per_board", "cores_per_socket"];
/// Start of a host of an allocation that Open MPI names by its number, as `+n0` or `+e`.
const RELATIVE: char = '+';
/// Start of a host that Open MPI leaves out.
const EXCLUDED: char = '^';
/// Words of host files of Hydra and Open MPI before the user's name on a host.
const USER: [&str; 3] = ["user", "username", "user_name"];

/// A host, with the number of ranks that it gets before the next one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// Name or address, with the user's name there before an `@` if one is given.
    pub name: String,
    /// `None` if the entry does not say.
    pub slots: Option<u32>,
    /// Number of ranks that the host may have at most, if the entry says so.
    most: Option<u32>,
    /// Binding and interface of its ranks in the words of Hydra.
    pub(crate) binding: Option<String>,
    pub(crate) interface: Option<String>,
}

impl Host {
    pub(crate) fn new(name: &str) -> Host {
        Host { name: name.to_owned(), slots: None, most: None, binding: None, interface: None }
    }

    /// Returns whether this is a host of an allocation without its name.
    pub(crate) fn is_relative(&self) -> bool {
        self.name.starts_with(RELATIVE)
    }

    /// Returns the name without that of the user.
    pub(crate) fn address(&self) -> &str {
        self.name.split_once('@').map_or(&self.name, |(_, host)| host)
    }
}

/// Returns the hosts of a job; none if they are left to the launcher.
///
/// # Errors
/// Usage error: an entry is no host, or its number of ranks is none. It names the file and the line.
pub(crate) fn hosts(start: &Start) -> Result<Vec<Host>> {
    let mut hosts = named_hosts(start)?;
    if hosts.len() > MOST_HOSTS {
        let count = hosts.len();
        return Err(Error::usage(format!(
            "{count} hosts are named: a job has at most {MOST_HOSTS}; name those that have ranks"
        )));
    }
    hosts.retain(|host| !start.left_out.contains(&host.name));
    Ok(hosts)
}

fn named_hosts(start: &Start) -> Result<Vec<Host>> {
    match &start.hostfile {
        Some(file) => {
            let name = shown_name(file);
            let text = read_named(file)
                .map_err(|e| Error::usage(format!("cannot read the host file {name}: {e}")))?;
            hosts_of_file(&name, &text)
        }
        None => start.hosts.iter().map(|text| host(text).map_err(|e| e.within("--hosts"))).collect(),
    }
}

/// Returns the number of ranks that the hosts of a job have room for: their slots, and one on each host without; 0 without hosts.
pub fn slots(start: &Start) -> Result<u32> {
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
fn hosts_of_line(text: &str) -> Result<Vec<Host>> {
    let text = joined(text);
    let mut words = text.split_whitespace();
    let first = words.next().unwrap_or_default();
    if first.starts_with(RELATIVE) {
        return Ok(vec![host_of_line(first, words, &text)?]);
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
        } else if name == "binding" && !value.is_empty() {
            host.binding = Some(value.to_owned());
        } else if name == "ifname" && !value.is_empty() {
            host.interface = Some(value.to_owned());
        } else if name == "port" {
            return Err(Error::usage(format!(
                "{text:?}: give the port of ssh in its configuration (Host {}, Port {value})",
                host.address()
            )));
        } else if !(OF_MACHINE.contains(&name) && unit::digits::<u64>(value).is_some()) {
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
    let host = |name: &str, slots| Ok(Host { slots, ..Host::new(check_name(name)?) });
    // An IPv6 address has more than one colon.
    match text.split_once('*').or_else(|| text.split_once(':')) {
        Some((name, slots)) if !slots.contains(':') && !name.is_empty() => {
            host(name, Some(number(text, slots)?))
        }
        _ => host(text, None),
    }
}

/// Checks the name of a host, or its number in an allocation: `+n3`, or `+e` for any without ranks.
fn check_name(name: &str) -> Result<&str> {
    let is_relative = match name.strip_prefix(RELATIVE).map(|rest| rest.split_at_checked(1)) {
        Some(Some(("n", number))) => unit::digits::<u32>(number).is_some(),
        Some(Some(("e", rest))) => rest.is_empty(),
        _ => false,
    };
    if is_relative { Ok(name) } else { check_host(name) }
}

fn number(text: &str, slots: &str) -> Result<u32> {
    let slots = unit::digits(slots).filter(|slots| (1..=MOST_SLOTS).contains(slots));
    slots.ok_or_else(|| {
        Error::usage(format!("{text:?}: the number of ranks on a host is a number from 1 to {MOST_SLOTS}"))
    })
}

/// Reads the text of a host file, which names a host at least. Errors name the file and the line.
pub fn hosts_of_file(name: &str, text: &str) -> Result<Vec<Host>> {
    let wrong = |why: &str| Err(Error::usage(format!("the host file {name} {why}")));
    if text.contains(|c: char| c.is_control() && !c.is_whitespace()) {
        return wrong("is not a text file");
    }
    let (mut hosts, mut excluded) = (Vec::new(), BTreeSet::new());
    // Editors of Windows begin a file with a byte order mark.
    let text = without_blocks(text.trim_start_matches('\u{feff}'));
    for (number, line) in (1..).zip(text.lines().map(before_comment)).filter(|(_, line)| !line.is_empty()) {
        let line = line.replace('"', "");
        let (line, is_excluded) =
            line.strip_prefix(EXCLUDED).map_or((line.as_str(), false), |line| (line, true));
        let of_line = hosts_of_line(line).map_err(|e| e.within(format!("{name}, line {number}")))?;
        if is_excluded {
            excluded.extend(of_line.into_iter().map(|host| host.name));
        } else {
            hosts.extend(of_line);
        }
    }
    hosts.retain(|host| !excluded.contains(host.address()) && !excluded.contains(&host.name));
    if hosts.is_empty() { wrong("names no host that has ranks") } else { Ok(hosts) }
}

/// Returns a text without comments between `/*` and `*/`. Lines stay lines.
fn without_blocks(text: &str) -> String {
    let mut parts = text.split("/*");
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (comment, rest) = part.split_once("*/").unwrap_or((part, ""));
        kept.extend(comment.chars().filter(|c| *c == '\n').chain([' ']));
        kept += rest;
    }
    kept
}

/// Returns a line without its comment.
fn before_comment(line: &str) -> &str {
    let end = line.find('#').into_iter().chain(line.find("//")).min();
    line[..end.unwrap_or(line.len())].trim()
}

/// Command that prints the name of the host, as ranks there report it.
const NAME: &str = "cat /proc/sys/kernel/hostname || true";

/// Returns the command line for the host. It prints the build of ombx there, if it has one at the same path, and the name of the host.
fn line() -> String {
    let program = this_process::executable().ok();
    match program.as_deref().and_then(Path::to_str).filter(|program| !program.contains(['\'', '\n', '!'])) {
        Some(program) => format!("'{program}' {}; {NAME}", build::SUBCOMMAND),
        None => NAME.to_owned(),
    }
}
/// Time limit of a host before a job starts. Some sites log in slowly.
pub const REACH_LIMIT: Duration = Duration::from_secs(30);
/// Time limit of a host after a job has failed. It has answered before.
pub(super) const LIMIT_AFTER_JOB: Duration = Duration::from_secs(10);
/// Time limit of the other hosts once one has failed: longer than ssh waits for a host, whose words are then shown.
const LIMIT_AFTER_FAILURE: Duration = Duration::from_millis(8800);
/// Maximum number of hosts that are reached at the same time.
const MOST_AT_ONCE: usize = 256;
/// Interval between two looks.
const POLL: Duration = Duration::from_millis(10);
/// Maximum number of bytes that are read of what a remote shell prints.
const LONGEST: u64 = 1 << 16;

/// Reaches all hosts at the same time. A host has this `limit` to answer.
///
/// # Errors
/// Names every host that cannot be reached, with the words of the remote shell.
pub(super) fn reach<'a>(shell: &RemoteShell, hosts: &'a [String], limit: Duration) -> Result<Reached<'a>> {
    let reached = try_all(shell, hosts, limit, LIMIT_AFTER_FAILURE);
    match reached.failures.as_slice() {
        [] => Ok(reached),
        some => Err(Error::fabric(message(shell, hosts.len(), some))),
    }
}

/// Fails if a host has another build of ombx or another MPI library than this host.
pub(super) fn same_builds(builds: &[(&str, Build)]) -> Result<()> {
    let here = Build::here();
    let differences: Vec<String> =
        builds.iter().filter_map(|(host, build)| build.difference(host, &here)).collect();
    if differences.is_empty() { Ok(()) } else { Err(Error::fabric(differences.join("; "))) }
}

/// Result of reaching hosts.
#[derive(Debug)]
pub(super) struct Reached<'a> {
    /// Own name of each host that says it, by the name that the user gave.
    pub(super) names: BTreeMap<String, String>,
    /// Build of ombx on each host that says it.
    pub(super) builds: Vec<(&'a str, Build)>,
    /// Hosts that cannot be reached, in the order of the user, with the words of the remote shell.
    pub(super) failures: Vec<(&'a str, String)>,
}

/// Reaches all hosts at the same time. A host has `limit` to answer, or `after_failure` once another one has failed.
pub(super) fn try_all<'a>(
    shell: &RemoteShell,
    hosts: &'a [String],
    limit: Duration,
    after_failure: Duration,
) -> Reached<'a> {
    let since = Since::now();
    let (mut waiting, mut running) = (hosts.iter(), Vec::new());
    let mut names = BTreeMap::new();
    let mut builds = Vec::new();
    let line = line();
    let mut failures: Vec<(&str, String)> = Vec::new();
    loop {
        let may_start = failures.is_empty() || since.elapsed() < after_failure;
        while may_start
            && running.len() < MOST_AT_ONCE
            && let Some(host) = waiting.as_slice().first()
        {
            match Attempt::start(shell, host, &line) {
                Ok(attempt) => running.push(attempt),
                // The next one starts when one of these has ended.
                Err(e) if is_limit(&e) && !running.is_empty() => break,
                Err(e) => {
                    failures.push((host, format!("cannot start its remote shell: {}", start_error(&e))));
                }
            }
            waiting.next();
        }
        let limit = if failures.is_empty() { limit } else { limit.min(after_failure) };
        let mut still_running = Vec::new();
        for mut attempt in running {
            match attempt.child.try_wait() {
                Ok(Some(status)) => match attempt.answer(status) {
                    Ok(lines) => {
                        builds.extend(
                            lines
                                .iter()
                                .find_map(|line| Build::parse(line))
                                .map(|build| (attempt.host, build)),
                        );
                        let name = lines.into_iter().rfind(|line| Build::parse(line).is_none());
                        names.extend(name.map(|name| (attempt.host.to_owned(), name)));
                    }
                    Err(words) => failures.push((attempt.host, words)),
                },
                Ok(None) if attempt.since.elapsed() < limit => still_running.push(attempt),
                _ => {
                    attempt.end();
                    failures.push((attempt.host, format!("no answer within {:.0} s", limit.as_secs_f64())));
                }
            }
        }
        running = still_running;
        if running.is_empty() && (waiting.len() == 0 || !may_start) {
            break;
        }
        thread::sleep(POLL);
    }
    failures.extend(waiting.map(|host| (host.as_str(), "not tried".to_owned())));
    sort_by_number(&mut failures, |(failed, _)| {
        hosts.iter().position(|host| host == failed).map_or(-1, |at| at as i64)
    });
    Reached { names, builds, failures }
}

/// One call of the remote shell.
struct Attempt<'a> {
    host: &'a str,
    child: Child,
    /// Its output. A pipe could be held open by a process that it leaves behind.
    stdout: File,
    stderr: File,
    since: Since,
}

impl<'a> Attempt<'a> {
    fn start(shell: &RemoteShell, host: &'a str, line: &str) -> io::Result<Attempt<'a>> {
        let file = || memfd_create("ombx-reach", MemfdFlags::CLOEXEC).map(File::from);
        let (stdout, stderr) = (file()?, file()?);
        let mut command = shell.command(host, line);
        end_with_this_thread(&mut command);
        let child =
            command.stdin(Stdio::null()).stdout(stdout.try_clone()?).stderr(stderr.try_clone()?).spawn()?;
        Ok(Attempt { host, child, stdout, stderr, since: Since::now() })
    }

    /// Returns the lines that the host prints, which end with the name that it gives itself, or the words of the remote shell about its failure.
    fn answer(&mut self, status: ExitStatus) -> std::result::Result<Vec<String>, String> {
        if !status.success() {
            return Err(last_line(&mut self.stderr)
                .or_else(|| last_line(&mut self.stdout))
                .unwrap_or_else(|| format!("its remote shell failed without a word ({status})")));
        }
        // A shell may greet before it runs the command.
        Ok(lines(&mut self.stdout))
    }

    fn end(&mut self) {
        orphans::end_family(Pid::from_child(&self.child));
        let _ = self.child.wait();
    }
}

/// Returns the last line of a file that is not empty.
fn last_line(file: &mut File) -> Option<String> {
    lines(file).pop()
}

/// Returns the lines of a file that are not empty.
fn lines(file: &mut File) -> Vec<String> {
    let mut text = Vec::new();
    let _ = file.rewind().and_then(|()| file.take(LONGEST).read_to_end(&mut text));
    let text = String::from_utf8_lossy(&text).into_owned();
    text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// Describes failures. Hosts of which the remote shell says the same, apart from their name, share its words.
pub(super) fn message(shell: &RemoteShell, all: usize, failures: &[(&str, String)]) -> String {
    let mut groups: Vec<(String, Vec<&str>, &str)> = Vec::new();
    for (host, words) in failures {
        let name = host.rsplit('@').next().unwrap_or_default();
        let pattern = words.replace(name, "HOST");
        match groups.iter_mut().find(|(known, ..)| *known == pattern) {
            Some((_, hosts, _)) => hosts.push(host),
            None => groups.push((pattern, vec![host], words)),
        }
    }
    let texts: Vec<String> = groups
        .iter()
        .map(|(_, hosts, words)| format!("{}: {words}", node_set::fold(hosts.iter().copied())))
        .collect();
    let of = if all > 1 { format!("{} of {all} hosts: ", failures.len()) } else { String::new() };
    let program = shell.program();
    let first = failures.first().map_or("", |(host, _)| host);
    format!("cannot reach {of}{}. Check `{program} {first} true`", texts.join("; "))
}

#[cfg(test)]
mod tests {
    use crate::launch::{
        hosts::*,
        start::{Bind, Launcher},
    };

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
            ("n01 cpu=2 max-cpu=4", "n01", Some(2)),
            ("n01 sockets=2 cores-per-socket=8", "n01", None),
            ("n01:2 binding=user:0,3 ifname=ib0", "n01", Some(2)),
            ("+n3 slots=2", "+n3", Some(2)),
            ("+e", "+e", None),
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
            "n01 binding=",
            "n01 sockets=many",
            "n01 port=2222",
            "+x1",
            "+n",
            "rank 0=n01 slot=0",
            "n01 slots=4 max_slots=2",
        ] {
            assert_eq!(read(text), None, "{text}");
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
    fn a_host_file_leaves_out_hosts_and_has_comments() {
        let names = |text: &str| -> Option<Vec<String>> {
            Some(hosts_of_file("f", text).ok()?.into_iter().map(|host| host.name).collect())
        };
        for (text, expected) in [
            ("n[1-3]\n^n2\n", Some("n1 n3")),
            ("^n1\nme@n1\nn2\n", Some("n2")),
            ("n1 /* n2\nn3 */\nn4 // n5\n\"n6\" slots=2 # n7\n", Some("n1 n4 n6")),
            ("n1\n^n[1-2]\n", None),
            ("^+n0\n+n0\n+n1\n", Some("+n1")),
            ("n1\n/* n2\n", Some("n1")),
            ("\u{feff}n1\r\nn2\r\n", Some("n1 n2")),
        ] {
            let expected: Option<Vec<String>> =
                expected.map(|names| names.split(' ').map(str::to_owned).collect());
            assert_eq!(names(text), expected, "{text}");
        }
        let error = hosts_of_file("f", "n1 /*\n*/\nn2 x=1\n").unwrap_err().to_string();
        assert!(error.starts_with("f, line 3"), "{error}");
    }

    #[test]
    fn an_error_in_a_host_file_names_the_line() {
        let error = hosts_of_file("f", "n01\nn02:0 # two\n").unwrap_err();
        assert!(error.to_string().starts_with("f, line 2"), "{error}");
        assert!(hosts_of_file("f", "# none\n\n// none\n").is_err());
    }

    /// Returns a remote shell that is a script with the host in `$1`.
    fn shell(script: &str) -> RemoteShell {
        RemoteShell::new("sh", ["-c", script, "shell"])
    }

    fn hosts(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn hosts_that_are_reached_say_their_names() {
        let there = hosts(&["n01", "n02"]);
        let names = reach(&shell("echo Welcome; echo name-of-$1"), &there, REACH_LIMIT).unwrap().names;
        assert_eq!(names["n01"], "name-of-n01");
        assert_eq!(names.len(), 2);
        assert!(reach(&shell("exit 0"), &hosts(&["n01"]), REACH_LIMIT).unwrap().names.is_empty());
        assert!(reach(&shell("exit 1"), &[], REACH_LIMIT).unwrap().names.is_empty());
    }

    #[test]
    fn a_host_with_another_build_is_refused() {
        let other = "echo ombx-build 0000000000000001 ombx 9.9 with MPI 9; echo name-of-$1";
        let names = hosts(&["n01"]);
        let reached = reach(&shell(other), &names, REACH_LIMIT).unwrap();
        assert_eq!(reached.names["n01"], "name-of-n01");
        let error = same_builds(&reached.builds).unwrap_err().to_string();
        assert!(error.starts_with("n01 has ombx 9.9 with MPI 9, but this host has ombx "), "{error}");
        let same = format!("echo '{}'; echo n", Build::here().line());
        let reached = reach(&shell(&same), &names, REACH_LIMIT).unwrap();
        assert_eq!(reached.builds.len(), 1);
        same_builds(&reached.builds).unwrap();
    }

    #[test]
    fn a_mistyped_host_fails_with_the_words_of_the_shell() {
        let script = "case $1 in n0*) exit 0;; esac; echo Warning >&2; echo \"ssh: Could not resolve hostname $1\" >&2; exit 255";
        let error =
            reach(&shell(script), &hosts(&["n01", "typo", "n02"]), REACH_LIMIT).unwrap_err().to_string();
        assert_eq!(
            error,
            "cannot reach 1 of 3 hosts: typo: ssh: Could not resolve hostname typo. Check `sh typo true`"
        );
    }

    /// Returns a start on the hosts of a file, without a host.
    fn start(file: &Path, left_out: &[&str]) -> Start {
        Start {
            ranks: None,
            hosts: Vec::new(),
            hostfile: Some(file.into()),
            left_out: hosts(left_out),
            launcher: Launcher::Auto,
            ssh: None,
            interface: None,
            bind: Bind::Auto,
            launcher_arg: Vec::new(),
            fail_fast: false,
            rendezvous: None,
            timeout: None,
            server: None,
            token_file: None,
        }
    }

    #[test]
    fn a_host_that_is_left_out_has_no_ranks() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "n[1-3] slots=2\n").unwrap();
        let start = start(file.path(), &["n2"]);
        let named: Vec<String> = super::hosts(&start).unwrap().into_iter().map(|host| host.name).collect();
        assert_eq!((named, slots(&start).unwrap()), (hosts(&["n1", "n3"]), 4));
    }

    #[test]
    fn a_job_has_a_limited_number_of_hosts() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), format!("n[1-{MOST_HOSTS}]\n")).unwrap();
        let start = start(file.path(), &[]);
        assert_eq!(super::hosts(&start).unwrap().len(), MOST_HOSTS);
        std::fs::write(file.path(), "n[1-100000]\n").unwrap();
        let error = super::hosts(&start).unwrap_err().to_string();
        assert!(error.contains("100000 hosts are named: a job has at most 16384"), "{error}");
    }

    #[test]
    fn all_hosts_that_fail_are_named_in_one_message() {
        let names: Vec<String> = (0..100).map(|n| format!("n{n:03}")).collect();
        let script = "case $1 in n000) echo denied >&2; exit 255;; esac; echo \"port 22 of $1: timed out\" >&2; exit 255";
        let error = reach(&shell(script), &names, REACH_LIMIT).unwrap_err().to_string();
        assert!(error.starts_with("cannot reach 100 of 100 hosts: "), "{error}");
        assert!(
            error.contains("n000: denied;") && error.contains("n[001-099]: port 22 of n001: timed out."),
            "{error}"
        );
    }

    #[test]
    fn a_host_that_hangs_beside_one_that_fails_is_named_within_ten_seconds() {
        let since = Since::now();
        let script = "case $1 in typo) echo no such host >&2; exit 255;; esac; sleep 600 & sleep 600";
        let error = reach(&shell(script), &hosts(&["typo", "n07"]), REACH_LIMIT).unwrap_err().to_string();
        assert!(
            error.contains("typo: no such host") && error.contains("n07: no answer within 9 s"),
            "{error}"
        );
        assert!(since.elapsed() < Duration::from_secs(600), "the shell has ended by itself");
    }

    #[test]
    fn a_process_that_the_shell_leaves_behind_holds_nothing_up() {
        let since = Since::now();
        reach(&shell("sleep 120 & exit 0"), &hosts(&["n01"]), REACH_LIMIT).unwrap();
        assert!(since.elapsed() < Duration::from_secs(120));
    }

    #[test]
    fn a_shell_that_cannot_start_or_says_nothing_is_an_error() {
        let error =
            |shell: &RemoteShell| reach(shell, &hosts(&["n01"]), REACH_LIMIT).unwrap_err().to_string();
        let directory = tempfile::tempdir().unwrap();
        let absent = RemoteShell::new(directory.path().join("ssh"), [""; 0]);
        assert!(error(&absent).contains("n01: cannot start its remote shell: "));
        assert!(
            error(&shell("exit 3")).contains("n01: its remote shell failed without a word (exit status: 3)")
        );
    }
}
