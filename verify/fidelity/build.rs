//! Compiles the C loops of `ombx-paired` with the MPI that `mpi-sys` found.

/// Directory of the C loops.
const DIRECTORY: &str = "src/bin/paired/reference";
const FILES: [&str; 5] = ["loops.c", "two_sided.c", "one_sided.c", "collective.c", "files.c"];

fn main() {
    println!("cargo::rerun-if-changed={DIRECTORY}");
    if std::env::var_os("CARGO_FEATURE_PAIRED").is_none() {
        return;
    }
    for variable in ["MPICC", "MPI_PKG_CONFIG", "CRAY_MPICH_DIR"] {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    let library = build_probe_mpi::probe().unwrap_or_else(|reasons| {
        let reasons: Vec<String> = reasons.iter().map(ToString::to_string).collect();
        panic!("no MPI found ({}). Run `cargo xtask setup`", reasons.join("; "))
    });
    let mut loops = cc::Build::new();
    loops.files(FILES.map(|name| format!("{DIRECTORY}/{name}"))).opt_level(2).debug(true).warnings(true);
    // MPI_STATUSES_IGNORE of MPICH is not the address of an array, of which gcc warns.
    loops.flag_if_supported("-Wno-stringop-overflow");
    match &library.mpicc {
        Some(mpicc) => loops.compiler(mpicc),
        None => loops.includes(&library.include_paths),
    };
    loops.compile("ombx_fidelity_loops");
}
