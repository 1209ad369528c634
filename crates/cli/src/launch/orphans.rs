//! Orphans: processes of a job that outlive their launcher. They become children of the launching process. Also the end of a
//! process with its descendants.

use std::{collections::BTreeMap, fs, time::Duration};

use ombx_core::system::clock::Since;
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, waitpid};

/// Maximum wait for killed processes. A process that waits for a device may take longer.
const LIMIT: Duration = Duration::from_secs(2);
/// Maximum number of processes above one that are looked at.
const MOST_ANCESTORS: usize = 100;
/// Interval between two looks at the list of processes.
const INTERVAL: Duration = Duration::from_millis(5);

/// Makes this process the parent of all orphans among its descendants. On kernels without this feature [`end`] finds none.
pub(super) fn adopt() {
    let _ = set_child_subreaper(Some(getpid()));
}

/// Kills all descendants of this process.
pub(super) fn end() {
    let since = Since::now();
    // The children of a killed process become children of this process.
    loop {
        let children = children_of(getpid());
        for child in &children {
            let _ = kill_process(*child, Signal::KILL);
            let _ = waitpid(Some(*child), WaitOptions::NOHANG);
        }
        if children.is_empty() || since.elapsed() > LIMIT {
            return;
        }
        std::thread::sleep(INTERVAL);
    }
}

/// Kills a process and its descendants.
pub(super) fn end_family(root: Pid) {
    for pid in descendants(root).into_iter().chain([root]) {
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// Returns the descendants of a process.
pub(super) fn descendants(root: Pid) -> Vec<Pid> {
    let mut children: BTreeMap<i32, Vec<Pid>> = BTreeMap::new();
    for (pid, parent) in processes() {
        children.entry(parent).or_default().push(pid);
    }
    let (mut family, mut at) = (vec![root], 0);
    while let Some(pid) = family.get(at) {
        family.extend(children.remove(&pid.as_raw_nonzero().get()).unwrap_or_default());
        at += 1;
    }
    family.split_off(1)
}

/// Returns the processes above this one, its parent first.
pub(super) fn ancestors() -> Vec<Pid> {
    let above = |pid: &Pid| Pid::from_raw(parent(pid.as_raw_nonzero().get())?);
    std::iter::successors(Some(getpid()), above).skip(1).take(MOST_ANCESTORS).collect()
}

fn children_of(one: Pid) -> Vec<Pid> {
    let of_one = |(pid, parent): (Pid, i32)| (parent == one.as_raw_nonzero().get()).then_some(pid);
    processes().filter_map(of_one).collect()
}

/// Returns all processes and their parents.
fn processes() -> impl Iterator<Item = (Pid, i32)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter_map(|pid| Some((Pid::from_raw(pid)?, parent(pid)?)))
}

fn parent(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may contain any character. State and parent follow it.
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_are_found_by_their_parent() {
        let own = getpid().as_raw_nonzero().get();
        assert_eq!(parent(own), rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get()));
        let mut child = std::process::Command::new("sleep").arg("5").spawn().unwrap();
        assert!(children_of(getpid()).contains(&Pid::from_child(&child)));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
