//! Compares sockets, clocks and the pipeline with the delay and the rate of the emulated network.

use ombx_estimate::knee::Knees;
use ombx_record::result::{Check, Figure, Measurement, Outcome};
use ombx_tests::{print_note, results};

use crate::testbed::{Bed, eventually};

fn rows(bed: &Bed, hosts: &str, options: &str) -> Vec<Measurement> {
    let done = bed.ombx(hosts, options).run().expect(0);
    let rows = results::run_of(&bed.out()).rows;
    for row in &rows {
        assert_eq!((&row.outcome, &row.check), (&Outcome::Ok, &Check::Passed), "{}\n{done}", row.key);
    }
    rows
}

fn least_us(row: &Measurement) -> f64 {
    row.summary.as_ref().unwrap_or_else(|| panic!("{}: {:?}", row.key, row.figures)).min / 1e3
}

#[test]
fn sockets_between_hosts_have_the_delay_and_rate_of_the_network() {
    let Some(bed) = Bed::up("--hosts 2 --delay 2ms --rate 100Mbit") else { return };
    eventually(4, || {
        let row = &rows(&bed, "h1,h2", "run sockets.latency --sizes 8 --max-time 1s")[0];
        let (least, median) = (least_us(row), row.summary.as_ref().expect("a summary").median / 1e3);
        let message =
            format!("tcp: half a round trip at least {least:.0} us, median {median:.0} us, of 2000 us");
        print_note(&message);
        assert!(least > 2000.0, "{message}");
        if [least, median].iter().any(|us| (us / 2000.0 - 1.0).abs() < 0.03) { Ok(()) } else { Err(message) }
    });
    eventually(4, || {
        let before = bed.sent("h1");
        let row = &rows(&bed, "h1,h2", "run sockets.bw --sizes 1M --window 16 --iterations 2 --warmup 1")[0];
        let (sent, theory) = (bed.sent("h1") - before, 12.5 * 1448.0 / 1514.0);
        assert!(sent > (3 * 16) << 20, "{sent} bytes went over the network");
        let rate = row.mb_per_s().expect("a rate").median;
        let message = format!("tcp: {rate:.2} MB/s of {theory:.2}");
        print_note(&message);
        assert!(rate < 1.03 * theory, "{message}");
        if rate > 0.97 * theory { Ok(()) } else { Err(message) }
    });
    // Unix-domain sockets do not work between hosts. Ranks of one host do not use the network.
    let done = bed.ombx("h1,h2", "run sockets.latency --transport unix --sizes 8").run().expect(4);
    assert!(done.stdout.contains("Unix-domain sockets do not connect"), "{done}");
    let before = bed.sent("h1");
    rows(
        &bed,
        "h1",
        "run sockets.bw -n 2 --transport tcp,unix --sizes 1M --window 4 --iterations 4 --warmup 1",
    );
    let sent = bed.sent("h1") - before;
    assert!(sent < 1 << 20, "{sent} bytes of ranks of one host went over the network");
}

/// Requests of 15 KB over a link of 50 Mbit/s: those at 95 % of its rate are achieved, those at 105 % are not.
#[test]
fn the_knee_of_latency_against_load_is_the_rate_of_the_link() {
    let Some(bed) = Bed::up("--hosts 2 --delay 1ms --rate 50Mbit") else { return };
    const BYTES: f64 = 14480.0;
    // Full segments have 1448 bytes of payload in frames of 1514.
    let link = 50e6 / 8.0 / (BYTES * 1514.0 / 1448.0);
    let rates: Vec<String> =
        [0.5, 0.95, 0.97, 1.03, 1.05].iter().map(|part| format!("{:.0}", part * link)).collect();
    eventually(4, || {
        let line = format!(
            "run sockets.request --sizes 14480 --max-time 4s --window 512 --rate {}",
            rates.join(",")
        );
        let mut knees = Knees::default();
        rows(&bed, "h1,h2", &line).iter().for_each(|row| knees.add(row));
        let message = format!("the link carries {link:.1} requests/s; {}", knees.sentences().join("; "));
        print_note(&message);
        let near = |rate: Option<f64>| rate.is_some_and(|rate| (rate / link - 1.0).abs() < 0.051);
        match knees.knees().as_slice() {
            [knee] if near(knee.achieved) && near(knee.saturated) => Ok(()),
            _ => Err(message),
        }
    });
}

/// Two ranks on each of two hosts. A window and its acknowledgement take the delay twice; ranks of one host would take no time.
/// The delay is long, because four ranks on two cores wait for time slices.
#[test]
fn a_fan_sends_between_hosts_only() {
    let Some(bed) = Bed::up("--hosts 2 --delay 50ms --rate 100Mbit") else { return };
    eventually(4, || {
        let line =
            "run p2p.fan_in p2p.fan_out -n 4 --sizes 8 --window 4 --iterations 10 --warmup 1 --batch 1";
        let rows = rows(&bed, "h1,h2", line);
        let hosts: Vec<String> =
            results::run_of(&bed.out()).run.places.into_iter().map(|place| place.host).collect();
        for row in &rows {
            assert_eq!((row.pairs, row.work.expect("work").ops), (2, 8), "{}", row.key);
            let senders: Vec<bool> = row.samples.iter().map(|s| hosts[s.rank as usize] == hosts[0]).collect();
            assert_eq!(senders, [row.bench == "p2p.fan_out"; 2], "{}: {hosts:?}", row.key);
            assert!(least_us(row) > 100_000.0, "{}: {} us", row.key, least_us(row));
        }
        let most = rows.iter().map(least_us).fold(0.0, f64::max);
        let message = format!("a window over a fan takes at least {most:.0} us of 100000 us");
        print_note(&message);
        if most < 110_000.0 { Ok(()) } else { Err(message) }
    });
}

/// Hosts of a bed have different boot ids but share one clock, so the fitted clock differences must be almost zero.
#[test]
fn clocks_of_hosts_are_synchronized_over_the_network() {
    let Some(bed) = Bed::up("--hosts 2 --delay 2ms --rate 100Mbit") else { return };
    eventually(4, || {
        let line = "run collective.bcast_window --sizes 8 --iterations 40 --warmup 2";
        let row = &rows(&bed, "h1,h2", line)[0];
        let value = |name: &str| match &row.figures[name] {
            Figure::Value(us) => *us,
            Figure::Unresolved(why) => panic!("{name}: {why}"),
        };
        let (residual, least) = (value("sync_residual_us"), least_us(row));
        let message =
            format!("residual {residual:.2} us; a broadcast in a window takes {least:.0} us of 2000 us");
        print_note(&message);
        // A clock error of 2 ms would make the broadcast take no time, or twice the delay.
        if residual < 100.0 && (least / 2000.0 - 1.0).abs() < 0.1 { Ok(()) } else { Err(message) }
    });
}

#[test]
fn a_pipeline_sends_its_data_over_the_network() {
    let Some(bed) = Bed::up("--hosts 2") else { return };
    let before = bed.sent("h1");
    let line =
        "run sockets.pipeline --nodes 2 --phases 2 --buffer-count 16 --block 256K --iterations 2 --warmup 0";
    let row = &rows(&bed, "h1,h2", line)[0];
    let sent = bed.sent("h1") - before;
    print_note(&format!(
        "{} at {:?}: {sent} bytes left the first host",
        row.key,
        row.mb_per_s().map(|r| r.median)
    ));
    assert!(sent > (2 * 16 * 256) << 10, "{sent} bytes went over the network");
}
