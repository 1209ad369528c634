//! Files for Prometheus, and files of `packaging` for monitoring and CI: rules of Prometheus, a dashboard, units of systemd, jobs and an application
//! of Ramble, judged by their own tools where these are installed.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use ombx_tests::{Done, Files, Job, missing, mpi, results, skipped};
use serde_json::Value;

const RULES: &str = include_str!("../../../packaging/prometheus/ombx.rules.yml");
const TESTS_OF_RULES: &str = include_str!("../../../packaging/prometheus/ombx.rules.test.yml");
const SERVICE: &str = include_str!("../../../packaging/systemd/ombx-links.service");
const TIMER: &str = include_str!("../../../packaging/systemd/ombx-links.timer");
const DOCUMENT: &str = include_str!("../../../docs/GUIDE.md");
const FORMAT: &str = include_str!("../../../FORMAT.md");
const DASHBOARD: &str = include_str!("../../../packaging/grafana/ombx.json");
const GOLDEN: &str = include_str!("../../../crates/record/tests/golden/three_launches.jsonl");

/// Runs `promtool` on these rules and their tests.
fn promtool(rules: &str, words: [&str; 3]) -> Done {
    let files = Files::default();
    files.write("ombx.rules.yml", rules);
    files.write("ombx.rules.test.yml", TESTS_OF_RULES);
    Job::new("promtool").args(words).directory(files.root()).run()
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
    let done = Job::new("systemd-analyze").args(["verify", "--man=no"]).args(&units).run();
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

/// Returns the expressions of the dashboard, with the variables of Grafana replaced.
fn expressions(dashboard: &Value) -> Vec<String> {
    let panels = dashboard["panels"].as_array().expect("panels");
    let targets = panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten();
    let text = |target: &Value| target["expr"].as_str().expect("an expression").to_owned();
    let all: Vec<String> = targets.map(text).collect();
    all.into_iter()
        .map(|expr| {
            ["instance", "bench", "bytes"]
                .iter()
                .fold(expr, |expr, name| expr.replace(&format!("${name}"), ".*"))
        })
        .collect()
}

/// Grafana itself cannot be installed from the registries of packages: the test checks what it would refuse or show empty.
#[test]
fn the_dashboard_shows_documented_series_and_prometheus_reads_its_expressions() {
    let dashboard: Value = serde_json::from_str(DASHBOARD).expect("JSON");
    let documented: BTreeSet<&str> = series(DOCUMENT).union(&series(FORMAT)).copied().collect();
    let unknown: Vec<&str> = series(DASHBOARD).difference(&documented).copied().collect();
    assert!(unknown.is_empty(), "neither docs/GUIDE.md nor FORMAT.md describes {unknown:?}");
    let panels = dashboard["panels"].as_array().expect("panels");
    let (mut ids, mut cells) = (BTreeSet::new(), BTreeSet::new());
    for panel in panels {
        assert!(ids.insert(panel["id"].as_u64()), "two panels have the number of {panel}");
        let [x, y, w, h] = ["x", "y", "w", "h"].map(|side| panel["gridPos"][side].as_u64().expect("a place"));
        assert!(w > 0 && h > 0 && x + w <= 24, "{panel}");
        let new = (x..x + w).flat_map(|x| (y..y + h).map(move |y| (x, y)));
        new.for_each(|cell| assert!(cells.insert(cell), "a panel lies over another: {panel}"));
        for target in panel["targets"].as_array().into_iter().flatten() {
            assert_eq!(target["datasource"]["uid"], "${datasource}", "{target}");
        }
    }
    let variables = dashboard["templating"]["list"].as_array().expect("variables");
    let names: Vec<&str> = variables.iter().filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(names, ["datasource", "instance", "bench", "bytes"]);
    let expressions = expressions(&dashboard);
    // `$1` is a part of a label in PromQL.
    let is_whole = |expr: &String| !expr.replace("$1", "").contains('$');
    assert!(expressions.len() >= 15 && expressions.iter().all(is_whole), "{expressions:?}");
    if !missing(&["promtool"]).is_empty() {
        return skipped(
            "promtool is not installed (Debian: apt-get install --no-install-recommends prometheus)",
        );
    }
    let rule = |(at, expr): (usize, &String)| format!("  - {{record: 'a:b:c{at}', expr: '{expr}'}}\n");
    let rules: String = expressions.iter().enumerate().map(rule).collect();
    promtool(&format!("groups:\n- name: dashboard\n  rules:\n{rules}"), ["check", "rules", "ombx.rules.yml"])
        .expect(0);
    promtool(
        "groups:\n- name: a\n  rules:\n  - {record: 'a', expr: 'sum(('}\n",
        ["check", "rules", "ombx.rules.yml"],
    )
    .expect(1);
}

/// Line of a crontab in the document, from its command on.
fn crontab_line() -> &'static str {
    DOCUMENT.lines().find_map(|line| line.strip_prefix("*/5 * * * * ")).expect("a line of a crontab")
}

#[test]
fn a_timer_writes_the_newest_results_of_a_directory() {
    let files = Files::default();
    let [days, collector] = ["days", "collector"].map(|name| files.path(name));
    for directory in [&days, &collector] {
        fs::create_dir(directory).unwrap();
    }
    let text = |path: &Path| path.display().to_string();
    let line = crontab_line()
        .replace("/var/lib/prometheus/node-exporter", &text(&collector))
        .replace("/var/lib/ombx/days", &text(&days))
        .replace("ombx show", &format!("{} show", text(mpi::ombx())));
    let run = || Job::new("sh").args(["-c", &line]).run();
    let written = || fs::read_to_string(collector.join("ombx-days.prom")).unwrap_or_default();
    fs::write(days.join("links.jsonl"), results::links()).unwrap();
    run().expect(0);
    let links = written();
    assert!(links.contains("ombx_latency_seconds{bench=\"links\"") && links.ends_with("# EOF\n"), "{links}");
    // The next call has new files too, and the newest value of a case that several files have.
    fs::write(days.join("run.jsonl"), GOLDEN).unwrap();
    run().expect(0);
    let both = written();
    assert!(both.contains("key=\"p2p.") && both.contains("ombx_run_timestamp_seconds{"), "{both}");
    assert!(both.len() > links.len() && both.matches("# EOF").count() == 1);
    fs::write(days.join("a-later-run.jsonl"), GOLDEN.replace("2026-11-22T", "2026-11-23T")).unwrap();
    run().expect(0);
    let timestamps = |text: &str| -> Vec<String> {
        let of_run = |line: &&str| line.starts_with("ombx_run_timestamp_seconds{fabric=\"mpi\",ranks=\"2\"");
        text.lines().filter(of_run).map(str::to_owned).collect()
    };
    let [before, after] = [timestamps(&both), timestamps(&written())];
    assert!(before.len() == 1 && after.len() == 1 && before < after, "{before:?} {after:?}");
    let both = written();
    // What is no result is named, and the rest is shown.
    fs::write(days.join("poem.jsonl"), "no result\n").unwrap();
    let done = run().expect(0);
    assert!(done.stderr.contains("poem.jsonl") && written() == both, "{done}");
    // The file stays if there is nothing to show.
    fs::rename(&days, files.path("elsewhere")).unwrap();
    run().expect(7);
    assert_eq!(written(), both);
    if missing(&["promtool"]).is_empty() {
        let path = collector.join("ombx-days.prom");
        let words = format!("promtool check metrics <'{}'", path.display());
        Job::new("sh").args(["-c", &words]).run().expect(0);
    }
    let elsewhere = files.path("elsewhere");
    for words in ["", "--format csv"] {
        let done = Job::ombx(&format!("show {words}")).arg(&elsewhere).run().expect(7);
        assert!(done.sentence().contains("only --format openmetrics shows results"), "{done}");
    }
    let two = Job::ombx("show --format openmetrics").arg(&elsewhere).arg(&elsewhere).run().expect(2);
    assert!(two.sentence().contains("give it alone"), "{two}");
}

/// Jobs of GitLab and GitHub.
const JOBS: [(&str, &str); 2] = [
    ("gitlab-ci.yml", include_str!("../../../packaging/ci/gitlab-ci.yml")),
    ("github-workflow.yml", include_str!("../../../packaging/ci/github-workflow.yml")),
];

#[test]
fn jobs_of_ci_compare_and_check_with_a_report() {
    for (name, text) in JOBS {
        let files = Files::default();
        let entry = "[[entry]]\nrun = 'sockets.latency'\nsizes = 8\nlatency = '<60000ms'\n";
        // Of six launches, most meet one state of the machine, whose interval decides.
        let keys = "busy = 'never'\npause = '1ms'\n[defaults]\nlaunches = 6\nmax-time = '5ms'\n";
        files.write("check.toml", format!("{keys}{entry}"));
        let lines = text
            .lines()
            .filter_map(|line| line.trim().strip_prefix("- ").or(line.trim().strip_prefix("run: ")));
        let commands: Vec<&str> = lines.filter(|line| line.starts_with("$OMBX ")).collect();
        assert_eq!(commands.len(), 2, "{name}: {commands:?}");
        let run = |command: &str| {
            let job = Job::new("sh").args(["-c", command]).directory(files.root()).env("OMBX", mpi::ombx());
            let job =
                job.env("OMBX_BASE", "SIDE=base").env("OMBX_NEW", "SIDE=new").env("OMBX_CHECK", "check.toml");
            job.env("OMBX_BENCHMARKS", "sockets.latency")
                .env("OMBX_OPTIONS", "--sizes 8 --max-time 5ms --launches 2")
                .run()
        };
        // Two turns are too few for a verdict.
        run(commands[0]).expect(8);
        run(commands[1]).expect(0);
        for file in [
            "ombx-ab.xml",
            "ombx-ab.md",
            "ombx-ab-a.jsonl",
            "ombx-ab-b.jsonl",
            "ombx-check.xml",
            "ombx-check.jsonl",
        ] {
            assert!(files.path(file).exists(), "{name}: {file} of {:?}", files.names());
            assert!(text.contains(file) || file.contains("ab-"), "{name} does not keep {file}");
        }
        if missing(&["python3"]).is_empty() {
            let parsed =
                Job::new("python3").args(["-c", "import sys, yaml; yaml.safe_load(sys.argv[1])", text]).run();
            assert!(parsed.code == Some(0) || parsed.stderr.contains("No module named"), "{name}: {parsed}");
        }
    }
}

/// Ramble is not in a registry of packages: its patterns are matched with what ombx prints, by the module that Ramble uses.
#[test]
fn the_application_of_ramble_finds_its_figures() {
    const APPLICATION: &str = include_str!("../../../packaging/ramble/applications/ombx/application.py");
    const READER: &str = include_str!("ramble.py");
    if !missing(&["python3"]).is_empty() {
        return skipped("python3 is not installed");
    }
    let files = Files::default();
    let application = files.write("application.py", APPLICATION);
    let read = |file: &Path| {
        let shown = Job::ombx("show").arg(file).args(["--format", "openmetrics"]).run().expect(0);
        let log = files.write("log", shown.stdout);
        let done = Job::new("python3").args(["-c", READER]).arg(&application).arg(log).run().expect(0);
        serde_json::from_str::<Value>(&done.stdout).unwrap_or_else(|e| panic!("{e}: {done}"))
    };
    let rows = read(&files.write("golden.jsonl", GOLDEN));
    assert_eq!(rows["complete"], true, "{rows}");
    let cases = rows["figures"].as_object().expect("figures");
    assert!(cases.len() >= 2 && cases.keys().all(|key| key.contains('.')), "{rows}");
    assert!(cases.values().all(|of| of["latency"].as_f64() > Some(0.0)), "{rows}");
    // A run that broke has figures too.
    let (until, _) = GOLDEN.rsplit_once("{\"kind\":\"end\"").expect("an end");
    let broken = read(&files.write("broken.jsonl", until));
    assert!(broken["complete"] == false && broken["figures"] == rows["figures"], "{broken}");
    let links = read(&files.write("links.jsonl", results::links()));
    let links = links["figures"].as_object().expect("figures");
    assert!(
        links.iter().any(|(link, of)| link.contains(" to ") && of["latency of a link"].is_number()),
        "{links:?}"
    );
}
