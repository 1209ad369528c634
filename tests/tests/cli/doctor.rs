//! Tests of `ombx doctor`: a launcher of another MPI, too many ranks, and ranks that are not bound.

use std::os::unix::fs::symlink;

use ombx_tests::{Done, Files, Job, mpi, skipped};
use serde_json::Value;

fn doctor(options: &str) -> Job {
    Job::ombx("doctor --format json").args(options.split_whitespace())
}

/// Returns the codes of the findings. Checks that the exit code is 4 if there is a finding, and 0 otherwise.
#[track_caller]
fn found(done: &Done) -> Vec<String> {
    let report: Value = serde_json::from_str(&done.stdout).unwrap_or_else(|e| panic!("{e}\n{done}"));
    let findings = report["findings"].as_array().expect("findings");
    for finding in findings {
        assert!(finding["advice"].as_str().is_some_and(|a| !a.is_empty()), "{done}");
    }
    let disturbs = findings.iter().any(|finding| finding["level"] != "note");
    assert_eq!(done.code, Some(if disturbs { 4 } else { 0 }), "{done}");
    assert!(report["errors_since_start"].is_array(), "{done}");
    assert!(report["mpi"].is_string() && report["clock"]["overhead_ns"].is_u64(), "{done}");
    assert!(report["hosts"][0]["hosts"][0].is_string() && report["hosts"][0]["facts"].is_object(), "{done}");
    findings.iter().map(|finding| finding["code"].as_str().unwrap().to_owned()).collect()
}

fn has(codes: &[String], code: &str) -> bool {
    codes.iter().any(|c| c == code)
}

#[test]
fn bound_ranks_on_separate_cores_have_no_finding() {
    if mpi::cores() < 2 {
        return skipped("one core");
    }
    let codes = found(&doctor("").run());
    for code in ["wrong_launcher", "launcher", "oversubscribed", "unbound", "shared_cpu"] {
        assert!(!has(&codes, code), "{codes:?}");
    }
}

#[test]
fn more_ranks_than_cores() {
    let online = std::thread::available_parallelism().map_or(1, usize::from);
    let done = doctor(&format!("-n {}", online * 4)).run();
    assert!(has(&found(&done), "oversubscribed"), "{done}");
    let report: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(report["ranks"].as_array().map(Vec::len), Some(online * 4), "{done}");
}

#[test]
fn an_unbound_run() {
    if mpi::cores() < 2 {
        return skipped("one core");
    }
    let done = doctor("--launcher-arg=--bind-to --launcher-arg=none").run();
    let hydra = doctor("--launcher-arg=-bind-to --launcher-arg=none").run();
    let codes = found(if mpi::is_open_mpi() { &done } else { &hydra });
    assert!(has(&codes, "unbound"), "{codes:?}");
}

#[test]
fn a_launcher_of_another_mpi_in_the_environment() {
    let Some(other) = mpi::other_mpiexec() else { return skipped("no other MPI is installed") };
    let done = doctor("").env("OMBX_MPIEXEC", other).run();
    assert!(has(&found(&done), "wrong_launcher"), "{done}");
}

#[test]
fn a_launcher_of_another_mpi_in_the_search_path() {
    let Some(other) = mpi::other_mpiexec() else { return skipped("no other MPI is installed") };
    let files = Files::default();
    symlink(other, files.path("mpiexec")).unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    let done = doctor("").env("PATH", format!("{}:{path}", files.root().display())).run();
    let codes = found(&done);
    assert!(has(&codes, "path_launcher") && !has(&codes, "wrong_launcher"), "{done}");
    let report: Value = serde_json::from_str(&done.stdout).unwrap();
    let findings = report["findings"].as_array().unwrap();
    let of_path = findings.iter().find(|finding| finding["code"] == "path_launcher").unwrap();
    assert_eq!(of_path["level"], "note", "ombx does not use it: {done}");
}

#[test]
fn memory_of_devices_is_tried_or_the_reason_is_told() {
    let done = doctor("--memory cuda").run();
    let codes = found(&done);
    let arrived = done.stdout.contains("messages of 1K bytes arrive right with --memory cuda on this host");
    assert!(has(&codes, "device_memory") != arrived, "{done}");
    let wrong = Job::ombx("doctor --memory gpu").run().expect(2);
    assert!(wrong.stderr.contains("use host, cuda"), "{wrong}");
}

/// Runs `ombx doctor` as ranks of an explicit launcher.
#[test]
fn under_a_launcher_rank_0_prints_the_report() {
    let ours = Job::mpiexec(2, "doctor --format json").run();
    let report: Value =
        serde_json::from_str(&ours.stdout).unwrap_or_else(|e| panic!("one report: {e}\n{ours}"));
    assert!(!report.to_string().contains("wrong_launcher"), "{ours}");

    let Some(other) = mpi::other_mpiexec() else { return skipped("no other MPI is installed") };
    let mut job = Job::new(&other).args(["-n", "2"]).arg(mpi::ombx()).args(["doctor", "--format", "json"]);
    for name in ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] {
        job = job.env(name, "1");
    }
    let done = job.env("OMPI_MCA_plm_rsh_agent", "sh").run();
    assert!(done.stdout.contains("\"wrong_launcher\""), "{done}");
}

#[test]
fn the_text_report_has_findings_with_advice() {
    let ranks = 4 * std::thread::available_parallelism().map_or(1, usize::from).max(16);
    let done = Job::ombx(&format!("doctor -n {ranks}")).run().expect(4);
    assert!(done.stdout.starts_with("This system is not ready to measure: "), "{done}");
    assert!(done.stdout.contains(&format!("\n  - {ranks} ranks poll on ")), "{done}");
    assert!(done.stdout.contains("\n    What to do: use fewer ranks or more hosts\n"), "{done}");
    assert!(done.stdout.contains(&format!("\nExamined: {} ", mpi::name())), "{done}");
    let codes = found(&doctor(&format!("-n {ranks}")).run());
    assert!(codes.iter().any(|code| code.contains('_')), "{codes:?}");
    for code in codes.iter().filter(|code| code.contains('_')) {
        assert!(!done.stdout.contains(code.as_str()), "{code} is for programs\n{done}");
    }
    done.leaves_nothing();
}

/// Checks one line of a monitoring plugin and returns its status.
#[track_caller]
fn plugin_line(done: &Done, service: &str) -> u8 {
    assert_eq!(done.stdout.lines().count(), 1, "{done}");
    let names = ["OK", "WARNING", "CRITICAL", "UNKNOWN"];
    let starts = |name: &&str| done.stdout.starts_with(&format!("OMBX {service} {name} - "));
    let status = names.iter().position(starts).unwrap_or_else(|| panic!("no status: {done}"));
    let status = u8::try_from(status).unwrap();
    assert_eq!(done.code, Some(i32::from(status)), "{done}");
    for figure in done.stdout.trim_end().split(" | ").skip(1).flat_map(|figures| figures.split(' ')) {
        let (label, value) = figure.split_once('=').unwrap_or_else(|| panic!("{figure}: {done}"));
        let number: String = value.chars().take_while(|c| c.is_ascii_digit() || "-.".contains(*c)).collect();
        assert!(!label.is_empty() && number.parse::<f64>().is_ok(), "{figure}: {done}");
        let unit = value[number.len()..].split(';').next().unwrap();
        assert!(["", "us", "%", "B"].contains(&unit), "{figure}: {done}");
    }
    status
}

#[test]
fn monitoring_gets_one_line_with_the_status_as_exit_code() {
    let ranks = 4 * std::thread::available_parallelism().map_or(1, usize::from);
    let done = Job::ombx(&format!("doctor --format nagios -n {ranks}")).run();
    assert_eq!(plugin_line(&done, "DOCTOR"), 2, "{done}");
    assert!(done.stdout.contains(" ranks poll on ") && done.stdout.contains(" invalid="), "{done}");
    let files = Files::default();
    for (line, service, words) in [
        ("doctor --format nagios -n 0", "DOCTOR", "not a number"),
        ("doctor --format=nagios --frobnicate", "DOCTOR", "--frobnicate"),
        ("links --format nagios -n 1", "LINKS", "two ranks"),
        ("links --format nagios --reference absent", "LINKS", "absent"),
        ("links --format nagios --fail-on nothing", "LINKS", "leave out --fail-on"),
    ] {
        let done = Job::ombx(line).directory(files.root()).run();
        assert_eq!(plugin_line(&done, service), 3, "a mistake says nothing about the system\n{done}");
        assert!(done.stdout.contains(words) && done.stderr.is_empty(), "{done}");
    }
}

#[test]
fn no_launcher_at_all() {
    let done = doctor("").env("OMBX_MPIEXEC", Files::default().path("mpiexec")).run();
    let codes = found(&done);
    assert!(has(&codes, "wrong_launcher") || has(&codes, "launcher"), "{done}");
}
