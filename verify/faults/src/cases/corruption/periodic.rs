//! Messages that are wrong now and then: the last timed iteration is usually right, so that only many verified iterations show them.
//!
//! The rows of one job have different sizes, and messages of each size are damaged at their own rate. As many iterations are verified as
//! a row needs to claim that it finds the smallest rate with 95 % probability. A damaged row that claims so must fail.

use std::{collections::BTreeMap, rc::Rc};

use ombx_estimate::publishable::found_from;
use ombx_record::result::{Check, Outcome};

use super::{
    defect,
    group::{DEADLINE, Group, UNTOUCHED, without_rdma},
    groups, pipeline_of,
};
use crate::{
    case::{Case, Job, Place},
    run::Done,
    stage::Stage,
};

/// Message sizes, and how often messages of each size are wrong: one in so many.
///
/// No samples that ranks send have these sizes. At most 299 of them have 15 bytes each: a time of 4 bytes, which is below 268 ms, two more
/// times or a reading of the clock of 9, and the number of a late one; the rest has 30 bytes: 4515. The 897 of `p2p.birandom` have a time
/// each, 3618 in all, as have the 749 of the pipeline.
const RATES: &[(u64, u64)] = &[(5000, 1), (5040, 2), (5080, 3), (5120, 10), (5160, 100)];
/// These sizes are those of single flips times this.
const TIMES_SINGLE: u64 = 5;
/// The rarest damage, of one benchmark of each kind. Of 2995 iterations there are 599 samples or more, or 5, and 749 of the
/// pipeline, each of 128 ns and more, which has 2 bytes.
const RARE: &[(u64, u64)] = &[(1040, 1000)];
/// The rates of operations on one element, which have few sizes: a job for each line.
const RATES_OF_ELEMENTS: [&[(u64, u64)]; 3] = [&[(8, 1), (4, 2)], &[(8, 3), (4, 10)], &[(8, 100)]];
/// Maximum number of benchmarks in one job.
const BENCHMARKS_OF_JOB: usize = 6;
/// Byte that is flipped in a wrong message.
const BYTE: u64 = 3;

/// Efforts for which a row claims to find wrong data in 1 of 100 iterations, 1 - 0.05^(1/299), and in 1 of 1000.
const EFFORT: &str = "--iterations 299 --warmup 2 --verify full";
const EFFORT_OF_RARE: &str = "--iterations 2995 --warmup 2 --verify full";
/// The first where three checked iterations count as one, because messages of an iteration overwrite each other.
const EFFORT_OF_DRAWN: &str = "--iterations 897 --warmup 2 --verify full";
/// A benchmark that needs it.
const DRAWN: &str = "p2p.birandom";
/// The first where two checked iterations count as one.
const EFFORT_OF_ELEMENTS: &str = "--iterations 598 --warmup 2 --verify full";
/// The pipeline's, for 1 of 1000: a run has 4 messages of each receiver.
const EFFORT_OF_PIPELINE: &str = "--iterations 749 --warmup 2 --verify full";

/// A benchmark with options, the call in which data goes wrong, what happens to it, and how often: once in so many calls.
type Fault = (&'static str, &'static str, &'static str, &'static str, u64);

/// Message size of all rows but those of one element.
const BYTES: u64 = 5000;

/// Faults of other kinds than a wrong byte, and wrong bytes in windows. All iterations are verified, and there are as many on a busy machine.
const FAULTS: [Fault; 14] = [
    ("p2p.latency", EFFORT, "Recv", "stale", 2),
    ("p2p.latency", EFFORT, "Recv", "stale", 3),
    ("p2p.latency", EFFORT, "Recv", "flip", 10),
    ("p2p.latency", "--verify full --iterations 2000", "Recv", "flip", 100),
    ("p2p.bw", EFFORT, "Irecv", "flip", 1000),
    ("collective.bcast", EFFORT, "Bcast", "stale", 2),
    ("collective.allreduce", EFFORT, "Allreduce", "stale", 2),
    ("rma.put_latency", "--sync all --iterations 299 --verify full", "Put", "lost", 3),
    ("rma.put_bw", "--sync all --iterations 299 --verify full", "Put", "lost", 1000),
    ("rma.cas_latency", "--sync all --iterations 299 --verify full", "Compare_and_swap", "swap", 1),
    ("rma.cas_latency", "--sync all --iterations 299 --verify full", "Compare_and_swap", "swap", 2),
    ("rma.cas_latency", "--sync all --iterations 299 --verify full", "Compare_and_swap", "swap", 3),
    ("rma.cas_latency", "--sync all --iterations 598 --verify full", "Compare_and_swap", "swap", 10),
    ("rma.cas_latency", "--sync all --verify full --iterations 5990", "Compare_and_swap", "swap", 1000),
];

pub(super) fn cases(stage: &Stage) -> Vec<Case> {
    let mut cases: Vec<Case> = FAULTS.into_iter().map(|fault| single(stage, fault)).collect();
    for group in groups::all(&stage.benches).into_iter().chain(groups::in_windows()) {
        if group.sizes[0] < UNTOUCHED {
            for rates in RATES_OF_ELEMENTS {
                cases.extend(group.damaged(stage, rates, EFFORT_OF_ELEMENTS));
            }
        } else {
            // The group knows the sizes that its datatypes can have.
            let rates = group.sizes.iter().zip(RATES).map(|(size, (_, of))| (TIMES_SINGLE * size, *of));
            cases.extend(group.damaged(stage, rates.collect::<Vec<_>>().leak(), EFFORT));
        }
    }
    for group in groups::of_each_kind() {
        cases.extend(group.damaged(stage, RARE, EFFORT_OF_RARE));
    }
    cases.extend(over_sockets(stage));
    cases
}

/// Returns the case of one fault in one benchmark.
fn single(stage: &Stage, (bench, options, call, what, of): Fault) -> Case {
    let bytes = if bench == "rma.cas_latency" { 8 } else { BYTES };
    let often = if of == 1 { "every message".into() } else { format!("one message in {of}") };
    let happens = match what {
        "flip" => "has a wrong byte",
        "swap" => "is swapped without comparing",
        _ => "is lost",
    };
    // The receiver of one direction, so that the period does not fit to that of the benchmark; a put is lost at its origin.
    let rank = if call.ends_with("ecv") || call == "Bcast" { 1 } else { 0 };
    let words = format!("run {bench} --sizes {bytes} -n 2 {options}");
    let rule = format!("call={call},do={what},rank={rank},bytes={bytes},slot={},of={of},byte=7", at(of));
    let case = Case::new(&format!("{often} {happens}"), Place::Verifying, &words, 5)
        .rule(rule)
        .says(&["data arrived wrong at"])
        .look(move |done| caught(done, bench, &[(bytes, of)]))
        .skip_if(stage.unavailable(bench))
        .gate(true);
    if bench == "rma.cas_latency" { case.prepared(without_rdma) } else { case }
}

/// Returns the rules that damage messages of each size at its rate, on every rank.
fn rules(call: &str, given: bool, rates: &[(u64, u64)]) -> Vec<String> {
    let way = if given { ",way=out" } else { "" };
    let rule = |(size, of): &(u64, u64)| {
        format!("call={call},do=flip,bytes={size},slot={},of={of},byte={BYTE}{way}", at(*of))
    };
    rates.iter().map(rule).collect()
}

/// Returns the index of the first wrong message. It is odd: of two messages that arrive in a buffer the second is seen.
fn at(of: u64) -> u64 {
    ((of / 2) | 1) % of
}

fn sizes(rates: &[(u64, u64)]) -> Vec<String> {
    rates.iter().map(|(size, _)| size.to_string()).collect()
}

impl Group {
    /// Returns the cases of jobs in which messages of each size are damaged at its rate.
    fn damaged(&self, stage: &Stage, rates: &'static [(u64, u64)], effort: &str) -> Vec<Case> {
        // Jobs of about equal numbers: an option of the group is an error in a job of benchmarks that do not have it.
        let jobs = self.names.len().div_ceil(BENCHMARKS_OF_JOB).max(1);
        let jobs = self.names.chunks(self.names.len().div_ceil(jobs).max(1)).flat_map(|names| {
            let part = Group { names: names.to_vec(), ..self.clone() };
            let rules = rules(self.call(), self.given, rates);
            let effort = if names.iter().any(|name| name == DRAWN) { EFFORT_OF_DRAWN } else { effort };
            let job = Rc::new(part.job(stage, rules, &sizes(rates), effort));
            part.known(stage).into_iter().map(move |bench| (Rc::clone(&job), bench))
        });
        let cases = jobs.map(|(job, bench)| {
            let known_defect = defect(stage).contains(&bench.name.as_str());
            let why = format!("{} delivers wrong data by itself", stage.mpi.name());
            damaged(&bench.name, rates, &job)
                .skip_if(bench.unavailable.clone())
                .skip_if(known_defect.then_some(why))
        });
        cases.collect()
    }
}

/// Returns the case of one benchmark of a job in which messages of each size are damaged at its rate.
fn damaged(name: &str, rates: &'static [(u64, u64)], job: &Rc<Job>) -> Case {
    let often: Vec<String> = rates.iter().map(|(_, of)| of.to_string()).collect();
    let fault = format!("one message in {} has a wrong byte", often.join(", "));
    let bench = name.to_owned();
    Case::about(&fault, Place::Verifying, name, Rc::clone(job), 5)
        .look(move |done| caught(done, &bench, rates))
}

/// Returns the cases of ranks over sockets and of the pipeline.
fn over_sockets(stage: &Stage) -> Vec<Case> {
    let all: Vec<(u64, u64)> = [RATES, RARE].concat();
    let all: &'static [(u64, u64)] = all.leak();
    let cases = [
        damaged_over_sockets("sockets.latency", EFFORT, RATES),
        damaged_over_sockets("sockets.bw", &format!("--window 4 {EFFORT}"), RATES),
        damaged_over_sockets("sockets.bw", &format!("--streams 3 --window 4 {EFFORT}"), RATES),
        damaged_over_sockets("sockets.connect", EFFORT, RATES),
        damaged_over_sockets("sockets.datagrams", &format!("--rate 50000 {EFFORT}"), RATES),
        damaged_over_sockets("sockets.bibw", &format!("--window 4 {EFFORT}"), RATES),
        damaged_over_sockets("sockets.link", &format!("--pattern all --window 4 {EFFORT}"), RATES),
        damaged_over_sockets("sockets.request", &format!("--rate 5000 --window 4 {EFFORT}"), RATES),
        damaged_over_sockets("sockets.latency", EFFORT_OF_RARE, RARE),
        damaged_over_sockets("sockets.pipeline", EFFORT_OF_PIPELINE, all),
    ];
    cases.into_iter().map(|case| case.skip_if(stage.needs_no_mpi())).collect()
}

/// Returns the case of one benchmark over sockets in which messages of each size are damaged at its rate.
fn damaged_over_sockets(name: &str, options: &str, rates: &'static [(u64, u64)]) -> Case {
    let sizes = sizes(rates).join(",");
    let words = match name {
        "sockets.pipeline" => pipeline_of(&format!("--ends all --block {sizes} {options}")),
        // These have one transport.
        "sockets.request" | "sockets.connect" | "sockets.datagrams" => {
            format!("run {name} --sizes {sizes} -n 2 {options}")
        }
        _ => format!("run {name} --transport all --sizes {sizes} -n 2 --allow-skips {options}"),
    };
    let mut job = Job::new(&words);
    job.deadline = DEADLINE;
    job.prepare = Some(Box::new(|command, stage, _| {
        let rules = rules("*", false, rates).join(";");
        command.env("LD_PRELOAD", &stage.library).env("OMBX_FAULTS", rules);
        Ok(())
    }));
    damaged(name, rates, &Rc::new(job))
}

/// Checks that every damaged row that claims to find its rate has failed, and that rows of each rate were caught.
fn caught(done: &Done, name: &str, rates: &[(u64, u64)]) -> Result<String, String> {
    let Some(Ok(file)) = &done.out else { return Err("no result file".into()) };
    let mut caught: BTreeMap<u64, u64> = rates.iter().map(|(_, of)| (*of, 0)).collect();
    let mut unclaimed = 0;
    for row in file.runs.iter().flat_map(|run| &run.rows).filter(|row| row.bench == name) {
        let Some((_, of)) = rates.iter().find(|(size, _)| Some(*size) == row.bytes) else { continue };
        match (&row.outcome, &row.check) {
            (Outcome::Skipped(_), _) => {}
            (_, Check::Failed(_)) => *caught.entry(*of).or_default() += 1,
            // Messages of an iteration overwrite each other: a period that fits hits only those that are not seen.
            _ if row.axes.get("pattern").is_some_and(|pattern| pattern != "semidirectional") => {
                unclaimed += 1
            }
            // On a busy machine a row may have too few checks for any rate.
            _ if found_from(row).is_none_or(|part| part * *of as f64 > 1.0) => unclaimed += 1,
            (_, check) => {
                return Err(format!(
                    "{}: one message in {of} was wrong, {check:?} after {} checked iterations",
                    row.key, row.checked
                ));
            }
        }
    }
    if let Some((of, _)) = caught.iter().find(|(_, rows)| **rows == 0) {
        return Err(format!("no row was caught in which one message in {of} was wrong"));
    }
    let rows: u64 = caught.values().sum();
    Ok(format!("{rows} rows caught, {unclaimed} passed without claiming their rate"))
}
