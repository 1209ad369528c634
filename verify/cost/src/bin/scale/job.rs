//! Jobs: time of the first record, memory of ranks, and size of records.

use std::{
    fmt, fs,
    io::{BufRead, BufReader},
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Command, Stdio},
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process_group};

use ombx_toolchain::{Flavour, Mpi, Result, Workspace, cannot_run, compile, process::Mark, release};

/// Interval of reading memory.
const INTERVAL: Duration = Duration::from_millis(300);
/// Time from SIGTERM to SIGKILL.
const GRACE: Duration = Duration::from_secs(10);

/// ombx and a bare MPI program, built with one MPI.
pub(crate) struct Programs {
    pub(crate) mpi: Mpi,
    pub(crate) ombx: PathBuf,
    /// C program that starts MPI, prints a line and ends.
    pub(crate) bare: PathBuf,
}

impl Programs {
    /// Builds both; `build` says whether ombx is built or used as it is.
    pub(crate) fn build(mpi: Mpi, workspace: &Workspace, build: bool) -> Result<Self> {
        let ombx = release::ombx(&mpi, workspace, build)?;
        let directory = mpi.target(&workspace.target).join("scale");
        let bare = compile(&mpi.mpicc, &["-O2"], &directory, "bare.c", include_str!("bare.c"))?;
        Ok(Self { mpi, ombx, bare })
    }
}

/// Jobs of ombx: name and arguments. Few iterations, because ranks share cores.
pub(crate) const TASKS: [(&str, &str); 3] = [
    ("links", "links --sizes 8 --iterations 4 --warmup 1 --retest 0 --fail-on nothing"),
    ("allreduce", "run collective.allreduce --sizes 8 --iterations 20 --warmup 2"),
    ("mbw_mr", "run p2p.mbw_mr --sizes 8 --window 8 --iterations 20 --warmup 2"),
];

/// Numbers of ranks over sockets.
pub(crate) const SOCKET_RANKS: [u32; 3] = [100, 300, 1000];
/// Arguments of their job: a sample of the pairs.
pub(crate) const OVER_SOCKETS: &str =
    "links --fabric tcp --rounds 4 --sizes 8 --iterations 10 --retest 0 --fail-on nothing";

/// Outcomes of all jobs of one number of ranks.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) flavour: Flavour,
    pub(crate) ranks: u32,
    pub(crate) bare: Outcome,
    /// In the order of [`TASKS`].
    pub(crate) tasks: Vec<Outcome>,
}

/// Limits of a job.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) seconds: u64,
    pub(crate) ranks: u32,
}

/// Outcome of a job.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outcome {
    /// Whether the job succeeded before its deadline.
    pub(crate) complete: bool,
    /// Seconds until the first record of the job, when all ranks have started.
    pub(crate) start_s: Option<f64>,
    pub(crate) total_s: f64,
    /// Largest mean proportional set size (PSS) of a rank, in bytes.
    pub(crate) rank_bytes: u64,
    /// Largest PSS of any rank, in bytes.
    pub(crate) most_bytes: u64,
    /// Largest mean of what a rank shares with no other process, in bytes.
    pub(crate) private_bytes: u64,
    /// Bytes of the first record and of all rows.
    pub(crate) run_bytes: u64,
    pub(crate) row_bytes: u64,
    pub(crate) rows: u64,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let start = self.start_s.map_or("n/a".into(), |s| format!("{s:.2} s"));
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        write!(
            f,
            "{}start {start}, in all {:.1} s, {} rows, {:.1} MiB per rank (at most {:.1})",
            if self.complete { "" } else { "NOT COMPLETE, " },
            self.total_s,
            self.rows,
            mib(self.rank_bytes),
            mib(self.most_bytes)
        )
    }
}

/// Runs ombx as users do.
pub(crate) fn ombx(programs: &Programs, words: &str, limits: Limits) -> Result<Outcome> {
    let mut command = Command::new(&programs.ombx);
    programs.mpi.launch_with(&mut command);
    command.args(words.split(' ')).args(words.starts_with("run ").then_some("--quick"));
    command.args(["--format", "jsonl", "--quiet", "-n", &limits.ranks.to_string()]);
    command.args(["--timeout", &format!("{}s", limits.seconds)]);
    watch(command, limits)
}

/// Runs the bare program with these arguments under the launcher.
pub(crate) fn bare(programs: &Programs, words: &[&str], limits: Limits) -> Result<Outcome> {
    let mut command = Command::new(&programs.mpi.mpiexec);
    command.args(["-n", &limits.ranks.to_string()]);
    if programs.mpi.flavour == Flavour::OpenMpi {
        command.args(["--oversubscribe", "--bind-to", "none"]);
    }
    programs.mpi.launch_with(&mut command);
    command.env("OMPI_MCA_plm_rsh_agent", "sh").arg(&programs.bare).args(words);
    watch(command, limits)
}

#[expect(clippy::disallowed_methods, reason = "seconds of a whole job are no measurement of ombx")]
fn watch(mut command: Command, limits: Limits) -> Result<Outcome> {
    let value = format!("{}-{}", std::process::id(), limits.ranks);
    let mark = Mark { variable: "OMBX_SCALE", value };
    command.env(mark.variable, &mark.value).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let start = Instant::now();
    let mut child = command.spawn().map_err(|source| cannot_run(&command, source))?;
    let (send, receive) = mpsc::channel();
    let reader = child.stdout.take().map(|out| {
        thread::spawn(move || {
            let lines = BufReader::new(out).lines().map_while(std::result::Result::ok);
            lines
                .map(|line| send.send((Instant::now(), line)))
                .take_while(std::result::Result::is_ok)
                .for_each(drop);
        })
    });
    let deadline = Duration::from_secs(limits.seconds);
    let mut outcome = Outcome::default();
    let mut signalled = false;
    loop {
        match receive.recv_timeout(INTERVAL) {
            Ok((at, line)) => outcome.read(&line, (at - start).as_secs_f64()),
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {}
        }
        if outcome.start_s.is_some() && (outcome.rows < 2 || outcome.rank_bytes == 0) {
            outcome.read_memory(&mark, limits.ranks);
        }
        let late = start.elapsed().saturating_sub(deadline);
        if late > GRACE || late > Duration::ZERO && !signalled {
            let signal = if signalled { Signal::KILL } else { Signal::TERM };
            signalled = true;
            let _ = kill_process_group(Pid::from_child(&child), signal);
        }
    }
    let status = child.wait().map_err(|source| cannot_run(&command, source))?;
    if let Some(reader) = reader {
        let _ = reader.join();
    }
    outcome.total_s = start.elapsed().as_secs_f64();
    // Skipped rows (exit code 4) are no failure here.
    outcome.complete = !signalled && status.code().is_some_and(|code| code == 0 || code == 4);
    Ok(outcome)
}

impl Outcome {
    /// Reads a line of output that arrived at this time.
    fn read(&mut self, line: &str, seconds: f64) {
        let bytes = line.len() as u64 + 1;
        if line.starts_with("{\"kind\":\"run\"") {
            self.start_s.get_or_insert(seconds);
            self.run_bytes = bytes;
        } else if line.starts_with("{\"kind\":\"case\"") {
            self.rows += 1;
            self.row_bytes += bytes;
        } else if line.starts_with("{\"kind\":\"round\"") {
            self.rows += links_of(line);
            self.row_bytes += bytes;
        }
    }

    /// Reads the memory of all ranks, if all have started.
    fn read_memory(&mut self, mark: &Mark, ranks: u32) {
        let processes = mark.processes();
        let ranks_of_job = processes.iter().filter(|process| process.rank().is_some() || process.is_worker());
        let pids = ranks_of_job.map(|process| process.pid.as_raw_nonzero().to_string());
        let memory: Vec<[u64; 2]> = pids.filter_map(|pid| memory(&pid)).collect();
        if memory.len() as u32 == ranks {
            let mean = |at: usize| memory.iter().map(|of_rank| of_rank[at]).sum::<u64>() / u64::from(ranks);
            self.rank_bytes = self.rank_bytes.max(mean(0));
            self.private_bytes = self.private_bytes.max(mean(1));
            self.most_bytes = self.most_bytes.max(memory.iter().map(|of_rank| of_rank[0]).max().unwrap_or(0));
        }
    }
}

/// Returns the number of links in the record of a round.
fn links_of(line: &str) -> u64 {
    let ends = line.split_once("\"from\":[").and_then(|(_, rest)| rest.split_once(']'));
    ends.map_or(0, |(ends, _)| ends.split(',').count() as u64)
}

/// Returns the proportional set size of a process, and what it shares with no other one, in bytes.
fn memory(pid: &str) -> Option<[u64; 2]> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let bytes = |name| bytes_of(&text, name);
    Some([bytes("Pss:")?, bytes("Private_Clean:")? + bytes("Private_Dirty:")?])
}

/// Returns the largest resident memory of a process until now, in bytes; 0 if it has ended.
pub(crate) fn peak_bytes(pid: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    bytes_of(&status, "VmHWM:").unwrap_or(0)
}

/// Returns the bytes of a line of a file of the kernel that has KiB.
fn bytes_of(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_counted_by_kind() {
        let mut outcome = Outcome::default();
        for (line, at) in
            [("{\"kind\":\"run\"}", 1.0), ("{\"kind\":\"case\"}", 2.0), ("{\"kind\":\"end\"}", 3.0)]
        {
            outcome.read(line, at);
        }
        assert_eq!(
            (outcome.start_s, outcome.rows, outcome.row_bytes, outcome.run_bytes),
            (Some(1.0), 1, 16, 15)
        );
        outcome.read(r#"{"kind":"round","from":[0,2,4],"to":[1,3,5]}"#, 4.0);
        assert_eq!(outcome.rows, 4);
    }

    #[test]
    fn a_process_has_memory() {
        assert!(
            memory("self")
                .is_some_and(|[proportional, private]| proportional >= private && private > 1 << 16)
        );
    }
}
