//! Tests of unusual mistakes: huge numbers, very long words, invalid UTF-8, wrong file types, contradictory options.

use std::{ffi::OsString, os::unix::ffi::OsStringExt};

use crate::StartRecorder;

/// Command lines with words separated by blanks. `@LONG` stands for a very long word, `@EMPTY` for an empty one.
const LINES: &str = include_str!("mistakes_odd.txt");

/// Suite files with one mistake each.
const SUITES: &[&[u8]] = &[
    b"",
    b"\0",
    b"\xff\xfe",
    b"[defaults]\n",
    b"[[entry]]\n",
    b"[[entry]]\nrun = []\n",
    b"[[entry]]\nrun = \"\"\n",
    b"[[entry]]\nrun = 7\n",
    b"[[entry]]\nrun = \"nothing\"\n",
    b"[[entry]]\nrun = \"-n\"\n",
    b"[[entry]]\nrun = \"suite:smoke\"\n",
    b"[[entry]]\nrun = \"p2p.latency\"\nsizes = \"\"\n",
    b"[[entry]]\nrun = \"p2p.latency\"\nsizes = -1\n",
    b"[[entry]]\nrun = \"p2p.latency\"\nsizes = {}\n",
    b"[[entry]]\nrun = \"p2p.latency\"\nsizes = [8, [16]]\n",
    b"[[entry]]\nrun = \"p2p.latency\"\nsizes = 1979-05-27\n",
    b"[[entry]]\nrun = \"p2p.latency\"\nsizes = nan\n",
    b"[[entry]]\nrun = \"p2p.latency\"\nsize = 8\n",
    b"[[entry]]\nrun = \"p2p.latency\"\nwindow = 0\n",
    b"[[entry]]\nrun = \"p2p.latency\"\nranks = 2\n",
    b"[[entry]]\nrun = \"p2p.latency\"\nno-verify = \"yes\"\n",
    b"[[entry]]\nrun = \"p2p.latency\"\nrelay = \"quiet\"\n",
    b"[[entry]]\nrun = \"p2p.latency\"\nhelp = true\n",
    b"[[entry]]\nrun = \"p2p.latency\"\nrun = \"p2p.bw\"\n",
    b"[[entry]]\nrun = \"p2p.latency\"\nprecision = 0\n",
    b"[[entry]]\nrun = \"p2p.latency\"\nwarmup = 3\n",
    b"[[entry]]\nrun = \"p2p.latency\"\niterations = 99999999999999999999\n",
    b"[[entry]]\nrun = \"p2p.latency\"\nsync = \"lock\"\n",
    b"[[entry]]\nrun = \"rma.put_bw\"\nsync = [\"lock\", \"spinlock\"]\n",
    b"[defaults]\nranks = 100000000\n[[entry]]\nrun = \"p2p.latency\"\n",
    b"[defaults]\nhostfile = \"/nonexistent\"\n[[entry]]\nrun = \"p2p.latency\"\n",
    b"[defaults]\nquick = true\nseed = 3\n[[entry]]\nrun = \"p2p.latency\"\n",
    b"[defaults]\ntimeout = \"soon\"\n[[entry]]\nrun = \"p2p.latency\"\n",
    b"defaults = 3\n[[entry]]\nrun = \"p2p.latency\"\n",
    b"entry = 3\n",
    b"entry = [3]\n",
    b"about = []\n[[entry]]\nrun = \"p2p.latency\"\n",
    b"nonsense = 1\n[[entry]]\nrun = \"p2p.latency\"\n",
    b"[[entry]\nrun = \"p2p.latency\"\n",
    b"[[entry]]\nrun = \"p2p.latency\n",
];

#[test]
fn odd_command_lines_give_one_error_line_and_start_nothing() {
    let recorder = StartRecorder::new();
    recorder.files.write("garbage.txt", "hello world and more\n");
    recorder.files.write("nul.txt", "a\0b\n");
    recorder.files.write("empty.txt", "");
    recorder.files.write("comment.txt", "# nobody\n\n");
    let word = |word: &str| match word {
        "@EMPTY" => String::new(),
        _ => word.replace("@LONG", &"x".repeat(70_000)).replace("@LIST", &"8,".repeat(30_000)),
    };
    let lines = LINES.lines().filter(|line| !line.trim().is_empty());
    let lines: Vec<Vec<String>> = lines.map(|line| line.split(' ').map(word).collect()).collect();
    assert!(lines.len() >= 200, "{} lines", lines.len());
    recorder.judge_all(&lines);
}

#[test]
fn arguments_that_are_not_utf8_are_rejected() {
    let recorder = StartRecorder::new();
    let bad = || OsString::from_vec(vec![b'a', 0xff, 0xfe]);
    let lines: Vec<Vec<OsString>> = [
        "",
        "run",
        "list",
        "osu",
        "completions",
        "run p2p.latency --sizes",
        "run p2p.latency --hosts",
        "run p2p.latency -n",
        "links --sizes",
        "doctor --hosts",
        "run p2p.latency --ssh",
        "run p2p.latency --format",
        "run p2p.latency --hostfile",
        "ab --b x p2p.latency --a",
    ]
    .into_iter()
    .map(|line| line.split_whitespace().map(OsString::from).chain([bad()]).collect())
    .collect();
    recorder.judge_all(&lines);
}

#[test]
fn wrong_suites_give_one_error_line_and_start_nothing() {
    let recorder = StartRecorder::new();
    let lines: Vec<Vec<String>> = (0..)
        .zip(SUITES)
        .flat_map(|(number, text)| {
            let path = recorder.files.write(&format!("s{number}.toml"), text).display().to_string();
            [vec!["run".to_owned(), path.clone()], vec!["list".to_owned(), path]]
        })
        // `list` accepts mistakes that concern only `run`.
        .filter(|words| words[0] == "run")
        .collect();
    recorder.judge_all(&lines);
    let long = format!("[[entry]]\nrun = \"p2p.latency\"\n{} = 1\n", "x".repeat(60_000));
    let long = recorder.files.write("long.toml", long).display().to_string();
    let many = format!("[[entry]]\nrun = \"{}\"\n", "y".repeat(60_000));
    let many = recorder.files.write("many.toml", many).display().to_string();
    recorder.judge_all(&[vec!["run".to_owned(), long], vec!["run".to_owned(), many]]);
}
