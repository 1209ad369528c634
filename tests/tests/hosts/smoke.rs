//! Tests that no foreign load can disturb: two hosts give a report, and names are never run as commands.

use std::process::Command;

use ombx_record::verdict::Conclusion;
use ombx_tests::{Files, Job, results};

use crate::testbed::{Bed, cluster_bench};

#[test]
fn links_of_two_hosts_end_with_a_report() {
    let Some(bed) = Bed::with(&["sha256sum"], "--hosts 2") else { return };
    // Two hosts have one link, about which nothing can be said.
    bed.cluster_bench("--timeout 60s -- --sizes 8,64K --iterations 20 --warmup 2").run().expect(10);
    assert!(bed.kept("summary.txt").contains("no verdict (pairs): 1 link cannot be compared"));
    for name in ["inventory.toml", "plan.json", "preflight.json", "summary.txt", "links.csv", "report.html"] {
        assert!(!bed.kept(name).is_empty(), "{name}");
    }
    let mut sums = Command::new("sha256sum");
    sums.args(["--check", "--quiet", "SHA256SUMS"]).current_dir(bed.runs().join("latest"));
    assert!(sums.status().expect("sha256sum").success());
    let matrix = bed.kept("links.csv");
    for line in [
        "pairs-h1-h2,pairs,h1,h2,0,1,65536,",
        "pairs-h1-h2,pairs,h2,h1,1,0,8,",
        "together,together,h1,h2,0,1,8,",
    ] {
        assert!(matrix.contains(line), "{line}: {matrix}");
    }
    // Hosts are the ranks of the sweep over all pairs, which the page shows in place of each job.
    let pairs = results::run_of(&bed.runs().join("latest/pairs.jsonl"));
    let hosts: Vec<&str> = pairs.run.places.iter().map(|place| place.host.as_str()).collect();
    assert_eq!((hosts, pairs.each_row().count()), (vec!["h1", "h2"], 4));
    let verdict = pairs.verdict.expect("a verdict");
    assert_eq!(verdict.conclusion, Conclusion::None);
    let page = bed.kept("report.html");
    assert!(page.contains("<h3>pairs.jsonl</h3>") && !page.contains("jobs/pairs-h1-h2"), "{page}");
    let run = results::run_of(&bed.runs().join("latest/jobs/pairs-h1-h2/results.jsonl"));
    assert!(run.rows.iter().all(|row| row.summary.is_some()));
    let hosts: Vec<&str> = run.run.places.iter().map(|place| place.host.as_str()).collect();
    assert_eq!(hosts, ["h1", "h2"]);
    // 20 messages of 64 KiB in each direction: messages in shared memory would not be counted.
    let job: serde_json::Value = serde_json::from_str(&bed.kept("jobs/pairs-h1-h2/job.json")).expect("a job");
    for of_host in job["network"].as_array().expect("hosts") {
        for counter in ["rx_bytes", "tx_bytes"] {
            assert!(of_host[counter].as_u64() > Some(20 << 16), "{counter}: {of_host}");
        }
        assert_eq!(of_host["interface"], "eth0");
    }
    bed.has_nothing_left();
}

/// Returns names that would create `file` if a shell or ssh ran them.
fn bad_names(file: &str) -> Vec<String> {
    [
        "a; touch F",
        "-oProxyCommand=touch F",
        "me@-oProxyCommand=touch F",
        "$(touch F)",
        "`touch F`",
        "a\ntouch F",
        "a'b",
        "a\"b",
        "a b",
        "",
    ]
    .map(|name| name.replace('F', file))
    .to_vec()
}

#[test]
fn names_are_never_run_as_commands() {
    let files = Files::default();
    let (victim, runs) = (files.path("victim"), files.path("runs"));
    let bench = |arguments: &[&str], inventory: &str| {
        let inventory = files.write("cluster.toml", inventory);
        let job = cluster_bench().arg("--inventory").arg(inventory).arg("--runs").arg(&runs);
        let done = job.args(arguments).run().expect(2);
        assert!(!done.stderr.contains("panicked"), "{done}");
    };
    let good = "[[hosts]]\nname = \"a\"\n[[hosts]]\nname = \"b\"\n";
    for name in bad_names(&victim.display().to_string()) {
        for key in ["name", "address", "interface"] {
            let named = if key == "name" { "" } else { "name = \"c\"\n" };
            bench(&[], &format!("{good}[[hosts]]\n{named}{key} = {name:?}\n"));
        }
        bench(&[], &format!("[env]\n{name:?} = \"x\"\n{good}"));
        bench(&[&format!("--hosts={name}")], good);
        bench(&[&format!("--pairs={name}-b")], good);
        let hostfile = files.write("hosts", format!("{name}\n"));
        Job::ombx("run p2p.latency").arg(format!("--hosts={name}")).run().expect(2);
        Job::ombx("run p2p.latency").arg("--interface").arg(&name).run().expect(2);
        Job::ombx("run p2p.latency").arg("--ssh").arg(&name).run().expect(2);
        // In a host file, the first word of a line is a valid host in these cases.
        if !name.starts_with("a b") && !name.contains('\n') {
            Job::ombx("run p2p.latency --hostfile").arg(hostfile).run().expect(2);
        }
    }
    for line in [
        "env.A = \"x\\ny\"",
        "prefix = \"/a; b\"",
        "work_dir = \"/a'b\"",
        "ssh_config = \"a\\nb\"",
        "bind = \"; x\"",
    ] {
        bench(&[], &format!("{line}\n{good}"));
    }
    assert!(!victim.exists() && !runs.exists());
}

/// Checks that a value with shell characters reaches the ranks unchanged.
#[test]
fn an_environment_arrives_unchanged() {
    let files = Files::default();
    let value = "it's $(touch /tmp/x) `y` \"z\"; & | > *";
    let text = format!("[env]\nUCX_NOTE = {value:?}\n[[hosts]]\nname = \"a\"\n[[hosts]]\nname = \"b\"\n");
    let inventory = files.write("cluster.toml", text);
    let done = cluster_bench().args(["--dry-run", "--inventory"]).arg(inventory).run().expect(0);
    let line =
        done.stdout.lines().find(|line| line.starts_with("export UCX_NOTE=")).expect("a line of the script");
    let script = format!("{line}; printf %s \"$UCX_NOTE\"");
    let shown = Command::new("sh").args(["-c", &script]).output().expect("sh");
    assert_eq!(String::from_utf8_lossy(&shown.stdout), value);
}
