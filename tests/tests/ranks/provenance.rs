//! Tests of the provenance that results keep: machines, build, library and its transports.

use std::fs;

use ombx_record::fact::Fact;
use ombx_tests::{Files, Job, mpi, results};

#[test]
fn a_run_of_several_launches_knows_machine_build_and_transports() {
    let files = Files::default();
    let out = files.path("a.jsonl");
    Job::ombx("run p2p.latency --sizes 8,64K --iterations 10 --launches 2 -o").arg(&out).run().expect(0);
    let read = ombx_record::file::open(&out).expect("a result file");
    assert_eq!(read.runs.len(), 2);
    for run in read.runs.iter().map(|run| &run.run) {
        let [host] = run.hosts.as_slice() else { panic!("{:?}", run.hosts) };
        assert_eq!(host.hosts, [run.places[0].host.clone()]);
        for name in ["cpu", "threads", "memory", "kernel"] {
            assert!(host.facts[name].known().is_some(), "{name}: {host:?}");
        }
        assert!(run.software["compiler"].known().is_some_and(|text| text.starts_with("rustc ")), "{run:?}");
        let library = if mpi::is_open_mpi() { "libmpi." } else { "libmpi" };
        assert!(
            run.software["library_files"].known().is_some_and(|files| files.contains(library)),
            "{run:?}"
        );
        let Fact::Known(transport) = &run.software["transport"] else { panic!("{:?}", run.software) };
        let said = ["UCX", "BTL", "libfabric", "components"].iter().any(|word| transport.contains(word));
        assert!(said, "{transport}");
    }
    let done = Job::ombx("show --provenance").arg(&out).run().expect(0);
    let sections =
        ["Run\n", "Software\n", "Hosts\n", "Ranks\n", "Options\n", "Environment\n", "Methods", "Citation\n"];
    let mut at = 0;
    for section in sections {
        at += done.stdout[at..].find(section).unwrap_or_else(|| panic!("no {section} in order: {done}"));
    }
    for part in [
        "the first of 2 launches",
        "All ranks were started 2 times",
        "messages of 2 sizes from 8 B to 64 KiB",
        "@software{ombx,",
    ] {
        assert!(done.stdout.contains(part), "{part}: {done}");
    }
    let page = files.path("page.html");
    Job::ombx("report -o").args([&page, &out]).run().expect(0);
    let html = fs::read_to_string(page).expect("a page");
    assert!(html.contains("All ranks were started 2 times") && html.contains("@software{ombx,"));
}

#[test]
fn transports_are_unknown_with_a_reason_where_ombx_does_not_ask() {
    let files = Files::default();
    let line = "run p2p.latency --sizes 8 --iterations 10 -o";
    let (one, explicit) = (files.path("one"), files.path("explicit"));
    Job::ombx(line).arg(&one).run().expect(0);
    Job::mpiexec(2, line).arg(&explicit).run().expect(0);
    for (path, reason) in [(one, "several launches"), (explicit, "starts itself")] {
        match &results::run_of(&path).run.software["transport"] {
            Fact::Unknown { reason: why } => assert!(why.contains(reason), "{why}"),
            Fact::Known(transport) => panic!("{transport}"),
        }
    }
}

#[test]
fn ranks_over_sockets_have_no_mpi_library() {
    let files = Files::default();
    let out = files.path("a.jsonl");
    Job::ombx("run sockets.latency --sizes 8 --iterations 10 -o").arg(&out).run().expect(0);
    let run = results::run_of(&out).run;
    assert!(
        run.software.keys().all(|name| ["commit", "compiler"].contains(&name.as_str())),
        "{:?}",
        run.software
    );
    assert!(run.hosts[0].facts["kernel"].known().is_some());
}
