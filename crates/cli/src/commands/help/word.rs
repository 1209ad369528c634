//! What a word means: an option, a value of an option, a benchmark, a family, a column, a mark, a key of `ombx check` or an exit code.

use clap::{Arg, Command, builder::PossibleValue};
use ombx_core::benchmark::{Benchmark, Registry};
use ombx_record::error::{Error, Exit, Result};

use super::{
    PAGES,
    examples::NODE_CHECK,
    page::{Detail, Page},
    reference, visible,
};
use crate::{commands::list, families, lookup};

/// Shortest word that names of benchmarks are searched for.
const SHORTEST: usize = 2;
/// Exit codes of signals in the table of all codes, and the last signal of Linux.
const SIGNALS: &str = "128 + N";
const LAST_SIGNAL: u8 = 64;
/// Words before the number of an exit code.
const BEFORE_CODE: [&str; 2] = ["exit code ", "exit "];
/// Column of which every percentile has one.
const PERCENTILE: &str = "p50 iteration";
/// What stands for a number, and for a name, in the forms of marks.
const NUMBERS: [&str; 6] = ["D", "M", "N", "P", "Q", "R"];
const NAMES: [&str; 4] = ["COUNTER", "DEVICE", "HOST", "NAME"];
/// Last words of headings, which are no part of the names.
const UNITS: [&str; 7] = ["us", "ns", "ms", "percent", "MB/s", "MiB/s", "Gbit/s"];

/// Returns everything that a word stands for.
///
/// # Errors
/// The word means nothing; the message has the most similar one.
pub(super) fn explained(registry: &Registry, parser: &Command, word: &str, page: Page) -> Result<String> {
    let code = BEFORE_CODE.iter().find_map(|before| word.strip_prefix(before));
    let word = code.filter(|code| code.starts_with(|c: char| c.is_ascii_digit())).unwrap_or(word);
    let parts = [
        benchmarks(registry, word, page),
        options(parser, word, page),
        values(parser, word, page),
        columns(word, page),
        marks(word, page),
        levels(word, page),
        keys(word),
        exit_codes(word, page),
    ];
    let mut text = parts.into_iter().flatten().collect::<Vec<_>>().join("\n");
    if text.is_empty() {
        text = named_after(registry, word, page).unwrap_or_default();
    }
    if text.is_empty() { Err(unknown(registry, parser, word)) } else { Ok(text) }
}

fn unknown(registry: &Registry, parser: &Command, word: &str) -> Error {
    let words = words(registry, parser);
    let near = lookup::similar(word, words.iter().map(String::as_str));
    let near = near.map(|name| format!("; did you mean '{name}'?")).unwrap_or_default();
    Error::usage(format!(
        "{word:?} is no command, option, value, benchmark, column, mark or exit code{near} (see ombx help)"
    ))
}

/// Returns every word that is explained.
pub(super) fn words(registry: &Registry, parser: &Command) -> Vec<String> {
    let mut words: Vec<String> = PAGES.iter().map(|(name, _)| (*name).to_owned()).collect();
    for command in visible(parser) {
        words.push(command.get_name().to_owned());
        for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
            words.extend(arg.get_long().map(|long| format!("--{long}")));
            words.extend(explained_values(arg).into_iter().map(|value| value.get_name().to_owned()));
        }
    }
    words.extend(registry.all().iter().map(|bench| bench.name.to_owned()));
    words.extend(reference::columns().flat_map(|column| column.names));
    words.extend(reference::marks().flat_map(|mark| [mark.code, mark.shown]));
    words.extend(reference::levels().map(|[level, ..]| level));
    words.extend(NODE_CHECK.lines().filter_map(|line| Some(key(line)?.0.to_owned())));
    words.extend(reference::exit_codes().map(|row| row.code));
    words.sort();
    words.dedup();
    words
}

/// Returns all details of the benchmarks of a name or a glob.
fn benchmarks(registry: &Registry, word: &str, page: Page) -> Option<String> {
    let is_name = word.contains('.') || word.starts_with("osu_");
    let choices = lookup::find(registry, word).ok().filter(|_| is_name)?;
    let mut text = String::new();
    for choice in &choices {
        text += &list::long(choice.bench, Some(page.columns));
    }
    let name = choices.first()?.bench.name;
    Some(text + &format!("ombx run {name} --help explains its options\n"))
}

/// Returns the benchmarks of a family, or those whose names contain the word, or that make a call of this name.
fn named_after(registry: &Registry, word: &str, page: Page) -> Option<String> {
    let wanted = word.to_lowercase();
    let family = lookup::similar(word, families::names(registry));
    let is_named = |bench: &&&Benchmark| match family {
        Some(family) => families::family(bench) == family,
        None => wanted.len() >= SHORTEST && bench.name.contains(&wanted),
    };
    let makes_call =
        |bench: &&&Benchmark| bench.described.calls.iter().any(|call| call.eq_ignore_ascii_case(word));
    let named: Vec<_> = registry.all().iter().filter(is_named).collect();
    let (found, title, listed) = match family {
        Some(family) => {
            let about = families::about(family).unwrap_or_default();
            (named, format!("family {family}: {about}"), format!("'{family}.*'"))
        }
        None if !named.is_empty() => {
            (named, format!("benchmarks with {word} in their names"), format!("'*{wanted}*'"))
        }
        None => {
            let calling = registry.all().iter().filter(makes_call).collect();
            (calling, format!("benchmarks that call {word}"), "NAME".to_owned())
        }
    };
    let first = found.first()?;
    let names = found.iter().map(|bench| bench.name).collect::<Vec<_>>().join(" ");
    let next = format!("ombx help {} explains one, ombx list {listed} has a sentence of each", first.name);
    Some(page.paragraph(&title, &names) + &next + "\n")
}

/// Returns the options of this name, each with the commands that have it.
fn options(parser: &Command, word: &str, page: Page) -> Option<String> {
    let is_named = |arg: &Arg| {
        let short = arg.get_short().map(|short| format!("-{short}"));
        arg.get_long().is_some_and(|long| word.trim_start_matches('-') == long)
            || short.as_deref() == Some(word)
    };
    grouped(parser, |command| {
        let args = command.get_arguments().filter(|arg| !arg.is_positional() && !arg.is_hide_set());
        args.filter(|arg| is_named(arg)).map(|arg| page.argument(arg, Detail::Full)).collect()
    })
}

/// Returns what a value means, of each option that has it.
fn values(parser: &Command, word: &str, page: Page) -> Option<String> {
    grouped(parser, |command| {
        let args = command.get_arguments().filter(|arg| !arg.is_hide_set());
        args.filter_map(|arg| value_paragraph(arg, word, page)).collect()
    })
}

/// Returns a paragraph on a value of an option; `None` if the option does not have it.
fn value_paragraph(arg: &Arg, word: &str, page: Page) -> Option<String> {
    let value = explained_values(arg).into_iter().find(|value| value.get_name() == word)?;
    let help = value.get_help().map(ToString::to_string).unwrap_or_default();
    let option = arg.get_long().map_or_else(|| arg.get_id().to_string(), |long| format!("--{long}"));
    Some(page.paragraph(&format!("  {option} {word}"), &help))
}

/// Returns the values of an option that have a text.
fn explained_values(arg: &Arg) -> Vec<PossibleValue> {
    let values = arg.get_possible_values().into_iter();
    values.filter(|value| !value.is_hide_set() && value.get_help().is_some()).collect()
}

/// Returns the texts of all commands, each once under the names of the commands that have it.
fn grouped(parser: &Command, of: impl Fn(&Command) -> Vec<String>) -> Option<String> {
    let mut texts: Vec<(String, Vec<&str>)> = Vec::new();
    for command in visible(parser) {
        for text in of(command) {
            match texts.iter_mut().find(|(known, _)| *known == text) {
                Some((_, commands)) => commands.push(command.get_name()),
                None => texts.push((text, vec![command.get_name()])),
            }
        }
    }
    let of_commands =
        |(text, commands): &(String, Vec<&str>)| format!("ombx {}:\n{text}", commands.join(", "));
    (!texts.is_empty()).then(|| texts.iter().map(of_commands).collect::<Vec<_>>().join("\n"))
}

/// Returns the columns with this heading, else those whose headings begin with its words, or have it before a unit.
fn columns(word: &str, page: Page) -> Option<String> {
    let is_plain = |text: &&str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let name = word.strip_suffix(" iteration").unwrap_or(word);
    let percent = name.strip_prefix('p').filter(is_plain).and_then(|percent| percent.parse::<f64>().ok());
    let heading = if percent.is_some_and(|percent| percent < 100.0) { PERCENTILE } else { word };
    let of = |is_meant: &dyn Fn(&str) -> bool| -> String {
        let found = reference::columns().filter(|column| column.names.iter().any(|name| is_meant(name)));
        found.map(|column| super::column(&column, page)).collect()
    };
    let stem = heading.rsplit_once(' ').filter(|(_, unit)| UNITS.contains(unit)).map(|(stem, _)| stem);
    let spelled = heading.replace(" %", "%");
    // English words begin names of CSV too.
    let is_name = heading.contains(|c: char| c.is_ascii_digit() || c == '_');
    let begins = |name: &str| {
        let rest = name.strip_prefix(&spelled);
        rest.is_some_and(|rest| rest.starts_with(' ') || (is_name && rest.starts_with('_')))
    };
    let lines = [of(&|name| name == heading), of(&|name| Some(name) == stem || begins(name))];
    lines.into_iter().find(|lines| !lines.is_empty())
}

fn marks(word: &str, page: Page) -> Option<String> {
    let named = reference::marks().filter(|mark| is_called(mark, word));
    let found: String = named.map(|mark| super::mark(&mark, page.columns)).collect();
    (!found.is_empty()).then(|| format!("mark {}", found.trim_start()))
}

/// Returns whether a word is the code of a mark, a name in tables, or of its form.
fn is_called(mark: &reference::MarkRow, word: &str) -> bool {
    let word = word.to_lowercase();
    let wanted = word.replace('_', " ");
    let shown = mark.shown.to_lowercase();
    mark.code.replace('_', " ") == wanted
        || shown == wanted
        || shown.split(", ").any(|name| name == wanted)
        || has_form(&word, &mark.shown)
        // Without a bound.
        || mark.shown.split_once(" (up to").is_some_and(|(form, _)| has_form(&word, form))
}

/// Returns whether a mark of a table, such as `preempted 3x`, has this form, such as `preempted Nx`.
fn has_form(mark: &str, form: &str) -> bool {
    let (words, forms) = (mark.split_whitespace(), form.split_whitespace());
    let fits = |(word, form): (&str, &str)| match form.trim_matches(|c: char| !c.is_uppercase()) {
        letters if NAMES.contains(&letters) => true,
        letters if NUMBERS.contains(&letters) => word.contains(|c: char| c.is_ascii_digit()),
        _ => word == form.to_lowercase(),
    };
    words.clone().count() == forms.clone().count() && words.zip(forms).all(fits)
}

fn levels(word: &str, page: Page) -> Option<String> {
    let found =
        reference::levels().filter(|[level, ..]| level == word || ["level", "levels"].contains(&word));
    let lines: String = found
        .map(|[level, meaning, shown]| {
            page.paragraph(&format!("level {level} of marks"), &format!("{meaning}; shown {shown}"))
        })
        .collect();
    (!lines.is_empty()).then_some(lines)
}

/// Returns the lines of the example of `ombx check` that have this key.
fn keys(word: &str) -> Option<String> {
    let lines = NODE_CHECK.lines().filter_map(key).filter(|(name, _)| *name == word);
    let mut lines: Vec<&str> = lines.map(|(_, line)| line).collect();
    lines.dedup();
    let about = "key of the file of ombx check (ombx help expectations has all):";
    (!lines.is_empty()).then(|| format!("{about}\n      {}\n", lines.join("\n      ")))
}

/// Returns the key of a line of TOML, and the line; both also of a key that is a comment.
fn key(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_start_matches(['#', ' ']);
    let (name, _) = line.split_once(" = ")?;
    name.bytes().all(|byte| byte.is_ascii_lowercase()).then_some((name, line))
}

fn exit_codes(word: &str, page: Page) -> Option<String> {
    let signal =
        word.parse::<u8>().ok().and_then(|code| code.checked_sub(Exit::SIGNAL)).filter(|signal| *signal > 0);
    let code = if signal.is_some_and(|signal| signal <= LAST_SIGNAL) { SIGNALS } else { word };
    let lines: String = reference::exit_codes()
        .filter(|row| row.code == code)
        .map(|row| page.paragraph(&format!("exit code {word} of {}", row.commands), &row.meaning))
        .collect();
    (!lines.is_empty()).then_some(lines)
}
