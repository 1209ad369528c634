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

/// The family without MPI.
const SOCKETS: &str = "sockets";
/// What the families of ombx measure.
const ABOUT: [(&str, &str); 5] = [
    ("collective", "operations of all ranks (MPI_Bcast, MPI_Allreduce, ..)"),
    ("io", "files (MPI_File_write, MPI_File_read, ..)"),
    ("p2p", "messages between two ranks (MPI_Send, MPI_Recv, ..)"),
    ("rma", "one-sided operations (MPI_Put, MPI_Get, ..)"),
    (SOCKETS, "processes over TCP, UDP and Unix-domain sockets, without MPI"),
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

/// Returns why a build with these benchmarks has none of this name, or of the program of another suite that it names; `None` if it has
/// the family, or all families of MPI for such a program.
pub(crate) fn not_built(registry: &Registry, name: &str) -> Option<String> {
    let built: Vec<&str> = names(registry).collect();
    let family = name.split('.').next().unwrap_or_default();
    let lacks = about(family).is_some() && !built.contains(&family);
    let is_without_mpi = built.iter().all(|family| *family == SOCKETS);
    let is_of_mpi = ["osu_", "imb-"].iter().any(|start| name.to_lowercase().starts_with(start));
    let without = if is_without_mpi { "without MPI, " } else { "" };
    (lacks || is_without_mpi && is_of_mpi)
        .then(|| format!("it was built {without}with these families: {}", built.join(", ")))
}

/// Returns the glob of a family for its name, and any other word unchanged.
pub(crate) fn glob(registry: &Registry, word: &str) -> String {
    if registry.all().iter().any(|bench| family(bench) == word) {
        format!("{word}.*")
    } else {
        word.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use ombx_testkit::Probe;

    use crate::families::*;

    static SOCKETS_BW: Benchmark = Benchmark::new::<Probe<4>>("sockets.bw", "x");
    static LATENCY: Benchmark = Benchmark::new::<Probe<5>>("p2p.latency", "x");

    #[test]
    fn a_build_names_the_families_that_it_lacks() {
        let without_mpi = Registry::new([&SOCKETS_BW].into_iter()).unwrap();
        let why = "it was built without MPI, with these families: sockets";
        for name in ["p2p.latency", "p2p", "rma.*", "collective.bcast", "io.read", "osu_latency", "IMB-MPI1"]
        {
            assert_eq!(not_built(&without_mpi, name).as_deref(), Some(why), "{name}");
        }
        for name in ["sockets.latency", "sockets", "x.y", "iperf3"] {
            assert_eq!(not_built(&without_mpi, name), None, "{name}");
        }
        let some = Registry::new([&LATENCY, &SOCKETS_BW].into_iter()).unwrap();
        assert_eq!(
            not_built(&some, "rma.put_bw").as_deref(),
            Some("it was built with these families: p2p, sockets")
        );
        assert_eq!((not_built(&some, "p2p.latnecy"), not_built(&some, "osu_putbw")), (None, None));
    }
}
