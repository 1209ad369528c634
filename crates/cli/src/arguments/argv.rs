//! The words of the command line. A link to ombx named `osu_latency` is equivalent to `ombx osu osu_latency`, one named `IMB-MPI1`
//! to `ombx imb IMB-MPI1`.

use std::{
    env,
    ffi::OsString,
    fmt::Display,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use clap::{Arg, ArgMatches, Command, error::ErrorKind, parser::ValueSource};
use ombx_record::error::{Error, Result};

use crate::output::terminal;

/// Maximum length of the name of a command or option, in bytes.
const LONGEST_NAME: usize = 64;
/// Maximum length of a value, or of an element of a list, in bytes: the limit of paths.
const LONGEST_VALUE: usize = 4096;

/// The command that replaces the OSU benchmarks.
const OSU: &str = "osu";
/// The command that replaces the Intel MPI Benchmarks.
const IMB: &str = "imb";

/// Variable with the number of threads of IMB-MT.
pub(crate) const THREADS: &str = "OMP_NUM_THREADS";

/// Returns the number of threads of IMB-MT, which `ombx imb` alone reads. It must be the same on every rank, as the command line.
pub(crate) fn threads() -> Option<OsString> {
    env::var_os(THREADS).filter(|_| typed().get(1).is_some_and(|word| word == IMB))
}

pub(crate) fn executable() -> Result<PathBuf> {
    env::current_exe().map_err(|e| Error::fabric(format!("cannot locate the ombx executable: {e}")))
}

/// Returns how a program of another suite was called: by a link with its name, or by `ombx COMMAND NAME`.
pub(crate) fn called(command: &str, name: &str) -> String {
    let word = env::args_os().next().unwrap_or_default();
    let is_link = Path::new(&word).file_name().is_some_and(|file| file == name);
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

/// Words that this process executes in place of those that were typed.
static SETTLED: OnceLock<Vec<OsString>> = OnceLock::new();

/// Sets the words of this process, which ranks get too.
pub(crate) fn settle(words: Vec<OsString>) {
    let _ = SETTLED.set(words);
}

/// Returns the words of this process, the program's name first.
pub(crate) fn typed() -> Vec<OsString> {
    SETTLED.get().cloned().unwrap_or_else(|| normalized(env::args_os().collect()))
}

/// Returns whether the command line asks for all options by `--help` or `ombx help`, and not for the common ones by `-h`.
pub(crate) fn asks_for_all_options() -> bool {
    typed().iter().any(|word| word == "--help" || word == "help")
}

/// Returns the command line as text, for result files.
pub(crate) fn as_typed() -> Vec<String> {
    typed().into_iter().map(|word| word.to_string_lossy().into_owned()).collect()
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

/// Returns the words with `ombx osu` in place of a link's name, and OMB's attached values in clap's form.
pub(crate) fn normalized(typed: Vec<OsString>) -> Vec<OsString> {
    let called = typed.first().and_then(|word| Path::new(word).file_name()).and_then(|name| name.to_str());
    let replaces = |command: &str, name: &str| -> Vec<OsString> {
        let program = ["ombx", command, name].map(OsString::from);
        program.into_iter().chain(typed.iter().skip(1).cloned()).collect()
    };
    let mut words = match called {
        Some(name) if name.starts_with("osu_") => replaces(OSU, name),
        Some(name) if name.starts_with("IMB-") => replaces(IMB, name),
        _ => typed,
    };
    if words.get(1).is_some_and(|word| word == OSU) {
        words.iter_mut().for_each(separate);
        spell_out_no_hints(&mut words);
    }
    if words.get(1).is_some_and(|word| word == IMB) {
        words.iter_mut().skip(2).for_each(lengthen);
    }
    words
}

/// Rewrites IMB's `-msglog` and `-root_shift` as `--msglog` and `--root-shift`.
fn lengthen(word: &mut OsString) {
    let name = word.to_str().and_then(|word| word.strip_prefix('-'));
    let is_name = |name: &&str| name.len() > 1 && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    if let Some(name) = name.filter(is_name) {
        *word = format!("--{}", name.replace('_', "-")).into();
    }
}

/// Rewrites `-z50,99` and `-cDIR` as long options. OMB takes these values only when attached, which clap supports for long
/// options only.
fn separate(word: &mut OsString) {
    for (short, long) in [("-z", "--tail-lat"), ("-c", "--validation")] {
        let value = word.to_str().and_then(|word| word.strip_prefix(short)).filter(|value| !value.is_empty());
        let Some(value) = value else { continue };
        if short == "-c" || value.starts_with(|c: char| c.is_ascii_digit()) {
            *word = format!("{long}={value}").into();
            return;
        }
    }
}

/// Rewrites OMB 3's `-no-hints`, and `-n` without a number of ranks, as `--no-hints`.
fn spell_out_no_hints(words: &mut [OsString]) {
    let is_buffer =
        |word: &str| matches!(word.len(), 1 | 2) && word.bytes().all(|byte| b"HDM".contains(&byte));
    for at in 0..words.len() {
        let next = words.get(at + 1).map(|word| word.to_string_lossy().into_owned());
        let has_number = next.is_some_and(|next| !next.starts_with('-') && !is_buffer(&next));
        if words[at] == "-no-hints" || (words[at] == "-n" && !has_number) {
            words[at] = "--no-hints".into();
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(typed: &str) -> String {
        let words = normalized(typed.split(' ').map(OsString::from).collect());
        words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_link_is_the_osu_program_of_its_name() {
        assert_eq!(rewritten("/opt/omb/osu_latency -m 8:8 H H"), "ombx osu osu_latency -m 8:8 H H");
        assert_eq!(rewritten("osu_bw"), "ombx osu osu_bw");
        assert_eq!(rewritten("./ombx run p2p.latency -z50"), "./ombx run p2p.latency -z50");
    }

    #[test]
    fn attached_values_become_long_options() {
        assert_eq!(rewritten("osu_bcast -f -c -z50,99 -z"), "ombx osu osu_bcast -f -c --tail-lat=50,99 -z");
        assert_eq!(rewritten("ombx osu osu_bw -clog -i 5"), "ombx osu osu_bw --validation=log -i 5");
    }

    #[test]
    fn options_of_imb_become_long_options() {
        assert_eq!(rewritten("bin/IMB-MPI1 PingPong -msglog 3:4"), "ombx imb IMB-MPI1 PingPong --msglog 3:4");
        assert_eq!(
            rewritten("ombx imb IMB-NBC -root_shift on -n 4"),
            "ombx imb IMB-NBC --root-shift on -n 4"
        );
        assert_eq!(rewritten("IMB-MPI1 -multi -1 --force"), "ombx imb IMB-MPI1 --multi -1 --force");
    }

    #[test]
    fn n_is_the_number_of_ranks_or_no_hints() {
        assert_eq!(rewritten("osu_put_bw -no-hints -m 8"), "ombx osu osu_put_bw --no-hints -m 8");
        assert_eq!(rewritten("osu_put_bw -n -m 8 -n 4"), "ombx osu osu_put_bw --no-hints -m 8 -n 4");
        assert_eq!(rewritten("osu_put_bw -n"), "ombx osu osu_put_bw --no-hints");
        assert_eq!(rewritten("osu_put_bw -n H H"), "ombx osu osu_put_bw --no-hints H H");
        assert_eq!(rewritten("osu_put_bw -n x"), "ombx osu osu_put_bw -n x");
        assert_eq!(rewritten("ombx run rma.put_bw -n"), "ombx run rma.put_bw -n");
    }
}
