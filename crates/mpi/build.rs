//! Compiles the C shim with the MPI that `mpi-sys` found, and detects which optional calls that MPI has.

use std::{env, path::Path};

/// Calls that not every MPI has. Each call found sets `cfg(mpi_has = "..")`, and `OMBX_HAVE_..` in the shim.
const OPTIONAL: [&str; 6] =
    ["MPI_Bcast_init", "MPIX_Bcast_init", "MPI_Psend_init", "MPI_Send_c", "MPI_Put_c", "MPI_Session_init"];

fn main() {
    for variable in ["MPICC", "MPI_PKG_CONFIG", "CRAY_MPICH_DIR"] {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    println!("cargo::rerun-if-changed=src/sys/shim.c");
    println!("cargo::rerun-if-changed=src/sys/persistent.c");
    println!("cargo::rerun-if-changed=src/sys/session.c");
    println!(
        "cargo::rustc-check-cfg=cfg(mpi_has, values({}))",
        OPTIONAL.map(|name| format!("{name:?}")).join(", ")
    );
    println!("cargo::rustc-check-cfg=cfg(mpi_family, values(\"mpich\", \"openmpi\", \"other\"))");

    let library = build_probe_mpi::probe().unwrap_or_else(|reasons| {
        let reasons: Vec<String> = reasons.iter().map(ToString::to_string).collect();
        panic!("no MPI found ({}). Run `cargo xtask setup`", reasons.join("; "))
    });
    let mut shim = cc::Build::new();
    shim.file("src/sys/shim.c").file("src/sys/persistent.c").file("src/sys/session.c").warnings(true);
    match &library.mpicc {
        Some(mpicc) => {
            shim.compiler(mpicc);
        }
        None => {
            shim.includes(&library.include_paths);
        }
    }

    let header = expanded_header(&library);
    for name in OPTIONAL.into_iter().filter(|name| header.contains(&format!("{name}("))) {
        println!("cargo::rustc-cfg=mpi_has={name:?}");
        shim.define(&format!("OMBX_HAVE_{name}"), None);
    }
    let family = ["mpich", "openmpi"]
        .into_iter()
        .find(|f| header.contains(&format!("ombx_family_{f} ")))
        .unwrap_or("other");
    println!("cargo::rustc-cfg=mpi_family={family:?}");
    println!("cargo::rustc-env=OMBX_MPICC={}", library.mpicc.as_deref().unwrap_or("mpicc"));
    shim.compile("ombx_shim");
}

/// Returns the preprocessed `mpi.h` with Open MPI's extensions and a word that names the family. Spaces before parentheses
/// are removed, so that a search for `NAME(` finds each declared call.
fn expanded_header(library: &build_probe_mpi::Library) -> String {
    let probe = Path::new(&env::var("OUT_DIR").expect("cargo sets OUT_DIR")).join("probe.c");
    let text = "#include <mpi.h>\n#if defined(OPEN_MPI)\n#include <mpi-ext.h>\nombx_family_openmpi ;\n#elif defined(MPICH_VERSION)\nombx_family_mpich ;\n#endif\n";
    std::fs::write(&probe, text).expect("OUT_DIR is writable");
    let mut build = cc::Build::new();
    build.file(&probe).cargo_metadata(false);
    match &library.mpicc {
        Some(mpicc) => build.compiler(mpicc),
        None => build.includes(&library.include_paths),
    };
    String::from_utf8_lossy(&build.expand()).replace(" (", "(")
}
