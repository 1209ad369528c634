//! Preparation of all hosts before the first job: checks them, and copies ombx to hosts that lack it.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    os::unix::fs::PermissionsExt,
    path::Path,
    process::Command,
    time::Duration,
};

use ombx_host::remote_shell;
use ombx_record::error::{Error, Result};
use serde::Serialize;
use serde_json::json;

use crate::{
    cluster::{Cluster, checksum},
    parallel, record,
    remote::{ScriptEnd, ScriptFiles, at, output_of},
    script,
};

/// Time limit of the checks of a host.
const LIMIT: Duration = Duration::from_secs(60);
/// Largest clock difference without a note, in seconds.
const CLOCK_DIFFERENCE: f64 = 2.0;

/// Why a host cannot be measured.
#[derive(Debug)]
enum HostFailure {
    /// ssh does not reach it.
    Unreachable(String),
    Other(String),
}

impl HostFailure {
    fn into_reason(self) -> String {
        match self {
            HostFailure::Unreachable(reason) | HostFailure::Other(reason) => reason,
        }
    }
}

impl From<String> for HostFailure {
    fn from(reason: String) -> HostFailure {
        HostFailure::Other(reason)
    }
}

/// Prepares all hosts and learns the facts about each. With `--skip-unreachable`, hosts that ssh cannot reach leave the inventory.
///
/// # Errors
/// Hosts prevent a measurement; the message names every one with its reason.
pub(crate) fn check(cluster: &mut Cluster) -> Result<()> {
    let checksum = checksum(&cluster.binary);
    let hosts = 0..cluster.inventory.hosts.len();
    let mut results = parallel::map(hosts, |host| check_host(cluster, host, &checksum));
    let is_unreachable = |result: &Checked| matches!(result, Err(HostFailure::Unreachable(_)));
    let unreachable = results.iter().filter(|result| is_unreachable(result)).count();
    let proposal = if cluster.options.skip_unreachable && unreachable > 0 {
        if results.len() - unreachable < 2 {
            "; fewer than two hosts are left to measure"
        } else {
            results = leave_out(cluster, results);
            ""
        }
    } else if unreachable > 0 {
        " Or add --skip-unreachable to measure the other hosts."
    } else {
        ""
    };
    let hosts = 0..cluster.inventory.hosts.len();
    let mut failures: Vec<(usize, String)> = Vec::new();
    let mut facts: Vec<PreflightFacts> = Vec::new();
    for (host, result) in results.into_iter().enumerate() {
        facts.push(result.unwrap_or_else(|reason| {
            failures.push((host, reason.into_reason()));
            PreflightFacts::default()
        }));
    }
    if failures.is_empty() {
        failures = differences(&facts, &checksum);
    }
    let found = hosts.map(|host| json!({"host": cluster.host_name(host), "facts": facts[host]}));
    cluster.record.write_json("preflight.json", &found.collect::<Vec<_>>())?;
    for (host, facts) in facts.iter().enumerate() {
        let offset = facts.first("clock_offset_s").and_then(|offset| offset.parse::<f64>().ok());
        if let Some(offset) = offset.filter(|offset| offset.abs() > CLOCK_DIFFERENCE) {
            let name = cluster.host_name(host);
            record::print_line(format_args!(
                "note: the clock of {name} differs by {offset:.1} s from this machine's"
            ));
        }
    }
    if failures.is_empty() {
        install_ssh_wrapper(cluster)?;
        cluster.facts = facts;
        return Ok(());
    }
    let named = failures.iter().map(|(host, reason)| format!("host {}: {reason}", cluster.host_name(*host)));
    Err(Error::fabric(named.collect::<Vec<_>>().join("; ") + proposal))
}

/// Facts about a host, or why there are none.
type Checked = std::result::Result<PreflightFacts, HostFailure>;

/// Removes the hosts that ssh cannot reach from the inventory, and returns the results of the others.
fn leave_out(cluster: &mut Cluster, results: Vec<Checked>) -> Vec<Checked> {
    let (mut hosts, mut others) = (Vec::new(), Vec::new());
    for (host, result) in std::mem::take(&mut cluster.inventory.hosts).into_iter().zip(results) {
        if let Err(HostFailure::Unreachable(reason)) = result {
            record::print_line(format_args!("{} is left out: {reason}", host.name));
            cluster.left_out.push(host.name);
        } else {
            hosts.push(host);
            others.push(result);
        }
    }
    cluster.inventory.hosts = hosts;
    others
}

/// Gathers the facts about a host. If its ombx differs, copies ombx and gathers them again.
fn check_host(cluster: &Cluster, host: usize, checksum: &str) -> Checked {
    let facts = gather(cluster, host)?;
    if cluster.is_local() || facts.first("binary") == Some(checksum) {
        return Ok(facts);
    }
    let remote = &cluster.remote_binary;
    if cluster.inventory.shared {
        return Err(format!(
            "{} differs from the file on this machine. Remove `shared = true` from the inventory, or share \
             the directory.",
            remote.display()
        )
        .into());
    }
    copy(cluster, host, [&cluster.binary, remote], checksum)?;
    let kept = if cluster.options.remove_copies { "" } else { "; it stays there (--remove-copies)" };
    record::print_line(format_args!(
        "{}: ombx was copied to {}{kept}",
        cluster.host_name(host),
        remote.display()
    ));
    gather(cluster, host)
}

/// Removes ombx and what was copied beside it from every host that has a copy.
pub(crate) fn remove_copies(cluster: &Cluster) {
    if cluster.is_local() || cluster.inventory.shared {
        return;
    }
    let script = script::remove(&cluster.remote_binary);
    let failed = parallel::map(0..cluster.inventory.hosts.len(), |host| {
        let name = cluster.host_name(host);
        let files =
            ScriptFiles::named(&cluster.record.directory.join("preflight"), &format!("{name}.remove"));
        match cluster.machine(host).run(&script, &files, LIMIT, parallel::ignored) {
            Ok(ScriptEnd::Code(0)) => None,
            Ok(other) => Some(format!("{name} ({other}): {}", files.error())),
            Err(error) => Some(format!("{name}: {error}")),
        }
    });
    for why in failed.into_iter().flatten() {
        record::print_line(format_args!("note: the copy of ombx stays on {why}"));
    }
}

fn gather(cluster: &Cluster, host: usize) -> Checked {
    let name = cluster.host_name(host);
    let files = ScriptFiles::named(&cluster.record.directory.join("preflight"), name);
    let script = script::facts(&cluster.inventory, &cluster.remote_binary);
    let before = clock();
    let ended =
        cluster.machine(host).run(&script, &files, LIMIT, parallel::requested).map_err(|e| e.to_string())?;
    let after = clock();
    match ended {
        ScriptEnd::Code(0) => {}
        ScriptEnd::Code(255) => {
            let reason = format!("cannot be reached by ssh: {}. Check `ssh {name} true`.", files.error());
            return Err(HostFailure::Unreachable(reason));
        }
        ScriptEnd::TimedOut => {
            return Err(HostFailure::Unreachable(format!("no answer within {} s.", LIMIT.as_secs())));
        }
        ScriptEnd::Endless => {
            let reason = "it prints without end. Check what its shell prints when it starts.";
            return Err(reason.to_owned().into());
        }
        other => return Err(format!("its check failed ({other}): {}", files.error()).into()),
    }
    let mut facts = PreflightFacts::parse(&files.text());
    let there = facts.first("clock").and_then(|clock| clock.parse::<f64>().ok());
    if let (Some(there), Some(before), Some(after)) = (there, before, after) {
        facts.add("clock_offset_s", &format!("{:.3}", there - (before + after) / 2.0));
    }
    Ok(facts)
}

/// Copies a file of this machine to a host.
fn copy(
    cluster: &Cluster,
    host: usize,
    [from, to]: [&Path; 2],
    checksum: &str,
) -> std::result::Result<(), String> {
    let name = format!("{}.copy", cluster.host_name(host));
    let files = ScriptFiles::named(&cluster.record.directory.join("preflight"), &name);
    let input = File::open(from).map_err(|e| format!("{}: {e}", from.display()))?;
    // Copies take longer than checks.
    let ended = cluster.machine(host).feed(&script::receive(to, checksum), input, &files, 10 * LIMIT);
    match ended.map_err(|e| e.to_string())? {
        ScriptEnd::Code(0) => Ok(()),
        other => Err(format!(
            "{} could not be copied to {} ({other}): {}. Check its free space, or set `work_dir` in the inventory.",
            from.display(),
            to.display(),
            files.error()
        )),
    }
}

/// Writes the program that launchers start instead of ssh, and copies it where launchers run.
fn install_ssh_wrapper(cluster: &Cluster) -> Result<()> {
    let config = cluster.inventory.ssh_config.as_deref().filter(|_| !cluster.launches_on_hosts());
    let path = cluster.record.directory.join("ssh");
    // A program of this host is not on the others.
    let program = if cluster.launches_on_hosts() { "ssh".into() } else { remote_shell::ssh(None) };
    fs::write(&path, script::ssh_wrapper(&program, config)).map_err(at(&path))?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).map_err(at(&path))?;
    if cluster.launches_on_hosts() && !cluster.inventory.shared {
        let sum = checksum(&path);
        for host in 0..cluster.inventory.hosts.len() {
            copy(cluster, host, [&path, &cluster.ssh_wrapper()], &sum)
                .map_err(|reason| Error::fabric(format!("host {}: {reason}", cluster.host_name(host))))?;
        }
    }
    Ok(())
}

/// Returns the clock of this machine in seconds since 1970, read as on the hosts.
fn clock() -> Option<f64> {
    output_of(Command::new("date").arg("+%s.%N")).parse().ok()
}

/// Facts by name; a name may have several values.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub(crate) struct PreflightFacts(BTreeMap<String, Vec<String>>);

impl PreflightFacts {
    /// Parses lines of a name, a blank and a value.
    fn parse(text: &str) -> Self {
        let mut facts = Self::default();
        for line in text.lines() {
            let (name, value) = line.split_once(' ').unwrap_or((line, ""));
            facts.add(name, value.trim());
        }
        facts
    }

    fn add(&mut self, name: &str, value: &str) {
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
fn differences(facts: &[PreflightFacts], checksum: &str) -> Vec<(usize, String)> {
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
            let list = |facts: &PreflightFacts| match facts.all("library") {
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

    fn facts(name: &str, value: &str) -> PreflightFacts {
        let mut facts = PreflightFacts::default();
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
