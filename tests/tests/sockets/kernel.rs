//! Options and figures that the kernel confirms: tests in network namespaces, with slow queues or with queues for classes of packets.

use ombx_tests::{Done, Job, missing, mpi, print_note, skipped};
use serde_json::Value;

use crate::Kept;

/// Arguments of a run of one launch with the iterations that it is given.
const FIXED: &str = "--warmup 0 --no-verify --quick --timeout 50s";

/// Runs a shell script in a network namespace of its own, in which `$OMBX` is the program, `$OUT` the result file and
/// `$TOKEN` a file for a token.
fn in_namespace(kept: &Kept, script: &str) -> Option<Done> {
    if !rustix::process::geteuid().is_root() {
        skipped("a network namespace needs root");
        return None;
    }
    let absent = missing(&["unshare", "ip", "tc", "sysctl"]);
    if !absent.is_empty() {
        skipped(&format!("not installed: {}", absent.join(", ")));
        return None;
    }
    let queues = "ip link set lo up && tc qdisc add dev lo root tbf rate 1gbit burst 100kb limit 100kb && \
                  tc qdisc replace dev lo root handle 1: htb && \
                  tc filter add dev lo parent 1: protocol ip u32 match ip dsfield 0 0xfc flowid 1:1";
    let probe = Job::of("unshare").args(["--net", "sh", "-c", queues]).run();
    if probe.code != Some(0) {
        skipped(&format!("no network namespaces with queues here: {}", probe.stderr.trim()));
        return None;
    }
    let token = kept.0.path("token");
    let job = Job::of("unshare").with_one_launch().args(["--net", "sh", "-c", script]);
    Some(job.env("OMBX", mpi::ombx()).env("OUT", kept.out()).env("TOKEN", token).run())
}

/// Returns the only row.
fn row(kept: &Kept) -> Value {
    let rows = kept.rows();
    assert_eq!(rows.len(), 1, "{rows:?}");
    rows[0].clone()
}

fn figure(row: &Value, name: &str) -> f64 {
    row["figures"][name].as_f64().unwrap_or_else(|| panic!("{name}: {row}"))
}

/// Returns the number after a word.
fn after(text: &str, word: &str) -> f64 {
    let rest = text.split_once(word).unwrap_or_else(|| panic!("{word} in {text}")).1.trim_start();
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..digits].parse().unwrap_or_else(|_| panic!("a number after {word} in {text}"))
}

/// Connects this host over a router with another one, on which `ombx sockets serve` runs. The router drops packets to the other host that
/// exceed 200 Mbit/s.
const BEHIND_A_ROUTER: &str = r#"
set -e
ip link set lo up
unshare --net sleep 60 & router=$!
unshare --net sleep 60 & other=$!
trap 'kill $router $other' EXIT
until [ "$(readlink /proc/$router/ns/net)" != "$(readlink /proc/$$/ns/net)" ] &&
      [ "$(readlink /proc/$other/ns/net)" != "$(readlink /proc/$$/ns/net)" ]; do sleep 0.05; done
on_router() { nsenter --target $router --net "$@"; }
on_other() { nsenter --target $other --net "$@"; }
ip link add name near type veth peer name near netns $router
on_router ip link add name far type veth peer name far netns $other
ip addr add 10.0.1.1/24 dev near
ip link set near up gso_max_segs 1
on_router sh -c 'ip addr add 10.0.1.2/24 dev near; ip addr add 10.0.2.2/24 dev far; ip link set near up; ip link set far up'
on_router sh -c 'echo 1 > /proc/sys/net/ipv4/ip_forward; tc qdisc add dev far root tbf rate 200mbit burst 20kb limit 60kb'
on_other sh -c 'ip link set lo up; ip addr add 10.0.2.1/24 dev far; ip link set far up; ip route add 10.0.1.0/24 via 10.0.2.2'
ip route replace 10.0.2.0/24 via 10.0.1.2
on_other $OMBX sockets serve --once --token-file $TOKEN --timeout 50s & server=$!
until on_other sh -c 'ss -ltn | grep -q :5444'; do sleep 0.05; done
"#;

#[test]
fn retransmits_and_directions_are_those_of_a_slow_router() {
    if !missing(&["ss", "nsenter"]).is_empty() {
        return skipped("not installed: ss or nsenter");
    }
    let kept = Kept::new();
    // RetransSegs is the twelfth number of the second line of TCP.
    let script = format!(
        "{BEHIND_A_ROUTER}
         $OMBX run sockets.bw --connect 10.0.2.1 --token-file $TOKEN --sizes 64K --window 32 --streams 4 --direction all \
           --iterations 10 --interval 100ms {FIXED} -o $OUT
         wait $server
         awk '/^Tcp: [0-9]/ {{ print \"retransmitted\", $13 }}' /proc/net/snmp"
    );
    let Some(done) = in_namespace(&kept, &script) else { return };
    let done = done.expect(0);
    let of_kernel = after(&done.stdout, "retransmitted");
    // Only the sending rank has counters. The last interval of a row may be unfinished.
    let lines: Vec<&str> = done.stderr.lines().filter(|line| line.contains("retransmits")).collect();
    let in_intervals: f64 = lines.iter().map(|line| after(line, "retransmits")).sum();
    assert!(lines.iter().all(|line| after(line, "cwnd_bytes") > 0.0), "{done}");
    let rows = kept.rows();
    let [forward, reverse] = ["streams=4,transport", "direction=reverse"].map(|part| {
        let key = |row: &&Value| row["key"].as_str().is_some_and(|key| key.contains(part));
        rows.iter().find(key).unwrap_or_else(|| panic!("{part}: {rows:?}"))
    });
    let rate = |row: &Value| 32.0 * 65536.0 * 1e3 / row["summary"]["median_ns"].as_f64().expect("a median");
    let counted = figure(forward, "retransmits");
    let message = format!(
        "{counted} of {of_kernel} segments, {:.1} MB/s and {:.1} in reverse; cwnd {} bytes",
        rate(forward),
        rate(reverse),
        figure(forward, "cwnd_bytes")
    );
    print_note(&message);
    // The connections of the session may have lost a segment too.
    assert!(counted > 10.0 && counted <= of_kernel && counted >= 0.98 * of_kernel, "{message}");
    assert!(in_intervals > 0.0 && in_intervals <= counted, "{in_intervals}: {done}");
    // The other direction has no slow queue.
    assert!(rate(forward) < 25.0 && rate(reverse) > 4.0 * rate(forward), "{message}");
    assert!(figure(reverse, "retransmits") < counted / 4.0, "{message}");
}

#[test]
fn lost_datagrams_are_those_that_a_queue_dropped() {
    let kept = Kept::new();
    let script = format!(
        "ip link set lo up && tc qdisc add dev lo root tbf rate 40mbit burst 20kb limit 30kb && \
         $OMBX run sockets.datagrams --sizes 1400 --rate 10000 --iterations 5000 {FIXED} -o $OUT && \
         tc -s qdisc show dev lo"
    );
    let Some(done) = in_namespace(&kept, &script) else { return };
    let (row, dropped) = (row(&kept), after(&done.expect(0).stdout, "(dropped"));
    let [sent, lost, percent] =
        ["sent_datagrams", "lost_datagrams", "lost_percent"].map(|name| figure(&row, name));
    assert_eq!((sent, percent), (5000.0, 100.0 * lost / sent), "{row}");
    // A packet of the session may be dropped too.
    assert!(lost > 1000.0 && lost <= dropped && lost >= dropped - 3.0, "{lost} of {dropped}: {row}");
    // Headers: 24 bytes of ombx, 8 of UDP, 20 of IP and 14 of the link.
    let expected = 40e6 / 8.0 / (1400.0 + 66.0) * 1400.0 / 1e6;
    let found = 1400.0 / row["summary"]["median_ns"].as_f64().expect("a median") * 1e3;
    print_note(&format!("{lost} of {dropped} dropped datagrams, {found:.3} MB/s of {expected:.3}"));
    assert!((found / expected - 1.0).abs() < 0.05, "{found} MB/s of {expected}: {row}");
}

#[test]
fn packets_have_the_chosen_class() {
    for (ip, protocol) in [("4", "ip"), ("6", "ipv6")] {
        let kept = Kept::new();
        let script = format!(
            "ip link set lo up && tc qdisc add dev lo root handle 1: htb default 2 && \
             for class in 1 2; do tc class add dev lo parent 1: classid 1:$class htb rate 10gbit quantum 60000; done && \
             tc filter add dev lo parent 1: protocol {protocol} u32 match {protocol_match} flowid 1:1 && \
             $OMBX run sockets.datagrams --ip {ip} --dscp EF --sizes 64 --rate 10000 --iterations 500 {FIXED} -o $OUT && \
             tc -s class show dev lo classid 1:1",
            protocol_match = if ip == "4" { "ip dsfield 0xb8 0xfc" } else { "ip6 priority 0xb8 0xfc" },
        );
        let Some(done) = in_namespace(&kept, &script) else { return };
        let packets = after(done.expect(0).stdout.split_once("class htb 1:1").expect("a class").1, "bytes ");
        assert!((500.0..700.0).contains(&packets), "{packets} packets of class EF over IPv{ip}");
    }
}

#[test]
fn mptcp_is_used_or_the_row_says_why_not() {
    if !std::path::Path::new("/proc/sys/net/mptcp/enabled").exists() {
        return skipped("this kernel has no MPTCP");
    }
    let kept = Kept::new();
    let run = format!("$OMBX run sockets.bw --transport mptcp --sizes 4K --iterations 20 {FIXED} -o $OUT");
    let counter = "awk '/^MPTcpExt: / { n++; for (i = 1; i <= NF; i++) if (n == 1) name[i] = $i; else \
                   if (name[i] == \"MPCapableACKRX\") print \"accepted\", $i }' /proc/net/netstat";
    let script = format!("ip link set lo up && sysctl -qw net.mptcp.enabled=1 && {run} && {counter}");
    let Some(done) = in_namespace(&kept, &script) else { return };
    assert!(after(&done.expect(0).stdout, "accepted") >= 1.0);
    let measured = row(&kept);
    assert_eq!(
        (measured["outcome"].as_str(), measured["axes"]["transport"].as_str()),
        (Some("ok"), Some("mptcp"))
    );

    let kept = Kept::new();
    let script = format!("ip link set lo up && sysctl -qw net.mptcp.enabled=0 && {run}");
    let Some(done) = in_namespace(&kept, &script) else { return };
    let done = done.expect(4);
    assert!(done.stdout.contains("skipped 1 row: this host has no MPTCP: set net.mptcp.enabled=1"), "{done}");
}

/// The mean interval of one of 20 parts is a sample of ten: it is longer than the round.
#[test]
fn few_datagrams_in_reverse_are_a_row() {
    let kept = Kept::new();
    let line =
        "run sockets.datagrams --direction reverse --sizes 64 --rate 50 --iterations 10 --warmup 0 --quick";
    kept.job(line).run().expect(0);
    assert_eq!(row(&kept)["check"], "passed");
}

#[test]
fn the_second_rank_may_send() {
    let kept = Kept::new();
    let benches = "sockets.bw sockets.connect sockets.datagrams sockets.request";
    let line =
        format!("run {benches} --direction all --streams 1,2 --sizes 64 --rate 1000 --quick --max-time 20ms");
    kept.job(&line).run().expect(0).leaves_nothing();
    let rows = kept.rows();
    for (direction, rank) in [(None, 0), (Some("reverse"), 1)] {
        let of: Vec<&Value> =
            rows.iter().filter(|row| row["axes"]["direction"].as_str() == direction).collect();
        assert_eq!(of.len(), 5, "{direction:?}");
        for row in of {
            assert_eq!(
                (row["outcome"].as_str(), row["check"].as_str()),
                (Some("ok"), Some("passed")),
                "{row}"
            );
            assert_eq!(row["samples"][0]["rank"], rank, "{row}");
            if row["bench"] == "sockets.datagrams" {
                assert_eq!(figure(row, "lost_percent"), 0.0, "{row}");
            }
        }
    }
}
