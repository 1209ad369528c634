//! Lines on standard error.

use std::{
    env,
    ffi::OsStr,
    fmt::Arguments,
    io::{self, IsTerminal as _, Write},
};

use ombx_estimate::text::plain;
use ombx_show::wrapped;

use crate::output::terminal;

/// Between two lines of a sentence.
const INDENTATION: &str = "\n    ";

/// Longer words are shortened: only their two ends are shown. Counted in characters.
const LONGEST_WORD: usize = 160;
/// Characters shown of each end of a long word.
const END_OF_WORD: usize = 40;
/// Longer lines are cut. The names of all benchmarks fit. Counted in characters.
const LONGEST_LINE: usize = 8000;

/// Writes one line in a single call; a terminal has sentences of ombx in lines of its width. Ignores errors: a closed standard error is
/// no reason to fail.
pub fn write_line(text: Arguments<'_>) {
    let mut line = text.to_string();
    let columns =
        io::stderr().is_terminal().then(terminal::stderr_size).flatten().map(|[columns, _]| columns);
    if let Some(columns) = columns.filter(|_| line.starts_with("ombx: ")) {
        line = wrapped(&line, columns.saturating_sub(INDENTATION.len())).join(INDENTATION);
    }
    let _ = io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// Variable by which a user wants no notes.
const QUIET: &str = "OMBX_QUIET";

/// Writes a line as [`write_line`] does, unless the user wants no notes.
pub fn write_note(text: Arguments<'_>) {
    if !is_quiet(env::var_os(QUIET).as_deref()) {
        write_line(text);
    }
}

fn is_quiet(value: Option<&OsStr>) -> bool {
    value.is_some_and(|value| !value.is_empty() && value != "0")
}

/// Returns the text as one line of limited length without control characters.
pub fn printable(text: &str) -> String {
    let text = without_numbers(plain(text));
    let line = text.split(' ').map(shortened).collect::<Vec<_>>().join(" ");
    line.chars().take(LONGEST_LINE).collect()
}

/// Leaves out the numbers of errors of the system, which are no exit codes of ombx.
fn without_numbers(mut text: String) -> String {
    while let Some(start) = text.find(" (os error ") {
        let Some(length) = text[start..].find(')') else { break };
        text.replace_range(start..=start + length, "");
    }
    text
}

fn shortened(word: &str) -> String {
    let count = word.chars().count();
    if count <= LONGEST_WORD {
        return word.to_owned();
    }
    let first: String = word.chars().take(END_OF_WORD).collect();
    let last: String = word.chars().skip(count - END_OF_WORD).collect();
    format!("{first}[{} more]{last}", count - 2 * END_OF_WORD)
}

#[cfg(test)]
mod tests {
    use crate::stderr::*;

    #[test]
    fn a_variable_silences_notes() {
        let quiet = |value: &str| is_quiet(Some(OsStr::new(value)));
        assert!(quiet("1") && quiet("yes") && !quiet("0") && !quiet("") && !is_quiet(None));
    }

    #[test]
    fn a_line_is_short_and_moves_no_cursor() {
        assert_eq!(printable("pattern \"a\x1b[2J\nb\" is no name"), "pattern \"a [2J b\" is no name");
        assert_eq!(printable("a: No such file (os error 2), b (os error 13)"), "a: No such file, b");
        let long = printable(&format!("no benchmark is called {} here", "é".repeat(70_000)));
        assert!(
            long.contains("[69920 more]") && long.ends_with(" here") && long.chars().count() < 200,
            "{long}"
        );
        assert_eq!(printable(&"x ".repeat(70_000)).chars().count(), LONGEST_LINE);
    }
}
