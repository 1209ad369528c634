//! Processes of a job that its launcher leaves behind: they become children of the process that started the launcher.

use std::{fs, time::Duration};

use ombx_core::system::clock::Since;
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, waitpid};

/// Processes that were killed have this long to be gone; one that waits for a device may take longer than anyone likes.
const GONE: Duration = Duration::from_secs(2);
const NAP: Duration = Duration::from_millis(5);

/// From now on, who loses its parent below this process becomes its child. Kernels that cannot do that give orphans to the first
/// process of the machine, and [`end`] then finds none.
pub(super) fn adopt() {
    let _ = set_child_subreaper(Some(getpid()));
}

/// Ends all children of this process, and theirs.
pub(super) fn end() {
    let since = Since::now();
    // Each that ends leaves its own children to this process.
    loop {
        let children = children();
        for child in &children {
            let _ = kill_process(*child, Signal::KILL);
            let _ = waitpid(Some(*child), WaitOptions::NOHANG);
        }
        if children.is_empty() || since.elapsed() > GONE {
            return;
        }
        std::thread::sleep(NAP);
    }
}

fn children() -> Vec<Pid> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| parent(*pid) == Some(getpid().as_raw_nonzero().get()))
        .filter_map(Pid::from_raw)
        .collect()
}

fn parent(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // After the name, which may hold anything: state, parent.
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_of_a_process_is_known() {
        let own = getpid().as_raw_nonzero().get();
        assert_eq!(parent(own), rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get()));
        let mut child = std::process::Command::new("sleep").arg("5").spawn().unwrap();
        assert!(children().contains(&Pid::from_child(&child)));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
