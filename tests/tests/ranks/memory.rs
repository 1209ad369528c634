//! What a rank of ombx needs beside its messages: at most so much more than the barest program of the same MPI.

use std::fs;

use ombx_tests::{Job, shim, tell};

use crate::Kept;

/// The promise, in kB.
const MOST: u64 = 10 * 1024;

/// Memory of the rank's own, and its share of what is written by several: what statistics and the writing of a row need shows here,
/// at its peak. Not `Pss_Dirty`, which has the code of a binary too as long as that is new and not yet on the disk.
const OWN: &[&str] = &["Pss_Anon:", "Pss_Shmem:"];
/// Code too, of which the ranks of a host have one copy; at its least, since that of a debug build is several times as large as
/// what people install.
const ALL: &[&str] = &["Pss:"];

/// The sum of the largest numbers of these kinds, in kB.
fn largest(text: &str, kinds: &[&str]) -> Option<u64> {
    let number = |line: &str, kind: &str| {
        let mut words = line.split_whitespace().skip_while(|word| *word != kind).skip(1);
        words.next()?.parse::<u64>().ok()
    };
    kinds.iter().map(|kind| text.lines().filter_map(|line| number(line, kind)).max()).sum()
}

#[test]
fn a_rank_needs_little_more_than_a_bare_one() {
    let bare = shim::program("bare", env!("CARGO_TARGET_TMPDIR"));
    let bare = Job::on_ranks(2, &bare).run().expect(0).stdout;
    let [bare_own, bare_all] = [OWN, ALL].map(|kind| largest(&bare, kind).expect("memory of a bare program"));
    let kept = Kept::new();
    let options =
        "p2p.latency p2p.bw collective.allreduce rma.put_latency --sizes 8 --precision 0.0001% --max-time 1s";
    let mut job = kept.job(options).start();
    let out = kept.out();
    let (mut peak, mut least, mut looks) = (0, u64::MAX, 0);
    job.until("all rows but one are there", |job| {
        let of_rank = |process: ombx_tests::process::Process| {
            let path = format!("/proc/{}/smaps_rollup", process.pid.as_raw_nonzero());
            let text = fs::read_to_string(path).ok()?;
            Some((largest(&text, OWN)?, largest(&text, ALL)?))
        };
        let ours: Vec<(u64, u64)> = job.ranks().into_iter().filter_map(of_rank).collect();
        let rows = ombx_tests::results::rows_so_far(&out);
        if ours.len() == 2 && rows >= 1 {
            looks += 1;
            peak = ours.iter().fold(peak, |peak, (own, _)| peak.max(*own));
            least = least.min(ours.iter().map(|(_, all)| *all).max().unwrap_or(u64::MAX));
        }
        rows >= 3
    });
    job.wait().expect(0);
    tell(&format!(
        "{looks} looks; own at the most {peak} kB, bare {bare_own}; all at the least {least} kB, bare {bare_all}"
    ));
    assert!(looks > 10 && peak > bare_own && least > bare_all / 2, "{looks} looks: {peak} and {least} kB");
    assert!(
        peak < bare_own + MOST && least < bare_all + MOST,
        "{peak} of {bare_own}, {least} of {bare_all} kB"
    );
}
