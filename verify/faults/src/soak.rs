//! Random jobs from a seed: benchmarks, options, numbers of ranks, faults and signals. Each must end in time with an exit code that
//! fits to its fault, and leave nothing behind.

use std::{fs, time::Duration};

use fastrand::Rng;
use ombx_host::since::Since;
use ombx_toolchain::{Flavour, registry::Bench};
use rustix::process::Signal;

use crate::{
    case::Job,
    cases::defect,
    run::{self, Done},
    stage::Stage,
};

/// Deadline of a job. Its own limit is shorter, and a case without progress ends much earlier.
const DEADLINE: Duration = Duration::from_secs(720);
const LIMIT: &str = "--timeout 600s";

/// A random job: arguments in groups that can be left out, and its fault.
#[derive(Clone, Debug)]
struct Plan {
    bench: String,
    options: Vec<String>,
    fault: Fault,
}

#[derive(Clone, Debug, PartialEq)]
enum Fault {
    None,
    /// Rule of the interposed library, and whether it changes data; otherwise it ends a rank or fails a call.
    Rule(String, bool),
    /// Signal to the first process of the job after this time.
    Signal(i32, Duration),
}

/// Runs random jobs of the benchmarks whose names contain `only` for this time. Returns whether one was wrong, which also ends it.
pub(crate) fn run(stages: &[Stage], only: &str, time: Duration, seed: u64) -> bool {
    println!("soak of {} s, seed {seed}", time.as_secs());
    let (since, before) = (Since::now(), available_kib());
    let (mut number, mut ended) = (0u64, [0u64; 4]);
    while since.elapsed() < time {
        // Each job has a generator of its own, so that a job can be repeated without those before it.
        let mut rng = Rng::with_seed(seed.wrapping_add(number));
        let stage = &stages[rng.usize(..stages.len())];
        let plan = Plan::random(&mut rng, stage, only);
        match plan.wrong(stage) {
            Err(why) => {
                println!("{} job {number} of seed {seed}: {why}\n   {plan}", stage.mpi.flavour);
                println!("   shortest: {}", plan.shortest(stage));
                let mpi = if stages.len() == 1 { stage.mpi.flavour.key() } else { "all" };
                let seed = seed.wrapping_add(number);
                println!("   alone: cargo xtask faults --soak 1s --seed {seed} --mpi {mpi} --only '{only}'");
                return true;
            }
            Ok(code) => ended[[0, 4, 5].iter().position(|known| *known == code).unwrap_or(3)] += 1,
        }
        number += 1;
    }
    let [good, skipped, corrupt, other] = ended;
    println!(
        "{number} jobs in {:.0} s: {good} ended with 0, {skipped} with 4, {corrupt} with 5, {other} with \
         other codes; none is wrong",
        since.elapsed().as_secs_f64()
    );
    // Other programs use memory too: this is for a person. What a job leaves behind in shared memory is wrong.
    let lost = before.saturating_sub(available_kib());
    println!("available memory: {lost} KiB less than before");
    false
}

/// Returns the available benchmarks whose names contain `only`.
pub(crate) fn tested<'a>(stage: &'a Stage, only: &str) -> Vec<&'a Bench> {
    // Some random options of files, such as --window, exclude others.
    let is_tested = |bench: &&Bench| {
        bench.unavailable.is_none() && !bench.name.starts_with("io.") && bench.name.contains(only)
    };
    stage.benches.iter().filter(is_tested).collect()
}

impl Plan {
    /// Returns a random job of a benchmark that is available.
    fn random(rng: &mut Rng, stage: &Stage, only: &str) -> Plan {
        let bench = rng.choice(tested(stage, only)).expect("a benchmark that is available");
        let is_pipeline = bench.name == "sockets.pipeline";
        let over_mpi = !bench.name.starts_with("sockets.");
        let mut options = vec![LIMIT.to_owned()];
        // A size that messages of ombx itself hardly ever have.
        let flipped = 1000 + rng.u64(..1000);
        let fault = Fault::random(rng, bench, over_mpi, flipped);
        let mut most = flipped;
        if matches!(fault, Fault::Rule(_, true)) {
            options.push(format!("--sizes {flipped}"));
        } else if !bench.has_one_size() && !is_pipeline {
            let sizes = [random_size(rng), random_size(rng)];
            most = sizes[0].max(sizes[1]);
            options.push(format!("--sizes {},{}", sizes[0], sizes[1]));
        }
        options.push(match rng.u32(..3) {
            // Open MPI accumulates 6 MB/s in datatypes with gaps: 64 messages of an iteration may take seconds.
            0 => format!("--iterations {}", rng.u32(1..if most > 1 << 16 { 10 } else { 200 })),
            1 => format!("--max-time {}ms", rng.u32(1..30)),
            _ => "--max-time 5ms --verify full".into(),
        });
        if !is_pipeline && rng.bool() {
            // More ranks than cores take turns: few suffice.
            options.push(format!("-n {}", [2, 2, 2, 3, 4][rng.usize(..5)]));
        }
        if bench.streams && rng.bool() {
            options.push(format!("--window {}", rng.u32(1..20)));
        }
        options.extend(bench.axes.iter().filter_map(|axis| {
            let value = rng.choice(&axis.values)?;
            rng.bool().then(|| format!("--{} {value}", axis.name))
        }));
        options.push(format!("--format {}", ["table", "csv", "jsonl", "openmetrics"][rng.usize(..4)]));
        Plan { bench: bench.name.clone(), options, fault }
    }

    /// Runs the job. Returns its exit code, or what is wrong.
    fn wrong(&self, stage: &Stage) -> Result<i32, String> {
        let mut job = Job::new(&self.arguments());
        job.deadline = DEADLINE;
        match self.fault.clone() {
            Fault::None => {}
            Fault::Rule(rule, _) => job.rules.push(rule),
            Fault::Signal(number, after) => {
                job.act = Some(Box::new(move |running| {
                    std::thread::sleep(after);
                    running.signal(Signal::from_named_raw(number).ok_or("no such signal")?);
                    Ok(())
                }));
            }
        }
        let done = run::run(&job, stage)?;
        self.judge(&done, self.meets_defect(stage)).map_err(|why| format!("{why}\n{done}"))
    }

    /// Returns whether the library itself may deliver wrong data, as docs/reference/mpi-libraries.md and SHORTCOMINGS describe.
    fn meets_defect(&self, stage: &Stage) -> bool {
        let has = |wanted: &[&str]| {
            self.options.iter().any(|option| wanted.iter().any(|word| option.starts_with(word)))
        };
        let accumulates =
            ["rma.acc_", "rma.get_acc_", "rma.fop_"].iter().any(|name| self.bench.starts_with(name));
        match stage.mpi.flavour {
            Flavour::Mpich => {
                let is_of_types = self.bench.starts_with("collective.") || accumulates;
                defect(stage).contains(&self.bench.as_str())
                    || is_of_types && has(&["--type uint"]) && has(&["--op min", "--op max"])
            }
            Flavour::OpenMpi => {
                let may_be_unsigned = has(&["--type uint", "--type widest"]) || !has(&["--type"]);
                accumulates && has(&["--type float-complex", "--op land", "--op lor", "--op lxor"])
                    || accumulates && may_be_unsigned && has(&["--op min", "--op max"])
                    || self.bench.starts_with("rma.get_acc_") && has(&["--datatype"])
            }
        }
    }

    /// Returns the exit code, or what is wrong. Wrong data is right if the library has a defect there.
    fn judge(&self, done: &Done, is_defective: bool) -> Result<i32, String> {
        let Some(code) = done.code else { return Err(format!("not ended after {DEADLINE:?}")) };
        // A combination that the benchmark does not have is a mistake of the command line, and 4 a row that is skipped.
        let fits = match &self.fault {
            Fault::None => [0, 2, 4].contains(&code),
            Fault::Rule(_, true) => [0, 2, 4, 5].contains(&code),
            Fault::Rule(_, false) => [0, 2, 4, 6].contains(&code),
            Fault::Signal(number, _) => [0, 2, 4, 128 + number].contains(&code),
        };
        if !(fits || is_defective && code == 5) {
            return Err(format!("exit code {code}"));
        }
        if let Some(word) =
            ["stack backtrace", "panicked", "PANIC"].iter().find(|w| done.stderr.contains(**w))
        {
            return Err(format!("shows {word:?}"));
        }
        // A signal may arrive before the process handles it.
        if ![0, 128 + self.fault.signal()].contains(&code)
            && done.stderr.trim().is_empty()
            && done.stdout.trim().is_empty()
        {
            return Err(format!("exit code {code} without a word"));
        }
        if let Some(Err(why)) = &done.out {
            return Err(format!("result file: {why}"));
        }
        match done.left.first() {
            Some(left) => Err(format!("left behind: {left}")),
            None => Ok(code),
        }
    }

    /// Leaves out options one by one while the job stays wrong.
    fn shortest(&self, stage: &Stage) -> Plan {
        let mut shortest = self.clone();
        let candidates = self.options.iter().filter(|option| *option != LIMIT);
        for option in candidates {
            let mut shorter = shortest.clone();
            shorter.options.retain(|other| other != option);
            if shorter.wrong(stage).is_err() {
                shortest = shorter;
            }
        }
        shortest
    }

    fn arguments(&self) -> String {
        format!("run {} {}", self.bench, self.options.join(" "))
    }
}

/// Returns a random size of messages.
fn random_size(rng: &mut Rng) -> u64 {
    match rng.u32(..4) {
        0 => rng.u64(1..64),
        1 => rng.u64(64..4096),
        2 => rng.u64(4096..1 << 17),
        _ => 1 << rng.u32(..21),
    }
}

impl Fault {
    fn signal(&self) -> i32 {
        if let Fault::Signal(number, _) = self { *number } else { 0 }
    }

    fn random(rng: &mut Rng, bench: &Bench, over_mpi: bool, flipped: u64) -> Fault {
        let rule = |rng: &mut Rng, what: &str| {
            let (rank, nth) = (rng.u32(..2), rng.u32(1..400));
            format!("call=*,do={what},rank={rank},nth={nth},times=1")
        };
        match rng.u32(..10) {
            0..4 => Fault::None,
            4..6 if over_mpi => {
                let ends =
                    ["exit:0", "exit:3", "abort", "segv", "kill", "error:ERR_OTHER", "raise:ERR_INTERN"];
                let how = ends[rng.usize(..ends.len())];
                Fault::Rule(rule(rng, how), false)
            }
            6..8 if over_mpi && !bench.has_one_size() => {
                Fault::Rule(format!("{},byte=0,bytes={flipped}", rule(rng, "flip")), true)
            }
            _ => {
                let signals = [Signal::TERM, Signal::INT, Signal::HUP];
                let signal = signals[rng.usize(..signals.len())];
                Fault::Signal(signal.as_raw(), Duration::from_millis(rng.u64(1..1500)))
            }
        }
    }
}

impl std::fmt::Display for Plan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ombx {} ({:?})", self.arguments(), self.fault)
    }
}

fn available_kib() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
