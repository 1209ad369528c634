//! Groups of benchmarks by the way in which they move data.

use std::{env, path::PathBuf};

use ombx_record::result::Measurement;
use ombx_toolchain::registry::{self, Bench, OneSided};

use super::{
    derived,
    group::{FIRST, Group, IN_WINDOW, SYNCS, Slots, WINDOW, group, named},
};

/// Returns the ranks on which data of a row arrives.
pub(crate) fn arrives(row: &Measurement) -> &'static [u32] {
    const BOTH: &[u32] = &[0, 1];
    let axis = |name: &str| row.axes.get(name).map(String::as_str).unwrap_or_default();
    let answered = matches!(axis("sync"), "pscw" | "fence") && row.bench.ends_with("_latency");
    let Some((family, name)) = row.bench.split_once('.') else { return &[] };
    let name = name.trim_end_matches("_mt");
    let plain = name.trim_end_matches("_persistent").trim_end_matches("_partitioned");
    match (family, plain) {
        ("p2p", "fan_in") => &[0],
        ("p2p", "bw" | "fan_out" | "mbw_mr" | "request") => &[1],
        ("p2p", "link") if axis("pattern") == "unidirectional" => &[1],
        ("p2p", _) => BOTH,
        ("io", _) => BOTH,
        ("rma", "put_incast" | "acc_many_latency" | "acc_many_bw") => &[0],
        ("rma", "window") => BOTH,
        ("rma", name) if name.contains("_many_") && axis("shape") != "one_to_all" => BOTH,
        ("rma", name) if answered || name.ends_with("_bibw") => BOTH,
        ("rma", name) if name.starts_with("get_") && !name.starts_with("get_acc") => &[0],
        ("rma", name) if name.starts_with("rget") => &[0],
        ("rma", _) => &[1],
        (_, "bcast_round") => BOTH,
        (_, name) => match name.strip_prefix('i').unwrap_or(name) {
            name if name.starts_with("bcast") => &[1],
            name if name.starts_with("gather") => &[0],
            "exscan" => &[1],
            "reduce" => &[0],
            _ => BOTH,
        },
    }
}

/// Beginnings of the names of operations in which every rank, or the root, receives a block from each rank.
const TO_BLOCKS: [&str; 3] = ["allgather", "alltoall", "gather"];
/// The operation in which every rank receives a part of a message.
const TO_A_PORTION: &str = "reduce_scatter";
/// The benchmark of one message with many parts.
const ONE_MESSAGE: &str = "p2p.bw_partitioned";
/// The benchmark of requests at an offered rate, whose first request is in the first slot.
const REQUESTS: &str = "p2p.request";
/// The benchmark whose message a rank passes on: a byte that flips in two iterations is right again.
const REPLACED: &str = "p2p.sendrecv_replace";
/// The one-sided benchmark of many origins, which has no choice of synchronisation and window.
const INCAST: &str = "rma.put_incast";
/// The benchmark of windows that live for one iteration, in which a put has 8 bytes at most.
const WINDOW_LIFETIME: &str = "rma.window";
/// Broadcasts with timing methods of the literature.
const BROADCASTS: [&str; 4] = ["bcast_ack", "bcast_acked", "bcast_round", "bcast_window"];

/// Buffers that are not in a cache of this size.
const COLD: &str = "--cache cold --cache-size 64K";
/// Returns the groups of all registered benchmarks over MPI that move data.
pub(crate) fn all(benches: &[Bench]) -> Vec<Group> {
    let groups = two_sided(benches).into_iter().chain(one_sided(benches)).chain(collective(benches));
    groups.chain(derived::collective()).chain(threads(benches)).chain(files()).collect()
}

/// Windows of messages, single messages, and the patterns of a link, some of which have one message in flight.
fn two_sided(benches: &[Bench]) -> [Group; 16] {
    let apart = [ONE_MESSAGE, REQUESTS, REPLACED];
    let is_other = |bench: &&Bench| {
        bench.name.starts_with("p2p.") && !apart.contains(&bench.name.as_str()) && !has_threads(bench)
    };
    let all = benches.iter().filter(is_other);
    let (links, others): (Vec<&Bench>, Vec<&Bench>) = all.partition(|bench| bench.axis("pattern").is_some());
    let (windows, singles): (Vec<&Bench>, Vec<&Bench>) = others.into_iter().partition(|bench| bench.streams);
    let names = |benches: Vec<&Bench>| benches.iter().map(|bench| bench.name.clone()).collect();
    let with = |axis: &str, benches: &[&Bench]| {
        let with_choice = benches.iter().filter(|bench| bench.axis(axis).is_some());
        with_choice.map(|bench| bench.name.clone()).collect::<Vec<String>>()
    };
    let derived = |benches: &[&Bench], slots, hit| group(with("datatype", benches), "", slots, hit);
    [
        derived(&singles, Slots::Calls(1), FIRST).of_blocks(),
        derived(&singles, Slots::Calls(1), FIRST).of_structs(),
        derived(&windows, Slots::Calls(WINDOW), IN_WINDOW).of_blocks(),
        derived(&windows, Slots::Calls(WINDOW), IN_WINDOW).of_structs(),
        group(with("receive-from", &singles), "--receive-from any", Slots::Calls(1), FIRST),
        group(with("receive-from", &windows), "--receive-from any", Slots::Calls(WINDOW), IN_WINDOW),
        group(with("cache", &singles), COLD, Slots::Calls(1), FIRST),
        group(with("cache", &windows), COLD, Slots::Calls(WINDOW), IN_WINDOW),
        group(with("send", &singles), "--send all", Slots::Calls(1), FIRST),
        group(with("send", &windows), "--send all", Slots::Calls(WINDOW), IN_WINDOW),
        group(names(singles), "", Slots::Calls(1), FIRST),
        group(names(links), "--pattern all", Slots::Calls(1), FIRST),
        group(names(windows), "", Slots::Calls(WINDOW), IN_WINDOW),
        group(vec![ONE_MESSAGE.into()], "", Slots::Parts, IN_WINDOW),
        group(vec![REQUESTS.into()], "--rate 1000", Slots::Calls(1), FIRST),
        group(vec![REPLACED.into()], "--receive-from all", Slots::Calls(1), FIRST).once(),
    ]
}

/// Returns whether every thread of a rank has a partner thread and buffers of its own.
fn has_threads(bench: &Bench) -> bool {
    bench.name.ends_with("_mt") && bench.name != "p2p.latency_mt"
}

/// Returns the benchmarks of several threads: single messages, windows, collectives with blocks of all ranks, and other collectives.
fn threads(benches: &[Bench]) -> [Group; 4] {
    let is_of = |bench: &Bench, family: &str| bench.name.starts_with(family) && has_threads(bench);
    let names = |holds: &dyn Fn(&Bench) -> bool| {
        let chosen = benches.iter().filter(|bench| bench.sizes != "0" && holds(bench));
        chosen.map(|bench| bench.name.clone()).collect::<Vec<String>>()
    };
    let is_to_blocks =
        |bench: &Bench| TO_BLOCKS.iter().any(|start| bench.name["collective.".len()..].starts_with(start));
    let messages = |streams| names(&move |bench| is_of(bench, "p2p.") && bench.streams == streams);
    let collectives =
        |to_blocks| names(&move |bench| is_of(bench, "collective.") && is_to_blocks(bench) == to_blocks);
    [
        group(messages(false), "", Slots::Calls(1), FIRST).on_second_thread(),
        group(messages(true), "", Slots::Calls(WINDOW), IN_WINDOW).on_second_thread(),
        group(collectives(true), "", Slots::Parts, [0, 1, 1]).on_second_thread(),
        group(collectives(false), "", Slots::Parts, FIRST).on_second_thread(),
    ]
}

/// Returns whether data arrives at the origin, by the name of the operation.
fn gets(one: &OneSided<'_>) -> bool {
    one.operation.starts_with("get") || one.operation.starts_with("rget")
}

/// Returns whether a flipped byte of one iteration remains in the next.
fn accumulates(one: &OneSided<'_>) -> bool {
    one.operation.contains("acc")
}

/// Returns writes, which the other rank reads back, reads, and a file that ranks open and write to.
fn files() -> [Group; 7] {
    let calls = format!("{} --pointer all --access all", directory());
    let of = |name: &str, words: &str, slots, hit| {
        group(vec![name.into()], &format!("{calls} {words}"), slots, hit)
    };
    let opened = group(vec!["io.open".into()], &directory(), Slots::Calls(1), FIRST);
    [
        of("io.write", "--file-sync all", Slots::Calls(1), FIRST).given(),
        of("io.write", "--file-sync end", Slots::Calls(WINDOW), IN_WINDOW).given(),
        of("io.read", "--files all", Slots::Calls(1), FIRST),
        of("io.iwrite", "--file-sync all", Slots::Calls(1), FIRST).given(),
        of("io.iwrite", "--overlap none", Slots::Calls(1), FIRST).given(),
        of("io.iread", "--files all --overlap all", Slots::Calls(1), FIRST),
        opened.given(),
    ]
}

/// Returns the option with the directory of files: in memory, where MPI_File_sync takes no time.
fn directory() -> String {
    let memory = PathBuf::from("/dev/shm");
    let directory = if memory.is_dir() { memory } else { env::temp_dir() };
    format!("--directory {}", directory.display())
}

/// Accumulates, of which other types and operations than the default are tested.
const ACCUMULATES: &[&str] = &["rma.acc_latency", "rma.get_acc_latency"];
/// The same on one element.
const ATOMICS: &[&str] = &["rma.fop_latency"];

/// Returns groups of types and operations whose result first differs in the byte of the operand that flips.
fn typed(names: &[&str], adapt: fn(Group) -> Group) -> [Group; 2] {
    ["--type int64,uint32 --op prod,bxor", "--type double,float --op replace"].map(|words| {
        let names = names.iter().map(|&name| name.into()).collect();
        adapt(group(names, words, Slots::Calls(1), FIRST).given())
    })
}

fn one_sided(benches: &[Bench]) -> Vec<Group> {
    let (elements, messages): (Vec<OneSided<'_>>, Vec<OneSided<'_>>) =
        registry::one_sided(benches).partition(|one| one.bench.has_one_size());
    let mut groups = Vec::new();
    for (mode, slots, hit) in [("latency", Slots::Calls(1), FIRST), ("bw", Slots::Calls(WINDOW), IN_WINDOW)] {
        let group_of = |holds: fn(&OneSided<'_>) -> bool| {
            let chosen =
                messages.iter().filter(|one| (one.mode == "latency") == (mode == "latency") && holds(one));
            group(chosen.map(|one| one.bench.name.clone()).collect(), SYNCS, slots, hit)
        };
        groups.push(group_of(|one| !gets(one) && !accumulates(one)).given());
        groups.push(group_of(accumulates).given().once());
        groups.push(group_of(gets));
    }
    for one in elements {
        let elements = || group(vec![one.bench.name.clone()], SYNCS, Slots::Calls(1), FIRST).of_elements();
        groups.extend([elements(), elements().given().once()]);
    }
    groups.extend(typed(ACCUMULATES, Group::once));
    groups.extend(typed(ATOMICS, |group| group.once().of_elements()));
    let incast = group(vec![INCAST.into()], "", Slots::Calls(WINDOW), IN_WINDOW).given();
    // With both neighbours, an iteration of two ranks has twice as many calls.
    let shapes = "--shape one_to_all,all_to_all,pairs --completion all";
    let many = |name: &str, slots, hit| group(vec![format!("rma.{name}")], shapes, slots, hit);
    let completions = "--completion all";
    let combined =
        |name: &str, slots, hit| group(vec![format!("rma.{name}")], completions, slots, hit).given().once();
    let window = group(vec![WINDOW_LIFETIME.into()], "", Slots::Calls(1), FIRST).given().of_elements();
    let towards_several = [
        window,
        named(&["rma.put_passive"], "", Slots::Calls(1)).given(),
        combined("acc_many_latency", Slots::Calls(1), FIRST),
        combined("acc_many_bw", Slots::Calls(WINDOW), IN_WINDOW),
        many("put_many_latency", Slots::Calls(1), FIRST).given(),
        many("put_many_bw", Slots::Calls(WINDOW), IN_WINDOW).given(),
        many("get_many_latency", Slots::Calls(1), FIRST),
        many("get_many_bw", Slots::Calls(WINDOW), IN_WINDOW),
    ];
    let groups = groups.into_iter().map(Group::in_every_window).chain([incast]);
    groups.chain(towards_several).chain(derived::one_sided()).collect()
}

/// A broadcast and a reduction in all modes.
const IN_ALL_MODES: [&str; 6] = [
    "collective.bcast",
    "collective.ibcast",
    "collective.bcast_persistent",
    "collective.allreduce",
    "collective.iallreduce",
    "collective.allreduce_persistent",
];

/// Returns collective operations that start in windows of time. Windows are long on a busy machine, so each operation has its own job.
pub(super) fn in_windows() -> [Group; 6] {
    IN_ALL_MODES.map(|name| named(&[name], "--pace window", Slots::Parts))
}

/// Returns benchmarks of each way in which data moves.
pub(super) fn of_each_kind() -> Vec<Group> {
    let calls = Slots::Calls(1);
    let by_barriers = [
        named(&["p2p.latency", "p2p.bw", "p2p.latency_persistent"], "", calls),
        named(&["rma.put_latency", "rma.acc_latency"], SYNCS, calls).given(),
        named(&["rma.get_latency"], SYNCS, calls),
        named(&IN_ALL_MODES, "", Slots::Parts),
    ];
    by_barriers.into_iter().chain(in_windows()).collect()
}

/// Neighbourhoods that the user describes, in which each of two ranks has one neighbour.
const DESCRIBED: &str = "--topology torus,edges --neighbours 0:1,1:0";

/// Reductions in all modes, of which other types and operations than the default are tested.
const REDUCTIONS: [&str; 3] = ["collective.allreduce", "collective.ireduce", "collective.scan_persistent"];

/// The reduction of a rank's own buffers.
const LOCAL: &str = "collective.reduce_local";

/// Collective operations in all modes, and the other broadcasts.
fn collective(benches: &[Bench]) -> [Group; 11] {
    let (mut blocks, mut one, mut portion, mut neighbours) = (vec![], vec![], vec![], vec![]);
    for operation in registry::collectives(benches).filter(|operation| operation.blocking.sizes != "0") {
        let group = match operation.name {
            _ if operation.blocking.axis("topology").is_some() => &mut neighbours,
            TO_A_PORTION => &mut portion,
            name if TO_BLOCKS.iter().any(|start| name.starts_with(start)) => &mut blocks,
            _ => &mut one,
        };
        group.extend(operation.benchmarks());
    }
    let broadcasts = BROADCASTS.map(|name| format!("collective.{name}")).to_vec();
    // In a graph of two ranks each has one neighbour.
    let graph = "--topology graph";
    [
        group(blocks, "", Slots::Parts, [0, 1, 1]),
        group(one, "", Slots::Parts, FIRST),
        group(neighbours, graph, Slots::Parts, FIRST),
        named(&["collective.neighbor_alltoall"], DESCRIBED, Slots::Parts),
        Group { portion: 2, ..group(portion, "", Slots::Parts, FIRST) },
        group(broadcasts, "", Slots::Parts, FIRST),
        named(&["collective.ibcast", "collective.iallreduce"], "--overlap none", Slots::Parts),
        named(&REDUCTIONS, "--type int64,double --op prod,max,user", Slots::Parts),
        named(&IN_ALL_MODES, "", Slots::Parts).in_groups(),
        named(&[LOCAL], "", Slots::Parts),
        named(&[LOCAL], "--type int64,double --op sum,prod,max,user", Slots::Parts).once(),
    ]
}
