//! What reads what users and other programs wrote, called with any bytes; nothing is started. The programs of `fuzz/` call these
//! for hours, the tests below for a moment.

use std::{ffi::OsString, os::unix::ffi::OsStringExt, sync::LazyLock};

use clap::FromArgMatches;
use ombx_core::{
    benchmark::registry::Registry,
    error::{Error, Kind, Result},
};
use ombx_report::{Report, Source, page};
use ombx_results::{
    compare::{Comparison, SideResults},
    file,
};

#[cfg(feature = "sockets")]
pub use crate::fabric::fuzz as hosts;
use crate::{
    args::{self, Cli, Task},
    argv, axes,
    compare::junit,
    job::Job,
    links, osu, plain, run,
    suite::Suite,
    typed,
};

static KNOWN: LazyLock<(Registry, clap::Command)> = LazyLock::new(|| {
    let registry = Registry::load().unwrap();
    let command = args::command(&registry);
    (registry, command)
});

/// A command line, a word a line, as far as it goes before anything is started: a mistake is a usage error of one line.
pub fn command_line(bytes: &[u8]) {
    let (registry, command) = &*KNOWN;
    let words = bytes.split(|byte| *byte == b'\n').map(|word| OsString::from_vec(word.to_vec()));
    let words: Vec<OsString> = words.collect();
    if let Err(error) = argv::check(&words) {
        return told(&error.to_string());
    }
    let words = argv::read(words);
    let matches = match command.clone().try_get_matches_from(words) {
        Ok(matches) => matches,
        Err(error) => return told(&typed::sentence(&error)),
    };
    let cli = Cli::from_arg_matches(&matches).unwrap();
    let read = || {
        let sub = matches.subcommand().map(|(_, sub)| sub);
        let chosen = sub.map(|sub| axes::chosen(registry, sub)).transpose()?.unwrap_or_default();
        match &cli.task {
            // A suite would be a file.
            Task::Run(task) if task.patterns.iter().any(|p| p.ends_with(".toml") || p.contains('/')) => Ok(0),
            Task::Run(task) => run::prepare(registry, command, &matches, task, chosen, judge),
            Task::Links(task) => links::prepare(registry, task, judge),
            Task::Osu(task) => match &task.name {
                Some(name) => {
                    osu::prepare(task, &osu::program::Program::find(registry, name)?, |_, job| judge(job))
                }
                None => Ok(0),
            },
            _ => Ok(0),
        }
    };
    refused_or(read());
}

/// What holds of every job that could be started.
fn judge(job: &Job<'_>) -> Result<u8> {
    assert!(job.extent.ranks > 0 && !job.parts().is_empty());
    #[cfg(feature = "sockets")]
    if job.start.hostfile.is_none() {
        job.parts().iter().try_for_each(crate::fabric::check)?;
    }
    Ok(0)
}

/// The text of a suite.
pub fn suites(bytes: &[u8]) {
    let (registry, command) = &*KNOWN;
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let resolved = Suite::of("suite.toml", text, command)
        .and_then(|suite| suite.resolve(registry, command, None))
        .map(|resolved| assert!(!resolved.parts.is_empty() && resolved.ranks > 0));
    refused_or(resolved);
}

/// A result file, as a page and as a report for CI: none of its text becomes markup.
pub fn pages(bytes: &[u8]) {
    let Ok(file) = file::read(bytes) else { return };
    let [mut base, mut new] = ["base", "new"].map(SideResults::named);
    file.runs.iter().for_each(|run| base.run(run));
    file.runs.iter().for_each(|run| new.run(run));
    let comparison = Comparison::of(&base, &new);
    let source = [Source { name: "a<b>.jsonl", file: &file }];
    let page = page(&Report { sources: &source, comparison: Some(&comparison) });
    assert_eq!(page.matches("<script").count(), 1);
    for handler in ["<img", "<iframe", "javascript:"] {
        let hidden = String::from_utf8_lossy(bytes).contains(handler);
        assert!(!page.contains(handler) || (hidden && !handler.starts_with('<')), "{handler}");
    }
    junit::report(&comparison, 0.05);
}

fn refused_or<T>(read: Result<T>) {
    if let Err(error) = read {
        assert!(
            matches!(error.kind(), Kind::Usage | Kind::Unsupported),
            "{:?}: {error}",
            Error::kind(&error)
        );
        told(&error.to_string());
    }
}

/// A mistake is one line, without what moves a cursor.
pub(crate) fn told(why: &str) {
    let line = plain::line(why);
    assert!(!line.trim().is_empty() && !line.contains(char::is_control), "{line:?}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombx_core::testkit::hostile;

    #[test]
    fn any_command_line_is_a_job_or_a_mistake() {
        hostile("command_line", 400, command_line);
    }

    #[test]
    fn any_text_is_a_suite_or_a_mistake() {
        hostile("suites", 300, suites);
    }

    #[test]
    fn any_result_file_is_a_page_without_markup_of_its_own() {
        hostile("pages", 300, pages);
    }

    #[cfg(feature = "sockets")]
    #[test]
    fn any_text_names_hosts_or_none() {
        hostile("hosts", 5000, hosts);
    }
}
