//! Mistakes that clap finds in a command line, as one sentence.

use clap::error::ErrorKind;
use ombx_core::error::{Error, Result};

/// Prints the version and returns the exit code, or returns the mistake as an error.
pub(crate) fn report(error: &clap::Error, command: Option<&str>) -> Result<u8> {
    if !error.use_stderr() {
        // A closed pipe (ombx --version | head) is no error.
        let _ = error.print();
        return Ok(0);
    }
    let help = command.map_or("ombx help".to_owned(), |command| format!("ombx help {command}"));
    Err(Error::usage(format!("{} (see {help})", sentence(error))))
}

/// Returns clap's message as one sentence.
pub(crate) fn sentence(error: &clap::Error) -> String {
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
