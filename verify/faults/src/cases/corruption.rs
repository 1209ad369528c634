//! Flipped bytes: every registered benchmark must report the rank, the message and the byte.

mod datatypes;
mod derived;
mod group;
mod groups;
mod periodic;

use std::{collections::BTreeSet, rc::Rc};

use ombx_core::benchmark::{ParameterValue as _, payload::Datatype};
use ombx_record::result::{Check, Measurement, Mismatch, Outcome};
use ombx_toolchain::{Flavour, registry::Bench};

use self::{
    datatypes::Derived,
    group::{Flip, Group, UNTOUCHED},
};
use crate::{
    case::{Case, Place},
    run::Done,
    stage::Stage,
};

/// Returns whether the wrong byte arrives where the benchmark checks. The result of an atomic operation arrives at its origin.
fn arrives_of(row: &Measurement, flip: Flip) -> bool {
    let fetches = ["rma.get_acc", "rma.fop", "rma.cas"].iter().any(|start| row.bench.starts_with(start));
    let ranks = groups::arrives(row);
    // Each group of ranks is a pair.
    let hit = rank_of(row, flip) % 2;
    let hit = if fetches && !flip.given { 1 - hit } else { hit };
    ranks.contains(&hit)
}

/// Returns the rank on which the wrong byte of a row arrives.
fn rank_of(row: &Measurement, flip: Flip) -> u32 {
    match row.bench.as_str() {
        "rma.acc_many_latency" | "rma.acc_many_bw" => 0,
        "rma.window" => flip.actor,
        _ => flip.hit(),
    }
}

impl Group {
    /// Returns the case of each benchmark of the group.
    fn cases(self, stage: &Stage) -> Vec<Case> {
        let known = self.known(stage);
        let flips = self.flips();
        let mut sizes: Vec<String> = flips.iter().map(|flip| flip.size.to_string()).collect();
        // Operations on one element have no other size.
        if self.sizes[0] > UNTOUCHED {
            sizes.push(UNTOUCHED.to_string());
        }
        let rules = flips.iter().map(|&flip| self.rule(flip)).collect();
        let job = Rc::new(self.job(stage, rules, &sizes, &self.effort(stage)));
        let fault =
            if self.given { "one byte of what is given flips" } else { "one byte of what arrives flips" };
        let derived = self.derived;
        let case = |bench: &&Bench| {
            let (name, flips, defective) =
                (bench.name.clone(), flips.clone(), defect(stage).contains(&bench.name.as_str()));
            Case::about(fault, Place::Verifying, &bench.name, Rc::clone(&job), 5)
                .look(move |done| caught(done, &name, (&flips, derived), defective))
                .skip_if(bench.unavailable.clone())
                .gate(true)
        };
        known.iter().map(case).collect()
    }
}

/// Returns benchmarks whose persistent requests deliver wrong data when restarted: defects of MPICH 4.0 and 4.1.
pub(crate) fn defect(stage: &Stage) -> &'static [&'static str] {
    let old = ["4.0", "4.1"].iter().any(|version| stage.mpi.version.starts_with(version));
    if stage.mpi.flavour == Flavour::Mpich && old {
        &["collective.allgather_persistent", "collective.gather_persistent", "collective.scatter_persistent"]
    } else {
        &[]
    }
}

/// Checks that rows with a flipped byte failed with the right position, and that all others passed.
fn caught(
    done: &Done,
    name: &str,
    (flips, derived): (&[Flip], Option<Derived>),
    defective: bool,
) -> Result<String, String> {
    let Some(Ok(file)) = &done.out else { return Err("no result file".into()) };
    let rows = file.runs.iter().flat_map(|run| &run.rows).filter(|row| row.bench == name);
    let (mut count, mut ranks, mut slots, mut datatypes) =
        (0, BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for row in rows {
        if matches!(row.outcome, Outcome::Skipped(_)) || defective && matches!(row.check, Check::Failed(_)) {
            continue;
        }
        let flip = flips.iter().find(|flip| Some(flip.size) == row.bytes);
        let expected = flip.filter(|flip| arrives_of(row, **flip));
        match (expected, &row.check) {
            (None, Check::Passed) => {}
            (None, check) => return Err(format!("{}: no byte was flipped, but {check:?}", row.key)),
            (Some(flip), Check::Failed(Mismatch { rank, slot, byte, .. })) => {
                if (rank.0, *slot, *byte) != (rank_of(row, *flip), flip.slot, flip.position(row, derived)?) {
                    return Err(format!("{}: found {:?}, flipped {flip:?}", row.key, row.check));
                }
                count += 1;
                ranks.insert(rank.0);
                slots.insert(*slot);
                datatypes.extend(row.axes.get(Datatype::PARAMETER.name).cloned());
            }
            (Some(flip), check) => return Err(format!("{}: {check:?}, flipped {flip:?}", row.key)),
        }
    }
    let mut expected = derived.into_iter().flat_map(Derived::names);
    if let Some(datatype) = expected.find(|name| !datatypes.contains(*name)).filter(|_| !defective) {
        return Err(format!("no row of --datatype {datatype} in which a byte could be flipped"));
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
    let mut cases: Vec<Case> =
        groups::all(&stage.benches).into_iter().flat_map(|group| group.cases(stage)).collect();
    cases.extend(periodic::cases(stage));
    let covered: BTreeSet<String> = cases.iter().map(|case| case.subject.clone()).collect();
    cases.push(pipeline("one byte of what is given flips", ""));
    cases.push(pipeline("one byte flips in the first run of the warm-up only", ",times=1"));
    let missing = stage
        .benches
        .iter()
        .filter(|bench| !covered.contains(&bench.name) && bench.name != "sockets.pipeline");
    cases.extend(missing.map(without));
    cases
}

/// Bytes of a block of the pipeline.
const PIPELINE_BLOCK: u64 = 4096;

/// Returns the arguments of a small pipeline.
fn pipeline_of(options: &str) -> String {
    format!("run sockets.pipeline --nodes 2 --phases 2 --buffer-count 4 {options}")
}

/// Returns a case of the pipeline, where the library flips a byte of the final file.
fn pipeline(fault: &str, limit: &str) -> Case {
    let words = pipeline_of(&format!("--block {PIPELINE_BLOCK} --max-time 50ms"));
    let rule = format!("call=pwrite,do=flip,bytes={PIPELINE_BLOCK},way=out,byte=77{limit}");
    Case::new(fault, Place::Verifying, &words, 5)
        .prepared(move |command, stage, directory| {
            command.arg(format!("--sink=file:{}", directory.join("sink").display()));
            command.env("LD_PRELOAD", &stage.library).env("OMBX_FAULTS", &rule);
            Ok(())
        })
        .says(&["data arrived wrong at node", "byte 77"])
        .gate(true)
}

/// Returns a case for a benchmark whose bytes no case flips: skipped with a reason, otherwise wrong.
fn without(bench: &Bench) -> Case {
    let case = Case::new("one byte flips", Place::Verifying, "list", 0)
        .subject(&bench.name)
        .without_out()
        .gate(true);
    if bench.name.contains("barrier") || bench.name == "collective.init" {
        return case.skip_if(Some("transfers no data".into()));
    }
    case.look(|_| {
        Err("no case flips its bytes: add it to verify/faults/src/cases/corruption/groups.rs".into())
    })
}
