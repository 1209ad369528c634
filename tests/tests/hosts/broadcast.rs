//! Broadcasts between hosts: each method and algorithm against the delay of the links and the rate of the hosts' ports.

use std::{fs, time::Duration};

use ombx_record::result::{Check, Measurement, Outcome};
use ombx_tests::{Job, print_note, results};
use serde_json::Value;

use crate::testbed::{Bed, eventually};

/// Message that occupies a port. It is below the eager limits of both MPIs.
const LONG: u64 = 4096;
/// Bytes of its three frames.
const LONG_FRAMES: f64 = LONG as f64 + 3.0 * 66.0;

/// Hosts and their network.
#[derive(Debug, Clone, Copy)]
struct Network {
    hosts: u32,
    /// One-way delay of every link, in milliseconds.
    delay: f64,
    /// Rate of each host's port in Mbit/s.
    port: Option<f64>,
}

/// Medians in milliseconds: naive and acknowledged.
#[derive(Debug, Clone, Copy)]
struct Times {
    naive: f64,
    acked: f64,
}

impl Network {
    fn up(self) -> Option<Bed> {
        let port = self.port.map_or(String::new(), |mbit| format!(" --port {}kbit", mbit * 1e3));
        Bed::with(&["cc"], &format!("--hosts {} --delay {}ms{port}", self.hosts, self.delay))
    }

    fn names(self) -> String {
        (1..=self.hosts).map(|host| format!("h{host}")).collect::<Vec<_>>().join(",")
    }

    /// Returns when the last rank has a message of these frames, by a linear and a binomial broadcast.
    fn truth(self, frames: f64) -> [f64; 2] {
        let occupied = self.port.map_or(0.0, |mbit| 8e-3 * frames / mbit);
        let hops = f64::from(self.hosts.next_power_of_two().ilog2());
        [f64::from(self.hosts - 1) * occupied + self.delay, hops * (occupied + self.delay)]
    }

    /// Measures both methods for a linear and a binomial broadcast on all hosts.
    fn measure(self, bed: &Bed, bytes: u64) -> [Times; 2] {
        let run = |words: &str| -> Vec<Measurement> {
            let line = format!("run {words} -n {} --by linear,binomial --sizes {bytes}", self.hosts);
            let done = bed.ombx_of_sleeping_ranks(&self.names(), &line).run().expect(0);
            let rows = results::run_of(&bed.out()).rows;
            for row in &rows {
                assert_eq!((&row.outcome, &row.check), (&Outcome::Ok, &Check::Passed), "{}\n{done}", row.key);
            }
            rows
        };
        let acked = run("collective.bcast_acked --iterations 8 --warmup 1 --batch 1");
        let naive = run(&format!("collective.bcast_round --iterations {} --warmup 1", 8 * self.hosts));
        let of = |rows: &[Measurement], by: &str| {
            let counts = |row: &&Measurement| {
                row.axes.get("by").is_some_and(|value| value == by)
                    && row.axes.get("acker").is_none_or(|acker| acker == "slowest")
            };
            let row = rows.iter().find(counts).unwrap_or_else(|| panic!("no row by {by}"));
            row.summary.as_ref().expect("a summary").median / 1e6
        };
        ["linear", "binomial"].map(|by| Times { naive: of(&naive, by), acked: of(&acked, by) })
    }

    /// Measures until acknowledged broadcasts take what the network says, and `holds` accepts all times, linear and binomial.
    fn check(self, (bytes, frames): (u64, f64), holds: impl Fn([Times; 2]) -> bool) {
        let Some(bed) = self.up() else { return };
        let truth = self.truth(frames);
        eventually(3, || {
            let found = self.measure(&bed, bytes);
            let message =
                format!("{bytes} bytes over {self:?}, linear and binomial: {found:?}, truth {truth:?}");
            print_note(&message);
            let right =
                found.iter().zip(truth).all(|(found, truth)| (0.95..1.05).contains(&(found.acked / truth)));
            if right && holds(found) { Ok(()) } else { Err(message) }
        });
    }
}

/// Short messages do not wait for each other: a linear broadcast takes one delay, a binomial one a delay per hop. The naive loop takes
/// one delay for both, because the next root starts after one message.
fn is_right_for_short([linear, binomial]: [Times; 2]) -> bool {
    linear.acked < 0.6 * binomial.acked && binomial.naive < 0.75 * binomial.acked
}

/// A long message occupies the port of its sender. The linear broadcast waits for n - 1 of them at the root, the binomial one for
/// one at each hop. The naive loop waits for one message of the linear and for log2 n messages of the binomial broadcast, without the
/// delays of the other hops. It therefore ranks them wrongly.
fn is_right_for_long([linear, binomial]: [Times; 2]) -> bool {
    let naive_is_below = [linear, binomial].iter().all(|found| found.naive < 0.95 * found.acked);
    naive_is_below && linear.acked > 1.1 * binomial.acked && linear.naive < 0.9 * binomial.naive
}

#[test]
fn four_hosts_broadcast_short_messages() {
    Network { hosts: 4, delay: 20.0, port: None }.check((8, 0.0), is_right_for_short);
}

#[test]
fn four_hosts_broadcast_long_messages() {
    Network { hosts: 4, delay: 2.0, port: Some(4.0) }.check((LONG, LONG_FRAMES), is_right_for_long);
}

#[test]
fn eight_hosts_broadcast_long_messages() {
    Network { hosts: 8, delay: 2.0, port: Some(4.0) }.check((LONG, LONG_FRAMES), is_right_for_long);
}

/// The ombx under test is a debug build, on whose figures no verdict rests. The file is shown without the marks of rows.
#[test]
fn the_suite_says_which_method_is_wrong() {
    let network = Network { hosts: 4, delay: 2.0, port: Some(4.0) };
    let Some(bed) = network.up() else { return };
    eventually(2, || {
        let line = "run suite:broadcast --sizes 8,4K --iterations 10 --warmup 1 --launches 6";
        bed.ombx_of_sleeping_ranks(&network.names(), line).limit(Duration::from_secs(240)).run().expect(0);
        let text = fs::read_to_string(bed.out()).expect("a result file");
        let unmarked = text.lines().map(|line| {
            let mut record: Value = serde_json::from_str(line).expect("a record");
            record.as_object_mut().expect("an object").remove("trust");
            format!("{record}\n")
        });
        let file = bed.files.write("unmarked.jsonl", unmarked.collect::<String>());
        let done = Job::ombx("show").arg(file).run().expect(0);
        let lines: Vec<&str> = done.stdout.lines().filter(|line| line.contains(" bytes: ")).collect();
        lines.iter().for_each(|line| print_note(line));
        let method = "bcast_acked ack-correction=half";
        let short = lines.iter().any(|line| {
            ["linear is faster", "undecided"]
                .iter()
                .any(|says| line.contains(&format!("8 bytes: {method}: {says}")))
        });
        let wrong = "bcast_round: linear is faster. bcast_round is wrong";
        let long = format!("4K bytes: {method}: binomial is faster; {wrong}");
        if short && lines.iter().any(|line| line.contains(&long)) { Ok(()) } else { Err(done.to_string()) }
    });
}
