//! Limits of the system: each is named before anything starts. Threads that cannot be started.

use std::{path::Path, process::Command};

use rustix::process::Signal;

use crate::{
    case::{Case, Place, gated, shell},
    stage::{Stage, preloaded},
};

const FEW: &str = "run p2p.latency --sizes 8,64,512 --iterations 50 -n 2 --timeout 15s";
const FEW_OF_MANY: &str = "run p2p.latency --sizes 8,512M --iterations 50 -n 2 --timeout 15s";
const ENDLESS: &str = "run p2p.latency --sizes 8 --iterations 4294967296 --batch 1000000 -n 2 --timeout 60s";
const SOCKETS: &str = "run sockets.latency --sizes 8 --iterations 50 -n 2 --timeout 15s";
/// Library that limits the threads of a process.
const THREADS: &str = include_str!("threads.c");
/// Runs the command as a user without processes of its own, which may start few.
const FEW_PROCESSES: &str = "chmod -R a+rwX \"$DIRECTORY\" && \
    exec setpriv --reuid=65533 --regid=65533 --clear-groups prlimit --nproc=5 \"$@\"";

/// Library that lets rank 1 take memory without end.
const HOG: &str = include_str!("hog.c");
/// Runs the command in a control group of either version with 300 MB of memory.
const LITTLE_MEMORY: &str = "\
    if [ -e /sys/fs/cgroup/memory/cgroup.procs ]; then top=/sys/fs/cgroup/memory limit=memory.limit_in_bytes;\n\
    else top=/sys/fs/cgroup limit=memory.max; fi\n\
    group=$top/ombx-$$; mkdir $group && echo 300M >$group/$limit && echo $$ >$group/cgroup.procs || exit 77\n\
    \"$@\"; code=$?; echo $$ >$top/cgroup.procs; rmdir $group; exit $code";

/// Faults that every change must pass.
const GATE: [&str; 3] = ["few files can be opened", "the stack is small", "3 threads can be started"];
/// Limits that no job survives: what is limited, the command of a shell, and what ombx says.
const LIMITS: [(&str, &str, &str); 6] = [
    ("no file can be opened", "ulimit -n 4", "4 open files are allowed (ulimit -n)"),
    ("few files can be opened", "ulimit -n 12", "12 open files are allowed (ulimit -n)"),
    ("the stack is small", "ulimit -s 64", "64 KiB of stack are allowed (ulimit -s)"),
    ("the stack is tiny", "ulimit -s 32", "32 KiB of stack are allowed (ulimit -s)"),
    ("little memory can be had", "ulimit -v 120000", "117 MiB of address space are allowed (ulimit -v)"),
    (
        "shared memory is limited",
        "ulimit -f 16",
        "8 KiB are allowed in a file or in shared memory (ulimit -f)",
    ),
];
/// Numbers of threads after which none can be started. The launching process starts six.
const MOST_THREADS: [u32; 4] = [0, 1, 3, 5];

pub(crate) fn cases(_: &Stage) -> Vec<Case> {
    let limited = LIMITS.map(|(fault, limit, says)| {
        let case = Case::new(fault, Place::Start, FEW, 6).says(&["limits of the system", says]);
        case.shell(format!("{limit}; exec \"$@\""))
    });
    let user =
        (!rustix::process::geteuid().is_root()).then(|| "only root may become another user".to_owned());
    let processes = [FEW, SOCKETS].map(|words| {
        Case::new("few processes can be started", Place::Start, words, 6)
            .without_out()
            .says(&["4 more processes and threads are allowed (ulimit -u"])
            .skip_if(user.clone())
            .prepared(|c, stage, directory| {
                let is_readable = stage.ombx.ancestors().all(is_readable_by_others);
                if is_readable {
                    shell(c, directory, FEW_PROCESSES)
                } else {
                    Err(format!("other users cannot execute {}", stage.ombx.display()))
                }
            })
    });
    let threads = MOST_THREADS.map(|most| {
        let fault = format!("{most} threads can be started");
        Case::new(&fault, Place::Start, FEW, 6).says(&["cannot start a thread", "ulimit -u"]).prepared(
            move |c, _, directory| {
                c.env("LD_PRELOAD", preloaded(directory, "threads.c", THREADS)?);
                c.env("OMBX_THREADS", most.to_string());
                Ok(())
            },
        )
    });
    let memory = [
        Case::new("rows need more memory than the batch job has", Place::Open, FEW_OF_MANY, 4)
            .rows(2)
            .says(&["free in its container or batch job"])
            .skip_if(no_groups())
            .shell(LITTLE_MEMORY),
        Case::new("the kernel kills a rank for its memory", Place::Measuring, ENDLESS, 6)
            .says(&["the kernel killed a process of these ranks' container or batch job"])
            .skip_if(no_groups())
            .prepared(|c, stage, directory| {
                c.args(stage.variables(&[("LD_PRELOAD", &preloaded(directory, "hog.c", HOG)?)]));
                shell(c, directory, LITTLE_MEMORY)
            }),
        Case::new(
            "the kernel kills another program for its memory, and rank 1 dies",
            Place::Measuring,
            ENDLESS,
            6,
        )
        .says(&["rank 1 on ", "died of SIGKILL"])
        .skip_if(no_groups())
        .act(|job| {
            job.until_started()?;
            let rank = job.rank(1)?;
            let hog = Command::new("sh").args(["-c", LITTLE_MEMORY, "sh", "tail", "/dev/zero"]).output();
            let killed = hog.map_err(|e| e.to_string())?.status.code();
            rank.signal(Signal::KILL);
            if killed == Some(137) { Ok(()) } else { Err(format!("the other program ended with {killed:?}")) }
        })
        .must("claims that a rank was killed for its memory", |done| {
            !done.stderr.contains("the kernel killed")
        }),
    ];
    gated(limited.into_iter().chain(processes).chain(threads).chain(memory), &GATE)
}

/// Returns why no control group can be made here that limits memory; `None` if one can.
fn no_groups() -> Option<String> {
    let top = ["/sys/fs/cgroup/memory", "/sys/fs/cgroup"].map(Path::new);
    let top = top.into_iter().find(|top| top.join("cgroup.procs").exists());
    let has_limit =
        |group: &Path| ["memory.limit_in_bytes", "memory.max"].iter().any(|name| group.join(name).exists());
    let is_made = top.is_some_and(|top| {
        let group = top.join(format!("ombx-probe-{}", std::process::id()));
        let is_made = std::fs::create_dir(&group).is_ok() && has_limit(&group);
        let _ = std::fs::remove_dir(&group);
        is_made
    });
    (!is_made).then(|| "no control group of memory can be made here".to_owned())
}

fn is_readable_by_others(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|file| file.permissions().mode() & 0o001 != 0)
}
