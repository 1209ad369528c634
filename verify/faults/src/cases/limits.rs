//! Limits of the system: each is named before anything starts. Threads that cannot be started.

use std::path::Path;

use crate::{
    case::{Case, Place},
    cases::output::shell,
    stage::Stage,
};
use ombx_toolchain::command::compile;

const FEW: &str = "run p2p.latency --sizes 8,64,512 --iterations 50 -n 2 --timeout 15s";
const SOCKETS: &str = "run sockets.latency --sizes 8 --iterations 50 -n 2 --timeout 15s";
/// Library that limits the threads of a process.
const THREADS: &str = include_str!("threads.c");
/// Runs the command as a user without processes of its own, which may start few.
const FEW_PROCESSES: &str = "chmod -R a+rwX \"$DIRECTORY\" && \
    exec setpriv --reuid=65533 --regid=65533 --clear-groups prlimit --nproc=5 \"$@\"";

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
        let script = format!("{limit}; exec \"$@\"");
        let case = Case::of(fault, Place::Start, "p2p.latency", FEW, 6).says(&["limits of the system", says]);
        case.prepared(move |c, _, directory| shell(c, directory, &script))
    });
    let user =
        (!rustix::process::geteuid().is_root()).then(|| "only root may become another user".to_owned());
    let processes = [("p2p.latency", FEW), ("sockets.latency", SOCKETS)].map(|(subject, words)| {
        Case::of("few processes can be started", Place::Start, subject, words, 6)
            .without_out()
            .says(&["4 more processes and threads are allowed (ulimit -u"])
            .skip_if(user.clone())
            .prepared(|c, stage, directory| {
                let is_readable = stage.ombx.ancestors().all(is_readable_by_others);
                match is_readable {
                    true => shell(c, directory, FEW_PROCESSES),
                    false => Err(format!("other users cannot execute {}", stage.ombx.display())),
                }
            })
    });
    let threads = MOST_THREADS.map(|most| {
        let fault = format!("{most} threads can be started");
        Case::of(&fault, Place::Start, "p2p.latency", FEW, 6)
            .says(&["cannot start a thread", "ulimit -u"])
            .prepared(move |c, _, directory| {
                let options = ["-shared", "-fPIC", "-O1"];
                let library = compile(Path::new("cc"), &options, directory, "threads.c", THREADS)
                    .map_err(|e| e.to_string())?;
                c.env("LD_PRELOAD", library).env("OMBX_THREADS", most.to_string());
                Ok(())
            })
    });
    let in_gate = ["few files can be opened", "the stack is small", "3 threads can be started"];
    let all = limited.into_iter().chain(processes).chain(threads);
    all.map(|case| if in_gate.contains(&case.fault.as_str()) { case } else { case.on_demand() }).collect()
}

fn is_readable_by_others(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|file| file.permissions().mode() & 0o001 != 0)
}
