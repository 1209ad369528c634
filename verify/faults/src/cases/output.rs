//! Outputs that cannot be written, clocks that step back, and hostile result files.

use std::{fs, path::Path, process::Command};

use crate::{
    case::{Case, Place, gated},
    run::Done,
    stage::{Stage, preloaded},
};

const FEW: &str = "run p2p.latency --sizes 8,64,512 --iterations 50 -n 2";
const MANY: &str = "run p2p.latency --sizes 1..64K --precision 0.0001% --max-time 50ms --format csv -n 2";
/// Starts a long job, and the command when that has written something. Ends with the exit code of the command.
const TWO_WRITERS: &str = "\
    \"$1\" run sockets.latency --sizes 8 --iterations 1000000000 --quick --output \"$DIRECTORY/r.jsonl\" & first=$!\n\
    until [ -s \"$DIRECTORY/r.jsonl\" ]; do sleep 0.05; done\n\
    \"$@\" --force --output \"$DIRECTORY/r.jsonl\"; code=$?\n\
    kill -TERM $first; wait $first; exit $code";
/// Replaces a file that must stay if nothing was measured, without anything beside it.
const OLD_FILE: &str = "\
    mkdir \"$DIRECTORY/old\"; echo old > \"$DIRECTORY/old/r.jsonl\"\n\
    \"$@\" --force --output \"$DIRECTORY/old/r.jsonl\"; code=$?\n\
    [ \"$(ls -A \"$DIRECTORY/old\") $(cat \"$DIRECTORY/old/r.jsonl\")\" = 'r.jsonl old' ] || code=99; exit $code";
/// Runs the command beside two loops that keep cores busy.
const NEIGHBOURS: &str = "sleep 3 & (while kill -0 $! 2>/dev/null; do :; done) & (while kill -0 $! \
                          2>/dev/null; do :; done) & \"$@\"; code=$?; kill $(jobs -p); wait; exit $code";
const LONG: &str = "run p2p.latency --sizes 8 --duration 3s -n 2";
/// Library that moves the clocks of a process back from time to time.
const CLOCKS: &str = include_str!("clocks.c");

/// Faults that every change must pass.
const GATE: [&str; 3] = ["the disk becomes full", "the output directory vanishes", "all three are closed"];

pub(crate) fn cases(_: &Stage) -> Vec<Case> {
    let no_root = (!rustix::process::geteuid().is_root()).then(|| "only root may mount".to_owned());
    let mut cases = vec![
        output_case("the disk is full", FEW, 7).without_out().prepared(|command, _, _| {
            command.args(["--output", "/dev/full"]);
            Ok(())
        }),
        output_case("the disk becomes full", MANY, 7)
            .without_out()
            .says(&["the disk is full"])
            .skip_if(no_root.clone())
            .shell(tiny("size=12k")),
        output_case("the output is read-only", FEW, 7)
            .without_out()
            .says(&["Read-only"])
            .skip_if(no_root)
            .shell(tiny("ro")),
        // Ranks over sockets write no files themselves.
        output_case(
            "the size of files is limited",
            "run sockets.latency --sizes 8,64,512 --iterations 4000 --batch 1",
            7,
        )
        .says(&["out.jsonl"])
        .shell("ulimit -f 16; exec \"$@\""),
        output_case("the output is a FIFO without a reader", &format!("{FEW} --timeout 3s"), 7)
            .without_out()
            .says(&["no program reads"])
            .shell("mkfifo \"$DIRECTORY/fifo\"; exec \"$@\" --output \"$DIRECTORY/fifo\""),
        output_case("two jobs write one file", FEW, 2)
            .without_out()
            .says(&["another process of ombx writes"])
            .shell(TWO_WRITERS),
        output_case("the output exists", FEW, 2)
            .without_out()
            .says(&["exists", "--append", "--force"])
            .shell("echo x > \"$DIRECTORY/r.jsonl\"; exec \"$@\" --output \"$DIRECTORY/r.jsonl\""),
        output_case("the output directory is none", FEW, 7).without_out().prepared(|command, _, directory| {
            command.arg("--output").arg(directory.join("absent/out.jsonl"));
            Ok(())
        }),
        output_case("the output directory vanishes", MANY, 7)
            .act(|job| {
                job.until_rows(2)?;
                fs::remove_file(&job.out).map_err(|e| e.to_string())
            })
            .says(&["out.jsonl"]),
        output_case("the screen is full", FEW, 7)
            .prepared(|c, _, _| file_of(c, "/dev/full", Command::stdout)),
        output_case("standard error is full", FEW, 0)
            .rows(3)
            .prepared(|c, _, _| file_of(c, "/dev/full", Command::stderr)),
        output_case(
            "standard error is full, and there is much to say",
            "run p2p.latency --sizes 8 --sizes 8",
            2,
        )
        .prepared(|c, _, _| file_of(c, "/dev/full", Command::stderr)),
        output_case("the screen is closed", FEW, 0).rows(3).shell("exec \"$@\" >&-"),
        output_case("standard error is closed", FEW, 0)
            .rows(3)
            .shell("exec \"$@\" 2>&-"),
        output_case("standard input is closed", FEW, 0)
            .rows(3)
            .shell("exec \"$@\" <&-"),
        output_case("all three are closed", FEW, 0)
            .rows(3)
            .shell("exec \"$@\" <&- >&- 2>&-"),
        output_case("the reader of the screen goes", MANY, 0)
            .rows(17)
            .shell("{ \"$@\"; echo $? >\"$DIRECTORY/code\"; } | head -n 1 >/dev/null; exit $(cat \"$DIRECTORY/code\")"),
        output_case("the reader of standard error goes", &format!("{FEW} -v"), 0)
            .rows(3)
            .shell("{ \"$@\" 2>&1 >/dev/null; echo $? >\"$DIRECTORY/code\"; } | true; exit $(cat \"$DIRECTORY/code\")"),
    ];
    for (what, words, rule) in [
        ("the launcher fails", "--launcher-arg=--no-such-argument", None),
        ("rank 1 crashes at the start of MPI", "", Some("call=Init,do=segv,rank=1")),
    ] {
        let case = output_case(&format!("{what}, and --force"), &format!("{FEW} {words}"), 6).without_out();
        let case = rule.into_iter().fold(case, Case::rule);
        cases.push(case.shell(OLD_FILE));
    }
    cases.push(
        Case::new("the host's clock becomes faster", Place::Measuring, LONG, 0)
            .rows(1)
            .prepared(|command, stage, directory| clocks(command, stage, directory, "faster"))
            .must("the row has no mark", |done| {
                let Some(Ok(file)) = &done.out else { return false };
                let mut marks = file.runs.iter().flat_map(|run| &run.rows).flat_map(|row| &row.trust);
                marks.any(|mark| mark.code.name() == "wrong_clock")
            }),
    );
    for (what, which) in [("the time of day", "realtime"), ("every clock", "all")] {
        cases.push(
            Case::new(
                &format!("{what} steps back"),
                Place::Measuring,
                "run p2p.latency --sizes 8 --max-time 100ms -n 2",
                0,
            )
            .rows(1)
            .prepared(move |command, stage, directory| clocks(command, stage, directory, which))
            .look(honest),
        );
    }
    cases.push(Case::new("two neighbours are busy", Place::Measuring, FEW, 0).rows(3).shell(NEIGHBOURS));
    for (what, bytes) in hostile() {
        for command in ["show", "compare", "report"] {
            let bytes = bytes.clone();
            cases.push(
                Case::new(&format!("the file is {what}"), Place::Start, command, 7)
                    .without_out()
                    .prepared(move |c, _, directory| {
                        let path = directory.join("hostile.jsonl");
                        fs::write(&path, &bytes).map_err(|e| e.to_string())?;
                        c.arg(&path);
                        match command {
                            "compare" => drop(c.arg(&path)),
                            "report" => drop(c.arg("-o").arg(directory.join("page.html"))),
                            _ => {}
                        }
                        Ok(())
                    })
                    .says(&["hostile.jsonl"])
                    .deadline(10),
            );
        }
    }
    gated(cases, &GATE)
}

fn output_case(fault: &str, words: &str, code: i32) -> Case {
    Case::new(fault, Place::Output, words, code)
}

/// Returns a script that puts the result file on a small file system in memory.
fn tiny(options: &str) -> String {
    format!(
        "mkdir \"$DIRECTORY/disk\" && mount -t tmpfs -o {options} tmpfs \"$DIRECTORY/disk\" || exit 77\n\
         \"$@\" --output \"$DIRECTORY/disk/out.jsonl\"; code=$?\n\
         umount \"$DIRECTORY/disk\"; exit $code"
    )
}

fn file_of(
    command: &mut Command,
    path: &str,
    set: fn(&mut Command, fs::File) -> &mut Command,
) -> Result<(), String> {
    let file = fs::OpenOptions::new().write(true).open(path).map_err(|e| format!("{path}: {e}"))?;
    set(command, file);
    Ok(())
}

/// Loads a library into the ranks that lets their clocks step back.
fn clocks(command: &mut Command, stage: &Stage, directory: &Path, which: &str) -> Result<(), String> {
    let library = preloaded(directory, "clocks.c", CLOCKS)?;
    command.args(stage.variables(&[("LD_PRELOAD", &library), ("OMBX_CLOCKS", which)]));
    Ok(())
}

/// Checks that impossible figures are absent or marked.
fn honest(done: &Done) -> Result<String, String> {
    let Some(Ok(file)) = &done.out else { return Err("no result file".into()) };
    for row in file.runs.iter().flat_map(|run| &run.rows) {
        let Some(summary) = &row.summary else { continue };
        let sane = summary.min > 0.0 && summary.median < 1e8 && summary.max.is_finite();
        if !sane && row.trust.is_empty() {
            return Err(format!("{}: median {} ns without a mark", row.key, summary.median));
        }
    }
    Ok(String::new())
}

/// Returns hostile result files with a description.
fn hostile() -> Vec<(&'static str, Vec<u8>)> {
    let run = r#"{"kind":"run","schema":{"name":"ombx.result","major":1,"minor":0},"run":"x","argv":[],"started":"2026-01-01T00:00:00Z","version":"0","profile":"x","fabric":"mpi","library":"x","ranks":[],"clock":{"source":"tsc","resolution_ns":1,"overhead_ns":9},"plan":{},"env":{}}"#;
    let after = |text: &str| format!("{run}\n{text}\n").into_bytes();
    vec![
        ("random bytes", (0u32..100_000).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect()),
        ("one endless line", vec![b'{'; 4 << 20]),
        ("nested too deeply", after(&format!("{}1{}", "[".repeat(200_000), "]".repeat(200_000)))),
        ("zeroes", vec![0; 1 << 20]),
        ("of another kind", b"{\"kind\":\"case\"}\n".to_vec()),
        ("of the future", run.replace("\"major\":1", "\"major\":999").into_bytes()),
        (
            "with numbers out of range",
            after(r#"{"kind":"case","bench":"a","key":"a/b","bytes":1e999,"ranks":-1}"#),
        ),
    ]
}
