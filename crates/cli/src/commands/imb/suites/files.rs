//! Benchmarks of IMB-IO.

use ombx_core::benchmark::Preset;
use ombx_results::render::ImbClass;

use super::{Counterpart, Entry, Table, none, of_mode, table};

/// Values on the axes of benchmarks of files.
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
            counterpart: Counterpart::Tables(
                const {
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
            ),
        }
    };
}

/// Reads by one process or by all.
macro_rules! reads {
    ($name:literal, $class:expr, $ranks:expr, $files:literal, $pointer:literal, $access:literal) => {
        Entry {
            name: $name,
            is_default: true,
            counterpart: Counterpart::Tables(
                const { &[of_file("AGGREGATE", "io.read", $class, files!($files, $pointer, $access), $ranks)] },
            ),
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

/// Benchmarks of one process, which has a file of its own.
const ONE: Option<u32> = Some(1);
const NONBLOCKING: &str = "nonblocking access to files and its overlap are not written yet";
const SHARED: &str = "pointers that ranks have in common are not written yet";

pub(super) const IO: &[Entry] = &[
    writes!("S_Write_Indv", ImbClass::Single, ONE, "own", "individual", "independent"),
    writes!("S_Write_Expl", ImbClass::Single, ONE, "own", "explicit", "independent"),
    writes!("P_Write_Indv", ImbClass::Divided, None, "one", "individual", "independent"),
    writes!("P_Write_Priv", ImbClass::Divided, None, "own", "individual", "independent"),
    writes!("P_Write_Expl", ImbClass::Divided, None, "one", "explicit", "independent"),
    writes!("C_Write_Indv", ImbClass::Divided, None, "one", "individual", "collective"),
    writes!("C_Write_Expl", ImbClass::Divided, None, "one", "explicit", "collective"),
    reads!("S_Read_Indv", ImbClass::Single, ONE, "own", "individual", "independent"),
    reads!("S_Read_Expl", ImbClass::Single, ONE, "own", "explicit", "independent"),
    reads!("P_Read_Indv", ImbClass::Divided, None, "one", "individual", "independent"),
    reads!("P_Read_Priv", ImbClass::Divided, None, "own", "individual", "independent"),
    reads!("P_Read_Expl", ImbClass::Divided, None, "one", "explicit", "independent"),
    reads!("C_Read_Indv", ImbClass::Divided, None, "one", "individual", "collective"),
    reads!("C_Read_Expl", ImbClass::Divided, None, "one", "explicit", "collective"),
    none("P_Write_Shared", SHARED),
    none("C_Write_Shared", SHARED),
    none("P_Read_Shared", SHARED),
    none("C_Read_Shared", SHARED),
    none("Open_Close", "the time of opening files is not written yet"),
    none("S_IWrite_Indv", NONBLOCKING),
    none("S_IWrite_Expl", NONBLOCKING),
    none("P_IWrite_Indv", NONBLOCKING),
    none("P_IWrite_Shared", NONBLOCKING),
    none("P_IWrite_Priv", NONBLOCKING),
    none("P_IWrite_Expl", NONBLOCKING),
    none("C_IWrite_Indv", NONBLOCKING),
    none("C_IWrite_Shared", NONBLOCKING),
    none("C_IWrite_Expl", NONBLOCKING),
    none("S_IRead_Indv", NONBLOCKING),
    none("S_IRead_Expl", NONBLOCKING),
    none("P_IRead_Indv", NONBLOCKING),
    none("P_IRead_Shared", NONBLOCKING),
    none("P_IRead_Priv", NONBLOCKING),
    none("P_IRead_Expl", NONBLOCKING),
    none("C_IRead_Indv", NONBLOCKING),
    none("C_IRead_Shared", NONBLOCKING),
    none("C_IRead_Expl", NONBLOCKING),
];
