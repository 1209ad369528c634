//! Tests of `cargo xtask cluster-bench` on networks where one link or one host is slow.

use std::{collections::BTreeSet, fs, path::Path};

use ombx_tests::{mpi, print_note};

use crate::testbed::{Bed, eventually};

const SHORT: &str = "--timeout 60s -- --sizes 8 --max-time 100ms";

/// Returns the verdicts of the latest run.
fn verdicts(bed: &Bed) -> Vec<String> {
    let text = bed.kept("summary.txt");
    text.lines().filter(|line| line.starts_with("verdict")).map(str::to_owned).collect()
}

#[test]
fn one_slow_link_of_six_is_the_only_verdict() {
    let Some(bed) = Bed::with(&["cc"], "--hosts 4 --delay 2ms --link h2-h4:delay=6ms") else { return };
    eventually(3, || {
        bed.cluster_bench_of_sleeping_ranks(SHORT).run().expect(9);
        let found = verdicts(&bed);
        let right = |line: &String| line.contains(" link ") && line.contains("h2") && line.contains("h4");
        if !found.is_empty() && found.iter().all(right) { Ok(()) } else { Err(format!("{found:?}")) }
    });
    let matrix = bed.kept("links.csv");
    assert!(matrix.lines().filter(|line| line.starts_with("pairs-")).count() >= 12, "{matrix}");
    assert!(matrix.contains("pairs-h1-h2,pairs,h1,h2,0,1,8,"), "{matrix}");
    for host in ["h1", "h2"] {
        let job: serde_json::Value = serde_json::from_str(&bed.kept("jobs/pairs-h1-h2/job.json")).unwrap();
        let of = job["network"].as_array().unwrap().iter().find(|n| n["host"] == host).unwrap();
        assert!(of["tx_bytes"].as_u64() > Some(1000) && of["rx_bytes"].as_u64() > Some(1000), "{job}");
    }
    bed.has_nothing_left();
}

#[test]
fn one_slow_host_of_four_is_the_only_verdict() {
    let Some(bed) = Bed::with(&["cc"], "--hosts 4 --delay 2ms --host h3:delay=6ms") else { return };
    eventually(3, || {
        bed.cluster_bench_of_sleeping_ranks(SHORT).run().expect(9);
        let found = verdicts(&bed);
        let right = |line: &String| {
            line.contains("host h3 is slow") && !["h1", "h2", "h4"].iter().any(|h| line.contains(h))
        };
        if !found.is_empty() && found.iter().all(right) { Ok(()) } else { Err(format!("{found:?}")) }
    });
}

/// `ombx links` alone, without the pairs of `ombx cluster`.
#[test]
fn one_of_four_hosts_at_a_fifth_of_the_rate_is_named_and_fewer_are_no_all_clear() {
    let Some(bed) = Bed::with(&["cc"], "--hosts 4 --rate 50Mbit --host h3:rate=10Mbit") else { return };
    let links = |hosts: &str, options: &str| {
        bed.ombx_of_sleeping_ranks(
            hosts,
            &format!("links --sizes 128K --max-time 300ms --timeout 60s {options}"),
        )
        .run()
    };
    for hosts in ["h1,h3", "h1,h2,h3"] {
        let done = links(hosts, "").expect(10);
        assert!(done.stdout.contains("\nno verdict: ") && !done.stdout.contains("stands out"), "{done}");
    }
    // An absolute limit needs no other links.
    let done = links("h1,h3", "--expect bw>1GB/s").expect(9);
    assert!(done.stdout.contains("bw>1GB/s: missed by 1 of 1 link"), "{done}");
    let [fit, unfit] = ["fit", "unfit"].map(|name| bed.files.path(name));
    let lists = format!("--fit {} --unfit {}", fit.display(), unfit.display());
    eventually(3, || {
        let done = links("h1,h2,h3,h4", &lists);
        assert!(!done.stdout.contains("stands out"), "{done}");
        // The verdict stands before and after long tables.
        let named = done.stdout.lines().filter(|line| line.starts_with("verdict: ")).collect::<BTreeSet<_>>();
        if named.len() == 1 && named.iter().all(|line| line.contains("host h3 is slow")) {
            done.expect(9);
            return Ok(());
        }
        Err(format!("{done}"))
    });
    let hosts = |list: &Path| {
        let text = fs::read_to_string(list).expect("a list");
        text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(
        (hosts(&fit), hosts(&unfit)),
        (["h1", "h2", "h4"].map(str::to_owned).to_vec(), vec!["h3".to_owned()])
    );
    assert!(
        fs::read_to_string(&unfit).unwrap().contains("\n# host h3 is slow: its links to other hosts take ")
    );
}

#[test]
fn a_plan_is_printed_and_mistakes_are_found_before_any_start() {
    let Some(bed) = Bed::up("--hosts 2") else { return };
    let done = bed.cluster_bench("--dry-run").run().expect(0);
    for part in ["pairs-h1-h2", "--hosts h1,h2", "export UCX_TLS=tcp,self", mpi::ombx().to_str().unwrap()] {
        assert!(done.stdout.contains(part), "{part}\n{done}");
    }
    let template = bed.files.write("pbs", "#PBS -l nodes={{nodes}}:ppn={{ranks_per_host}}\n{{command}}\n");
    let done = bed.cluster_bench("--dry-run --launcher script --template").arg(template).run().expect(0);
    assert!(done.stdout.contains("#PBS -l nodes=2:ppn=1\n"), "{done}");
    assert!(!bed.runs().exists());
    for options in ["--hosts h9", "--pairs h1-h9", "--launcher script"] {
        bed.cluster_bench(options).run().expect(2);
    }
    assert!(!bed.runs().exists());
}

/// A port at a tenth of the rate, and a host that receives every fiftieth frame damaged: TCP sends these again, and slower each time. Both
/// hosts are named with their factor and their cause.
#[test]
fn a_slow_port_and_damaged_frames_are_named_with_factor_and_cause() {
    let network = "--hosts 4 --delay 5ms --rate 100Mbit --host h2:rate=10Mbit --host h4:damaged=2%";
    let Some(bed) = Bed::with(&["cc", "ethtool"], network) else { return };
    // Other algorithms hardly slow down when segments are lost.
    for host in ["h1", "h2", "h3", "h4"] {
        bed.on(host, "sysctl -qw net.ipv4.tcp_congestion_control=reno");
    }
    eventually(3, || {
        let options = "links --sizes 256K --max-time 3s --launches 1 --timeout 400s";
        let done = bed.ombx_of_sleeping_ranks("h1,h2,h3,h4", options).run();
        print_note(&done.stdout);
        let is_named = |host: &str, cause: &str| {
            let sentence = format!("verdict: host {host} is slow: its links to other hosts take ");
            let (_, rest) = done.stdout.split_once(&sentence)?;
            let own = rest.split("verdict: ").next()?;
            let is_right = own.contains(" times as long as ")
                && own.contains(&format!("possible cause: {host}: {cause}"));
            is_right.then_some(())
        };
        let both =
            is_named("h2", "eth0 speed 10 Mbit/s, others 100 Mbit/s").zip(is_named("h4", "Tcp InErrs +"));
        if both.is_some() && !done.stdout.contains("host h1") && !done.stdout.contains("host h3") {
            done.expect(9);
            return Ok(());
        }
        Err(format!("{done}"))
    });
}

/// Two switches with two hosts each, whose links take 20 Mbit/s. Over an uplink of 20 Mbit/s two of them take twice as long as one.
#[test]
fn links_that_share_an_uplink_are_found() {
    let network = "--hosts 4 --delay 1ms --rate 20Mbit --uplink h1,h2:rate=20Mbit";
    let Some(bed) = Bed::up(network) else { return };
    let groups = bed.files.write("switches", "switch s1: h[1-2]\nswitch s2: h[3-4]\n");
    for (option, of) in [
        (format!("--groups {}", groups.display()), "from switch s"),
        ("--bisection".into(), "of the bisection take "),
    ] {
        eventually(3, || {
            let options =
                "links --fabric tcp --pattern unidirectional --window 4 --sizes 64K --max-time 500ms";
            let options = format!("{options} --launches 1 --timeout 200s {option}");
            let done = bed.ombx("h1,h2,h3,h4", &options).run();
            print_note(&done.stdout);
            let sentence = format!("verdict: together, the 2 links {of}");
            let factor = done.stdout.split_once(&sentence).and_then(|(_, rest)| {
                let before = rest.split_once(" times as long as alone")?.0;
                before.split(' ').next_back()?.parse::<f64>().ok()
            });
            if factor.is_some_and(|factor| (1.6..=2.4).contains(&factor)) {
                done.expect(9);
                return Ok(());
            }
            Err(format!("{done}"))
        });
    }
}
