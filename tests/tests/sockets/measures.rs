//! Tests of socket benchmarks: verified rows, recorded settings, and wrong options.

use std::fs;

use ombx_record::result::{Check, Figure};
use ombx_tests::{
    Files, Job,
    kept::{Kept, assert_measured},
    mpi, skipped,
    sockets::figure,
};
use serde_json::Value;

/// Options of short rows.
const QUICK: &str = "--iterations 8 --warmup 1 --window 4";

/// Returns the transports of this host.
fn transports() -> Vec<&'static str> {
    let mptcp = fs::read_to_string("/proc/sys/net/mptcp/enabled").is_ok_and(|enabled| enabled.trim() == "1");
    ["tcp", "unix", "udp"].into_iter().chain(mptcp.then_some("mptcp")).collect()
}

#[test]
fn every_pattern_over_every_transport_is_verified() {
    let kept = Kept::new();
    let transports = transports();
    let benches = "sockets.latency sockets.bw sockets.bibw sockets.link --pattern all";
    let line = format!("{benches} --transport {} --sizes 60000 {QUICK}", transports.join(","));
    let done = kept.job(&line).run().expect(0);
    done.leaves_nothing();
    let rows = kept.run().rows;
    // The link has three patterns.
    assert_eq!(rows.len(), transports.len() * 6, "{done}");
    for row in &rows {
        assert_measured(row, &done);
        assert_eq!(row.figures.contains_key("lost_messages"), row.axes["transport"] == "udp", "{}", row.key);
    }
}

#[test]
fn settings_are_recorded() {
    let kept = Kept::new();
    let settings = "--socket-buffer 64K --congestion reno --rcvlowat 32K";
    kept.job(&format!("sockets.bw --sizes 64K -n 3 {settings} {QUICK}")).run().expect(0);
    let text = fs::read_to_string(kept.out()).expect("results");
    assert!(!text.contains("token"), "the session's token is in the results");
    let run = kept.run().run;
    assert_eq!((&*run.fabric, run.places.len()), ("sockets", 3));
    let recorded = ["socket-buffer", "congestion", "rcvlowat"].map(|name| &*run.plan[name]);
    assert_eq!(recorded, ["64K", "reno", "32K"]);
    assert_eq!(run.argv[1..3], ["run", "sockets.bw"], "{:?}", run.argv);
}

/// Over loopback the kernel copies the data in spite of zero copy, and reports that.
#[test]
fn zero_copy_rows_have_the_share_of_copied_sends() {
    let kept = Kept::new();
    let done =
        kept.job(&format!("sockets.bw sockets.bibw --zero-copy=all --sizes 64K {QUICK}")).run().expect(0);
    let rows = kept.run().rows;
    assert_eq!(rows.len(), 4);
    for row in &rows {
        let zero_copy = row.axes.get("zero-copy").is_some_and(|value| value == "on");
        let copied = row.figures.get("copied_percent");
        let is_share = matches!(copied, Some(Figure::Value(percent)) if (0.0..=100.0).contains(percent));
        assert_eq!(is_share, zero_copy, "{}: {copied:?}", row.key);
        assert_measured(row, &done);
    }
}

#[test]
fn requests_have_rows_by_rate_and_a_knee() {
    let kept = Kept::new();
    let done = kept.job("sockets.request --rate 500,100000000..,1").run().expect(2);
    assert!(done.sentence().contains("messages per second"), "{done}");
    let line = "sockets.request --rate 1000,4000 --arrivals all --sizes 64 --iterations 40";
    let done = kept.job(line).run().expect(0);
    let rows = kept.run().rows;
    assert_eq!(rows.len(), 4, "{done}");
    for row in &rows {
        assert_measured(row, &done);
        assert_eq!(figure(row, "offered_rps"), row.axes["rate"].parse::<f64>().expect("a rate"));
        assert!(figure(row, "achieved_rps") > 0.0);
    }
    assert!(done.stdout.contains("knee of sockets.request arrivals=exponential at 64 bytes: "), "{done}");
}

#[test]
fn links_over_sockets_need_no_mpi() {
    for fabric in ["tcp", "unix", "udp"] {
        let kept = Kept::new();
        let line =
            format!("links --fabric {fabric} -n 3 --sizes 8 --retest 0 --iterations 4 --fail-on nothing -o");
        Job::ombx(&line).env("OMBX_MPIEXEC", "false").arg(kept.out()).run().expect(0);
        let run = kept.run();
        assert_eq!(run.row_count(), 6, "{fabric}");
        assert!(run.each_row().all(|row| row.check == Check::Passed && row.axes["transport"] == fabric));
    }
}

#[test]
fn wrong_options_give_one_error_line_and_start_nothing() {
    let files = Files::default();
    let empty = files.write("empty", "# nothing\n");
    let odd = files.write("odd", "n01\nn02 $(reboot)\n");
    let absent = files.path("absent").display().to_string();
    for (arguments, says) in [
        ("run sockets.bw --socket-buffer 7", "4K"),
        ("run sockets.bw --congestion ../x", "congestion"),
        ("run sockets.bw --rcvlowat 0", "low-water"),
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
        (&format!("run sockets.latency --hostfile {absent}"), &absent),
        ("worker", "standard input"),
    ] {
        let done = Job::ombx(arguments).run().expect(2);
        assert!(done.sentence().contains(says), "{arguments}: {done}");
        done.leaves_nothing();
    }
}

#[test]
fn ranks_of_another_launcher_connect_through_a_rendezvous_file() {
    let kept = Kept::new();
    let meet = kept.files.path("meet");
    let script = format!(
        "for rank in 1 0; do PMI_RANK=$rank PMI_SIZE=2 '{}' run sockets.bw --sizes 8 {QUICK} --quick \
         --rendezvous '{}' -o '{}' & pids=\"$pids $!\"; done; for pid in $pids; do wait $pid || exit $?; \
         done",
        mpi::ombx().display(),
        meet.display(),
        kept.out().display()
    );
    Job::new("sh").arg("-c").arg(script).run().expect(0).leaves_nothing();
    assert_eq!(kept.run().rows[0].check, Check::Passed);
    assert!(!meet.exists(), "the file with the token is left");
    let alone = Job::ombx("run sockets.latency").env("PMI_RANK", "0").env("PMI_SIZE", "2").run().expect(2);
    assert!(alone.sentence().contains("--rendezvous"));
}

/// Returns whether the kernel has GSO and GRO for UDP (Linux 5.0).
fn has_trains() -> bool {
    let kernel = rustix::system::uname();
    let release = kernel.release().to_string_lossy();
    release.split('.').next().and_then(|major| major.parse::<u32>().ok()).is_some_and(|major| major >= 5)
}

/// The rate is one that no host reaches.
#[test]
fn datagrams_go_in_trains_unless_that_is_off() {
    if !has_trains() {
        return skipped("this kernel has no GSO or GRO for UDP");
    }
    let kept = Kept::new();
    let line = "sockets.datagrams sockets.bw --transport udp --offload all --sizes 1400 --rate 10000000 --window 32 \
                --iterations 640 --warmup 64";
    let done = kept.job(line).run().expect(0);
    done.leaves_nothing();
    let rows = kept.run().rows;
    assert_eq!(rows.len(), 4, "{done}");
    for row in &rows {
        assert_measured(row, &done);
        let per_call = ["datagrams_per_send", "datagrams_per_receive"].map(|name| figure(row, name));
        if row.axes.get("offload").is_some_and(|offload| offload == "off") {
            assert_eq!(per_call, [1.0, 1.0], "{}", row.key);
        } else {
            assert!(per_call.iter().all(|datagrams| *datagrams > 1.5), "{}: {per_call:?}", row.key);
        }
        if row.bench == "sockets.datagrams" {
            let [sent, arrived, lost] =
                ["sent_datagrams", "arrived_datagrams", "lost_datagrams"].map(|name| figure(row, name));
            assert_eq!(sent, arrived + lost, "{}", row.key);
        }
    }
}

/// What network people call bufferbloat: the round trip idle and beside a stream.
#[test]
fn latency_beside_a_stream_has_an_impact_factor() {
    let kept = Kept::new();
    let line = "sockets.latency --sizes 64 --under nothing,sockets.bw:64K -n 4 --iterations 40 --warmup 2";
    let done = kept.job(line).run().expect(0);
    done.leaves_nothing();
    let rows = kept.run().rows;
    let under = |load: &str| rows.iter().find(|row| row.axes["under"] == load).expect("a row");
    assert_measured(under("nothing"), &done);
    let loaded = under("sockets.bw:64K");
    assert_measured(loaded, &done);
    assert!(figure(loaded, "impact_times") > 0.0 && figure(loaded, "congestors_mb_per_s") > 0.0);
    let stdout = done.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(stdout.contains("latency under load: sockets.latency at 64 bytes takes"), "{done}");
    assert!(stdout.contains("us under sockets.bw:64K and"), "{done}");
}

#[test]
fn intervals_are_printed_while_a_row_lasts() {
    let line = "sockets.latency --sizes 8 --duration 200ms --interval 20ms --unit ns --format csv";
    let kept = Kept::new();
    let done = kept.job(line).run().expect(0);
    let lines: Vec<&str> =
        done.stderr.lines().filter(|line| line.starts_with("ombx: sockets.latency 8 ")).collect();
    assert!(lines.iter().all(|line| line.contains(" ns  retransmits ")), "{done}");
    assert!(lines.first().is_some_and(|first| first.contains("   0.00 ..")), "{done}");
    assert!(!done.stdout.contains(" .. "), "{done}");
    let sampled = kept.run().rows[0].phases.expect("the time of phases").sample_ns;
    assert!(sampled >= 150_000_000, "the row took {sampled} ns");
    let line = "run sockets.bw --sizes 8K --duration 200ms --interval 20ms --quick --format jsonl";
    let done = Job::ombx(line).run().expect(0);
    assert!(!done.stderr.contains(" .. "), "{done}");
    let parsed = done.stdout.lines().map(|line| serde_json::from_str::<Value>(line).expect("a line of JSON"));
    let intervals: Vec<Value> = parsed.filter(|line| line["kind"] == "interval").collect();
    assert!(!intervals.is_empty(), "{done}");
    for interval in &intervals {
        assert_eq!((&interval["bench"], &interval["bytes"]), (&"sockets.bw".into(), &8192.into()));
        assert!(interval["from_ns"].as_u64() < interval["to_ns"].as_u64(), "{interval}");
        assert!(interval["mb_per_s"].as_f64().is_some_and(|rate| rate > 0.0), "{interval}");
        for name in ["retransmits", "cwnd_bytes", "rtt_us", "least_rtt_us"] {
            assert!(interval[name].is_u64(), "{name}: {interval}");
        }
    }
    let rows = ombx_record::file::read(done.stdout.as_bytes()).expect("a result file").runs[0].rows.len();
    assert_eq!(rows, 1, "readers skip the lines of intervals");
    Job::ombx("run sockets.latency --duration 1s --max-time 1s").run().expect(2);
    Job::ombx("run sockets.latency --interval 1s --quiet").run().expect(2);
    let done = Job::ombx("run sockets.datagrams sockets.request --interval 1s").run().expect(2);
    assert!(done.stderr.contains("scheduled times"), "{}", done.stderr);
}
