//! `ombx ab`: two commands that run ombx measure alternately, and are compared.

mod interruption;
mod schedule;
mod side;

use std::{ffi::OsString, time::Duration};

use clap::{ArgMatches, Args, parser::ValueSource};
use ombx_core::{
    benchmark::{Chosen, Registry, payload::Check},
    error::{Error, Result},
    exit::Exit,
    measure::{
        plan::{Effort, KnownBatches, Launch, Rest, RowName},
        runner::Part,
    },
    result::Outcome,
    system::clock::Since,
};
use ombx_results::{
    compare::{Comparison, SideResults, Turn},
    estimate::{self, Cases, Group},
    file::{self, Record},
    render::compare::summary,
};

use super::{
    compare::{GateArgs, conclude},
    run::{after_list, arguments::RunArgs, plan},
};
use crate::{
    arguments::{given, launches, output::OutputArgs, role, start::Launcher},
    job::selection,
    launch::{detection, preflight},
    output::target::ResultTarget,
};
use interruption::Interruption;
use schedule::{MOST_LAUNCHES, Schedule};
use side::{Ended, SideCommand, Variable};

#[derive(Debug, Args)]
pub(crate) struct AbArgs {
    /// Base side: a build of ombx with its MPI library, by path or in PATH, or a command line that starts one [default: this ombx]
    #[arg(long, value_name = "COMMAND", help_heading = "Sides")]
    a: Option<String>,
    /// New side, like --a [default: this ombx]
    #[arg(long, value_name = "COMMAND", help_heading = "Sides")]
    b: Option<String>,
    /// Environment variable of the base side; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = Variable::parse, help_heading = "Sides")]
    env_a: Vec<Variable>,
    /// Environment variable of the new side; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = Variable::parse, help_heading = "Sides")]
    env_b: Vec<Variable>,
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    gate: GateArgs,
}

/// Time for all launches of both sides, if the user gives none.
const BUDGET: Duration = Duration::from_secs(60);
/// Options of `ab` itself. Each launch gets all others.
const OF_AB: [&str; 20] = [
    "a",
    "b",
    "env_a",
    "env_b",
    "budget",
    "margin",
    "fail_on",
    "undecided",
    "junit",
    "markdown",
    "names",
    "out",
    "force",
    "append",
    "launches",
    "seed",
    "against",
    "format",
    "color",
    "launch",
];

pub(crate) fn ab(
    registry: &Registry,
    parser: &clap::Command,
    matches: &ArgMatches,
    args: AbArgs,
    chosen: Chosen,
) -> Result<u8> {
    let AbArgs { a, b, env_a, env_b, run, gate } = args;
    if matches.value_source("precision") == Some(ValueSource::CommandLine) {
        return Err(Error::usage(
            "ombx ab has no option --precision: it ends when each case is decided within --margin, or at --budget",
        ));
    }
    if run.output.file.is_stdout() {
        return Err(Error::usage(
            "ombx ab writes a file for each side: give a name after -o, as in -o ab.jsonl",
        ));
    }
    run.output.shown.refuse("ombx ab")?;
    if run.against.is_some() {
        return Err(Error::usage("ombx ab has no option --against: it compares its two sides"));
    }
    if run.start.rendezvous.is_some() {
        return Err(Error::usage("ombx ab has no option --rendezvous: it starts its own ranks"));
    }
    if run.start.launcher == Launcher::Auto
        && let Some(started) = detection::launcher()
    {
        return Err(Error::usage(format!(
            "ombx ab starts its own ranks: start it without {}, once, and choose their number with -n",
            started.launcher
        )));
    }
    if a.is_none() && b.is_none() && env_a.is_empty() && env_b.is_empty() {
        return Err(Error::usage("nothing differs: give --b COMMAND, or variables with --env-b NAME=VALUE"));
    }
    let choices = selection::benchmarks(registry, &run.patterns);
    let choices = choices.map_err(|e| after_list(registry, matches, &run.patterns, e))?;
    let plan = plan::plan(&run, chosen, &choices)?;
    let (effort, ranks) = (plan.effort, plan::ranks(&run, &choices, &plan));
    for choice in &choices {
        preflight::check(&run.start, ranks, choice.bench.ranks.medium)?;
    }
    selection::check_ranks(run.start.ranks, &[Part { choices, plan }])?;
    let words = words_of_launches(parser, matches, &run);
    let [label_a, label_b] = gate.labels(["A", "B"]);
    let commands = [SideCommand::of(a.as_deref(), env_a)?, SideCommand::of(b.as_deref(), env_b)?];
    let mut results = [
        SideResults::named(commands[0].to_string()).labelled(label_a),
        SideResults::named(commands[1].to_string()).labelled(label_b),
    ];
    let mut files = side::result_files(&run.output.file)?;

    let fixed = if run.launches.quick { Some(1) } else { run.launches.launches };
    let seed = run.launches.seed();
    // Files keep turns, and turns of different comparisons are none.
    let name = format!("{:016x}", launches::random_seed());
    let mut schedule = Schedule::new(fixed, run.launches.budget.unwrap_or(BUDGET));
    if !run.output.quiet {
        stderr_line!("ombx: {schedule}, in random order, seed {seed}");
    }
    let settings = gate.settings();
    let interruption = Interruption::watch()?;
    let (since, mut worst, mut stopped) = (Since::now(), 0, None);
    let mut cases = [Cases::default(), Cases::default()];
    let mut batches = KnownBatches::default();
    // Cases that have ended the ranks of each side.
    let mut rests = [Rest::default(), Rest::default()];
    for number in 1.. {
        let launch = Launch {
            number,
            of: fixed.unwrap_or(MOST_LAUNCHES),
            order: seed.wrapping_add(u64::from(number)),
        };
        // Each turn has both sides: a drift of the machine affects both alike.
        let mut turn = [Vec::new(), Vec::new()];
        let row_time = row_time(effort, &cases, since.elapsed());
        for side in launch.arrange(vec![0usize, 1]) {
            if run.output.verbose {
                stderr_line!("ombx: launch {number} of {}", commands[side]);
            }
            let words = words_of_launch(launch, row_time, &batches, &rests[side], &words);
            let place = Turn { of: name.clone(), number, is_open: fixed.is_none() };
            match commands[side].launch(&words, &place, files[side].as_mut(), &interruption)? {
                Ended::Complete(code, records) => {
                    worst = worst.max(code);
                    records.iter().for_each(|record| cases[side].record(record));
                    rests[side].left_out.extend(records.iter().filter_map(ended_early));
                    if batches == KnownBatches::default() {
                        batches = cases[side].batches();
                    }
                    turn[side] = records;
                }
                Ended::Interrupted(code) => stopped = Some(code),
            }
            stopped = stopped.or(interruption.exit_code());
            if stopped.is_some() {
                break;
            }
        }
        let complete = turn.iter().all(|records| !records.is_empty());
        if complete {
            let records = turn.into_iter().zip(&mut results);
            records.for_each(|(records, side)| records.into_iter().for_each(|record| side.record(record)));
        }
        if let Some(code) = stopped {
            write_cases(&mut files, &cases)?;
            return stopped_early(&results, &gate, &run.output, code);
        }
        let compared = || Comparison::of(&results[0], &results[1], settings);
        let ends = schedule.ends(number, since.elapsed(), || {
            let comparison = compared();
            if !run.output.quiet {
                let turns = if number == 1 { "turn" } else { "turns" };
                stderr_line!("ombx: {number} {turns}: {}", summary(&comparison));
            }
            !comparison.more_could_decide()
        });
        if ends {
            break;
        }
    }
    write_cases(&mut files, &cases)?;
    let verdict = conclude(&results[0], &results[1], &gate, run.output.format, run.output.color)?;
    Ok(match (verdict, worst) {
        (code, 1..) if code == Exit::Undecided.code() => worst,
        (1.., _) => verdict,
        (0, _) => worst,
    })
}

/// Compares what was measured before a signal, and returns the exit code of the signal.
fn stopped_early(results: &[SideResults; 2], gate: &GateArgs, output: &OutputArgs, code: u8) -> Result<u8> {
    let [a, b] = results;
    if a.count() > 0 {
        conclude(a, b, gate, output.format, output.color)?;
    }
    Ok(code)
}

/// Returns the words that all launches get: the user's options, except those of `ab`, and the benchmarks.
fn words_of_launches(parser: &clap::Command, matches: &ArgMatches, run: &RunArgs) -> Vec<OsString> {
    let ab = parser.find_subcommand("ab").into_iter();
    let given = ab.flat_map(|ab| given::options(ab, matches));
    let passed = given.filter(|(arg, _)| !OF_AB.contains(&arg.get_id().as_str()));
    let patterns = run.patterns.iter().map(OsString::from);
    passed.flat_map(|(_, words)| words).chain([OsString::from("--")]).chain(patterns).collect()
}

/// Writes the estimates of each side over its launches.
fn write_cases(files: &mut [Option<ResultTarget>; 2], cases: &[Cases; 2]) -> Result<()> {
    for (file, cases) in files.iter_mut().zip(cases) {
        let Some(file) = file else { continue };
        for row in cases.groups().iter().flat_map(Group::estimates) {
            file.write(|out| file::write_case(out, &row))?;
        }
    }
    Ok(())
}

/// Returns the time of a row in the next turn, as in `ombx run`; `None` if the user fixed the number of iterations.
fn row_time(effort: Effort, cases: &[Cases; 2], spent: Duration) -> Option<Duration> {
    let (Effort::Precision { max_time: most, .. } | Effort::Time(most)) = effort else { return None };
    let rows = || cases.iter().flat_map(|side| side.all().flatten());
    let sampled: u64 = rows().filter_map(|row| row.phases).map(|phases| phases.sample_ns).sum();
    let launches: usize = cases.iter().filter_map(|side| side.all().map(Vec::len).max()).sum();
    let fixed = spent.saturating_sub(Duration::from_nanos(sampled)) / launches.max(1) as u32;
    cases.iter().map(|side| estimate::row_time(side, fixed, most)).max()
}

/// Returns the row of a case that has ended its ranks, which later launches leave out.
fn ended_early(record: &Record) -> Option<RowName> {
    let (Record::Launch(row) | Record::Case(row)) = record else { return None };
    let is_early = matches!(row.outcome, Outcome::Failed(_)) && !matches!(row.check, Check::Failed(_));
    is_early.then(|| RowName::new(&row.key))
}

/// Returns the words of one launch. All launches of both sides take the batches of the first.
fn words_of_launch(
    launch: Launch,
    row_time: Option<Duration>,
    batches: &KnownBatches,
    rest: &Rest,
    words: &[OsString],
) -> Vec<OsString> {
    let mut own = vec!["run".to_owned(), "--format=jsonl".to_owned(), format!("--launch={launch}")];
    own.extend(row_time.map(|time| format!("--row-time={}us", time.as_micros())));
    own.extend(launches::batches(batches));
    own.extend((*rest != Rest::default()).then(|| format!("{}{rest}", role::REST)));
    own.into_iter().map(OsString::from).chain(words.iter().cloned()).collect()
}
