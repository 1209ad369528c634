//! One byte of what a call delivers is flipped: every registered benchmark has to say on which rank, in which message, at
//! which byte.

mod groups;

use std::{collections::BTreeSet, rc::Rc};

use ombx_core::{
    payload::{Check, Mismatch},
    result::{Measurement, Outcome},
};

use crate::{
    case::{Case, Job, Place},
    interpose::Rule,
    run::Done,
    stage::{Bench, Stage},
};
use ombx_toolchain::mpi::Flavour;

/// Operations in flight.
const WINDOW: u64 = 4;

/// One byte of messages of one size: every size of a job is a fault of its own.
#[derive(Clone, Copy, Debug)]
struct Flip {
    /// Size of the row.
    size: u64,
    /// The rank whose calls are met.
    actor: u32,
    /// Whether that rank gives the message to the other, and not the other to it.
    given: bool,
    /// The message that is hit, of so many of an iteration, or the block of the buffer of a collective.
    slot: u64,
    byte: u64,
}

impl Flip {
    /// The rank that has the wrong byte in the end.
    fn hit(self) -> u32 {
        if self.given { 1 - self.actor } else { self.actor }
    }
}

/// How the messages of an iteration are told apart.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Slots {
    /// Calls take turns.
    Calls(u64),
    /// They are parts of one buffer, one behind the other.
    Parts,
}

/// Benchmarks that run in one job, with the same faults.
struct Group {
    names: Vec<String>,
    words: String,
    given: bool,
    slots: Slots,
    /// Slots that are hit, on each rank.
    hit: Vec<u64>,
    sizes: Vec<u64>,
    /// How much of a message arrives on a rank: one of so many parts.
    portion: u64,
    gate: bool,
}

/// A size that nothing happens to.
const UNTOUCHED: u64 = 64;

/// What an atomic operation returns arrives at its origin, whatever it does at its target.
fn arrives_of(row: &Measurement, flip: Flip) -> bool {
    let fetches = ["rma.get_acc", "rma.fop", "rma.cas"].iter().any(|start| row.bench.starts_with(start));
    let ranks = groups::arrives(row);
    let hit = if fetches && !flip.given { 1 - flip.hit() } else { flip.hit() };
    ranks.contains(&hit)
}

impl Group {
    fn flips(&self) -> Vec<Flip> {
        let slots = |actor| self.hit.iter().map(move |&slot| (actor, slot));
        let ranks_and_slots = [0, 1].into_iter().flat_map(slots);
        let places = ranks_and_slots.zip(&self.sizes).enumerate();
        let flip = |(at, ((actor, slot), &size)): (usize, ((u32, u64), &u64))| {
            let arrives = size / self.portion;
            let byte = [0, arrives / 2 - 1, arrives - 1][at % 3];
            Flip { size, actor, given: self.given, slot, byte }
        };
        places.map(flip).collect()
    }

    fn rule(&self, flip: Flip) -> Rule {
        // One element is as long as what ranks tell each other between rows: there the call has to be named.
        let call = match self.names.first().map(String::as_str) {
            Some("rma.fop_latency") => "Fetch_and_op",
            Some("rma.cas_latency") => "Compare_and_swap",
            _ => "*",
        };
        let rule = Rule::new(call, "flip").on(flip.actor).bytes(flip.size);
        let rule = if flip.given { rule.given() } else { rule };
        match self.slots {
            Slots::Calls(of) => rule.slot(flip.slot, of).byte(flip.byte),
            Slots::Parts => rule.byte(flip.slot * flip.size + flip.byte),
        }
    }

    fn cases(self, stage: &Stage) -> Vec<Case> {
        let known: Vec<&Bench> = self.names.iter().filter_map(|name| stage.bench(name)).collect();
        let flips = self.flips();
        let mut sizes: Vec<String> = flips.iter().map(|flip| flip.size.to_string()).collect();
        // Operations on one element know no other size.
        if self.sizes[0] > UNTOUCHED {
            sizes.push(UNTOUCHED.to_string());
        }
        let names: Vec<&str> = known.iter().map(|bench| bench.name.as_str()).collect();
        let words = format!(
            "run {} --sizes {} --window {WINDOW} -n 2 --allow-skips {}",
            names.join(" "),
            sizes.join(","),
            self.words
        );
        let rules = flips.iter().map(|&flip| self.rule(flip)).collect();
        let mut job = Job { rules, all_act: false, ..Job::of(&words) };
        job.deadline = std::time::Duration::from_secs(300);
        if stage.mpi.flavour == Flavour::OpenMpi && names.iter().any(|name| name.starts_with("rma.cas")) {
            // Open MPI 4 crashes in MPI_Compare_and_swap with the component that it would choose.
            job.prepare = Some(Box::new(|command, _, _| {
                command.env("OMPI_MCA_osc", "^rdma");
                Ok(())
            }));
        }
        let job = Rc::new(job);
        let fault =
            if self.given { "one byte of what is given flips" } else { "one byte of what arrives flips" };
        let case = |bench: &&Bench| {
            let (name, flips, defective) =
                (bench.name.clone(), flips.clone(), defect(stage).contains(&bench.name.as_str()));
            let case = Case::about(fault, Place::Verifying, &bench.name, Rc::clone(&job), 5)
                .look(move |done| caught(done, &name, &flips, defective))
                .skip_if(bench.unavailable.clone());
            if self.gate { case } else { case.on_demand() }
        };
        known.iter().map(case).collect()
    }
}

/// Persistent requests that deliver wrong data when they are started again: defects of MPICH 4.0 and 4.1.
fn defect(stage: &Stage) -> &'static [&'static str] {
    let old = ["4.0", "4.1"].iter().any(|version| stage.mpi.version.starts_with(version));
    if stage.mpi.flavour == Flavour::Mpich && old {
        &["collective.allgather_persistent", "collective.gather_persistent", "collective.scatter_persistent"]
    } else {
        &[]
    }
}

/// Every row of a benchmark is FAILED where its byte was flipped, and passed where none was.
fn caught(done: &Done, name: &str, flips: &[Flip], defective: bool) -> Result<String, String> {
    let Some(Ok(file)) = &done.out else { return Err("no result file".into()) };
    let rows = file.runs.iter().flat_map(|run| &run.rows).filter(|row| row.bench == name);
    let (mut count, mut ranks, mut slots) = (0, BTreeSet::new(), BTreeSet::new());
    for row in rows {
        if matches!(row.outcome, Outcome::Skipped(_)) || defective && matches!(row.check, Check::Failed(_)) {
            continue;
        }
        let flip = flips.iter().find(|flip| Some(flip.size) == row.bytes);
        let expected = flip.filter(|flip| arrives_of(row, **flip));
        match (expected, &row.check) {
            (None, Check::Passed) => {}
            (None, check) => return Err(format!("{}: untouched, but {check:?}", row.key)),
            (Some(flip), Check::Failed(Mismatch { rank, slot, byte, .. })) => {
                if (rank.0, *slot, *byte) != (flip.hit(), flip.slot, flip.byte) {
                    return Err(format!("{}: found {:?}, flipped {flip:?}", row.key, row.check));
                }
                count += 1;
                ranks.insert(rank.0);
                slots.insert(*slot);
            }
            (Some(flip), check) => return Err(format!("{}: {check:?}, flipped {flip:?}", row.key)),
        }
    }
    let list = |numbers: Vec<String>| numbers.join(",");
    let remark = format!(
        "{count} rows caught, on ranks {}, in slots {}",
        list(ranks.iter().map(ToString::to_string).collect()),
        list(slots.iter().map(ToString::to_string).collect())
    );
    if count > 0 || defective { Ok(remark) } else { Err("no row in which a byte could be flipped".into()) }
}

pub(crate) fn cases(stage: &Stage) -> Vec<Case> {
    let mut cases: Vec<Case> = groups::all().into_iter().flat_map(|group| group.cases(stage)).collect();
    cases.push(pipeline());
    let covered: BTreeSet<String> = cases.iter().map(|case| case.subject.clone()).collect();
    let missing = stage.benches.iter().filter(|bench| !covered.contains(&bench.name));
    cases.extend(missing.map(without));
    cases
}

/// A pipeline's connections are its own system calls; what it writes into its last file is not.
fn pipeline() -> Case {
    const BLOCK: u64 = 4096;
    let words =
        format!("run sockets.pipeline --nodes 2 --phases 2 --buffers 4 --block {BLOCK} --max-time 50ms");
    let rule = Rule::new("pwrite", "flip").bytes(BLOCK).given().byte(77).to_string();
    Case::of("one byte of what is given flips", Place::Verifying, "sockets.pipeline", &words, 5)
        .prepared(move |command, stage, room| {
            command.arg(format!("--sink=file:{}", room.join("sink").display()));
            command.env("LD_PRELOAD", &stage.library).env("OMBX_FAULTS", &rule);
            Ok(())
        })
        .says(&["data arrived wrong at node", "byte 77"])
}

/// A benchmark without a case: there has to be a reason.
fn without(bench: &Bench) -> Case {
    let case = Case::of("one byte flips", Place::Verifying, &bench.name, "list", 0).without_out();
    if bench.name.contains("barrier") {
        return case.skip_if(Some("moves no data".into()));
    }
    if bench.name.starts_with("sockets.") {
        // Its system calls are its own: no library can stand between.
        return case.skip_if(Some(
            "flipped by tests of crates/sockets: link::tests::a_flipped_bit_is_caught_everywhere".into(),
        ));
    }
    case.look(|_| Err("no case flips its bytes: add it to cases/corruption/groups.rs".into()))
}
