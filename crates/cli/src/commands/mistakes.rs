//! Tests of wrong command lines: each gives one error line before anything is printed, written or started.

// The lines name benchmarks of all families.
#![cfg(all(feature = "p2p", feature = "collective", feature = "rma", feature = "io", feature = "sockets"))]

mod judge;
mod known;
mod options;
mod suites;

use std::{ffi::OsString, os::unix::ffi::OsStringExt, thread, time::Duration};

use rustix::process::{Signal, getpid, kill_process};
use signal_hook::consts::SIGTERM;

use self::{judge::Judge, known::KNOWN, suites::SUITES};

/// Command lines with words separated by blanks. `@LONG` stands for a very long word, `@LIST` for a very long list, `@EMPTY` for an
/// empty word.
const ODD: &str = include_str!("mistakes/odd.txt");

/// Words after which a word that is not UTF-8 follows.
const NOT_UTF8: [&str; 14] = [
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
];

#[test]
fn known_mistakes_say_what_is_wrong() {
    Judge::alone("commands::mistakes::known_mistakes_say_what_is_wrong", |judge| {
        judge.judge_all(KNOWN.iter().map(|(line, part)| (line.split(' ').collect(), *part)));
    });
}

#[test]
fn doctor_starts_no_ranks_without_a_launcher() {
    Judge::alone("commands::mistakes::doctor_starts_no_ranks_without_a_launcher", |judge| {
        assert_eq!(judge.done_by(&["doctor", "--launcher", "none"]), "prints to standard output");
    });
}

#[test]
fn a_signal_ends_doctor_while_it_reaches_hosts() {
    let test = "commands::mistakes::a_signal_ends_doctor_while_it_reaches_hosts";
    let signal = Judge::signal_that_ends(test, |judge| {
        judge.set_program("mpiexec", "echo HYDRA, Open MPI");
        judge.set_program("ssh", "kill -TERM $PPID");
        judge.done_by(&["doctor", "--hosts", "elsewhere.invalid", "--ssh", "ssh"]);
    });
    assert_eq!(signal, Some(SIGTERM));
}

#[test]
fn a_signal_ends_doctor_after_the_probe() {
    let test = "commands::mistakes::a_signal_ends_doctor_after_the_probe";
    let signal = Judge::signal_that_ends(test, |judge| {
        judge.set_program("mpiexec", "echo HYDRA, Open MPI");
        assert!(judge.done_by(&["doctor", "-n", "2"]).contains("waits for a process"));
        kill_process(getpid(), Signal::TERM).unwrap();
        // The signal may reach another thread.
        thread::sleep(Duration::from_secs(10));
    });
    assert_eq!(signal, Some(SIGTERM));
}

#[test]
fn odd_lines_are_mistakes() {
    Judge::alone("commands::mistakes::odd_lines_are_mistakes", |judge| {
        judge.write("garbage.txt", "hello world and more\n");
        judge.write("nul.txt", "a\0b\n");
        judge.write("empty.txt", "");
        judge.write("comment.txt", "# nobody\n\n");
        let word = |word: &str| match word {
            "@EMPTY" => String::new(),
            _ => word.replace("@LONG", &"x".repeat(70_000)).replace("@LIST", &"8,".repeat(30_000)),
        };
        judge.judge_all(ODD.lines().map(|line| (line.split(' ').map(word).collect(), "")));
    });
}

#[test]
fn words_that_are_not_utf8_are_mistakes() {
    Judge::alone("commands::mistakes::words_that_are_not_utf8_are_mistakes", |judge| {
        let bad = OsString::from_vec(vec![b'a', 0xff, 0xfe]);
        let line = |line: &str| line.split_whitespace().map(OsString::from).chain([bad.clone()]).collect();
        judge.judge_all(NOT_UTF8.map(|words| (line(words), "")));
    });
}

#[test]
fn wrong_suites_are_mistakes() {
    Judge::alone("commands::mistakes::wrong_suites_are_mistakes", |judge| {
        let long = format!("[[entry]]\nrun = \"p2p.latency\"\n{} = 1\n", "x".repeat(60_000));
        let many = format!("[[entry]]\nrun = \"{}\"\n", "y".repeat(60_000));
        let suites = SUITES.iter().copied().chain([long.as_bytes(), many.as_bytes()]);
        let names: Vec<String> =
            suites.enumerate().map(|(at, text)| judge.write(&format!("{at}.toml"), text)).collect();
        judge.judge_all(names.into_iter().map(|name| (vec!["run".to_owned(), name], "")));
    });
}
