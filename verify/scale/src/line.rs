//! Jobs of one number of ranks, and their outcomes.

use ombx_toolchain::mpi::Flavour;

use crate::job::Outcome;

/// Jobs of ombx: name and arguments. Few iterations, because ranks share cores.
pub(crate) const TASKS: [(&str, &str); 3] = [
    ("links", "links --sizes 8 --iterations 4 --warmup 1 --retest 0 --fail-on nothing"),
    ("allreduce", "run collective.allreduce --sizes 8 --iterations 20 --warmup 2"),
    ("mbw_mr", "run p2p.mbw_mr --sizes 8 --window 8 --iterations 20 --warmup 2"),
];

/// Numbers of ranks over sockets.
pub(crate) const SOCKET_RANKS: [u32; 3] = [100, 300, 1000];
/// Arguments of their job: a sample of the pairs.
pub(crate) const OVER_SOCKETS: &str =
    "links --fabric tcp --rounds 4 --sizes 8 --iterations 10 --retest 0 --fail-on nothing";

/// Outcomes of all jobs of one number of ranks.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) flavour: Flavour,
    pub(crate) ranks: u32,
    pub(crate) bare: Outcome,
    /// In the order of [`TASKS`].
    pub(crate) tasks: Vec<Outcome>,
}
