//! Groups of benchmarks by the way in which they move data.

use ombx_core::result::Measurement;

use super::{Group, Slots, WINDOW};

/// Returns the ranks on which data of a row arrives.
pub(crate) fn arrives(row: &Measurement) -> &'static [u32] {
    const BOTH: &[u32] = &[0, 1];
    let axis = |name: &str| row.axes.get(name).map(String::as_str).unwrap_or_default();
    let answered = matches!(axis("sync"), "pscw" | "fence") && row.bench.ends_with("_latency");
    let Some((family, name)) = row.bench.split_once('.') else { return &[] };
    let plain = name.trim_end_matches("_persistent").trim_end_matches("_partitioned");
    match (family, plain) {
        ("p2p", "fan_in") => &[0],
        ("p2p", "bw" | "fan_out" | "mbw_mr") => &[1],
        ("p2p", "link") if axis("pattern") == "unidirectional" => &[1],
        ("p2p", _) => BOTH,
        ("rma", name) if answered || name.ends_with("_bibw") => BOTH,
        ("rma", name) if name.starts_with("get_") && !name.starts_with("get_acc") => &[0],
        ("rma", name) if name.starts_with("rget") => &[0],
        ("rma", _) => &[1],
        (_, "bcast_round") => BOTH,
        (_, name) if name.contains("bcast") => &[1],
        (_, "exscan" | "iexscan") => &[1],
        (_, "gather" | "igather" | "gatherv" | "igatherv" | "reduce" | "ireduce") => &[0],
        _ => BOTH,
    }
}

/// Sizes of the six faults of a job: three places on each of two ranks. The last uses the rendezvous protocol.
const SIZES: [u64; 6] = [1000, 1008, 1016, 1024, 1032, 65536];
const ELEMENTS: [u64; 2] = [8, 4];

const MANY: &str = "--iterations 2 --warmup 1 --batch 1";
/// One iteration: a flipped byte is not accumulated again.
const ONCE: &str = "--iterations 1 --warmup 0 --batch 1";
/// Every synchronisation and window kind of one-sided operations.
const WAYS: &str = "--sync all --win all";

/// Operations in which every rank, or the root, receives a block from each rank.
const TO_BLOCKS: [&str; 7] =
    ["allgather", "allgatherv", "alltoall", "alltoallv", "alltoallw", "gather", "gatherv"];
/// Operations in which a rank receives one block.
const TO_ONE: [&str; 8] =
    ["allreduce", "bcast", "exscan", "reduce", "reduce_scatter_block", "scan", "scatter", "scatterv"];
/// Neighbourhood operations. In a graph of two ranks each has one neighbour.
const TO_A_NEIGHBOUR: [&str; 5] = [
    "neighbor_allgather",
    "neighbor_allgatherv",
    "neighbor_alltoall",
    "neighbor_alltoallv",
    "neighbor_alltoallw",
];
/// Broadcasts with timing methods of the literature.
const BROADCASTS: [&str; 4] = ["bcast_ack", "bcast_acked", "bcast_round", "bcast_window"];

fn group(names: &[&str], words: &[&str], slots: Slots, hit: [u64; 3]) -> Group {
    Group {
        names: names.iter().map(|&name| name.to_owned()).collect(),
        words: words.join(" "),
        given: false,
        slots,
        hit: hit.to_vec(),
        sizes: SIZES.to_vec(),
        portion: 1,
        gate: true,
    }
}

impl Group {
    /// Flips sent bytes instead of received ones.
    fn given(self) -> Self {
        Self { given: true, ..self }
    }

    /// Limits the group to messages of one element.
    fn of_elements(self) -> Self {
        Self { hit: vec![0], sizes: ELEMENTS.to_vec(), ..self }
    }
}

/// Returns the blocking, nonblocking and persistent forms of collective operations.
fn collective(operations: &[&str], slots: Slots, hit: [u64; 3]) -> Group {
    let modes = |name: &&str| {
        [format!("collective.{name}"), format!("collective.i{name}"), format!("collective.{name}_persistent")]
    };
    let names = operations.iter().flat_map(modes).collect();
    Group { names, ..group(&[], &[MANY], slots, hit) }
}

pub(crate) fn all() -> Vec<Group> {
    let (alone, in_turn) = (Slots::Calls(1), Slots::Calls(WINDOW));
    let one = [0, 0, 0];
    let window = [0, WINDOW / 2, WINDOW - 1];
    let pings = [
        "p2p.latency",
        "p2p.latency_persistent",
        "p2p.latency_partitioned",
        "p2p.latency_mt",
        "p2p.latency_mp",
        "p2p.multi_latency",
        "p2p.link",
    ];
    let streams = [
        "p2p.bw",
        "p2p.bw_persistent",
        "p2p.bibw",
        "p2p.bibw_persistent",
        "p2p.fan_in",
        "p2p.fan_out",
        "p2p.mbw_mr",
    ];
    let broadcasts = BROADCASTS.map(|name| format!("collective.{name}")).to_vec();
    vec![
        group(&pings, &[MANY, "--pattern all"], alone, one),
        group(&streams, &[MANY], in_turn, window),
        group(&["p2p.bw_partitioned"], &[MANY], Slots::Parts, window),
        group(&["rma.put_latency", "rma.rput_latency"], &[MANY, WAYS], alone, one).given(),
        group(&["rma.put_bw", "rma.put_bibw", "rma.rput_bw"], &[MANY, WAYS], in_turn, window).given(),
        group(&["rma.acc_latency", "rma.get_acc_latency"], &[ONCE, WAYS], alone, one).given(),
        group(&["rma.acc_bw", "rma.get_acc_bw"], &[ONCE, WAYS], in_turn, window).given(),
        group(&["rma.get_latency", "rma.rget_latency", "rma.get_acc_latency"], &[MANY, WAYS], alone, one),
        group(
            &["rma.get_bw", "rma.get_bibw", "rma.rget_bw", "rma.get_acc_bw"],
            &[MANY, WAYS],
            in_turn,
            window,
        ),
        group(&["rma.fop_latency"], &[MANY, WAYS], alone, one).of_elements(),
        group(&["rma.fop_latency"], &[ONCE, WAYS], alone, one).of_elements().given(),
        group(&["rma.cas_latency"], &[MANY, WAYS], alone, one).of_elements(),
        group(&["rma.cas_latency"], &[ONCE, WAYS], alone, one).of_elements().given(),
        collective(&TO_BLOCKS, Slots::Parts, [0, 1, 1]),
        collective(&TO_ONE, Slots::Parts, one),
        Group { words: format!("{MANY} --topology graph"), ..collective(&TO_A_NEIGHBOUR, Slots::Parts, one) },
        Group { portion: 2, ..collective(&["reduce_scatter"], Slots::Parts, one) },
        Group { names: broadcasts, ..group(&[], &[MANY], Slots::Parts, one) },
    ]
}
