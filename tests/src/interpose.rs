//! Library between ombx and MPI that corrupts received data: see `interpose.c`.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use crate::{Done, mpi};

/// Compiles the library with the MPI under test, once per test binary. `directory` is the one that cargo provides for tests.
pub fn library(directory: &str) -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| compiled(directory, "interpose"))
}

/// Compiles the library that counts calls of MPI, as [`library`] does.
pub fn counter(directory: &str) -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| compiled(directory, "calls"))
}

fn compiled(directory: &str, name: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("src/{name}.c"));
    let path = Path::new(directory).join(format!("{name}-{}.so", std::process::id()));
    fs::create_dir_all(directory).expect("the directory for test files cannot be created");
    let mut compile = Command::new(ombx_mpi::COMPILER);
    // A library need not have every function: each is looked up when it is called first.
    compile
        .args(["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Wl,-z,lazy", "-o"])
        .arg(&path)
        .arg(&source);
    let output = compile.output().unwrap_or_else(|e| panic!("{compile:?}: {e}"));
    assert!(output.status.success(), "{compile:?}: {}", String::from_utf8_lossy(&output.stderr));
    path
}

/// Returns arguments of `ombx run` that load the library into the ranks, but not into their launcher.
pub fn arguments(library: &Path, what: &str) -> Vec<OsString> {
    [mpi::variable_of_ranks("LD_PRELOAD", library), mpi::variable_of_ranks("OMBX_INTERPOSE", what)].concat()
}

/// Returns how often each rank has called each function that the action `count` counts; nothing for functions that it has not called.
pub fn calls(done: &Done) -> Vec<BTreeMap<String, u64>> {
    let of_rank = |line: &str| {
        let (rank, counts) = line.split_once("calls of rank ")?.1.split_once(':')?;
        let words: Vec<&str> = counts.split_whitespace().collect();
        let counts =
            words.as_chunks().0.iter().map(|[name, count]| Some(((*name).to_owned(), count.parse().ok()?)));
        Some((rank.parse().ok()?, counts.collect::<Option<_>>()?))
    };
    let ranks: BTreeMap<u32, BTreeMap<String, u64>> = done.stderr.lines().filter_map(of_rank).collect();
    ranks.into_values().collect()
}
