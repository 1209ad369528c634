//! Compares the data memory of a rank of ombx, without messages, with that of a minimal program of the same MPI.

use std::fs;

use ombx_tests::{Job, kept::Kept, print_note, shim};

/// Maximum difference in kB, as the documentation promises.
const MOST: u64 = 10 * 1024;

/// Kinds of private and shared data memory. Their peak includes statistics and the writing of rows. `Pss_Dirty` is not used: it
/// includes the code of a new binary until the kernel has written the file to disk.
const OWN: &[&str] = &["Pss_Anon:", "Pss_Shmem:"];
/// Kind of memory that includes code, which all processes of a binary share. It is printed only: a debug build has far more code
/// than a release build, and its share depends on other processes.
const ALL: &[&str] = &["Pss:"];

/// Returns the sum over these kinds of the largest value in the text, in kB.
fn largest(text: &str, kinds: &[&str]) -> Option<u64> {
    let number = |line: &str, kind: &str| {
        let mut words = line.split_whitespace().skip_while(|word| *word != kind).skip(1);
        words.next()?.parse::<u64>().ok()
    };
    kinds.iter().map(|kind| text.lines().filter_map(|line| number(line, kind)).max()).sum()
}

#[test]
fn a_rank_needs_at_most_10_mib_more_than_a_bare_mpi_program() {
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
    print_note(&format!(
        "{looks} polls: data at most {peak} kB, bare program {bare_own} kB; with code at least {least} kB, \
         bare program {bare_all} kB"
    ));
    assert!(looks > 0 && peak > bare_own && least > bare_all / 2, "{looks} polls: {peak} and {least} kB");
    assert!(peak < bare_own + MOST, "{peak} of {bare_own} kB");
}
