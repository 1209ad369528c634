//! How this process was started: its program and its words. A link to ombx named `osu_latency` is equivalent to `ombx osu osu_latency`, one
//! named `IMB-MPI1` to `ombx imb IMB-MPI1`.

use std::{
    env,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    sync::OnceLock,
};

use ombx_drop_in::imb::threads::THREADS;
use ombx_record::error::{Error, Result};

/// The command that replaces the OSU benchmarks.
const OSU: &str = "osu";
/// The command that replaces the Intel MPI Benchmarks.
const IMB: &str = "imb";
/// What Fedora and RHEL put before the names of the programs of both.
const PACKAGED: &str = "mpitests-";

/// Returns the number of threads of IMB-MT, which `ombx imb` alone reads. It must be the same on every rank, as the command line.
pub(crate) fn threads() -> Option<OsString> {
    env::var_os(THREADS).filter(|_| typed().get(1).is_some_and(|word| word == IMB))
}

/// Returns the path of this program.
pub fn executable() -> Result<PathBuf> {
    env::current_exe().map_err(|e| Error::fabric(format!("cannot locate the ombx executable: {e}")))
}

/// Words that this process executes in place of those that were typed.
static SETTLED: OnceLock<Vec<OsString>> = OnceLock::new();

/// Sets the words of this process, which ranks get too.
pub fn settle(words: Vec<OsString>) {
    let _ = SETTLED.set(words);
}

/// Returns the words of this process, the program's name first.
pub fn typed() -> Vec<OsString> {
    SETTLED.get().cloned().unwrap_or_else(|| normalized(env::args_os().collect()))
}

/// Returns whether the command line asks for all options by `--help` or `ombx help`, and not for the common ones by `-h`.
pub fn asks_for_all_options() -> bool {
    typed().iter().any(|word| word == "--help" || word == "help")
}

/// Returns the command line as text, for result files.
pub fn as_typed() -> Vec<String> {
    typed().into_iter().map(|word| word.to_string_lossy().into_owned()).collect()
}

/// Returns the name of the program that this word starts, without the prefix of Fedora and RHEL.
pub fn program_of(word: &OsStr) -> Option<&str> {
    let name = Path::new(word).file_name()?.to_str()?;
    Some(name.strip_prefix(PACKAGED).unwrap_or(name))
}

/// Returns the words with `ombx osu` in place of a link's name, and OMB's attached values in clap's form.
pub fn normalized(typed: Vec<OsString>) -> Vec<OsString> {
    let called = typed.first().and_then(|word| program_of(word));
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
        assert_eq!(rewritten("/usr/bin/mpitests-osu_bw -m 8"), "ombx osu osu_bw -m 8");
        assert_eq!(rewritten("mpitests-IMB-MPI1 -list"), "ombx imb IMB-MPI1 --list");
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
