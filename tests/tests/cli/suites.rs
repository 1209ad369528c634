//! Tests of suites: their contents, and errors that name file, line and the nearest key.

use ombx_tests::{Files, Job};

#[test]
fn every_built_in_suite_can_be_listed() {
    let done = Job::ombx("list suite:broadcast").run().expect(0);
    assert!(done.stdout.contains("collective.bcast_acked") && done.stdout.contains("; ranks: 4"), "{done}");
    for suite in ["smoke", "osu", "links", "congestion", "full"] {
        let done = Job::ombx("list").arg(format!("suite:{suite}")).run().expect(0);
        assert!(done.stdout.contains("p2p.latency") && done.stdout.contains("; ranks: "), "{done}");
    }
    let names = Job::ombx("list --format json suite:links").run().expect(0).stdout;
    assert!(names.contains("\"p2p.link\"") && !names.contains("\"p2p.bw\""), "{names}");
}

/// Text of a suite, number of the wrong line, and a word that the error must contain.
const MISTAKES: &[(&str, u32, &str)] = &[
    ("", 1, "[[entry]]"),
    ("about = 3", 1, "sentence"),
    ("entries = []", 1, "[[entry]]"),
    ("x = 1", 1, "\"x\""),
    ("[[entry", 1, "]"),
    ("[[entry]]\nrun = 'p2p.latency'\nrun = 'p2p.bw'", 3, "duplicate"),
    ("[[entry]]\n", 1, "run = "),
    ("[[entry]]\nrun = 7", 2, "quotes"),
    ("[[entry]]\nrun = []", 2, "quotes"),
    ("[[entry]]\nrun = 'p2p.latncy'", 2, "p2p.latency?"),
    ("[[entry]]\nrun = 'suite:smoke'", 2, "another"),
    ("[[entry]]\nrun = '--output=x'", 2, "key of its own"),
    ("[[entry]]\nrun = 'p2p.latency'\nsize = '8'", 3, "sizes?"),
    ("[[entry]]\nrun = 'p2p.latency'\n\nsizes = '8..1'", 4, "1..8"),
    ("[[entry]]\nrun = 'p2p.latency'\nsizes = { a = 1 }", 3, "list"),
    ("[[entry]]\nrun = 'p2p.latency'\nno-verify = 'x'", 3, "true or false"),
    ("[[entry]]\nrun = 'p2p.latency'\nranks = 4", 3, "[defaults]"),
    ("[[entry]]\nrun = 'p2p.latency'\nrole = 'quiet'", 3, "role"),
    ("[[entry]]\nrun = 'p2p.latency'\npattern = 'all'", 3, "--pattern"),
    ("[[entry]]\nrun = 'p2p.link'\npattern = 'sideways'", 3, "sideways"),
    ("[[entry]]\nrun = 'p2p.latency'\niterations = 10\nprecision = '1%'\nwarmup = 'x'", 5, "x"),
    ("[defaults]\nhostss = 'a'\n[[entry]]\nrun = 'p2p.latency'", 2, "hosts?"),
    ("defaults = 3\n[[entry]]\nrun = 'p2p.latency'", 1, "[defaults]"),
];

#[test]
fn a_suite_has_a_limited_number_of_entries() {
    let files = Files::default();
    for command in ["run", "check"] {
        let suite = files.write("long.toml", "[[entry]]\nrun = 'sockets.latency'\n".repeat(8000));
        let done = Job::ombx(command).arg(suite).run().expect(2);
        assert!(done.sentence().contains("8000 entries: at most 1000 are read"), "{done}");
    }
}

#[test]
fn an_error_names_the_file_and_line() {
    let files = Files::default();
    let mut wrong = Vec::new();
    for (text, line, word) in MISTAKES {
        let path = files.write("mine.toml", text);
        let done = Job::ombx("run").arg(&path).run();
        let place = format!("{}:{line}: ", path.display());
        let one = done.stderr.lines().count() == 1 && done.stdout.is_empty();
        if !(one && done.code == Some(2) && done.stderr.contains(&place) && done.stderr.contains(word)) {
            wrong.push(format!("line {line} of {text:?} should say {word:?}: {done}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
