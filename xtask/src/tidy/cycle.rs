//! Cycles of imports between more than two files of a crate.

use super::violation::Violation;
use crate::{
    imports::{Graph, directories},
    source::Source,
};
use ombx_toolchain::workspace::Workspace;

/// Directories of crates that still have such cycles.
const EXEMPT: &[&str] = &[];

pub(super) fn check(workspace: &Workspace, sources: &[Source]) -> Vec<Violation> {
    directories(workspace)
        .filter(|directory| !EXEMPT.contains(directory))
        .flat_map(|directory| {
            let graph = Graph::of(directory, sources);
            let violation = |cycle: &Vec<usize>| {
                let what = format!("import cycle of {} files:{}", cycle.len(), graph.ties(cycle));
                Violation::new(&graph.files[cycle[0]], 1, what)
            };
            graph.cycles().map(violation).collect::<Vec<_>>()
        })
        .collect()
}
