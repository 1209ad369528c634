//! The library that stands between ombx and MPI in the ranks: compiled here, told by rules what to do.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    failure::{Failure, Result},
    mpi::{Flavour, Mpi},
};

/// Its source, built into this program so that the two cannot part.
const SOURCE: &str = include_str!("interpose.c");

/// One thing that it does: in which call, on which rank, when, and what.
#[derive(Clone, Debug)]
pub(super) struct Rule(String);

impl Rule {
    /// `call` is a call's name without `MPI_` (`Recv`), `*` every one; `what` is what is done there: `flip`, `short`,
    /// `trunc`, `error:CLASS` and `raise:CLASS` (a number, or a name such as `ERR_OTHER`), `less`, `exit:CODE`, `abort`, `segv`,
    /// `kill`, `stop`, `hang`: see the source.
    pub(super) fn new(call: &str, what: &str) -> Self {
        Self(format!("call={call},do={what}"))
    }

    /// On this rank of the world alone.
    pub(super) fn on(self, rank: u32) -> Self {
        self.with("rank", rank)
    }

    /// From the n-th call on that fits otherwise, counted from 1.
    pub(super) fn nth(self, nth: u64) -> Self {
        self.with("nth", nth)
    }

    /// At most so often.
    pub(super) fn times(self, times: u64) -> Self {
        self.with("times", times)
    }

    /// Messages of so many bytes alone; of a collective, blocks.
    pub(super) fn bytes(self, bytes: u64) -> Self {
        self.with("bytes", bytes)
    }

    /// Of every `of` times, the one with number `slot`, from 0: a place in a window.
    pub(super) fn slot(self, slot: u64, of: u64) -> Self {
        self.with("slot", slot).with("of", of)
    }

    /// What this rank gives to others, not what it is given.
    pub(super) fn given(self) -> Self {
        self.with("way", "out")
    }

    /// The byte that is flipped.
    pub(super) fn byte(self, byte: u64) -> Self {
        self.with("byte", byte)
    }

    fn with(self, key: &str, value: impl fmt::Display) -> Self {
        Self(format!("{},{key}={value}", self.0))
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Compiles it with an MPI, into its target directory.
pub(super) fn library(mpi: &Mpi, room: &Path) -> Result<PathBuf> {
    fs::create_dir_all(room).map_err(Failure::file(room))?;
    let (source, library) = (room.join("interpose.c"), room.join("interpose.so"));
    fs::write(&source, SOURCE).map_err(Failure::file(&source))?;
    let mut command = Command::new(&mpi.mpicc);
    command.args(["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-pthread", "-o"]);
    let output = command.arg(&library).arg(&source).arg("-ldl").output();
    let program = mpi.mpicc.display().to_string();
    let output = output.map_err(|source| Failure::Run { program: program.clone(), source })?;
    if output.status.success() {
        return Ok(library);
    }
    let detail = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(Failure::Command { command: program, detail })
}

/// Arguments of `ombx run` that let ranks, and ranks alone, run with it under these rules.
pub(super) fn arguments(flavour: Flavour, library: &Path, rules: &[Rule], log: &Path) -> Vec<String> {
    let rules: Vec<String> = rules.iter().map(Rule::to_string).collect();
    let rules = rules.join(";");
    let (library, log) = (library.to_string_lossy(), log.to_string_lossy());
    let variables = [("LD_PRELOAD", &*library), ("OMBX_FAULTS", &rules), ("OMBX_FAULTS_LOG", &log)];
    let words = variables.iter().flat_map(|(name, value)| match flavour {
        Flavour::Mpich => vec!["-genv".to_owned(), (*name).to_owned(), (*value).to_owned()],
        Flavour::OpenMpi => vec!["-x".to_owned(), format!("{name}={value}")],
    });
    words.map(|word| format!("--launcher-arg={word}")).collect()
}
