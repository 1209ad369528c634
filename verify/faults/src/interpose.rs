//! Library between ombx and MPI in the ranks (`LD_PRELOAD`), and the rules that control it.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use ombx_toolchain::{
    command::compile,
    failure::Result,
    mpi::{Flavour, Mpi},
};

/// Source of the library.
const SOURCE: &str =
    concat!(include_str!("datatypes.c"), include_str!("interpose.c"), include_str!("system_calls.c"));

/// Action of the library: in which call, on which rank, when and what.
#[derive(Clone, Debug)]
pub(crate) struct Rule(String);

impl Rule {
    /// Returns a rule for a call, named without `MPI_`; `*` is every call. The actions are `flip`, `stale`, `lost`, `swap`, `short`, `trunc`, `error:CLASS`,
    /// `raise:CLASS`, `less`, `exit:CODE`, `abort`, `segv`, `kill`, `stop` and `hang`: see `interpose.c`.
    pub(crate) fn new(call: &str, what: &str) -> Self {
        Self(format!("call={call},do={what}"))
    }

    /// Returns a rule as the library reads it.
    pub(crate) fn of(text: String) -> Self {
        Self(text)
    }

    /// Limits the rule to one rank of the world.
    pub(crate) fn on(self, rank: u32) -> Self {
        self.with("rank", rank)
    }

    /// Starts with the n-th matching call, counted from 1.
    pub(crate) fn nth(self, nth: u64) -> Self {
        self.with("nth", nth)
    }

    /// Limits how many times the rule acts.
    pub(crate) fn times(self, times: u64) -> Self {
        self.with("times", times)
    }

    /// Limits the rule to messages, or blocks of a collective, of this size.
    pub(crate) fn bytes(self, bytes: u64) -> Self {
        self.with("bytes", bytes)
    }

    /// Limits the rule to number `slot`, from 0, of every `of` matching calls: a position in a window.
    pub(crate) fn slot(self, slot: u64, of: u64) -> Self {
        self.with("slot", slot).with("of", of)
    }

    /// Limits the rule to calls of threads other than the main thread.
    pub(crate) fn on_workers(self) -> Self {
        self.with("worker", 1)
    }

    /// Applies the rule to data that the rank sends instead of data that it receives.
    pub(crate) fn given(self) -> Self {
        self.with("way", "out")
    }

    /// Sets the byte of the payload that is flipped.
    pub(crate) fn byte(self, byte: u64) -> Self {
        self.with("byte", byte)
    }

    /// Sets the byte that is flipped by its position in memory, where a message may have gaps.
    pub(crate) fn byte_in_memory(self, byte: u64) -> Self {
        self.byte(byte).with("memory", 1)
    }

    /// Sets the block of a collective, or the part of a partitioned message, in which a byte is flipped.
    pub(crate) fn block(self, block: u64) -> Self {
        self.with("block", block)
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
