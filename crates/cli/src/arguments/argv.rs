//! The words of the command line. A link to ombx named `osu_latency` is equivalent to `ombx osu osu_latency`, one named `IMB-MPI1`
//! to `ombx imb IMB-MPI1`.

use std::{env, ffi::OsString, fmt::Display, fs, os::unix::fs::symlink, path::Path};

use clap::{Arg, ArgMatches, Command, error::ErrorKind, parser::ValueSource};
use ombx_launch::{
    output::terminal,
    this_process::{executable, program_of},
};
use ombx_record::error::{Error, Result};

/// Maximum length of the name of a command or option, in bytes.
const LONGEST_NAME: usize = 64;
/// Maximum length of a value, or of an element of a list, in bytes: the limit of paths.
const LONGEST_VALUE: usize = 4096;

/// Returns how a program of another suite was called: by a link with its name, or by `ombx COMMAND NAME`.
pub(crate) fn called(command: &str, name: &str) -> String {
    let word = env::args_os().next().unwrap_or_default();
    let is_link = program_of(&word) == Some(name);
    if is_link { name.to_owned() } else { format!("ombx {command} {name}") }
}

/// Creates a link to ombx for each of these programs of another suite. Replaces links, but no other files.
pub(crate) fn install_links(directory: &Path, names: &[&str]) -> Result<String> {
    let failed = |path: &Path, e: &dyn Display| Error::storage(format!("{}: {e}", path.display()));
    let program = executable()?;
    fs::create_dir_all(directory).map_err(|e| failed(directory, &e))?;
    for name in names {
        let link = directory.join(name);
        match fs::symlink_metadata(&link) {
            Ok(found) if found.is_symlink() => fs::remove_file(&link).map_err(|e| failed(&link, &e))?,
            Ok(_) => {
                let why = "the file exists and is not a link: remove it or choose another directory";
                return Err(failed(&link, &why));
            }
            Err(_) => {}
        }
        symlink(&program, &link).map_err(|e| failed(&link, &e))?;
    }
    Ok(format!("{} links to {} in {}\n", names.len(), program.display(), directory.display()))
}

/// Rejects words that are too long to mean anything. Searching for similar names would take seconds.
pub(crate) fn check_lengths(words: &[OsString]) -> Result<()> {
    for (word, at) in words.iter().skip(1).zip(1..).take_while(|(word, _)| *word != "--") {
        let word = word.as_encoded_bytes();
        let named = word.starts_with(b"--") || at == 1;
        let name = word.split(|byte| *byte == b'=').next().unwrap_or_default();
        let too_long = |what: &str, bytes: &[u8], most| {
            let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(20)]).into_owned();
            Err(Error::usage(format!("{shown}.. has {} bytes: a {what} has at most {most}", bytes.len())))
        };
        if named && name.len() > LONGEST_NAME {
            return too_long("name of a command or option", name, LONGEST_NAME);
        }
        if let Some(part) = word.split(|byte| *byte == b',').find(|part| part.len() > LONGEST_VALUE) {
            return too_long("value", part, LONGEST_VALUE);
        }
    }
    Ok(())
}

/// Returns whether one of two options of a command excludes the other.
pub(crate) fn exclude_each_other(command: &Command, one: &Arg, other: &Arg) -> bool {
    let excludes = |one: &Arg, other: &Arg| {
        command.get_arg_conflicts_with(one).iter().any(|conflict| conflict.get_id() == other.get_id())
    };
    excludes(one, other) || excludes(other, one)
}

/// Returns each option of a command that was given, with its words `--NAME` or `--NAME=VALUE`.
pub(crate) fn given_options<'c>(
    command: &'c Command,
    matches: &ArgMatches,
) -> impl Iterator<Item = (&'c Arg, Vec<OsString>)> {
    command.get_arguments().filter_map(|arg| {
        let (id, name) = (arg.get_id().as_str(), arg.get_long()?);
        matches.try_contains_id(id).ok()?;
        if matches.value_source(id) != Some(ValueSource::CommandLine) {
            return None;
        }
        let values = matches.get_raw(id).into_iter().flatten().filter(|_| arg.get_action().takes_values());
        let word =
            |value| [OsString::from(format!("--{name}=")), OsString::from(value)].into_iter().collect();
        let words: Vec<OsString> = values.map(word).collect();
        Some((arg, if words.is_empty() { vec![format!("--{name}").into()] } else { words }))
    })
}

/// Prints the version and returns the exit code, or returns the mistake as an error.
pub(crate) fn report_mistake(error: &clap::Error, command: Option<&str>) -> Result<u8> {
    if !error.use_stderr() {
        return terminal::print(error.render().to_string());
    }
    let help = command.map_or("ombx help".to_owned(), |command| format!("ombx help {command}"));
    Err(Error::usage(format!("{} (see {help})", mistake_sentence(error))))
}

/// Returns clap's message as one sentence.
pub(crate) fn mistake_sentence(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let message = text
        .lines()
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information"));
    // clap proposes `-- --NAME`, which would make the option the name of a benchmark or a file.
    let leads_nowhere = |line: &&str| line.starts_with("tip: to pass ") || line.is_empty();
    let words: Vec<&str> = message.map(str::trim).filter(|line| !leads_nowhere(line)).collect();
    let sentence = words.join(" ");
    let sentence = sentence.strip_prefix("error: ").unwrap_or(&sentence).replace(" tip: ", "; ");
    if error.kind() == ErrorKind::ArgumentConflict && sentence.contains("--quick") {
        return format!("{sentence}: --quick starts the ranks once; leave it out");
    }
    sentence
}
