//! The commands of ombx. A command is a module with its arguments, a variant of [`Command`], and an arm of [`dispatch`].

mod ab;
pub(crate) mod check;
mod codegen;
pub(crate) mod compare;
mod completions;
mod congestion;
mod doctor;
mod help;
mod history;
pub(crate) mod imb;
pub(crate) mod links;
mod list;
#[cfg(test)]
mod mistakes;
mod model;
pub(crate) mod osu;
mod plot;
mod report;
pub(crate) mod run;
mod show;
#[cfg(feature = "sockets")]
mod sockets;

use std::ffi::OsString;

use clap::{ArgMatches, ColorChoice, CommandFactory, FromArgMatches, Parser, Subcommand};
use ombx_core::{benchmark::Registry, error::Result};

#[cfg(feature = "sockets")]
use crate::launch::served;
#[cfg(feature = "mpi")]
use crate::launch::transport;
use crate::{
    arguments::{argv, mistake, parameters},
    output::{stdout, terminal},
    role,
};

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
    /// Run benchmarks; start the ranks unless a launcher has
    Run(Box<run::arguments::RunArgs>),
    /// Measure benchmarks alone and under traffic on other ranks of the job, with impact factors; without names, suite:congestion
    Congestion(Box<run::arguments::RunArgs>),
    /// Measure every pair of ranks and report slow links; start the ranks unless a launcher has
    Links(Box<links::LinksArgs>),
    /// Measure every link of a cluster: pairs of hosts, then all hosts together
    Cluster(ombx_cluster::Options),
    /// Check this system for causes of wrong measurements and say how to remove them
    Doctor(doctor::DoctorArgs),
    /// Check a node or cluster against limits and good days, with one result; for cron, NHC, Slurm and Nagios
    Check(check::CheckArgs),
    /// Replace an OSU benchmark: same name, options and output; without a name, list all programs
    #[command(disable_help_flag = true)]
    Osu(Box<osu::arguments::OsuArgs>),
    /// Replace a program of the Intel MPI Benchmarks: same name, options and output; without a name, list all programs
    #[command(disable_help_flag = true)]
    Imb(Box<imb::arguments::ImbArgs>),
    /// Print result files in any format
    Show(show::ShowArgs),
    /// Compare two sets of result files case by case; usable as a gate in CI
    Compare(compare::CompareArgs),
    /// Compare two builds of ombx that measure alternately
    Ab(Box<ab::AbArgs>),
    /// Find what changed in a directory of result files: which case, since when, by how much
    History(history::HistoryArgs),
    /// Fit LogGP parameters to latency and bandwidth, and find the sizes at which the protocol switches
    Model(model::ModelArgs),
    /// Draw result files as a figure for a paper: SVG, PDF or PNG
    Plot(plot::PlotArgs),
    /// Write result files as one self-contained HTML page
    Report(report::ReportArgs),
    /// Serve ranks on this host to `ombx run --connect` on another one, where there is no ssh
    #[cfg(feature = "sockets")]
    Sockets(sockets::SocketsArgs),
    /// Print the script that lets a shell complete commands, benchmarks, suites and axes
    Completions(completions::CompletionsArgs),
    /// Print the help of a command, or what exit codes and marks mean
    Help(help::HelpArgs),
    /// Run one process of the benchmark sockets.pipeline; its standard input is the control connection
    #[cfg(feature = "sockets")]
    #[command(hide = true, name = ombx_sockets::pipeline::SUBCOMMAND)]
    PipelineProcess {
        /// Name of the process, as ps shows it
        name: String,
    },
    /// Run one rank over sockets; standard input says which
    #[cfg(feature = "sockets")]
    #[command(hide = true)]
    Worker,
    /// Let a server run one rank; standard input says which
    #[cfg(feature = "sockets")]
    #[command(hide = true, name = served::SUBCOMMAND)]
    ServedRank,
    /// Run one rank that lets its MPI library report its transports
    #[cfg(feature = "mpi")]
    #[command(hide = true, name = transport::SUBCOMMAND)]
    TransportProbe,
    /// Print a file of the repository that is generated from this binary
    #[command(hide = true)]
    Codegen(codegen::CodegenArgs),
}

/// Commands whose ranks start MPI.
#[cfg(feature = "mpi")]
pub(crate) const MEASURING: [&str; 5] = ["run", "congestion", "links", "osu", "imb"];

/// Returns clap's parser, with an option for each parameter of the registered benchmarks.
pub(crate) fn parser(registry: &Registry) -> clap::Command {
    let parser = Cli::command()
        .mut_subcommand("run", |run| parameters::add_options(run, registry))
        .mut_subcommand("congestion", |congestion| parameters::add_options(congestion, registry))
        .mut_subcommand("ab", |ab| {
            let turns = "Number of turns, each with a launch of both sides [default: 6 to 30, until every case is decided or \
                         --budget is spent]";
            let ab = ab.mut_arg("budget", |budget| budget.help("Time for all launches together [default: 60s]"));
            let ab = ab.mut_arg("launches", |launches| launches.help(turns));
            // The end of a comparison depends on its verdicts, and it has formats of its own.
            let ab = ab.mut_args(|arg| {
                let unused = ["precision", "format", "unit", "percentiles"].contains(&arg.get_id().as_str());
                if unused { arg.hide(true) } else { arg }
            });
            parameters::add_options(ab, registry)
        })
        .mut_subcommand("links", links::adapt_options)
        .mut_subcommand("check", |check| {
            check.mut_arg("out", |out| out.help("New result file in JSON Lines with all raw data of the check"))
        });
    help::adapt(parser)
}

/// Runs the command that the words name and returns the exit code.
pub(crate) fn dispatch(registry: &Registry, words: Vec<OsString>) -> Result<u8> {
    let colors = if terminal::stdout_is_coloured() { ColorChoice::Always } else { ColorChoice::Never };
    let parser = parser(registry).color(colors);
    match completions::asking_shell() {
        Some(shell) => completions::answer(registry, &parser, shell),
        None => execute(registry, &parser, words),
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
    let (command, matches) = match parse(parser, words) {
        Ok(parsed) => parsed,
        Err(error) => return mistake::report(&error, parser),
    };
    // Other commands have options of their own with names of parameters.
    let chosen = || parameters::chosen(registry, &matches);
    match command {
        Command::List(args) => list::list(registry, parser, &args),
        Command::Run(args) => role::run(&run::prepare(registry, parser, &matches, *args, chosen()?)?),
        Command::Congestion(args) => {
            let args = congestion::with_defaults(*args)?;
            role::run(&run::prepare(registry, parser, &matches, args, chosen()?)?)
        }
        Command::Links(args) => role::run(&links::prepare(registry, *args)?),
        Command::Cluster(options) => ombx_cluster::run(options),
        Command::Doctor(args) => doctor::doctor(&args),
        Command::Check(args) => check::check(registry, parser, &args),
        Command::Osu(args) => osu::osu(registry, parser, *args),
        Command::Imb(args) => imb::imb(registry, parser, *args),
        Command::Show(args) => show::show(&args),
        Command::Compare(args) => compare::compare(&args),
        Command::Ab(args) => ab::ab(registry, parser, &matches, *args, chosen()?),
        Command::History(args) => history::history(&args),
        Command::Model(args) => model::model(&args),
        Command::Plot(args) => plot::plot(&args),
        Command::Report(args) => report::report(&args),
        Command::Help(args) => match args.page() {
            Some(text) => stdout::print(text),
            None => execute(registry, parser, args.words()),
        },
        Command::Completions(args) => completions::completions(&args),
        #[cfg(feature = "sockets")]
        Command::PipelineProcess { .. } => Ok(ombx_sockets::pipeline::serve()),
        #[cfg(feature = "sockets")]
        Command::Worker => execute(registry, parser, crate::launch::invitation::accept()?),
        #[cfg(feature = "sockets")]
        Command::Sockets(args) => sockets::sockets(&args),
        #[cfg(feature = "sockets")]
        Command::ServedRank => sockets::rank::run(registry, parser),
        #[cfg(feature = "mpi")]
        Command::TransportProbe => transport::exchange(),
        Command::Codegen(args) => codegen::codegen(parser.clone(), args.file),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fs;

    use ombx_core::error::Error;

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
        let parsed = parse(&parser, argv::normalized(words));
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
