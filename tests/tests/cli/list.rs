//! Tests of `ombx list`, which shows every linked benchmark without starting MPI.

use std::{collections::BTreeSet, path::Path};

use ombx_tests::{Files, Job, interpose, mpi};
use serde_json::Value;

fn listed(arguments: &str) -> Vec<Value> {
    let done = Job::ombx("list --format json").args(arguments.split_whitespace()).run().expect(0);
    serde_json::from_str(&done.stdout).unwrap()
}

/// Checks the whole list: the linker silently drops a benchmark crate that no code refers to.
#[test]
fn every_benchmark_is_there() {
    let list = Job::ombx("list").run().expect(0).stdout;
    // The benchmarks that are unavailable differ from MPI to MPI.
    insta::with_settings!({filters => vec![(r" \(unavailable: [^)]+\)", "")]}, {
        insta::assert_snapshot!(list);
    });
}

#[test]
fn long_tells_method_axes_and_place() {
    let done = Job::ombx("list --long sockets.connect collective.barrier").run().expect(0);
    insta::with_settings!({filters => vec![(r"\.rs:\d+", ".rs:[line]")]}, {
        insta::assert_snapshot!(done.stdout);
    });
}

#[test]
fn json_names_the_line_that_registers_each() {
    let all = listed("");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for entry in &all {
        let name = entry["name"].as_str().unwrap();
        let (file, line) = entry["source"].as_str().unwrap().rsplit_once(':').unwrap();
        let text = std::fs::read_to_string(root.join(file)).unwrap_or_else(|e| panic!("{name}: {file}: {e}"));
        let line: usize = line.parse().unwrap();
        let near = text.lines().skip(line.saturating_sub(3)).take(6).collect::<String>();
        // The tables of collective operations have names without family and mode.
        let operation = name.trim_start_matches("collective.");
        let operation = operation.trim_end_matches("_persistent").trim_end_matches("_mt");
        let mut names = [name, operation, operation.trim_start_matches('i')].into_iter();
        let registers = names.any(|name| near.contains(&format!("\"{name}\"")));
        assert!(registers, "{name} is not registered at {file}:{line}");
    }
    let names: BTreeSet<&str> = all.iter().filter_map(|e| e["name"].as_str()).collect();
    assert_eq!(names.len(), all.len(), "names are unique");
    assert!(names.contains("rma.put_bw"));
}

#[test]
fn patterns_select_benchmarks() {
    let names = |arguments: &str| -> Vec<String> {
        listed(arguments).iter().map(|e| e["name"].as_str().unwrap().to_owned()).collect()
    };
    let family = names("p2p.*");
    assert!(family.len() > 1 && family.iter().all(|name| name.starts_with("p2p.")), "{family:?}");
    assert_eq!(names("osu_put_bw rma.put_bw"), ["rma.put_bw"]);
    assert!(names("*_latency").contains(&"rma.get_latency".to_owned()));
    assert_eq!(names("p2p"), family);
    Job::ombx("list nonsense.*").run().expect(2).complains(&["nonsense.*"]);
}

#[test]
fn every_benchmark_names_its_calls_and_its_formula() {
    for entry in listed("") {
        assert_ne!(entry["formula"], "", "{entry}");
        assert!(!entry["calls"].as_array().unwrap().is_empty(), "{entry}");
        let name = entry["name"].as_str().unwrap();
        let mpi =
            entry["calls"].as_array().unwrap().iter().all(|call| call.as_str().unwrap().starts_with("MPI_"));
        assert_eq!(mpi, !name.starts_with("sockets."), "{entry}");
    }
}

#[test]
fn names_of_other_suites_lead_to_their_counterparts() {
    for (name, hint) in [
        ("p2p", "did you mean 'p2p.*'?"),
        ("PingPong", "PingPong of IMB is p2p.latency"),
        ("iperf3", "what iperf3 measures is sockets.bw"),
    ] {
        Job::ombx("run").arg(name).run().expect(2).complains(&[hint]);
    }
    let list = Job::ombx("list PingPong").run().expect(0).stdout;
    assert!(
        list.starts_with("PingPong of IMB is p2p.latency\n") && list.contains("blocking ping-pong"),
        "{list}"
    );
}

#[test]
fn a_closed_pipe_is_no_error() {
    let ombx = mpi::ombx().display();
    let script = format!("{{ '{ombx}' list --long; echo \"exit $?\" >&2; }} | head -n 1");
    let done = Job::new("sh").args(["-c", &script]).run().expect(0);
    assert_eq!(done.stderr, "exit 0\n", "{done}");
    assert_eq!(done.stdout.lines().count(), 1, "{done}");
}

#[test]
fn list_starts_no_mpi_and_needs_no_launcher() {
    let library = interpose::library(env!("CARGO_TARGET_TMPDIR"));
    let empty = Files::default();
    let environment = [
        ("PATH", empty.root().as_os_str()),
        ("LD_PRELOAD", library.as_os_str()),
        ("OMBX_INTERPOSE", "init".as_ref()),
    ];
    for arguments in ["list", "list --format json", "list --long rma.put_bw", "--version", "run --help"] {
        let job = Job::new(mpi::ombx()).only_env(&environment).args(arguments.split_whitespace());
        let done = job.run().expect(0);
        assert!(!done.stdout.is_empty(), "{done}");
    }
    // A command that starts MPI is caught, so the check above is effective.
    let run = Job::new(mpi::ombx()).only_env(&environment);
    let done = run.args(["run", "p2p.latency", "--launcher", "none", "--sizes", "8"]).run();
    assert!(done.stderr.contains("MPI was started"), "{done}");
}
