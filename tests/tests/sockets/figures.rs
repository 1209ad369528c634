//! Tests of figures: rates follow from the samples of their row, losses are those that the kernel counts.

use ombx_record::result::{Check, Measurement, Outcome};
use ombx_tests::{
    kept::Kept,
    namespace::{FIXED, in_namespace, number_after},
    print_note,
    sockets::figure,
};

/// Bytes of the messages of these tests.
const BYTES: f64 = 60_000.0;
/// Messages in flight.
const WINDOW: f64 = 4.0;

/// Returns the bytes that an iteration moves, by the documentation of the benchmark.
fn bytes_of_iteration(row: &Measurement) -> f64 {
    match (&*row.bench, row.axes.get("pattern").map(String::as_str)) {
        ("sockets.bw", _) => WINDOW * BYTES,
        ("sockets.bibw", _) => 2.0 * WINDOW * BYTES,
        ("sockets.link", Some("unidirectional")) => WINDOW * BYTES,
        ("sockets.link", Some("bidirectional")) => 4.0 * BYTES,
        ("sockets.link", None | Some("semidirectional")) => 2.0 * BYTES,
        other => panic!("{other:?}"),
    }
}

/// Returns the median of the times of an iteration in nanoseconds.
fn iteration_ns(row: &Measurement) -> f64 {
    let [samples] = &row.samples[..] else { panic!("{}: one rank is timed", row.key) };
    let mut times = samples.elapsed_ns.clone();
    times.sort_unstable();
    let (low, high) = (times[(times.len() - 1) / 2], times[times.len() / 2]);
    (low + high) as f64 / 2.0 / samples.batch as f64
}

/// Panics unless two numbers are equal but for rounding.
#[track_caller]
fn assert_equal(found: f64, expected: f64, row: &Measurement) {
    assert!((found / expected - 1.0).abs() < 1e-9, "{}: {found}, not {expected}", row.key);
}

#[test]
fn rates_follow_from_bytes_and_times() {
    let kept = Kept::new();
    let line = "sockets.bw sockets.bibw sockets.link --pattern all --direction all --streams 2 --sizes \
                60000 --window 4 --iterations 9 --batch 2";
    kept.job(line).run().expect(0);
    let rows = kept.run().rows;
    assert!(rows.len() >= 5, "{}", rows.len());
    for row in &rows {
        let rate = row.mb_per_s().unwrap_or_else(|| panic!("{} has no rate", row.key));
        assert_equal(rate.median, bytes_of_iteration(row) * 1e3 / iteration_ns(row), row);
    }
}

#[test]
fn times_of_messages_are_halves_of_round_trips() {
    let kept = Kept::new();
    kept.job("sockets.latency --sizes 8 --iterations 10 --batch 5").run().expect(0);
    let row = &kept.run().rows[0];
    assert_equal(row.summary.as_ref().expect("a summary").median, iteration_ns(row) / 2.0, row);
}

/// The queue lets 64 KB pass, and then one datagram a second.
#[test]
fn lost_datagrams_are_those_that_the_kernel_dropped() {
    let kept = Kept::new();
    let script = format!(
        "ip link set lo up
         tc qdisc add dev lo root handle 1: htb
         tc class add dev lo parent 1: classid 1:1 htb rate 10gbit quantum 60000
         tc filter add dev lo parent 1: protocol ip u32 match ip protocol 17 0xff flowid 1:1
         tc qdisc add dev lo parent 1:1 tbf rate 8kbit burst 64kb limit 2kb
         $OMBX run sockets.datagrams --offload off --sizes 1400 --rate 10000 --iterations 5000 {FIXED} -o $OUT
         tc -s qdisc show dev lo
         awk '/^Udp: [0-9]/ {{ print \"overflows\", $6 }}' /proc/net/snmp"
    );
    let Some(done) = in_namespace(&kept, &script) else { return };
    let done = done.expect(0);
    let row = &kept.run().rows[0];
    let [sent, arrived, lost, percent] =
        ["sent_datagrams", "arrived_datagrams", "lost_datagrams", "lost_percent"]
            .map(|name| figure(row, name));
    assert_eq!((sent, arrived + lost, percent), (5000.0, sent, 100.0 * lost / sent));
    let dropped = (number_after(&done.stdout, "(dropped") + number_after(&done.stdout, "overflows")) as f64;
    // One datagram may still be in the queue.
    assert!(lost > 1000.0 && [dropped, dropped + 1.0].contains(&lost), "{lost} of {dropped}\n{done}");
    print_note(&format!("{lost} lost, {dropped} dropped"));
    assert_equal(row.summary.as_ref().expect("a summary").median, iteration_ns(row), row);
    assert_equal(row.mb_per_s().expect("a rate").median, 1400.0 * 1e3 / iteration_ns(row), row);
}

/// The mean interval of one of 20 parts is a sample of ten: it is longer than the round.
#[test]
fn few_datagrams_in_reverse_are_a_row() {
    let kept = Kept::new();
    let line = "sockets.datagrams --direction reverse --sizes 64 --rate 50 --iterations 10 --warmup 0";
    kept.job(line).run().expect(0);
    assert_eq!(kept.run().rows[0].check, Check::Passed);
}

#[test]
fn the_second_rank_may_send() {
    let kept = Kept::new();
    let benches = "sockets.bw sockets.connect sockets.datagrams sockets.request";
    let line =
        format!("{benches} --direction all --streams 1,2 --sizes 64 --window 4 --rate 1000 --iterations 30");
    kept.job(&line).run().expect(0).leaves_nothing();
    let rows = kept.run().rows;
    for (direction, rank) in [(None, 0), (Some("reverse"), 1)] {
        let of = |row: &&Measurement| row.axes.get("direction").map(String::as_str) == direction;
        let of: Vec<&Measurement> = rows.iter().filter(of).collect();
        assert_eq!(of.len(), 5, "{direction:?}");
        for row in of {
            assert_eq!((&row.outcome, &row.check), (&Outcome::Ok, &Check::Passed), "{}", row.key);
            assert_eq!(row.samples[0].rank, rank, "{}", row.key);
            if row.bench == "sockets.datagrams" {
                // All fit into the buffer of a socket.
                assert_eq!(figure(row, "lost_percent"), 0.0);
            }
        }
    }
}
