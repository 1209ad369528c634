//! `ombx check`: its arguments, and the words of its file.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use clap::{Args, Command};
use ombx_check::check::{
    self, Request,
    expectations::{Entry, Expectations, KEYS_OF_ENTRY, KEYS_OF_FILE, Limits, MOST_NICE},
};
use ombx_core::benchmark::Registry;
use ombx_estimate::launches::LEAST_LONG_LAUNCHES;
use ombx_launch::{
    job::files_used,
    launch::{detection, preflight, start::Start},
    output::destination::Format,
};
use ombx_record::{
    error::{Error, Result},
    regular_file::{read_named, shown_name},
    unit,
};

use crate::{
    arguments::{
        output::{FileArgs, JSON, JUNIT, NAGIOS, some_of},
        values,
    },
    commands::run,
    suite::{OwnKeys, ResolvedEntry, Suite},
};

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// File of limits and of the directory with good days; - for standard input; ombx help expectations prints an example
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Add the result as a good day to the directory `baseline` of FILE, unless a limit is missed
    #[arg(long, help_heading = "Check")]
    learn: bool,
    /// Time for all measurements [default: that of the file, or 60s]
    #[arg(
        long, value_name = "TIME", allow_hyphen_values = true, value_parser = unit::parse_duration,
        help_heading = "Check"
    )]
    budget: Option<Duration>,
    /// Niceness of the ranks on this host [default: that of the file, or 10]
    #[arg(long, value_name = "N", value_parser = values::number::<i32>(0..=MOST_NICE), help_heading = "Check")]
    nice: Option<i32>,
    /// Format of the result
    #[arg(long, default_value = "table", value_parser = some_of(&FORMATS), help_heading = "Output")]
    format: Format,
    /// Directory that keeps the measured rows of each check in a new result file, named after time and host
    #[arg(long, value_name = "DIRECTORY", help_heading = "Output")]
    store: Option<PathBuf>,
    /// Also write the result for Prometheus to this file, for its textfile collector; the file is replaced as a whole at the end
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    openmetrics: Option<PathBuf>,
    /// JUnit report to write beside what is printed; a missed limit is a failure
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    junit: Option<PathBuf>,
    /// Print nothing if all limits are met
    #[arg(short, long, help_heading = "Output")]
    quiet: bool,
    #[command(flatten)]
    out: FileArgs,
}

/// Formats of the result.
const FORMATS: [(&str, &str, Format); 4] =
    [("table", "Table for people", Format::Table), JSON, NAGIOS, JUNIT];

pub(crate) fn check(registry: &Registry, parser: &Command, args: CheckArgs) -> Result<u8> {
    detection::refuse_launcher("ombx check", "and choose their number in the file")?;
    args.out.refuse_stdout("ombx check")?;
    let expectations = read(&args.file, registry, parser)?;
    let existing = args.out.existing();
    check::run(
        &expectations,
        &Request {
            file: args.file,
            learn: args.learn,
            budget: args.budget,
            nice: args.nice,
            format: args.format,
            store: args.store,
            openmetrics: args.openmetrics,
            junit: args.junit,
            quiet: args.quiet,
            out: args.out.out,
            existing,
        },
    )
}

/// Parses the text of a file of expectations and finds every mistake in it.
#[cfg(any(test, fuzzing))]
pub(crate) fn parse(text: &str, registry: &Registry, parser: &Command) -> Result<()> {
    expectations("node.toml", text, Path::new(""), registry, parser).map(drop)
}

const KEYS: OwnKeys = OwnKeys { command: "ombx check", of_file: KEYS_OF_FILE, of_entry: KEYS_OF_ENTRY };

/// Reads a file of expectations and finds every mistake in it. Starts nothing.
fn read(path: &Path, registry: &Registry, parser: &Command) -> Result<Expectations> {
    let name = shown_name(path);
    let text = read_named(path)
        .map_err(|e| Error::usage(format!("cannot read the file of expectations {name}: {e}")))?;
    let directory = path.parent().unwrap_or(Path::new(""));
    expectations(&name, &text, directory, registry, parser)
}

/// Parses the text of a file: a suite whose entries have limits. Its baseline is relative to this directory.
fn expectations(
    name: &str,
    text: &str,
    directory: &Path,
    registry: &Registry,
    parser: &Command,
) -> Result<Expectations> {
    let suite = Suite::parse_with(name, text, parser, KEYS)?;
    let mut expectations = Expectations::new(name);
    for value in &suite.own {
        let set = expectations.set(&value.key, &value.text, value.line, directory);
        set.map_err(|e| suite.at(value.line, &e))?;
    }
    for (entry, resolved) in suite.entry_jobs(registry, parser)? {
        let mut limits = Limits::default();
        for value in &entry.own {
            let choices = &resolved.part.choices;
            let set = limits.set(&value.key, &value.text, choices, expectations.baseline.as_ref());
            set.map_err(|e| suite.at(value.line, &e))?;
        }
        let own = limits.require_one().and_then(|()| job(entry.patterns.clone(), resolved, limits));
        expectations.entries.push(own.map_err(|e| suite.at(entry.line, &e))?);
    }
    Ok(expectations)
}

/// Validates an entry, so that it can be run.
fn job(patterns: Vec<String>, resolved: ResolvedEntry, limits: Limits) -> Result<Entry> {
    let (mut options, says_launches) = (resolved.options(), resolved.says_launches());
    let ResolvedEntry { ranks, args, part, .. } = resolved;
    let start = Start::from(args.start.clone());
    for choice in &part.choices {
        preflight::check(&start, ranks, choice.bench.ranks.medium)?;
    }
    let job = run::job(args, ranks, vec![part], None)?;
    let used = files_used(&job.start, &job.work.plans());
    if !says_launches {
        // The fewest with a 95 % interval.
        options.push(format!("--launches={LEAST_LONG_LAUNCHES}"));
    }
    Ok(Entry { patterns, options, limits, used })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::parser;

    fn parse(text: &str) -> Result<Expectations> {
        let registry = Registry::load().unwrap();
        expectations("node.toml", text, Path::new("/etc/ombx"), &registry, &parser(&registry))
    }

    #[cfg(feature = "sockets")]
    #[test]
    fn a_file_has_defaults_and_its_own_values() {
        let entry = "[[entry]]\nrun = 'sockets.latency'\nsizes = 8\nlatency = '<5us'\n";
        let usual = parse(entry).unwrap();
        let without = Expectations::new("node.toml");
        assert_eq!(
            (usual.budget, usual.pause, usual.nice, usual.busy),
            (without.budget, without.pause, without.nice, without.busy)
        );
        let [one] = &usual.entries[..] else { panic!("{usual:?}") };
        assert_eq!(one.options, ["--sizes=8", "--launches=6"]);
        assert_eq!(one.limits.absolute.as_ref().and_then(|limit| limit.most_us()), Some(5.0));
        let text = format!(
            "budget = '2m'\npause = '1s'\nnice = 0\nbusy = 'never'\nbaseline = 'good'\n[defaults]\n\
             quick = true\n{entry}within = '20%'"
        );
        let own = parse(&text).unwrap();
        let minutes = Duration::from_secs;
        assert_eq!((own.budget, own.pause, own.nice, own.busy), (minutes(120), minutes(1), 0, None));
        assert_eq!(own.baseline.unwrap().path, Path::new("/etc/ombx/good"));
        assert_eq!(own.entries[0].options, ["--quick", "--sizes=8"]);
        assert_eq!(own.entries[0].limits.within, Some(0.2));
    }

    #[cfg(feature = "sockets")]
    #[test]
    fn mistakes_have_lines() {
        let entry = "[[entry]]\nrun = 'sockets.latency'\n";
        for (text, line, part) in [
            ("budgt = '1m'\n".to_owned() + entry, 1, "budget?"),
            ("budget = 'soon'\n".to_owned() + entry, 1, "budget: duration"),
            ("nice = 20\n".to_owned() + entry, 1, "from 0 to 19"),
            ("busy = '200%'\n".to_owned() + entry, 1, "never"),
            ("busy = true\n".to_owned() + entry, 1, "in quotes or a number"),
            ("baseline = ''\n".to_owned() + entry, 1, "directory"),
            (entry.to_owned(), 2, "needs a limit"),
            (entry.to_owned() + "latncy = '<5us'", 3, "latency?"),
            (entry.to_owned() + "latency = '>5us'", 3, "\"<5us\""),
            (entry.to_owned() + "bw = '>5'", 3, "MB/s"),
            (entry.to_owned() + "bw = '>5GB/s'", 3, "give it latency"),
            (entry.to_owned() + "within = '20%'", 3, "needs a baseline"),
            ("baseline = 'x'\n".to_owned() + entry + "within = 0.2", 4, "did you mean 20 %"),
            (entry.to_owned() + "latency = '<5us'\nsizes = '8..1'", 4, "1..8"),
            (entry.to_owned() + "latency = '<5us'\noutput = 'x'", 4, "decided by ombx check"),
            (entry.to_owned() + "latency = '<5us'\ntimeout = '1s'", 4, "decided by ombx check"),
            (
                "[defaults]\nquiet = true\n".to_owned() + entry + "latency = '<5us'",
                2,
                "decided by ombx check",
            ),
            (entry.to_owned() + "latency = '<5us'\nranks = 1", 2, "ranks"),
        ] {
            let why = parse(&text).unwrap_err().to_string();
            assert!(why.starts_with(&format!("node.toml:{line}: ")) && why.contains(part), "{text}\n{why}");
        }
    }
}
