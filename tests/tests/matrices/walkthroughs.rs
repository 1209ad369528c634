//! Every command of the walkthroughs of docs/GUIDE.md but those of the administrator, which need hosts.

use ombx_tests::{Files, mpi, walkthrough};

fn walk(heading: &str, commands: usize) -> Files {
    let files = Files::default();
    let programs = walkthrough::programs(&files);
    let steps = walkthrough::steps(heading);
    assert_eq!(steps.len(), commands, "{heading}");
    for step in steps {
        let mut job = walkthrough::shell(&step.command, &programs, files.root());
        if step.command.starts_with("mpiexec ") {
            job = mpi::launch_environment().fold(job, |job, (name, value)| job.env(name, value));
        }
        let done = job.run();
        assert!(done.code.is_some_and(|code| step.codes.contains(&code)), "{step:?}\n{done}");
        step.check_shown(&done.stdout);
    }
    files
}

#[test]
fn a_developer_compares_two_settings() {
    let files = walk("A developer of an MPI library: is my change faster?", 5);
    let table = std::fs::read_to_string(files.path("change.md")).unwrap();
    assert!(table.contains("old") && table.contains("new") && table.contains("| 4K"), "{table}");
    assert!(files.path("change.html").metadata().unwrap().len() > 10_000);
    assert!(files.path("positions.png").metadata().unwrap().len() > 5000);
}

#[test]
fn a_researcher_publishes() {
    let files = walk("A researcher: may I publish this number?", 6);
    for figure in ["latency.pdf", "launches.pdf"] {
        let figure = std::fs::read(files.path(figure)).unwrap();
        assert!(figure.starts_with(b"%PDF-") && figure.len() > 5000);
    }
}

#[test]
fn a_user_of_osu_finds_the_same() {
    walk("A user of the OSU benchmarks", 4);
}
