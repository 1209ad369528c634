//! Compares latency and bandwidth with the delay and the rate of the emulated network.

use ombx_tests::results;

use crate::testbed::{Bed, eventually};

/// Share of payload in the frames of a TCP stream with timestamps.
const PAYLOAD: f64 = 1448.0 / 1514.0;

/// Returns half of the shortest round trip of a ping, in microseconds.
fn ping(bed: &Bed) -> f64 {
    let text = bed.on("h1", "ping -q -c 100 -i 0.01 h2");
    let times = text.lines().find_map(|line| line.split_once(" = ")).unwrap_or_else(|| panic!("{text}")).1;
    times.split('/').next().and_then(|min| min.parse::<f64>().ok()).expect("a time") * 1e3 / 2.0
}

#[test]
fn latency_is_the_delay_of_the_link() {
    for (delay, us) in [("2ms", 2000.0), ("5ms", 5000.0)] {
        let Some(bed) = Bed::with(&["ping"], &format!("--hosts 2 --delay {delay} --rate 100Mbit")) else {
            return;
        };
        eventually(4, || {
            let before = ping(&bed);
            bed.ombx("h1,h2", "run p2p.latency --sizes 8 --max-time 2s --precision 0.5%").run().expect(0);
            let truth = before.min(ping(&bed));
            let row = &results::run_of(&bed.out()).rows[0];
            let summary = row.summary.as_ref().expect("a summary");
            let (least, median) = (summary.min / 1e3, summary.median / 1e3);
            let message = format!(
                "{delay}: ping {truth:.0} us, half a round trip at least {least:.0} us, median {median:.0} us"
            );
            ombx_tests::print_note(&message);
            // A time below the delay of the link is wrong on any machine.
            assert!(least > us, "{message}");
            if [least, median].iter().any(|time| (time / truth - 1.0).abs() < 0.03) {
                Ok(())
            } else {
                Err(message)
            }
        });
    }
}

#[test]
fn bandwidth_is_the_rate_of_the_link() {
    for (rate, mbit) in [("100Mbit", 100.0), ("40Mbit", 40.0)] {
        let Some(bed) = Bed::up(&format!("--hosts 2 --delay 2ms --rate {rate}")) else { return };
        let theory = mbit / 8.0 * PAYLOAD;
        eventually(4, || {
            let sent = bed.sent("h1");
            bed.ombx("h1,h2", "run p2p.bw --sizes 1M --window 16 --iterations 2 --warmup 1").run().expect(0);
            let sent = bed.sent("h1") - sent;
            let row = &results::run_of(&bed.out()).rows[0];
            let payload: u64 = row.samples[0].elapsed_ns.len() as u64 * row.samples[0].batch * 16 * 1_048_576;
            assert!(sent > payload, "{sent} bytes went over the network, {payload} were measured");
            // The fastest window counts too. It ends with an acknowledgement, so it cannot beat the link.
            let median = row.mb_per_s().expect("a rate").median;
            let best = median * row.summary.as_ref().expect("a summary").median
                / row.summary.as_ref().expect("a summary").min;
            let message = format!(
                "{rate}: median {median:.2} MB/s, best {best:.2}, maximum payload rate of TCP {theory:.2}"
            );
            ombx_tests::print_note(&message);
            assert!(median < 1.03 * theory, "{message}");
            if [median, best].iter().any(|found| (found / theory - 1.0).abs() < 0.03) {
                Ok(())
            } else {
                Err(message)
            }
        });
    }
}

#[test]
fn hosts_are_separate() {
    let Some(bed) = Bed::with(&["ping"], "--hosts 2") else { return };
    let of = |file: &str| [bed.on("h1", &format!("cat {file}")), bed.on("h2", &format!("cat {file}"))];
    for file in
        ["/proc/sys/kernel/hostname", "/proc/sys/kernel/random/boot_id", "/sys/class/net/eth0/address"]
    {
        let [one, other] = of(file);
        assert_ne!(one, other, "{file}");
    }
    assert!(bed.on("h1", "ssh h2 hostname").trim() == "h2");
    bed.on("h1", "touch /dev/shm/only-here");
    assert!(!bed.on("h2", "ls /dev/shm").contains("only-here"));
    // `down` removes everything and may be repeated. `up` then works again.
    for _ in 0..2 {
        assert!(bed.xtask("down", "").status.success());
    }
    assert!(bed.xtask("up", "--hosts 2 --delay 1ms").status.success());
    assert!(bed.on("h2", "ping -q -c 2 h1").contains(" 0% packet loss"));
}
