//! `ip` of iproute2.

use std::process::Command;

use ombx_toolchain::{command::output, failure::Result};

/// Runs `ip` with arguments separated by blanks and returns what it prints.
pub(crate) fn ip(arguments: &str) -> Result<String> {
    output(Command::new("ip").args(arguments.split(' ')))
}
