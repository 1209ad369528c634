//! Reading a command line: of `ombx run` as a suite puts it together, and what clap found wrong, in one sentence.

use clap::{FromArgMatches, error::ErrorKind};
use ombx_core::{
    benchmark::registry::Registry,
    error::{Error, Result},
};

use crate::{
    args::RunArgs,
    axes::{self, Chosen},
};

/// What a command line of `ombx run` with these patterns and options says.
pub(crate) fn run_of<'w>(
    registry: &Registry,
    command: &clap::Command,
    patterns: &'w [String],
    words: impl Iterator<Item = &'w String>,
) -> Result<(RunArgs, Chosen)> {
    let line = ["ombx", "run"]
        .into_iter()
        .chain(patterns.iter().map(String::as_str))
        .chain(words.map(String::as_str));
    let matches = command.clone().try_get_matches_from(line).map_err(|e| Error::usage(sentence(&e)))?;
    let (_, run) = matches.subcommand().ok_or_else(|| Error::usage("there is no subcommand"))?;
    let args = RunArgs::from_arg_matches(run).map_err(|e| Error::usage(sentence(&e)))?;
    Ok((args, axes::chosen(registry, run)?))
}

/// Tells what clap found: help and version as it words them, a mistake in one sentence.
pub(crate) fn refuse(error: &clap::Error, command: &clap::Command) -> Result<u8> {
    if !error.use_stderr() {
        // A closed pipe (ombx --help | head) is no error.
        let _ = error.print();
        return Ok(0);
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let visible = command.get_subcommands().filter(|sub| !sub.is_hide_set());
        let names: Vec<&str> = visible.map(clap::Command::get_name).collect();
        return Err(Error::usage(format!("say what to do: {} (ombx --help tells more)", names.join(", "))));
    }
    Err(Error::usage(format!("{} (ombx --help shows all)", sentence(error))))
}

/// A mistake that clap found, in one sentence.
pub(crate) fn sentence(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let told = text
        .lines()
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information"));
    let words: Vec<&str> = told.map(str::trim).filter(|line| !line.is_empty()).collect();
    let sentence = words.join(" ");
    sentence.strip_prefix("error: ").unwrap_or(&sentence).replace(" tip: ", "; ")
}
