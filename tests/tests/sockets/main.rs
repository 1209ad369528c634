//! Tests of ranks that are connected by sockets: every benchmark, failures, hostile connections, wrong options.

mod failures;
mod kernel;
mod measures;
mod model;
mod pipeline;
mod served;
mod streams;
mod unauthorised;

use std::path::PathBuf;

use ombx_tests::{Files, Job, Running, process::Process, results};
use serde_json::Value;

/// Returns a job of `ombx` on this host.
fn ombx(arguments: &str) -> Job {
    Job::of(ombx_tests::mpi::ombx()).with_one_launch().args(arguments.split_whitespace())
}

/// A job with a result file.
struct Kept(Files);

impl Kept {
    fn new() -> Kept {
        Kept(Files::default())
    }

    fn out(&self) -> PathBuf {
        self.0.path("out.jsonl")
    }

    fn job(&self, arguments: &str) -> Job {
        ombx(arguments).arg("-o").arg(self.out())
    }

    fn rows(&self) -> Vec<Value> {
        let lines = results::lines_of(&self.out());
        results::rows(&lines).into_iter().cloned().collect()
    }
}

/// Arguments for many rows of about 50 ms, so that a test can act in the middle.
const MANY_ROWS: &str = "run sockets.latency --transport all --nodelay all --sizes 1..32K \
                         --precision 0.0001% --max-time 50ms --format csv";

/// Starts such a job and returns when it has measured two rows.
fn in_the_middle(kept: &Kept) -> Running {
    let mut job = kept.job(MANY_ROWS).start();
    let out = kept.out();
    job.until("two rows are in the file", |_| results::rows_so_far(&out) >= 2);
    job
}

/// Returns the ranks of a job, by process number.
fn workers(job: &Running) -> Vec<Process> {
    let mut workers: Vec<Process> = job.processes().into_iter().filter(Process::is_worker).collect();
    workers.sort_by_key(|process| process.pid.as_raw_nonzero());
    workers
}
