//! `ombx codegen`: files that follow from the arguments and the result format, for installations and tests.

use clap::{Args, Command, ValueEnum};
use ombx_launch::output::terminal;
use ombx_record::error::Result;
use serde_json::{Value, json};

#[derive(Debug, Args)]
pub(crate) struct CodegenArgs {
    /// File to print
    #[arg(value_enum)]
    pub(crate) file: Generated,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Generated {
    /// JSON Schema of the lines of a result file
    #[cfg(feature = "codegen")]
    Schema,
    /// Manual pages by the names of their files, in JSON
    #[cfg(feature = "codegen")]
    Man,
    /// Every option of every command, in JSON
    Options,
}

pub(crate) fn codegen(parser: Command, file: Generated) -> Result<u8> {
    match file {
        #[cfg(feature = "codegen")]
        Generated::Schema => terminal::print(format!("{:#}\n", ombx_record::file::schema())),
        #[cfg(feature = "codegen")]
        Generated::Man => {
            let pages = super::help::manual::pages(parser);
            let pages = pages.map_err(|e| {
                ombx_record::error::Error::storage(format!("cannot write the manual pages: {e}"))
            })?;
            terminal::print(format!("{:#}\n", json!(pages)))
        }
        Generated::Options => terminal::print(format!("{:#}\n", options(parser))),
    }
}

/// Returns every option of every command: its names, its value, and the possible values if they can be listed.
pub(super) fn options(mut parser: Command) -> Value {
    parser.build();
    let visible = parser.get_subcommands().filter(|command| !command.is_hide_set());
    let all = visible.flat_map(|command| {
        command.get_arguments().map(|arg| {
            let values: Vec<String> =
                arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
            let takes = arg.get_action().takes_values();
            json!({
                "command": command.get_name(),
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
