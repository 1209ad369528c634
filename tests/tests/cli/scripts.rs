//! Tests of help, completions, manual page and schema.

use ombx_tests::{Files, Job, results};
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
    insta::assert_snapshot!(text);
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
        "--win ",
        "--no-verify",
        "--format",
        "-o, --out",
        "-q, --quiet",
        "-v, --verbose",
        "--color",
        "--timeout",
        "--allow-skips",
    ] {
        assert!(text.contains(option), "{option} is not in the help");
    }
}

#[test]
fn help_of_list_and_show() {
    insta::assert_snapshot!([help("list --help"), help("show --help")].join("\n----\n"));
}

#[test]
fn every_shell_has_completions() {
    for shell in ["bash", "zsh", "fish"] {
        let script = Job::ombx("completions").arg(shell).run().expect(0).stdout;
        assert!(script.contains("--allow-skips") || script.contains("allow-skips"), "{shell}");
    }
}

#[test]
fn bash_accepts_its_completions() {
    let files = Files::default();
    let script = files.write("ombx.bash", Job::ombx("completions bash").run().expect(0).stdout);
    let done = Job::of("bash").arg("-n").arg(script).run().expect(0);
    assert_eq!(done.stderr, "", "{done}");
}

#[test]
fn the_manual_has_every_command() {
    let page = Job::ombx("codegen man").run().expect(0).stdout;
    for part in [".TH ombx", "OMBX RUN", "OMBX SHOW", "OMBX LIST", "max\\-time"] {
        assert!(page.contains(part), "{part}\n{page}");
    }
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
    assert_eq!(lines.len(), 2 + 12 + 2, "{done}");
    for line in &lines {
        let errors: Vec<String> = validator.iter_errors(line).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{line}: {errors:?}");
    }
    assert!(!validator.is_valid(&Value::Null));
}
