//! Jobs of ranks that are connected by sockets.

use std::fs;

use ombx_record::result::{Figure, Measurement};

use crate::{Job, Running, kept::Kept, process::Process, results};

/// Returns options of hundreds of rows of 50 ms or more. A test acts in the middle and ends the job.
pub fn many_rows() -> String {
    let sizes: Vec<String> = (1..40).step_by(2).map(|odd| format!("{odd}..1M")).collect();
    format!(
        "sockets.latency --transport tcp,unix --sizes {} --precision 0.0001% --max-time 50ms --format csv",
        sizes.join(",")
    )
}

/// Starts such a job with more options and returns when it has measured two rows.
pub fn in_the_middle(kept: &Kept, options: &str) -> Running {
    let mut job = kept.job(&format!("{} {options}", many_rows())).start();
    let out = kept.out();
    job.until("two rows are in the file", |_| results::rows_so_far(&out) >= 2);
    job
}

/// Returns the ranks of a job, by process number.
pub fn workers(job: &Running) -> Vec<Process> {
    let mut workers: Vec<Process> = job.processes().into_iter().filter(Process::is_worker).collect();
    workers.sort_by_key(|process| process.pid.as_raw_nonzero());
    workers
}

/// Starts a job of one row with these options, which lasts until it is ended, and returns when the row is measured.
pub fn in_an_endless_row(options: &str) -> Running {
    let line = format!("run {options} --sizes 1000 --duration 1h --batch 1 --interval 50ms");
    let mut job = Job::ombx(&line).start();
    job.until("the row is measured", |job| job.stderr().contains(" .. "));
    job
}

/// Returns the numbers of the file descriptors of a process that are sockets.
pub fn sockets_of(process: &Process) -> Vec<i32> {
    let files = format!("/proc/{}/fd", process.pid.as_raw_nonzero());
    let entries = fs::read_dir(files).into_iter().flatten().flatten();
    let sockets = entries.filter(|entry| {
        fs::read_link(entry.path()).is_ok_and(|to| to.to_string_lossy().starts_with("socket:"))
    });
    sockets.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Returns the value of a figure.
///
/// # Panics
/// The row has no such figure, or it has no value.
pub fn figure(row: &Measurement, name: &str) -> f64 {
    match row.figures.get(name) {
        Some(Figure::Value(value)) => *value,
        other => panic!("{}: {name}: {other:?}", row.key),
    }
}
