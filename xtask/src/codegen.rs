//! `cargo xtask codegen`: the documents that the program itself knows best, written from the built binary.

mod benchmarks;

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use ombx_toolchain::{
    command::output,
    failure::{Failure, Result, failed_if},
    mpi::{Mpi, installed},
    release,
    workspace::Workspace,
};

/// Write docs/BENCHMARKS.md, docs/OMB.md, docs/result.schema.json and docs/ombx.1 from the built binary
#[derive(clap::Args)]
#[command(after_help = "Example: cargo xtask codegen --check")]
pub(crate) struct Options {
    /// Change nothing; fail when a file is stale, naming it
    #[arg(long)]
    check: bool,
}

/// Where each file comes from.
const GENERATED: &[(&str, &[&str])] = &[
    ("docs/BENCHMARKS.md", &["list", "--json"]),
    ("docs/OMB.md", &["codegen", "omb"]),
    ("docs/result.schema.json", &["codegen", "schema"]),
    ("docs/ombx.1", &["codegen", "man"]),
];

pub(crate) fn main(options: &Options) -> Result<ExitCode> {
    let mpi = installed(None)?.remove(0);
    let workspace = Workspace::read()?;
    if options.check {
        return Ok(failed_if(!stale(&workspace, &mpi)?.is_empty()));
    }
    for (path, text) in generate(&workspace, &mpi)? {
        let file = |source| Failure::File { path: path.clone(), source };
        if current(&path).map_err(file)?.as_deref() == Some(text.as_str()) {
            println!("{} is up to date", path.display());
            continue;
        }
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory).map_err(file)?;
        }
        fs::write(&path, text).map_err(file)?;
        println!("{} written", path.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// The files that are not what the program says, each also printed.
pub(crate) fn stale(workspace: &Workspace, mpi: &Mpi) -> Result<Vec<PathBuf>> {
    let mut stale = Vec::new();
    for (path, text) in generate(workspace, mpi)? {
        let now = current(&path).map_err(|source| Failure::File { path: path.clone(), source })?;
        if let Some(why) = differs(now.as_deref(), &text) {
            println!(
                "{}: {why} (cargo xtask codegen)",
                path.strip_prefix(&workspace.root).unwrap_or(&path).display()
            );
            stale.push(path);
        }
    }
    Ok(stale)
}

fn differs(now: Option<&str>, generated: &str) -> Option<String> {
    let Some(now) = now else { return Some("missing".into()) };
    let same = now.lines().zip(generated.lines()).take_while(|(a, b)| a == b).count();
    (now != generated).then(|| format!("stale from line {}", same + 1))
}

fn generate(workspace: &Workspace, mpi: &Mpi) -> Result<Vec<(PathBuf, String)>> {
    let binary = release::built_for_tests(mpi, workspace)?;
    let mut files = Vec::new();
    for (path, arguments) in GENERATED {
        let printed = output(Command::new(&binary).args(*arguments))?;
        let text =
            if arguments[0] == "list" { benchmarks::page(&benchmarks::entries(&printed)?) } else { printed };
        files.push((workspace.root.join(path), format!("{}\n", text.trim_end())));
    }
    Ok(files)
}

/// The names of all benchmarks that a built binary has.
pub(crate) fn names(binary: &Path) -> Result<Vec<String>> {
    Ok(benchmarks::names(&benchmarks::entries(&output(Command::new(binary).args(["list", "--json"]))?)?))
}

fn current(path: &Path) -> io::Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_located() {
        assert_eq!(differs(None, "a\n").as_deref(), Some("missing"));
        assert_eq!(differs(Some("a\nb\n"), "a\nc\n").as_deref(), Some("stale from line 2"));
        assert_eq!(differs(Some("a\n"), "a\n"), None);
    }
}
