//! Launchers and ombx that are killed, interrupted, wrong or late, and builds that do not match.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, process::Command};

use rustix::process::Signal;

use crate::{
    case::{Case, Place, gated, shell},
    run::Running,
    stage::Stage,
};
use ombx_toolchain::{Flavour, Mpi, Places};

/// Many rows of about 50 ms: enough time for a fault in the middle.
const MANY: &str = "run p2p.latency --sizes 1..64K --precision 0.0001% --max-time 50ms --format csv -n 2";
const FEW: &str = "run p2p.latency --sizes 8 --iterations 50 -n 2";
/// One row that takes hours.
const ENDLESS: &str = "run p2p.latency --sizes 8 --iterations 4294967296 --batch 1000000 --timeout 3s -n 2";
/// Launcher that prints without end.
const NOISE: &str = "yes & exec yes >&2";
/// Launcher that starts one process as rank 0 of two.
const TWICE: &str = "export PMI_RANK=0 PMI_SIZE=2 OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2; unset PMI_FD; \
                     while [ \"${1##*/}\" != ombx ]; do shift; done; exec \"$@\"";
const LAUNCHERS: [&str; 4] = ["mpiexec", "mpirun", "orterun", "prterun"];

/// Reason why these cases are not run with Open MPI.
const UNTIDY: &str =
    "Open MPI sometimes leaves shared memory behind when ombx and with it the launcher are killed";

/// Faults that every change must pass.
const GATE: [&str; 4] =
    ["the launcher is killed", "SIGINT", "the launcher is another MPI's", "two builds of ombx in one job"];

pub(crate) fn cases(stage: &Stage) -> Vec<Case> {
    let untidy = (stage.mpi.flavour == Flavour::OpenMpi).then(|| UNTIDY.to_owned());
    let mut cases = vec![
        harmed("the launcher is killed", 6, |job| send(job, &LAUNCHERS, Signal::KILL)),
        harmed("SIGINT", 130, |job| signal(job, Signal::INT, 1)).says(&["interrupted"]),
        harmed("SIGTERM", 143, |job| signal(job, Signal::TERM, 1)).says(&["interrupted"]),
        harmed("SIGHUP", 129, |job| signal(job, Signal::HUP, 1)).says(&["interrupted"]),
        harmed("SIGINT twice", 130, |job| signal(job, Signal::INT, 2)).says(&["interrupted"]),
        harmed("SIGTERM twice", 143, |job| signal(job, Signal::TERM, 2)),
        Case::new("ombx is killed", Place::Measuring, MANY, 137)
            .rows(2)
            .act(|job| {
                job.until_rows(2)?;
                job.signal(Signal::KILL);
                Ok(())
            })
            .skip_if(untidy),
        Case::new("the launcher is stopped", Place::Measuring, ENDLESS, 6)
            .act(|job| {
                job.rank(1)?;
                send(job, &LAUNCHERS, Signal::STOP);
                Ok(())
            })
            .says(&["--timeout"]),
        Case::new("a job takes too long", Place::Measuring, ENDLESS, 6).says(&[
            "3 s",
            "p2p.latency",
            "--timeout",
        ]),
        Case::new("SIGINT", Place::Start, MANY, 130).act(|job| {
            job.until("something is started", |job| job.processes().len() > 1)?;
            job.signal(Signal::INT);
            Ok(())
        }),
        Case::new("the launcher is none", Place::Start, MANY, 6)
            .prepared(|command, _, directory| set(command, "OMBX_MPIEXEC", &directory.join("absent")))
            .says(&["/absent"]),
        launched("the launcher fails", MANY, "echo 'no licence left' >&2; exit 9")
            .says(&["no licence left", "exit code 9"]),
        launched("the launcher succeeds and starts nothing", MANY, "exit 0").says(&["ended early"]),
        launched(
            "the launcher prints garbage",
            MANY,
            "head -c 300000 /dev/urandom; echo '{\"kind\":\"case\"}'; exit 0",
        )
        .says(&["ended early"]),
        launched("the launcher moves the cursor", MANY, "printf 'no licence\\033[2J left\\n' >&2; exit 9")
            .says(&["no licence"])
            .must("an escape sequence reaches the terminal", |done| !done.stderr.contains('\u{1b}')),
        launched("the launcher prints without end", ENDLESS, NOISE).says(&["3 s", "--timeout"]),
        Case::new("the launcher prints without end", Place::Start, "doctor -n 2 --timeout 3s", 4)
            .without_out()
            .prepared(|command, stage, directory| launcher(command, stage, directory, NOISE))
            .must("the findings do not name the launcher", |done| {
                ["prints without end", "did not end"].iter().any(|text| done.stdout.contains(text))
            }),
        Case::new("SIGTERM, and the launcher prints without end", Place::Start, MANY, 143)
            .prepared(|command, stage, directory| launcher(command, stage, directory, NOISE))
            .act(|job| {
                job.until("the noise has begun", |job| {
                    job.processes().iter().any(|p| p.is_called(&["yes"]))
                })?;
                job.signal(Signal::TERM);
                Ok(())
            }),
        Case::new("the launcher does not tell its version", Place::Start, ENDLESS, 6)
            .prepared(|command, _, directory| script(command, directory, "#!/bin/sh\nsleep 60\n"))
            .says(&["--version did not answer within 3 s"]),
        launched("the launcher starts one rank twice", MANY, TWICE),
    ];
    let helpers = match stage.mpi.flavour {
        Flavour::Mpich => "hydra_pmi_proxy",
        Flavour::OpenMpi => "orted",
    };
    let here = stage.mpi.flavour == Flavour::Mpich;
    let why = (!here).then(|| "the launcher has no helper process for local ranks".to_owned());
    cases.push(
        harmed("the launcher's helper is killed", 6, move |job| send(job, &[helpers], Signal::KILL))
            .skip_if(why),
    );
    let others = Flavour::ALL.into_iter().find(|flavour| *flavour != stage.mpi.flavour);
    let other = others.and_then(|flavour| Mpi::find(flavour, &Places::here()).ok());
    let why = other.is_none().then(|| "no other MPI is installed".to_owned());
    let mpiexec = other.as_ref().map(|mpi| mpi.mpiexec.clone()).unwrap_or_default();
    cases.push(
        Case::new("the launcher is another MPI's", Place::Start, MANY, 6)
            .prepared(move |command, _, _| set(command, "OMBX_MPIEXEC", &mpiexec))
            .says(&["belongs to another MPI"])
            .skip_if(why),
    );
    for (what, words) in [
        ("two builds of ombx", "\"$@\""),
        ("two builds of ombx, of which one cannot read its job,", "rank x"),
    ] {
        cases.push(
            Case::new(&format!("{what} in one job"), Place::Start, MANY, 6)
                .prepared(move |command, stage, directory| mixed(command, stage, directory, words))
                .says(&["rank 1", "install the same ombx"]),
        );
    }
    cases.push(
        Case::new("the launcher is broken", Place::Start, MANY, 6)
            .prepared(|c, _, directory| {
                script(c, directory, "#!/bin/sh\necho 'mpiexec: symbol lookup error: PMI_x' >&2\nexit 127\n")
            })
            .says(&["is no mpiexec that works", "symbol lookup error: PMI_x"]),
    );
    let ignored = Case::new("ended children are ignored", Place::Start, FEW, 0);
    cases.push(ignored.rows(1).shell("trap '' CHLD; exec \"$@\""));
    let of_mpich = (!here).then(|| "Open MPI does not start with these variables".to_owned());
    for (what, script, code, says) in [
        (
            "ranks do not get their environment",
            "exec '{launcher}' -n 2 env -i \"$@\"",
            6,
            "variables are missing",
        ),
        (
            "srun has started two processes that are alone",
            "SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=2 exec \"$@\"",
            6,
            "srun started 2 processes",
        ),
        ("a process of PMIx is alone", "PMIX_RANK=0 exec \"$@\"", 6, "as rank 0"),
        (
            "rank 1 of PALS is alone",
            "PALS_RANKID=1 PMIX_RANK=1 exec \"$@\"",
            6,
            "PALS started this process as rank 1",
        ),
        ("the only rank of PALS", "PALS_RANKID=0 PMIX_RANK=0 exec \"$@\"", 4, "needs 2 ranks"),
    ] {
        let skip = of_mpich.clone().filter(|_| !script.contains("env -i"));
        cases.push(
            Case::new(what, Place::Start, &FEW.replace(" -n 2", ""), code)
                .without_out()
                .prepared(move |c, stage, directory| {
                    shell(c, directory, &script.replace("{launcher}", &stage.mpi.mpiexec.to_string_lossy()))
                })
                .must(format!("does not say {says:?}"), move |done| {
                    (done.stdout.clone() + &done.stderr).contains(says)
                })
                .skip_if(skip),
        );
    }
    gated(cases, &GATE)
}

fn harmed(fault: &str, code: i32, act: impl Fn(&mut Running<'_>) + 'static) -> Case {
    Case::harmed(fault, MANY, code, act)
}

/// Returns a case with a script as launcher.
fn launched(fault: &str, words: &str, script: &'static str) -> Case {
    let case = Case::new(fault, Place::Start, words, 6);
    case.prepared(move |command, stage, directory| launcher(command, stage, directory, script))
}

fn send(job: &Running<'_>, names: &[&str], signal: Signal) {
    job.processes().iter().filter(|p| p.is_called(names)).for_each(|p| p.signal(signal));
}

fn signal(job: &Running<'_>, signal: Signal, times: u32) {
    for _ in 0..times {
        job.signal(signal);
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

fn set(command: &mut Command, name: &str, value: &Path) -> Result<(), String> {
    command.env(name, value);
    Ok(())
}

/// Sets a launcher that reports the version of the real one and then runs a script.
fn launcher(command: &mut Command, stage: &Stage, directory: &Path, script: &str) -> Result<(), String> {
    let real = stage.mpi.mpiexec.display();
    self::script(
        command,
        directory,
        &format!("#!/bin/sh\n[ \"$1\" = --version ] && exec '{real}' --version\n{script}\n"),
    )
}

/// Sets a script as launcher.
fn script(command: &mut Command, directory: &Path, text: &str) -> Result<(), String> {
    let path = directory.join("mpiexec");
    fs::write(&path, text).map_err(|e| e.to_string())?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).map_err(|e| e.to_string())?;
    set(command, "OMBX_MPIEXEC", &path)
}

/// Starts rank 1 with these words, from a copy of ombx that has another commit and more bytes.
fn mixed(command: &mut Command, stage: &Stage, directory: &Path, words: &str) -> Result<(), String> {
    let other = directory.join("other");
    fs::copy(&stage.ombx, &other).map_err(|e| e.to_string())?;
    let line = Command::new(&stage.ombx).arg("build-line").output().map_err(|e| e.to_string())?.stdout;
    let line = String::from_utf8_lossy(&line).into_owned();
    let commit =
        line.split_once('(').and_then(|(_, rest)| rest.split_once(')')).map_or("", |(commit, _)| commit);
    let mut bytes = fs::read(&other).map_err(|e| e.to_string())?;
    for at in 0..bytes.len().saturating_sub(commit.len()) {
        if !commit.is_empty() && bytes[at..].starts_with(commit.as_bytes()) {
            bytes[at] = if bytes[at] == b'0' { b'1' } else { b'0' };
        }
    }
    bytes.extend(b"another build");
    fs::write(&other, bytes).map_err(|e| e.to_string())?;
    let (real, other) = (stage.mpi.mpiexec.display(), other.display());
    let script = format!(
        "while [ \"${{1##*/}}\" != ombx ]; do shift; done; first=$1; shift\n\
         exec '{real}' -n 1 \"$first\" \"$@\" : -n 1 '{other}' {words}"
    );
    launcher(command, stage, directory, &script)
}
