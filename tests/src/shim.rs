//! Compiles small C programs with the MPI under test.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Compiles `src/NAME.c` to a program in the directory that cargo provides for tests.
pub fn program(name: &str, directory: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(name).with_extension("c");
    let path = Path::new(directory).join(format!("{name}-{}.program", std::process::id()));
    fs::create_dir_all(directory).expect("the directory for test files cannot be created");
    let mut compile = Command::new(ombx_mpi::COMPILER);
    compile.args(["-O1", "-Wall", "-Wextra", "-o"]).arg(&path).arg(&source);
    let output = compile.output().unwrap_or_else(|e| panic!("{compile:?}: {e}"));
    assert!(output.status.success(), "{compile:?}: {}", String::from_utf8_lossy(&output.stderr));
    path
}
