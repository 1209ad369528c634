//! Readers of text from users and other programs, called with any bytes. Nothing is started. The programs of `fuzz/` call these
//! functions for hours, the tests below for a moment.

use std::{ffi::OsString, os::unix::ffi::OsStringExt, sync::LazyLock};

use ombx_compare::{Comparison, Settings, SideResults};
use ombx_core::benchmark::Registry;
use ombx_draw::terminal::Characters;
use ombx_drop_in::{imb::programs, osu::OsuTable};
use ombx_estimate::samples::SampleStore;
use ombx_launch::{job::Job, stderr, this_process};
use ombx_record::{
    error::{Error, Kind, Result},
    event::Event,
    file,
};
use ombx_report::{Report, Samples, Source, page};
use ombx_show::Renderer as _;

use crate::{
    arguments::{argv, parameters},
    commands::{self, Command, check, compare, imb, links, osu, run},
    suite::Suite,
};

static PARSER: LazyLock<(Registry, clap::Command)> = LazyLock::new(|| {
    let registry = Registry::load().unwrap();
    let parser = commands::parser(&registry);
    (registry, parser)
});

/// Reads a command line of one word per line and prepares its job. A mistake is a usage error of one line.
pub fn command_line(bytes: &[u8]) {
    let (_, parser) = &*PARSER;
    let words = bytes.split(|byte| *byte == b'\n').map(|word| OsString::from_vec(word.to_vec()));
    let words: Vec<OsString> = words.collect();
    if let Err(error) = argv::check_lengths(&words) {
        return check_message(&error.to_string());
    }
    let (command, matches) = match commands::parse(parser, this_process::normalized(words)) {
        Ok(parsed) => parsed,
        Err(error) => return check_message(&argv::mistake_sentence(&error)),
    };
    check_refusal(prepare(command, &matches));
}

/// Prepares the job of a command and checks it. Suites and input files of IMB are not read.
fn prepare(command: Command, matches: &clap::ArgMatches) -> Result<()> {
    let (registry, parser) = &*PARSER;
    let chosen = parameters::chosen(registry, matches)?;
    let job = match command {
        // A suite would be a file.
        Command::Run(args) if args.patterns.iter().any(|p| p.ends_with(".toml") || p.contains('/')) => {
            return Ok(());
        }
        Command::Run(args) => run::prepare(registry, parser, matches, *args, chosen)?,
        Command::Links(args) => links::prepare(registry, *args)?,
        Command::Osu(args) => {
            let Some(name) = args.name.clone() else { return Ok(()) };
            osu::prepare(matches, *args, &osu::find(registry, &name)?)?.0
        }
        Command::Imb(args) => {
            // The options may name files.
            let files = args.msglen.is_some() || args.input.is_some();
            let Some(name) = args.name.clone().filter(|_| !files) else { return Ok(()) };
            imb::prepare(registry, parser, matches, *args, programs::find(&name)?)?.0
        }
        _ => return Ok(()),
    };
    check_job(&job)
}

/// Checks what holds for every job that could be started.
fn check_job(job: &Job) -> Result<()> {
    assert!(job.extent.ranks > 0 && !job.work.kinds().is_empty());
    #[cfg(feature = "sockets")]
    if job.start.hostfile.is_none() {
        ombx_launch::launch::coordinator::of_ranks(&job.start, job.extent.ranks)?;
    }
    Ok(())
}

/// Reads the text of a suite, and as that of a file of expectations.
pub fn suites(bytes: &[u8]) {
    let (registry, parser) = &*PARSER;
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let resolved = Suite::parse("suite.toml", text, parser)
        .and_then(|suite| suite.resolve(registry, parser, None))
        .map(|resolved| assert!(!resolved.parts.is_empty() && resolved.ranks > 0));
    check_refusal(resolved);
    check_refusal(check::parse(text, registry, parser));
}

/// Writes a result file as a page with figures, as charts for the terminal, and as a JUnit report. None of its text becomes markup.
pub fn pages(bytes: &[u8]) {
    let Ok(file) = file::read(bytes) else { return };
    let [mut base, mut new] = ["base", "new"].map(SideResults::named);
    file.runs.iter().for_each(|run| base.run(run));
    file.runs.iter().for_each(|run| new.run(run));
    let comparison = Comparison::new(&base, &new, Settings::default());
    let source = [Source { name: "a<b>.jsonl", file: &file.clone().into() }];
    let mut store = SampleStore::at_most(64);
    file.runs.iter().for_each(|run| store.launch(run));
    let cases = store.into_cases();
    for case in &cases {
        let mut chart = Vec::new();
        ombx_draw::terminal::samples::draw(&mut chart, case, 60, Characters::Ascii).unwrap();
        let chart = String::from_utf8(chart).unwrap();
        assert!(!chart.contains(|c: char| c.is_control() && c != '\n'), "{chart:?}");
    }
    let samples = [Samples { label: "a<b>", cases: &cases }];
    let page = page(&Report {
        sources: &source,
        samples: &samples,
        comparison: Some(&comparison),
        ..Report::default()
    });
    assert_eq!(page.matches("<script").count(), 1);
    for handler in ["<img", "<iframe", "javascript:"] {
        let hidden = String::from_utf8_lossy(bytes).contains(handler);
        assert!(!page.contains(handler) || (hidden && !handler.starts_with('<')), "{handler}");
    }
    compare::report(&comparison);
    let (mut osu, mut table) = (OsuTable::new(|_| None), Vec::new());
    for row in file.runs.iter().flat_map(|run| &run.rows) {
        osu.event(&mut table, &Event::row(row)).unwrap();
    }
    osu.finish(&mut table).unwrap();
    let table = String::from_utf8(table).unwrap();
    assert!(!table.contains(|c: char| c.is_control() && c != '\n'), "{table:?}");
}

/// Reads a host file, an invitation, a job for a server and a rendezvous file. No host is an option or a command, and an invitation can be
/// written and read again.
#[cfg(feature = "sockets")]
pub fn hosts(bytes: &[u8]) {
    use ombx_launch::{
        launch::{hosts::hosts_of_file, invitation::Invitation, served},
        rank::sockets,
    };
    use ombx_record::codec;
    let text = String::from_utf8_lossy(bytes);
    match hosts_of_file("hosts", &text) {
        Ok(hosts) => {
            let plain = |c: char| c.is_ascii_alphanumeric() || "-._:[]%@".contains(c);
            let sound = |host: &str| !host.starts_with('-') && host.chars().all(plain);
            let counted = |slots: Option<u32>| slots.is_none_or(|slots| (1..=4096).contains(&slots));
            assert!(hosts.iter().all(|host| sound(&host.name) && counted(host.slots)));
        }
        Err(error) => check_message(&error.to_string()),
    }
    if let Some(invitation) = codec::decode::<Invitation>(bytes) {
        let read: Invitation = codec::decode(&codec::encode(&invitation)).unwrap();
        assert_eq!((read.job.argv, read.addresses), (invitation.job.argv, invitation.addresses));
    }
    check_refusal(served::read_job(bytes).map(drop));
    // The name of another host would be resolved.
    if text.contains("\"identity\":\"\"") || !text.contains("identity") {
        let _ = sockets::parse_rendezvous(&text);
    }
}

fn check_refusal(read: Result<()>) {
    if let Err(error) = read {
        let kind = Error::kind(&error);
        assert!(matches!(kind, Kind::Usage | Kind::Unsupported), "{kind:?}: {error}");
        check_message(&error.to_string());
    }
}

/// Checks that a message is one line without control characters.
fn check_message(message: &str) {
    let line = stderr::printable(message);
    assert!(!line.trim().is_empty() && !line.contains(char::is_control), "{line:?}");
}

#[cfg(test)]
mod tests {
    use ombx_testkit::hostile;

    use super::*;

    #[test]
    fn any_command_line_is_a_job_or_a_mistake() {
        hostile("command_line", 400, command_line);
    }

    #[test]
    fn any_text_is_a_suite_or_a_mistake() {
        hostile("suites", 300, suites);
    }

    #[test]
    fn any_result_file_gives_a_page_without_its_markup() {
        hostile("pages", 300, pages);
    }

    #[cfg(feature = "sockets")]
    #[test]
    fn any_text_names_hosts_or_none() {
        hostile("hosts", 5000, hosts);
    }
}
