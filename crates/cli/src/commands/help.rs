//! `ombx help`: the help of a command, and pages of the reference that a terminal shows.

pub(super) mod examples;
#[cfg(feature = "codegen")]
pub(super) mod manual;
mod reference;

use std::ffi::OsString;

use clap::{
    Args, Command,
    builder::{PossibleValue, PossibleValuesParser},
};
use ombx_results::render::wrapped;

use crate::output::terminal;

/// Width of pages without a terminal.
const COLUMNS: usize = 100;

const EXIT_CODES: &str = "exit-codes";
const MARKS: &str = "marks";
/// Pages that are not the help of a command.
const PAGES: [(&str, &str); 2] = [
    (EXIT_CODES, "Exit codes of all commands"),
    (MARKS, "What the marks of the column trust mean, and what to do"),
];

#[derive(Debug, Args)]
pub(crate) struct HelpArgs {
    /// Command or page [default: all commands]
    #[arg(value_name = "COMMAND|PAGE")]
    topic: Option<String>,
}

/// Adds examples to the help of each command, and the commands and pages to `ombx help`.
pub(super) fn adapt(parser: Command) -> Command {
    let commands: Vec<PossibleValue> = visible(&parser)
        .into_iter()
        .map(|command| {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            PossibleValue::new(command.get_name().to_owned()).help(about)
        })
        .collect();
    let pages = PAGES.map(|(name, about)| PossibleValue::new(name).help(about));
    let topics = PossibleValuesParser::new(commands.into_iter().chain(pages));
    parser
        .mut_subcommands(|command| match examples::of(command.get_name()) {
            Some(examples) => {
                let text = examples.text();
                command.after_help(text)
            }
            None => command,
        })
        .mut_subcommand("help", |help| help.mut_arg("topic", |topic| topic.value_parser(topics)))
        .after_help("A first look: ombx run p2p.latency\nHelp of a command, with examples: ombx help run")
}

/// Returns the commands of users, in the order of the help.
fn visible(parser: &Command) -> Vec<&Command> {
    let mut commands: Vec<&Command> =
        parser.get_subcommands().filter(|command| !command.is_hide_set()).collect();
    commands.sort_by_key(|command| command.get_display_order());
    commands
}

impl HelpArgs {
    /// Returns the text of a page; `None` for the help of a command.
    pub(super) fn page(&self) -> Option<String> {
        let columns = terminal::columns().unwrap_or(COLUMNS);
        match self.topic.as_deref() {
            Some(MARKS) => Some(marks(columns)),
            Some(EXIT_CODES) => Some(exit_codes(columns)),
            _ => None,
        }
    }

    /// Returns the command line that prints the help of the command.
    pub(super) fn words(&self) -> Vec<OsString> {
        ["ombx"].into_iter().chain(self.topic.as_deref()).chain(["--help"]).map(OsString::from).collect()
    }
}

fn exit_codes(columns: usize) -> String {
    let rows = reference::exit_codes();
    let lines =
        rows.map(|row| paragraph(&row.code, 10, &format!("{} ({})", row.meaning, row.commands), columns));
    lines.collect()
}

fn marks(columns: usize) -> String {
    let mut text = paragraph("", 0, reference::LEVELS, columns);
    for mark in reference::marks() {
        text += &format!("\n{}\n", mark.shown);
        for (name, value) in
            [("code", &mark.code), ("level", &mark.level), ("if", &mark.condition), ("do", &mark.advice)]
        {
            text += &paragraph(&format!("  {name}"), 9, value, columns);
        }
    }
    text
}

/// Returns a name and a text beside it, whose lines all begin in the same column.
fn paragraph(name: &str, before: usize, text: &str, columns: usize) -> String {
    let lines = wrapped(text, columns.saturating_sub(before)).join(&format!("\n{:before$}", ""));
    format!("{name:before$}{lines}\n")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use ombx_core::benchmark::Registry;

    use super::*;
    use crate::commands::{Cli, parser, tests::prepare};

    /// The examples replace what a command says itself.
    #[test]
    fn no_command_has_another_end_of_its_help() {
        for command in Cli::command().get_subcommands() {
            assert!(command.get_after_help().is_none(), "{}: add it to the examples", command.get_name());
        }
    }

    #[test]
    fn every_command_has_examples_that_it_accepts() {
        let registry = Registry::load().unwrap();
        let parser = parser(&registry);
        for command in visible(&parser) {
            let name = command.get_name();
            let examples = examples::of(name).unwrap_or_else(|| panic!("{name} has no examples"));
            for (_, line) in examples.all() {
                let own: Vec<&str> = line.split(" && ").filter_map(ombx_of).collect();
                assert!(own.iter().any(|line| line.starts_with(&format!("ombx {name}"))), "{line}");
                #[cfg(all(feature = "mpi", feature = "sockets"))]
                for line in own {
                    if let Err(why) = prepare(&registry, line) {
                        // Examples read files of the user.
                        assert!(why.to_string().contains("No such file"), "{line}: {why}");
                    }
                }
            }
        }
    }

    /// Returns a command from its `ombx` on, without what reads its output.
    fn ombx_of(line: &str) -> Option<&str> {
        let line = &line[line.find("ombx ")?..];
        let ends = [" | ", " > ", ")"].into_iter().filter_map(|end| line.find(end));
        Some(&line[..ends.min().unwrap_or(line.len())])
    }

    #[test]
    fn the_pages_have_every_row() {
        let marks = marks(60);
        for part in ["oversubscribed\n  code", "  level  by D", "  do     use fewer ranks"] {
            assert!(marks.contains(part), "{part}\n{marks}");
        }
        assert!(marks.lines().all(|line| line.chars().count() <= 60), "{marks}");
        let codes = exit_codes(60);
        for code in ["0 ", "2 ", "3 ", "8 ", "10 ", "128 + N "] {
            assert!(codes.lines().any(|line| line.starts_with(code)), "{code}\n{codes}");
        }
    }
}
