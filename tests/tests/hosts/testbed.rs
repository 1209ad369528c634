//! A test bed that exists during one test.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    time::Duration,
};

use ombx_host::since::Since;
use ombx_tests::{Files, Job, missing, mpi, skipped};
use rustix::process::{Pid, Signal, kill_process};

/// Running test bed. Dropping it removes the hosts.
pub(crate) struct Bed {
    pub(crate) files: Files,
}

/// Returns the command for xtask: the binary that `cargo xtask test` names, otherwise `cargo run`.
fn xtask() -> Vec<String> {
    match env::var("OMBX_XTASK") {
        Ok(path) => vec![path],
        Err(_) => {
            let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml");
            let words =
                [env!("CARGO"), "run", "--quiet", "--package", "xtask", "--manifest-path", root, "--"];
            words.map(str::to_owned).to_vec()
        }
    }
}

/// Returns a job of `cargo xtask cluster-bench` with the ombx under test.
pub(crate) fn cluster_bench() -> Job {
    let own = xtask();
    Job::new(&own[0]).args(&own[1..]).arg("cluster-bench").arg("--bin").arg(mpi::ombx())
}

impl Bed {
    /// Creates the hosts for a test that needs these programs. Prints the reason if it cannot.
    pub(crate) fn with(programs: &[&str], options: &str) -> Option<Bed> {
        let missing = missing(programs);
        if !missing.is_empty() {
            skipped(&format!("{} not installed (cargo xtask setup --testbed)", missing.join(", ")));
            return None;
        }
        Self::up(options)
    }

    /// Creates the hosts. Prints the reason if it cannot.
    pub(crate) fn up(options: &str) -> Option<Bed> {
        if !rustix::process::geteuid().is_root() {
            skipped("a test bed needs root");
            return None;
        }
        let bed = Bed { files: Files::default() };
        let output = bed.xtask("up", options);
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        // A feature that this machine lacks skips the test. Any other error fails it.
        if !output.status.success()
            && ["which this machine lacks", "not permitted", "no /dev/net/tun"]
                .iter()
                .any(|w| words.contains(w))
        {
            skipped(words.trim());
            return None;
        }
        assert!(output.status.success(), "testbed up {options}: {words}");
        Some(bed)
    }

    /// Runs `cargo xtask testbed TASK` with arguments separated by blanks, and waits for its end.
    pub(crate) fn xtask(&self, task: &str, words: &str) -> Output {
        let own = xtask();
        let mut command = Command::new(&own[0]);
        command.args(&own[1..]).args(["testbed", "--dir"]).arg(self.files.path("bed")).arg(task);
        command.args(words.split_whitespace()).stdin(Stdio::null());
        command.output().unwrap_or_else(|e| panic!("{own:?}: {e}"))
    }

    /// Kills a host with all its processes.
    pub(crate) fn kill_host(&self, host: &str) {
        let init = fs::read_to_string(self.files.path(&format!("bed/{host}.pid"))).expect("a process");
        let init = init.trim().parse().ok().and_then(Pid::from_raw).expect("a number");
        kill_process(init, Signal::KILL).expect("a process");
    }

    /// Runs a command on a host and returns its standard output.
    pub(crate) fn on(&self, host: &str, words: &str) -> String {
        let output = self.xtask("exec", &format!("{host} -- {words}"));
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success(),
            "{words} on {host}: {printed}{}",
            String::from_utf8_lossy(&output.stderr)
        );
        printed
    }

    /// Returns a job of this command line on the first host.
    pub(crate) fn job(&self, words: &[String]) -> Job {
        let own = xtask();
        let job = Job::new(&own[0]).args(&own[1..]).args(["testbed", "--dir"]).arg(self.files.path("bed"));
        job.args(["exec", "h1", "--", "env"]).args(transports()).args(words)
    }

    /// Returns a job of `ombx` with ranks on these hosts, over TCP, with a result file.
    pub(crate) fn ombx(&self, hosts: &str, options: &str) -> Job {
        self.job(&self.words(hosts, options))
    }

    /// Returns a job whose ranks sleep while they wait, so that more ranks than cores do not wait for each other's time slices. Needs
    /// a C compiler.
    pub(crate) fn ombx_of_sleeping_ranks(&self, hosts: &str, options: &str) -> Job {
        let mut words = vec![format!("LD_PRELOAD={}", self.sleeping_library().display())];
        words.extend(self.words(hosts, options));
        if mpi::is_open_mpi() {
            words.extend(["--launcher-arg=-x", "--launcher-arg=LD_PRELOAD"].map(str::to_owned));
        }
        self.job(&words)
    }

    /// Compiles the library with which ranks sleep, and returns its path.
    fn sleeping_library(&self) -> PathBuf {
        let library = self.files.path("sleeping.so");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/hosts/sleeping.c");
        let mut compiler = Command::new("cc");
        compiler.args(["-O2", "-shared", "-fPIC", source, "-o"]).arg(&library);
        assert!(compiler.status().is_ok_and(|status| status.success()), "{compiler:?}");
        library
    }

    /// Returns the command line of `ombx` with ranks on these hosts.
    fn words(&self, hosts: &str, options: &str) -> Vec<String> {
        let mut words = vec![mpi::ombx().to_string_lossy().into_owned()];
        words.extend(options.split_whitespace().map(str::to_owned));
        if options.starts_with("run ") && !options.contains("--launches") {
            words.push("--quick".into());
        }
        words.extend(
            ["--hosts", hosts, "--bind", "none", "--interface", "eth0", "--force", "-o"].map(str::to_owned),
        );
        words.push(self.out().to_string_lossy().into_owned());
        words
    }

    pub(crate) fn out(&self) -> PathBuf {
        self.files.path("results.jsonl")
    }

    /// Returns a job of `cargo xtask cluster-bench` on all hosts.
    pub(crate) fn cluster_bench(&self, options: &str) -> Job {
        self.cluster_bench_of(&self.files.path("bed/cluster.toml"), options)
    }

    /// Returns a job of `cargo xtask cluster-bench` on all hosts, whose ranks sleep as those of [`Bed::ombx_of_sleeping_ranks`] do.
    pub(crate) fn cluster_bench_of_sleeping_ranks(&self, options: &str) -> Job {
        let preload = format!("[env]\nLD_PRELOAD = \"{}\"\n", self.sleeping_library().display());
        let inventory = fs::read_to_string(self.files.path("bed/cluster.toml")).expect("an inventory");
        let changed = self.files.write("bed/sleeping.toml", inventory.replacen("[env]\n", &preload, 1));
        self.cluster_bench_of(&changed, options)
    }

    /// Returns a job of `cargo xtask cluster-bench` with this inventory.
    pub(crate) fn cluster_bench_of(&self, inventory: &Path, options: &str) -> Job {
        let job = cluster_bench().arg("--inventory").arg(inventory).arg("--runs").arg(self.runs());
        job.args(options.split_whitespace())
    }

    /// Writes a changed copy of the inventory of the bed and returns its path.
    pub(crate) fn inventory(&self, change: impl Fn(String) -> String) -> PathBuf {
        let text = fs::read_to_string(self.files.path("bed/cluster.toml")).expect("an inventory");
        self.files.write("bed/changed.toml", change(text))
    }

    pub(crate) fn runs(&self) -> PathBuf {
        self.files.path("runs")
    }

    /// Returns the contents of a file of the latest run, or nothing if it does not exist.
    pub(crate) fn kept(&self, name: &str) -> String {
        fs::read_to_string(self.runs().join("latest").join(name)).unwrap_or_default()
    }

    /// Returns the number of bytes that a host has sent over its network.
    pub(crate) fn sent(&self, host: &str) -> u64 {
        self.on(host, "cat /sys/class/net/eth0/statistics/tx_bytes").trim().parse().expect("a counter")
    }

    /// Panics if a process of the latest run still exists. This machine sees the processes of all hosts.
    #[track_caller]
    pub(crate) fn has_nothing_left(&self) {
        let marked = |pid: &PathBuf| {
            let environment = fs::read(pid.join("environ")).unwrap_or_default();
            let id = fs::read_link(self.runs().join("latest")).unwrap_or_default();
            let mark = format!("OMBX_JOB={}", id.display());
            environment
                .split(|b| *b == 0)
                .any(|v| String::from_utf8_lossy(v).trim_start_matches("LC_").starts_with(&mark))
        };
        let look = || {
            let all = fs::read_dir("/proc").expect("/proc").flatten().map(|entry| entry.path());
            all.filter(marked).collect::<Vec<PathBuf>>()
        };
        // Ranks behind a cut link end at their own time limit.
        let since = Since::now();
        let mut left = look();
        while !left.is_empty() && since.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(100));
            left = look();
        }
        let named: Vec<String> =
            left.iter().map(|p| fs::read_to_string(p.join("cmdline")).unwrap_or_default()).collect();
        assert!(left.is_empty(), "still running: {named:?}");
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        drop(self.xtask("down", ""));
    }
}

/// Returns environment variables that make MPI use TCP between hosts.
fn transports() -> Vec<&'static str> {
    vec![
        "UCX_TLS=tcp,self",
        "UCX_NET_DEVICES=eth0",
        "OMPI_MCA_pml=ob1",
        "OMPI_MCA_btl=tcp,self",
        "OMPI_MCA_osc=^ucx",
    ]
}

/// Repeats an attempt until it succeeds. If all attempts fail, it panics; on a busy machine it skips the test instead.
#[track_caller]
pub(crate) fn eventually(tries: u32, mut attempt: impl FnMut() -> Result<(), String>) {
    let mut why = String::new();
    for _ in 0..tries {
        match attempt() {
            Ok(()) => return,
            Err(found) => why = found,
        }
    }
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let running: f64 = load.split(' ').next().and_then(|l| l.parse().ok()).unwrap_or(0.0);
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as f64;
    // The test itself runs two polling ranks and a switch.
    if running > cores + 2.0 {
        return skipped(&format!("this machine is busy (load {running}), no figure can be trusted: {why}"));
    }
    panic!("{why} (load {running})");
}
