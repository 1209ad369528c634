//! Plain words: that no launcher takes for an option and no shell for a command, and that fit a line of a terminal.

use std::{
    fmt::Arguments,
    io::{self, Write},
};

/// A word of a sentence that is longer is shown by its two ends.
const LONG_WORD: usize = 160;
/// Of each end so many characters.
const END: usize = 40;
/// The names of all benchmarks fit.
const LONG_LINE: usize = 8000;

/// One line on standard error, at once.
pub(crate) fn tell(words: Arguments<'_>) {
    let _ = io::stderr().write_all(format!("{words}\n").as_bytes());
}

/// A sentence as one line that a terminal can show: nothing in it moves the cursor, nothing is endless.
pub(crate) fn line(sentence: &str) -> String {
    let clean: String = sentence.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let line = clean.split(' ').map(shortened).collect::<Vec<_>>().join(" ");
    line.chars().take(LONG_LINE).collect()
}

fn shortened(word: &str) -> String {
    let count = word.chars().count();
    if count <= LONG_WORD {
        return word.to_owned();
    }
    let (first, last): (String, String) =
        (word.chars().take(END).collect(), word.chars().skip(count - END).collect());
    format!("{first}[{} more]{last}", count - 2 * END)
}

/// A host name or address; nothing that a launcher could take for an option or a shell for a command.
pub(crate) fn host(text: &str) -> std::result::Result<String, String> {
    ombx_core::system::host_name::check_host(text).map(str::to_owned).map_err(|_| "not a host name".into())
}

/// Refuses a hostfile with a line that begins with anything but hosts: launchers hand its words to ssh.
#[cfg(feature = "mpi")]
pub(crate) fn hostfile(path: &std::path::Path) -> ombx_core::error::Result<()> {
    use ombx_core::{error::Error, system::host_name::check_host};
    let named = |why: String| Error::usage(format!("hostfile {}: {why}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|e| named(e.to_string()))?;
    let mut hosts = 0;
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default();
        let first = line.split_whitespace().next().unwrap_or_default();
        for name in first.split(',').filter(|name| !name.is_empty()) {
            // Slurm repeats a host by `n01*4`.
            check_host(name.split('*').next().unwrap_or_default()).map_err(|e| named(e.to_string()))?;
            hosts += 1;
        }
    }
    if hosts == 0 { Err(named("there is no host in it".into())) } else { Ok(()) }
}

/// A program by name or path: launchers take it apart at blanks.
pub(crate) fn program(text: &str) -> std::result::Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._/+@".contains(c);
    if !text.is_empty() && !text.starts_with('-') && text.chars().all(plain) {
        Ok(text.to_owned())
    } else {
        Err("not the name or path of a program, without blanks".into())
    }
}

/// A network interface by name.
pub(crate) fn interface(text: &str) -> std::result::Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._:".contains(c);
    if !text.is_empty() && text.len() < 16 && !text.starts_with('-') && text.chars().all(plain) {
        Ok(text.to_owned())
    } else {
        Err("not the name of a network interface".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_short_and_moves_no_cursor() {
        assert_eq!(line("pattern \"a\x1b[2J\nb\" is no name"), "pattern \"a [2J b\" is no name");
        let long = line(&format!("no benchmark is called {} here", "é".repeat(70_000)));
        assert!(
            long.contains("[69920 more]") && long.ends_with(" here") && long.chars().count() < 200,
            "{long}"
        );
        assert_eq!(line(&"x ".repeat(70_000)).chars().count(), LONG_LINE);
    }
}
