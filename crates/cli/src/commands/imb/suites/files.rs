//! Benchmarks of IMB-IO.

use ombx_core::benchmark::Preset;
use ombx_results::render::ImbClass;

use super::{Entry, Table, of_mode, table};

/// Values of parameters of benchmarks of files.
macro_rules! files {
    ($files:literal, $pointer:literal, $access:literal $(, $sync:expr)?) => {
        &[("files", $files), ("pointer", $pointer), ("access", $access) $(, $sync)?]
    };
}

/// Writes by one process or by all, with one `MPI_File_sync` after many and with one after each.
macro_rules! writes {
    ($name:literal, $class:expr, $ranks:expr, $files:literal, $pointer:literal, $access:literal) => {
        Entry {
            name: $name,
            is_default: true,
            tables: const {
                &[
                    of_file(
                        "AGGREGATE",
                        "io.write",
                        $class,
                        files!($files, $pointer, $access, ("file-sync", "end")),
                        $ranks,
                    ),
                    of_file(
                        "NON-AGGREGATE",
                        "io.write",
                        $class,
                        files!($files, $pointer, $access, ("file-sync", "each")),
                        $ranks,
                    ),
                ]
            },
        }
    };
}

/// Reads by one process or by all.
macro_rules! reads {
    ($name:literal, $class:expr, $ranks:expr, $files:literal, $pointer:literal, $access:literal) => {
        Entry {
            name: $name,
            is_default: true,
            tables: const { &[of_file("AGGREGATE", "io.read", $class, files!($files, $pointer, $access), $ranks)] },
        }
    };
}

const fn of_file(
    mode: &'static str,
    bench: &'static str,
    class: ImbClass,
    axes: Preset,
    ranks: Option<u32>,
) -> Table {
    of_mode(mode, Table { axes, ranks, ..table(bench, class) })
}

/// Accesses that are started, by one process or by all, with their overlap.
macro_rules! started {
    ($name:literal, $bench:literal, $class:expr, $ranks:expr, $files:literal, $pointer:literal, $access:literal) => {
        Entry {
            name: $name,
            is_default: true,
            tables: const { &[of_file("AGGREGATE", $bench, $class, files!($files, $pointer, $access), $ranks)] },
        }
    };
}

/// Benchmarks of one process, which has a file of its own.
const ONE: Option<u32> = Some(1);
const SINGLE: ImbClass = ImbClass::Single;
const ALL: ImbClass = ImbClass::Divided;
const SINGLE_OVERLAP: ImbClass = ImbClass::SingleOverlap;
const OVERLAP: ImbClass = ImbClass::DividedOverlap;

pub(super) const IO: &[Entry] = &[
    writes!("S_Write_Indv", SINGLE, ONE, "own", "individual", "independent"),
    started!("S_IWrite_Indv", "io.iwrite", SINGLE_OVERLAP, ONE, "own", "individual", "independent"),
    writes!("S_Write_Expl", SINGLE, ONE, "own", "explicit", "independent"),
    started!("S_IWrite_Expl", "io.iwrite", SINGLE_OVERLAP, ONE, "own", "explicit", "independent"),
    writes!("P_Write_Indv", ALL, None, "one", "individual", "independent"),
    started!("P_IWrite_Indv", "io.iwrite", OVERLAP, None, "one", "individual", "independent"),
    writes!("P_Write_Shared", ALL, None, "one", "shared", "independent"),
    started!("P_IWrite_Shared", "io.iwrite", OVERLAP, None, "one", "shared", "independent"),
    writes!("P_Write_Priv", ALL, None, "own", "individual", "independent"),
    started!("P_IWrite_Priv", "io.iwrite", OVERLAP, None, "own", "individual", "independent"),
    writes!("P_Write_Expl", ALL, None, "one", "explicit", "independent"),
    started!("P_IWrite_Expl", "io.iwrite", OVERLAP, None, "one", "explicit", "independent"),
    writes!("C_Write_Indv", ALL, None, "one", "individual", "collective"),
    started!("C_IWrite_Indv", "io.iwrite", OVERLAP, None, "one", "individual", "split"),
    writes!("C_Write_Shared", ALL, None, "one", "shared", "collective"),
    started!("C_IWrite_Shared", "io.iwrite", OVERLAP, None, "one", "shared", "split"),
    writes!("C_Write_Expl", ALL, None, "one", "explicit", "collective"),
    started!("C_IWrite_Expl", "io.iwrite", OVERLAP, None, "one", "explicit", "split"),
    reads!("S_Read_Indv", SINGLE, ONE, "own", "individual", "independent"),
    started!("S_IRead_Indv", "io.iread", SINGLE_OVERLAP, ONE, "own", "individual", "independent"),
    reads!("S_Read_Expl", SINGLE, ONE, "own", "explicit", "independent"),
    started!("S_IRead_Expl", "io.iread", SINGLE_OVERLAP, ONE, "own", "explicit", "independent"),
    reads!("P_Read_Indv", ALL, None, "one", "individual", "independent"),
    started!("P_IRead_Indv", "io.iread", OVERLAP, None, "one", "individual", "independent"),
    reads!("P_Read_Shared", ALL, None, "one", "shared", "independent"),
    started!("P_IRead_Shared", "io.iread", OVERLAP, None, "one", "shared", "independent"),
    reads!("P_Read_Priv", ALL, None, "own", "individual", "independent"),
    started!("P_IRead_Priv", "io.iread", OVERLAP, None, "own", "individual", "independent"),
    reads!("P_Read_Expl", ALL, None, "one", "explicit", "independent"),
    started!("P_IRead_Expl", "io.iread", OVERLAP, None, "one", "explicit", "independent"),
    reads!("C_Read_Indv", ALL, None, "one", "individual", "collective"),
    started!("C_IRead_Indv", "io.iread", OVERLAP, None, "one", "individual", "split"),
    reads!("C_Read_Shared", ALL, None, "one", "shared", "collective"),
    started!("C_IRead_Shared", "io.iread", OVERLAP, None, "one", "shared", "split"),
    reads!("C_Read_Expl", ALL, None, "one", "explicit", "collective"),
    started!("C_IRead_Expl", "io.iread", OVERLAP, None, "one", "explicit", "split"),
    Entry {
        name: "Open_Close",
        is_default: true,
        tables: const { &[Table { axes: &[("files", "one")], ..table("io.open", ImbClass::Barrier) }] },
    },
];
