//! Compiles small C programs, and small C libraries for `LD_PRELOAD`.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Compiles `src/NAME.c` to a library without MPI in the directory that cargo provides for tests.
pub fn library(name: &str, directory: &str) -> PathBuf {
    compiled("cc", &["-shared", "-fPIC"], name, directory, "so")
}

/// Compiles `src/NAME.c` to a program with the MPI under test.
pub fn program(name: &str, directory: &str) -> PathBuf {
    compiled(ombx_mpi::COMPILER, &[], name, directory, "program")
}

fn compiled(compiler: &str, options: &[&str], name: &str, directory: &str, ending: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(name).with_extension("c");
    let path = Path::new(directory).join(format!("{name}-{}.{ending}", std::process::id()));
    fs::create_dir_all(directory).expect("the directory for test files cannot be created");
    let mut compile = Command::new(compiler);
    compile.args(options).args(["-O1", "-Wall", "-Wextra", "-o"]).arg(&path).arg(&source).arg("-ldl");
    let output = compile.output().unwrap_or_else(|e| panic!("{compile:?}: {e}"));
    assert!(output.status.success(), "{compile:?}: {}", String::from_utf8_lossy(&output.stderr));
    path
}
