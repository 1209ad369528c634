//! Mistakes that clap finds in a command line, as one sentence.

use clap::error::ErrorKind;
use ombx_core::error::{Error, Result};

/// Prints help or version and returns the exit code, or returns the mistake as an error.
pub(crate) fn report(error: &clap::Error, command: &clap::Command) -> Result<u8> {
    if !error.use_stderr() {
        // A closed pipe (ombx --help | head) is no error.
        let _ = error.print();
        return Ok(0);
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let visible = command.get_subcommands().filter(|sub| !sub.is_hide_set());
        let names: Vec<&str> = visible.map(clap::Command::get_name).collect();
        return Err(Error::usage(format!("give a command: {} (see ombx --help)", names.join(", "))));
    }
    Err(Error::usage(format!("{} (see ombx --help)", sentence(error))))
}

/// Returns clap's message as one sentence.
pub(crate) fn sentence(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let message = text
        .lines()
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information"));
    let words: Vec<&str> = message.map(str::trim).filter(|line| !line.is_empty()).collect();
    let sentence = words.join(" ");
    sentence.strip_prefix("error: ").unwrap_or(&sentence).replace(" tip: ", "; ")
}
