//! Connections without the token to every port of a session: rejected, reported once, and the run goes on.

use std::{
    collections::BTreeSet,
    fs,
    io::{Read, Write},
    net::TcpStream,
};

use ombx_tests::{
    Running,
    kept::{Kept, assert_measured},
    results,
    sockets::in_the_middle,
};
use rustix::process::Signal;

/// Returns the TCP ports on which a process of the job listens.
fn ports(job: &Running) -> BTreeSet<u16> {
    let mut sockets = BTreeSet::new();
    for process in job.processes() {
        let descriptors = fs::read_dir(format!("/proc/{}/fd", process.pid.as_raw_nonzero()));
        for descriptor in descriptors.into_iter().flatten().flatten() {
            let target = fs::read_link(descriptor.path()).unwrap_or_default().to_string_lossy().into_owned();
            if let Some(inode) = target.strip_prefix("socket:[").and_then(|t| t.strip_suffix(']')) {
                sockets.insert(inode.to_owned());
            }
        }
    }
    let mut ports = BTreeSet::new();
    for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
        for line in fs::read_to_string(table).unwrap_or_default().lines().skip(1) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [_, local, _, state, _, _, _, _, _, inode, ..] = words.as_slice() else { continue };
            // 0A: the state of a listening socket.
            if *state == "0A" && sockets.contains(*inode) {
                ports.extend(local.rsplit(':').next().and_then(|port| u16::from_str_radix(port, 16).ok()));
            }
        }
    }
    ports
}

#[test]
fn connections_without_the_token_are_rejected_and_the_run_goes_on() {
    let kept = Kept::new();
    let mut job = in_the_middle(&kept, "");
    let open = ports(&job);
    assert!(!open.is_empty(), "nothing listens");
    let hello = |token: &[u8]| [&[1 + token.len() as u8, 0, 0, 0, 1], token].concat();
    let mut held = Vec::new();
    for port in open.into_iter().flat_map(|port| [port; 3]) {
        for bytes in
            [&hello(&[7; 16])[..], &hello(&[]), &[0xff; 4096], b"GET / HTTP/1.1\r\n\r\n", &[0; 5], &[1], &[]]
        {
            // A port of one case may have closed by now.
            let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { continue };
            let _ = stream.write_all(bytes);
            held.push((bytes.len(), stream));
        }
    }
    assert!(held.len() >= 7, "no connection was accepted");
    let (before, out) = (results::rows_so_far(&kept.out()), kept.out());
    job.until("the run goes on", |_| results::rows_so_far(&out) > before + 3);
    job.signal(Signal::INT);
    let done = job.wait().expect(130);
    // The job has closed the silent connections too.
    for (sent, stream) in &mut held {
        let mut received = Vec::new();
        let _ = stream.take(100).read_to_end(&mut received);
        assert!(received.is_empty(), "a connection that sent {sent} bytes was answered {received:?}");
    }
    let about = done.stderr.lines().filter(|line| line.contains("session's token")).count();
    assert_eq!(about, 1, "{done}");
    done.leaves_nothing();
    kept.run().rows.iter().for_each(|row| assert_measured(row, &done));
}
