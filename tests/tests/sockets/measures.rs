//! Tests of socket benchmarks: verified rows, recorded settings, and wrong options.

use std::time::Duration;

use ombx_tests::{Files, Job, print_note};
use rustix::process::Signal;

use crate::{Kept, ombx, workers};

const QUICK: &str = "--max-time 10ms --precision 50% --window 4";

#[test]
fn every_benchmark_over_every_socket_is_verified() {
    let kept = Kept::new();
    let (ip, versions) = match std::net::TcpListener::bind("[::1]:0") {
        Ok(_) => ("all", 2),
        Err(why) => {
            print_note(&format!("IPv4 alone, this host has no IPv6: {why}"));
            ("4", 1)
        }
    };
    let listed = Job::ombx("list --json sockets.bw").run().expect(0).stdout;
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    let axis = listed[0]["axes"].as_array().unwrap().iter().find(|axis| axis["name"] == "transport").unwrap();
    let transports = axis["values"].as_array().unwrap().iter().filter_map(|value| value.as_str());
    let choices = transports.map(|transport| match transport {
        "unix" => 1,
        _ => versions,
    });
    let sockets: usize = choices.sum();
    let arguments = format!(
        "run sockets.latency sockets.bw sockets.bibw sockets.link --transport all --ip {ip} --buffers all \
         --pattern all --sizes 1,1000,60000 {QUICK} --format csv"
    );
    kept.job(&arguments).run().expect(0).leaves_nothing();
    // Small messages that wait to be joined take 40 ms each.
    let delayed = Kept::new();
    let benches = "sockets.latency sockets.bw sockets.bibw sockets.link";
    let line = format!("run {benches} --transport tcp,mptcp --nodelay off --sizes 60000 {QUICK}");
    delayed.job(&line).run().expect(0).leaves_nothing();
    assert_eq!(delayed.rows().len(), 8);
    let rows = kept.rows();
    // Of three sizes; windows have two kinds of buffers, the link three patterns.
    assert_eq!(rows.len(), 3 * sockets * (1 + 2 + 2 + 3), "{sockets} choices of sockets");
    for row in rows.iter().chain(&delayed.rows()) {
        assert_eq!((row["outcome"].as_str(), row["check"].as_str()), (Some("ok"), Some("passed")), "{row}");
        let udp = row["axes"]["transport"] == "udp";
        assert_eq!(row["figures"]["lost_messages"].is_number(), udp, "{row}");
    }
}

#[test]
fn settings_are_recorded() {
    let kept = Kept::new();
    let settings = "--socket-buffer 64K --congestion reno";
    kept.job(&format!("run sockets.bw --sizes 64K -n 3 {settings} {QUICK}")).run().expect(0);
    let text = std::fs::read_to_string(kept.out()).unwrap();
    let run: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!(run["fabric"]["name"], "sockets");
    assert_eq!(run["plan"]["socket-buffer"], "64K");
    assert_eq!(run["plan"]["congestion"], "reno");
    assert_eq!(run["ranks"].as_array().unwrap().len(), 3);
    assert!(!text.contains("token"), "the session's token is in the results");
    let bare: Vec<&str> = run["argv"].as_array().unwrap().iter().filter_map(|w| w.as_str()).collect();
    assert!(
        bare.contains(&"sockets.bw") && !bare.iter().any(|w| w.contains("relay") || *w == "worker"),
        "{bare:?}"
    );
}

/// Over loopback the kernel copies the data in spite of zero copy, and reports that.
#[test]
fn zero_copy_rows_have_the_share_of_copied_sends() {
    let kept = Kept::new();
    kept.job(&format!("run sockets.bw sockets.bibw --zero-copy=all --sizes 64K {QUICK}")).run().expect(0);
    let rows = kept.rows();
    assert_eq!(rows.len(), 4);
    for row in &rows {
        let zero_copy = row["axes"]["zero-copy"] == "on";
        let copied = row["figures"]["copied_percent"].as_f64();
        assert_eq!(copied.is_some_and(|percent| (0.0..=100.0).contains(&percent)), zero_copy, "{row}");
        assert_eq!(row["check"], "passed", "{row}");
    }
}

/// A server that stops for 100 ms delays the requests that are due meanwhile, at 1000 per second.
#[test]
fn a_pause_of_the_server_shows_in_the_p99_of_requests() {
    let kept = Kept::new();
    let mut job = kept
        .job("run sockets.request --rate 1000 --iterations 3000 --warmup 10 --launches 1 --no-verify --window 256")
        .start();
    job.until("two ranks run", |job| workers(job).len() == 2);
    std::thread::sleep(Duration::from_millis(1200));
    // Rank 0 sends; the other process is the server.
    let workers = workers(&job);
    workers[1].signal(Signal::STOP);
    std::thread::sleep(Duration::from_millis(100));
    workers[1].signal(Signal::CONT);
    job.wait().expect(0).leaves_nothing();
    let rows = kept.rows();
    let samples = rows[0]["samples"][0]["elapsed_ns"].as_array().expect("samples");
    let mut times: Vec<u64> = samples.iter().filter_map(serde_json::Value::as_u64).collect();
    times.sort_unstable();
    let (late, p99) = (times.iter().filter(|ns| **ns > 50_000_000).count(), times[2969]);
    print_note(&format!("{late} of 3000 requests took more than 50 ms, p99 {} us", p99 / 1000));
    // A process that continues late pauses for longer. 100 requests are due in the pause, and half of them wait for half of it.
    assert!(times.len() == 3000 && late >= 30, "{late} are late: {}", rows[0]["key"]);
    assert!(p99 > 30_000_000, "p99 {p99} ns: {}", rows[0]["summary"]);
}

#[test]
fn requests_show_offered_and_achieved_rate() {
    let kept = Kept::new();
    let done = kept.job("run sockets.request --rate 500,100000000..,1").run().expect(2);
    assert!(done.sentence().contains("messages per second"), "{done}");
    let line =
        "run sockets.request --rate 500,2000 --arrivals all --sizes 1,60000 --max-time 100ms --launches 1";
    let done = kept.job(line).run().expect(0);
    let rows = kept.rows();
    assert_eq!(rows.len(), 8, "{done}");
    for row in &rows {
        assert_eq!((row["outcome"].as_str(), row["check"].as_str()), (Some("ok"), Some("passed")), "{row}");
        let offered: f64 = row["axes"]["rate"].as_str().and_then(|rate| rate.parse().ok()).expect("a rate");
        assert_eq!(row["figures"]["offered_rps"].as_f64(), Some(offered));
        assert!(row["figures"]["achieved_rps"].as_f64().is_some_and(|rate| rate > 0.3 * offered), "{row}");
    }
    assert!(done.stdout.contains("knee of sockets.request arrivals=exponential at 60000 bytes: "), "{done}");
}

#[test]
fn links_over_sockets_need_no_mpi() {
    for fabric in ["tcp", "unix", "udp"] {
        let kept = Kept::new();
        kept.job(&format!(
            "links --fabric {fabric} -n 4 --sizes 8 --retest 0 --max-time 5ms --fail-on nothing"
        ))
        .run()
        .expect(0);
        let rows = kept.rows();
        assert_eq!(rows.len(), 12, "{fabric}");
        assert!(rows.iter().all(|row| row["check"] == "passed" && row["axes"]["transport"] == fabric));
    }
}

/// Ranks of three levels of the tree along which messages of all ranks go.
#[test]
fn many_ranks_measure_a_sample_of_the_links() {
    let kept = Kept::new();
    kept.job("links --fabric tcp -n 70 --rounds 2 --sizes 8 --iterations 4 --retest 1 --fail-on nothing --timeout 90s")
        .run()
        .expect(0)
        .leaves_nothing();
    let rows = kept.rows();
    let sweep: Vec<_> = rows.iter().filter(|row| row["axes"]["retest"].is_null()).collect();
    assert_eq!((sweep.len(), rows.iter().all(|row| row["check"] == "passed")), (140, true));
    let partners = |rank: u32| sweep.iter().filter(|row| row["axes"]["from"] == *rank.to_string()).count();
    assert!((0..70).all(|rank| partners(rank) == 2));
}

#[test]
fn wrong_options_give_one_error_line_and_start_nothing() {
    let files = Files::default();
    let empty = files.write("empty", "# nothing\n");
    let odd = files.write("odd", "n01\nn02 $(reboot)\n");
    for (arguments, says) in [
        ("run sockets.bw --socket-buffer 7", "4K"),
        ("run sockets.bw --congestion ../x", "congestion"),
        ("run sockets.latency --transport rdma", "rdma"),
        ("run sockets.latency --window-x", "window"),
        ("run sockets.bw --ip 5", "5"),
        ("run sockets.latency --hosts=-oProxyCommand=x", "host"),
        ("run sockets.latency --hosts a;b", "host"),
        ("run sockets.latency --launcher mpiexec", "--rendezvous"),
        ("run sockets.latency --launcher none", "launcher"),
        ("run sockets.latency --rendezvous x", "launcher"),
        (&format!("run sockets.latency --hostfile {}", empty.display()), "no host"),
        (&format!("run sockets.latency --hostfile {}", odd.display()), "line 2"),
        ("run sockets.latency --hostfile /does/not/exist", "/does/not/exist"),
        ("worker", "standard input"),
    ] {
        let done = ombx(arguments).run().expect(2);
        assert!(done.sentence().contains(says), "{arguments}: {done}");
        done.leaves_nothing();
    }
}

#[test]
fn ranks_of_another_launcher_connect_through_a_rendezvous_file() {
    let files = Files::default();
    let (meet, out) = (files.path("meet"), files.path("out.jsonl"));
    let script = format!(
        "for rank in 1 0; do PMI_RANK=$rank PMI_SIZE=2 '{}' run sockets.bw --sizes 8 {QUICK} --rendezvous '{}' -o '{}' & \
         pids=\"$pids $!\"; done; for pid in $pids; do wait $pid || exit $?; done",
        ombx_tests::mpi::ombx().display(),
        meet.display(),
        out.display()
    );
    Job::of("sh").arg("-c").arg(script).run().expect(0).leaves_nothing();
    assert!(std::fs::read_to_string(&out).unwrap().contains("\"check\":\"passed\""));
    assert!(!meet.exists(), "the file with the token is left");
    let alone = ombx("run sockets.latency").env("PMI_RANK", "0").env("PMI_SIZE", "2").run().expect(2);
    assert!(alone.sentence().contains("--rendezvous"));
}

#[test]
fn intervals_are_printed_while_a_row_lasts() {
    let line = "run sockets.latency --sizes 8 --duration 600ms --interval 100ms --unit ns --format csv";
    let kept = Kept::new();
    let done = kept.job(line).run().expect(0);
    let lines: Vec<&str> =
        done.stderr.lines().filter(|line| line.starts_with("ombx: sockets.latency 8 ")).collect();
    assert!(lines.len() >= 3 && lines.iter().all(|line| line.contains(" ns  retransmits ")), "{done}");
    assert!(lines[0].contains("   0.00 ..") && !done.stdout.contains(" .. "), "{done}");
    let sampled = kept.rows()[0]["phases_ns"]["sample"].as_f64().expect("the time of sampling");
    assert!(sampled >= 5e8, "the row took {sampled} ns");
    ombx("run sockets.latency --duration 1s --max-time 1s").run().expect(2);
    ombx("run sockets.latency --interval 1s --quiet").run().expect(2);
}
