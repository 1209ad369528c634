//! The commands of ombx. A command is a module with its arguments, a variant of [`Command`], and an arm of `perform`.

mod ab;
pub(crate) mod check;
mod codegen;
pub(crate) mod compare;
mod completions;
mod doctor;
mod help;
mod history;
pub(crate) mod imb;
pub(crate) mod links;
mod list;
mod model;
pub(crate) mod osu;
mod plot;
mod report;
pub(crate) mod run;
mod show;
#[cfg(feature = "sockets")]
mod sockets;
mod spelling;

use std::{env, ffi::OsString, path::Path};

use clap::{
    ArgMatches, ColorChoice, CommandFactory, FromArgMatches, Parser, Subcommand,
    error::{ContextKind, ContextValue, ErrorKind},
};
use ombx_core::benchmark::Registry;
use ombx_drop_in::imb::programs;
use ombx_launch::{
    launch::{self, detection},
    output::terminal,
    role, this_process,
};
use ombx_record::{
    error::{Error, Exit, Result},
    file::is_named_as_result,
};

use crate::{
    arguments::{argv, output::some_of, parameters},
    families, lookup,
    suite::is_suite,
};

#[cfg(test)]
mod mistakes;

#[derive(Debug, Parser)]
#[command(
    name = "ombx",
    version,
    about = "Trustworthy communication benchmarks for clusters",
    max_term_width = 110,
    disable_help_subcommand = true
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the benchmarks of this build
    List(list::ListArgs),
    /// Run benchmarks
    ///
    /// It starts the ranks, unless a launcher has started them.
    Run(Box<run::RunArgs>),
    /// Measure benchmarks alone and under traffic of other ranks
    ///
    /// Rows have impact factors. Without names of benchmarks it runs suite:congestion. All options are those of ombx run.
    Congestion(Box<run::RunArgs>),
    /// Measure every pair of ranks in one job, and name what is slow
    ///
    /// A host, rank or link is slow if it is at least 15 % slower than comparable ones, by more than chance explains, and again when measured
    /// alone. For a limit in figures give --expect, for one from an earlier result --reference (25 % slower). --matrix of ombx show writes
    /// the times as a matrix.
    Links(Box<links::LinksArgs>),
    /// Measure a whole cluster by many jobs of ombx links
    ///
    /// First pairs of hosts, then all hosts together, by ssh or by jobs of a scheduler.
    Cluster(ombx_cluster::Options),
    /// Find what would spoil measurements on this system
    ///
    /// Each finding says how to remove it.
    Doctor(doctor::DoctorArgs),
    /// Check a node or cluster against limits and good days
    ///
    /// It has one result, for cron, NHC, Slurm and Nagios.
    Check(check::CheckArgs),
    /// Replace an OSU benchmark: same name, options, output
    ///
    /// Without a name it lists all programs.
    #[command(disable_help_flag = true)]
    Osu(Box<osu::arguments::OsuArgs>),
    /// Replace a program of IMB: same name, options, output
    ///
    /// IMB are the Intel MPI Benchmarks. Without a name it lists all programs.
    #[command(disable_help_flag = true)]
    Imb(Box<imb::arguments::ImbArgs>),
    /// Print result files in any format
    Show(show::ShowArgs),
    /// Compare two sets of result files; a gate for CI
    ///
    /// Each case has a verdict of its own.
    Compare(compare::CompareArgs),
    /// Compare two MPI libraries, builds or settings in turns
    ///
    /// A case is worse or better if it is shown to be slower or faster by more than --margin, and the same if it is shown to be within it.
    /// Otherwise it is undecided.
    Ab(Box<ab::AbArgs>),
    /// Find what changed in a directory of results, and since when
    ///
    /// It tells the case, the day, the factor, and what else changed at that time.
    History(history::HistoryArgs),
    /// Fit LogGP parameters, and find where the protocol switches
    ///
    /// It needs rows of latency and bandwidth over sizes.
    Model(model::ModelArgs),
    /// Draw result files as a figure: SVG, PDF or PNG
    Plot(plot::PlotArgs),
    /// Write result files as one HTML page
    ///
    /// The page needs no other file.
    Report(report::ReportArgs),
    /// Serve ranks to `ombx run --connect`, without ssh
    ///
    /// Ranks run on this host for a job of another host.
    #[cfg(feature = "sockets")]
    Sockets(sockets::SocketsArgs),
    /// Print the script that completes words in a shell
    ///
    /// It completes commands, options, benchmarks, suites and values.
    Completions(completions::CompletionsArgs),
    /// Explain a command or a word
    ///
    /// A word is an option, a value of an option, a benchmark, a column, a mark or an exit code.
    Help(help::HelpArgs),
    /// Print a file of the repository that is generated from this binary
    #[command(hide = true)]
    Codegen(codegen::CodegenArgs),
}

/// Commands whose processes may be ranks that start MPI.
pub(crate) const MEASURING: [&str; 6] = [launch::RANK, "run", "congestion", "links", "osu", "imb"];

/// Commands that start ranks themselves, and refuse a launcher.
pub(crate) const STARTING: [&str; 3] = ["ab", "check", "model"];

/// Returns clap's parser, with an option for each parameter of the registered benchmarks.
pub(crate) fn parser(registry: &Registry) -> clap::Command {
    Cli::command()
        .mut_subcommand("run", |run| parameters::add_options(run, registry))
        .mut_subcommand("congestion", |congestion| parameters::add_options(congestion, registry))
        .mut_subcommand("ab", |ab| {
            let turns = "Number of turns, each with a launch of both sides [default: 6 to 30, until every \
                         case is decided or --budget is spent]";
            let time = "Time for all launches together [default: 60s]";
            let ab = ab.mut_arg("budget", |budget| budget.help(time).long_help(time));
            let ab = ab.mut_arg("launches", |launches| launches.help(turns));
            let files = "Result files with all raw data: -o ab.jsonl writes ab-a.jsonl and ab-b.jsonl";
            let ab = ab.mut_arg("out", |out| out.help(files).long_help(files));
            let ab = ab.mut_arg("format", |format| format.value_parser(some_of(&compare::FORMATS)));
            // The end of a comparison depends on its verdicts.
            let ab = ab.mut_args(|arg| {
                let unused = ["precision", "unit", "percentiles"].contains(&arg.get_id().as_str());
                if unused { arg.hide(true) } else { arg }
            });
            parameters::add_options(ab, registry)
        })
        .mut_subcommand("links", links::adapt_options)
        .mut_subcommand("check", |check| {
            let file = "New result file with all raw data of the check";
            check.mut_arg("out", |out| out.help(file).long_help(file))
        })
}

/// Runs the command that the words name and returns the exit code.
pub(crate) fn dispatch(registry: &Registry, words: Vec<OsString>) -> Result<u8> {
    let colors = if terminal::stdout_is_coloured() { ColorChoice::Always } else { ColorChoice::Never };
    let parser = parser(registry).color(colors);
    match completions::asking_shell() {
        Some(shell) => completions::answer(registry, &parser, shell),
        None => {
            let words = model::with_dashes(&parser, run::expanded(&parser, words)?);
            this_process::settle(words.clone());
            execute(registry, &parser, words)
        }
    }
}

/// Returns the command of these words, and what clap has read for it.
pub(crate) fn parse(
    parser: &clap::Command,
    words: Vec<OsString>,
) -> std::result::Result<(Command, ArgMatches), clap::Error> {
    let mut matches = parser.clone().try_get_matches_from(words)?;
    let Cli { command } = Cli::from_arg_matches(&matches)?;
    // clap reports a missing command as an error.
    let (_, matches) = matches.remove_subcommand().unwrap_or_default();
    Ok((command, matches))
}

/// Runs the command that the words name, read by this parser, and returns the exit code.
fn execute(registry: &Registry, parser: &clap::Command, words: Vec<OsString>) -> Result<u8> {
    argv::check_lengths(&words)?;
    let ended = match parse(parser, words.clone()) {
        Ok((command, matches)) => perform(registry, parser, command, &matches),
        Err(error) => unparsed(registry, parser, &words, &error),
    };
    ended.map_err(|error| spelling::of_drop_in(parser, &words, &env::args_os().collect::<Vec<_>>(), error))
}

/// Runs a command and returns the exit code.
fn perform(
    registry: &Registry,
    parser: &clap::Command,
    command: Command,
    matches: &ArgMatches,
) -> Result<u8> {
    // Other commands have options of their own with names of parameters.
    let chosen = || parameters::chosen(registry, matches);
    match command {
        Command::List(args) => list::list(registry, &args),
        Command::Run(args) => role::run(&run::prepare(registry, parser, matches, *args, chosen()?)?),
        Command::Congestion(args) => {
            let args = run::with_congestion_defaults(*args)?;
            role::run(&run::prepare(registry, parser, matches, args, chosen()?)?)
        }
        Command::Links(args) => links::links(registry, *args),
        Command::Cluster(options) => ombx_cluster::run(options, this_process::executable()?),
        Command::Doctor(args) => doctor::doctor(args),
        Command::Check(args) => check::check(registry, parser, args),
        Command::Osu(args) => osu::osu(registry, parser, matches, *args),
        Command::Imb(args) => imb::imb(registry, parser, matches, *args),
        Command::Show(args) => show::show(&args),
        Command::Compare(args) => compare::compare(&args),
        Command::Ab(args) => ab::ab(registry, parser, matches, *args, chosen()?),
        Command::History(args) => history::history(&args),
        Command::Model(args) => model::model(parser, &args),
        Command::Plot(args) => plot::plot(&args),
        Command::Report(args) => report::report(&args),
        Command::Help(args) => match help::answer(registry, parser, &args)? {
            help::Answer::Text(text) => terminal::print(text),
            help::Answer::Words(words) => execute(registry, parser, words),
        },
        Command::Completions(args) => completions::completions(&args),
        #[cfg(feature = "sockets")]
        Command::Sockets(args) => sockets::sockets(&args),
        Command::Codegen(args) => codegen::codegen(parser.clone(), args.file),
    }
}

/// Prints the help or the version that a command line asks for, or that answers one without a command. Any other error is a mistake.
fn unparsed(
    registry: &Registry,
    parser: &clap::Command,
    words: &[OsString],
    error: &clap::Error,
) -> Result<u8> {
    let help = || help::asked(registry, parser, words);
    match error.kind() {
        ErrorKind::DisplayHelp => terminal::print(help()),
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            // One of the ranks that a launcher has started is enough.
            if detection::is_first_process() {
                terminal::print(help())?;
            }
            Ok(if words.len() == 1 { Exit::Success } else { Exit::Usage }.code())
        }
        _ => {
            let command = words.get(1).and_then(|word| parser.find_subcommand(word));
            match instead(registry, parser, command, error) {
                Some(sentence) => Err(Error::usage(sentence)),
                None => argv::report_mistake(error, command.map(clap::Command::get_name)),
            }
        }
    }
}

/// Returns what to do instead of a word that is no command, or of an option that only other commands have.
fn instead(
    registry: &Registry,
    parser: &clap::Command,
    command: Option<&clap::Command>,
    error: &clap::Error,
) -> Option<String> {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    if let Some(word) = context(ContextKind::InvalidSubcommand) {
        let line = if families::about(word).is_some() {
            format!("list {word}")
        } else if osu::find(registry, word).is_ok() && word.starts_with("osu_") {
            format!("osu {word}")
        } else if programs::find(word).is_ok() {
            format!("imb {word}")
        } else if is_suite(word) || lookup::find(registry, word).is_ok() {
            format!("run {word}")
        } else if is_named_as_result(Path::new(word)) {
            format!("show {word}")
        } else if word.to_lowercase().starts_with("imb-") {
            return programs::find(word).err().map(|why| why.to_string());
        } else {
            return lookup::counterpart(registry, word)
                .map(|found| format!("{word:?} is no command: {}; see ombx list {word}", found.sentence));
        };
        return Some(format!("{word:?} is no command: use ombx {line}"));
    }
    let parsed = command?;
    let command = parsed.get_name();
    let is_about_sides = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(name)) => name.contains(compare::SIDES),
        Some(ContextValue::Strings(names)) => names.iter().any(|name| name.contains(compare::SIDES)),
        _ => false,
    };
    if is_about_sides {
        return Some(
            "ombx compare has two sides: give two result files, lists such as a1.jsonl,a2.jsonl, globs in \
             quotes or directories, or all files by --base FILES --new FILES (see ombx help compare)"
                .into(),
        );
    }
    let option = context(ContextKind::InvalidArg)?;
    let value = context(ContextKind::InvalidValue);
    if option.starts_with("--ranks") && value == Some("p") {
        return Some(format!(
            "the option for the number of ranks is -n, as in -n 4 (see ombx help {command})"
        ));
    }
    let is_percentage = value.is_some_and(|value| value.ends_with('%'));
    if command == "links" && is_percentage && ["fail-on", "expect"].iter().any(|name| option.contains(name)) {
        return Some(
            "ombx links has no limit in percent: give one in figures by --expect 'latency<2us', or an \
             earlier result by --reference FILE, from which no link may be 25 % slower (see ombx help slow)"
                .into(),
        );
    }
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let word = option.split('=').next()?;
    if let Some(own) = own_option(parsed, word) {
        return Some(format!("ombx {command} has no option {word}: use {own} (see ombx help {command})"));
    }
    let Some(name) = word.strip_prefix("--") else {
        let takes_hosts = !word.starts_with('-') && has_option(parsed, "hosts");
        return takes_hosts.then(|| {
            let advice = instead_of_hosts(registry, parsed, word);
            format!("ombx {command} takes options only, not {word}: {advice} (see ombx help {command})")
        });
    };
    let others = help::having(parser, name).join(", ");
    (!others.is_empty()).then(|| {
        format!("ombx {command} has no option --{name}, which ombx {others} has (see ombx help {command})")
    })
}

/// Returns what to do instead of a word after a command that takes hosts by an option.
fn instead_of_hosts(registry: &Registry, command: &clap::Command, word: &str) -> String {
    if is_named_as_result(Path::new(word)) {
        if has_option(command, "reference") {
            format!("give an earlier result by --reference {word}")
        } else {
            format!("ombx show {word} prints a result file")
        }
    } else if Path::new(word).is_file() && has_option(command, "hostfile") {
        format!("give a host file by --hostfile {word}")
    } else if lookup::find(registry, word).is_ok() {
        format!("ombx run {word} measures a benchmark")
    } else {
        "give hosts by --hosts n01,n02".into()
    }
}

/// Options of other programs, and those of ombx that mean the same. Those that mean different things in several programs (-N, -f) are absent.
const OPTIONS_OF_OTHERS: [(&[&str], &str); 6] = [
    (&["-m", "--message-size", "--msgsize"], "sizes"),
    (&["-i", "--iters", "--iter"], "iterations"),
    (&["-x"], "warmup"),
    (&["-W", "--window-size"], "window"),
    (&["--np", "--nprocs", "--ntasks"], "ranks"),
    (&["-H", "--nodelist", "-w"], "hosts"),
];

/// Returns the option of a command that means what another program calls so.
fn own_option(command: &clap::Command, word: &str) -> Option<String> {
    let known =
        OPTIONS_OF_OTHERS.iter().find(|(words, long)| words.contains(&word) && has_option(command, long));
    if let Some((_, long)) = known {
        return Some(format!("--{long}"));
    }
    // Other programs have an option for each format.
    let name = word.strip_prefix("--")?;
    let name = name.strip_prefix("export-").unwrap_or(name);
    let format = command.get_arguments().find(|arg| arg.get_long() == Some("format"))?;
    let has = |name: &str| format.get_possible_values().iter().any(|value| value.get_name() == name);
    let names = if name == "json" { ["json", "jsonl"] } else { [name, name] };
    names.into_iter().find(|name| has(name)).map(|name| format!("--format {name}"))
}

fn has_option(command: &clap::Command, long: &str) -> bool {
    command.get_arguments().any(|arg| arg.get_long() == Some(long) && !arg.is_hide_set())
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fs;

    use super::*;

    /// Returns what stands between backticks on the page of the source texts.
    fn quoted() -> Vec<String> {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/SOURCES.md");
        let page = fs::read_to_string(page).unwrap();
        let rows = page.lines().filter(|line| line.starts_with('|'));
        rows.flat_map(|row| row.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>())
            .collect()
    }

    /// Parses a command line and prepares its job.
    pub(crate) fn prepare(registry: &Registry, line: &str) -> Result<()> {
        let parser = parser(registry);
        let words = shell_words::split(line).unwrap().into_iter().map(OsString::from).collect();
        let words = model::with_dashes(&parser, run::expanded(&parser, this_process::normalized(words))?);
        let parsed = parse(&parser, words);
        let (command, matches) = parsed.map_err(|e| Error::usage(e.to_string()))?;
        match command {
            Command::Run(args) => {
                let chosen = parameters::chosen(registry, &matches)?;
                run::prepare(registry, &parser, &matches, *args, chosen).map(drop)
            }
            Command::Links(args) => links::prepare(registry, *args).map(drop),
            _ => Ok(()),
        }
    }

    /// Returns the number of rows of a command line of `ombx run`.
    #[cfg(all(feature = "mpi", feature = "sockets"))]
    fn rows(line: &str) -> u64 {
        let registry = Registry::load().unwrap();
        let parser = parser(&registry);
        let words = line.split(' ').map(OsString::from).collect();
        let (command, matches) = parse(&parser, words).unwrap();
        let Command::Run(args) = command else { panic!("{line}") };
        let chosen = parameters::chosen(&registry, &matches).unwrap();
        run::prepare(&registry, &parser, &matches, *args, chosen).unwrap().extent.rows
    }

    #[cfg(all(feature = "mpi", feature = "sockets"))]
    #[test]
    fn a_list_of_values_makes_a_row_each() {
        for (options, expected) in [
            ("collective.gatherv", 1),
            ("collective.gatherv --imbalance 0,50,100%", 3),
            ("collective.gatherv --imbalance 0,50 --datatype contiguous --pace all", 6),
            ("p2p.bw --window 1..8", 4),
            ("p2p.latency --window 1..8 p2p.bw", 5),
            ("sockets.request --rate 1000,2000 --window 1,2", 4),
            ("sockets.bw --streams 1,2,4 --transport tcp,udp", 6),
            ("collective.bcast --root 1 --groups 2", 1),
        ] {
            assert_eq!(rows(&format!("ombx run {options} --sizes 64")), expected, "{options}");
        }
    }

    #[cfg(all(feature = "mpi", feature = "sockets"))]
    #[test]
    fn commands_for_the_source_texts_are_accepted() {
        let registry = Registry::load().unwrap();
        let commands: Vec<String> = quoted()
            .into_iter()
            .filter(|text| text.starts_with("ombx ") && !text.contains("show "))
            .collect();
        assert!(commands.len() > 30, "{commands:?}");
        for command in commands {
            prepare(&registry, &command).unwrap_or_else(|e| panic!("{command}: {e}"));
        }
    }

    #[test]
    fn tests_for_the_source_texts_exist() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        let sources: String = ["crates", "tests", "verify"]
            .iter()
            .flat_map(|folder| glob::glob(&format!("{root}/{folder}/**/*.rs")).unwrap())
            .map(|path| fs::read_to_string(path.unwrap()).unwrap())
            .collect();
        let is_test =
            |text: &String| !text.contains([' ', '-', '.', '{', '/', ':']) && text.matches('_').count() > 1;
        let named: Vec<String> = quoted().into_iter().filter(is_test).collect();
        assert!(named.len() > 40, "{named:?}");
        for name in named {
            assert!(sources.contains(&format!("fn {name}(")), "no test is called {name}");
        }
    }
}
