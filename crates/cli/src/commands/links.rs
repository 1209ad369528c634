//! `ombx links`: measures every pair of ranks, as LinkTest does.

use std::{
    path::{Path, PathBuf},
    process::Command,
    str::FromStr,
    sync::Arc,
    time::Duration,
};

use clap::Args;
use ombx_core::{
    benchmark::{
        Choice, Chosen, Depth, Medium, ParameterValue, Registry,
        memory::{BufferMemory, DEVICE, Staged},
    },
    measure::{
        plan::{LaunchSettings, Plan, RowBounds, Verify},
        session::check_combinations,
    },
};
use ombx_links::verdict::{Criteria, Expectation, FailOn, HostGroups, Reference};
use ombx_record::{
    error::{Error, Result},
    regular_file::{read_named, shown_name},
    unit,
};
use ombx_sweep::{schedule::Mode, sweep::Task};

#[cfg(feature = "mpi")]
use ombx_launch::job::accelerator;
use ombx_launch::{
    job::{
        self, Extent, Job, Work,
        launches::{Goal, LaunchCount, Launches, random_seed},
    },
    launch::{detection, finite_run, hosts::slots, preflight, start::Start},
    output::destination::{Format, LinksFiles},
    result_file, role,
};

use crate::arguments::{
    launches::{EffortArgs, Sizes},
    output::{NAGIOS, OutputArgs, some_of},
    start::StartArgs,
    values,
};

/// Benchmarks of two ranks that measure a link, over MPI and over sockets.
const OVER_MPI: &str = "p2p.link";
const OVER_SOCKETS: &str = "sockets.link";
/// Benchmark of all ranks that establishes every connection.
const ALL_TO_ALL: &str = "collective.alltoall";
/// Names of the formats of links, and their help.
const FORMATS: [(&str, &str, Format); 7] = [
    ("table", "Verdict, maps and tables for people", Format::Table),
    ("json", "Verdict with its evidence and figures of each size, as one JSON object", Format::Json),
    NAGIOS,
    ("junit", "Report for CI systems: each conclusion, and each slow part", Format::Junit),
    ("csv", "CSV, one line per link", Format::Csv),
    ("jsonl", "Lines of the result file", Format::Jsonl),
    ("openmetrics", "Text for Prometheus, for example through its textfile collector", Format::OpenMetrics),
];
/// Value of `--groups` that asks Slurm.
const SLURM: &str = "slurm";
/// Time limit of its answer.
const SCONTROL: Duration = Duration::from_secs(60);
/// Number of slowest links per size that are measured again if the user demands something of each link.
const JUDGED_AGAIN: u32 = 32;

#[derive(Debug, Clone, Args)]
pub(crate) struct LinksArgs {
    #[command(flatten)]
    pub(crate) start: StartArgs,
    /// Leave out hosts that cannot be reached, with a sentence about each
    #[arg(long, conflicts_with = "ranks", help_heading = "Ranks")]
    skip_unreachable: bool,
    /// Hosts that are left out.
    #[arg(skip)]
    left_out: Vec<String>,

    /// Connection between the ranks; all but mpi work without MPI
    #[arg(long, default_value = "mpi", value_parser = some_of(&FABRICS), help_heading = "What is measured")]
    pub(crate) fabric: Fabric,
    /// Traffic on a link
    #[arg(
        long, default_value = "semidirectional", value_parser = some_of(&PATTERNS),
        help_heading = "What is measured"
    )]
    pub(crate) pattern: &'static str,
    /// Message sizes: 8,1K,64K, 1..4M (doubling) or 1..4M:x4 (growing by 4); 1K = 1024
    #[arg(long, default_value = "8,1M", value_parser = unit::parse_sizes, help_heading = "What is measured")]
    pub(crate) sizes: Sizes,
    /// Messages back to back before the acknowledgement in the unidirectional pattern [default: 64]
    #[arg(long, value_parser = values::number::<u32>(1..=1 << 20), help_heading = "What is measured")]
    pub(crate) window: Option<u32>,
    /// Memory of the buffers of messages, such as cuda, or of sender and receiver apart, such as host:cuda; as in ombx run
    #[arg(
        long, value_name = "PLACE[:PLACE]", default_value = "host", value_parser = BufferMemory::parse,
        help_heading = "What is measured"
    )]
    pub(crate) memory: BufferMemory,
    /// Copy messages through memory of the host inside the timed region
    #[arg(long, help_heading = "What is measured")]
    pub(crate) staged: bool,
    /// Device of --memory on every host [default: number of the rank on its host, modulo the devices]
    #[arg(
        long, value_name = "NUMBER", value_parser = values::number::<u32>(0..=255),
        help_heading = "What is measured"
    )]
    pub(crate) device: Option<u32>,
    /// Measure one pair at a time while all other ranks sleep
    #[arg(long, conflicts_with_all = ["bisection", "halves"], help_heading = "What is measured")]
    pub(crate) serial: bool,
    /// Measure only the pairs of rank i and rank i + N/2, all at the same time
    #[arg(long, conflicts_with = "halves", help_heading = "What is measured")]
    pub(crate) bisection: bool,
    /// Measure only the pairs with one rank in each half of the ranks, in rounds: the bisection of LinkTest
    #[arg(long, help_heading = "What is measured")]
    pub(crate) halves: bool,
    /// Measure only K of the rounds, in which each rank has K partners: a sample of the pairs, for example: --rounds 20
    #[arg(
        long, value_name = "K", conflicts_with = "bisection",
        value_parser = values::number::<u32>(1..=u32::MAX), help_heading = "What is measured"
    )]
    pub(crate) rounds: Option<u32>,
    /// Run an MPI_Alltoall of each size before the sweep, so that every connection is established
    #[arg(long, help_heading = "What is measured")]
    pub(crate) all_to_all: bool,
    /// Permute the order of pairs with this seed, for example: --randomize 7
    #[arg(
        long, value_name = "SEED", value_parser = values::number::<u64>(0..=u64::MAX),
        help_heading = "What is measured"
    )]
    pub(crate) randomize: Option<u64>,
    /// Number of slowest links per size to measure again alone, in addition to those that stand out; 0: no link at all
    #[arg(
        long, value_name = "K", default_value_t = 4, value_parser = values::number::<u32>(0..=u32::MAX),
        help_heading = "What is measured"
    )]
    pub(crate) retest: u32,
    /// Limit that every link must keep, for example: --expect 'latency<2us' (smallest size) --expect 'bw>11GB/s' (largest size);
    /// can be repeated
    #[arg(long, value_name = "LIMIT", value_parser = Expectation::from_str, help_heading = "Verdict")]
    pub(crate) expect: Vec<Expectation>,
    /// Result of an earlier `ombx links` with which each link is compared
    #[arg(long, value_name = "FILE", help_heading = "Verdict")]
    pub(crate) reference: Option<PathBuf>,
    /// Groups of hosts that are compared with each other: a file with lines such as `rack r1: n[01-16]` or those of Slurm's
    /// topology.conf, or `slurm` to ask `scontrol show topology`
    #[arg(long, value_name = "FILE", help_heading = "Verdict")]
    pub(crate) groups: Option<PathBuf>,
    /// JUnit report to write beside what is printed; a slow part is a failure
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    junit: Option<PathBuf>,
    /// Host file to write for `mpiexec` or Slurm: the hosts in which nothing wrong was found. Of a slow link, one end is left out
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    fit: Option<PathBuf>,
    /// Host file to write, for example for `srun --exclude`: the other hosts, each behind a comment with the reason
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    unfit: Option<PathBuf>,
    /// What ends this command with a code other than 0
    #[arg(long, default_value = "slow", value_parser = some_of(&FAIL_ON), help_heading = "Verdict")]
    pub(crate) fail_on: FailOn,
    /// Show the map of the smallest size while it fills, on standard error; without a terminal, print it after each quarter of the rows
    #[arg(long, conflicts_with_all = ["quiet", "bisection"], help_heading = "Output")]
    pub(crate) follow: bool,
    /// Do not verify payloads
    #[arg(long, help_heading = "What is measured")]
    pub(crate) no_verify: bool,

    /// Start the ranks this many times, each time with other pairs at the same time; each link has the median of its launches
    #[arg(
        long, value_name = "L", default_value_t = 1, value_parser = values::number::<u32>(1..=1000),
        help_heading = "How long"
    )]
    pub(crate) launches: u32,
    /// Minimum time for measuring one row in a launch, in addition to --iterations or --precision, for example: --min-time 50ms
    #[arg(
        long, value_name = "TIME", allow_hyphen_values = true, value_parser = unit::parse_duration,
        conflicts_with = "batch", help_heading = "How long"
    )]
    pub(crate) min_time: Option<Duration>,
    #[command(flatten)]
    pub(crate) effort: EffortArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Benchmark that measures links, and the value of its parameter `transport`.
type Fabric = (&'static str, Option<&'static str>);
const MPI: Fabric = (OVER_MPI, None);
const FABRICS: [(&str, &str, Fabric); 4] = [
    ("mpi", "MPI", MPI),
    ("tcp", "TCP", (OVER_SOCKETS, Some("tcp"))),
    ("unix", "Unix-domain sockets, inside a host", (OVER_SOCKETS, Some("unix"))),
    ("udp", "UDP", (OVER_SOCKETS, Some("udp"))),
];

const FAIL_ON: [(&str, &str, FailOn); 2] = [
    (
        "slow",
        "A part at least 15 % slower than comparable ones (exit code 9), or no verdict (10)",
        FailOn::Slow,
    ),
    ("nothing", "No verdict at all", FailOn::Nothing),
];

const UNIDIRECTIONAL: &str = "unidirectional";
/// Patterns of LinkTest.
const PATTERNS: [(&str, &str, &str); 3] = [
    ("semidirectional", "One ping-pong", "semidirectional"),
    ("bidirectional", "Two ping-pongs at the same time", "bidirectional"),
    (UNIDIRECTIONAL, "Messages in one direction, then an acknowledgement", UNIDIRECTIONAL),
];

/// Changes what `ombx links` does differently from `ombx run` in the arguments that they share.
pub(crate) fn adapt_options(links: clap::Command) -> clap::Command {
    let links = ["plot", "unit", "percentiles", "fail_fast"]
        .into_iter()
        .fold(links, |links, unused| links.mut_arg(unused, |arg| arg.hide(true)))
        .mut_arg("format", |format| format.value_parser(some_of(&FORMATS)));
    links.mut_arg("max_time", |time| time.default_value("20ms")).mut_arg("ranks", |ranks| {
        ranks.help(
            "Number of ranks to start, for example: -n 4 [default: one for each host or slot, at least 2]",
        )
    })
}

/// Measures links and returns the exit code.
pub(crate) fn links(registry: &Registry, mut args: LinksArgs) -> Result<u8> {
    if args.skip_unreachable {
        let medium = if args.fabric == MPI { Medium::Mpi } else { Medium::Sockets };
        // Every mistake is found before a host is contacted.
        let job = prepare(registry, args.clone())?;
        args.left_out = preflight::left_out(&job, medium)?;
    }
    role::run(&prepare(registry, args)?)
}

/// Validates a command line and builds its job. Starts nothing.
pub(crate) fn prepare(registry: &Registry, args: LinksArgs) -> Result<Job> {
    if args.output.format == Format::Nagios && (args.fail_on == FailOn::Nothing || args.output.allow_skips) {
        return Err(Error::usage(
            "--format nagios has exit codes of its own: leave out --fail-on nothing and --allow-skips",
        ));
    }
    if args.output.plot {
        return Err(Error::usage("ombx links has no option --plot: its table is already a map"));
    }
    args.output.shown.refuse("ombx links")?;
    let start = Start { left_out: args.left_out.clone(), ..Start::from(args.start.clone()) };
    // The interesting links are those between hosts: by default there is one rank on each.
    let ranks = match start.ranks {
        Some(ranks) => ranks,
        None if detection::launcher().is_some() => 2,
        None => slots(&start)?.max(2),
    };
    if ranks < 2 {
        return Err(Error::usage(format!("-n {ranks} is too small: links need at least two ranks")));
    }
    if args.follow && detection::launcher().is_some() {
        return Err(Error::usage(
            "--follow needs ranks that ombx starts itself: leave it out, or start ombx without a launcher",
        ));
    }
    if args.window.is_some() && args.pattern != UNIDIRECTIONAL {
        return Err(Error::usage("--window needs --pattern unidirectional: add it, or leave out --window"));
    }
    let (bench, transport) = args.fabric;
    let Ok(choice) = registry.get(bench) else {
        let instead = if args.fabric == MPI { ": choose --fabric tcp, which needs no MPI" } else { "" };
        return Err(Error::usage(format!(
            "this build lacks the benchmark {bench}, which measures these links{instead}"
        )));
    };
    let mut chosen = Chosen::default();
    chosen.set("pattern", [args.pattern]);
    chosen.set("transport", transport);
    let memory = args.memory;
    if !memory.is_host() && args.fabric != MPI {
        return Err(Error::usage(format!(
            "--memory {} needs --fabric mpi: choose it, or leave out --memory",
            memory.text()
        )));
    }
    if !memory.is_host() {
        chosen.choose([memory]);
    }
    if args.staged {
        chosen.choose([Staged::On]);
    }
    let mode = match (args.serial, args.bisection, args.halves) {
        (true, ..) => Mode::Serial,
        (_, true, _) => Mode::Bisection,
        (.., true) => Mode::Halves,
        _ => Mode::Parallel,
    };
    let warm_up = warm_up(registry, &args)?;
    let (steps, rows) = mode.extent(ranks, args.sizes.len(), args.rounds);
    check_expectations(&args)?;
    if let Some(depth) = args.window {
        chosen.choose([Depth(depth)]);
    }
    if let Some(number) = args.device {
        chosen.set(DEVICE.name, [number.to_string()]);
    }
    let plan = Plan {
        sizes: Some(args.sizes.clone()),
        chosen,
        effort: args.effort.effort(),
        bounds: RowBounds { least_time: args.min_time.unwrap_or_default(), ..RowBounds::default() },
        batch: args.effort.batch,
        verify: if args.no_verify { Verify::Off } else { Verify::Sampled },
        ..Plan::default()
    };
    check_combinations(choice, &plan)?;
    #[cfg(feature = "mpi")]
    accelerator::check(&plan, detection::launcher().is_some() || start.are_all_here())?;
    let reference = reference(&args)?;
    let groups = groups(&args)?;
    // A demand on each link needs a second measurement of more than the slowest few.
    let demands = !args.expect.is_empty() || args.reference.is_some();
    let retest = if demands && args.retest > 0 { args.retest.max(JUDGED_AGAIN) } else { args.retest };
    let criteria = Criteria {
        expectations: args.expect,
        reference,
        fail_on: args.fail_on,
        groups,
        left_out: args.left_out,
    };
    let launches = Launches {
        count: LaunchCount::Fixed(args.launches),
        goal: Goal::USUAL,
        seed: args.randomize.unwrap_or_else(random_seed),
    };
    let task = Task { choice, mode, rounds: args.rounds, seed: args.randomize, retest, warm_up, criteria };
    let extent = Extent { ranks, rows, time: job::rows_time_limit(&plan, steps), left_out: 0 };
    let reference = args.reference.map(|path| ("the reference that is read", path));
    let groups = args.groups.filter(|path| *path != Path::new(SLURM));
    let groups = groups.map(|path| ("the file of groups that is read", path));
    let read_from = reference.into_iter().chain(groups).collect();
    let LinksArgs { output, junit, fit, unfit, .. } = args;
    let output = output.of_links(args.follow, LinksFiles { junit, fit, unfit })?;
    Ok(Job {
        start,
        output,
        settings: LaunchSettings::default(),
        work: Work::Links(task, Box::new(plan)),
        extent,
        launches,
        read_from,
        against: None,
    })
}

/// Returns the benchmark that `--all-to-all` runs before the sweep.
fn warm_up(registry: &Registry, args: &LinksArgs) -> Result<Option<Choice>> {
    if !args.all_to_all {
        return Ok(None);
    }
    if args.fabric != MPI {
        return Err(Error::usage(
            "--all-to-all needs --fabric mpi: sockets are connected anew for each row, so leave it out",
        ));
    }
    let lacks = |_| Error::usage(format!("--all-to-all: this build lacks {ALL_TO_ALL}"));
    registry.get(ALL_TO_ALL).map(Some).map_err(lacks)
}

/// Fails if an expectation limits a figure that the run does not measure.
fn check_expectations(args: &LinksArgs) -> Result<()> {
    for expectation in &args.expect {
        if expectation.is_latency() && args.pattern == UNIDIRECTIONAL {
            return Err(Error::usage(format!(
                "--expect '{expectation}': the unidirectional pattern measures no latency: leave out \
                 --pattern, or expect a bandwidth"
            )));
        }
        if !expectation.is_latency() && args.sizes.iter().all(|bytes| bytes.0 == 0) {
            return Err(Error::usage(format!(
                "--expect '{expectation}': messages of 0 bytes have no bandwidth: give a larger one by --sizes"
            )));
        }
    }
    Ok(())
}

/// Reads the groups of hosts: in the launching process, or in rank 0 of the user's launcher.
fn groups(args: &LinksArgs) -> Result<HostGroups> {
    let wrong = |why: String| Error::usage(format!("--groups: {why}"));
    let read = args.groups.as_ref().filter(|_| detection::is_first_process());
    let Some(path) = read else { return Ok(HostGroups::default()) };
    let name = shown_name(path);
    let text = match name.as_str() {
        SLURM => topology().map_err(wrong)?,
        _ => read_named(path).map_err(|e| wrong(format!("cannot read {name}: {e}")))?,
    };
    text.parse().map_err(|why| wrong(format!("{name}: {why}")))
}

/// Returns the topology that Slurm knows.
fn topology() -> std::result::Result<String, String> {
    let advice = "give a file of groups";
    let mut command = Command::new("scontrol");
    command.args(["show", "topology"]);
    let ([text, words], status) =
        finite_run::run(command, SCONTROL, || false).map_err(|e| format!("{e}; {advice}"))?;
    if status.success() {
        Ok(text)
    } else {
        let words = words.trim().replace('\n', "; ");
        Err(format!("`scontrol show topology` failed: {words}; {advice}"))
    }
}

/// Reads the reference where results are written: in the launching process, or in rank 0 of the user's launcher.
fn reference(args: &LinksArgs) -> Result<Option<Arc<Reference>>> {
    let Some(path) = &args.reference else { return Ok(None) };
    if !detection::is_first_process() {
        return Ok(None);
    }
    let file = result_file::read(path).map_err(|e| Error::usage(format!("--reference: {e}")))?;
    let (_, transport) = args.fabric;
    let name = path.display().to_string();
    let memory = args.memory.text();
    let choices = [
        ("pattern", Some(args.pattern)),
        ("transport", transport),
        ("memory", Some(memory.as_str()).filter(|_| !args.memory.is_host())),
        ("staged", args.staged.then_some("on")),
    ];
    let reference = Reference::from_runs(&name, &file.runs, &choices, &args.sizes);
    reference
        .map(|reference| Some(Arc::new(reference)))
        .map_err(|why| Error::usage(format!("--reference: {why}")))
}
