//! Tests of several streams between two ranks: their number, their data, wrong numbers, and a stream that dies.

use ombx_tests::{
    Job,
    kept::{Kept, assert_measured},
    print_note,
    sockets::{in_an_endless_row, sockets_of, workers},
};
use rustix::{
    fd::OwnedFd,
    net::{Shutdown, shutdown},
    process::{PidfdFlags, PidfdGetfdFlags, Signal, pidfd_getfd, pidfd_open},
};

/// Options of short rows.
const QUICK: &str = "--iterations 8 --warmup 1 --window 16";

#[test]
fn rows_name_their_streams_and_are_verified() {
    let kept = Kept::new();
    let benches = "sockets.bw sockets.bibw --streams 1,3,16 --transport tcp,unix";
    let done = kept.job(&format!("{benches} --sizes 60000 {QUICK}")).run().expect(0);
    done.leaves_nothing();
    let rows = kept.run().rows;
    // Of each number: two benchmarks over two transports.
    for (streams, key) in [(None, "streams="), (Some("3"), "/streams=3,"), (Some("16"), "/streams=16,")] {
        let of = rows.iter().filter(|row| row.axes.get("streams").map(String::as_str) == streams);
        assert_eq!(of.clone().count(), 4, "{streams:?}");
        assert!(of.clone().all(|row| row.key.contains(key) == streams.is_some()));
    }
    rows.iter().for_each(|row| assert_measured(row, &done));
}

/// Returns the numbers of sockets of two ranks while a row over this number of streams is measured.
fn sockets_of_ranks(streams: u32) -> [usize; 2] {
    let job = in_an_endless_row(&format!("sockets.bw --window 16 --streams {streams}"));
    let ranks = workers(&job);
    let counts = [0, 1].map(|rank| sockets_of(&ranks[rank]).len());
    job.signal(Signal::TERM);
    job.wait().leaves_nothing();
    counts
}

#[test]
fn every_stream_is_a_connection() {
    let (one, nine) = (sockets_of_ranks(1), sockets_of_ranks(9));
    assert_eq!([0, 1].map(|rank| nine[rank] - one[rank]), [8, 8], "{one:?} and {nine:?}");
}

#[test]
fn a_stream_that_dies_ends_the_job() {
    let job = in_an_endless_row("sockets.bw --window 16 --streams 4");
    let ranks = workers(&job);
    let process = pidfd_open(ranks[0].pid, PidfdFlags::empty()).expect("a process");
    // The streams were opened last.
    let last = sockets_of(&ranks[0]).into_iter().max().expect("a socket");
    let taken: rustix::io::Result<OwnedFd> = pidfd_getfd(&process, last, PidfdGetfdFlags::empty());
    match taken {
        Ok(socket) => shutdown(&socket, Shutdown::Both).expect("an open connection"),
        Err(why) => {
            return print_note(&format!(
                "no stream was ended: this host does not share files of processes: {why}"
            ));
        }
    }
    let done = job.wait().expect(6);
    assert!(done.stderr.contains("stream 4 of 4: the other rank closed the connection"), "{done}");
    done.leaves_nothing();
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
        let done = Job::ombx(arguments).run().expect(2);
        assert!(done.sentence().contains(says), "{arguments}: {done}");
        done.leaves_nothing();
    }
}

#[test]
fn links_with_one_stream_say_so() {
    let kept = Kept::new();
    let line = "sockets.bw --transport udp,tcp --zero-copy --streams 2 --sizes 8 --allow-skips --window 16";
    kept.job(line).run().expect(0);
    let outcomes: Vec<String> = kept.run().rows.iter().map(|row| format!("{:?}", row.outcome)).collect();
    let [tcp, udp] = &*outcomes else { panic!("{outcomes:?}") };
    assert!(tcp == "Ok" && udp.contains("leave out --streams 2"), "{outcomes:?}");
}
