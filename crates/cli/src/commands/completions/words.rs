//! The words of a command line that is being typed.

use std::ffi::OsString;

/// Words of a command line, the program's first, and the one to complete.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Typed {
    pub(super) words: Vec<OsString>,
    /// Position of the word to complete.
    pub(super) index: usize,
    /// Beginning of that word that the shell takes for words of their own. It is not part of what the shell inserts.
    pub(super) completed: String,
}

impl Typed {
    /// Takes words as the shell splits them. Without an index, the last word is completed.
    pub(super) fn new(words: &[OsString], index: Option<usize>) -> Typed {
        let mut words: Vec<OsString> =
            words.iter().map(|word| unquoted(&word.to_string_lossy()).into()).collect();
        let index = index.unwrap_or(words.len().saturating_sub(1));
        if words.len() <= index {
            words.resize(index + 1, OsString::new());
        }
        Typed { words, index, completed: String::new() }
    }

    /// Takes words of bash, which are also split at `=` and `:` and contain these as words.
    pub(super) fn in_bash(pieces: &[OsString], index: Option<usize>) -> Typed {
        let separates = |word: &str| !word.is_empty() && word.chars().all(|c| c == '=' || c == ':');
        let pieces: Vec<String> = pieces.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let current = index.unwrap_or(pieces.len().saturating_sub(1));
        let mut words: Vec<String> = Vec::new();
        let (mut at, mut completed) = (0, String::new());
        for (number, piece) in pieces.iter().enumerate() {
            let joins = number > 1 && (separates(piece) || separates(&pieces[number - 1]));
            match words.last_mut().filter(|_| joins) {
                Some(word) => word.push_str(piece),
                None => words.push(piece.clone()),
            }
            if number == current {
                at = words.len() - 1;
                let word = words.last().map(String::as_str).unwrap_or_default();
                // bash inserts after a separator, and replaces any other piece.
                let typed = if separates(piece) { "" } else { piece };
                word.strip_suffix(typed).unwrap_or_default().clone_into(&mut completed);
            }
        }
        let words: Vec<OsString> = words.into_iter().map(OsString::from).collect();
        Typed { completed, ..Typed::new(&words, Some(at)) }
    }
}

/// Returns a word without its quotation marks, of which the last may not have been typed yet.
fn unquoted(word: &str) -> String {
    match shell_words::split(word).as_deref() {
        Ok([one]) => one.clone(),
        _ => word.trim_start_matches(['\'', '"']).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_bash(pieces: &[&str]) -> (String, String) {
        let pieces: Vec<OsString> = pieces.iter().map(OsString::from).collect();
        let typed = Typed::in_bash(&pieces, None);
        (typed.words[typed.index].to_string_lossy().into_owned(), typed.completed)
    }

    #[test]
    fn words_that_bash_splits_are_joined() {
        let of = |word: &str, completed: &str| (word.to_owned(), completed.to_owned());
        assert_eq!(in_bash(&["ombx", "run", "p2p.l"]), of("p2p.l", ""));
        assert_eq!(in_bash(&["ombx", "run", ""]), of("", ""));
        assert_eq!(in_bash(&["ombx", "run", "suite", ":", "sm"]), of("suite:sm", "suite:"));
        assert_eq!(in_bash(&["ombx", "run", "suite", ":"]), of("suite:", "suite:"));
        assert_eq!(in_bash(&["ombx", "run", "--sync", "=", "fence,fl"]), of("--sync=fence,fl", "--sync="));
        assert_eq!(in_bash(&["ombx", "run", "'rma.*'", "'p2p.l"]), of("p2p.l", ""));
        assert_eq!(in_bash(&["ombx", "run", "--sync", "=", "lock", "rma."]), of("rma.", ""));
    }

    #[test]
    fn a_word_that_is_not_there_yet_is_empty() {
        let words = ["ombx", "run"].map(OsString::from);
        let typed = Typed::new(&words, Some(2));
        assert_eq!(typed.words[2], "");
    }
}
