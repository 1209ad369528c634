//! Tests of several streams between two ranks: their number, their data, wrong numbers, and a stream that dies.

use std::fs;

use ombx_tests::{print_note, process::Process};
use rustix::{
    fd::OwnedFd,
    net::{Shutdown, shutdown},
    process::{PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open},
};

use crate::{Kept, ombx, workers};

const QUICK: &str = "--max-time 10ms --precision 50% --window 16";
/// Arguments of a run that is ended by its test.
const ENDLESS: &str = "run sockets.bw --sizes 1000 --window 64 --iterations 4294967296 --batch 1000000";

#[test]
fn rows_name_their_streams_and_are_verified() {
    let kept = Kept::new();
    let line = format!(
        "run sockets.bw sockets.bibw --streams 1,3,16 --transport tcp,unix --buffers all --sizes 1,60000,1M {QUICK}"
    );
    kept.job(&line).run().expect(0).leaves_nothing();
    let rows = kept.rows();
    // Of each number: two benchmarks, two transports, two kinds of buffers, three sizes.
    for (streams, key) in [(None, "streams="), (Some("3"), "/streams=3,"), (Some("16"), "/streams=16,")] {
        let of = rows.iter().filter(|row| row["axes"]["streams"].as_str() == streams);
        assert_eq!(of.clone().count(), 24, "{streams:?}");
        assert!(of.clone().all(|row| row["key"].as_str().unwrap().contains(key) == streams.is_some()));
    }
    for row in &rows {
        assert_eq!((row["outcome"].as_str(), row["check"].as_str()), (Some("ok"), Some("passed")), "{row}");
    }
}

/// Returns the numbers of the file descriptors of a process that are sockets.
fn sockets_of(process: &Process) -> Vec<i32> {
    let files = format!("/proc/{}/fd", process.pid.as_raw_nonzero());
    let entries = fs::read_dir(files).into_iter().flatten().flatten();
    let sockets = entries.filter(|entry| {
        fs::read_link(entry.path()).is_ok_and(|to| to.to_string_lossy().starts_with("socket:"))
    });
    sockets.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Runs an endless job of this number of streams until all are connected, and calls `act` with the ranks and the sockets of rank 0.
fn with_sockets(streams: usize, act: impl FnOnce(&[Process], Vec<i32>)) -> ombx_tests::Done {
    let mut job = ombx(ENDLESS).args(["--streams", &streams.to_string()]).start();
    let mut found = Vec::new();
    job.until("the streams are connected", |job| {
        let workers = workers(job);
        found = workers.first().map(sockets_of).unwrap_or_default();
        workers.len() == 2 && workers.iter().all(|worker| sockets_of(worker).len() > streams)
    });
    std::thread::sleep(std::time::Duration::from_millis(300));
    let ranks = workers(&job);
    found = sockets_of(&ranks[0]);
    act(&ranks, found);
    job.signal(rustix::process::Signal::TERM);
    job.wait()
}

#[test]
fn every_stream_is_a_connection() {
    let mut counts = Vec::new();
    for streams in [1, 9, 40] {
        with_sockets(streams, |ranks, _| counts.push([0, 1].map(|rank| sockets_of(&ranks[rank]).len())))
            .leaves_nothing();
    }
    for rank in [0, 1] {
        assert_eq!(counts[1][rank] - counts[0][rank], 8, "{counts:?}");
        assert_eq!(counts[2][rank] - counts[0][rank], 39, "{counts:?}");
    }
}

#[test]
fn a_stream_that_dies_ends_the_job() {
    let mut allowed = true;
    let done = with_sockets(4, |ranks, sockets| {
        let process = pidfd_open(ranks[0].pid, PidfdFlags::empty()).expect("a process");
        // The streams were opened last.
        let last = *sockets.iter().max().expect("a socket");
        let taken: rustix::io::Result<OwnedFd> = pidfd_getfd(&process, last, PidfdGetfdFlags::empty());
        match taken {
            Ok(socket) => shutdown(&socket, Shutdown::Both).expect("an open connection"),
            Err(why) => {
                print_note(&format!(
                    "no stream was ended: this host does not share files of processes: {why}"
                ));
                allowed = false;
            }
        }
        std::thread::sleep(std::time::Duration::from_secs(1));
    });
    if allowed {
        let done = done.expect(6);
        assert!(done.stderr.contains("stream 4 of 4: the other rank closed the connection"), "{done}");
        done.leaves_nothing();
    }
}

#[test]
fn wrong_numbers_of_streams_start_nothing() {
    for (arguments, says) in [
        ("run sockets.bw --streams 0", "1 to 128 streams"),
        ("run sockets.bw --streams 129", "1 to 128 streams"),
        ("run sockets.bw --streams many", "1 to 128 streams"),
        ("run sockets.bw --streams 128", "--window 128"),
        ("run sockets.bibw --streams 3,8 --window 4", "--window 8"),
        ("run sockets.latency --streams 2", "streams"),
    ] {
        let done = ombx(arguments).run().expect(2);
        assert!(done.sentence().contains(says), "{arguments}: {done}");
        done.leaves_nothing();
    }
}

#[test]
fn links_with_one_stream_say_so() {
    let kept = Kept::new();
    let line =
        format!("run sockets.bw --transport udp,tcp --zero-copy --streams 2 --sizes 8 --allow-skips {QUICK}");
    kept.job(&line).run().expect(0);
    let whys: Vec<String> = kept.rows().iter().map(|row| row["reason"].to_string()).collect();
    assert!(whys.len() == 2 && whys.iter().all(|why| why.contains("leave out --streams 2")), "{whys:?}");
}
