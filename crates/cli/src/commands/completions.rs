//! `ombx completions`: completion scripts for shells.

use clap::{Args, Command};
use clap_complete::Shell;
use ombx_core::error::Result;

use crate::output::stdout;

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// Shell, for example: ombx completions bash > ~/.local/share/bash-completion/completions/ombx
    shell: Shell,
}

pub(crate) fn completions(mut parser: Command, args: &CompletionsArgs) -> Result<u8> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut parser, "ombx", &mut script);
    stdout::print(script)
}
