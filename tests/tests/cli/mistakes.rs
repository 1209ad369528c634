//! Tests of wrong command lines that start ombx: exit code 2, one error line, no output, nothing started. Unit tests of the command
//! line (`commands::mistakes`) judge thousands of lines.

use ombx_tests::{Files, Job};

use crate::StartRecorder;

/// Command lines, each with words that its error must contain.
const LINES: &[(&str, &str)] = &[
    ("frobnicate", "frobnicate"),
    ("list suite:smok", "suite:smoke?"),
    ("run", "ombx list"),
    ("run rma.putbw", "did you mean rma.put_bw?"),
    ("run p2p.latency --sizes 8,,16", "--sizes"),
    ("run sockets.latency -n 1", "needs 2 ranks, has 1"),
    ("congestion p2p.latency --window 4", "p2p.latency has no option --window"),
    ("links -n 1", "two ranks"),
    ("cluster --frobnicate", "--frobnicate"),
    ("doctor -n 0", "--ranks"),
    ("check", "<FILE>"),
    ("osu osu_latency -m 8:4", "8:4"),
    ("osu osu_latency -m -8", "size \"-8\" is not a number of bytes"),
    ("osu osu_mbw_mr -R -1", "not a number from 0 to 1"),
    ("imb IMB-MPI1 PingPang", "-list"),
    ("imb IMB-MPI1 -msglog x PingPong", "for '-msglog <"),
    ("imb IMB-MPI1 -msglgo 3:4 PingPong", "'-msglgo' found; a similar argument exists: '-msglog'"),
    ("osu osu_latency -m x", "for '-m <"),
    ("imb IMB-MPI1 -npmin -1 PingPong", "not a number from 1 to"),
    ("imb IMB-MPI1 -iter -5 PingPong", "not a number of iterations"),
    ("imb IMB-MPI1 PingPong -multi 0", "and not for PingPong: leave out -multi"),
    ("imb IMB-MPI1 PingPong Bcast -multi 0", "leave out -multi, or add -exclude PingPong"),
    ("show", "<FILES>"),
    ("compare a", "two sides"),
    ("compare a b c", "--base FILES --new FILES"),
    ("compare a b --json", "use --format json"),
    ("list --export-json x", "use --format json"),
    ("run p2p.latency -m 8", "use --sizes"),
    ("run p2p.latency -np 2", "-n 4"),
    ("links n01 n02", "--hosts n01,n02"),
    ("links old.jsonl", "--reference old.jsonl"),
    ("links /etc/passwd", "--hostfile /etc/passwd"),
    ("links p2p.bw", "ombx run p2p.bw"),
    ("doctor p2p.latency", "ombx run p2p.latency"),
    ("doctor old.jsonl", "ombx show old.jsonl"),
    ("osu osu_lat", "did you mean osu_latency?"),
    ("ab p2p.latency", "nothing differs"),
    ("history . --fail-on-last 0", "--fail-on-last"),
    ("model -o -", "-o rows.jsonl"),
    ("run p2p.bw --alignment 5..1", "such as 0..63"),
    ("run p2p.bw --alignment 0..3 --launches 3", "leave out --launches"),
    ("run sockets.bw --alignment 0", "has no option --alignment"),
    ("ab --env-b X=1 p2p.bw --alignment 0", "leave it out"),
    ("plot", "<FILES>"),
    ("report", "--output"),
    ("sockets --frobnicate", "--frobnicate"),
    ("completions cmd", "cmd"),
    ("help rum", "'run'"),
];

#[test]
fn a_mistake_gives_one_error_line_and_starts_nothing() {
    let recorder = StartRecorder::new();
    for (line, part) in LINES {
        let done = recorder.refuses(&line.split_whitespace().collect::<Vec<_>>());
        assert!(done.sentence().contains(part), "{part}: {done}");
    }
}

#[test]
fn run_without_a_pattern_prints_advice() {
    let done = StartRecorder::new().refuses(&["run"]);
    for word in ["give a benchmark", "p2p.latency", "osu_put_bw", "suite:smoke", "ombx list"] {
        assert!(done.sentence().contains(word), "{word}\n{done}");
    }
    assert!(done.sentence().len() < 200, "{done}");
}

/// Two rounds of a comparison, each with ranks of its own, would wait for each other.
#[test]
fn a_comparison_refuses_a_launcher() {
    let done = Job::mpiexec(2, "ab --env-b X=1 p2p.latency --sizes 8").run();
    let lines = done.stderr.lines().filter(|line| line.contains("ombx ab starts its own ranks")).count();
    assert_eq!((done.code, lines), (Some(2), 1), "{done}");
    done.leaves_nothing();
}

#[test]
fn under_a_launcher_only_rank_0_prints_the_error() {
    let done = Job::mpiexec(2, "run rma.putbw").run();
    let lines = done.stderr.lines().filter(|line| line.contains("did you mean rma.put_bw?")).count();
    assert_eq!((done.code, lines), (Some(2), 1), "{done}");
}

/// Options of a start have no effect on ranks that a launcher has started.
#[test]
fn options_of_a_start_are_refused_under_a_launcher() {
    for (options, word) in [
        ("run p2p.latency -n 2", "leave out -n"),
        ("run p2p.latency --bind core", "leave out --bind"),
        ("run p2p.latency --budget 9s", "leave out --budget"),
        ("run p2p.latency --seed 9", "leave out --seed"),
        ("run p2p.latency --iterations 9 --precision 9%", "which --iterations fixes"),
        ("run p2p.latency --rendezvous x", "--rendezvous is for benchmarks over sockets"),
        ("links --launcher-arg=-v", "leave out --launcher-arg"),
        ("osu osu_latency -n 2", "leave out -n"),
    ] {
        let done = Job::mpiexec(2, options).run();
        let lines = done.stderr.lines().filter(|line| line.contains(word)).count();
        assert_eq!((done.code, lines), (Some(2), 1), "{done}");
    }
    // What a suite says about starting ranks is for ombx.
    let files = Files::default();
    let suite =
        "[defaults]\nranks = 4\nbind = 'core'\n[[entry]]\nrun = 'p2p.latency'\nsizes = 8\niterations = 9\n";
    let suite = files.write("s.toml", suite);
    Job::mpiexec(2, "run").arg(&suite).run().expect(0);
}
