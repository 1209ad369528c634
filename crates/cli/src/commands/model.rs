//! `ombx model`: parameters of LogGP with intervals, and the message sizes at which the protocol switches.

use std::{
    ffi::{OsStr, OsString},
    io::{self, IsTerminal, Write},
    path::PathBuf,
    process::Command,
    time::Duration,
};

use clap::Args;
use ombx_compare::model;
use ombx_estimate::{publishable::Publishable, samples::SampleStore};
use ombx_host::signals::Interruption;
use ombx_launch::{
    launch::{detection, finite_run},
    note_line,
    output::{
        destination::{Color, Format},
        renderers,
        target::{self, ResultTarget},
        terminal::{self, is_closed},
    },
    result_file::KnownRuns,
    stderr_line, this_process,
};
use ombx_record::{
    error::{Error, Exit, Result},
    file::{self, ResultFile},
};
use ombx_show::model::{self as render, Shown};

use crate::arguments::output::{COLORS, FileArgs, JSON, some_of};

#[derive(Debug, Args)]
pub(crate) struct ModelArgs {
    /// Result files of p2p.latency and p2p.bw, or of sockets.latency and sockets.bw; without files, ombx measures them
    files: Vec<PathBuf>,
    /// What connects the ranks of a measurement
    #[arg(long, value_parser = some_of(&FABRICS), conflicts_with = "files")]
    fabric: Option<Benchmarks>,
    /// Format of the output
    #[arg(long, default_value = "table", value_parser = some_of(&FORMATS), help_heading = "Output")]
    format: Format,
    #[command(flatten)]
    out: FileArgs,
    /// Use of colours
    #[arg(long, default_value = "auto", value_parser = some_of(&COLORS), help_heading = "Output")]
    color: Color,
    /// Options of `ombx run` for a measurement, with or without two dashes before them: --hosts n01,n02 --sizes 1..1M
    #[arg(last = true, value_name = "OPTIONS")]
    run: Vec<String>,
}

/// Benchmarks of latency and bandwidth.
type Benchmarks = [&'static str; 2];
/// Values of `--fabric`.
const FABRICS: [(&str, &str, Benchmarks); 2] = [
    ("mpi", "p2p.latency and p2p.bw", ["p2p.latency", "p2p.bw"]),
    ("sockets", "sockets.latency and sockets.bw", ["sockets.latency", "sockets.bw"]),
];

/// Formats of the output.
const FORMATS: [(&str, &str, Format); 3] = [
    ("table", "Tables for people", Format::Table),
    ("csv", "CSV, one line per parameter, segment and switch", Format::Csv),
    JSON,
];

pub(crate) fn model(parser: &clap::Command, args: &ModelArgs) -> Result<u8> {
    let mut store = SampleStore::at_most(1);
    if args.files.is_empty() {
        match measured(parser, args)? {
            Ok(file) => add(&mut store, &file),
            Err(code) => return Ok(code),
        }
    } else {
        if !args.run.is_empty() || args.out.out.is_some() {
            return Err(Error::usage(
                "-o and options of ombx run are for a measurement: leave out the result files, or leave \
                 out -o and these options",
            ));
        }
        let mut known = KnownRuns::default();
        for path in &args.files {
            add(&mut store, &known.read(path)?);
        }
    }
    let setups = store.setups().to_vec();
    let mut cases = store.into_cases();
    cases.retain(|case| model::is_used(&case.row().bench));
    let models = model::models(&cases);
    if models.is_empty() {
        return Err(Error::usage(
            "a model needs measured rows of p2p.latency or sockets.latency: run ombx run p2p.latency \
             p2p.bw -o FILE, then ombx model FILE",
        ));
    }
    let mut rows = Publishable::default();
    cases.iter().for_each(|case| rows.add(&case.estimate()));
    is_closed(print(&Shown { models, setups, rows }, args))?;
    Ok(0)
}

/// Moves the options of `ombx run` in the words of `ombx model` behind two dashes. An option that both have is one of `ombx model`.
pub(crate) fn with_dashes(parser: &clap::Command, words: Vec<OsString>) -> Vec<OsString> {
    let [Some(model), Some(run)] = ["model", "run"].map(|name| parser.find_subcommand(name)) else {
        return words;
    };
    if words.get(1).is_none_or(|word| word != "model") || words.iter().any(|word| word == "--") {
        return words;
    }
    let mut rest = words[2..].iter().cloned().peekable();
    let (mut own, mut of_run) = (words[..2].to_vec(), Vec::new());
    while let Some(word) = rest.next() {
        let found = option(model, &word).map(|arg| (arg, &mut own));
        let found = found.or_else(|| option(run, &word).map(|arg| (arg, &mut of_run)));
        let Some((arg, words)) = found else {
            own.push(word);
            continue;
        };
        let is_alone = word.to_string_lossy().chars().count() == 2
            || word.as_encoded_bytes().starts_with(b"--") && !word.as_encoded_bytes().contains(&b'=');
        words.push(word);
        if is_alone
            && arg.get_num_args().is_none_or(|range| range.min_values() > 0)
            && arg.get_action().takes_values()
        {
            words.extend(rest.next());
        }
    }
    if of_run.is_empty() { words } else { [own, vec!["--".into()], of_run].concat() }
}

/// Returns the option of a command that a word names, alone or with its value.
fn option<'c>(command: &'c clap::Command, word: &OsStr) -> Option<&'c clap::Arg> {
    let word = word.to_str()?;
    let has_name = |arg: &&clap::Arg| match word.strip_prefix("--") {
        Some(name) => {
            let name = name.split('=').next();
            arg.get_long() == name
                || arg.get_all_aliases().is_some_and(|all| all.iter().any(|alias| Some(*alias) == name))
        }
        None => {
            let letter = word.strip_prefix('-').and_then(|letters| letters.chars().next());
            letter.is_some() && arg.get_short() == letter
        }
    };
    command.get_arguments().find(has_name)
}

fn add(store: &mut SampleStore, file: &ResultFile) {
    file.runs.iter().filter(|run| !run.is_sweep()).for_each(|launch| store.launch(launch));
}

/// Time after which a measurement has failed. `ombx run` has deadlines of its own, which are shorter.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// Measures both benchmarks and keeps what `ombx run` prints in the file of `-o`, even of a failure. Returns the exit code of a measurement
/// without results, whose message was printed.
///
/// # Errors
/// `ombx run` cannot be started, or prints something other than results.
fn measured(parser: &clap::Command, args: &ModelArgs) -> Result<std::result::Result<ResultFile, u8>> {
    detection::refuse_launcher("ombx model", "or give result files")?;
    args.out.refuse_stdout("ombx model")?;
    let words = ["ombx", "run"].into_iter().chain(args.run.iter().map(String::as_str));
    let mut out = match (&args.out.out, parser.clone().try_get_matches_from(words)) {
        (Some(path), Ok(matches)) => {
            let run = matches.subcommand_matches("run");
            let hostfile = run.and_then(|run| run.get_one::<PathBuf>("hostfile"));
            target::check(path, "-o", hostfile.map(|path| ("the host file that is read", path.as_path())))?;
            Some(ResultTarget::open(path, args.out.existing(), Duration::ZERO)?)
        }
        // `ombx run` tells the mistake in its words and measures nothing.
        _ => None,
    };
    let benchmarks = args.fabric.unwrap_or(FABRICS[0].2);
    let interruption = Interruption::new()?;
    if io::stderr().is_terminal() {
        note_line!("ombx: measuring {} and {}, which takes a minute or two", benchmarks[0], benchmarks[1]);
    }
    let mut command = Command::new(this_process::executable()?);
    command.args(["run", "--quiet", "--color=never", "--format=jsonl"]).args(&args.run).args(benchmarks);
    let ended = finite_run::run(command, LONGEST, || interruption.has_arrived());
    if let Some(code) = interruption.exit_code() {
        stderr_line!("ombx: interrupted");
        return Ok(Err(code));
    }
    let ([contents, messages], status) = ended?;
    if let Some(file) = &mut out {
        file.write(|out| out.write_all(contents.as_bytes()))?;
    }
    for line in messages.lines() {
        stderr_line!("{line}");
    }
    // Rows that cannot be measured here are left out of the model.
    if !finite_run::has_ended_by(status, &[Exit::Success, Exit::Incomplete]) {
        let code = status.code().and_then(|code| u8::try_from(code).ok());
        return Ok(Err(code.unwrap_or(Exit::Fabric.code())));
    }
    let read = file::read(contents.as_bytes());
    read.map(Ok).map_err(|e| Error::fabric(format!("ombx run prints something other than results: {e}")))
}

fn print(shown: &Shown, args: &ModelArgs) -> io::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    match args.format {
        Format::Csv => render::model_csv(&mut out, shown)?,
        Format::Json => writeln!(out, "{:#}", render::model_json(shown))?,
        _ => {
            render::table(&mut out, shown, renderers::paint(args.color), terminal::columns())?;
        }
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use ombx_core::benchmark::Registry;

    use crate::commands::model::*;

    #[test]
    fn options_of_run_need_no_dashes() {
        let parser = crate::commands::parser(&Registry::load().unwrap());
        let words = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        for (typed, meant) in [
            ("ombx model --quick", "ombx model -- --quick"),
            ("ombx model --sizes 1..1M -o m.jsonl", "ombx model -o m.jsonl -- --sizes 1..1M"),
            ("ombx model -n2 --format=json --seed=1", "ombx model --format=json -- -n2 --seed=1"),
            ("ombx model r.jsonl --format csv", "ombx model r.jsonl --format csv"),
            ("ombx model --color never -- --quick", "ombx model --color never -- --quick"),
            ("ombx model --unknown 3", "ombx model --unknown 3"),
            ("ombx run p2p.latency --quick", "ombx run p2p.latency --quick"),
        ] {
            assert_eq!(with_dashes(&parser, words(typed)), words(meant), "{typed}");
        }
    }
}
