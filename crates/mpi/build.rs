//! Compiles the C shim with the MPI that `mpi-sys` found, and detects which optional calls that MPI has.

use std::{env, path::Path};

fn main() {
    for variable in ["MPICC", "MPI_PKG_CONFIG", "CRAY_MPICH_DIR"] {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    println!("cargo::rerun-if-changed=src/sys/shim.c");
    println!("cargo::rerun-if-changed=src/sys/session.c");
    println!("cargo::rustc-check-cfg=cfg(mpi_family, values(\"mpich\", \"openmpi\", \"other\"))");

    let library = build_probe_mpi::probe().unwrap_or_else(|reasons| {
        let reasons: Vec<String> = reasons.iter().map(ToString::to_string).collect();
        panic!("no MPI found ({}). Run `cargo xtask setup`", reasons.join("; "))
    });
    let mut shim = cc::Build::new();
    shim.file("src/sys/shim.c").file("src/sys/session.c").warnings(true);
    match &library.mpicc {
        Some(mpicc) => {
            shim.compiler(mpicc);
        }
        None => {
            shim.includes(&library.include_paths);
        }
    }

    let header = expanded_header(&library);
    let family = ["mpich", "openmpi"]
        .into_iter()
        .find(|f| header.contains(&format!("ombx_family_{f} ")))
        .unwrap_or("other");
    println!("cargo::rustc-cfg=mpi_family={family:?}");
    println!("cargo::rustc-env=OMBX_MPICC={}", library.mpicc.as_deref().unwrap_or("mpicc"));
    shim.compile("ombx_shim");
    println!("cargo::rerun-if-env-changed=OMBX_RUN_PATHS");
    let run_paths = env::var("OMBX_RUN_PATHS").unwrap_or_else(|_| run_paths(&library).join(":"));
    println!("cargo::metadata=run_paths={run_paths}");
}

/// Returns the directories of libraries that the compiler wrapper names and that the loader does not search by itself. Programs keep them
/// as their rpath.
fn run_paths(library: &build_probe_mpi::Library) -> Vec<String> {
    let searched = ["/lib", "/usr/lib", "/lib64", "/usr/lib64"];
    let paths = library
        .lib_paths
        .iter()
        .filter(|path| path.is_absolute() && !searched.iter().any(|directory| path.starts_with(directory)));
    paths.map(|path| path.display().to_string()).collect()
}

/// Returns the preprocessed `mpi.h` with Open MPI's extensions and a word that names the family. Spaces before parentheses
/// are removed, so that a search for `NAME(` finds each declared call.
fn expanded_header(library: &build_probe_mpi::Library) -> String {
    let probe = Path::new(&env::var("OUT_DIR").expect("cargo sets OUT_DIR")).join("probe.c");
    let text = "#include <mpi.h>\n#if defined(OPEN_MPI)\n#include <mpi-ext.h>\nombx_family_openmpi ;\n\
                #elif defined(MPICH_VERSION)\nombx_family_mpich ;\n#endif\n";
    std::fs::write(&probe, text).expect("OUT_DIR is writable");
    let mut build = cc::Build::new();
    build.file(&probe).cargo_metadata(false);
    match &library.mpicc {
        Some(mpicc) => build.compiler(mpicc),
        None => build.includes(&library.include_paths),
    };
    String::from_utf8_lossy(&build.expand()).replace(" (", "(")
}
