//! The checks of `packaging/reframe`, submitted by ReFrame to Slurm on two hosts of a test bed.

use std::{env, path::Path, time::Duration};

use ombx_tests::{
    mpi,
    reframe::{self, Report},
    results, skipped,
};

use crate::slurm::{on_slurm, slurm};

/// Time limit of all checks, one after the other.
const CHECKS: Duration = Duration::from_secs(240);
/// Configuration of ReFrame. Its scheduler `squeue` is Slurm without the accounting that `slurm` needs.
const SYSTEM: &str = r#"{
    "systems": [{
        "name": "bed", "hostnames": ["h1"], "modules_system": "nomod",
        "partitions": [{"name": "all", "scheduler": "squeue", "launcher": "srun", "environs": ["site"]}]
    }],
    "environments": [{"name": "site", "target_systems": ["bed"]}]
}"#;
/// Options of ReFrame. One check at a time: the hosts share cores.
const OPTIONS: &str = "--nocolor --system=bed --config-file=system.json --checkpath=site_checks.py \
                       --exec-policy=serial -S sizes=8 -S Osu.sizes=8:8 -S accept_invalid=yes \
                       --report-file=report.json --run";
/// Checks of a site: those that must pass, and two that must fail.
const SITE: &str = r"
import reframe as rfm
import ombx_checks as ombx

QUICK = ['--quick', '--max-time=20ms']


@rfm.simple_test
class Kept(ombx.OmbxLatency):
    ombx_options = QUICK
    reference = {'bed:all': {'latency_8': (1e9, None, 0, 'us')}}


@rfm.simple_test
class Missed(ombx.OmbxBandwidth):
    ombx_options = QUICK
    reference = {'bed:all': {'bandwidth_8': (1e12, -0.1, None, 'MB/s')}}


@rfm.simple_test
class Osu(ombx.OmbxOsu):
    num_tasks_per_node = 1
    program = parameter(['osu_allreduce'])
    ombx_options = ['-i', '100', '-x', '10']


@rfm.simple_test
class Links(ombx.OmbxLinks):
    num_tasks = 2
    ombx_options = ['--fail-on=nothing']


@rfm.simple_test
class NoVerdict(ombx.OmbxLinks):
    num_tasks = 2
";

/// Number of these checks.
const COUNT: usize = 5;

#[test]
fn reframe_submits_checks_to_slurm() {
    let Some(bed) = slurm() else { return };
    let reframe = match reframe::program(Path::new(env!("CARGO_TARGET_TMPDIR"))) {
        Ok(program) => program.display().to_string(),
        Err(why) => return skipped(&why),
    };
    let files = &bed.files;
    files.write("system.json", SYSTEM);
    files.write("site_checks.py", SITE);
    let binaries = mpi::ombx().parent().expect("a directory").display().to_string();
    let command = [
        format!("PATH={binaries}:{}", env::var("PATH").unwrap_or_default()),
        format!("PYTHONPATH={}", reframe::checks().display()),
        "PYTHONDONTWRITEBYTECODE=1".to_owned(),
        format!("HOME={}", files.root().display()),
        reframe,
    ];
    let words: Vec<&str> = command.iter().map(String::as_str).chain(OPTIONS.split_whitespace()).collect();
    let done = on_slurm(&bed, &words).directory(files.root()).limit(CHECKS).run().expect(1);
    let report = Report::read(&files.path("report.json"));
    assert_eq!(report.count(), COUNT, "{done}");
    report.passes("Kept", 3);
    report.passes("Osu %program=osu_allreduce", 3);
    report.passes("Links", 6);
    report.fails("Missed", "failed to meet reference(s): bandwidth_8=");
    report.fails("NoVerdict", "ombx ended with code 10, no verdict is possible");
    for check in ["Kept", "Links"] {
        assert_eq!(report.case(check)["scheduler"], "squeue", "{}", report.case(check));
        let run = results::run_of(&files.path(&format!("output/bed/all/site/{check}/result.jsonl"))).run;
        let hosts: Vec<&str> = run.places.iter().map(|place| place.host.as_str()).collect();
        assert_eq!(hosts, ["h1", "h2"], "{check}");
        assert!(run.env.contains_key("SLURM_JOB_ID"), "{check}: {:?}", run.env);
    }
}
