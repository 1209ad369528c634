//! Tests of result files: writing, full disks, every output format, and truncated files.

use std::{fs::File, path::PathBuf, process::Command};

use ombx_record::result::Ending;
use ombx_tests::{Done, Files, Job, missing, results};
use rustix::process::Signal;

use crate::StartRecorder;

const GOLDEN: &str = include_str!("../../../crates/record/tests/golden/one_launch.jsonl");

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
fn rows_sizes_and_columns_can_be_chosen() {
    let files = Files::default();
    let path = files.write("golden.jsonl", GOLDEN);
    let lines = |options: &str| -> Vec<String> {
        show(&path, options).expect(0).stdout.lines().map(str::to_owned).collect()
    };
    let csv = "--format csv --columns bench,bytes,median_ns";
    assert_eq!(
        lines(&format!("{csv} --rows p2p.latency")),
        ["bench,bytes,median_ns", "p2p.latency,8,357.6875"]
    );
    assert_eq!(lines(&format!("{csv} --bench rma.* --sizes 64K")).len(), 2);
    let table = lines("--rows rma.put_bw --columns bytes,95%,mb/s");
    assert!(table.contains(&" bytes  95% within this launch     MB/s".to_owned()), "{table:#?}");
    let markdown = lines("--rows p2p.latency --format markdown --columns p99,us");
    assert!(markdown.contains(&"| p99 iteration (µs) | µs |".to_owned()), "{markdown:#?}");
    for (options, why) in [
        ("--columns bytes,speed", "no column of these rows is called \"speed\"; there are bytes, us,"),
        ("--columns p99_ns --format csv", "no column of these rows is called \"p99_ns\"; there are run,"),
        ("--columns bytes --format osu", "--columns is for tables and CSV"),
        ("--rows p2p.latency --format jsonl", "prints all rows: leave out --rows and --sizes"),
        ("--rows collective.*", "no row of the files fits --rows and --sizes: there are p2p.latency,"),
        ("--sizes 3", "fits --rows and --sizes"),
    ] {
        let done = show(&path, options).expect(2);
        assert!(done.stderr.contains(why) && done.stdout.is_empty(), "{options}: {done}");
    }
}

#[test]
fn json_lines_have_the_end_of_every_launch() {
    let files = Files::default();
    let launch = |number: usize| {
        let ended =
            if number == 3 { r#","ended":{"why":"budget","precision":0.02,"is_asked":true}"# } else { "" };
        let end =
            format!(r#"{{"kind":"launched","core_to_core_ns":{number}5.5,"elapsed_s":{number}{ended}}}"#);
        format!("{}{end}\n", results::another_launch(number))
    };
    let path = files.write("three.jsonl", [1, 2, 3].map(launch).concat());
    let again = files.write("again.jsonl", show(&path, "--format jsonl").expect(0).stdout);
    let runs = results::runs_of(&again);
    let ended = |at: usize| runs[at].run.launched.and_then(|launched| launched.ended).map(|ended| ended.why);
    assert_eq!((runs.len(), ended(1), ended(2)), (3, None, Some(Ending::Budget)));
    assert_eq!(runs, results::runs_of(&path));
    assert_eq!(show(&again, "").expect(0).stdout, show(&path, "").expect(0).stdout);
}

#[test]
fn files_of_several_setups_are_shown_in_order() {
    let files = Files::default();
    let other = results::another_launch(2).replace("MPICH Version: 4.0.2", "MPICH Version: 4.1");
    let (one, two) = (files.write("one", GOLDEN), files.write("two", other));
    let both = Job::ombx("show --format csv").args([&one, &two]).run().expect(0);
    let rows = |done: &Done| done.stdout.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
    let each = [&one, &two].map(|path| rows(&show(path, "--format csv")));
    assert_eq!(rows(&both), each.concat(), "{both}");
    // Files of the same setup are launches of one result.
    let next = files.write("next", results::another_launch(3));
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
fn an_empty_file_is_an_error() {
    let files = Files::default();
    let nothing = files.write("nothing.jsonl", "");
    let compare = || Job::ombx("compare").args([&nothing, &nothing]).run();
    for done in [show(&nothing, ""), compare()] {
        let done = done.expect(7);
        assert!(done.sentence().contains("has no results") && done.stdout.is_empty(), "{done}");
    }
}

#[test]
fn compressed_files_and_standard_input_are_read() {
    let files = Files::default();
    let path = files.write("golden.jsonl", GOLDEN);
    let expected = show(&path, "--format csv").expect(0).stdout;
    let ombx = ombx_tests::mpi::ombx().display();
    let path = path.display();
    let mut scripts = vec![
        format!("gzip -k '{path}' && '{ombx}' show '{path}.gz' --format csv"),
        format!("'{ombx}' show - --format csv <'{path}'"),
    ];
    if missing(&["zstd"]).is_empty() {
        scripts.push(format!("zstd -qk '{path}' && '{ombx}' show - --format csv <'{path}.zst'"));
    }
    for script in scripts {
        let done = Job::new("sh").args(["-c", &script]).run().expect(0);
        assert_eq!(done.stdout, expected, "{script}");
    }
}

#[test]
fn a_dash_is_standard_input() {
    let files = Files::default();
    files.write("golden.jsonl", GOLDEN);
    files.write("limits.toml", "[[entry]]\nrun = \"p2p.latency\"\nlatency = \"fast\"\n");
    files.write("groups", "rack r1\n");
    files.write("hosts", "localhost\n");
    files.write("pairs", "0,1\n1,0\n");
    files.write(
        "unlearnt.toml",
        "baseline = \"good\"\n[[entry]]\nrun = \"sockets.latency\"\nwithin = \"20%\"\n",
    );
    for (line, input, code, says) in [
        ("report - -o -", "golden.jsonl", 0, "<!DOCTYPE html>"),
        ("model -", "limits.toml", 7, "line 1 is not a record"),
        ("check -", "limits.toml", 2, "standard input:3"),
        ("links --groups -", "groups", 2, "--groups: standard input: "),
        ("run p2p.latency --hostfile -", "limits.toml", 2, "standard input, line 1"),
        ("check -", "unlearnt.toml", 2, "ombx check --learn -"),
        ("run suite:-", "limits.toml", 2, "there is no suite"),
        // The coordinator of the ranks, and each side, reads the same hosts.
        ("run sockets.latency --sizes 8 --quick --hostfile -", "hosts", 0, "sockets.latency"),
        (
            "ab sockets.latency --sizes 8 --iterations 10 --launches 1 --quiet --env-b X=1 --hostfile -",
            "hosts",
            0,
            "sockets.latency",
        ),
        // A text that each rank reads.
        ("imb IMB-MPI1 -input -", "hosts", 2, "standard input: each rank"),
        ("imb IMB-MPI1 -msglen -", "hosts", 2, "standard input: each rank"),
        ("osu osu_bw -D indx:-", "pairs", 2, "standard input: each rank"),
        ("osu osu_neighbor_allgather -N graph:-", "pairs", 2, "standard input: each rank"),
        ("run collective.neighbor_allgather --topology edges --neighbours @-", "pairs", 2, "each rank"),
    ] {
        let script = format!("'{}' {line} <{input}", ombx_tests::mpi::ombx().display());
        let done = Job::new("sh").args(["-c", &script]).directory(files.root()).run().expect(code);
        assert!(done.stdout.contains(says) || done.stderr.contains(says), "{done}");
    }
    assert!(!files.path("-").exists());
}

#[test]
fn errors_of_json_are_json() {
    for (line, code) in
        [("compare absent.jsonl other.jsonl --format json", 7), ("list nothing.such --format=json", 2)]
    {
        let done = Job::ombx(line).run().expect(code);
        let error: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
        let message = error["error"]["message"].as_str().unwrap();
        assert_eq!(error["error"]["exit_code"], code, "{done}");
        assert!(done.sentence().contains(message), "{done}");
    }
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
    let runs: String = (0..200).map(results::another_launch).collect();
    let path = files.write("golden.jsonl", runs);
    for format in ["table", "osu", "csv", "jsonl"] {
        let ombx = ombx_tests::mpi::ombx().display();
        let script = format!(
            "{{ '{ombx}' show '{}' --format {format}; echo \"exit $?\" >&2; }} | head -n 1",
            path.display()
        );
        let done = Job::new("sh").args(["-c", &script]).run().expect(0);
        assert_eq!(done.stderr, "exit 0\n", "{done}");
    }
}

#[test]
fn an_unwritable_path_is_an_error_before_any_start() {
    let recorder = StartRecorder::new();
    let absent = recorder.files.path("absent/x.jsonl").display().to_string();
    for path in [absent.as_str(), "/proc/x.jsonl", "/"] {
        let done = recorder.run(&["run", "p2p.latency", "--sizes", "8", "-o", path]).expect(7);
        assert!(done.sentence().contains(path), "{done}");
    }
    for line in ["run p2p.latency --sizes 8 --openmetrics", "links -n 2 --junit"] {
        let words: Vec<&str> = line.split(' ').chain([absent.as_str()]).collect();
        assert!(recorder.run(&words).expect(7).sentence().contains(&absent), "{line}");
    }
    assert!(!recorder.started(), "no rank may start if a file cannot be written");
}

/// A derived file would take the place of the results that its command has just measured.
#[test]
fn options_of_one_command_write_different_files() {
    let recorder = StartRecorder::new();
    let files = &recorder.files;
    let root = files.root().display().to_string();
    let inputs = [
        ("limits.toml", "[[entry]]\nrun = 'sockets.latency'\nsizes = 8\nlatency = '<5us'\n"),
        ("hosts", "localhost\n"),
        ("groups", "rack r1: n1\n"),
        ("lengths", "8\n"),
        ("names", "PingPong\n"),
        ("golden.jsonl", GOLDEN),
    ];
    for (name, text) in inputs {
        files.write(name, text);
    }
    let suite = format!("[[entry]]\nrun = 'sockets.latency'\nhostfile = '{root}/hosts'\nlatency = '<5us'\n");
    files.write("hosts.toml", suite);
    std::os::unix::fs::symlink(".", files.path("link")).unwrap();
    let commands = [
        ("check @/limits.toml", vec!["-o", "--junit", "--openmetrics"]),
        ("links -n 2", vec!["-o", "--junit", "--openmetrics"]),
        ("run sockets.latency --sizes 8", vec!["-o", "--openmetrics"]),
        ("ab sockets.latency --env-b X=1", vec!["--junit", "--markdown", "--openmetrics"]),
        ("compare @/golden.jsonl @/golden.jsonl", vec!["--junit", "--markdown"]),
    ];
    let mut lines = Vec::new();
    for (command, options) in &commands {
        for (number, one) in options.iter().enumerate() {
            lines
                .extend(options[..number].iter().map(|other| format!("{command} {one} @/new {other} @/new")));
        }
    }
    let others = [
        "links -n 2 -o @/new --junit @/link/new",
        "ab sockets.latency --env-b X=1 -o @/new.jsonl --markdown @/new-a.jsonl",
        "ab sockets.latency --env-b X=1 -o @/new.jsonl --junit @/new-b.jsonl",
        "ab sockets.latency --env-b X=1 -o @/new.jsonl --openmetrics @/new-b.jsonl",
        "ab sockets.latency --env-b X=1 --hostfile @/hosts --markdown @/hosts",
        "check @/limits.toml --junit @/limits.toml",
        "links -n 2 --groups @/groups --junit @/groups",
        "links -n 2 --hostfile @/hosts --junit @/link/hosts",
        "run sockets.latency --sizes 8 --hostfile @/hosts --openmetrics @/hosts",
        "doctor --hostfile @/hosts --junit @/hosts",
        "check @/hosts.toml --junit @/hosts",
        "model -o @/hosts --force -- --hostfile @/hosts",
        "model -o @/hosts --force -- --hostfile=@/hosts",
        "run sockets.latency --sizes 8 --against @/golden.jsonl -o @/golden.jsonl --force",
        "imb IMB-MPI1 PingPong -msglen @/lengths -o @/lengths --force",
        "imb IMB-MPI1 -input @/names -o @/names --force",
        "run sockets.latency --connect n2 --token-file @/hosts -o @/hosts --force",
    ];
    lines.extend(others.map(str::to_owned));
    for line in &lines {
        let line = line.replace('@', &root);
        let done = recorder.run(&line.split(' ').collect::<Vec<_>>()).expect(2);
        assert!(done.sentence().contains("give another name after -"), "{line}: {done}");
    }
    // Words of `ombx run` with a mistake.
    recorder.run(&["model", "-o", &format!("{root}/hosts"), "--force", "--", "--sizess", "8"]).expect(2);
    for name in ["new", "new.jsonl", "new-a.jsonl", "new-b.jsonl", "started"] {
        assert!(!files.path(name).exists(), "{name}");
    }
    for (name, text) in inputs {
        assert_eq!(std::fs::read_to_string(files.path(name)).unwrap(), text, "{name}");
    }
}

/// A result file may not be another file of its command, by whatever path: it would be emptied before it is read.
#[test]
fn files_of_the_same_command_are_kept() {
    const SUITE: &str = "[[entry]]\nrun = \"p2p.latency\"\nsizes = 8\n";
    let recorder = StartRecorder::new();
    let files = &recorder.files;
    let path = |name: &str| files.path(name).display().to_string();
    files.write("s.toml", SUITE);
    files.write("hosts", "localhost\n");
    files.write("data", "x".repeat(4096));
    files.write("golden.jsonl", GOLDEN);
    std::fs::hard_link(files.path("data"), files.path("hard")).unwrap();
    std::os::unix::fs::symlink(files.path("s.toml"), files.path("soft")).unwrap();
    let pipeline = "run sockets.pipeline --nodes 1 --phases 2 --buffer-count 1 --block 4096";
    for (line, out, what) in [
        (format!("run {}", path("s.toml")), "s.toml", "the suite"),
        (format!("run {}", path("s.toml")), "soft", "the suite"),
        (format!("run p2p.latency --sizes 8 --hostfile {}", path("hosts")), "hosts", "the host file"),
        (format!("{pipeline} --source file:{}", path("data")), "hard", "the source"),
        (format!("{pipeline} --sink file:{}", path("data")), "data", "the sink"),
        (format!("{pipeline} --sink file:{}", path("new")), "new", "the sink"),
        (format!("report {}", path("golden.jsonl")), "golden.jsonl", "a result file"),
    ] {
        let out = path(out);
        let words: Vec<&str> = line.split(' ').chain(["-o", &out]).collect();
        let done = recorder.run(&words).expect(2);
        assert!(done.sentence().contains(what) && done.sentence().contains(&out), "{done}");
    }
    let (golden, copy) = (path("golden.jsonl"), path("copy.jsonl"));
    std::fs::hard_link(&golden, &copy).unwrap();
    let done = recorder.run(&["compare", &golden, &golden, "--junit", &copy]).expect(2);
    assert!(done.sentence().contains("give another name after --junit"), "{done}");
    files.write("other.jsonl", GOLDEN);
    for line in [
        format!("compare {golden} {golden} --markdown"),
        format!("show {golden} --matrix"),
        "links -n 2 --junit".into(),
    ] {
        let other = path("other.jsonl");
        let done = recorder.run(&line.split(' ').chain([&*other]).collect::<Vec<_>>()).expect(2);
        assert!(done.sentence().contains("is a result file"), "{done}");
    }
    assert!(!recorder.started() && !files.path("new").exists());
    let kept = |name: &str| std::fs::read_to_string(files.path(name)).unwrap();
    assert_eq!(
        (kept("s.toml"), kept("hosts"), kept("data").len()),
        (SUITE.into(), "localhost\n".into(), 4096)
    );
    assert_eq!(kept("golden.jsonl"), GOLDEN);
}

#[test]
fn a_fifo_without_a_reader_ends_the_run() {
    let files = Files::default();
    let fifo = files.path("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let done = Job::ombx("run p2p.latency --sizes 8 --timeout 1s -o").arg(&fifo).run().expect(7);
    assert!(done.sentence().contains("no program reads this FIFO"), "{done}");
}

/// The signal of the limit would kill ombx. Ranks over sockets write no files themselves.
#[test]
fn a_limit_of_file_sizes_ends_the_run() {
    let files = Files::default();
    let (out, ombx) = (files.path("r.jsonl"), ombx_tests::mpi::ombx().display());
    let run = "run sockets.latency --sizes 8,64,512 --iterations 4000 --batch 1 --quick";
    let script = format!("ulimit -f 16; exec '{ombx}' {run} -o '{}'", out.display());
    let done = Job::new("sh").args(["-c", &script]).run().expect(7);
    assert!(done.stderr.contains(out.to_str().unwrap()), "{done}");
    done.leaves_nothing();
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

/// Rows over sockets that take a second.
const ROWS: &str = "run sockets.latency --sizes 8,64,512 --max-time 300ms --precision 0.0001% --quick";

#[test]
fn a_result_file_that_another_program_changes_ends_the_run() {
    for (change, what) in [
        ("truncate -s 0", "was changed by another program"),
        ("echo x >>", "was changed by another program"),
        ("rm", "was removed"),
        ("mv r.jsonl kept; cp /dev/null", "was replaced"),
        ("mkdir kept; mv -t kept", "was moved"),
    ] {
        let files = Files::default();
        let out = files.path("r.jsonl");
        let mut job = Job::ombx(ROWS).arg("-o").arg(&out).start();
        job.until("a row is there", |_| results::rows_so_far(&out) > 0);
        let script = format!("{change} r.jsonl");
        let shell = std::process::Command::new("sh").args(["-c", &script]).current_dir(files.root()).status();
        assert!(shell.unwrap().success());
        let done = job.wait().expect(7);
        assert!(done.stderr.contains(what), "{change}: {done}");
        done.leaves_nothing();
    }
}

#[test]
fn results_that_nobody_reads_any_more_end_the_run() {
    let ombx = ombx_tests::mpi::ombx().display();
    for option in ["-o -", "--format jsonl"] {
        let script = format!("{{ '{ombx}' {ROWS} {option}; echo \"exit $?\" >&2; }} | head -n 1");
        let done = Job::new("sh").args(["-c", &script]).run().expect(0);
        done.complains(&["the reader of standard output has closed it", "exit 7"]);
    }
}

#[test]
fn a_closed_standard_output_does_not_end_the_run() {
    let files = Files::default();
    let (out, ombx) = (files.path("r.jsonl"), ombx_tests::mpi::ombx().display());
    let script = format!(
        "{{ '{ombx}' run p2p.latency --sizes 1..64 --max-time 20ms --quick -o '{}'; echo \"exit $?\" >&2; \
         }} | head -n 1",
        out.display()
    );
    let job = Job::new("sh").args(["-c", &script]).env("OMBX_MPIEXEC", ombx_tests::mpi::mpiexec());
    let done = job.run().expect(0);
    assert_eq!(done.stderr, "exit 0\n", "{done}");
    assert_eq!(results::run_of(&out).rows.len(), 7, "{done}");
}

#[test]
fn an_existing_file_is_kept_replaced_or_extended() {
    const RUN: &str = "p2p.latency --sizes 8 --iterations 100";
    let recorder = StartRecorder::new();
    let out = recorder.files.write("r.jsonl", GOLDEN);
    let run = |options: &str| Job::ombx(&format!("run {RUN} {options} -o")).arg(&out).run();
    let words = [RUN.split(' ').collect::<Vec<_>>(), vec!["-o", out.to_str().unwrap()]].concat();
    for command in ["run", "osu", "links"] {
        let words: &[&str] = match command {
            "run" => &words,
            "osu" => &["osu_latency", "-o", out.to_str().unwrap()],
            _ => &["-n", "2", "-o", out.to_str().unwrap()],
        };
        let done = recorder.run(&[&[command], words].concat()).expect(2);
        assert!(done.sentence().contains("--append") && done.sentence().contains("--force"), "{done}");
    }
    assert!(!recorder.started() && std::fs::read_to_string(&out).unwrap() == GOLDEN);
    run("--append").expect(0);
    let golden = results::runs_of(&recorder.files.write("golden", GOLDEN)).len();
    assert_eq!(results::runs_of(&out).len(), golden + 1);
    assert!(std::fs::read_to_string(&out).unwrap().starts_with(GOLDEN));
    run("--force").expect(0);
    assert_eq!(results::run_of(&out).rows.len(), 1);
    // Launches of one setup in one file are launches of one result.
    run("--append").expect(0);
    let shown = show(&out, "").expect(0);
    assert!(shown.stdout.contains("2 launches"), "{shown}");
    std::fs::write(&out, "notes\n").unwrap();
    let done = run("--append").expect(2);
    assert!(done.sentence().contains("does not begin as a result file"), "{done}");
}

#[test]
fn a_file_has_one_writer() {
    let files = Files::default();
    let out = files.path("r.jsonl");
    let long = "run sockets.latency --sizes 8 --iterations 100000000 -o";
    let mut first = Job::ombx(long).arg(&out).start();
    first.until("a file", |_| std::fs::metadata(&out).is_ok_and(|file| file.len() > 0));
    for option in [None, Some("--force"), Some("--append")] {
        // Jobs of tests run one after the other.
        let mut second = Command::new(ombx_tests::mpi::ombx());
        second.args(["run", "sockets.latency", "--sizes", "8", "--quick"]).args(option).arg("-o").arg(&out);
        let done = second.output().unwrap();
        let error = String::from_utf8_lossy(&done.stderr);
        assert!(error.contains("another process of ombx writes"), "{error}");
        assert_eq!(done.status.code(), Some(2), "{error}");
    }
    first.signal(Signal::TERM);
    first.wait();
}

#[test]
fn a_dash_is_standard_output() {
    let done = Job::ombx("run p2p.latency --sizes 8 --iterations 10 -o -").run().expect(0);
    let mut kinds: Vec<String> =
        results::lines(&done.stdout).iter().map(|line| line["kind"].as_str().unwrap().to_owned()).collect();
    // Another program may cause retransmits.
    kinds.retain(|kind| kind != "grown");
    assert_eq!(kinds, ["run", "case", "end", "launched"], "{done}");
    let files = Files::default();
    let page =
        Job::ombx("report -o -").arg(files.write("golden.jsonl", GOLDEN)).directory(files.root()).run();
    assert!(page.expect(0).stdout.starts_with("<!DOCTYPE html>") && !files.path("-").exists());
}
