//! `cargo xtask graph`: imports between the files of each crate.

mod graph;
mod scan;
mod tree;

use std::{
    io::{self, Write},
    process::ExitCode,
};

use ombx_toolchain::{
    failure::{Failure, Result},
    workspace::Workspace,
};

pub(crate) use self::graph::Graph;
use crate::{repository, source::Source};

/// Draw the imports between the files of each crate
///
/// An import is a name of another file of the crate: in `use`, or in a path such as `crate::a::b`. Tests do not count, nor do
/// `mod` and re-exports of a module's own submodules. A file is one level above the highest file that it imports.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  cargo xtask graph core\n  cargo xtask graph --format dot cli | dot -Tsvg > cli.svg"
)]
pub(crate) struct Options {
    /// Crates by the names of their directories, for example: core cli [default: all]
    crates: Vec<String>,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// Levels and arrows
    Text,
    /// Input of Graphviz
    Dot,
}

pub(crate) fn main(options: &Options) -> Result<ExitCode> {
    let workspace = Workspace::read()?;
    let sources: Vec<Source> = repository::files(&workspace.root)?
        .iter()
        .filter(|(path, _)| path.ends_with(".rs"))
        .filter_map(|(path, text)| Source::parse(path, text).ok())
        .collect();
    let mut drawn = 0;
    for directory in directories(&workspace) {
        let name = directory.rsplit('/').next().unwrap_or(directory);
        if !options.crates.is_empty() && !options.crates.iter().any(|wanted| wanted == name) {
            continue;
        }
        drawn += 1;
        let graph = Graph::of(directory, &sources);
        let text = match options.format {
            Format::Text => format!("{directory}: {graph}\n"),
            Format::Dot => graph.dot(name),
        };
        // The reader may have closed the pipe.
        drop(io::stdout().write_all(text.as_bytes()));
    }
    if drawn == 0 {
        return Err(Failure::Usage(format!("no crate has the directory {}", options.crates.join(", "))));
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the directories of all packages, relative to the root.
pub(crate) fn directories(workspace: &Workspace) -> impl Iterator<Item = &str> {
    workspace.packages.iter().filter_map(|package| package.manifest.strip_suffix("/Cargo.toml"))
}
