//! Broadcasts between hosts: each method and algorithm against the delay of the links and the rate of the hosts' ports.

use ombx_core::{
    benchmark::payload::Check,
    result::{Measurement, Outcome},
};
use ombx_tests::{print_note, results};

use crate::testbed::{Bed, eventually};

/// One-way delay of every link.
const DELAY_US: f64 = 2000.0;
/// Rate of each host's port in Mbit/s.
const PORT: f64 = 6.0;
/// Message that occupies the port, below the eager limits, and the bytes of its three frames.
const LONG: u64 = 4096;
const LONG_FRAMES: f64 = LONG as f64 + 3.0 * 66.0;

/// Medians in microseconds: naive and acknowledged.
#[derive(Debug, Clone, Copy)]
struct Times {
    naive: f64,
    acked: f64,
}

/// Measures both methods for a linear and a binomial broadcast on all hosts.
fn measure(bed: &Bed, hosts: u32, bytes: u64) -> [Times; 2] {
    let names: Vec<String> = (1..=hosts).map(|host| format!("h{host}")).collect();
    let run = |words: &str| -> Vec<Measurement> {
        let line = format!("run {words} -n {hosts} --by linear,binomial --sizes {bytes} --warmup 2");
        let done = bed.ombx(&names.join(","), &line).run().expect(0);
        let rows = results::run_of(&bed.out()).rows;
        for row in &rows {
            assert_eq!((&row.outcome, &row.check), (&Outcome::Ok, &Check::Passed), "{}\n{done}", row.key);
        }
        rows
    };
    let acked = run("collective.bcast_acked --iterations 16 --batch 1");
    let naive = run(&format!("collective.bcast_round --iterations {}", 4 * 8 * hosts));
    let of = |rows: &[Measurement], by: &str| {
        let counts = |row: &&Measurement| {
            row.axes.get("by").is_some_and(|value| value == by)
                && row.axes.get("acker").is_none_or(|acker| acker == "slowest")
        };
        let row = rows.iter().find(counts).unwrap_or_else(|| panic!("no row by {by}"));
        row.summary.as_ref().expect("a summary").median / 1e3
    };
    ["linear", "binomial"].map(|by| Times { naive: of(&naive, by), acked: of(&acked, by) })
}

/// Returns when the last rank has the message, by a linear and a binomial broadcast.
fn truth(hosts: u32, occupied_us: f64) -> [f64; 2] {
    let hops = f64::from(hosts.next_power_of_two().ilog2());
    [f64::from(hosts - 1) * occupied_us + DELAY_US, hops * (occupied_us + DELAY_US)]
}

/// Short messages do not wait for each other: a linear broadcast takes one delay, a binomial one a delay per hop. The naive loop takes
/// one delay for both, because the next root starts after one message.
fn short_messages(hosts: u32) {
    let Some(bed) = Bed::up(&format!("--hosts {hosts} --delay 2ms")) else { return };
    let truth = truth(hosts, 0.0);
    eventually(3, || {
        let found = measure(&bed, hosts, 8);
        let message = format!("{hosts} hosts, 8 bytes, linear and binomial: {found:?}, truth {truth:?}");
        print_note(&message);
        let right = found.iter().zip(truth).all(|(found, truth)| (found.acked / truth - 1.0).abs() < 0.05);
        // No broadcast can be faster than its delays.
        assert!(found.iter().zip(truth).all(|(found, truth)| found.acked > 0.97 * truth), "{message}");
        if right && found[1].naive < 0.75 * found[1].acked { Ok(()) } else { Err(message) }
    });
}

#[test]
fn four_hosts_broadcast_short_messages() {
    short_messages(4);
}

#[test]
fn eight_hosts_broadcast_short_messages() {
    short_messages(8);
}

/// A long message occupies the port of its sender. The linear broadcast waits for n - 1 of them at the root, the binomial one for
/// one at each hop. The naive loop waits for one message of the linear and for log2 n messages of the binomial broadcast, without the
/// delays of the other hops. It therefore ranks them wrongly.
fn long_messages(hosts: u32) {
    let Some(bed) = Bed::up(&format!("--hosts {hosts} --delay 2ms --port {PORT}Mbit")) else { return };
    let truth = truth(hosts, 8.0 * LONG_FRAMES / PORT);
    eventually(3, || {
        let found = measure(&bed, hosts, LONG);
        let message = format!("{hosts} hosts, {LONG} bytes, linear and binomial: {found:?}, truth {truth:?}");
        print_note(&message);
        let [linear, binomial] = found;
        assert!(linear.acked > 0.97 * truth[0] && binomial.acked > 0.97 * truth[1], "{message}");
        let right = found.iter().zip(truth).all(|(found, truth)| (found.acked / truth - 1.0).abs() < 0.05);
        let below = found.iter().all(|found| found.naive < 0.95 * found.acked);
        let ranked = linear.acked > 1.1 * binomial.acked && linear.naive < 0.9 * binomial.naive;
        if right && below && ranked { Ok(()) } else { Err(message) }
    });
}

#[test]
fn four_hosts_broadcast_long_messages() {
    long_messages(4);
}

#[test]
fn eight_hosts_broadcast_long_messages() {
    long_messages(8);
}

#[test]
fn the_suite_says_which_method_is_wrong() {
    let Some(bed) = Bed::up(&format!("--hosts 4 --delay 2ms --port {PORT}Mbit")) else { return };
    eventually(2, || {
        let line = "run suite:broadcast --sizes 8,4K --iterations 16 --warmup 2 --launches 6";
        let done = bed.ombx("h1,h2,h3,h4", line).run().expect(0);
        let lines: Vec<&str> = done.stdout.lines().filter(|line| line.contains("faster is")).collect();
        lines.iter().for_each(|line| print_note(line));
        let says = |size: &str, words: &str| {
            lines.iter().any(|line| line.trim().starts_with(size) && line.contains(words))
        };
        let short = says("8 bytes", "linear by bcast_acked");
        let long = says("4K bytes", "binomial by bcast_acked, linear by bcast_round. bcast_round is wrong");
        if short && long { Ok(()) } else { Err(done.to_string()) }
    });
}
