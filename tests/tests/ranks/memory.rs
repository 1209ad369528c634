//! What a rank of ombx needs beside its messages: at most so much more than the barest program of the same MPI.

use std::fs;

use ombx_tests::{Job, shim, tell};

use crate::Kept;

/// The promise, in kB.
const MOST: u64 = 10 * 1024;

/// The largest of the numbers after `Pss:`, in kB.
fn largest(text: &str) -> u64 {
    let numbers =
        text.lines().filter_map(|line| line.split_once("Pss:")?.1.split_whitespace().next()?.parse().ok());
    numbers.max().unwrap_or_else(|| panic!("no memory in {text}"))
}

#[test]
fn a_rank_needs_little_more_than_a_bare_one() {
    let bare = shim::program("bare", env!("CARGO_TARGET_TMPDIR"));
    let bare = largest(&Job::on_ranks(2, &bare).run().expect(0).stdout);
    let kept = Kept::new();
    let options = "p2p.latency p2p.bw collective.allreduce rma.put_latency --sizes 8 --precision 0.0001% --max-time 300ms";
    let mut job = kept.job(options).start();
    let out = kept.out();
    // Its last row: tables, samples and all that a run has are there.
    job.until("all rows but one are there", |_| ombx_tests::results::rows_so_far(&out) >= 3);
    let of_rank = |process: ombx_tests::process::Process| {
        let path = format!("/proc/{}/smaps_rollup", process.pid.as_raw_nonzero());
        fs::read_to_string(path).map(|text| largest(&text)).unwrap_or(0)
    };
    let ours: Vec<u64> = job.ranks().into_iter().map(of_rank).collect();
    job.wait().expect(0);
    let most = *ours.iter().max().expect("ranks");
    tell(&format!("{most} kB a rank, {bare} kB of a bare one: {} kB more", most.saturating_sub(bare)));
    assert!(ours.len() == 2 && most > bare / 2 && most < bare + MOST, "{ours:?} kB, bare {bare} kB");
}
