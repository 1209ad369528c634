//! What a rank of ombx needs beside its messages: at most so much more than the barest program of the same MPI.

use std::fs;

use ombx_tests::{Job, shim, tell};

use crate::Kept;

/// The promise, in kB.
const MOST: u64 = 10 * 1024;

/// What counts: memory written to, the rank's share where others share it. Code is left out: that of a debug build is several
/// times as large as what people install, and the ranks of a host have one copy.
const COUNTED: &str = "Pss_Dirty:";

/// The largest of the numbers that count, in kB.
fn largest(text: &str) -> Option<u64> {
    let after = |line: &str| line.split_once(COUNTED)?.1.split_whitespace().next()?.parse().ok();
    text.lines().filter_map(after).max()
}

#[test]
fn a_rank_needs_little_more_than_a_bare_one() {
    let bare = shim::program("bare", env!("CARGO_TARGET_TMPDIR"));
    let bare = largest(&Job::on_ranks(2, &bare).run().expect(0).stdout).expect("memory of a bare program");
    let kept = Kept::new();
    let options = "p2p.latency p2p.bw collective.allreduce rma.put_latency --sizes 8 --precision 0.0001% --max-time 300ms";
    let mut job = kept.job(options).start();
    let out = kept.out();
    let (mut peaks, mut looks) = ([0, 0], 0);
    // At any moment: statistics and the writing of a row need more than its samples alone.
    job.until("all rows but one are there", |job| {
        let of_rank = |process: ombx_tests::process::Process| {
            let path = format!("/proc/{}/smaps_rollup", process.pid.as_raw_nonzero());
            fs::read_to_string(path).ok().and_then(|text| largest(&text)).unwrap_or(0)
        };
        let ours: Vec<u64> = job.ranks().into_iter().map(of_rank).collect();
        if ours.len() == peaks.len() {
            looks += 1;
            peaks.iter_mut().zip(ours).for_each(|(peak, now)| *peak = now.max(*peak));
        }
        ombx_tests::results::rows_so_far(&out) >= 3
    });
    job.wait().expect(0);
    let most = peaks[0].max(peaks[1]);
    tell(&format!("{most} kB a rank at the most of {looks} looks, {bare} kB of a bare one ({COUNTED})"));
    assert!(looks > 10 && most > bare && most < bare + MOST, "{peaks:?} kB, bare {bare} kB");
}
