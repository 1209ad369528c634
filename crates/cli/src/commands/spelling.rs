//! Names of options in messages of `ombx osu` and `ombx imb`: as the user has typed them. The programs that both replace have options of
//! one letter, or long names after one hyphen.

use std::ffi::OsString;

use clap::{Arg, Command};
use ombx_record::error::Error;

use super::imb::arguments::{OF_IMB, OF_THREADS};

/// Returns an error of `ombx osu` or `ombx imb` with options as in these words. Errors of other commands stay as they are.
///
/// `settled` are the words that were parsed, which begin with `ombx` and the command.
pub(crate) fn of_drop_in(parser: &Command, settled: &[OsString], typed: &[OsString], error: Error) -> Error {
    let command = settled.get(1).and_then(|word| parser.find_subcommand(word));
    match command.filter(|command| ["osu", "imb"].contains(&command.get_name())) {
        Some(command) => Error::new(error.kind(), as_typed(&error.to_string(), command, typed)),
        None => error,
    }
}

/// Replaces each `--NAME` of a sentence by the word that the user has typed for it. An option of IMB that was not typed has one hyphen.
fn as_typed(sentence: &str, command: &Command, typed: &[OsString]) -> String {
    let typed: Vec<String> = typed.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let mut parts = sentence.split("--");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(part.len());
        let (name, rest) = part.split_at(end);
        let is_option = name.starts_with(|c: char| c.is_ascii_lowercase())
            && !text.ends_with(|c: char| c.is_alphanumeric() || c == '-');
        match spelled(name, command, &typed).filter(|_| is_option) {
            Some(word) => text += &word,
            None => text += &format!("--{name}"),
        }
        text += rest;
    }
    text
}

/// Returns how an option is written; `None` if it was not typed and has the name that ombx gives it.
fn spelled(name: &str, command: &Command, typed: &[String]) -> Option<String> {
    let names = typed.iter().filter(|word| word.starts_with('-')).map(|word| name_of(word));
    if let Some(word) = names.clone().find(|word| word.trim_start_matches('-').replace('_', "-") == name) {
        return Some(word.to_owned());
    }
    let arg = command.get_arguments().find(|arg| arg.get_long() == Some(name))?;
    let is_imb = command.get_name() == "imb";
    // After one hyphen IMB has a long name, all others a letter and its value.
    let is_long = |word: &str| is_imb && word.len() > 2 && !word.contains(|c: char| c.is_ascii_digit());
    let has_letter = |letter: char| {
        let mut letters = names.clone().filter(|word| !is_long(word));
        letters.any(|word| word[1..].starts_with(letter))
    };
    match arg.get_short().filter(|letter| has_letter(*letter)) {
        Some(letter) => Some(format!("-{letter}")),
        None => is_of_imb(arg).then(|| format!("-{}", name.replace('-', "_"))),
    }
}

/// Returns the name of an option without a value that is attached by `=`.
fn name_of(word: &str) -> &str {
    word.split_once('=').map_or(word, |(name, _)| name)
}

fn is_of_imb(arg: &Arg) -> bool {
    [Some(OF_IMB), Some(OF_THREADS)].contains(&arg.get_help_heading())
}

#[cfg(test)]
mod tests {
    use ombx_core::benchmark::Registry;

    use super::*;
    use crate::commands;

    #[test]
    fn messages_name_options_as_the_user_does() {
        let parser = commands::parser(&Registry::load().unwrap());
        for (line, sentence, expected) in [
            ("ombx imb IMB-MPI1 -msglog x", "value for '--msglog <M>'", "value for '-msglog <M>'"),
            ("IMB-MPI1 --msglog x", "value for '--msglog <M>'", "value for '--msglog <M>'"),
            ("IMB-MPI1 -root_shift=3", "'--root-shift <on|off>'", "'-root_shift <on|off>'"),
            ("IMB-MPI1 -off_cach 3", "'--off-cach' found; '--off-cache'", "'-off_cach' found; '-off_cache'"),
            ("IMB-MPI1 -n x -npmin 2", "'--ranks <N>' and --npmin", "'-n <N>' and -npmin"),
            ("IMB-MPI1 -npmin 2", "give --ranks", "give --ranks"),
            ("osu_bw -m x", "'--message-size <M>'", "'-m <M>'"),
            ("osu_bw --message-size=x", "'--message-size <M>'", "'--message-size <M>'"),
            ("osu_bw -z500", "'--tail-lat[=<P,P>]'", "'-z[=<P,P>]'"),
            ("osu_bw -m 8", "add --skip-unreachable -- 3 a--m", "add --skip-unreachable -- 3 a--m"),
        ] {
            let command = if line.starts_with("osu") { "osu" } else { "imb" };
            let typed: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let settled = ["ombx", command].map(OsString::from);
            let error = of_drop_in(&parser, &settled, &typed, Error::usage(sentence));
            assert_eq!(error.to_string(), expected, "{line}");
        }
        let [typed, settled] = [["ombx", "-n"], ["ombx", "run"]].map(|words| words.map(OsString::from));
        let error = of_drop_in(&parser, &settled, &typed, Error::usage("give --ranks"));
        assert_eq!(error.to_string(), "give --ranks");
    }
}
