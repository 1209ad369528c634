//! Tests of result files: writing, full disks, every output format, and truncated files.

use std::{fs::File, path::PathBuf};

use ombx_tests::{Done, Files, Job, results};

use crate::StartRecorder;

const GOLDEN: &str = include_str!("../../../crates/results/tests/golden/v1.jsonl");

fn show(path: &PathBuf, options: &str) -> Done {
    Job::ombx("show").arg(path).args(options.split_whitespace()).run()
}

#[test]
fn a_complete_file_is_shown_in_every_format() {
    let files = Files::default();
    let path = files.write("golden.jsonl", GOLDEN);
    for (format, part) in [
        ("table", "95% within this launch"),
        ("osu", "# Size"),
        ("csv", "run,bench,key"),
        ("jsonl", "\"kind\":\"end\""),
    ] {
        let done = show(&path, &format!("--format {format}")).expect(0);
        assert!(done.stdout.contains(part) && done.stderr.is_empty(), "{format}: {done}");
    }
    // JSON Lines that were written and read again give the same table.
    let again = show(&files.write("again.jsonl", show(&path, "--format jsonl").stdout), "").expect(0);
    assert_eq!(again.stdout, show(&path, "").stdout);
}

#[test]
fn files_of_several_setups_are_shown_in_order() {
    let files = Files::default();
    let another_run = |text: &str| text.replace("\"run\":\"", "\"run\":\"2");
    let other = another_run(&GOLDEN.replace("MPICH Version: 4.0.2", "MPICH Version: 4.1"));
    let (one, two) = (files.write("one", GOLDEN), files.write("two", other));
    let both = Job::ombx("show --format csv").args([&one, &two]).run().expect(0);
    let rows = |done: &Done| done.stdout.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
    let each = [&one, &two].map(|path| rows(&show(path, "--format csv")));
    assert_eq!(rows(&both), each.concat(), "{both}");
    // Files of the same setup are launches of one result.
    let next = files.write("next", another_run(GOLDEN));
    let twice = Job::ombx("show --format csv").args([&one, &next]).run().expect(0);
    assert_eq!(rows(&twice).len(), each[0].len(), "{twice}");
    assert!(twice.stdout.contains(",2,0.5,"), "{twice}");
}

#[test]
fn a_copy_of_a_launch_is_no_launch() {
    let files = Files::default();
    let (one, copy) = (files.write("one", GOLDEN), files.write("copy", GOLDEN));
    for command in ["show", "report -o page.html", "compare --new one --base"] {
        let done = Job::ombx(command).args([&one, &copy]).directory(&files.path("")).run();
        assert_eq!(done.code, Some(2), "{done}");
        done.complains(&["repeats run", "give each run once"]);
    }
}

#[test]
fn a_truncated_file_shows_its_complete_rows() {
    let files = Files::default();
    let whole = GOLDEN.trim_end();
    for cut in [whole.len() - 5, whole.len() / 2, GOLDEN.lines().next().unwrap().len() + 20] {
        let path = files.write("cut.jsonl", &whole[..cut]);
        let done = show(&path, "").expect(0);
        assert!(done.sentence().contains("was cut off"), "{done}");
        assert!(done.stdout.contains("ombx"), "{done}");
    }
}

#[test]
fn an_empty_file_has_no_rows() {
    let files = Files::default();
    let done = show(&files.write("nothing.jsonl", ""), "").expect(0);
    assert!(done.sentence().contains("was cut off") && done.stdout.trim().is_empty(), "{done}");
}

#[test]
fn other_files_are_rejected() {
    let files = Files::default();
    let future = GOLDEN.replace("\"major\":1", "\"major\":9");
    let (garbage, empty) = (files.write("garbage", "hello\nworld\n"), files.write("empty", "\n"));
    let binary = files.write("binary", [0u8, 159, 146, 150, 10, 0]);
    for (path, part) in [
        (garbage, "line 1"),
        (empty, "no run record"),
        (binary, "line 1"),
        (files.write("future", future), "version 9"),
        (files.path("missing"), "No such file"),
        (files.root().to_path_buf(), "directory"),
    ] {
        let done = show(&path, "").expect(7);
        let sentence = done.sentence();
        assert!(sentence.contains(part) && sentence.contains(path.to_str().unwrap()), "{part}: {done}");
        assert!(done.stdout.is_empty(), "{done}");
    }
}

#[test]
fn a_closed_pipe_is_no_error() {
    let files = Files::default();
    let runs = (0..200).map(|i| GOLDEN.replace("-4242", &format!("-{i}")));
    let path = files.write("golden.jsonl", runs.collect::<String>());
    for format in ["table", "osu", "csv", "jsonl"] {
        let ombx = ombx_tests::mpi::ombx().display();
        let script = format!(
            "{{ '{ombx}' show '{}' --format {format}; echo \"exit $?\" >&2; }} | head -n 1",
            path.display()
        );
        let done = Job::of("sh").args(["-c", &script]).run().expect(0);
        assert_eq!(done.stderr, "exit 0\n", "{done}");
    }
}

#[test]
fn an_unwritable_path_is_an_error_before_any_start() {
    let recorder = StartRecorder::new();
    for path in ["/nonexistent/x.jsonl", "/proc/x.jsonl", "/"] {
        let done = recorder.run(&["run", "p2p.latency", "--sizes", "8", "-o", path]).expect(7);
        assert!(done.sentence().contains(path), "{done}");
    }
    assert!(!recorder.started(), "no rank may start if the result file cannot be written");
}

#[test]
fn a_full_disk_ends_the_run() {
    let done = Job::ombx("run p2p.latency --sizes 1..4M -o /dev/full").run().expect(7);
    assert!(done.sentence().contains("/dev/full"), "{done}");
    done.leaves_nothing();
}

#[test]
fn a_full_standard_output_ends_the_run_and_the_file_is_complete() {
    let files = Files::default();
    let out = files.path("r.jsonl");
    let full = File::options().write(true).open("/dev/full").unwrap();
    let job = Job::ombx("run p2p.latency --sizes 8,16 --max-time 20ms -o").arg(&out).stdout(full);
    let done = job.run().expect(7);
    done.complains(&["ombx: standard output"]);
    assert_eq!(results::run_of(&out).run.fabric, "mpi");
    done.leaves_nothing();
}

#[test]
fn a_closed_standard_output_does_not_end_the_run() {
    let files = Files::default();
    let (out, ombx) = (files.path("r.jsonl"), ombx_tests::mpi::ombx().display());
    let script = format!(
        "{{ '{ombx}' run p2p.latency --sizes 1..64 --max-time 20ms --quick -o '{}'; echo \"exit $?\" >&2; }} | head -n 1",
        out.display()
    );
    let job = Job::of("sh").args(["-c", &script]).env("OMBX_MPIEXEC", ombx_tests::mpi::mpiexec());
    let done = job.run().expect(0);
    assert_eq!(done.stderr, "exit 0\n", "{done}");
    assert_eq!(results::run_of(&out).rows.len(), 7, "{done}");
}

#[test]
fn an_existing_file_is_replaced() {
    let files = Files::default();
    let out = files.write("r.jsonl", "something else\n".repeat(1000));
    Job::ombx("run p2p.latency --sizes 8 --iterations 100 -o").arg(&out).run().expect(0);
    assert_eq!(results::run_of(&out).rows.len(), 1);
}
