//! Processes of the pipeline that are killed, stopped or slow.

use std::{thread, time::Duration};

use ombx_toolchain::process::Process;
use rustix::process::Signal;

use crate::{
    case::{Case, Place},
    run::Running,
    stage::Stage,
};

/// 2 nodes, 6 phases, 8 senders and 8 receivers.
const PROCESSES: usize = 24;
const SHAPE: &str = "run sockets.pipeline --nodes 2 --phases 3 --buffer-count 16 --block 16K";

/// A row that ends by time.
const BY_TIME: &str = "--precision 0.0001% --max-time 3s --timeout 20s";

/// One process of each role, at both ends and in the middle.
const ROLES: [&str; 7] = [
    "node 0",
    "phase 1 of node 0",
    "phase 2 of node 1",
    "phase 3 of node 0",
    "sender to node 1 in phase 1 of node 0",
    "receiver from node 0 in phase 2 of node 1",
    "receiver from node 1 in phase 3 of node 0",
];
/// The case that every change must pass.
const GATE: (&str, &str) = ("is killed", ROLES[5]);

pub(crate) fn cases(stage: &Stage) -> Vec<Case> {
    ROLES.into_iter().flat_map(|role| role_cases(stage, role)).collect()
}

/// Returns the cases of the process with a role.
fn role_cases(stage: &Stage, role: &'static str) -> [Case; 4] {
    let endless = "--iterations 1000000";
    let limited = format!("{endless} --timeout 8s");
    [
        case(stage, "is killed", role, endless, 6)
            .act(move |job| send(job, role, Signal::KILL))
            .says(&[role, "was killed (signal 9)"]),
        case(stage, "is ended by SIGTERM", role, endless, 6)
            .act(move |job| send(job, role, Signal::TERM))
            .says(&[role]),
        case(stage, "is stopped", role, &limited, 6)
            .act(move |job| send(job, role, Signal::STOP))
            .says(&["sockets.pipeline"]),
        case(stage, "is stopped for a second", role, BY_TIME, 0).rows(1).act(move |job| {
            send(job, role, Signal::STOP)?;
            thread::sleep(Duration::from_secs(1));
            of_name(job, role).into_iter().for_each(|process| process.signal(Signal::CONT));
            Ok(())
        }),
    ]
}

/// Returns the case of a fault of the process with a role.
fn case(stage: &Stage, what: &str, role: &str, options: &str, code: i32) -> Case {
    let words = format!("{SHAPE} {options}");
    let fault = format!("{role} {what}");
    let case = Case::new(&fault, Place::Measuring, &words, code);
    case.skip_if(stage.needs_no_mpi()).gate((what, role) == GATE)
}

/// Returns the processes of the pipeline.
fn processes(job: &Running<'_>) -> Vec<Process> {
    let all = job.processes().into_iter();
    all.filter(|process| process.argv.get(1).is_some_and(|word| word == "pipeline-process")).collect()
}

fn of_name(job: &Running<'_>, name: &str) -> Option<Process> {
    processes(job).into_iter().find(|process| process.argv.get(2).is_some_and(|word| word == name))
}

/// Waits until all processes run, and sends a signal to the one with a name.
fn send(job: &mut Running<'_>, name: &str, signal: Signal) -> Result<(), String> {
    // A process that has just been forked still has the name of its parent.
    let all_run = |job: &Running<'_>| processes(job).len() == PROCESSES && of_name(job, name).is_some();
    job.until("all processes run", all_run)?;
    of_name(job, name).ok_or_else(|| format!("no process is called {name}"))?.signal(signal);
    Ok(())
}
