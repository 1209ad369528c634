//! Groups of benchmarks whose messages are of derived datatypes.

use super::{
    datatypes::{Derived, LISTED, SMALL, STRUCTS},
    group::{Group, IN_WINDOW, SYNCS, Slots, WINDOW, group, named},
};

impl Group {
    fn with_datatypes(self, derived: Derived) -> Self {
        Self { derived: Some(derived), ..self }
    }

    /// Changes the group to messages in small blocks of vectors and indexed datatypes.
    pub(super) fn of_blocks(self) -> Self {
        self.with_datatypes(SMALL)
    }

    /// Changes the group to messages of structs, whose sizes are multiples of their payload.
    pub(super) fn of_structs(self) -> Self {
        let sizes = [40, 41, 42, 43, 44, 2731].map(|structs| structs * 24);
        Self { sizes: sizes.to_vec(), ..self.with_datatypes(STRUCTS) }
    }

    /// Changes the group to messages in listed blocks, whose sizes are multiples of their payload.
    fn of_listed_blocks(self) -> Self {
        let sizes = [60, 61, 62, 63, 65, 4096].map(|lists| lists * 16);
        Self { sizes: sizes.to_vec(), ..self.with_datatypes(LISTED) }
    }
}

/// Returns one-sided operations. Structs cannot be accumulated.
pub(super) fn one_sided() -> [Group; 10] {
    let one = |names: &[&str]| named(names, SYNCS, Slots::Calls(1));
    let window = |name: &str| group(vec![name.into()], SYNCS, Slots::Calls(WINDOW), IN_WINDOW);
    // In other windows, Open MPI 4.1 delivers wrong data in MPI_Get_accumulate of derived datatypes.
    let words = format!("{SYNCS} --win allocate,shared");
    let get_accumulate = named(&["rma.get_acc_latency"], &words, Slots::Calls(1)).once().of_blocks();
    [
        one(&["rma.put_latency", "rma.rput_latency"]).given().of_blocks().in_every_window(),
        one(&["rma.put_latency"]).given().of_structs().in_every_window(),
        window("rma.put_bw").given().of_blocks(),
        one(&["rma.get_latency", "rma.rget_latency"]).of_blocks().in_every_window(),
        one(&["rma.rget_latency"]).of_listed_blocks().in_every_window(),
        window("rma.get_bw").of_structs(),
        one(&["rma.acc_latency"]).given().once().of_blocks().in_every_window(),
        window("rma.acc_bw").given().once().of_blocks(),
        get_accumulate.clone(),
        get_accumulate.given(),
    ]
}

/// Operations with blocks from every rank, in all modes, operations with one block, and operations between neighbours.
const FROM_EVERY_RANK: [&str; 4] = [
    "collective.allgatherv",
    "collective.ialltoallw",
    "collective.alltoall_persistent",
    "collective.gatherv",
];
const ONE_BLOCK: [&str; 3] = ["collective.bcast", "collective.scatter", "collective.iscatterv"];
const TO_NEIGHBOURS: [&str; 2] = ["collective.neighbor_allgatherv", "collective.ineighbor_alltoallw"];

/// Returns collective operations. Where a rank receives blocks from several ranks, bytes flip in the first and in a later one.
pub(super) fn collective() -> [Group; 5] {
    let blocks = |names: &[&str]| Group { hit: vec![0, 1, 1], ..named(names, "", Slots::Parts) };
    [
        blocks(&FROM_EVERY_RANK).of_blocks(),
        blocks(&["collective.alltoallw", "collective.allgather"]).of_structs(),
        blocks(&["collective.alltoallv"]).of_listed_blocks(),
        named(&ONE_BLOCK, "", Slots::Parts).of_blocks(),
        // In a graph of two ranks each has one neighbour.
        named(&TO_NEIGHBOURS, "--topology graph", Slots::Parts).of_blocks(),
    ]
}
