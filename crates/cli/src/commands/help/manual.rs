//! Manual pages: one of ombx, and one of each command with its options, examples, exit codes and marks.

use std::{collections::BTreeMap, io};

use clap::Command;
use clap_mangen::Man;
use roff::{Inline, Roff, bold, roman};

use super::{examples, reference, visible};

/// Commands whose output has marks.
const MARKED: [&str; 5] = ["run", "congestion", "links", "osu", "show"];

/// Returns the text of each page by the name of its file.
pub(in crate::commands) fn pages(mut parser: Command) -> io::Result<BTreeMap<String, String>> {
    parser.build();
    let visible = visible(&parser);
    let mut pages = BTreeMap::from([("ombx.1".to_owned(), front(&parser, &visible)?)]);
    for command in &visible {
        pages.insert(format!("ombx-{}.1", command.get_name()), page(command)?);
    }
    Ok(pages)
}

/// Returns the page of ombx itself.
fn front(parser: &Command, commands: &[&Command]) -> io::Result<String> {
    let man = Man::new(parser.clone()).date("").manual("ombx");
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    let mut roff = Roff::new();
    roff.control("SH", ["SYNOPSIS"]);
    roff.text([bold("ombx"), roman(" COMMAND [OPTIONS]")]);
    roff.control("SH", ["COMMANDS"]);
    for command in commands {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        tagged(&mut roff, [bold(format!("ombx-{}", command.get_name())), roman("(1)")], &about);
    }
    roff.control("SH", ["EXIT STATUS"]);
    for row in reference::exit_codes() {
        tagged(&mut roff, [bold(row.code)], &format!("{} ({})", row.meaning, row.commands));
    }
    roff.to_writer(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Returns the page of a command.
fn page(command: &Command) -> io::Result<String> {
    let name = command.get_name();
    let source = format!("ombx {}", env!("CARGO_PKG_VERSION"));
    let man = Man::new(command.clone()).title(format!("ombx-{name}")).date("").source(source).manual("ombx");
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    let mut roff = Roff::new();
    roff.control("SH", ["NAME"]);
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    roff.text([roman(format!("ombx-{name} - {about}"))]);
    roff.control("SH", ["SYNOPSIS"]);
    let usage = command.clone().render_usage().to_string();
    roff.text([bold(usage.trim_start_matches("Usage:").trim())]);
    roff.to_writer(&mut text)?;
    man.render_description_section(&mut text)?;
    man.render_options_section(&mut text)?;
    let mut roff = Roff::new();
    roff.control("SH", ["EXAMPLES"]);
    for (about, line) in &examples::for_command(name).examples {
        roff.control("PP", []);
        roff.text([roman(format!("{about}:"))]);
        roff.control("PP", []);
        roff.control("RS", ["4"]);
        roff.control("nf", []);
        roff.text([bold(line.as_str())]);
        roff.control("fi", []);
        roff.control("RE", []);
    }
    roff.control("SH", ["EXIT STATUS"]);
    for row in reference::exit_codes().filter(|row| row.is_of(name)) {
        tagged(&mut roff, [bold(row.code)], &row.meaning);
    }
    if MARKED.contains(&name) {
        roff.control("SH", ["MARKS"]);
        roff.text([roman(reference::LEVELS)]);
        for mark in reference::marks() {
            let text = format!("{} ({}). What to do: {}.", mark.condition, mark.level, mark.advice);
            tagged(&mut roff, [bold(mark.shown)], &text);
        }
    }
    roff.control("SH", ["SEE ALSO"]);
    roff.text([bold("ombx"), roman("(1)")]);
    roff.to_writer(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Adds a paragraph with a tag before it.
fn tagged(roff: &mut Roff, tag: impl Into<Vec<Inline>>, text: &str) {
    roff.control("TP", []);
    roff.text(tag);
    roff.text([roman(text)]);
}
