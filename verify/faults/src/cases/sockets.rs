//! Ranks over sockets that are killed or stopped, and connections that are cut, half open or hostile.

use std::{
    fs,
    io::Write,
    net::{Shutdown, TcpStream},
};

use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, Signal, pidfd_getfd, pidfd_open};

use crate::{
    case::{Case, Place},
    run::Running,
    stage::Stage,
};
use ombx_toolchain::process::Process;

const MANY: &str = "run sockets.latency --transport all --sizes 1..32K:x4 --precision 0.0001% --max-time 50ms --format csv -n 2";
const ENDLESS: &str =
    "run sockets.latency --sizes 8 --iterations 4294967296 --batch 1000000 --timeout 3s -n 2";

/// Job whose rows are checked.
const CHECKED: &str =
    "run sockets.latency --sizes 8,64,512 --precision 0.0001% --max-time 1s -n 2 --timeout 12s";

pub(crate) fn cases(stage: &Stage) -> Vec<Case> {
    let mut cases = Vec::new();
    for rank in [0, 1] {
        cases.push(
            harmed(&format!("rank {rank} is killed"), 6, move |job| send(job, rank, Signal::KILL))
                .says(&[&format!("rank {rank} on ")]),
        );
        cases.push(
            Case::new(&format!("rank {rank} is stopped"), Place::Measuring, ENDLESS, 6)
                .act(move |job| {
                    job.until("both ranks run", |job| workers(job).len() == 2)?;
                    std::thread::sleep(std::time::Duration::from_millis(500));
                    send(job, rank, Signal::STOP);
                    Ok(())
                })
                .says(&["sockets.latency"]),
        );
    }
    cases.push(Case::new("rank 1 is slow for a second", Place::Measuring, CHECKED, 0).rows(3).act(|job| {
        job.until("both ranks run", |job| workers(job).len() == 2)?;
        send(job, 1, Signal::STOP);
        std::thread::sleep(std::time::Duration::from_secs(1));
        send(job, 1, Signal::CONT);
        Ok(())
    }));
    let kill = |job: &mut Running<'_>| {
        let all = job.processes();
        all.iter().filter(|p| p.is_coordinator()).for_each(|p| p.signal(Signal::KILL));
    };
    cases.push(harmed("the coordinator is killed", 6, kill).gate(true));
    cases.push(harmed("SIGINT", 130, |job| job.signal(Signal::INT)).says(&["interrupted"]));
    cases.push(harmed("SIGTERM", 143, |job| job.signal(Signal::TERM)).says(&["interrupted"]));
    for (whose, to) in
        [("the measured connection", "worker"), ("a rank's connection to its coordinator", "coordinator")]
    {
        for (what, harm) in [
            ("cut", Fault::Cut),
            ("reset", Fault::Reset),
            ("half closed", Fault::Half),
            ("sent garbage", Fault::Garbage),
        ] {
            let fault = format!("{whose} is {what}");
            // Data is checked at the end of a row.
            let of_data = to == "worker" && what == "sent garbage";
            let (words, code, says) =
                if of_data { (CHECKED, 5, "sockets.latency") } else { (ENDLESS, 6, "rank ") };
            let case = Case::new(&fault, Place::Measuring, words, code);
            let case = if of_data { case.or_code(6) } else { case };
            let case = case.says(&[says]).gate((to, what) == ("worker", "cut"));
            cases.push(case.act(move |job| {
                job.until("both ranks are connected", |job| connection(job, to).is_some())?;
                std::thread::sleep(std::time::Duration::from_millis(300));
                break_connection(job, to, harm)
            }));
        }
    }
    cases.into_iter().map(|case| case.skip_if(stage.needs_no_mpi())).collect()
}

fn harmed(fault: &str, code: i32, act: impl Fn(&mut Running<'_>) + 'static) -> Case {
    Case::harmed(fault, MANY, code, act)
}

/// Returns the ranks in order.
fn workers(job: &Running<'_>) -> Vec<Process> {
    let mut all: Vec<Process> = job.processes().into_iter().filter(Process::is_worker).collect();
    all.sort_by_key(|p| p.pid.as_raw_nonzero());
    all
}

fn send(job: &Running<'_>, rank: usize, signal: Signal) {
    workers(job).get(rank).into_iter().for_each(|p| p.signal(signal));
}

/// Fault of a connection.
#[derive(Clone, Copy)]
enum Fault {
    Cut,
    Reset,
    Half,
    Garbage,
}

/// Returns rank 1 and its descriptor of a connection to a process with an argument that begins so.
fn connection(job: &Running<'_>, to: &str) -> Option<(Pid, i32)> {
    let rank = workers(job).pop()?;
    let others: Vec<String> = job
        .processes()
        .iter()
        .filter(|p| p.pid != rank.pid && p.argv.iter().any(|word| word.starts_with(to)))
        .flat_map(|p| sockets(p).into_iter().map(|(_, inode)| inode))
        .collect();
    let table = fs::read_to_string("/proc/net/tcp").ok()?;
    let ends: Vec<Vec<&str>> = table
        .lines()
        .map(|line| line.split_whitespace().collect())
        .filter(|line: &Vec<&str>| line.len() > 9)
        .collect();
    let end_of = |inode: &str| ends.iter().find(|line| line[9] == inode).map(|line| (line[1], line[2]));
    // Ranks are connected for messages before they connect what they measure.
    let mut own = sockets(&rank);
    own.sort_by_key(|(_, inode)| std::cmp::Reverse(inode.parse::<u64>().ok()));
    own.into_iter().find_map(|(descriptor, inode)| {
        let (own, other) = end_of(&inode)?;
        let theirs = |known: &String| end_of(known) == Some((other, own));
        others.iter().any(theirs).then_some((rank.pid, descriptor))
    })
}

/// Returns the descriptors of sockets of a process, and their inodes.
fn sockets(process: &Process) -> Vec<(i32, String)> {
    let files =
        fs::read_dir(format!("/proc/{}/fd", process.pid.as_raw_nonzero())).into_iter().flatten().flatten();
    let socket = |entry: fs::DirEntry| {
        let target = fs::read_link(entry.path()).ok()?.to_string_lossy().into_owned();
        let inode = target.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned();
        Some((entry.file_name().to_str()?.parse().ok()?, inode))
    };
    files.filter_map(socket).collect()
}

fn break_connection(job: &Running<'_>, to: &str, fault: Fault) -> Result<(), String> {
    let (pid, descriptor) = connection(job, to).ok_or("the connection is closed")?;
    let failure = |e: rustix::io::Errno| format!("cannot open its descriptor: {e}");
    let process = pidfd_open(pid, PidfdFlags::empty()).map_err(failure)?;
    let mut stream =
        TcpStream::from(pidfd_getfd(process, descriptor, PidfdGetfdFlags::empty()).map_err(failure)?);
    let done = match fault {
        Fault::Cut => stream.shutdown(Shutdown::Both),
        Fault::Reset => rustix::net::connect_unspec(&stream).map_err(Into::into),
        Fault::Half => stream.shutdown(Shutdown::Write),
        Fault::Garbage => stream.write_all(&[0xff; 4099]),
    };
    // The rank may close the connection before all is written.
    if let (Err(e), Fault::Cut | Fault::Reset | Fault::Half) = (done, fault) {
        return Err(e.to_string());
    }
    Ok(())
}
