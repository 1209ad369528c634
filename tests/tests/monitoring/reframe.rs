//! The checks of `packaging/reframe`, run by ReFrame on its local scheduler.

use std::{env, path::Path};

use ombx_tests::{
    Files, Job, mpi,
    reframe::{self, Report},
    skipped,
};
use serde_json::Value;

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

#[test]
fn reframe_judges_by_references_exit_codes_and_data() {
    let reframe = match reframe::program(Path::new(env!("CARGO_TARGET_TMPDIR"))) {
        Ok(program) => program,
        Err(why) => return skipped(&why),
    };
    let library = reframe::checks();
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
    let report = Report::read(&report);
    assert_eq!(report.count(), PASS.len() + FAIL.len(), "{done}");
    for (name, variables) in PASS {
        report.passes(name, variables);
    }
    for (name, why) in FAIL {
        report.fails(name, why);
    }
    figures_are_those_of_the_result(&files, report.case("KeptLatency"));
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
