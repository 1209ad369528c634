//! Files of `packaging` for monitoring: rules of Prometheus and units of systemd, judged by their own tools.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use ombx_tests::{Done, Files, Job, missing, mpi, skipped};

const RULES: &str = include_str!("../../../packaging/prometheus/ombx.rules.yml");
const TESTS_OF_RULES: &str = include_str!("../../../packaging/prometheus/ombx.rules.test.yml");
const SERVICE: &str = include_str!("../../../packaging/systemd/ombx-links.service");
const TIMER: &str = include_str!("../../../packaging/systemd/ombx-links.timer");
const DOCUMENT: &str = include_str!("../../../docs/GUIDE.md");

/// Runs `promtool` on these rules and their tests.
fn promtool(rules: &str, words: [&str; 3]) -> Done {
    let files = Files::default();
    files.write("ombx.rules.yml", rules);
    files.write("ombx.rules.test.yml", TESTS_OF_RULES);
    Job::of("promtool").args(words).directory(files.root()).run()
}

#[test]
fn rules_pass_their_tests_and_broken_rules_fail_them() {
    if !missing(&["promtool"]).is_empty() {
        return skipped(
            "promtool is not installed (Debian: apt-get install --no-install-recommends prometheus)",
        );
    }
    promtool(RULES, ["check", "rules", "ombx.rules.yml"]).expect(0);
    let test = ["test", "rules", "ombx.rules.test.yml"];
    promtool(RULES, test).expect(0);
    // Each rule has a test that fails without it.
    let names = RULES.lines().filter_map(|line| line.trim().strip_prefix("- "));
    let rules: Vec<&str> =
        names.filter(|line| line.starts_with("alert: ") || line.starts_with("record: ")).collect();
    assert!(rules.len() > 5, "{rules:?}");
    for rule in rules {
        let broken = RULES.replacen(rule, &format!("{rule}_other"), 1);
        promtool(&broken, test).expect(1);
    }
    promtool(&RULES.replace("36 * 3600", "37 * 3600"), test).expect(1);
}

/// Names of the form `ombx_..` in a text.
fn series(text: &str) -> BTreeSet<&str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| word.starts_with("ombx_"))
        .collect()
}

#[test]
fn rules_read_documented_series() {
    let documented = series(DOCUMENT);
    let unknown: Vec<&str> = series(RULES).difference(&documented).copied().collect();
    assert!(unknown.is_empty(), "docs/GUIDE.md does not describe {unknown:?}");
}

/// Returns the value of a setting of the service.
fn setting(name: &str) -> &'static str {
    SERVICE.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('=')).unwrap()
}

#[test]
fn the_service_measures_and_writes_the_file_that_rules_read() {
    let files = Files::default();
    let path = |name: &str| files.path(name).display().to_string();
    let metrics = "/var/lib/prometheus/node-exporter/ombx.prom";
    assert!(DOCUMENT.contains(metrics), "the document names the same file");
    let line = setting("ExecStart").replace(metrics, &path("ombx.prom"));
    let line =
        line.replace("$OMBX_LINKS", "-n 2 --fabric tcp --sizes 8").replace("${STATE_DIRECTORY}", &path(""));
    let words = line.strip_prefix("/usr/bin/ombx ").unwrap();
    // Two ranks of one host have no verdict, with which the service succeeds.
    let done = Job::ombx(words).run().expect(10);
    assert!(setting("SuccessExitStatus").split(' ').any(|code| code == "10"), "{done}");
    // It runs every day and replaces its own files.
    Job::ombx(words).run().expect(10);
    let metrics = fs::read_to_string(files.path("ombx.prom")).unwrap();
    for name in series(RULES) {
        // Only a slow part has a ratio, and checks have a file of their own.
        let is_elsewhere = name == "ombx_slow_ratio" || name.starts_with("ombx_check_");
        assert!(metrics.contains(name) || is_elsewhere, "no {name} in\n{metrics}");
    }
    assert!(files.path("links.jsonl").exists());
}

/// Returns what `systemd-analyze verify` says about the units, with the binary under test in place of the installed one.
fn verify(service: &str, timer: &str) -> String {
    let files = Files::default();
    let binary = mpi::ombx().to_str().unwrap();
    let units: Vec<PathBuf> = vec![
        files.write("ombx-links.service", service.replace("/usr/bin/ombx", binary)),
        files.write("ombx-links.timer", timer),
    ];
    let done = Job::of("systemd-analyze").args(["verify", "--man=no"]).args(&units).run();
    // Units of the machine may have faults of their own.
    done.stderr.lines().filter(|line| line.contains("ombx-links")).collect::<Vec<_>>().join("\n")
}

#[test]
fn systemd_accepts_the_units() {
    if !missing(&["systemd-analyze"]).is_empty() {
        return skipped("systemd-analyze is not installed");
    }
    if !Path::new("/usr/lib/systemd/system").exists() && !Path::new("/lib/systemd/system").exists() {
        return skipped("no units of systemd are installed");
    }
    assert_eq!(verify(SERVICE, TIMER), "");
    for (service, timer) in [
        (SERVICE.replace("oneshot", "onetime"), TIMER.to_owned()),
        (SERVICE.replace("StateDirectory", "StateDirectorie"), TIMER.to_owned()),
        (SERVICE.to_owned(), TIMER.replace("04:00", "25:00")),
    ] {
        assert_ne!(verify(&service, &timer), "", "{service}{timer}");
    }
}
