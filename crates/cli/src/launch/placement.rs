//! Placement of ranks over sockets on hosts.

use std::{collections::BTreeMap, iter::repeat_n};

use ombx_core::error::{Error, Result};
use ombx_sockets::socket;

use super::hosts::{Host, hosts};
use crate::arguments::start::StartArgs;

/// Maximum number of ranks. The coordinator has a thread and a connection for each.
const MOST_RANKS: u32 = 4096;

/// Place of one rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Placement {
    /// Host, or `None` for this one.
    pub(crate) host: Option<String>,
    /// Number of this rank among those of its host, and their count.
    pub(crate) on_host: (u32, u32),
}

/// Returns the place of each rank. Ranks fill the slots of each host in turn, and begin again at the first.
pub(crate) fn of_ranks(start: &StartArgs, ranks: u32) -> Result<Vec<Placement>> {
    let hosts = hosts(start)?;
    if ranks > MOST_RANKS {
        return Err(Error::usage(format!(
            "-n {ranks} is too large: sockets connect at most {MOST_RANKS} ranks"
        )));
    }
    let hosts = if hosts.is_empty() { vec![Host::new("localhost")] } else { hosts };
    let slots = hosts.iter().flat_map(|Host { name, slots, .. }| repeat_n(name, slots.unwrap_or(1) as usize));
    let names: Vec<&String> = slots.cycle().take(ranks as usize).collect();
    let mut counts: BTreeMap<&str, (bool, u32)> = BTreeMap::new();
    for name in &names {
        counts.entry(name).or_insert_with(|| (socket::is_here(name), 0)).1 += 1;
    }
    let mut placed: BTreeMap<&str, u32> = BTreeMap::new();
    let placements = names.into_iter().map(|name| {
        let (here, count) = counts[name.as_str()];
        let before = placed.entry(name).or_insert(0);
        *before += 1;
        Placement { host: (!here).then(|| name.clone()), on_host: (*before - 1, count) }
    });
    Ok(placements.collect())
}
