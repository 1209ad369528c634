//! What is checked and recorded of every host before anything is measured; the binary is copied where it has to be.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    path::Path,
    process::Command,
    time::Duration,
};

use serde_json::json;

use super::{
    Cluster,
    remote::{Ended, Files},
    script,
};
use crate::failure::{Failure, Result};

const LIMIT: Duration = Duration::from_secs(60);
/// Clocks that differ by more make logs hard to read.
const CLOCKS: f64 = 2.0;

/// Lines `name value` of a host; several values of one name are kept.
pub(super) type Facts = BTreeMap<String, Vec<String>>;

/// Facts of every host, in order. Stops with all reasons why the cluster cannot be measured.
pub(super) fn check(cluster: &Cluster) -> Result<Vec<Facts>> {
    let checksum = checksum(&cluster.binary);
    let all: Vec<std::result::Result<Facts, String>> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..cluster.inventory.hosts.len())
            .map(|host| {
                scope.spawn({
                    let checksum = &checksum;
                    move || of_host(cluster, host, checksum)
                })
            })
            .collect();
        workers.into_iter().map(|w| w.join().unwrap_or_else(|_| Err("its check stopped".into()))).collect()
    });
    let name = |host: usize| &cluster.inventory.hosts[host].name;
    let mut trouble: Vec<String> = all
        .iter()
        .enumerate()
        .filter_map(|(host, facts)| Some(format!("host {}: {}", name(host), facts.as_ref().err()?)))
        .collect();
    let facts: Vec<Facts> = all.into_iter().map(std::result::Result::unwrap_or_default).collect();
    if trouble.is_empty() {
        trouble = differences(&facts, &checksum)
            .into_iter()
            .map(|(host, why)| format!("host {}: {why}", name(host)))
            .collect();
    }
    let lines = facts.iter().enumerate().map(|(host, facts)| json!({"host": name(host), "facts": facts}));
    let text = serde_json::to_string_pretty(&lines.collect::<Vec<_>>()).unwrap_or_default();
    cluster.record.write("preflight.json", &text)?;
    for (host, facts) in facts.iter().enumerate() {
        if let Some(offset) =
            one(facts, "clock_offset_s").and_then(|t| t.parse::<f64>().ok()).filter(|t| t.abs() > CLOCKS)
        {
            println!("note: the clock of {} is {offset:.1} s off this machine's", name(host));
        }
    }
    if trouble.is_empty() { Ok(facts) } else { Err(Failure::Hosts(trouble.join("; "))) }
}

/// One value of a fact.
pub(super) fn one<'a>(facts: &'a Facts, name: &str) -> Option<&'a str> {
    facts.get(name)?.first().map(String::as_str)
}

fn checksum(file: &Path) -> String {
    super::remote::ask(Command::new("sha256sum").arg(file)).split(' ').next().unwrap_or_default().to_owned()
}

fn of_host(cluster: &Cluster, host: usize, checksum: &str) -> std::result::Result<Facts, String> {
    let name = &cluster.inventory.hosts[host].name;
    let directory = cluster.record.directory.join("preflight");
    let files = Files::named(&directory, name);
    let place = cluster.place(host);
    let script = script::facts(&cluster.inventory, &cluster.remote_binary, &cluster.inventory.hosts);
    let ask = || {
        let before = now();
        let ended = place.run(&script, &files, LIMIT).map_err(|e| e.to_string())?;
        let between = (before + now()) / 2.0;
        match ended {
            Ended::Code(0) => {}
            Ended::Code(255) => return Err(format!("it cannot be reached by ssh: {}", files.last_words())),
            Ended::Deadline => return Err(format!("it did not answer within {} s", LIMIT.as_secs())),
            other => return Err(format!("its check ended with {other:?}: {}", files.last_words())),
        }
        let mut facts = Facts::new();
        for line in files.text().lines() {
            let (name, value) = line.split_once(' ').unwrap_or((line, ""));
            facts.entry(name.to_owned()).or_default().push(value.trim().to_owned());
        }
        if let Some(clock) = one(&facts, "clock").and_then(|t| t.parse::<f64>().ok()) {
            facts.insert("clock_offset_s".into(), vec![format!("{:.3}", clock - between)]);
        }
        Ok(facts)
    };
    let facts = ask()?;
    if cluster.is_local() || one(&facts, "binary") == Some(checksum) {
        return Ok(facts);
    }
    if cluster.inventory.shared {
        return Err(format!(
            "the inventory says shared, but {} is not the same file there",
            cluster.remote_binary.display()
        ));
    }
    copy(cluster, host, &cluster.binary, &cluster.remote_binary, checksum)?;
    ask()
}

/// Copies a file of this machine to a host.
fn copy(
    cluster: &Cluster,
    host: usize,
    from: &Path,
    to: &Path,
    checksum: &str,
) -> std::result::Result<(), String> {
    let place = cluster.place(host);
    let name = &cluster.inventory.hosts[host].name;
    let files = Files::named(&cluster.record.directory.join("preflight"), &format!("{name}.copy"));
    let input = File::open(from).map_err(|e| format!("{}: {e}", from.display()))?;
    let ended = place.feed(place.shell(&script::stage(to, checksum)), input, &files, 10 * LIMIT);
    match ended.map_err(|e| e.to_string())? {
        Ended::Code(0) => Ok(()),
        other => {
            Err(format!("{} could not be copied to it ({other:?}): {}", from.display(), files.last_words()))
        }
    }
}

/// Puts the program that launchers start in place of ssh where launchers run.
pub(super) fn wrapper(cluster: &Cluster) -> Result<()> {
    let config = cluster.inventory.ssh_config.as_deref().filter(|_| !cluster.launches_on_hosts());
    let path = cluster.record.directory.join("ssh");
    fs::write(&path, script::wrapper(config)).map_err(Failure::file(&*path))?;
    let mode = <fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o755);
    fs::set_permissions(&path, mode).map_err(Failure::file(&*path))?;
    if cluster.launches_on_hosts() && !cluster.inventory.shared {
        let sum = checksum(&path);
        for host in 0..cluster.inventory.hosts.len() {
            copy(cluster, host, &path, &cluster.wrapper(), &sum).map_err(|why| {
                Failure::Hosts(format!("host {}: {why}", cluster.inventory.hosts[host].name))
            })?;
        }
    }
    Ok(())
}

/// What stands against measuring: a host and why.
fn differences(facts: &[Facts], checksum: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (host, of_host) in facts.iter().enumerate() {
        if one(of_host, "binary") != Some(checksum) {
            found.push((host, "it has another ombx than this machine".into()));
        } else if let Some(why) = one(of_host, "broken") {
            found.push((host, format!("ombx does not start there: {why}")));
        }
        for name in of_host.get("unresolved").into_iter().flatten() {
            found.push((host, format!("it does not know the name {name}")));
        }
        if of_host.get("library") != facts[0].get("library") {
            let named = |facts: &Facts| facts.get("library").map_or("none".into(), |l| l.join(", "));
            found.push((host, format!("its MPI library is {}, not {}", named(of_host), named(&facts[0]))));
        }
        let same = |name: &str| facts[..host].iter().any(|other| one(other, name) == one(of_host, name));
        if same("boot_id") && same("hostname") {
            found.push((host, "it is the same machine as another of the inventory".into()));
        }
    }
    found
}

/// Seconds since 1970, to compare clocks of hosts.
fn now() -> f64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.unwrap_or_default().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(pairs: &[(&str, &str)]) -> Facts {
        let usual = [("binary", "1"), ("library", "/l/libmpi.so 7")];
        usual
            .iter()
            .chain(pairs)
            .map(|(name, value)| ((*name).to_owned(), vec![(*value).to_owned()]))
            .collect()
    }

    #[test]
    fn hosts_that_differ_are_named() {
        let good = [facts(&[("boot_id", "a")]), facts(&[("boot_id", "b")])];
        assert!(differences(&good, "1").is_empty());
        for (pair, part) in [
            (("binary", "2"), "another ombx"),
            (("library", "/l/libmpi.so 8"), "MPI library"),
            (("unresolved", "n3"), "name n3"),
            (("broken", "no libmpi.so.12"), "does not start"),
            (("boot_id", "a"), "same machine"),
        ] {
            let found = differences(&[good[0].clone(), facts(&[pair])], "1");
            assert!(found.len() == 1 && found[0].0 == 1 && found[0].1.contains(part), "{found:?}");
        }
    }
}
