//! Tests of help, completions, manual page and schema.

use std::collections::BTreeMap;

use ombx_tests::{Files, Job, missing, mpi, results, skipped};
use serde_json::Value;

fn help(arguments: &str) -> String {
    // The width of help follows the terminal. 100 columns are the default of clap without a terminal.
    Job::ombx(arguments).env("COLUMNS", "100").run().expect(0).stdout
}

#[test]
fn help_shows_every_command() {
    insta::assert_snapshot!(help("--help"));
}

#[test]
fn help_of_run_shows_every_option_with_its_default() {
    let text = help("run --help");
    let helps = [text.clone(), help("run -h"), help("run sockets.connect --help")].join("\n----\n");
    // Names of parameters come from their declarations.
    insta::with_settings!({filters => vec![(r"(?m)^  --[a-z-]+,[^\[]*?\n\n", "  [names]\n\n")]}, {
        insta::assert_snapshot!(helps);
    });
    for option in [
        "-n, --ranks",
        "--hosts",
        "--hostfile",
        "--launcher ",
        "--launcher-arg",
        "--sizes",
        "--window",
        "--pairs",
        "--precision",
        "--max-time",
        "--iterations",
        "--warmup",
        "--batch",
        "--sync",
        "--win,",
        "--no-verify",
        "--format",
        "-o, --output",
        "-q, --quiet",
        "-v, --verbose",
        "--color",
        "--timeout",
        "--allow-skips",
    ] {
        assert!(text.contains(option), "{option} is not in the help");
    }
}

/// The snapshots name no parameter: the list of benchmarks does.
#[test]
fn help_names_the_parameters_of_benchmarks_and_their_defaults() {
    let all = help("run --help");
    let list: Vec<Value> =
        serde_json::from_str(&Job::ombx("list --format json").run().expect(0).stdout).unwrap();
    let axes = |entry: &Value| entry["axes"].as_array().cloned().unwrap_or_default();
    for axis in list.iter().flat_map(axes) {
        let name = axis["name"].as_str().unwrap();
        let ends = |end: &str| all.contains(&format!("--{name}{end}"));
        assert!([",", "\n", " "].into_iter().any(ends), "--{name} is not in the help");
    }
    let own = help("run rma.put_bw --help");
    let words = own.split_whitespace().collect::<Vec<_>>().join(" ");
    for axis in list.iter().filter(|entry| entry["name"] == "rma.put_bw").flat_map(axes) {
        let (name, default) = (axis["name"].as_str().unwrap(), axis["default"].as_str().unwrap());
        let (start, rest) =
            words.split_once(&format!("--{name} <")).unwrap_or_else(|| panic!("{name}: {own}"));
        assert!(!start.is_empty() && rest.contains(&format!("[default: {default}]")), "{name}: {own}");
    }
    // Free values, and those that describe a value of another option.
    for option in ["--window <NUMBERS>", "--stride <BYTES>", "--memory-limit <BYTES>"] {
        assert!(words.contains(option), "{option}: {own}");
    }
}

#[test]
fn help_of_list_and_show() {
    insta::assert_snapshot!([help("list --help"), help("show --help")].join("\n----\n"));
}

#[test]
fn every_shell_has_a_script_that_asks_ombx() {
    for shell in ["bash", "zsh", "fish"] {
        let script = Job::ombx("completions").arg(shell).run().expect(0).stdout;
        assert!(script.contains(&mpi::ombx().display().to_string()), "{shell}: {script}");
        let asked = Job::new(mpi::ombx()).env("_OMBX_COMPLETE", shell).args(["--", "ombx", "run", "rma.cas"]);
        let answer = asked.env("_CLAP_COMPLETE_INDEX", "2").run().expect(0).stdout;
        assert!(answer.starts_with("rma.cas_latency") && answer.lines().count() == 1, "{shell}: {answer}");
    }
}

#[test]
fn bash_accepts_its_completions() {
    let files = Files::default();
    let script = files.write("ombx.bash", Job::ombx("completions bash").run().expect(0).stdout);
    let done = Job::new("bash").arg("-n").arg(script).run().expect(0);
    assert_eq!(done.stderr, "", "{done}");
}

#[test]
fn every_command_has_a_manual_page_with_examples_and_exit_codes() {
    let printed = Job::ombx("codegen man").run().expect(0).stdout;
    let pages: BTreeMap<String, String> = serde_json::from_str(&printed).unwrap();
    let help = help("--help");
    let commands: Vec<&str> = help
        .lines()
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next())
        .filter(|name| !name.is_empty() && *name != "ombx")
        .collect();
    assert!(commands.len() > 10, "{commands:?}");
    assert_eq!(pages.len(), commands.len() + 1, "{:?}", pages.keys());
    for command in &commands {
        assert!(!["worker", "codegen"].contains(command), "an internal command is shown");
        let page = &pages[&format!("ombx-{command}.1")];
        for part in [".SH OPTIONS", ".SH EXAMPLES", ".SH \"EXIT STATUS\""] {
            assert!(page.contains(part), "{command}: {part}\n{page}");
        }
        assert!(page.contains(&format!("ombx {command}")), "{page}");
    }
    assert!(pages["ombx-run.1"].contains(".SH MARKS") && pages["ombx-run.1"].contains("oversubscribed"));
    if !missing(&["man"]).is_empty() {
        return skipped("not installed: man");
    }
    for (name, text) in &pages {
        let files = Files::default();
        let done = Job::new("man")
            .arg("--warnings")
            .arg("-l")
            .arg(files.write(name, text))
            .env("MANWIDTH", "80")
            .run();
        let done = done.expect(0);
        assert!(done.stderr.is_empty(), "{name}: {done}");
    }
}

#[test]
fn help_explains_commands_marks_and_exit_codes() {
    assert_eq!(help("help run"), help("run --help"));
    assert_eq!(help("help"), help("--help"));
    assert!(help("help run").contains("# Latency between two ranks of this host\n  ombx run p2p.latency\n"));
    assert_eq!(Job::ombx("").env("COLUMNS", "100").run().expect(0).stdout, help("--help"));
    for (word, part) in [
        ("--sync", "MPI_Win_fence"),
        ("fence", "--sync fence"),
        ("-n", "--ranks <RANKS>"),
        ("x ordinary", "comparable links"),
        ("oversubscribed", "use fewer ranks"),
        ("12", "--precision"),
        ("p2p.latency", "osu_latency"),
    ] {
        let text = help(&format!("help {word}"));
        assert!(text.contains(part), "{word}: {text}");
    }
    assert!(help("help osu").contains("As OMB"));
    assert!(help("help marks").contains("stop other programs, or bind ranks elsewhere"));
    assert!(help("help exit-codes").lines().any(|line| line.starts_with("9 ") && line.contains("slow")));
    Job::ombx("help runn").run().expect(2).complains(&["'run'"]);
    Job::ombx("help served-rank").run().expect(2).complains(&["served-rank"]);
}

#[test]
fn the_schema_describes_what_a_run_writes() {
    let schema: Value = serde_json::from_str(&Job::ombx("codegen schema").run().expect(0).stdout).unwrap();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let files = Files::default();
    let out = files.path("r.jsonl");
    let options =
        "run p2p.latency p2p.latency_mt p2p.bw rma.put_bw --threads 2:1 --sizes 0,8,4K --max-time 20ms -q -o";
    let done = Job::ombx(options).arg(&out).run().expect(0);
    assert!(done.stderr.is_empty(), "{done}");
    let lines = results::lines_of(&out);
    // p2p.latency_mt has ranks of its own.
    assert_eq!(lines.len(), 2 + 12 + 2 + 1, "{done}");
    for line in &lines {
        let errors: Vec<String> = validator.iter_errors(line).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{line}: {errors:?}");
    }
    assert!(!validator.is_valid(&Value::Null));
}
