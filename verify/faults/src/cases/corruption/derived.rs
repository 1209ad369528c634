//! Messages of derived datatypes, whose payload has gaps, and the groups of benchmarks that flip their bytes.

use std::collections::BTreeMap;

use ombx_core::{
    benchmark::{
        AxisValue as _,
        payload::{BLOCK_LENGTH, BLOCKS, Blocks, Datatype, STRIDE},
    },
    error::Result,
    result::Measurement,
};

use super::{
    group::{Group, Slots, WINDOW},
    groups::{IN_WINDOW, SYNCS, group, named},
};

/// Derived datatypes of a job, and its settings of their blocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Derived {
    datatypes: &'static [Datatype],
    settings: &'static [(&'static str, &'static str)],
}

/// Small blocks.
const SMALL: Derived = Derived {
    datatypes: &[Datatype::Vector, Datatype::Indexed],
    settings: &[(BLOCK_LENGTH.name, "8"), (STRIDE.name, "12")],
};
/// Structs of 32 bytes, with a gap between `int32_t` and `double`.
const STRUCTS: Derived =
    Derived { datatypes: &[Datatype::Struct], settings: &[(BLOCK_LENGTH.name, "24"), (STRIDE.name, "40")] };
/// Listed blocks whose payload begins neither at the first byte of memory nor at the lowest block.
const LISTED: Derived = Derived {
    datatypes: &[Datatype::Indexed],
    settings: &[(BLOCKS.name, "20:6,4:8,14:2"), (STRIDE.name, "32")],
};

impl Derived {
    /// Returns the options of a job.
    pub(super) fn words(self) -> String {
        let datatypes: Vec<&str> = self.names().collect();
        let settings = self.settings.iter().map(|(name, value)| format!(" --{name} {value}"));
        format!("--datatype {}{}", datatypes.join(","), settings.collect::<String>())
    }

    /// Returns the names of the datatypes.
    pub(super) fn names(self) -> impl Iterator<Item = &'static str> {
        self.datatypes.iter().map(|datatype| datatype.name())
    }

    /// Returns the blocks of messages of a datatype.
    fn blocks(self, datatype: Datatype) -> Result<Option<Blocks>> {
        let settings = self.settings.iter().map(|(name, value)| (String::from(*name), String::from(*value)));
        Blocks::of(datatype, &settings.collect::<BTreeMap<_, _>>())
    }

    /// Returns the position in memory of a byte of the payload of a row.
    pub(super) fn position(self, row: &Measurement, bytes: u64, byte: u64) -> Result<u64> {
        let name = row.axes.get(Datatype::AXIS.name).map_or(Datatype::DEFAULT.name(), String::as_str);
        let blocks = self.blocks(Datatype::parse(name)?)?;
        Ok(blocks.and_then(|blocks| blocks.places(bytes).flatten().nth(byte as usize)).unwrap_or(byte))
    }

    /// Returns the position of a byte that is in a gap of the first datatype, in the second half of a message.
    pub(super) fn gap(self, bytes: u64) -> u64 {
        let blocks = self.blocks(self.datatypes[0]).ok().flatten().expect("a derived datatype");
        let payload: Vec<u64> = blocks.places(bytes).flatten().collect();
        let mut rest = blocks.span(bytes) / 2..;
        rest.find(|at| !payload.contains(at)).expect("a byte after the payload")
    }
}

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
        window("rma.put_bw").given().of_blocks().in_every_window(),
        one(&["rma.get_latency", "rma.rget_latency"]).of_blocks().in_every_window(),
        one(&["rma.rget_latency"]).of_listed_blocks().in_every_window(),
        window("rma.get_bw").of_structs().in_every_window(),
        one(&["rma.acc_latency"]).given().once().of_blocks().in_every_window(),
        window("rma.acc_bw").given().once().of_blocks().in_every_window(),
        get_accumulate.clone(),
        get_accumulate.given(),
    ]
}

/// Operations with blocks from every rank, in all modes, and operations with one block.
const FROM_EVERY_RANK: [&str; 4] = [
    "collective.allgatherv",
    "collective.ialltoallw",
    "collective.alltoall_persistent",
    "collective.gatherv",
];
const ONE_BLOCK: [&str; 3] = ["collective.bcast", "collective.scatter", "collective.iscatterv"];
const TO_NEIGHBOURS: [&str; 2] = ["collective.neighbor_allgatherv", "collective.ineighbor_alltoallw"];

/// Returns collective operations. Blocks of both ranks are hit, where there are several.
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
