//! Tests of hosts that have addresses of IPv6 alone, or of one link alone, in network namespaces.

use ombx_record::result::{Check, Measurement};
use ombx_tests::{kept::Kept, namespace::in_bare_namespace};

/// Options of short rows.
const SHORT: &str = "--sizes 8 --iterations 10 --quick";

/// A second host behind a link: `$there` runs a command on it. Its addresses are fe80::2 and fd00::2, those of this one fe80::1 and fd00::1.
const SECOND_HOST: &str = "
    ip link set lo up
    unshare --net sleep 600 &
    other=$!
    trap 'kill $other' EXIT
    while [ \"$(readlink /proc/$other/ns/net)\" = \"$(readlink /proc/$$/ns/net)\" ]; do sleep 0.05; done
    there=\"nsenter --net=/proc/$other/ns/net\"
    ip link add name here type veth peer name there netns $other
    $there ip link set lo up
    ip link set here addrgenmode none up
    $there ip link set there addrgenmode none up
    ip addr add fe80::1/64 dev here nodad
    ip addr add fd00::1/64 dev here nodad
    $there ip addr add fe80::2/64 dev there nodad
    $there ip addr add fd00::2/64 dev there nodad";

/// Runs a script and returns the rows that it has written; `None` where this machine has no such namespaces.
fn rows(script: &str) -> Option<Vec<Measurement>> {
    let kept = Kept::new();
    let done = in_bare_namespace(&kept, script)?.expect(0);
    let rows = kept.run().rows;
    rows.iter().for_each(|row| assert_eq!(row.check, Check::Passed, "{}\n{done}", row.key));
    Some(rows)
}

#[test]
fn ranks_of_a_host_without_127_0_0_1_use_ipv6() {
    let script = format!(
        "ip link set lo up
         ip addr del 127.0.0.1/8 dev lo
         $OMBX run sockets.latency sockets.connect {SHORT} -o $OUT"
    );
    let Some(rows) = rows(&script) else { return };
    assert_eq!(rows.len(), 2);
    assert!(rows.iter().all(|row| row.axes["ip"] == "6"));
}

/// Returns the rows of a client on the first host of a server on the second one.
fn served(serve: &str, connect: &str) -> Option<Vec<Measurement>> {
    let script = format!(
        "{SECOND_HOST}
         $there $OMBX sockets serve --once --token-file $TOKEN {serve} >$OUT.server &
         until grep -q listens $OUT.server; do sleep 0.05; done
         $OMBX run sockets.latency sockets.connect --transport tcp,udp --connect '{connect}' --token-file $TOKEN \
             {SHORT} -o $OUT"
    );
    rows(&script)
}

#[test]
fn a_link_local_address_keeps_its_interface_on_the_way_to_each_rank() {
    for serve in ["", "--bind fe80::2%there"] {
        let Some(rows) = served(serve, "[fe80::2%here]") else { return };
        assert_eq!(rows.len(), 3, "{serve}");
        assert!(rows.iter().all(|row| row.axes["ip"] == "6"));
    }
}

#[test]
fn the_version_of_the_protocol_follows_from_the_address_of_the_server() {
    let Some(rows) = served("", "fd00::2") else { return };
    assert_eq!(rows.len(), 3);
    assert!(rows.iter().all(|row| row.axes["ip"] == "6"));
}
