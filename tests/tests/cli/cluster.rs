//! Tests of `ombx cluster` that need no hosts: the plan, and mistakes that are found before anything starts.

use std::path::PathBuf;

use ombx_tests::{Done, Files, Job, mpi};

const TWO: &str = "[[hosts]]\nname = \"a\"\n[[hosts]]\nname = \"b\"\n";

/// Runs `ombx cluster --dry-run` with an inventory.
fn plan(files: &Files, inventory: &str, options: &str) -> Done {
    let inventory: PathBuf = files.write("cluster.toml", inventory);
    let job = Job::ombx("cluster --dry-run --inventory").arg(inventory).arg("--runs").arg(files.path("runs"));
    job.args(options.split_whitespace()).run()
}

#[test]
fn the_plan_runs_this_ombx_on_all_hosts() {
    let files = Files::default();
    let shared = format!("shared = true\n{TWO}");
    let done = plan(&files, &shared, "--timeout 60s -- --sizes 8").expect(0);
    let ombx = mpi::ombx().canonicalize().expect("ombx");
    for part in
        ["# pairs-a-b (round 1)", "# together (round 2)", "--hosts a,b", "--sizes 8", ombx.to_str().unwrap()]
    {
        assert!(done.stdout.contains(part), "{part}: {done}");
    }
    let done = plan(&files, &shared, "--launcher slurm").expect(0);
    assert!(done.stdout.contains("#SBATCH --nodelist=a,b\n"), "{done}");
    assert!(!files.path("runs").exists());
}

#[test]
fn mistakes_give_one_line_with_advice() {
    let files = Files::default();
    for (inventory, options, part) in [
        ("", "", "has no hosts"),
        (TWO, "--hosts c", "not in the inventory"),
        (TWO, "--pairs a-c", "Use all, ring or a list"),
        (TWO, "--launcher script", "--template FILE"),
        ("bind = \"x\"\n[[hosts]]\nname = \"a\"\n", "", "Use one of auto, core, none"),
    ] {
        let done = plan(&files, inventory, options).expect(2);
        assert!(done.sentence().contains(part), "{part}: {done}");
    }
    assert!(!files.path("runs").exists());
}

#[test]
fn a_run_without_results_says_why_it_has_no_report() {
    let files = Files::default();
    // No job starts ranks.
    let job = Job::ombx("cluster --runs").arg(files.path("runs")).env("OMBX_MPIEXEC", "/bin/false");
    let done = job.run().expect(6);
    assert!(done.stdout.contains("report.html is missing: no job has written a result"), "{done}");
}
