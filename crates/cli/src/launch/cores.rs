//! Cores of this host that ranks can be bound to.

use std::{collections::BTreeMap, fs, thread};

use ombx_core::{system::environment, team::Place};

/// Returns the first hardware thread of each core that this process may use, at most as many as its CPU quota allows.
pub(crate) fn cores() -> Vec<u32> {
    let sibling = |cpu: u32| {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
        let list = fs::read_to_string(path).unwrap_or_default();
        environment::parse_cpus(list.trim()).first().copied().unwrap_or(cpu)
    };
    let mut cores: BTreeMap<u32, u32> = BTreeMap::new();
    for cpu in Place::here().cpu_numbers() {
        cores.entry(sibling(cpu)).or_insert(cpu);
    }
    let most = thread::available_parallelism().map_or(1, usize::from);
    cores.into_values().take(most.max(1)).collect()
}
