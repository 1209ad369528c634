//! The checks of `packaging/reframe`, run by ReFrame on its local scheduler.

use std::{
    env, fs,
    path::{Path, PathBuf},
    time::Duration,
};

use ombx_tests::{Files, Job, missing, mpi, skipped};
use serde_json::Value;

/// Time limit of an installation of ReFrame from the package index.
const INSTALLATION: Duration = Duration::from_secs(300);
/// Time limit of all checks, one after the other.
const CHECKS: Duration = Duration::from_secs(240);
/// Checks of a site: those that must pass, and one for each reason to fail.
const SITE: &str = r"
import reframe as rfm
import ombx_checks as ombx

QUICK = ['--quick', '--max-time=20ms']


@rfm.simple_test
class Kept(ombx.OmbxBandwidth):
    ombx_options = QUICK
    reference = {'*': {'bandwidth_8': (1e-6, 0, None, 'MB/s')}}


@rfm.simple_test
class KeptLatency(ombx.OmbxLatency):
    ombx_options = QUICK
    reference = {'*': {'latency_8': (1e9, None, 0, 'us')}}


@rfm.simple_test
class Collective(ombx.OmbxCollective):
    ombx_options = QUICK


@rfm.simple_test
class Osu(ombx.OmbxOsu):
    ombx_options = ['-i', '100', '-x', '10']


@rfm.simple_test
class Links(ombx.OmbxLinks):
    num_tasks = 2
    ombx_options = ['--fail-on=nothing']
    reference = {'*': {'slowest_latency_8': (1e9, None, 0, 'us'), 'fastest_bandwidth_8': (1e-6, 0, None, 'MB/s')}}


@rfm.simple_test
class NoVerdict(ombx.OmbxLinks):
    num_tasks = 2


@rfm.simple_test
class Demand(ombx.OmbxLinks):
    num_tasks = 2
    ombx_options = ['--fabric=tcp']
    demands = ['latency<1ns']


@rfm.simple_test
class Missed(ombx.OmbxBandwidth):
    ombx_options = QUICK
    reference = {'*': {'bandwidth_8': (1e12, -0.1, None, 'MB/s')}}


@rfm.simple_test
class Misspelt(ombx.OmbxLatency):
    ombx_options = QUICK
    reference = {'*': {'latency_9': (1e9, None, 0, 'us')}}


@rfm.simple_test
class Unverified(ombx.OmbxLatency):
    ombx_options = QUICK + ['--no-verify']


@rfm.simple_test
class Marked(ombx.OmbxLatency):
    ombx_options = QUICK


@rfm.simple_test
class Absent(ombx.OmbxLatency):
    ombx_binary = 'ombx-that-nobody-installed'
";
/// Checks that pass, and how many performance variables each has.
const PASS: [(&str, usize); 9] = [
    ("Kept", 3),
    ("KeptLatency", 3),
    ("Collective %operation=allreduce", 3),
    ("Collective %operation=alltoall", 3),
    ("Osu %program=osu_latency", 3),
    ("Osu %program=osu_bw", 3),
    ("Osu %program=osu_allreduce", 3),
    ("Osu %program=osu_alltoall", 3),
    ("Links", 6),
];
/// Checks that fail, and a part of the reason.
const FAIL: [(&str, &str); 7] = [
    ("NoVerdict", "ombx ended with code 10, no verdict is possible"),
    ("Demand", "ombx ended with code 9, something is slow, or misses a demand"),
    ("Missed", "failed to meet reference(s): bandwidth_8="),
    ("Misspelt", "no variable has the name of the reference latency_9; there are latency_8"),
    ("Unverified", "the data was not verified"),
    ("Marked", "is marked debug_build"),
    ("Absent", "ombx ended with code 127, ombx is not in PATH"),
];

/// Returns `reframe` of the search path, else of an environment that is installed once per target directory.
fn reframe() -> Result<PathBuf, String> {
    if missing(&["reframe"]).is_empty() {
        return Ok("reframe".into());
    }
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("reframe");
    let program = directory.join("bin/reframe");
    // The mark is the last file that is written: an installation that was interrupted has none.
    let installed = directory.join("installed");
    if installed.exists() {
        return Ok(program);
    }
    if !missing(&["python3"]).is_empty() {
        return Err("python3 is not installed".into());
    }
    let _ = fs::remove_dir_all(&directory);
    let environment = Job::of("python3").args(["-m", "venv"]).arg(&directory).limit(INSTALLATION).run();
    let pip = ["-q", "--no-input", "--retries=1", "--timeout=20", "install", "reframe-hpc>=4.8,<5"];
    let done = match environment.code {
        Some(0) => Job::of(directory.join("bin/pip")).args(pip).limit(INSTALLATION).run(),
        _ => environment,
    };
    if done.code != Some(0) {
        let line = done.stderr.lines().chain(done.stdout.lines()).find(|line| !line.trim().is_empty());
        return Err(format!("ReFrame cannot be installed: {}", line.unwrap_or("no reason was printed")));
    }
    fs::write(installed, "").unwrap();
    Ok(program)
}

#[test]
fn reframe_judges_by_references_exit_codes_and_data() {
    let reframe = match reframe() {
        Ok(program) => program,
        Err(why) => return skipped(&why),
    };
    let library = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("packaging/reframe");
    let files = Files::default();
    let directory = mpi::ombx().parent().unwrap().display().to_string();
    let path = directory + ":" + &env::var("PATH").unwrap();
    let job = |site: &Path| {
        Job::of(&reframe)
            .args(["--nocolor", "--checkpath"])
            .arg(site)
            .env("PYTHONPATH", &library)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("PATH", &path)
            .env("OMBX_MPIEXEC", mpi::mpiexec())
            .env("HOME", files.root())
            .env("TMPDIR", files.root())
            .directory(files.root())
            .limit(CHECKS)
    };
    let listed = job(&library.join("example_site.py")).arg("--list").run().expect(0);
    assert!(listed.stdout.contains("Found 3 check(s)"), "{listed}");
    let report = files.path("report.json");
    // By default ReFrame runs several jobs at a time.
    let done = job(&files.write("site_checks.py", SITE))
        .args(["--exec-policy=serial", "--run", "--keep-stage-files"])
        .args([
            "-S",
            "sizes=8",
            "-S",
            "Osu.sizes=8:8",
            "-S",
            "accept_invalid=yes",
            "-S",
            "Marked.accept_invalid=no",
        ])
        .args(["--prefix".as_ref(), files.root(), "--report-file".as_ref(), &report])
        .run()
        .expect(1);
    let report: Value = serde_json::from_str(&fs::read_to_string(report).unwrap()).unwrap();
    let cases = report["runs"][0]["testcases"].as_array().unwrap();
    assert_eq!(cases.len(), PASS.len() + FAIL.len(), "{done}");
    let case = |name: &str| {
        cases.iter().find(|case| case["name"] == name).unwrap_or_else(|| panic!("{name}: {done}"))
    };
    for (name, variables) in PASS {
        let case = case(name);
        assert_eq!(case["result"], "pass", "{name}: {done}");
        // On a busy machine a row may have no interval, and then two variables fewer.
        let count = case["perfvalues"].as_object().unwrap().len();
        assert!(count == variables || count == 1, "{case}");
    }
    for (name, why) in FAIL {
        let case = case(name);
        assert_eq!(case["result"], "fail", "{name}: {done}");
        let reason = case["fail_reason"].as_str().unwrap();
        assert!(reason.contains(why), "{name}: {reason}");
    }
    figures_are_those_of_the_result(&files, case("KeptLatency"));
}

/// Compares the performance variables of a check of latency with the row that ombx wrote.
#[track_caller]
fn figures_are_those_of_the_result(files: &Files, case: &Value) {
    let folder = files.path("output/generic/default/builtin/KeptLatency/result.jsonl");
    let done = Job::ombx("show --format csv").arg(folder).run().expect(0);
    let mut lines = done.stdout.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    // No field before these figures has a comma.
    let row: Vec<&str> = lines.next().unwrap().split(',').collect();
    for (variable, column) in
        [("latency_8", "median_ns"), ("latency_8_low", "ci95_low_ns"), ("latency_8_high", "ci95_high_ns")]
    {
        let at = names.iter().position(|name| *name == column).unwrap();
        let value = &case["perfvalues"][format!("generic:default:{variable}")];
        let Ok(expected) = row[at].parse::<f64>() else {
            assert!(value.is_null() && variable != "latency_8", "{value}");
            continue;
        };
        assert!((value[0].as_f64().unwrap() * 1000.0 - expected).abs() < 1e-6, "{value} and {expected} ns");
        assert_eq!(value[4], "us");
    }
}
