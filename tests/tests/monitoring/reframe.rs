//! The checks of `packaging/reframe`, run by ReFrame on its local scheduler.

use std::{env, path::Path, time::Duration};

use ombx_tests::{
    Files, Job, mpi,
    reframe::{self, Report},
    skipped, upstream,
};
use serde_json::Value;

/// Time limit of the check of OMB in ReFrame's library.
const LIBRARY: Duration = Duration::from_secs(240);
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
        Job::new(&reframe)
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

/// Checks with the functions of ReFrame's own checks of OMB, which its package contains as an example.
const OWN: &str = r"
import importlib.util
import os
import sys

import reframe as rfm
import reframe.utility.sanity as sn

path = os.path.join(sys.prefix, 'share/doc/reframe-hpc/examples/tutorial/mpi/osu.py')
spec = importlib.util.spec_from_file_location('osu', path)
sys.modules['osu'] = osu = importlib.util.module_from_spec(spec)
spec.loader.exec_module(osu)


class Program(rfm.RunOnlyRegressionTest):
    valid_systems = ['*']
    valid_prog_environs = ['*']
    executable_opts = ['-x', '3', '-i', '10', '-m', '8:1048576']

    @sanity_function
    def has_rows(self):
        return sn.assert_found(r'^8', self.stdout)

    @performance_function('figure')
    def small(self):
        return osu.osu_base_test._extract_metric(self, 8)

    @performance_function('figure')
    def large(self):
        return osu.osu_base_test._extract_metric(self, 1048576)


@rfm.simple_test
class Latency(Program):
    executable = 'osu_latency'


@rfm.simple_test
class Bandwidth(Program):
    executable = 'osu_bw'


@rfm.simple_test
class Allreduce(Program):
    executable = 'osu_allreduce'
";

#[test]
fn checks_of_reframe_itself_read_the_osu_programs() {
    let reframe = match reframe::program(Path::new(env!("CARGO_TARGET_TMPDIR"))) {
        Ok(program) => program,
        Err(why) => return skipped(&why),
    };
    let files = Files::default();
    let links = files.path("bin");
    Job::ombx("osu --install-links").arg(&links).run().expect(0);
    let report = files.path("report.json");
    let done = Job::new(&reframe)
        .args(["--nocolor", "--exec-policy=serial", "--run", "--checkpath"])
        .arg(files.write("own_checks.py", OWN))
        .args(["--prefix".as_ref(), files.root(), "--report-file".as_ref(), &report])
        .env("PATH", format!("{}:{}", links.display(), env::var("PATH").unwrap()))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("OMBX_MPIEXEC", mpi::mpiexec())
        .env("HOME", files.root())
        .env("TMPDIR", files.root())
        .directory(files.root())
        .run();
    if done.stderr.contains("examples/tutorial/mpi/osu.py") {
        return skipped("this ReFrame is installed without its examples");
    }
    let done = done.expect(0);
    let report = Report::read(&report);
    assert_eq!(report.count(), 3, "{done}");
    for name in ["Latency", "Bandwidth", "Allreduce"] {
        let values = &report.case(name)["perfvalues"];
        for variable in ["small", "large"] {
            let value = &values[format!("generic:default:{variable}")];
            assert!(value[0].as_f64().is_some_and(|value| value > 0.0), "{name}: {values}");
        }
    }
}

/// Options of ReFrame for the check of OMB in its library: on this host, on two ranks, with few iterations.
const OF_LIBRARY: &str = "--nocolor --exec-policy=serial --run --name ^osu_run -S valid_systems=* -S \
                          valid_prog_environs=* -S num_tasks=2 -S num_iters=10 --checkpath";

/// The check has the words `D D` also where there is no device.
#[test]
fn the_check_of_the_library_of_reframe_passes() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let address = "https://github.com/reframe-hpc/reframe";
    let found = reframe::program(directory).and_then(|program| {
        Ok((program, upstream::sources("OMBX_TEST_REFRAME", directory, address, "v4.10.4")?))
    });
    let (reframe, sources) = match found {
        Ok(found) => found,
        Err(why) => return skipped(&why),
    };
    let files = Files::default();
    let links = files.path("bin");
    Job::ombx("osu --install-links").arg(&links).run().expect(0);
    let report = files.path("report.json");
    let done = Job::new(&reframe)
        .args(OF_LIBRARY.split_whitespace())
        .arg(sources.join("hpctestlib/microbenchmarks/mpi/osu.py"))
        .args(["--prefix".as_ref(), files.root(), "--report-file".as_ref(), &report])
        .env("PATH", format!("{}:{}", links.display(), env::var("PATH").unwrap()))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("OMBX_MPIEXEC", mpi::mpiexec())
        .env("HOME", files.root())
        .env("TMPDIR", files.root())
        .directory(files.root())
        .limit(LIBRARY)
        .run()
        .expect(0);
    assert_eq!(Report::read(&report).count(), 4, "{done}");
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
