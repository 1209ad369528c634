//! Tests of the pipeline: the number of its processes, its data, and its end when a process is killed.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
};

use ombx_record::result::{Check, Figure};
use ombx_tests::{Done, Files, Job, Running, process::Process, results};
use rustix::process::Signal;

/// First words of the names of pipeline processes.
const ROLES: [&str; 4] = ["node ", "phase ", "sender ", "receiver "];

/// Arguments of a pipeline that runs until it is ended.
const ENDLESS: &str = "run sockets.pipeline --iterations 1000000 --buffer-count 16 --block 16K";

fn role(process: &Process) -> Option<&'static str> {
    let shown = process.to_string();
    let (_, name) = shown.split_once(" pipeline-process ")?;
    ROLES.into_iter().find(|role| name.starts_with(role))
}

fn roles(job: &Running) -> BTreeMap<&'static str, usize> {
    let mut count = BTreeMap::new();
    job.processes().iter().filter_map(role).for_each(|role| *count.entry(role).or_default() += 1);
    count
}

#[test]
fn the_number_of_processes_follows_the_formula() {
    let mut job = Job::ombx(ENDLESS).args(["--nodes", "3", "--phases", "3"]).start();
    // N (1 + F + 2 N (F - 1)) = 48: 3 nodes, and 45 that they start.
    let all = BTreeMap::from([("node ", 3), ("phase ", 9), ("sender ", 18), ("receiver ", 18)]);
    job.until("all processes are there", |job| roles(job) == all);
    job.signal(Signal::TERM);
    let done = job.wait().expect(143);
    done.complains(&["interrupted"]);
    done.leaves_nothing();
}

#[test]
fn every_byte_is_verified_and_every_node_has_times() {
    let files = Files::default();
    let done = Job::ombx(
        "run sockets.pipeline --nodes 3 --phases 3 --buffer-count 16 --block 64K --iterations 6 -o",
    )
    .arg(files.path("out"))
    .run()
    .expect(0);
    done.leaves_nothing();
    let run = results::run_of(&files.path("out"));
    let row = &run.rows[0];
    assert_eq!((&row.check, row.samples[0].elapsed_ns.len()), (&Check::Passed, 6));
    assert_eq!(row.work.unwrap().bytes, 3 * 3 * 16 * (64 << 10));
    let names = [
        "started_processes",
        "buffer_p50_us",
        "filling_percent",
        "reading_percent",
        "node0_mb_per_s",
        "node2_phase3_waited_for_data_ms",
    ];
    for name in names {
        assert!(matches!(row.figures[name], Figure::Value(x) if x > 0.0), "{name}: {:?}", row.figures[name]);
    }
    assert_eq!(row.figures["started_processes"], Figure::Value(48.0));
    for part in ["phase 3", "node 2", "48 processes", "45 started by them", "MB/s in all"] {
        assert!(done.stdout.contains(part), "{part} is not drawn\n{done}");
    }
}

#[test]
fn senders_and_receivers_are_bound_in_turn() {
    let mut job = Job::ombx(ENDLESS).args(["--nodes", "1", "--phases", "3", "--worker-cpus", "all"]).start();
    job.until("all processes are there", |job| roles(job).values().sum::<usize>() == 8);
    let allowed = |process: &Process| {
        let status = fs::read_to_string(format!("/proc/{}/status", process.pid.as_raw_nonzero()));
        let status = status.expect("the process is there");
        let cpus = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        cpus.expect("a list of CPUs").trim().to_owned()
    };
    let all = allowed(job.processes().iter().find(|process| role(process) == Some("node ")).expect("a node"));
    // In order: the sender of phase 1, receiver and sender of phase 2, the receiver of phase 3.
    let workers =
        ["sender to node 0 in phase 1", "receiver from node 0 in phase 2", "sender to node 0 in phase 2"];
    job.until("workers are bound", |job| {
        let cpus = workers.map(|name| {
            job.processes().iter().find(|process| process.to_string().contains(name)).map(allowed)
        });
        let [Some(first), Some(second), Some(third)] = cpus else { return false };
        let single = |cpu: &String| cpu.parse::<u32>().is_ok();
        let in_turn = if all.parse::<u32>().is_ok() { first == second } else { first != second };
        [&first, &second, &third].into_iter().all(single) && in_turn && (all != "0-1" || first == third)
    });
    job.signal(Signal::TERM);
    job.wait().expect(143).leaves_nothing();
}

/// Returns the process of a running job whose name contains `who`. A process has its name a moment after its start.
fn process_of(job: &mut Running, who: &str) -> Process {
    let find = |job: &Running| job.processes().into_iter().find(|process| process.to_string().contains(who));
    job.until(&format!("a process is called {who}"), |job| find(job).is_some());
    find(job).unwrap_or_else(|| panic!("no process is called {who}"))
}

#[test]
fn a_node_reports_while_its_run_lasts() {
    let mut job = Job::ombx(ENDLESS).args(["--nodes", "2", "--phases", "2", "--status", "20ms"]).start();
    let start = |node: u32| format!("ombx: node {node}: run ");
    job.until("both nodes have run", |job| [0, 1].iter().all(|node| job.stderr().contains(&start(*node))));
    // The second node now receives no more blocks of the first. It sends at least what its two buffers hold, and receives one.
    process_of(&mut job, "receiver from node 0 in phase 2 of node 1").signal(Signal::STOP);
    let before = job.stderr().len();
    let is_part = |line: &str| {
        let Some((_, counts)) = line.strip_prefix(&start(1)).and_then(|line| line.split_once(", ")) else {
            return false;
        };
        let numbers: Vec<u32> = counts.split(' ').filter_map(|word| word.parse().ok()).collect();
        matches!(numbers[..], [sent, 16, received, ..] if received < 16 && received < sent)
    };
    job.until("it reports an unfinished run", |job| {
        let text = job.stderr();
        text.get(before..).is_some_and(|text| text.lines().filter(|line| is_part(line)).count() > 2)
    });
    job.signal(Signal::TERM);
    job.wait().expect(143).leaves_nothing();
}

#[test]
fn nodes_have_rows_and_a_quiet_run_prints_no_reports() {
    let files = Files::default();
    let line = "run sockets.pipeline --nodes 2 --phases 2 --buffer-count 20 --block 64K --iterations 2 \
                --warmup 0 --status 1ms -o";
    Job::ombx(line).arg(files.path("out")).run().expect(0);
    let rows = results::run_of(&files.path("out")).rows;
    let nodes: Vec<&str> = rows.iter().filter_map(|row| row.axes.get("node").map(String::as_str)).collect();
    assert_eq!((rows.len(), nodes), (3, vec!["0", "1"]));
    assert!(rows[1..].iter().all(|row| row.samples[0].elapsed_ns.len() == 2 * 20));
    let quiet = Job::ombx(
        "run sockets.pipeline --nodes 1 --phases 2 --buffer-count 9 --status 1ms --iterations 1 -q",
    );
    assert_eq!(quiet.run().expect(0).stderr, "");
}

/// Writes a stand-in for rsh: `rsh [-l USER] HOST COMMAND`. It has no other option and hands the command to a shell, as the
/// server of rsh does. It notes user and host in a file.
fn rsh(files: &Files) -> String {
    let noted = files.path("noted").display().to_string();
    let script = format!(
        "#!/bin/sh\nuser=nobody\n[ \"$1\" = -l ] && {{ user=$2; shift 2; }}\n\
         case \"$1\" in -*) echo \"rsh: $1: no such option\" >&2; exit 1;; esac\n\
         echo \"$user $1\" >>{noted}\nshift\nexec sh -c \"$*\"\n"
    );
    let path = files.write("rsh", script);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a program");
    path.display().to_string()
}

/// The hosts are addresses of this machine, in a form that ombx takes for other hosts.
#[test]
fn local_files_pass_through_48_processes_that_rsh_starts() {
    const HOSTS: [&str; 3] = ["127.1", "127.2", "127.3"];
    let files = Files::default();
    let shell = format!("--remote-shell={} -l me", rsh(&files));
    let end = |name: &str| format!("--{name}=file:{}", files.path(&format!("{name}-{{node}}")).display());
    let size = 3 * 5 * 4096;
    let sent = noise(3 * size);
    // The node of the last host makes its file.
    (0..2).for_each(|node| drop(files.write(&format!("source-{node}"), &sent[node * size..][..size])));
    let done =
        Job::ombx("run sockets.pipeline --nodes 3 --phases 3 --buffer-count 5 --block 4K --iterations 2 -o")
            .arg(files.path("out"))
            .args([shell, end("source"), end("sink"), format!("--hosts={}", HOSTS.join(","))])
            .run()
            .expect(0);
    done.leaves_nothing();
    let row = &results::run_of(&files.path("out")).rows[0];
    assert_eq!((&row.check, row.samples[0].elapsed_ns.len()), (&Check::Passed, 2));
    assert_eq!(row.figures["started_processes"], Figure::Value(48.0));
    assert!(matches!(row.figures["buffer_p50_us"], Figure::Value(us) if us > 0.0), "{:?}", row.figures);
    for node in 0..3 {
        let [source, sink] =
            ["source", "sink"].map(|name| fs::read(files.path(&format!("{name}-{node}"))).expect("a file"));
        assert!(source.len() == size && source == sink, "node {node}");
        assert!(node == 2 || source == sent[node * size..][..size], "node {node}");
    }
    let noted = fs::read_to_string(files.path("noted")).expect("notes");
    // The shells run at the same time.
    let noted: BTreeSet<&str> = noted.lines().collect();
    assert_eq!(noted.into_iter().collect::<Vec<_>>(), HOSTS.map(|host| format!("me {host}")));
}

#[test]
fn a_remote_shell_that_fails_is_named() {
    let failing = "run sockets.pipeline --nodes 2 --phases 2 --hosts 127.1,localhost --remote-shell";
    let done = Job::ombx(failing).arg("false").run().expect(6);
    assert!(done.sentence().starts_with("cannot reach 127.1: "), "{done}");
    let files = Files::default();
    let late = files.write("rsh", "#!/bin/sh\ncase \"$*\" in *kernel/hostname*) exit 0;; esac\nexit 1\n");
    fs::set_permissions(&late, fs::Permissions::from_mode(0o755)).expect("a program");
    let done = Job::ombx(failing).arg(late).run().expect(6);
    done.leaves_nothing();
    done.complains(&["node 0 on 127.1 (process ", "ended with exit code 1"]);
}

#[test]
fn workers_may_be_threads_and_may_spin() {
    let files = Files::default();
    Job::ombx(
        "run sockets.pipeline --workers threads --spin=all --nodes 2 --phases 3 --buffer-count 9 \
               --block 1000 --iterations 2 -o",
    )
    .arg(files.path("out"))
    .run()
    .expect(0)
    .leaves_nothing();
    let run = results::run_of(&files.path("out"));
    assert_eq!(run.rows.len(), 2);
    for row in &run.rows {
        assert_eq!((row.axes["workers"].as_str(), &row.check), ("threads", &Check::Passed));
        assert_eq!(row.figures["started_processes"], Figure::Value(2.0));
    }
}

/// Kills a process of a pipeline and waits for the end of the job.
fn killed(who: &str) -> Done {
    let mut job = Job::ombx(ENDLESS).args(["--nodes", "2", "--phases", "3"]).start();
    // 2 nodes, 6 phases, 8 senders and 8 receivers.
    job.until("all processes are there", |job| roles(job).values().sum::<usize>() == 24);
    process_of(&mut job, who).signal(Signal::KILL);
    job.wait()
}

#[test]
fn a_process_that_is_killed_is_named() {
    for who in [
        "node 1",
        "phase 2 of node 0",
        "sender to node 1 in phase 2 of node 1",
        "receiver from node 0 in phase 3 of node 1",
    ] {
        let done = killed(&format!("pipeline-process {who}")).expect(6);
        done.leaves_nothing();
        let (before, after) = (format!("{who} (process "), "was killed (signal 9)");
        let mut lines = done.stderr.lines();
        assert!(lines.any(|line| line.contains(&before) && line.ends_with(after)), "{done}");
    }
}

#[test]
fn no_process_is_left_when_the_starting_process_is_killed() {
    let done = killed("ombx rank ").expect(6);
    done.leaves_nothing();
    done.sentence();
    let done = killed("run sockets.pipeline");
    done.leaves_nothing();
    assert_eq!(done.signal, Some(9), "{done}");
}

/// Returns the expected content of the sink's file by following every block: between two phases, block j of node a goes to
/// node j and becomes block a.
fn expected(nodes: usize, phases: usize, block: usize, source: &[u8]) -> Vec<u8> {
    let buffers = source.len() / (nodes * nodes * block);
    let place =
        |node: usize, buffer: usize, index: usize| ((node * buffers + buffer) * nodes + index) * block;
    let mut sink = vec![0; source.len()];
    for (from, buffer, index) in
        (0..nodes).flat_map(|n| (0..buffers).flat_map(move |i| (0..nodes).map(move |b| (n, i, b))))
    {
        let (mut node, mut position) = (from, index);
        for _ in 1..phases {
            (node, position) = (position, node);
        }
        let (to, from) = (place(node, buffer, position), place(from, buffer, index));
        sink[to..to + block].copy_from_slice(&source[from..from + block]);
    }
    sink
}

fn noise(length: usize) -> Vec<u8> {
    (0..length as u64).map(|i| (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 53) as u8).collect()
}

fn from_file_to_file(files: &Files, shape: &str, source: &Path) -> Done {
    let end = |name: &str, path: &Path| format!("--{name}=file:{}", path.display());
    let sink = files.path("sink");
    Job::ombx("run sockets.pipeline --iterations 2")
        .args(shape.split_whitespace())
        .args([end("source", source), end("sink", &sink)])
        .run()
}

#[test]
fn from_file_to_file_every_byte_has_the_right_place() {
    let files = Files::default();
    for (nodes, phases, buffers, block) in [(3, 2, 3, 77), (2, 3, 4, 1000)] {
        let bytes = noise(nodes * nodes * buffers * block);
        let source = files.write("source", &bytes);
        let shape = format!("--nodes {nodes} --phases {phases} --block {block}");
        from_file_to_file(&files, &shape, &source).expect(0).leaves_nothing();
        let found = fs::read(files.path("sink")).unwrap();
        assert!(found == expected(nodes, phases, block, &bytes), "{shape}");
    }
}

#[test]
fn failing_files_end_the_job_with_one_sentence() {
    let files = Files::default();
    let source = files.write("source", noise(4 * 1000 * 3 + 1));
    let small = "run sockets.pipeline --nodes 2 --phases 2 --buffer-count 4 --block 64K --iterations 2";
    let done = Job::ombx(small).args(["--sink", "file:/dev/full"]).run().expect(7);
    done.leaves_nothing();
    assert!(done.sentence().contains("/dev/full: No space left on device"), "{done}");
    let absent = files.path("absent/file").display().to_string();
    for end in ["source", "sink"] {
        let done = Job::ombx(small).arg(format!("--{end}=file:{absent}")).run().expect(7);
        assert!(done.sentence().contains(&format!("{end} file {absent}: No such file")), "{done}");
    }
    let done = from_file_to_file(&files, "--nodes 2 --phases 2 --block 1000", &source).expect(2);
    assert!(done.sentence().contains("pad it to 16000"), "{done}");
}

#[test]
fn wrong_options_are_found_before_any_start() {
    let files = Files::default();
    files.write("hosts", "n01\n");
    for (options, says) in [
        ("--nodes 0", "from 1 to 100"),
        ("--phases 1", "from 2 to 1000"),
        ("--buffer-count many", "buffers"),
        ("--block 0", "at least 1 byte"),
        ("--block 1Q", "1Q"),
        ("--source ftp:x", "neither memory nor file:PATH"),
        ("--buffers single", "sockets.pipeline has no option --buffers"),
        ("--threads 1:2", "sockets.pipeline has no option --threads"),
        ("--nodes 100 --phases 1000", "processes on this host"),
        ("--block 1T", "MiB free"),
        ("--worker-cpus 4,x", "neither any, all nor a list of CPUs"),
        ("--socket-buffer 1", "at least 4K"),
        ("--congestion a/b", "no name of a congestion control"),
        ("--status soon", "not a positive time"),
        ("--remote-shell no-such-rsh", "no-such-rsh: this host has no such program"),
        ("--ends busy", "busy"),
        ("--hostfile /dev/null", "names no host"),
        ("--hostfile hosts", "nodes by --hosts"),
    ] {
        let done = Job::ombx("run sockets.pipeline")
            .directory(&files.path(""))
            .args(options.split_whitespace())
            .run()
            .expect(2);
        assert!(done.sentence().contains(says), "{options}: {done}");
        done.leaves_nothing();
    }
}
