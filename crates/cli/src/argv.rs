//! The words of this command line. A link named `osu_latency` that leads to this program is `ombx osu osu_latency`.

use std::{env, ffi::OsString, path::Path};

use ombx_core::error::{Error, Result};

use crate::{fabric, launch};

/// No command and no option has a longer name.
const LONG_NAME: usize = 64;
/// Nothing that is named is longer: the limit of paths. A list is of such parts.
const LONG_PART: usize = 4096;

/// The first word of the drop-in's command.
const DROP_IN: &str = "osu";

/// The words, this program's name first.
pub(crate) fn words() -> Vec<OsString> {
    read(env::args_os().collect())
}

/// The command line as the user typed it, for results; of an invited rank, as it was told.
pub(crate) fn shown() -> Vec<String> {
    let typed = || words().iter().map(|a| a.to_string_lossy().into_owned()).collect();
    let shown = fabric::invited_argv().unwrap_or_else(typed);
    let ours = |word: &String| {
        word.starts_with("--relay=")
            || word.starts_with("--launch=")
            || word == launch::COORDINATOR
            || word == launch::ALONE
    };
    shown.into_iter().filter(|word| !ours(word)).collect()
}

/// Refuses words that are too long to mean anything: guessing what was meant would take seconds.
pub(crate) fn check(words: &[OsString]) -> Result<()> {
    for (word, at) in words.iter().skip(1).zip(1..).take_while(|(word, _)| *word != "--") {
        let word = word.as_encoded_bytes();
        let named = word.starts_with(b"--") || at == 1;
        let name = word.split(|byte| *byte == b'=').next().unwrap_or_default();
        let told = |what: &str, bytes: &[u8], most| {
            let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(20)]).into_owned();
            Err(Error::usage(format!(
                "{shown}.. is {} bytes long, and no {what} is longer than {most}",
                bytes.len()
            )))
        };
        if named && name.len() > LONG_NAME {
            return told("name of a command or an option", name, LONG_NAME);
        }
        if let Some(part) = word.split(|byte| *byte == b',').find(|part| part.len() > LONG_PART) {
            return told("value", part, LONG_PART);
        }
    }
    Ok(())
}

pub(crate) fn read(typed: Vec<OsString>) -> Vec<OsString> {
    let called = typed.first().and_then(|word| Path::new(word).file_name()).and_then(|name| name.to_str());
    let mut words = match called {
        Some(name) if name.starts_with("osu_") => {
            let program = ["ombx", DROP_IN, name].map(OsString::from);
            program.into_iter().chain(typed.iter().skip(1).cloned()).collect()
        }
        _ => typed,
    };
    if words.get(1).is_some_and(|word| word == DROP_IN) {
        words.iter_mut().for_each(separate);
    }
    words
}

/// OMB's `-z50,99` and `-cDIR` have a value only where it is attached, which clap knows of long options alone.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn of(typed: &str) -> String {
        let words = read(typed.split(' ').map(OsString::from).collect());
        words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_link_is_the_drop_in_of_its_name() {
        assert_eq!(of("/opt/omb/osu_latency -m 8:8 H H"), "ombx osu osu_latency -m 8:8 H H");
        assert_eq!(of("osu_bw"), "ombx osu osu_bw");
        assert_eq!(of("./ombx run p2p.latency -z50"), "./ombx run p2p.latency -z50");
    }

    #[test]
    fn attached_values_become_long_options() {
        assert_eq!(of("osu_bcast -f -c -z50,99 -z"), "ombx osu osu_bcast -f -c --tail-lat=50,99 -z");
        assert_eq!(of("ombx osu osu_bw -clog -i 5"), "ombx osu osu_bw --validation=log -i 5");
    }
}
