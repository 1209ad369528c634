//! Names of other benchmark suites, and the benchmarks of ombx that measure the same.

use ombx_core::benchmark::Registry;

/// A suite with its names and their counterparts: a benchmark, and options if it needs any.
struct OtherSuite {
    name: &'static str,
    benchmarks: &'static [(&'static str, &'static str)],
}

/// Longer words are no names.
const LONGEST_NAME: usize = 64;

const OTHERS: [OtherSuite; 6] = [
    OtherSuite {
        name: "IMB",
        benchmarks: &[
            ("PingPong", "p2p.latency"),
            ("PingPing", "p2p.pingping"),
            ("Sendrecv", "p2p.sendrecv"),
            ("Exchange", "p2p.exchange"),
            ("Uniband", "p2p.mbw_mr"),
            ("Biband", "p2p.bibw"),
            ("Allgather", "collective.allgather"),
            ("Allgatherv", "collective.allgatherv"),
            ("Allreduce", "collective.allreduce"),
            ("Alltoall", "collective.alltoall"),
            ("Alltoallv", "collective.alltoallv"),
            ("Barrier", "collective.barrier"),
            ("Bcast", "collective.bcast"),
            ("Exscan", "collective.exscan"),
            ("Gather", "collective.gather"),
            ("Gatherv", "collective.gatherv"),
            ("Reduce", "collective.reduce"),
            ("Reduce_scatter", "collective.reduce_scatter"),
            ("Reduce_scatter_block", "collective.reduce_scatter_block"),
            ("Scan", "collective.scan"),
            ("Scatter", "collective.scatter"),
            ("Scatterv", "collective.scatterv"),
            ("Iallgather", "collective.iallgather"),
            ("Iallgatherv", "collective.iallgatherv"),
            ("Iallreduce", "collective.iallreduce"),
            ("Ialltoall", "collective.ialltoall"),
            ("Ialltoallv", "collective.ialltoallv"),
            ("Ibarrier", "collective.ibarrier"),
            ("Ibcast", "collective.ibcast"),
            ("Igather", "collective.igather"),
            ("Igatherv", "collective.igatherv"),
            ("Ireduce", "collective.ireduce"),
            ("Ireduce_scatter", "collective.ireduce_scatter"),
            ("Iscatter", "collective.iscatter"),
            ("Iscatterv", "collective.iscatterv"),
            ("Unirandom", "p2p.unirandom"),
            ("Birandom", "p2p.birandom"),
            ("Corandom", "p2p.corandom"),
            ("Stencil2D", "p2p.halo --dims 2"),
            ("Stencil3D", "p2p.halo --dims 3"),
            ("SendRecv_Replace", "p2p.sendrecv_replace"),
            ("Open_Close", "io.open"),
            ("Window", "rma.window"),
            ("Unidir_put", "rma.put_bw"),
            ("Unidir_get", "rma.get_bw"),
            ("Bidir_put", "rma.put_bibw"),
            ("Bidir_get", "rma.get_bibw"),
            ("Accumulate", "rma.acc_latency"),
            ("Get_accumulate", "rma.get_acc_latency"),
            ("Fetch_and_op", "rma.fop_latency"),
            ("Compare_and_swap", "rma.cas_latency"),
            ("Truly_passive_put", "rma.put_passive"),
        ],
    },
    OtherSuite {
        name: "iperf3",
        benchmarks: &[("iperf3", "sockets.bw"), ("iperf", "sockets.bw"), ("bidir", "sockets.bibw")],
    },
    OtherSuite {
        name: "sockperf",
        benchmarks: &[("sockperf", "sockets.latency"), ("ping-pong", "sockets.latency")],
    },
    OtherSuite {
        name: "netperf",
        benchmarks: &[
            ("TCP_RR", "sockets.latency"),
            ("UDP_RR", "sockets.latency --transport udp"),
            ("TCP_STREAM", "sockets.bw"),
            ("UDP_STREAM", "sockets.bw --transport udp"),
        ],
    },
    OtherSuite {
        name: "perftest",
        benchmarks: &[
            ("ib_send_lat", "p2p.latency"),
            ("ib_send_bw", "p2p.bw"),
            ("ib_write_lat", "rma.put_latency"),
            ("ib_write_bw", "rma.put_bw"),
            ("ib_read_lat", "rma.get_latency"),
            ("ib_read_bw", "rma.get_bw"),
        ],
    },
    OtherSuite { name: "LinkTest", benchmarks: &[("LinkTest", "p2p.link")] },
];

/// What leads from a name of another suite to a benchmark here.
pub(crate) struct Counterpart {
    /// The benchmark.
    pub(crate) name: &'static str,
    /// A sentence about it: `PingPong of IMB is p2p.latency`.
    pub(crate) sentence: String,
}

/// Returns the counterpart of a name, if this program has it. Letter case does not count.
pub(crate) fn counterpart(registry: &Registry, name: &str) -> Option<Counterpart> {
    let plain = |name: &str| name.to_ascii_lowercase().replace(['-', ' '], "_");
    // No name is longer, and a long word would be compared for long.
    let wanted = plain(name.get(..LONGEST_NAME.min(name.len())).filter(|start| *start == name)?);
    OTHERS.iter().find_map(|suite| {
        let (theirs, ours) = suite.benchmarks.iter().find(|(theirs, _)| plain(theirs) == wanted)?;
        let name = ours.split(' ').next().unwrap_or_default();
        registry.get(name).ok()?;
        let sentence = match theirs.eq_ignore_ascii_case(suite.name) {
            true => format!("what {} measures is {ours}", suite.name),
            false => format!("{theirs} of {} is {ours}", suite.name),
        };
        Some(Counterpart { name, sentence })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentence(registry: &Registry, name: &str) -> Option<String> {
        counterpart(registry, name).map(|counterpart| counterpart.sentence)
    }

    #[cfg(all(feature = "mpi", feature = "sockets"))]
    #[test]
    fn names_of_other_suites_are_known_in_any_case() {
        let registry = Registry::load().unwrap();
        for (name, expected) in [
            ("PingPong", "PingPong of IMB is p2p.latency"),
            ("pingpong", "PingPong of IMB is p2p.latency"),
            ("iperf3", "what iperf3 measures is sockets.bw"),
            ("tcp_rr", "TCP_RR of netperf is sockets.latency"),
        ] {
            assert_eq!(sentence(&registry, name).as_deref(), Some(expected));
        }
        assert_eq!(sentence(&registry, "p2p.latency"), None);
        assert_eq!(sentence(&registry, &"PingPong".repeat(10_000)), None);
        assert_eq!(sentence(&Registry::of([].into_iter()).unwrap(), "PingPong"), None);
    }

    #[cfg(all(feature = "mpi", feature = "sockets"))]
    #[test]
    fn every_counterpart_is_accepted_by_run() {
        let registry = Registry::load().unwrap();
        for (_, ours) in OTHERS.iter().flat_map(|suite| suite.benchmarks) {
            // Benchmarks of files need a directory, which a name does not give.
            let directory = if ours.starts_with("io.") { " --directory /tmp" } else { "" };
            let line = format!("ombx run {ours}{directory}");
            crate::commands::tests::prepare(&registry, &line).unwrap_or_else(|e| panic!("{line}: {e}"));
        }
    }
}
