//! `ombx run --like FILE`: repeats the run of a result file, with what the user changes.

use std::{ffi::OsString, path::Path};

use clap::{Arg, ArgMatches, Command, parser::ValueSource};
use ombx_core::{
    error::{Error, Result},
    result::Run,
};
use ombx_results::file::Record;

use crate::{arguments::given, result_file};

/// Name of the option.
const LIKE: &str = "--like";
const PATTERNS: &str = "patterns";
/// Heading of options that say where rows go, which a repeated run does not take over.
const OUTPUT: &str = "Output";
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
        if let Record::Run(run) = record.map_err(|e| named(&e))? {
            return Ok(*run);
        }
    }
    Err(named(&"the file has no run"))
}

/// Returns the command line of the old run with the options that the new one has, and its benchmarks if it names any.
fn merged(run: &Command, old: &ArgMatches, new: &ArgMatches, own: &[OsString]) -> Vec<OsString> {
    let is_given = |arg: &Arg| new.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine);
    let contradicts = |one: &Arg, other: &Arg| {
        run.get_arg_conflicts_with(one).iter().any(|conflict| conflict.get_id() == other.get_id())
    };
    let is_kept = |arg: &&Arg| {
        let is_output = arg.get_help_heading() == Some(OUTPUT) && !SHOWN.contains(&arg.get_id().as_str());
        let is_replaced = run.get_arguments().filter(|other| is_given(other)).any(|other| {
            other.get_id() == arg.get_id() || contradicts(arg, other) || contradicts(other, arg)
        });
        !arg.is_hide_set() && !is_output && !is_replaced
    };
    let kept = given::options(run, old).filter(|(arg, _)| is_kept(arg)).flat_map(|(_, words)| words);
    let patterns = |matches: &ArgMatches| {
        let patterns = matches.get_many::<String>(PATTERNS).into_iter().flatten();
        patterns.map(OsString::from).collect::<Vec<_>>()
    };
    let changed = given::options(run, new).flat_map(|(_, words)| words);
    let named = Some(patterns(new)).filter(|named| !named.is_empty()).unwrap_or_else(|| patterns(old));
    let dashes = if named.is_empty() { None } else { Some(OsString::from("--")) };
    own[..2].iter().cloned().chain(kept).chain(changed).chain(dashes).chain(named).collect()
}

#[cfg(test)]
mod tests {
    use ombx_core::benchmark::Registry;

    use super::*;
    use crate::commands;

    const GOLDEN: &str = include_str!("../../../../results/tests/golden/one_launch.jsonl");

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
}
