//! Combinations of options over sockets, and what the kernel of a network namespace confirms. `sockets` has one case of each data flow.

use std::{net::TcpListener, path::Path};

use ombx_record::result::{Check, Outcome};
use ombx_tests::{
    Files, Job,
    kept::{Kept, assert_measured},
    missing,
    namespace::{FIXED, in_namespace, number_after},
    print_note, skipped,
    sockets::figure,
};

/// Options of short rows.
const QUICK: &str = "--max-time 10ms --precision 50%";

#[test]
fn every_benchmark_over_every_socket_is_verified() {
    let (ip, versions) = match TcpListener::bind("[::1]:0") {
        Ok(_) => ("all", 2),
        Err(why) => {
            print_note(&format!("IPv4 alone, this host has no IPv6: {why}"));
            ("4", 1)
        }
    };
    let benches = "sockets.latency sockets.bw sockets.bibw sockets.link";
    let line = format!(
        "{benches} --transport tcp,unix,udp --ip {ip} --buffers all --pattern all --sizes 1,1000,60000 \
         --window 4 {QUICK}"
    );
    let (kept, delayed) = (Kept::new(), Kept::new());
    kept.job(&line).run().expect(0).leaves_nothing();
    // Small messages that wait to be joined take 40 ms each.
    let line = format!("{benches} --nodelay off --sizes 60000 --window 4 {QUICK}");
    let done = delayed.job(&line).run().expect(0);
    let (rows, delayed) = (kept.run().rows, delayed.run().rows);
    // Of three sizes; windows have two kinds of buffers, the link three patterns.
    let sockets = 1 + 2 * versions;
    assert_eq!((rows.len(), delayed.len()), (3 * sockets * (1 + 2 + 2 + 3), 4), "{sockets} sockets");
    for row in rows.iter().chain(&delayed) {
        assert_measured(row, &done);
        assert_eq!(row.figures.contains_key("lost_messages"), row.axes["transport"] == "udp", "{}", row.key);
    }
}

#[test]
fn every_number_of_streams_is_verified() {
    let kept = Kept::new();
    let benches = "sockets.bw sockets.bibw --streams 1,3,16,40 --transport tcp,unix --buffers all";
    let done = kept.job(&format!("{benches} --sizes 1,60000,1M --window 40 {QUICK}")).run().expect(0);
    let rows = kept.run().rows;
    assert_eq!(rows.len(), 4 * 2 * 2 * 2 * 3);
    rows.iter().for_each(|row| assert_measured(row, &done));
}

/// Ranks of three levels of the tree along which messages of all ranks go.
#[test]
fn many_ranks_measure_a_sample_of_the_links() {
    let kept = Kept::new();
    let line = "links --fabric tcp -n 70 --rounds 2 --sizes 8 --iterations 4 --retest 1 --fail-on nothing -o";
    Job::ombx(line).arg(kept.out()).run().expect(0).leaves_nothing();
    let run = kept.run();
    let sweep: Vec<_> = run.each_row().filter(|row| !row.axes.contains_key("retest")).collect();
    assert_eq!((sweep.len(), run.each_row().all(|row| row.check == Check::Passed)), (140, true));
    let partners = |rank: u32| sweep.iter().filter(|row| row.axes["from"] == rank.to_string()).count();
    assert!((0..70).all(|rank| partners(rank) == 2));
}

/// The client waits for 8 seconds.
#[test]
fn a_port_that_does_not_answer_is_named() {
    let (kept, files) = (Kept::new(), Files::default());
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let options = format!("sockets.latency --sizes 8 --connect 127.0.0.1:{port}");
    let job = kept.job(&options).env("OMBX_TOKEN", "00112233445566778899aabbccddeeff");
    let done = job.directory(files.root()).run().expect(6);
    assert!(done.sentence().contains("did not answer within 8 s"), "{done}");
    assert!(!kept.out().exists(), "a file was written\n{done}");
}

/// Connects this host over a router with another one, on which `ombx sockets serve` runs. The router drops packets of class EF to
/// the other host that exceed 20 Mbit/s.
const BEHIND_A_ROUTER: &str = r#"
ip link set lo up
unshare --net sleep 1000 & router=$!
unshare --net sleep 1000 & other=$!
trap 'kill $router $other' EXIT
own=$(readlink /proc/$$/ns/net)
until [ "$(readlink /proc/$router/ns/net)" != "$own" ] && [ "$(readlink /proc/$other/ns/net)" != "$own" ]; do sleep 0.05; done
on_router() { nsenter --target $router --net "$@"; }
on_other() { nsenter --target $other --net "$@"; }
ip link add name near type veth peer name near netns $router
on_router ip link add name far type veth peer name far netns $other
ip addr add 10.0.1.1/24 dev near
ip link set near up gso_max_segs 1
on_router sh -e -c 'ip addr add 10.0.1.2/24 dev near; ip addr add 10.0.2.2/24 dev far; ip link set near up; ip link set far up
  echo 1 > /proc/sys/net/ipv4/ip_forward
  tc qdisc add dev far root handle 1: htb
  tc class add dev far parent 1: classid 1:1 htb rate 10gbit quantum 60000
  tc filter add dev far parent 1: protocol ip u32 match ip dsfield 0xb8 0xfc flowid 1:1
  tc qdisc add dev far parent 1:1 tbf rate 20mbit burst 20kb limit 60kb'
on_other sh -e -c 'ip link set lo up; ip addr add 10.0.2.1/24 dev far; ip link set far up gso_max_segs 1
  ip route add 10.0.1.0/24 via 10.0.2.2'
ip route replace 10.0.2.0/24 via 10.0.1.2
on_other $OMBX sockets serve --once --token-file $TOKEN & server=$!
until on_other sh -c 'ss -ltn | grep -q :5444'; do sleep 0.05; done
"#;

#[test]
fn retransmits_of_each_direction_are_those_of_the_kernel() {
    if !missing(&["ss", "nsenter"]).is_empty() {
        return skipped("not installed: ss or nsenter");
    }
    let kept = Kept::new();
    // RetransSegs is the twelfth number of the second line of TCP.
    let script = format!(
        "{BEHIND_A_ROUTER}
         $OMBX run sockets.bw --connect 10.0.2.1 --token-file $TOKEN --dscp EF --sizes 64K --window 8 --streams 4 \
           --direction all --iterations 10 --interval 100ms {FIXED} -o $OUT
         wait $server
         awk '/^Tcp: [0-9]/ {{ print \"counted_here\", $13 }}' /proc/net/snmp
         on_other cat /proc/net/snmp | awk '/^Tcp: [0-9]/ {{ print \"counted_there\", $13 }}'"
    );
    let Some(done) = in_namespace(&kept, &script) else { return };
    let done = done.expect(0);
    let rows = kept.run().rows;
    let [forward, reverse] =
        [(None, "counted_here"), (Some("reverse"), "counted_there")].map(|(direction, place)| {
            let row = rows.iter().find(|row| row.axes.get("direction").map(String::as_str) == direction);
            let counted =
                figure(row.unwrap_or_else(|| panic!("{direction:?}\n{done}")), "retransmits") as u64;
            let of_kernel = number_after(&done.stdout, place);
            // Each stream may lose a segment before or after its row.
            let outside = of_kernel.checked_sub(counted);
            assert!(
                outside.is_some_and(|segments| segments <= 8),
                "{direction:?}: {counted} of {of_kernel}\n{done}"
            );
            counted
        });
    assert!(forward > 20, "{forward} segments were lost\n{done}");
    print_note(&format!("{forward} retransmits, {reverse} in reverse"));
    // Only the sending rank has counters. The last interval of a row may be unfinished.
    let lines: Vec<&str> = done.stderr.lines().filter(|line| line.contains("retransmits")).collect();
    let in_intervals: u64 = lines.iter().map(|line| number_after(line, "retransmits")).sum();
    assert!(lines.iter().all(|line| number_after(line, "cwnd_bytes") > 0), "{done}");
    assert!((1..=forward + reverse).contains(&in_intervals), "{in_intervals}: {done}");
}

#[test]
fn packets_have_the_chosen_class() {
    for (ip, protocol, class) in
        [("4", "ip", "ip dsfield 0xb8 0xfc"), ("6", "ipv6", "ip6 priority 0xb8 0xfc")]
    {
        let kept = Kept::new();
        let script = format!(
            "ip link set lo up
             tc qdisc add dev lo root handle 1: htb default 2
             for class in 1 2; do tc class add dev lo parent 1: classid 1:$class htb rate 10gbit quantum 60000; done
             tc filter add dev lo parent 1: protocol {protocol} u32 match {class} flowid 1:1
             $OMBX run sockets.datagrams --ip {ip} --dscp EF --sizes 64 --rate 10000 --iterations 500 {FIXED} -o $OUT
             tc -s class show dev lo classid 1:1"
        );
        let Some(done) = in_namespace(&kept, &script) else { return };
        let done = done.expect(0);
        let (_, class) = done.stdout.split_once("class htb 1:1").expect("a class");
        let packets = number_after(class, "bytes ");
        assert!(packets >= 500, "{packets} packets of class EF over IPv{ip}\n{done}");
    }
}

#[test]
fn mptcp_is_used_or_the_row_says_why_not() {
    if !Path::new("/proc/sys/net/mptcp/enabled").exists() {
        return skipped("this kernel has no MPTCP");
    }
    let kept = Kept::new();
    let run = format!("$OMBX run sockets.bw --transport mptcp --sizes 4K --iterations 20 {FIXED} -o $OUT");
    let counter = "awk '/^MPTcpExt: / { n++; for (i = 1; i <= NF; i++) if (n == 1) name[i] = $i; else \
                   if (name[i] == \"MPCapableACKRX\") print \"accepted\", $i }' /proc/net/netstat";
    let script = format!("ip link set lo up; sysctl -qw net.mptcp.enabled=1; {run}; {counter}");
    let Some(done) = in_namespace(&kept, &script) else { return };
    assert!(number_after(&done.expect(0).stdout, "accepted") >= 1);
    let row = &kept.run().rows[0];
    assert_eq!((&row.outcome, &*row.axes["transport"]), (&Outcome::Ok, "mptcp"));

    let kept = Kept::new();
    let script = format!("ip link set lo up; sysctl -qw net.mptcp.enabled=0; {run}");
    let Some(done) = in_namespace(&kept, &script) else { return };
    let done = done.expect(4);
    assert!(done.stdout.contains("skipped 1 row: this host has no MPTCP: set net.mptcp.enabled=1"), "{done}");
}
