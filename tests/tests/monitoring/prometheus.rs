//! Alerts of the real Prometheus from files that ombx writes for the node exporter.

use std::time::Duration;

use ombx_tests::{
    Files, Job,
    links::undisturbed,
    prometheus::{Prometheus, make_old},
    skipped,
};

/// Alert of a link that misses `--expect`.
const MISSED: &str = "OmbxMissedDemands";
/// Alert of a limit that a check has missed.
const CHECK_MISSED: &str = "OmbxCheckMissed";
/// Alert of a file that was not replaced.
const OLD: &str = "OmbxOld";

/// Measures the link between two ranks and writes the file of the node exporter.
fn measure(prometheus: &Prometheus, demand: &str, code: i32) {
    let job = || {
        let job = Job::ombx("links -n 2 --fabric tcp --sizes 8 --max-time 50ms");
        job.args(demand.split_whitespace()).arg("--openmetrics").arg(prometheus.metrics())
    };
    undisturbed(job).expect(code);
}

#[test]
fn alerts_follow_the_file_of_the_last_sweep() {
    let prometheus = match Prometheus::start() {
        Ok(prometheus) => prometheus,
        Err(why) => return skipped(&why),
    };
    let is_firing = |name: &'static str| move |server: &Prometheus| !server.firing(name).is_empty();

    // One link cannot be compared with others, and there is no demand.
    measure(&prometheus, "", 10);
    prometheus.until("a sweep without a verdict is reported", is_firing("OmbxNoVerdict"));
    assert!(prometheus.firing(MISSED).is_empty() && prometheus.firing(OLD).is_empty());
    let recorded = |server: &Prometheus| server.value("sweep:ombx_latency_seconds:median{bytes=\"8\"}");
    prometheus.until("a series is recorded", |server| recorded(server).is_some());
    let median = recorded(&prometheus).expect("a recorded series");
    assert!(median.parse::<f64>().unwrap() > 0.0, "{median}");

    measure(&prometheus, "--expect latency<1ns", 9);
    prometheus.until("a missed demand is reported", is_firing(MISSED));
    let alert = &prometheus.firing(MISSED)[0];
    assert_eq!(alert["labels"]["severity"], "critical", "{alert}");
    assert_eq!(alert["annotations"]["summary"], "Missed demands on links: 1", "{alert}");

    measure(&prometheus, "--expect latency<9999ms", 0);
    prometheus.until("the alert ends with the next sweep", |server| server.firing(MISSED).is_empty());

    // A day and a half is 36 hours.
    make_old(&prometheus.metrics(), Duration::from_secs(37 * 3600));
    prometheus.until("an old file is reported", is_firing(OLD));

    // The exporter has never seen a part of a file, or a line that it does not accept.
    let errors = prometheus.value("max(max_over_time(node_textfile_scrape_error[5m]))");
    assert_eq!(errors.as_deref(), Some("0"));
}

#[test]
fn an_alert_follows_the_last_check() {
    let prometheus = match Prometheus::start() {
        Ok(prometheus) => prometheus,
        Err(why) => return skipped(&why),
    };
    let files = Files::default();
    let check = |limit: &str, code: i32| {
        let entry = format!("[[entry]]\nrun = 'sockets.latency'\nsizes = 8\nlatency = '<{limit}'\n");
        let keys = "busy = 'never'\npause = '1ms'\n[defaults]\nlaunches = 2\nmax-time = '5ms'\n";
        let file = files.write("check.toml", format!("{keys}{entry}"));
        let job = Job::ombx("check").arg(file).arg("--openmetrics").arg(prometheus.metrics());
        job.run().expect(code);
    };
    check("60000ms", 0);
    let ratio = |server: &Prometheus| {
        server.value("ombx_check_limit_ratio{bench=\"sockets.latency\",limit=\"absolute\"}")
    };
    prometheus.until("a met limit is recorded", |server| ratio(server).is_some());
    assert!(ratio(&prometheus).unwrap().parse::<f64>().unwrap() < 1.0);
    assert_eq!(prometheus.value("ombx_check_result{result=\"met\"}").as_deref(), Some("1"));
    assert!(prometheus.firing(CHECK_MISSED).is_empty());

    check("1ns", 9);
    prometheus.until("a missed limit is reported", |server| !server.firing(CHECK_MISSED).is_empty());
    let alert = &prometheus.firing(CHECK_MISSED)[0];
    assert_eq!(alert["labels"]["bench"], "sockets.latency", "{alert}");
    assert_eq!(alert["labels"]["from_host"], alert["labels"]["hosts"], "two ranks of this host: {alert}");

    check("60000ms", 0);
    prometheus.until("the alert ends with the next check", |server| server.firing(CHECK_MISSED).is_empty());
}
