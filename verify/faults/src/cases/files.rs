//! Files that another user may have put where ombx looks, files and output without end, and copies of launches. ombx gets 600 MB of
//! address space, so that a file or an output which it kept whole would end it.

use std::{fs, io, path::Path};

use crate::{
    case::{Case, Place, shell},
    stage::Stage,
};

const GOLDEN: &str = include_str!("../../../../crates/record/tests/golden/one_launch.jsonl");
const CHECK: &str = "budget = \"20s\"\nbaseline = \"good\"\n[[entry]]\nrun = \"sockets.latency\"\n\
                     sizes = \"8\"\nwithin = \"20%\"\n";
const INVENTORY: &str = "[[hosts]]\nname = \"n01\"\n[[hosts]]\nname = \"n02\"\n";

/// Files that another user made, as lines of a shell: a name, and what makes `$1`.
const HOSTILE: [(&str, &str); 4] = [
    ("a link", "ln -s \"$DIRECTORY/precious\" \"$1\""),
    ("a link to a device", "ln -s /dev/full \"$1\""),
    ("a FIFO", "mkfifo \"$1\""),
    ("endless", "truncate -s 1T \"$1\""),
];
/// Options that name a file, and a device without end as the file.
const GIVEN: [&str; 4] = [
    "imb MPI1 -n 2 -input /dev/zero",
    "imb MPI1 -n 2 -msglen /dev/zero PingPong",
    "osu latency -n 2 -D indx:/dev/zero",
    "run suite:/dev/./zero",
];
/// Ends the command if somebody else's file was written.
const UNTOUCHED: &str = "[ \"$(cat \"$DIRECTORY/precious\")\" = precious ] || code=99; exit $code";

/// Runs the command with a shell in place of ssh.
const NOISY_HOSTS: &str = "chmod +x \"$DIRECTORY/ssh\"; export OMBX_SSH=\"$DIRECTORY/ssh\"; ulimit -v 600000; \
    exec \"$@\" --inventory \"$DIRECTORY/cluster.toml\" --runs \"$DIRECTORY/runs\"";

pub(crate) fn cases(stage: &Stage) -> Vec<Case> {
    let mut cases = Vec::new();
    for (what, make) in HOSTILE {
        let hostile = |path: &str, rest: &str| {
            format!(
                "set -- \"$DIRECTORY/{path}\" \"$@\"; {make}; chown -h 65534 \"$1\" 2>/dev/null; shift; \
                 {rest}; code=$?; {UNTOUCHED}"
            )
        };
        let limited = |path: &str, rest: &str| hostile(path, &format!("ulimit -v 600000; {rest}"));
        let in_results = "\"$@\" \"$DIRECTORY/results\"";
        let result = limited("results/b.jsonl", in_results);
        cases.push(hostile_case(what, "a result", "history", 0, result, |_| Ok(())));
        // Ranks map more address space than a reader.
        let run = "run sockets.latency --sizes 8 -n 2 --timeout 15s";
        let beside = hostile("results/b.jsonl", "\"$@\" -o \"$DIRECTORY/results/new.jsonl\"");
        cases.push(hostile_case(what, "b.jsonl beside the output", run, 0, beside, |_| Ok(())));
        let hosts = "run sockets.latency --sizes 8 --hosts n01,n01 --timeout 15s";
        let named = hostile("results/n01", "cd \"$DIRECTORY/results\"; export OMBX_SSH=/bin/false; \"$@\"");
        let place = "a file with the name of a host";
        cases.push(hostile_case(what, place, hosts, 6, named, |_| Ok(())).says(&["n01"]));
        let checked = limited("good/b.jsonl", "\"$@\" \"$DIRECTORY/check.toml\"");
        let good = |directory: &Path| {
            fs::rename(directory.join("results"), directory.join("good"))?;
            fs::write(directory.join("check.toml"), CHECK)
        };
        cases.push(hostile_case(what, "a good day", "check", 7, checked, good).says(&["b.jsonl"]));
    }
    for words in GIVEN {
        let case = Case::new("the file of an option is endless", Place::Start, words, 2).without_out();
        cases.push(case.says(&["it is longer than"]).shell("ulimit -v 600000; exec \"$@\""));
    }
    let copy = "a launch is a copy with another name";
    cases.push(reading(copy, "show", 2, copies).says(&["has the samples of run"]));
    for name in ["median_ns", "max_ns", "mean_ns"] {
        let fault = format!("{name} is not that of the samples");
        let file = move || doctored(name).map(|text| vec![("doctored.jsonl", text)]);
        cases.push(reading(&fault, "show", 7, file).says(&[name, "does not follow from its samples"]));
    }
    cases.push(
        reading("3000 sizes in a model", "model", 0, || Ok(vec![("sizes.jsonl", many_sizes())]))
            .must("prints NaN", |done| !done.stdout.contains("NaN")),
    );
    for (stream, redirection) in [("output", ""), ("messages", " >&2")] {
        cases.push(
            Case::new(&format!("a host prints {stream} without end"), Place::Start, "cluster", 6)
                .without_out()
                .says(&["n01: it prints without end"])
                .prepared(move |c, _, directory| {
                    let ssh = format!("#!/bin/sh\nexec yes{redirection}\n");
                    fs::write(directory.join("ssh"), ssh)
                        .and_then(|()| fs::write(directory.join("cluster.toml"), INVENTORY))
                        .map_err(|e| e.to_string())?;
                    shell(c, directory, NOISY_HOSTS)
                }),
        );
    }
    cases.into_iter().map(|case| case.skip_if(stage.needs_no_mpi())).collect()
}

/// Names and texts of files.
type Files = Vec<(&'static str, String)>;
/// Change of the directory of a job.
type More = fn(&Path) -> io::Result<()>;

/// Returns a case in which a file in a place is hostile. `more` is done in the directory of the job before the script
/// starts.
fn hostile_case(what: &str, place: &str, words: &str, code: i32, script: String, more: More) -> Case {
    let case = Case::new(&format!("{place} is {what}"), Place::Start, words, code).without_out();
    case.gate(what == "a link").prepared(move |c, _, directory| {
        results(directory).and_then(|()| more(directory)).map_err(|e| e.to_string())?;
        shell(c, directory, &script)
    })
}

/// Returns a case of a command that reads files with these names and texts.
fn reading(
    fault: &str,
    command: &str,
    code: i32,
    files: impl Fn() -> Result<Files, String> + 'static,
) -> Case {
    let case = Case::new(fault, Place::Start, command, code).without_out();
    case.prepared(move |c, _, directory| {
        for (name, text) in files()? {
            let path = directory.join(name);
            fs::write(&path, text).map_err(|e| e.to_string())?;
            c.arg(path);
        }
        Ok(())
    })
}

/// Writes a directory with a result, and a file of which no link may lead to a change.
fn results(directory: &Path) -> io::Result<()> {
    let results = directory.join("results");
    fs::create_dir(&results)?;
    fs::write(results.join("a.jsonl"), GOLDEN)?;
    fs::write(directory.join("precious"), "precious\n")
}

/// Returns a result with 3000 sizes of one benchmark, whose times grow in 30 steps. All samples of a row are equal.
fn many_sizes() -> String {
    let run = GOLDEN.lines().next().unwrap_or_default().to_owned();
    let rows = (1..=3000).map(|size: u32| {
        let (elapsed, each) = (14000 + size + size / 100 * 500, "0,".repeat(9) + "0");
        let (samples, ns) = (each.replace('0', &elapsed.to_string()), f64::from(elapsed) / 40.0);
        format!(
            "{{\"kind\":\"case\",\"bench\":\"p2p.latency\",\"key\":\"p2p.latency/bytes={size}\",\"metric\":\"latency\",\"bytes\":{size},\"pairs\":1,\"ranks\":2,\"axes\":{{}},\"work\":{{\"bytes\":{},\"ops\":2,\"legs\":2}},\"across\":\"origin\",\"outcome\":\"ok\",\"check\":\"passed\",\"samples\":[{{\"rank\":0,\"batch\":20,\"elapsed_ns\":[{samples}]}}],\"summary\":{{\"n\":10,\"median_ns\":{ns},\"ci95_ns\":[{ns},{ns}],\"min_ns\":{ns},\"mean_ns\":{ns},\"max_ns\":{ns},\"mad_ns\":0.0,\"tail_n\":0,\"lag1\":0.0,\"bimodal\":false}},\"trust\":[]}}",
            2 * size
        )
    });
    std::iter::once(run).chain(rows).map(|line| line + "\n").collect()
}

/// Returns the result with a figure of its first row doubled, without checksums.
fn doctored(name: &str) -> Result<String, String> {
    let before = format!("\"{name}\":");
    let start = GOLDEN.find(&before).ok_or("the row has no such figure")? + before.len();
    let end = GOLDEN[start..].find([',', '}']).map_or(GOLDEN.len(), |length| start + length);
    let value: f64 = GOLDEN[start..end].parse().map_err(|e| format!("{e}"))?;
    // Other figures are in order, whatever this one is.
    let value = if name == "max_ns" { value * 2.0 } else { value * 1.01 };
    Ok(format!("{}{value}{}", &GOLDEN[..start], &GOLDEN[end..]))
}

/// Returns a launch, and the same with another name.
fn copies() -> Result<Files, String> {
    let (first, rest) = GOLDEN.split_once("\"run\":\"").ok_or("the file has no run")?;
    let copy = format!("{first}\"run\":\"renamed-{rest}");
    Ok(vec![("a.jsonl", with_many_samples(GOLDEN)?), ("b.jsonl", with_many_samples(&copy)?)])
}

/// Returns a result without the summary of its first row, which has as many samples as tell launches apart.
fn with_many_samples(text: &str) -> Result<String, String> {
    let before = "\"elapsed_ns\":[";
    let start = text.find(before).ok_or("the row has no samples")? + before.len();
    let end = text[start..].find(']').map_or(text.len(), |length| start + length);
    let samples: Vec<String> = (0..40).map(|sample| (7000 + sample * 7 % 31).to_string()).collect();
    let text = format!("{}{}{}", &text[..start], samples.join(","), &text[end..]);
    Ok(text.replacen("\"summary\":", "\"earlier_summary\":", 1))
}
