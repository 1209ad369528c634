//! Files of a rendezvous that other users could have written, and strangers on its port.

use crate::{
    case::{Case, Place},
    stage::Stage,
};

const WORDS: &str = "run sockets.latency --sizes 8 --iterations 50 --batch 1";
/// Starts rank 0 and waits for its file.
const RANK_0: &str = "\
    cd \"$DIRECTORY\"\n\
    PMI_RANK=0 PMI_SIZE=2 \"$@\" --rendezvous meet & first=$!\n\
    until [ -s meet ]; do kill -0 $first || exit 99; sleep 0.02; done\n";
/// Starts rank 1 with another file. Ends with its exit code.
const RANK_1: &str = "\
    PMI_RANK=1 PMI_SIZE=2 \"$@\" --rendezvous other; code=$?\n\
    kill -TERM $first; wait $first; exit $code";
/// Connects to the port of rank 0, once with garbage and once without a word, while rank 1 joins.
const STRANGERS: &str = "\
    port=$(sed 's/.*\"port\":\\([0-9]*\\).*/\\1/' meet)\n\
    for _ in 1 2 3 4 5 6 7 8; do\n\
        bash -c 'exec 3<>/dev/tcp/127.0.0.1/$0 && head -c 4000 /dev/urandom >&3' $port\n\
        bash -c 'exec 3<>/dev/tcp/127.0.0.1/$0 && sleep 5' $port & strangers=\"$strangers $!\"\n\
    done\n\
    PMI_RANK=1 PMI_SIZE=2 \"$@\" --rendezvous meet; code=$?\n\
    wait $first || code=$?\n\
    kill $strangers; wait; exit $code";

/// Files that rank 1 must not believe: what they are, how a shell makes them of that of rank 0, and what ombx says.
const FILES: [(&str, &str, &str); 4] = [
    ("belongs to another user", "cp -p meet other; chown 65534 other", "it belongs to another user"),
    ("can be written by others", "cp -p meet other; chmod 666 other", "others have access to it"),
    ("is a link", "ln -s meet other", "it is a link"),
    ("is a FIFO", "mkfifo -m 600 other", "it is not a regular file"),
];

pub(crate) fn cases(stage: &Stage) -> Vec<Case> {
    let earlier = format!("{RANK_0}kill -KILL $first; wait $first; cp -p meet other\n{RANK_1}");
    let strangers = format!("{RANK_0}{STRANGERS}");
    let more = [
        case(stage, "the rendezvous file is that of an earlier job", earlier, 6).says(&["rank 1"]),
        case(stage, "strangers connect to the rendezvous", strangers, 0)
            .says(&["without this session's token"])
            .rows(1),
    ];
    FILES.map(|file| file_case(stage, file)).into_iter().chain(more).collect()
}

/// Returns the case of a file that rank 1 must not believe.
fn file_case(stage: &Stage, (what, make, says): (&str, &str, &str)) -> Case {
    let no_root = what.contains("user") && !rustix::process::geteuid().is_root();
    case(stage, &format!("the rendezvous file {what}"), format!("{RANK_0}{make}\n{RANK_1}"), 2)
        .says(&["--rendezvous other", says])
        .skip_if(no_root.then(|| "only root may give files away".to_owned()))
        .gate(what.contains("by others"))
}

/// Returns the case of a job that a script starts.
fn case(stage: &Stage, fault: &str, script: String, code: i32) -> Case {
    let case = Case::new(fault, Place::Start, WORDS, code);
    case.shell(script).skip_if(stage.needs_no_mpi())
}
