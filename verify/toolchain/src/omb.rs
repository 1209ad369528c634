//! Programs of OMB, built from the sources of a user with one MPI.

use std::{
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    failure::{Failure, Result},
    mpi::Mpi,
    step::Step,
    workspace::Workspace,
};

/// OMB, built with one MPI.
pub struct Omb {
    directory: PathBuf,
    /// What make printed about errors.
    errors: String,
}

/// Errors of make that a message has.
const ERRORS: usize = 3;

impl Omb {
    /// Builds a copy of the sources with six decimals instead of two: a put of 20 ns would be 0.02. Each directory of sources has a copy of
    /// its own.
    pub fn built(mpi: &Mpi, workspace: &Workspace, source: &Path) -> Result<Omb> {
        let source = &fs::canonicalize(source).map_err(Failure::file(source))?;
        let mut path = DefaultHasher::new();
        source.hash(&mut path);
        let copy = mpi.target(&workspace.target).join(format!("outside/omb-{:016x}", path.finish()));
        if !copy.join("config.status").is_file() {
            // `cp` would copy the sources into what a configuration that failed has left.
            if copy.exists() {
                fs::remove_dir_all(&copy).map_err(Failure::file(&copy))?;
            }
            let parent = copy.parent().unwrap_or(&copy);
            fs::create_dir_all(parent).map_err(Failure::file(parent))?;
            let mut copied = Command::new("cp");
            copied.args(["-r", "--preserve=timestamps"]).arg(source).arg(&copy);
            Step::run("copy of OMB", &mut copied).built()?;
            let mut configure = Command::new("sh");
            configure.current_dir(&copy).args(["./configure", "CFLAGS=-O2 -DFLOAT_PRECISION=6"]);
            // OMB links with the C++ wrapper, which has the name of the C wrapper otherwise.
            let wrapper = mpi.mpicc.display().to_string();
            let cxx = wrapper.replacen("mpicc", "mpicxx", 1);
            configure.arg(format!("CC={wrapper}")).arg(format!("CXX={cxx}"));
            Step::run("OMB: configure", &mut configure).built()?;
        }
        // Some programs need functions that a library lacks: the others are built.
        let mut make = Command::new("make");
        make.args(["--keep-going", "--silent"]).current_dir(&copy);
        let printed = make.output().map(|out| String::from_utf8_lossy(&out.stderr).into_owned());
        let errors: Vec<String> = printed
            .unwrap_or_else(|e| e.to_string())
            .lines()
            .filter(|line| !line.starts_with("make"))
            .take(ERRORS)
            .map(str::to_owned)
            .collect();
        Ok(Omb { directory: copy, errors: errors.join("\n") })
    }

    /// Returns the path of a program.
    pub fn program(&self, name: &str) -> Result<PathBuf> {
        found(&self.directory, name).ok_or_else(|| {
            let directory = self.directory.display();
            Failure::Missing(format!(
                "{name} was not built in {directory}; make began with:\n{}",
                self.errors
            ))
        })
    }
}

/// Returns the program of this name below a directory.
fn found(directory: &Path, name: &str) -> Option<PathBuf> {
    fs::read_dir(directory).ok()?.flatten().find_map(|entry| {
        let path = entry.path();
        if path.is_dir() {
            return found(&path, name);
        }
        (entry.file_name() == name && path.extension().is_none()).then_some(path)
    })
}
