//! Tests of mistakes with every option of every command, generated from the table of options that the binary prints.

use std::collections::BTreeSet;

use ombx_tests::{Job, mpi};
use proptest::prelude::*;
use serde_json::Value;

use crate::StartRecorder;

const GOLDEN: &str = include_str!("../../../crates/results/tests/golden/v1.jsonl");

/// Values that every option with a fixed syntax rejects.
const NONSENSE: &[&str] = &[
    "",
    " ",
    "-",
    "~",
    "🦀",
    "１２",
    "a\u{1}b\nc",
    "\u{1b}[2J",
    "$(reboot)",
    "99999999999999999999999999",
    "-99999999999999999999",
    "1e400",
    "nan",
    "0x10",
    "1,,2",
    "%s%n",
    "../../etc",
    "'",
    "\"",
];
/// Options that take any text, path or host name. Other tests cover their mistakes.
const FREE: &[&str] = &[
    "out",
    "launcher-arg",
    "junit",
    "export-markdown",
    "openmetrics",
    "against",
    "install-links",
    "msglen",
    "input",
    "off-cache",
    "thread-level",
    "data-type",
    "red-data-type",
    "contig-type",
    "iter-policy",
    "msg-pause",
    "validation",
    "hosts",
    "ssh",
    "token-file",
    "interface",
    "suite",
    "runs",
    "store",
    "html",
];

/// Option of a command.
struct Known {
    command: String,
    long: String,
    takes: bool,
    optional: bool,
    repeats: bool,
    values: Vec<String>,
}

fn table() -> Vec<Known> {
    let printed = Job::ombx("codegen options").run().expect(0).stdout;
    let rows: Vec<Value> = serde_json::from_str(&printed).expect("a table");
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let known = |row: &Value| {
        Some(Known {
            command: text(&row["command"])?,
            long: text(&row["long"])?,
            takes: !row["value"].is_null(),
            optional: row["optional"] == true,
            repeats: row["repeats"] == true,
            values: row["values"].as_array()?.iter().filter_map(text).collect(),
        })
    };
    let ends_at_once = |known: &Known| known.long != "help" && known.long != "version";
    rows.iter().filter_map(known).filter(ends_at_once).collect()
}

/// Returns a correct command line, to which a test adds a mistake.
fn right(recorder: &StartRecorder, command: &str) -> Vec<String> {
    let golden = recorder.files.write("golden.jsonl", GOLDEN).display().to_string();
    let root = recorder.files.root().display().to_string();
    let build = mpi::ombx().display().to_string();
    let demand = "[[entry]]\nrun = 'sockets.latency'\nsizes = 8\nlatency = '<5us'\n";
    let demand = recorder.files.write("node.toml", demand).display().to_string();
    let words: &[&str] = match command {
        "check" => &[&demand],
        "run" => &["p2p.latency"],
        "show" => &[&golden],
        "compare" => &[&golden, &golden],
        "history" => &[&root],
        "report" => &[&golden, "--out=page.html"],
        "ab" => &["--a", &build, "--b", &build, "p2p.latency"],
        "osu" => &["osu_latency"],
        "imb" => &["IMB-MPI1"],
        "completions" => &["bash"],
        _ => &[],
    };
    [command].iter().chain(words).map(|&word| word.to_owned()).collect()
}

#[test]
fn every_wrong_option_gives_one_error_line_and_starts_nothing() {
    let recorder = StartRecorder::new();
    let table = table();
    assert!(table.len() > 100, "only {} options are in the table", table.len());
    let names: BTreeSet<(&str, &str)> = table.iter().map(|o| (o.command.as_str(), o.long.as_str())).collect();
    let mut lines = Vec::new();
    // `ab` passes these options to `run`.
    let own = |option: &&Known| option.command != "ab" || !names.contains(&("run", option.long.as_str()));
    for option in table.iter().filter(own) {
        let Known { command, long, takes, optional, repeats, values } = option;
        let mut mistake = |more: &[String]| lines.push([right(&recorder, command), more.to_vec()].concat());
        let short = &long[..long.len() - 1];
        for wrong in [format!("{long}x"), short.to_owned()] {
            if !wrong.is_empty() && !names.contains(&(command.as_str(), wrong.as_str())) {
                mistake(&[format!("--{wrong}")]);
            }
        }
        match takes {
            false => mistake(&[format!("--{long}=1")]),
            true if !optional => mistake(&[format!("--{long}")]),
            true => {}
        }
        if !repeats {
            let value = values.first().map_or("1", String::as_str);
            let word = if *takes { format!("--{long}={value}") } else { format!("--{long}") };
            mistake(&[word.clone(), word]);
        }
        if !takes || FREE.contains(&long.as_str()) {
            continue;
        }
        // Options with a list of values share one parser, so three values are enough.
        for nonsense in NONSENSE.iter().take(if values.is_empty() { NONSENSE.len() } else { 3 }) {
            mistake(&[format!("--{long}={nonsense}")]);
        }
        mistake(&[format!("--{long}={}", "x".repeat(70_000))]);
        mistake(&[format!("--{long}={}", "1".repeat(4_000))]);
        if let Some(value) = values.first() {
            mistake(&[format!("--{long}={value}x")]);
        }
    }
    recorder.judge_all(&lines);
}

#[test]
fn a_wrong_value_among_valid_options_is_found() {
    let recorder = StartRecorder::new();
    let table = table();
    // No valid value of these options begins with a tilde. (`--names` takes any two words with a comma between them.)
    let fixed =
        |o: &&Known| o.takes && o.long != "names" && !FREE.contains(&o.long.as_str()) && o.command != "osu";
    let forms: Vec<&Known> = table.iter().filter(fixed).collect();
    let around = ["--sizes=8", "--no-verify", "--ranks=2", "--quiet", "--json"];
    let mistake =
        (0..forms.len(), "~\\PC{0,30}", proptest::sample::subsequence(around.to_vec(), 0..4), any::<bool>());
    let cases = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(100) };
    proptest!(cases, |((at, value, others, first) in mistake)| {
        let option = forms[at];
        let known = |word: &&str| table.iter().any(|o| {
            o.command == option.command && o.long != option.long && word[2..].split('=').next() == Some(o.long.as_str())
        });
        let others: Vec<String> = others.into_iter().filter(known).map(str::to_owned).collect();
        let wrong = vec![format!("--{}={value}", option.long)];
        let [one, other] = if first { [wrong, others] } else { [others, wrong] };
        let words = [right(&recorder, &option.command), one, other].concat();
        let judged = recorder.judge(&words);
        prop_assert!(judged.is_ok(), "{:?}: {}", words, judged.unwrap_err());
    });
}
