//! What is generated from the command line and the result format: completions, manual page, schema.

use std::io::{self, Write};

use clap::Command;
use ombx_core::error::{Error, Result};

use crate::args::Generated;

pub(crate) fn completions(mut command: Command, shell: clap_complete::Shell) -> Result<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "ombx", &mut script);
    print(&script)
}

pub(crate) fn codegen(command: Command, what: Generated) -> Result<u8> {
    match what {
        Generated::Schema => print(format!("{:#}\n", ombx_core::wire::schema()).as_bytes()),
        Generated::Man => print(&manual(command)?),
    }
}

/// One page: the command, then a section for each subcommand.
fn manual(mut command: Command) -> Result<Vec<u8>> {
    let mut page = Vec::new();
    let failed = |e: io::Error| Error::storage(format!("manual page: {e}"));
    command.build();
    clap_mangen::Man::new(command.clone()).date("").render(&mut page).map_err(failed)?;
    for sub in command.get_subcommands().filter(|c| !c.is_hide_set()) {
        writeln!(page, ".SH \"{}\"", sub.get_bin_name().unwrap_or_default().to_uppercase())
            .map_err(failed)?;
        let man = clap_mangen::Man::new(sub.clone());
        man.render_description_section(&mut page).map_err(failed)?;
        man.render_options_section(&mut page).map_err(failed)?;
    }
    Ok(page)
}

fn print(text: &[u8]) -> Result<u8> {
    match io::stdout().lock().write_all(text) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
            Err(Error::storage(format!("standard output: {e}")))
        }
        _ => Ok(0),
    }
}
