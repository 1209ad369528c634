//! `ombx run`: measures benchmarks.

use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    time::Duration,
};

use clap::{Arg, ArgMatches, Args, Command, parser::ValueSource};
use ombx_core::{
    benchmark::{
        ALIGNMENT, Choice, Chosen, Depth, Groups, Initialization, PairCount, ParameterValue, Registry, Root,
        Streams, Threading, Threads,
        memory::{CACHE_SIZE, Cache},
    },
    measure::{
        plan::{Effort, LaunchSettings, Plan, RowBounds, Under, Verify},
        runner::Part,
        session::{check_combinations, streams},
    },
    two_sided::request::Rate,
};
use ombx_estimate::percentiles::Percentiles;
use ombx_host::performance::kernel_meter;
use ombx_launch::{
    job::{self, Extent, Job, Work, launches::Launches, rank_job::parse_settings, selection},
    launch::{detection, mpiexec, start::Start},
    note_line, result_file,
};
use ombx_record::{
    error::{Error, Result},
    event::Event,
    order::each_once,
    result::Run,
    unit,
};

use crate::{
    arguments::{
        argv,
        launches::{EffortArgs, LaunchesArgs, Sizes},
        output::OutputArgs,
        parameters::{self, unsupported},
        start::{ConnectArgs, StartArgs},
        values,
    },
    lookup, suite,
};

/// Validates a command line and builds its job. Starts nothing.
pub(crate) fn prepare(
    registry: &Registry,
    command: &Command,
    matches: &ArgMatches,
    mut args: RunArgs,
    chosen: Chosen,
) -> Result<Job> {
    check_effects(matches, &args)?;
    let connect = std::mem::take(&mut args.connect);
    let is_connected = connect.connect.is_some();
    if let Some(suite) = suite::named(command, &args.patterns)? {
        if is_connected {
            return Err(Error::usage(
                "--connect is for benchmarks, not for suites: give their names, such as 'sockets.*'",
            ));
        }
        let file = suite.path().map(|path| ("the suite that is read", path));
        let mut suite = suite.resolve(registry, command, Some(matches))?;
        if detection::launcher().is_some() {
            // What a suite says about starting ranks is for ombx, not for a launcher of the user.
            (suite.args.start.ranks, suite.args.start.bind) = (args.start.ranks, args.start.bind);
        }
        let parts = suite.parts.into_iter().map(|(_, part)| part).collect();
        return job(suite.args, suite.ranks, parts, file);
    }
    let choices = lookup::benchmarks(registry, &args.patterns);
    let mut choices = choices.map_err(|e| after_list(registry, matches, &args.patterns, e))?;
    if is_connected {
        choices = selection::over_sockets(choices)?;
    }
    let plan = plan(&args, chosen, &choices)?;
    check_window(&choices, &plan)?;
    check_interval(&choices, &plan)?;
    let ranks = ranks(&args, &choices, &plan);
    if is_connected && ranks != 2 {
        return Err(Error::usage(format!(
            "--connect has two ranks, one on each host, but this job needs {ranks}: leave out -n, --pairs and --under"
        )));
    }
    let mut job = job(args, ranks, vec![Part { choices, plan }], None)?;
    if let ConnectArgs { connect: Some(server), token_file } = connect {
        job.start.connect(server, token_file);
    }
    Ok(job)
}

/// Options with lists, whose values must not be separated by blanks.
const LISTS: [&str; 4] = ["hosts", "sizes", "under", "percentiles"];

/// Returns the error about a word that names no benchmark. If it follows the value of a list, a comma may be missing.
pub(crate) fn after_list(
    registry: &Registry,
    matches: &ArgMatches,
    patterns: &[String],
    error: Error,
) -> Error {
    let is_wrong = |pattern: &String| pattern.split(',').any(|name| lookup::find(registry, name).is_err());
    let Some(wrong) = patterns.iter().position(is_wrong).filter(|at| !patterns[*at].contains('.')) else {
        return error;
    };
    let at = matches.indices_of("patterns").and_then(|mut indices| indices.nth(wrong));
    let is_before = |list: &&&str| {
        let indices = matches.try_contains_id(list).unwrap_or(false).then(|| matches.indices_of(list));
        indices.flatten().into_iter().flatten().any(|index| Some(index + 1) == at)
    };
    let Some(list) = LISTS.iter().find(is_before) else { return error };
    let typed = matches.get_raw(list).into_iter().flatten().map(OsStr::to_string_lossy);
    let (typed, word) = (typed.collect::<Vec<_>>().join(","), &patterns[wrong]);
    // A size may have a blank before its unit. A word that starts with a digit is another size.
    let is_unit = *list == "sizes"
        && !word.starts_with(|first: char| first.is_ascii_digit())
        && unit::parse_sizes(&format!("{typed}{word}")).is_ok();
    let meant = if is_unit { format!("{typed}{word}") } else { format!("{typed},{word}") };
    Error::usage(format!(
        "{error}; values of --{list} have a comma between them and no blank: --{list} {meant}"
    ))
}

/// Rejects options of the command line that would have no effect beside the others.
fn check_effects(matches: &ArgMatches, args: &RunArgs) -> Result<()> {
    let typed = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
    let LaunchesArgs { launches, quick, .. } = args.launches;
    if args.launch_settings.is_some() {
        return Ok(());
    }
    let launched = detection::launcher().is_some();
    if let Some(option) = ["budget", "seed"].into_iter().find(|option| launched && typed(option)) {
        return Err(Error::usage(format!(
            "a launcher has already started these ranks, once: leave out --{option}, which is for several launches"
        )));
    }
    // One launch ends each row at the precision; an open number of launches ends at it.
    let unused = if quick || launched || launches == Some(1) {
        args.effort.iterations.map(|_| "--iterations").or(args.duration.map(|_| "--duration"))
    } else {
        launches.map(|_| "--launches")
    };
    match unused.filter(|_| typed("precision")) {
        Some(fixed) => Err(Error::usage(format!(
            "--precision decides how much is measured, which {fixed} fixes: leave out one of them"
        ))),
        None => Ok(()),
    }
}

/// Returns the job of arguments and plans after finding what contradicts.
pub(crate) fn job(
    args: RunArgs,
    ranks: u32,
    parts: Vec<Part>,
    read_from: Option<(&'static str, PathBuf)>,
) -> Result<Job> {
    let start = Start::from(args.start);
    selection::check_ranks(start.ranks, &parts)?;
    let parts = args.from.map_or(Ok(parts.clone()), |first| selection::from(parts, first))?;
    if args.connect.connect.is_some() {
        return Err(Error::usage("--connect is an option of the command line, not of suites"));
    }
    let output = args.output.of_rows()?;
    let left_out = args.from.map_or(0, |first| first as usize - 1);
    for Part { choices, plan } in &parts {
        choices.iter().try_for_each(|choice| check_combinations(*choice, plan))?;
    }
    let extent = Extent { left_out, ..job::extent(&start, &parts, ranks)? };
    let is_of_one_launch = parts.iter().any(|part| part.plan.chosen.has(&ALIGNMENT));
    let launches = match args.launch_settings {
        Some(_) => Launches::ONE,
        None if is_of_one_launch && args.launches.several() => {
            return Err(Error::usage(
                "--alignment counts messages from another place in each launch: leave out --launches and --budget",
            ));
        }
        None if is_of_one_launch => {
            let is_chosen = args.launches.quick || args.launches.launches == Some(1);
            if let Some(note) = one_launch_of_all(&parts)
                && !is_chosen
                && detection::launcher().is_none()
            {
                note_line!("ombx: {note}");
            }
            Launches::ONE
        }
        None => args.launches.launches(args.effort.precision),
    };
    if launches.chosen() == Some(1) && args.launches.budget.is_some() {
        return Err(Error::usage("--budget is for several launches: leave it out for one launch"));
    }
    if args.launches.seed.is_some() && launches.is_one() {
        return Err(Error::usage(
            "--seed chooses the order of several launches: leave it out for one launch",
        ));
    }
    let RunArgs { launch_settings, against, .. } = args;
    if let Some(path) = against.as_ref().filter(|path| !path.exists()) {
        return Err(Error::usage(format!(
            "--against {}: there is no such file or directory of earlier results",
            path.display()
        )));
    }
    if against.is_some() && launches.is_one() {
        return Err(Error::usage(
            "--against needs several launches, between which runs differ: leave out --quick or --launches 1",
        ));
    }
    let (work, read_from) = (Work::Benchmarks(parts), read_from.into_iter().collect());
    let settings = launch_settings.unwrap_or_default();
    Ok(Job { start, output, settings, work, extent, launches, read_from, against })
}

/// Returns why all parts have one launch, if some of them could have several.
fn one_launch_of_all(parts: &[Part]) -> Option<String> {
    let (aligned, others): (Vec<&Part>, Vec<&Part>) =
        parts.iter().partition(|part| part.plan.chosen.has(&ALIGNMENT));
    let names = aligned.iter().flat_map(|part| &part.choices).map(|choice| choice.bench.name);
    let names = each_once(names).join(", ");
    (!others.is_empty()).then(|| {
        format!(
            "the ranks start once, also for benchmarks without --alignment, because --alignment of {names} counts messages \
             from another place in each launch: run it alone, and the others have several launches"
        )
    })
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Names, globs such as 'rma.*', OSU names such as osu_put_bw, or one suite: suite:smoke, my.toml
    #[arg(value_name = "BENCHMARK")]
    pub(crate) patterns: Vec<String>,
    /// Repeat the run of this result file
    ///
    /// Its benchmarks and options hold, except those given here; the order is random.
    #[arg(long, value_name = "FILE", help_heading = "What is measured")]
    pub(crate) like: Option<PathBuf>,
    /// Begin with the benchmark of this number, from 1, in the order of measuring; a failed run prints it
    #[arg(long, value_name = "N", value_parser = values::number::<u32>(1..=1 << 20), help_heading = "What is measured")]
    pub(crate) from: Option<u32>,

    #[command(flatten)]
    pub(crate) start: StartArgs,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,

    /// Message sizes: 8,1K,64K or 1..4M (doubling); 1K = 1024
    ///
    /// K, KB, KiB: 1024 bytes. 1..4M:x4 grows by a factor of 4. [default: the benchmark's]
    #[arg(long, value_parser = unit::parse_sizes, help_heading = "What is measured")]
    pub(crate) sizes: Option<Sizes>,
    /// Load on other ranks: a benchmark that they repeat
    ///
    /// Its messages have 4K bytes; p2p.bw:64K has others. A+B is both at once, A,B makes a row of each. Rows beside the load `nothing` have impact factors.
    #[arg(long, value_name = "LOAD", value_delimiter = ',', help_heading = "What is measured")]
    pub(crate) under: Vec<Under>,
    /// Iterations to verify, outside the timed region: some, or as many as are timed
    #[arg(
        long, value_name = "sampled|full", default_value = "sampled", value_parser = Verify::parse,
        help_heading = "What is measured"
    )]
    pub(crate) verify: Verify,
    /// Do not verify payloads
    #[arg(long, conflicts_with = "verify", help_heading = "What is measured")]
    pub(crate) no_verify: bool,

    /// Count instructions, cycles, misses, branches, page faults and context switches of ranks per operation
    ///
    /// What the kernel does not count is unavailable.
    #[arg(long, help_heading = "What is measured")]
    pub(crate) counters: bool,

    #[command(flatten)]
    pub(crate) launches: LaunchesArgs,
    /// Measure each row for this time in each launch, whatever its precision, as iperf3 -t, for example: --quick --duration 10s
    #[arg(
        long, value_name = "TIME", allow_hyphen_values = true, value_parser = unit::parse_duration,
        conflicts_with_all = ["iterations", "max_time"], help_heading = "How long"
    )]
    pub(crate) duration: Option<Duration>,
    /// Print the figure of the running row after each such time of sampling, as iperf3 -i, but not with --rate: on standard error, with --format jsonl on standard output
    #[arg(
        long, value_name = "TIME", allow_hyphen_values = true, value_parser = unit::parse_duration,
        conflicts_with = "quiet", help_heading = "Output"
    )]
    pub(crate) interval: Option<Duration>,
    /// Earlier runs, from which the interval of the next run comes: a result file or a directory of them [default: the 20 newest files in the
    /// directory of -o]
    #[arg(long, value_name = "PATH", help_heading = "Output")]
    pub(crate) against: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) effort: EffortArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    /// What `ombx ab` gives to each launch
    #[arg(long, hide = true, value_name = "WORD", value_parser = parse_settings)]
    pub(crate) launch_settings: Option<LaunchSettings>,
}

/// Option that repeats an earlier run.
const LIKE: &str = "--like";
/// Argument that names benchmarks.
const PATTERNS: &str = "patterns";
/// Heading of options that say where rows go, which a repeated run does not take over.
pub(crate) const OUTPUT: &str = "Output";
/// Options of output that say how figures are shown.
const SHOWN: [&str; 3] = ["unit", "percentiles", "plot"];

/// Returns the words with the benchmarks and options of an earlier run in place of `--like FILE`. Other command lines stay.
///
/// # Errors
/// The file cannot be read, or its run is not one of `ombx run` that this ombx can repeat.
pub(crate) fn expanded(parser: &Command, words: Vec<OsString>) -> Result<Vec<OsString>> {
    if words.get(1).is_none_or(|word| word != "run") {
        return Ok(words);
    }
    let Some((path, own)) = separated(&words) else { return Ok(words) };
    let path = Path::new(&path);
    let argv = first_run(path)?.argv;
    let wrong = |why: &str| {
        let command = argv.join(" ");
        Error::usage(format!("--like {}: {why}. Its command was: {command}", path.display()))
    };
    if argv.get(1).is_none_or(|word| word != "run") {
        return Err(wrong("only results of ombx run can be repeated so"));
    }
    let parsed = |words: Vec<OsString>| {
        let matches = parser.clone().try_get_matches_from(words).ok()?;
        matches.subcommand_matches("run").cloned()
    };
    let Some(old) = parsed(argv.iter().map(OsString::from).collect()) else {
        return Err(wrong("this ombx does not know all of its options"));
    };
    // The parser reports mistakes of the user.
    let (Some(new), Some(run)) = (parsed(own.clone()), parser.find_subcommand("run")) else { return Ok(own) };
    Ok(merged(run, &old, &new, &own))
}

/// Returns the value of `--like`, and the words without it.
fn separated(words: &[OsString]) -> Option<(OsString, Vec<OsString>)> {
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let attached =
        |word: &OsString| word.to_str().and_then(|word| word.strip_prefix("--like=")).map(OsString::from);
    let at = words[..end].iter().position(|word| word == LIKE || attached(word).is_some())?;
    let (path, count) = match attached(&words[at]) {
        Some(path) => (path, 1),
        None => (words[..end].get(at + 1)?.clone(), 2),
    };
    Some((path, [&words[..at], &words[at + count..]].concat()))
}

fn first_run(path: &Path) -> Result<Run> {
    let named = |why: &dyn std::fmt::Display| Error::storage(format!("--like {}: {why}", path.display()));
    for record in result_file::records(path)? {
        if let Event::Run(run) = record.map_err(|e| named(&e))? {
            return Ok(run.into_owned());
        }
    }
    Err(named(&"the file has no run"))
}

/// Returns the command line of the old run with the options that the new one has, and its benchmarks if it names any.
fn merged(run: &Command, old: &ArgMatches, new: &ArgMatches, own: &[OsString]) -> Vec<OsString> {
    let kept = argv::given_options(run, old).filter(|(arg, _)| is_kept(arg, run, new));
    let kept = kept.flat_map(|(_, words)| words);
    let patterns = |matches: &ArgMatches| {
        let patterns = matches.get_many::<String>(PATTERNS).into_iter().flatten();
        patterns.map(OsString::from).collect::<Vec<_>>()
    };
    let changed = argv::given_options(run, new).flat_map(|(_, words)| words);
    let named = Some(patterns(new)).filter(|named| !named.is_empty()).unwrap_or_else(|| patterns(old));
    let dashes = if named.is_empty() { None } else { Some(OsString::from("--")) };
    own[..2].iter().cloned().chain(kept).chain(changed).chain(dashes).chain(named).collect()
}

/// Returns whether the new run has an option of the old one: not if it is hidden or replaced by a new option, and of those for
/// output only if it is in [`SHOWN`].
fn is_kept(arg: &Arg, run: &Command, new: &ArgMatches) -> bool {
    let is_given = |arg: &Arg| new.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine);
    let is_output = arg.get_help_heading() == Some(OUTPUT) && !SHOWN.contains(&arg.get_id().as_str());
    let is_replaced = run
        .get_arguments()
        .filter(|other| is_given(other))
        .any(|other| other.get_id() == arg.get_id() || argv::exclude_each_other(run, arg, other));
    !arg.is_hide_set() && !is_output && !is_replaced
}

/// Returns the plan after checking the arguments against the benchmarks.
pub(crate) fn plan(args: &RunArgs, chosen: Chosen, choices: &[Choice]) -> Result<Plan> {
    // `ombx run` replaces the option by those of the file.
    if args.like.is_some() {
        return Err(Error::usage("--like is for ombx run alone: repeat the run by ombx run --like FILE"));
    }
    parameters::check(&chosen, choices)?;
    if args.sizes.is_some() && !choices.iter().any(|c| c.bench.messages.sized) {
        return Err(unsupported("sizes", choices));
    }
    let is_matched =
        |choice: &&Choice| choice.bench.threads_of(&Plan::default()).is_some_and(Threads::is_one_number);
    let mut threads = chosen.texts(Threads::PARAMETER).iter().filter_map(|text| text.get::<Threads>());
    let has_roles = threads.any(|threads| !threads.is_one_number());
    if let Some(choice) = choices.iter().find(is_matched).filter(|_| has_roles) {
        return Err(Error::usage(format!(
            "--threads: {} has as many threads on every rank: give one number, such as --threads 4",
            choice.bench.name
        )));
    }
    let groups: Groups = chosen.get();
    if !groups.is_one() && !args.under.is_empty() {
        return Err(Error::usage(
            "--groups divides all ranks, but a load needs some of them: leave out --groups",
        ));
    }
    if chosen.has(&CACHE_SIZE) && !chosen.includes(Cache::Cold) {
        return Err(Error::usage("--cache-size needs --cache cold: add it, or leave out --cache-size"));
    }
    if chosen.texts(Initialization::PARAMETER).len() > 1 || chosen.texts(Threading::PARAMETER).len() > 1 {
        return Err(Error::usage(
            "--init and --threading: a job initialises MPI once, give one value of each",
        ));
    }
    if chosen.includes(Initialization::Session) {
        mpiexec::sessions_exist()?;
    }
    lookup::check_load(&args.under, choices)?;
    if chosen.names().any(|name| name == "remote-shell") && args.start.are_here() {
        return Err(Error::usage(
            "--remote-shell starts nodes on other hosts, but all nodes are on this one: name other hosts \
             with --hosts, or leave out --remote-shell",
        ));
    }
    if let Some(ranks) = args.start.ranks {
        let count = groups.count();
        if groups.divide(ranks).is_err() {
            let least = groups.ranks_wanted(1);
            return Err(Error::usage(format!(
                "--groups {count} needs {least} ranks or a larger multiple of {count}, but -n gives {ranks}"
            )));
        }
        let root = chosen.chosen().map(Root::first);
        if let Some(root) = root.filter(|root| root.0 >= groups.size_of_each(ranks)) {
            let last = groups.size_of_each(ranks) - 1;
            let of_each = if groups.is_one() { String::new() } else { format!(" in each of {count} groups") };
            return Err(Error::usage(format!(
                "--root {root} is not a rank: -n {ranks} gives ranks 0 to {last}{of_each}"
            )));
        }
        let is_too_many = |PairCount(pairs): &PairCount| u64::from(*pairs) * 2 > u64::from(ranks);
        if let Some(PairCount(pairs)) = chosen.chosen().filter(is_too_many) {
            let needed = u64::from(pairs) * 2;
            return Err(Error::usage(format!("--pairs {pairs} needs {needed} ranks, but -n gives {ranks}")));
        }
    }
    Ok(Plan {
        sizes: args.sizes.clone(),
        chosen,
        effort: match args.duration {
            Some(time) => Effort::Time(time),
            None => args.effort.effort(),
        },
        interval: args.interval,
        counters: args.counters.then_some(kernel_meter),
        bounds: RowBounds {
            least_time: args.duration.unwrap_or_default(),
            least_tail: args.output.shown.percentiles.as_ref().map_or(0, Percentiles::samples),
            ..RowBounds::default()
        },
        batch: args.effort.batch,
        under: args.under.clone(),
        verify: if args.no_verify { Verify::Off } else { args.verify },
        ..Plan::default()
    })
}

/// Rejects a window that no case of the plan has, although one of its benchmarks can. Options of a suite may override each other so.
pub(crate) fn check_window(choices: &[Choice], plan: &Plan) -> Result<()> {
    let only = choices.iter().find_map(|choice| match choice.bench.own.streams {
        Streams::Only(parameter, value) => Some((parameter, value)),
        Streams::Never | Streams::Always => None,
    });
    let is_useless =
        || plan.chosen.has(Depth::PARAMETER) && !choices.iter().any(|choice| streams(*choice, plan));
    match only.filter(|_| is_useless()) {
        Some((parameter, value)) => {
            let name = parameter.name;
            Err(Error::usage(format!("--window needs --{name} {value}: add it, or leave out --window")))
        }
        None => Ok(()),
    }
}

/// Rejects intervals if no benchmark has any. Entries of a suite may have none.
fn check_interval(choices: &[Choice], plan: &Plan) -> Result<()> {
    let has_schedule = |choice: &Choice| choice.bench.parameter(Rate::PARAMETER.name).is_some();
    match choices.first().filter(|_| plan.interval.is_some() && choices.iter().all(has_schedule)) {
        Some(choice) => Err(Error::usage(format!(
            "--interval: {} sends at scheduled times, and its figures are known when all have passed: \
             leave out --interval",
            choice.bench.name
        ))),
        None => Ok(()),
    }
}

/// Returns the number of ranks to start: the user's, or what the most demanding benchmark needs.
pub(crate) fn ranks(args: &RunArgs, choices: &[Choice], plan: &Plan) -> u32 {
    let needed = choices.iter().map(|c| c.bench.ranks.layout.ranks_wanted(plan.pairs())).max().unwrap_or(1);
    let of_load = Under::least_ranks(&args.under);
    let rooted = plan.chosen.chosen::<Root>().map_or(1, |root| root.first().0.saturating_add(1));
    let groups: Groups = plan.chosen.get();
    let wanted = needed.max(groups.ranks_wanted(rooted));
    let equal = wanted.checked_next_multiple_of(groups.count()).unwrap_or(u32::MAX);
    args.start.ranks.unwrap_or(equal.saturating_add(of_load))
}

/// Suite that runs if no benchmark is named.
const CONGESTION: &str = "suite:congestion";
/// Loads of named benchmarks, as in the suite.
const CONGESTION_LOADS: &str =
    "nothing,p2p.fan_in,collective.alltoall,rma.put_incast,collective.bcast,p2p.bw:128K,nothing";
/// The same of benchmarks over sockets: how much a link that is full delays others.
const CONGESTION_LOADS_OF_SOCKETS: &str = "nothing,sockets.bw:1M,nothing";

/// Returns the arguments with what the user did not choose.
pub(crate) fn with_congestion_defaults(mut args: RunArgs) -> Result<RunArgs> {
    if args.patterns.is_empty() {
        args.patterns.push(CONGESTION.into());
    } else if args.under.is_empty() && !args.patterns.iter().any(|pattern| suite::is_suite(pattern)) {
        let are_sockets = args.patterns.iter().all(|pattern| pattern.starts_with("sockets."));
        let loads = if are_sockets { CONGESTION_LOADS_OF_SOCKETS } else { CONGESTION_LOADS };
        args.under = loads.split(',').map(str::parse).collect::<Result<Vec<Under>>>()?;
    }
    Ok(args)
}

#[cfg(test)]
mod tests {
    use ombx_core::benchmark::Registry;

    use super::*;
    use crate::commands;

    const GOLDEN: &str = include_str!("../../../record/tests/golden/one_launch.jsonl");

    #[cfg(all(feature = "mpi", feature = "sockets"))]
    #[test]
    fn a_run_is_repeated_with_what_is_changed() {
        let parser = commands::parser(&Registry::load().unwrap());
        let words = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("r.jsonl");
        let like = |command: &str, line: &str| -> Result<String> {
            let first = GOLDEN.lines().next().unwrap();
            let mut run: serde_json::Value = serde_json::from_str(first).unwrap();
            run["argv"] = serde_json::json!(command.split(' ').collect::<Vec<_>>());
            run.as_object_mut().unwrap().remove("checksum");
            std::fs::write(&path, format!("{run}\n")).unwrap();
            let line = line.replace("FILE", path.to_str().unwrap());
            let words = expanded(&parser, words(&line))?;
            Ok(words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" "))
        };
        let old = "ombx run p2p.latency --sizes 8,64 --launches 3 -o old.jsonl -q";
        for (line, expected) in [
            ("ombx run --like FILE", "ombx run --sizes=8,64 --launches=3 -- p2p.latency"),
            (
                "ombx run --like=FILE --sizes 1K -o new.jsonl",
                "ombx run --launches=3 --sizes=1K --output=new.jsonl -- p2p.latency",
            ),
            ("ombx run --like FILE --quick p2p.bw", "ombx run --sizes=8,64 --quick -- p2p.bw"),
            ("ombx run p2p.latency", "ombx run p2p.latency"),
        ] {
            assert_eq!(like(old, line).unwrap(), expected, "{line}");
        }
        let refused = like("ombx links -n 2", "ombx run --like FILE").unwrap_err().to_string();
        assert!(
            refused.contains("only results of ombx run") && refused.contains("ombx links -n 2"),
            "{refused}"
        );
    }

    #[test]
    fn the_suite_has_the_same_loads() {
        let quoted: String = CONGESTION_LOADS.split(',').map(|load| format!("{load:?}, ")).collect();
        let line = format!("under = [{}]", quoted.trim_end_matches(", "));
        assert!(include_str!("../../suites/congestion.toml").contains(&line), "{line}");
    }
}
