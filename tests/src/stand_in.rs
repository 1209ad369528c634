//! Stand-in for the driver of an accelerator, for machines without one: see `stand_in_driver.c`.

use std::{
    ffi::OsString,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
};

use crate::{Job, mpi};

/// File names of the library: of the drivers, of the management library, and of modules of UCX, without which it takes no memory of devices.
const LIBRARIES: [&str; 7] = [
    "libcuda.so.1",
    "libamdhip64.so",
    "libnvidia-ml.so.1",
    "libuct_cuda.so.0",
    "libucm_cuda.so.0",
    "libuct_rocm.so.0",
    "libucm_rocm.so.0",
];

/// Variables that keep MPI from copying directly between the memory of two ranks, which would meet pages without access.
const THROUGH_SHARED_MEMORY: [(&str, &str); 4] = [
    ("OMPI_MCA_btl_vader_single_copy_mechanism", "none"),
    ("OMPI_MCA_osc", "^ucx"),
    ("UCX_TLS", "^cma"),
    ("MPIR_CVAR_CH4_CMA_ENABLE", "0"),
];

/// Compiles the library with the MPI under test, once per test binary. Returns its directory, below the one that cargo provides for tests.
fn directory(of_tests: &str) -> &'static Path {
    static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
    DIRECTORY.get_or_init(|| {
        let directory = Path::new(of_tests).join(format!("stand-in-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("the directory for test files cannot be created");
        let source = directory.join("stand_in.c");
        fs::write(&source, [include_str!("stand_in_driver.c"), &wrappers(&header(&directory))].concat())
            .expect("a source file");
        let library = directory.join(LIBRARIES[0]);
        let mut compile = Command::new(ombx_mpi::COMPILER);
        compile.args([
            "-shared",
            "-fPIC",
            "-O1",
            "-Wall",
            "-Wextra",
            "-Wno-deprecated-declarations",
            "-pthread",
        ]);
        compile.arg(format!("-Wl,-soname,{}", LIBRARIES[0])).arg("-o").arg(&library).arg(&source);
        let output = compile.output().unwrap_or_else(|e| panic!("{compile:?}: {e}"));
        assert!(output.status.success(), "{compile:?}: {}", String::from_utf8_lossy(&output.stderr));
        for name in &LIBRARIES[1..] {
            symlink(&library, directory.join(name)).expect("a link");
        }
        directory
    })
}

/// Returns the preprocessed `mpi.h`.
fn header(directory: &Path) -> String {
    let file = directory.join("header.c");
    fs::write(&file, "#include <mpi.h>\n").expect("a source file");
    let output = Command::new(ombx_mpi::COMPILER).args(["-E", "-P"]).arg(file).stdin(Stdio::null()).output();
    let output = output.expect("the compiler of MPI");
    String::from_utf8(output.stdout).expect("a header").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns a wrapper of every call of MPI, during which the memory of the device is accessible.
fn wrappers(header: &str) -> String {
    let starts = header.match_indices("int MPI_").map(|(at, _)| at);
    let is_word = |at: &usize| !header[..*at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    let calls = starts.filter(is_word).filter_map(|at| {
        let (name, rest) = header[at + "int ".len()..].split_once('(')?;
        let name = name.trim();
        let is_declared = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let (parameters, after) = rest.split_once(')')?;
        let is_call =
            is_declared && !parameters.contains(['.', '(', '{']) && !after.trim_start().starts_with('{');
        is_call.then(|| wrapper(name, parameters.trim()))
    });
    let mut calls: Vec<String> = calls.collect();
    calls.sort();
    calls.dedup();
    assert!(calls.len() > 200, "mpi.h declares {} calls", calls.len());
    calls.concat()
}

fn wrapper(name: &str, parameters: &str) -> String {
    let identifier = |parameter: &str| {
        let before = parameter.split('[').next().unwrap_or_default().trim_end();
        let start = before.rfind(|c: char| !c.is_ascii_alphanumeric() && c != '_').map_or(0, |at| at + 1);
        before[start..].to_owned()
    };
    let arguments: Vec<String> = match parameters {
        "void" | "" => Vec::new(),
        _ => parameters.split(',').map(identifier).collect(),
    };
    let arguments = arguments.join(", ");
    format!(
        "int {name}({parameters}) {{ enter_mpi(); int code = P{name}({arguments}); leave_mpi(); return code; }}\n"
    )
}

/// Returns a job whose ranks have two devices of the stand-in driver, with what goes wrong.
pub fn job(of_tests: &str, arguments: &str, wrong: &str) -> Job {
    let directory = directory(of_tests);
    let variables: Vec<OsString> = mpi::variable_of_ranks("LD_PRELOAD", directory.join(LIBRARIES[0]));
    let job = Job::ombx(arguments).args(variables).env("LD_LIBRARY_PATH", directory);
    let job = job.env("UCX_MODULE_DIR", directory).env("OMBX_STAND_IN", wrong);
    THROUGH_SHARED_MEMORY.iter().fold(job, |job, (name, value)| job.env(name, value))
}
