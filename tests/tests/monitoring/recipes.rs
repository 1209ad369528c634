//! The recipes of the guide for Slurm and NHC, run as these programs run them.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use ombx_tests::{Done, Files, Job, mpi, skipped, upstream};

const GUIDE: &str = include_str!("../../../docs/GUIDE.md");
/// Paths in the guide.
const PROGRAM: &str = "/usr/bin/ombx";
const FILE: &str = "/etc/ombx/node-check.toml";
const DAYS: &str = "/var/lib/ombx/days";
const SCRIPT: &str = "/etc/ombx/check.sh";
/// The line of the script that NHC does not need.
const DRAIN: &str = "scontrol";
/// Limits that are always met, and never.
const MET: &str = "latency = '<60000ms'";
const MISSED: &str = "latency = '<1ns'";

/// Returns what stands between two texts of the guide.
fn between(start: &str, end: &str) -> &'static str {
    let from = GUIDE.find(start).unwrap_or_else(|| panic!("the guide has {start:?}")) + start.len();
    &GUIDE[from..from + GUIDE[from..].find(end).expect("the end")]
}

/// Writes the script of the guide with a limit of a row over sockets.
fn script(files: &Files, limit: &str, drains: impl Fn(&&str) -> bool) {
    files.write(
        "node.toml",
        format!(
            "pause = '1ms'\nbusy = 'never'\n\n[defaults]\nlaunches = 2\nmax-time = '5ms'\n\n[[entry]]\nrun = \
             'sockets.latency'\nsizes = 8\n{limit}\n"
        ),
    );
    let path = |name: &str| files.path(name).display().to_string();
    let text = format!("#!/bin/sh\n{}", between("#!/bin/sh\n", "```"))
        .replace(PROGRAM, &mpi::ombx().display().to_string())
        .replace(FILE, &path("node.toml"))
        .replace(DAYS, &path("days"));
    assert!(text.contains(&path("node.toml")) && text.contains(&path("days")), "{text}");
    let lines: Vec<&str> = text.lines().filter(drains).collect();
    executable(&files.write("check.sh", lines.join("\n") + "\n"));
}

fn executable(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_script_for_slurm_drains_a_node_that_misses_a_limit() {
    let files = Files::default();
    let drained = files.path("drained");
    executable(&files.write("scontrol", format!("#!/bin/sh\necho \"$@\" >'{}'\n", drained.display())));
    let run = || {
        let path = format!("{}:/bin:/usr/bin", files.root().display());
        Job::new(files.path("check.sh")).env("PATH", path).run()
    };
    script(&files, MET, |_| true);
    run().expect(0);
    assert!(!drained.exists());
    script(&files, MISSED, |_| true);
    run().expect(1);
    let words = fs::read_to_string(&drained).unwrap();
    assert!(words.starts_with("update NodeName=") && words.contains("State=DRAIN"), "{words}");
}

/// NHC has a search path of its own, and ends after the time that the guide gives it.
#[test]
fn nhc_runs_the_check_of_the_guide() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let nhc = match upstream::sources("OMBX_TEST_NHC", directory, "https://github.com/mej/nhc", "1.4.3") {
        Ok(nhc) => nhc,
        Err(why) => return skipped(&why),
    };
    let files = Files::default();
    let line = format!("* || check_cmd_status {}", between("`* || check_cmd_status ", "`"));
    let line = line.replace(SCRIPT, &files.path("check.sh").display().to_string());
    files.write("nhc.conf", line + "\n");
    let run = |limit: &str| -> Done {
        let file = |name: &str, at: &Path| format!("{name}={}", at.display());
        Job::new("bash")
            .arg(nhc.join("nhc"))
            .args(["-D".as_ref(), files.root(), "-c".as_ref(), &files.path("nhc.conf"), "-l".as_ref()])
            .arg(files.path("nhc.log"))
            .args(["-t", limit, "MARK_OFFLINE=0"])
            .arg(file("INCDIR", &nhc.join("scripts")))
            .arg(file("HELPERDIR", &nhc.join("helpers")))
            .run()
    };
    let limit = between("`TIMEOUT=", "`");
    script(&files, MET, |line| !line.contains(DRAIN));
    run(limit).expect(0);
    // The usual limit of NHC is too short for the line.
    let done = run("30").expect(1);
    assert!(done.stdout.contains("exceeds NHC timeout 30"), "{done}");
    script(&files, MISSED, |line| !line.contains(DRAIN));
    let done = run(limit).expect(1);
    assert!(done.stdout.contains("check.sh"), "{done}");
}
