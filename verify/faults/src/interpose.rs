//! The library that stands between ombx and MPI in the ranks: compiled here, told by rules what to do.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use ombx_toolchain::{
    command::compile,
    failure::Result,
    mpi::{Flavour, Mpi},
};

/// Its source, built into this program so that the two cannot part.
const SOURCE: &str = include_str!("interpose.c");

/// One thing that it does: in which call, on which rank, when, and what.
#[derive(Clone, Debug)]
pub(crate) struct Rule(String);

impl Rule {
    /// `call` is a call's name without `MPI_` (`Recv`), `*` every one; `what` is what is done there: `flip`, `short`,
    /// `trunc`, `error:CLASS` and `raise:CLASS` (a number, or a name such as `ERR_OTHER`), `less`, `exit:CODE`, `abort`, `segv`,
    /// `kill`, `stop`, `hang`: see the source.
    pub(crate) fn new(call: &str, what: &str) -> Self {
        Self(format!("call={call},do={what}"))
    }

    /// On this rank of the world alone.
    pub(crate) fn on(self, rank: u32) -> Self {
        self.with("rank", rank)
    }

    /// From the n-th call on that fits otherwise, counted from 1.
    pub(crate) fn nth(self, nth: u64) -> Self {
        self.with("nth", nth)
    }

    /// At most so often.
    pub(crate) fn times(self, times: u64) -> Self {
        self.with("times", times)
    }

    /// Messages of so many bytes alone; of a collective, blocks.
    pub(crate) fn bytes(self, bytes: u64) -> Self {
        self.with("bytes", bytes)
    }

    /// Of every `of` times, the one with number `slot`, from 0: a place in a window.
    pub(crate) fn slot(self, slot: u64, of: u64) -> Self {
        self.with("slot", slot).with("of", of)
    }

    /// What this rank gives to others, not what it is given.
    pub(crate) fn given(self) -> Self {
        self.with("way", "out")
    }

    /// The byte that is flipped.
    pub(crate) fn byte(self, byte: u64) -> Self {
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

/// Compiles the library with an MPI into a directory.
pub(crate) fn library(mpi: &Mpi, directory: &Path) -> Result<PathBuf> {
    let options = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-pthread"];
    compile(&mpi.mpicc, &options, directory, "interpose.c", SOURCE)
}

/// Returns arguments of `ombx run` that set environment variables in the ranks, and in the ranks alone.
pub(crate) fn variables(flavour: Flavour, variables: &[(&str, &str)]) -> Vec<String> {
    let words = variables.iter().flat_map(|(name, value)| match flavour {
        Flavour::Mpich => vec!["-genv".to_owned(), (*name).to_owned(), (*value).to_owned()],
        Flavour::OpenMpi => vec!["-x".to_owned(), format!("{name}={value}")],
    });
    words.map(|word| format!("--launcher-arg={word}")).collect()
}

/// Returns arguments of `ombx run` that load the library with these rules into the ranks.
pub(crate) fn arguments(flavour: Flavour, library: &Path, rules: &[Rule], log: &Path) -> Vec<String> {
    let rules: Vec<String> = rules.iter().map(Rule::to_string).collect();
    let (library, log) = (library.to_string_lossy(), log.to_string_lossy());
    let rules = rules.join(";");
    variables(flavour, &[("LD_PRELOAD", &library), ("OMBX_FAULTS", &rules), ("OMBX_FAULTS_LOG", &log)])
}
