//! `ombx ab`: two commands that run ombx measure alternately, and are compared.

mod difference;
mod side;

use std::{
    borrow::Cow,
    ffi::OsString,
    fmt,
    process::Child,
    sync::{
        Arc,
        atomic::{AtomicI32, Ordering},
    },
    time::Duration,
};

use clap::{Arg, ArgMatches, Args, parser::ValueSource};
use ombx_compare::{Comparison, SideResults, Turn};
use ombx_core::{
    benchmark::{ALIGNMENT, Chosen, Registry},
    measure::{
        plan::{Effort, Launch, LaunchSettings, Rest},
        runner::Part,
    },
};
use ombx_estimate::{
    launches::{Cases, Group, LEAST_LONG_LAUNCHES as LEAST_TURNS, LOOKS, MOST_LAUNCHES},
    number::Units,
};
use ombx_host::{
    signals::{self, Interruption},
    since::Since,
};
use ombx_launch::{
    job::{self, launches::random_seed, rank_job::settings_word, selection},
    launch::{
        detection, finite_run, preflight,
        start::{Launcher, Start},
    },
    note_line,
    output::target::ResultTarget,
    stderr_line,
};
use ombx_record::{
    error::{Error, Exit, Result},
    event::Event,
    file,
    result::{Check, KnownBatches, Outcome, RowName},
    unit::counted,
};
use ombx_show::compare::summary;
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::iterator::{Handle, Signals};

use self::{
    difference::Given,
    side::{LaunchEnd, SideCommand, Variable},
};
use crate::{
    arguments::{argv, output::OutputArgs},
    commands::{
        compare::{GateArgs, Printing, conclude},
        run::{self, RunArgs},
    },
    lookup,
};

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
    /// Measure sides in which nothing differs, to see by how much equal sides differ
    #[arg(long, help_heading = "Sides")]
    allow_equal: bool,
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    gate: GateArgs,
}

/// Time for all launches of both sides, if the user gives none.
const BUDGET: Duration = Duration::from_secs(60);
/// Options of `ab` itself, beside those under its own headings. Each launch gets all others.
const OF_AB: [&str; 9] =
    ["budget", "out", "force", "append", "launches", "seed", "against", "format", "color"];
/// Labels of the sides.
const LABELS: [&str; 2] = ["A", "B"];
const HEADINGS: [&str; 2] = ["Sides", "Comparison"];

pub(crate) fn ab(
    registry: &Registry,
    parser: &clap::Command,
    matches: &ArgMatches,
    args: AbArgs,
    chosen: Chosen,
) -> Result<u8> {
    let AbArgs { a, b, env_a, env_b, allow_equal, run, gate } = args;
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
    let start = Start::from(run.start.clone());
    if start.rendezvous.is_some() {
        return Err(Error::usage("ombx ab has no option --rendezvous: it starts its own ranks"));
    }
    start.refuse_one_of_several()?;
    if start.launcher == Launcher::Auto {
        detection::refuse_launcher("ombx ab", "and choose their number with -n")?;
    }
    let choices = lookup::benchmarks(registry, &run.patterns);
    let choices = choices.map_err(|e| run::after_list(registry, matches, &run.patterns, e))?;
    if chosen.has(&ALIGNMENT) {
        return Err(Error::usage(
            "--alignment counts messages from another place in each launch, so that sides cannot be compared: leave it out",
        ));
    }
    let plan = run::plan(&run, chosen, &choices)?;
    let out = side::result_paths(&run.output.file);
    let [out_a, out_b] = out.as_ref().map_or([None, None], |paths| paths.each_ref().map(Some));
    let written = [("-o", out_a), ("-o", out_b), ("--openmetrics", run.output.openmetrics.as_ref())];
    gate.check_files(&written, &job::files_used(&start, &[&plan]))?;
    let (effort, ranks) = (plan.effort, run::ranks(&run, &choices, &plan));
    for choice in &choices {
        preflight::check(&start, ranks, choice.bench.ranks.medium)?;
    }
    selection::check_ranks(start.ranks, &[Part { choices, plan }])?;
    let commands = [SideCommand::find(a.as_deref(), env_a)?, SideCommand::find(b.as_deref(), env_b)?];
    let given = Given::new(&commands);
    if given == Given::Nothing && !allow_equal {
        return Err(Error::usage(
            "nothing differs: give --b COMMAND, or variables with --env-b NAME=VALUE, or --allow-equal to see by how much equal sides differ",
        ));
    }
    let words = words_of_launches(parser, matches, &run);
    let [label_a, label_b] = gate.labels(LABELS);
    let mut results = [
        SideResults::named(commands[0].to_string()).labelled(label_a),
        SideResults::named(commands[1].to_string()).labelled(label_b),
    ];
    let mut files = side::result_files(out, run.output.file.existing())?;

    let fixed = if run.launches.quick { Some(1) } else { run.launches.launches };
    let seed = run.launches.seed();
    // Files keep turns, and turns of different comparisons are none.
    let name = format!("{:016x}", random_seed());
    let usual = if fixed.is_some() { Duration::MAX } else { BUDGET };
    let mut schedule = TurnSchedule::new(fixed, run.launches.budget.unwrap_or(usual));
    if !run.output.quiet {
        note_line!("ombx: {schedule}, in random order, seed {seed}");
    }
    let settings = gate.settings();
    let signals = SignalForwarder::new()?;
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
            // All launches of both sides take the batches of the first.
            let settings = LaunchSettings {
                launch: Some(launch),
                row_time,
                batches: batches.clone(),
                rest: rests[side].clone(),
                core_to_core_ns: None,
            };
            let settings = format!("--launch-settings={}", settings_word(&settings));
            let own = ["run", "--format=jsonl", &settings].map(OsString::from);
            let words: Vec<OsString> = own.into_iter().chain(words.iter().cloned()).collect();
            let place = Turn { of: name.clone(), number, is_open: fixed.is_none() };
            match commands[side].launch(&words, &place, files[side].as_mut(), &signals)? {
                LaunchEnd::Complete(code, records) => {
                    worst = worst.max(code);
                    records.iter().for_each(|record| cases[side].event(record));
                    rests[side].left_out.extend(records.iter().filter_map(ended_early));
                    if batches == KnownBatches::default() {
                        batches = cases[side].batches();
                    }
                    turn[side] = records;
                }
                LaunchEnd::Interrupted(code) => stopped = Some(code),
            }
            // The program of a side may have a code of its own.
            stopped = signals.interruption.exit_code().or(stopped);
            if stopped.is_some() {
                break;
            }
        }
        let complete = turn.iter().all(|records| !records.is_empty());
        if complete {
            if number == 1 && !allow_equal {
                let remark = given.check(&commands, turn.each_ref().map(Vec::as_slice))?;
                remark.iter().filter(|_| !run.output.quiet).for_each(|remark| note_line!("ombx: {remark}"));
            }
            let records = turn.into_iter().zip(&mut results);
            records.for_each(|(records, side)| records.into_iter().for_each(|record| side.event(&record)));
        }
        if let Some(code) = stopped {
            write_cases(&mut files, &cases)?;
            return stopped_early(&results, &gate, &run.output, code);
        }
        let compared = || Comparison::new(&results[0], &results[1], settings);
        let ends = schedule.ends(number, since.elapsed(), || {
            let comparison = compared();
            if !run.output.quiet {
                note_line!("ombx: {}: {}", counted(number, "turn"), summary(&comparison));
            }
            !comparison.more_could_decide()
        });
        if ends {
            break;
        }
    }
    write_cases(&mut files, &cases)?;
    let [a, b] = &results;
    let verdict = conclude(a, b, &gate, printing(&run.output))?;
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
        conclude(a, b, gate, printing(output))?;
    }
    Ok(code)
}

fn printing(output: &OutputArgs) -> Printing {
    Printing { units: Units::default(), format: output.format, color: output.color, is_quiet: false }
}

/// Returns the words that all launches get: the user's options, except those of `ab`, and the benchmarks.
fn words_of_launches(parser: &clap::Command, matches: &ArgMatches, run: &RunArgs) -> Vec<OsString> {
    let ab = parser.find_subcommand("ab").into_iter();
    let given = ab.flat_map(|ab| argv::given_options(ab, matches));
    let has_own_heading = |arg: &Arg| arg.get_help_heading().is_some_and(|title| HEADINGS.contains(&title));
    let is_own = |arg: &Arg| OF_AB.contains(&arg.get_id().as_str()) || has_own_heading(arg);
    let passed = given.filter(|(arg, _)| !is_own(arg));
    let patterns = run.patterns.iter().map(OsString::from);
    passed.flat_map(|(_, words)| words).chain([OsString::from("--")]).chain(patterns).collect()
}

/// Writes the estimates of each side over its launches.
fn write_cases(files: &mut [Option<ResultTarget>; 2], cases: &[Cases; 2]) -> Result<()> {
    for (file, cases) in files.iter_mut().zip(cases) {
        let Some(file) = file else { continue };
        for row in cases.groups().iter().flat_map(Group::estimates) {
            file.write(|out| file::write(out, &Event::Case(Cow::Borrowed(&row))))?;
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
    cases.iter().map(|side| ombx_estimate::launches::row_time(side, |_| true, fixed, most)).max()
}

/// Returns the row of a case that has ended its ranks, which later launches leave out.
fn ended_early(record: &Event<'_>) -> Option<RowName> {
    let (Event::Row(row) | Event::Case(row)) = record else { return None };
    let is_early = matches!(row.outcome, Outcome::Failed(_)) && !matches!(row.check, Check::Failed(_));
    is_early.then(|| RowName::new(&row.key))
}

/// Thread that passes signals on until this is dropped.
struct SignalForwarder {
    child: Arc<AtomicI32>,
    /// Signals that have arrived.
    interruption: Interruption,
    handle: Handle,
}

impl SignalForwarder {
    fn new() -> Result<SignalForwarder> {
        let interruption = Interruption::new()?;
        let signals = Signals::new(signals::of_user()).map_err(|e| Error::fabric(format!("signals: {e}")))?;
        let child = Arc::new(AtomicI32::new(0));
        let (handle, target) = (signals.handle(), Arc::clone(&child));
        finite_run::spawn_thread("signals", move || pass_on(signals, &target))?;
        Ok(SignalForwarder { child, interruption, handle })
    }

    fn pass_on_to(&self, child: &Child) -> Result<()> {
        let pid = i32::try_from(child.id()).map_err(|e| Error::fabric(e.to_string()))?;
        self.child.store(pid, Ordering::SeqCst);
        Ok(())
    }
}

impl Drop for SignalForwarder {
    fn drop(&mut self) {
        self.handle.close();
    }
}

/// Passes signals on to the process with this number; 0 is none.
fn pass_on(mut signals: Signals, child: &AtomicI32) {
    for signal in signals.forever() {
        let pid = Pid::from_raw(child.load(Ordering::SeqCst));
        pid.zip(Signal::from_named_raw(signal)).map(|(pid, signal)| kill_process(pid, signal));
    }
}

/// Time for the fewest launches of both sides, even if it exceeds the budget.
const LEAST_TIME: Duration = Duration::from_secs(180);

/// Decides after each turn whether another one follows.
#[derive(Debug)]
struct TurnSchedule {
    fixed: Option<u32>,
    budget: Duration,
    decided: bool,
}

impl TurnSchedule {
    fn new(fixed: Option<u32>, budget: Duration) -> TurnSchedule {
        TurnSchedule { fixed, budget, decided: false }
    }

    /// Returns whether `turns` turns, which took this time, are enough. Calls `decided` only at a look.
    fn ends(&mut self, turns: u32, spent: Duration, decided: impl FnOnce() -> bool) -> bool {
        if let Some(fixed) = self.fixed {
            let no_more_fit = turns < fixed && spent + spent / turns > self.budget;
            if no_more_fit {
                note_line!(
                    "ombx: {turns} instead of {fixed} turns, because no more fit into the budget: give a longer --budget"
                );
            }
            return turns >= fixed || no_more_fit;
        }
        if LOOKS.contains(&turns) {
            let before = std::mem::replace(&mut self.decided, decided());
            if turns >= MOST_LAUNCHES || (before && self.decided) {
                return true;
            }
        }
        let each = spent / turns;
        if turns < LEAST_TURNS && each * LEAST_TURNS <= LEAST_TIME {
            return false;
        }
        let spent_soon = spent + each > self.budget;
        if spent_soon && turns < LEAST_TURNS {
            note_line!(
                "ombx: {} took {:.0} s and no more fit into the budget: give a longer --budget",
                counted(turns, "turn"),
                spent.as_secs_f64()
            );
        }
        spent_soon
    }
}

impl fmt::Display for TurnSchedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.fixed {
            Some(1) => f.write_str("1 turn of both sides"),
            Some(fixed) => write!(f, "{fixed} turns of both sides"),
            None => write!(
                f,
                "{LEAST_TURNS} to {MOST_LAUNCHES} turns of both sides, until every case is decided or {} s \
                 have passed; the first {LEAST_TURNS} may take up to {} min",
                self.budget.as_secs_f64(),
                LEAST_TIME.as_secs() / 60
            ),
        }
    }
}

#[cfg(test)]
mod schedule_tests {
    use super::*;

    /// Returns the number of turns of this many milliseconds each, if cases are decided from a number of turns on.
    fn turns(fixed: Option<u32>, budget_s: u64, each_ms: u64, decided_from: u32) -> u32 {
        let mut schedule = TurnSchedule::new(fixed, Duration::from_secs(budget_s));
        let mut ends = |turns: u32| {
            schedule.ends(turns, Duration::from_millis(each_ms) * turns, || turns >= decided_from)
        };
        (1..100).find(|turns| ends(*turns)).unwrap()
    }

    #[test]
    fn turns_end_when_two_looks_agree_or_time_is_spent() {
        assert_eq!(turns(None, 60, 100, 1), 9);
        assert_eq!(turns(None, 60, 100, 10), 15);
        assert_eq!(turns(None, 60, 100, 1000), 30);
        assert_eq!(turns(Some(2), 60, 100, 1), 2);
        assert_eq!(turns(Some(20), 10, 1000, 1), 10);
        // Five seconds each: ten fit into 50 s.
        assert_eq!(turns(None, 50, 5000, 1000), 10);
        // Twenty seconds each: six take two minutes.
        assert_eq!(turns(None, 60, 20_000, 1000), 6);
        // A time that is no multiple of the number of turns.
        let mut schedule = TurnSchedule::new(None, Duration::from_secs(5));
        assert!(!schedule.ends(5, Duration::new(35, 1), || false));
        assert!(schedule.ends(6, Duration::new(42, 1), || false));
        // A minute each: six would take six minutes.
        assert_eq!(turns(None, 130, 60_000, 1000), 2);
        assert_eq!(turns(None, 10, 60_000, 1000), 1);
    }
}
