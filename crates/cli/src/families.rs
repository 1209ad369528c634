//! The families of benchmarks. Naming their crates links them: the linker drops a crate that no code names, and its benchmarks with it.

#[cfg(feature = "collective")]
use ombx_collective as _;
#[cfg(feature = "io")]
use ombx_io as _;
#[cfg(feature = "p2p")]
use ombx_p2p as _;
#[cfg(feature = "rma")]
use ombx_rma as _;
#[cfg(feature = "sockets")]
use ombx_sockets as _;

use ombx_core::benchmark::{Benchmark, Registry};

/// What the families of ombx measure.
const ABOUT: [(&str, &str); 5] = [
    ("collective", "operations of all ranks (MPI_Bcast, MPI_Allreduce, ..)"),
    ("io", "files (MPI_File_write, MPI_File_read, ..)"),
    ("p2p", "messages between two ranks (MPI_Send, MPI_Recv, ..)"),
    ("rma", "one-sided operations (MPI_Put, MPI_Get, ..)"),
    ("sockets", "processes over TCP, UDP and Unix-domain sockets, without MPI"),
];

/// Returns the family of a benchmark: its name before the first point.
pub(crate) fn family(bench: &Benchmark) -> &'static str {
    bench.name.split('.').next().unwrap_or_default()
}

/// Returns the names of all families.
pub(crate) fn names(registry: &Registry) -> impl Iterator<Item = &'static str> {
    registry.all().chunk_by(|a, b| family(a) == family(b)).map(|of_family| family(of_family[0]))
}

/// Returns what a family measures; `None` for one of another program.
pub(crate) fn about(family: &str) -> Option<&'static str> {
    ABOUT.iter().find(|(name, _)| *name == family).map(|(_, about)| *about)
}

/// Families with whether this program was built with them.
const BUILT: [(&str, bool); 5] = [
    ("collective", cfg!(feature = "collective")),
    ("io", cfg!(feature = "io")),
    ("p2p", cfg!(feature = "p2p")),
    ("rma", cfg!(feature = "rma")),
    ("sockets", cfg!(feature = "sockets")),
];

/// Returns why this build has no benchmark of this name, or of the program of another suite that it names; `None` unless features are
/// off.
pub(crate) fn not_built(registry: &Registry, name: &str) -> Option<String> {
    let family = name.split('.').next().unwrap_or_default();
    let lacks = |family: &str| BUILT.iter().any(|(known, is_built)| *known == family && !is_built);
    let is_of_mpi = |name: &str| ["osu_", "imb-"].iter().any(|start| name.to_lowercase().starts_with(start));
    let with_mpi = BUILT.iter().any(|(name, is_built)| *is_built && *name != "sockets");
    let all = || Vec::from_iter(names(registry)).join(", ");
    if lacks(family) && with_mpi {
        return Some(format!("it was built with these families: {}", all()));
    }
    (!with_mpi && (lacks(family) || is_of_mpi(name)))
        .then(|| format!("it was built without MPI, with these families: {}", all()))
}

/// Returns the glob of a family for its name, and any other word unchanged.
pub(crate) fn glob(registry: &Registry, word: &str) -> String {
    if registry.all().iter().any(|bench| family(bench) == word) {
        format!("{word}.*")
    } else {
        word.to_owned()
    }
}
