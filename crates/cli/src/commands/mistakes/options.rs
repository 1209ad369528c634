//! Mistakes with every option of every command, generated from the table of options.

use std::{collections::BTreeSet, env};

use proptest::{
    prelude::*,
    sample::subsequence,
    test_runner::{RngSeed, TestRunner},
};
use serde_json::Value;

use super::judge::{Judge, SEED};
use crate::commands::codegen;

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
/// Those of which programs of other suites read the number at the beginning.
const BEGIN_WITH_A_NUMBER: [&str; 2] = ["1e400", "0x10"];
/// Options that take any text, path or host name. Other tests cover their mistakes.
const FREE: &[&str] = &[
    "output",
    "launcher-arg",
    "junit",
    "fit",
    "unfit",
    "markdown",
    "openmetrics",
    "against",
    "like",
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

impl Known {
    /// Reads a row of the table of options.
    fn from_row(row: &Value) -> Option<Known> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        Some(Known {
            command: text(&row["command"])?,
            long: text(&row["long"])?,
            takes: !row["value"].is_null(),
            optional: row["optional"] == true,
            repeats: row["repeats"] == true,
            values: row["values"].as_array()?.iter().filter_map(text).collect(),
        })
    }
}

/// Returns the options of all commands.
fn table(judge: &Judge) -> Vec<Known> {
    let rows = codegen::options(judge.parser.clone());
    let ends_at_once = |known: &Known| known.long != "help" && known.long != "version";
    let known = rows.as_array().unwrap().iter().filter_map(Known::from_row);
    let table: Vec<Known> = known.filter(ends_at_once).collect();
    assert!(table.len() > 100, "only {} options are in the table", table.len());
    table
}

/// Writes the files that [`right`] names.
fn write_files(judge: &Judge) {
    judge.write("golden.jsonl", include_str!("../../../../record/tests/golden/one_launch.jsonl"));
    judge.write("node.toml", "[[entry]]\nrun = 'sockets.latency'\nsizes = 8\nlatency = '<5us'\n");
}

/// Returns a correct command line, to which a test adds a mistake.
fn right(judge: &Judge, command: &str) -> Vec<String> {
    let program = judge.program();
    let words: &[&str] = match command {
        "check" => &["node.toml"],
        "run" => &["p2p.latency"],
        "show" => &["golden.jsonl"],
        "compare" => &["golden.jsonl", "golden.jsonl"],
        "history" => &["."],
        "report" => &["golden.jsonl", "--output=page.html"],
        "ab" => &["--a", &program, "--b", &program, "p2p.latency"],
        "osu" => &["osu_latency"],
        "imb" => &["IMB-MPI1"],
        "completions" => &["bash"],
        _ => &[],
    };
    [command].iter().chain(words).map(|&word| word.to_owned()).collect()
}

/// Returns words with a mistake in one option.
fn mistakes(option: &Known, names: &BTreeSet<(&str, &str)>) -> Vec<Vec<String>> {
    let Known { command, long, takes, optional, repeats, values } = option;
    let near = [format!("{long}x"), long[..long.len() - 1].to_owned()];
    let unknown = near.iter().filter(|name| !name.is_empty() && !names.contains(&(command, name)));
    let mut lines: Vec<Vec<String>> = unknown.map(|name| vec![format!("--{name}")]).collect();
    if !takes {
        lines.push(vec![format!("--{long}=1")]);
    } else if !optional {
        lines.push(vec![format!("--{long}")]);
    }
    if !repeats {
        let value = values.first().map_or("1", String::as_str);
        let word = if *takes { format!("--{long}={value}") } else { format!("--{long}") };
        lines.push(vec![word.clone(), word]);
    }
    if !takes || FREE.contains(&long.as_str()) {
        return lines;
    }
    // Options with a list of values share one parser, so three values are enough.
    let nonsense = NONSENSE.iter().take(if values.is_empty() { NONSENSE.len() } else { 3 });
    let reads_as_c = ["osu", "imb"].contains(&command.as_str());
    let nonsense = nonsense.filter(|value| !(reads_as_c && BEGIN_WITH_A_NUMBER.contains(value)));
    let long_values = ["x".repeat(70_000), "1".repeat(4_000)];
    let near = values.first().map(|value| format!("{value}x"));
    let wrong = nonsense.map(|&value| value.to_owned()).chain(long_values).chain(near);
    lines.extend(wrong.map(|value| vec![format!("--{long}={value}")]));
    lines
}

/// Judges mistakes in the options of some commands.
fn judge_options(judge: &Judge, is_judged: impl Fn(&str) -> bool) {
    write_files(judge);
    let table = table(judge);
    let names: BTreeSet<(&str, &str)> =
        table.iter().map(|option| (option.command.as_str(), option.long.as_str())).collect();
    // `ab` passes these options to `run`.
    let is_passed_on =
        |option: &Known| option.command == "ab" && names.contains(&("run", option.long.as_str()));
    let judged = table.iter().filter(|option| is_judged(&option.command) && !is_passed_on(option));
    judge.judge_all(judged.flat_map(|option| {
        let right = right(judge, &option.command);
        let wrong = mistakes(option, &names).into_iter();
        wrong.map(move |words| ([right.clone(), words].concat(), ""))
    }));
}

/// These commands have as many options as all others together.
const OF_BENCHMARKS: [&str; 2] = ["run", "congestion"];

#[test]
fn every_option_of_run_has_mistakes() {
    Judge::alone("commands::mistakes::options::every_option_of_run_has_mistakes", |judge| {
        judge_options(judge, |command| OF_BENCHMARKS.contains(&command));
    });
}

#[test]
fn every_option_of_other_commands_has_mistakes() {
    Judge::alone("commands::mistakes::options::every_option_of_other_commands_has_mistakes", |judge| {
        judge_options(judge, |command| !OF_BENCHMARKS.contains(&command));
    });
}

#[test]
fn a_wrong_value_among_valid_options_is_found() {
    Judge::alone("commands::mistakes::options::a_wrong_value_among_valid_options_is_found", |judge| {
        write_files(judge);
        let table = table(judge);
        // No valid value of these options begins with a tilde. (`--names` takes any two words with a comma between them.)
        let is_fixed = |option: &&Known| {
            let free = option.long == "names" || FREE.contains(&option.long.as_str());
            option.takes && !free && option.command != "osu"
        };
        let options: Vec<&Known> = table.iter().filter(is_fixed).collect();
        let around = ["--sizes=8", "--no-verify", "--ranks=2", "--quiet", "--verbose"];
        let mistake = (0..options.len(), "~\\PC{0,30}", subsequence(around.to_vec(), 0..4), any::<bool>());
        let seed = env::var(SEED).map_or(1, |seed| seed.parse().expect("a whole number"));
        let config = ProptestConfig {
            cases: 200,
            failure_persistence: None,
            rng_seed: RngSeed::Fixed(seed),
            ..ProptestConfig::default()
        };
        let judged = TestRunner::new(config).run(&mistake, |(at, value, others, is_first)| {
            let option = options[at];
            let others = others.into_iter().filter(|word| is_other_option(word, option, &table));
            let others: Vec<String> = others.map(str::to_owned).collect();
            let wrong = vec![format!("--{}={value}", option.long)];
            let words = if is_first { [wrong, others] } else { [others, wrong] }.concat();
            let line = [right(judge, &option.command), words].concat();
            judge.judge(line, "").map_err(TestCaseError::fail)
        });
        judged.unwrap_or_else(|why| panic!("{SEED}={seed}: {why}"));
    });
}

/// Returns whether a word is another option of the same command.
fn is_other_option(word: &str, option: &Known, table: &[Known]) -> bool {
    let name = word[2..].split('=').next();
    table.iter().any(|other| {
        other.command == option.command && other.long != option.long && name == Some(other.long.as_str())
    })
}
