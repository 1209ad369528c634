//! Arguments of the linker for the program.

use std::{env, fs, path::Path, process::Command};

fn main() {
    // A program that runs at any address has tens of thousands of relocations. One with a fixed address has none, which saves 2 MB of its
    // file and of the memory of every rank.
    println!("cargo::rustc-link-arg-bins=-no-pie");
    // An MPI outside of the loader's directories is found where the compiler wrapper has found it. `ombx_mpi` tells this to crates that name
    // it in their manifest.
    let run_paths = match env::var("DEP_OMBX_MPI_RUN_PATHS") {
        Err(_) if env::var_os("CARGO_FEATURE_MPI").is_some() => panic!("ombx-mpi is no direct dependency"),
        run_paths => run_paths.unwrap_or_default(),
    };
    for path in run_paths.split(':').filter(|path| !path.is_empty()) {
        println!("cargo::rustc-link-arg-bins=-Wl,-rpath,{path}");
    }
    for argument in lightening().into_iter().flatten() {
        println!("cargo::rustc-link-arg-bins={argument}");
    }
    println!("cargo::rerun-if-changed=build.rs");
}

/// Returns arguments of the linker for a small program, if it is LLD and the program is built without debug information.
///
/// They leave out copies of equal functions, and the tables that unwinding reads. A panic of a release aborts, and without symbols a
/// backtrace has no names.
fn lightening() -> Option<[String; 2]> {
    let variable = |name: &str| env::var(name).ok();
    if variable("PROFILE")? != "release" || variable("DEBUG")? != "false" {
        return None;
    }
    let out = variable("OUT_DIR")?;
    let path = |name: &str| Path::new(&out).join(name).display().to_string();
    let (script, source, program) = (path("no_unwinding.ld"), path("empty.rs"), path("empty"));
    let discard = "SECTIONS { /DISCARD/ : { *(.eh_frame) *(.gcc_except_table*) } } INSERT AFTER .text;\n";
    fs::write(&script, discard).ok()?;
    fs::write(&source, "fn main() {}\n").ok()?;
    let arguments = ["-Wl,--icf=all".to_owned(), format!("-Wl,-T,{script}")];
    let mut trial = Command::new(variable("RUSTC")?);
    trial.arg(&source).args(["-o", &program]).args(["--target", &variable("TARGET")?]);
    trial.args(["-Cpanic=abort", "-Clink-arg=-no-pie"]);
    if let Some(linker) = variable("RUSTC_LINKER") {
        trial.arg(format!("-Clinker={linker}"));
    }
    trial.args(variable("CARGO_ENCODED_RUSTFLAGS")?.split('\u{1f}').filter(|flag| !flag.is_empty()));
    trial.args(arguments.iter().map(|argument| format!("-Clink-arg={argument}")));
    let is_linked = trial.output().ok()?.status.success();
    // LLD names itself in the programs that it links. The script adds to the layout of LLD, but replaces that of gold.
    let has_name = |bytes: Vec<u8>| bytes.windows(11).any(|name| name == b"Linker: LLD");
    (is_linked && fs::read(&program).is_ok_and(has_name)).then_some(arguments)
}
