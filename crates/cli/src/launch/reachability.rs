//! Reaching every host of a job through its remote shell before anything starts.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs::File,
    io::{self, Read, Seek},
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::Duration,
};

use ombx_core::{
    error::{Error, Result},
    system::{
        clock::Since,
        limits::{is_limit, start_error},
        node_set, ssh,
    },
};
use rustix::{
    fs::{MemfdFlags, memfd_create},
    process::Pid,
};

use super::orphans;
use crate::arguments::start::StartArgs;

/// Command line for the host. It prints the name of the host, as ranks there report it.
const LINE: &str = "cat /proc/sys/kernel/hostname || true";
/// Time limit of a host before a job starts. Some sites log in slowly.
pub(crate) const LIMIT: Duration = Duration::from_secs(30);
/// Time limit of a host after a job has failed. It has answered before.
pub(super) const LIMIT_AFTER_JOB: Duration = Duration::from_secs(10);
/// Time limit of the other hosts once one has failed: ssh gives up on those that do not answer before it.
const LIMIT_AFTER_FAILURE: Duration = Duration::from_millis(4800);
/// Maximum number of hosts that are reached at the same time.
const MOST_AT_ONCE: usize = 256;
/// Interval between two looks.
const POLL: Duration = Duration::from_millis(10);
/// Maximum number of bytes that are read of what a remote shell prints.
const LONGEST: u64 = 1 << 16;

/// Returns ssh, or the program that the user has chosen in its place, with its options.
pub(crate) fn ssh(start: &StartArgs) -> Vec<OsString> {
    let program = ssh::program(start.ssh.as_ref().map(OsString::from));
    [program].into_iter().chain(ssh::OPTIONS.map(OsString::from)).collect()
}

/// Reaches all hosts at the same time. Returns the own name of each host that says it, by the name that the user gave.
///
/// `shell` is a program with its arguments, which is called as rsh is: with a host and a command. A host has this `limit` to answer.
///
/// # Errors
/// Names every host that cannot be reached, with the words of the remote shell.
pub(super) fn reach(
    shell: &[OsString],
    hosts: &[String],
    limit: Duration,
) -> Result<BTreeMap<String, String>> {
    let since = Since::now();
    let (mut waiting, mut running) = (hosts.iter(), Vec::new());
    let mut names = BTreeMap::new();
    let mut failures: Vec<(&str, String)> = Vec::new();
    loop {
        let may_start = failures.is_empty() || since.elapsed() < LIMIT_AFTER_FAILURE;
        while may_start
            && running.len() < MOST_AT_ONCE
            && let Some(host) = waiting.as_slice().first()
        {
            match Attempt::start(shell, host) {
                Ok(attempt) => running.push(attempt),
                // The next one starts when one of these has ended.
                Err(e) if is_limit(&e) && !running.is_empty() => break,
                Err(e) => {
                    failures.push((host, format!("cannot start its remote shell: {}", start_error(&e))));
                }
            }
            waiting.next();
        }
        let limit = if failures.is_empty() { limit } else { limit.min(LIMIT_AFTER_FAILURE) };
        let mut still_running = Vec::new();
        for mut attempt in running {
            match attempt.child.try_wait() {
                Ok(Some(status)) => match attempt.answer(status) {
                    Ok(name) => names.extend(name.map(|name| (attempt.host.to_owned(), name))),
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
    failures.sort_by_key(|(failed, _)| hosts.iter().position(|host| host == failed));
    match failures.as_slice() {
        [] => Ok(names),
        some => Err(Error::fabric(message(shell, hosts.len(), some))),
    }
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
    fn start(shell: &[OsString], host: &'a str) -> io::Result<Attempt<'a>> {
        let file = || memfd_create("ombx-reach", MemfdFlags::CLOEXEC).map(File::from);
        let (stdout, stderr) = (file()?, file()?);
        let program = shell.first().ok_or(io::ErrorKind::NotFound)?;
        let mut command = Command::new(program);
        command.args(&shell[1..]).arg(host).arg(LINE).stdin(Stdio::null());
        let child = command.stdout(stdout.try_clone()?).stderr(stderr.try_clone()?).spawn()?;
        Ok(Attempt { host, child, stdout, stderr, since: Since::now() })
    }

    /// Returns the name that the host gives itself, if any, or the words of the remote shell about its failure.
    fn answer(&mut self, status: ExitStatus) -> std::result::Result<Option<String>, String> {
        let last = |file: &mut File| {
            let mut text = Vec::new();
            let _ = file.rewind().and_then(|()| file.take(LONGEST).read_to_end(&mut text));
            let text = String::from_utf8_lossy(&text).into_owned();
            text.lines().map(str::trim).rfind(|line| !line.is_empty()).map(str::to_owned)
        };
        match status.success() {
            // A shell may greet before it runs the command.
            true => Ok(last(&mut self.stdout)),
            false => Err(last(&mut self.stderr)
                .or_else(|| last(&mut self.stdout))
                .unwrap_or_else(|| format!("its remote shell failed without a word ({status})"))),
        }
    }

    fn end(&mut self) {
        orphans::end_family(Pid::from_child(&self.child));
        let _ = self.child.wait();
    }
}

/// Describes failures. Hosts of which the remote shell says the same, apart from their name, share its words.
fn message(shell: &[OsString], all: usize, failures: &[(&str, String)]) -> String {
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
    let program = shell.first().map(|program| program.to_string_lossy()).unwrap_or_default();
    let first = failures.first().map_or("", |(host, _)| host);
    format!("cannot reach {of}{}. Check `{program} {first} true`", texts.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a remote shell that is a script with the host in `$1`.
    fn shell(script: &str) -> Vec<OsString> {
        ["sh", "-c", script, "shell"].map(OsString::from).to_vec()
    }

    fn hosts(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn hosts_that_are_reached_say_their_names() {
        let names = reach(&shell("echo Welcome; echo name-of-$1"), &hosts(&["n01", "n02"]), LIMIT).unwrap();
        assert_eq!(names["n01"], "name-of-n01");
        assert_eq!(names.len(), 2);
        assert!(reach(&shell("exit 0"), &hosts(&["n01"]), LIMIT).unwrap().is_empty());
        assert!(reach(&shell("exit 1"), &[], LIMIT).unwrap().is_empty());
    }

    #[test]
    fn a_mistyped_host_fails_with_the_words_of_the_shell() {
        let script = "case $1 in n0*) exit 0;; esac; echo Warning >&2; echo \"ssh: Could not resolve hostname $1\" >&2; exit 255";
        let error = reach(&shell(script), &hosts(&["n01", "typo", "n02"]), LIMIT).unwrap_err().to_string();
        assert_eq!(
            error,
            "cannot reach 1 of 3 hosts: typo: ssh: Could not resolve hostname typo. Check `sh typo true`"
        );
    }

    #[test]
    fn all_hosts_that_fail_are_named_in_one_message() {
        let names: Vec<String> = (0..100).map(|n| format!("n{n:03}")).collect();
        let script = "case $1 in n000) echo denied >&2; exit 255;; esac; echo \"port 22 of $1: timed out\" >&2; exit 255";
        let error = reach(&shell(script), &names, LIMIT).unwrap_err().to_string();
        assert!(error.starts_with("cannot reach 100 of 100 hosts: "), "{error}");
        assert!(
            error.contains("n000: denied;") && error.contains("n[001-099]: port 22 of n001: timed out."),
            "{error}"
        );
    }

    #[test]
    fn a_host_that_hangs_beside_one_that_fails_is_named_within_five_seconds() {
        let since = Since::now();
        let script = "case $1 in typo) echo no such host >&2; exit 255;; esac; sleep 600 & sleep 600";
        let error = reach(&shell(script), &hosts(&["typo", "n07"]), LIMIT).unwrap_err().to_string();
        assert!(
            error.contains("typo: no such host") && error.contains("n07: no answer within 5 s"),
            "{error}"
        );
        assert!(since.elapsed() < Duration::from_secs(600), "the shell has ended by itself");
    }

    #[test]
    fn a_process_that_the_shell_leaves_behind_holds_nothing_up() {
        let since = Since::now();
        reach(&shell("sleep 120 & exit 0"), &hosts(&["n01"]), LIMIT).unwrap();
        assert!(since.elapsed() < Duration::from_secs(120));
    }

    #[test]
    fn a_shell_that_cannot_start_or_says_nothing_is_an_error() {
        let error = |shell: &[OsString]| reach(shell, &hosts(&["n01"]), LIMIT).unwrap_err().to_string();
        let directory = tempfile::tempdir().unwrap();
        assert!(
            error(&[directory.path().join("ssh").into()]).contains("n01: cannot start its remote shell: ")
        );
        assert!(
            error(&shell("exit 3")).contains("n01: its remote shell failed without a word (exit status: 3)")
        );
    }
}
