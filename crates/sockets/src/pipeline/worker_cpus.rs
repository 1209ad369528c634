//! CPUs of senders and receivers.

use std::collections::BTreeSet;

use ombx_core::{
    error::{Error, Result},
    unit::digits,
};
use ombx_host::environment::place_of_thread;
use rustix::thread::{CpuSet, sched_setaffinity};
use serde::{Deserialize, Serialize};

/// CPUs to which the senders and receivers of a host are bound in turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub(super) enum WorkerCpus {
    /// The kernel chooses. Written `any`.
    Any,
    /// Every CPU that the node may use. Written `all`.
    All,
    /// These CPUs. Written as a list of the kernel: `0-3,8`.
    List(String, Vec<u32>),
}

impl WorkerCpus {
    pub(super) fn parse(text: &str) -> Result<WorkerCpus> {
        match text {
            "any" => Ok(WorkerCpus::Any),
            "all" => Ok(WorkerCpus::All),
            _ => {
                let cpus: Option<Vec<Vec<u32>>> = text.split(',').map(range).collect();
                let cpus = cpus.ok_or_else(|| {
                    let most = CpuSet::MAX_CPU - 1;
                    Error::usage(format!(
                        "{text:?} is neither any, all nor a list of CPUs up to {most} such as 0-3,8"
                    ))
                })?;
                Ok(WorkerCpus::List(text.into(), cpus.concat()))
            }
        }
    }

    /// Returns the text that `parse` reads.
    pub(super) fn text(&self) -> &str {
        match self {
            WorkerCpus::Any => "any",
            WorkerCpus::All => "all",
            WorkerCpus::List(text, _) => text,
        }
    }

    /// Returns how many CPUs senders and receivers share on this host.
    pub(super) fn count(&self) -> usize {
        match self {
            WorkerCpus::Any | WorkerCpus::All => place_of_thread().cpu_numbers().len(),
            WorkerCpus::List(_, cpus) => cpus.iter().collect::<BTreeSet<_>>().len(),
        }
    }

    /// Fails if this process may not use one of the CPUs.
    pub(super) fn check(&self) -> Result<()> {
        let WorkerCpus::List(text, cpus) = self else { return Ok(()) };
        let here = place_of_thread();
        match cpus.iter().find(|cpu| !here.cpu_numbers().contains(cpu)) {
            None => Ok(()),
            Some(cpu) => Err(Error::usage(format!(
                "--worker-cpus {text}: CPU {cpu} is not available; this process may use {}",
                here.cpus
            ))),
        }
    }

    /// Binds the calling thread to the CPU of a worker. Workers are numbered on their host.
    pub(super) fn bind(&self, worker: u32) -> Result<()> {
        let cpus = match self {
            WorkerCpus::Any => return Ok(()),
            WorkerCpus::All => place_of_thread().cpu_numbers(),
            WorkerCpus::List(_, cpus) => cpus.clone(),
        };
        let Some(cpu) = cpus.get(worker as usize % cpus.len().max(1)) else { return Ok(()) };
        let mut set = CpuSet::new();
        set.set(*cpu as usize);
        sched_setaffinity(None, &set)
            .map_err(|e| Error::unsupported(format!("cannot bind a process to CPU {cpu}: {e}")))
    }
}

impl From<WorkerCpus> for String {
    fn from(cpus: WorkerCpus) -> String {
        cpus.text().to_owned()
    }
}

impl TryFrom<String> for WorkerCpus {
    type Error = Error;

    fn try_from(text: String) -> Result<WorkerCpus> {
        WorkerCpus::parse(&text)
    }
}

/// Reads `3` or `0-3`.
fn range(text: &str) -> Option<Vec<u32>> {
    let (from, to) = text.split_once('-').unwrap_or((text, text));
    let (from, to): (u32, u32) = (digits(from)?, digits(to)?);
    (from <= to && (to as usize) < CpuSet::MAX_CPU).then(|| (from..=to).collect())
}

#[cfg(test)]
mod tests {
    use rustix::thread::sched_getaffinity;

    use super::*;

    #[test]
    fn lists_are_read_or_rejected() {
        let WorkerCpus::List(_, cpus) = WorkerCpus::parse("0-2,8").unwrap() else { panic!() };
        assert_eq!(cpus, [0, 1, 2, 8]);
        for text in ["any", "all", "0-2,8"] {
            assert_eq!(WorkerCpus::parse(text).unwrap().text(), text);
        }
        for text in ["", "x", "1-", "-1", "+1", "3-1", "0,,1", "0-99999", "4294967296", "none"] {
            assert!(WorkerCpus::parse(text).is_err(), "{text}");
        }
        assert_eq!(WorkerCpus::parse("0,0,1").unwrap().count(), 2);
    }

    #[test]
    fn workers_are_bound_in_turn() {
        let mine = place_of_thread().cpu_numbers();
        let cpus = WorkerCpus::parse("all").unwrap();
        for worker in 0..2 * mine.len() {
            let found = std::thread::scope(|scope| {
                let bound = scope.spawn(|| {
                    cpus.bind(worker as u32).unwrap();
                    sched_getaffinity(None).unwrap()
                });
                bound.join().unwrap()
            });
            assert!(found.count() == 1 && found.is_set(mine[worker % mine.len()] as usize), "{worker}");
        }
        let missing = (0..CpuSet::MAX_CPU as u32).rev().find(|cpu| !mine.contains(cpu)).unwrap();
        let missing = WorkerCpus::parse(&missing.to_string()).unwrap();
        assert!(missing.check().unwrap_err().to_string().contains("is not available"));
    }
}
