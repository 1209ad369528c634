//! Cycles of imports between more than two files of a crate.

use super::violation::Violation;
use crate::{
    imports::{Graph, directories},
    source::Source,
};
use ombx_toolchain::workspace::Workspace;

pub(super) fn check(workspace: &Workspace, sources: &[Source]) -> Vec<Violation> {
    directories(workspace)
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
