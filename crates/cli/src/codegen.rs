//! What is generated from the command line and the result format: completions, manual page, schema, table of options.

use std::io::{self, Write};

use clap::Command;
use ombx_core::{
    benchmark::registry::Registry,
    error::{Error, Result},
};
use serde_json::{Value, json};

use crate::{args::Generated, osu};

pub(crate) fn completions(mut command: Command, shell: clap_complete::Shell) -> Result<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "ombx", &mut script);
    print(&script)
}

pub(crate) fn codegen(registry: &Registry, command: Command, what: Generated) -> Result<u8> {
    match what {
        Generated::Schema => print(format!("{:#}\n", ombx_results::file::schema()).as_bytes()),
        Generated::Omb => print(osu::document::page(registry).as_bytes()),
        Generated::Man => print(&manual(command)?),
        Generated::Options => print(format!("{:#}\n", options(command)).as_bytes()),
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

/// Every option of every command: what it is called, what it takes, and which values are right where they can be listed.
fn options(mut command: Command) -> Value {
    command.build();
    let visible = command.get_subcommands().filter(|sub| !sub.is_hide_set());
    let all = visible.flat_map(|sub| {
        sub.get_arguments().map(|arg| {
            let values: Vec<String> =
                arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
            let takes = arg.get_action().takes_values();
            json!({
                "command": sub.get_name(),
                "long": arg.get_long(),
                "short": arg.get_short(),
                "value": takes.then(|| arg.get_value_names().map_or(String::new(), |names| names.join(" "))),
                "optional": arg.get_num_args().is_some_and(|range| range.min_values() == 0),
                "values": if takes { values } else { Vec::new() },
                "default": arg.get_default_values().first().map(|value| value.to_string_lossy()),
                "repeats": matches!(arg.get_action(), clap::ArgAction::Append),
                "hidden": arg.is_hide_set(),
            })
        })
    });
    all.collect()
}

fn print(text: &[u8]) -> Result<u8> {
    match io::stdout().lock().write_all(text) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
            Err(Error::storage(format!("standard output: {e}")))
        }
        _ => Ok(0),
    }
}
