//! Choices of MPI-IO benchmarks, and what their entries have in common.

use std::path::Path;

use ombx_core::benchmark::payload::Slots;
use ombx_core::{
    benchmark::{Axis, Benchmark, Case, Context, Layout, Setting, Work},
    error::{Error, Result},
    measure::plan::Plan,
};
use ombx_mpi::file::{File, FileOptions, Files, Pointer};

/// Directory of the files. It has no default: its file system is what is measured.
pub static DIRECTORY: Setting = Setting {
    name: "directory",
    value: "DIR",
    about: "Directory of the file system to be measured; its files have no name while they are measured, and nothing stays behind",
    default: None,
    check: |text| match text {
        "" => Err(Error::usage("give the path of a directory")),
        _ => Ok(()),
    },
};

ombx_core::axis! {
    /// Whether ranks write and read independently of each other
    pub enum Access: "access", Always, default Independent {
        /// Each rank by itself, by calls such as MPI_File_write
        Independent = "independent",
        /// All ranks together, by calls such as MPI_File_write_all
        Collective = "collective",
    }
}

ombx_core::axis! {
    /// When MPI_File_sync passes what was written to the storage device
    pub enum FileSync: "file-sync", Always, default Each {
        /// After each block, in the time of the block
        Each = "each",
        /// After as many blocks as --window says, in the time of all of them
        End = "end",
        /// Not in the time: data may still be in the memory of the system
        Never = "never",
    }
}

const SETTINGS: &[&Setting] = &[&DIRECTORY];
/// Default sizes of blocks.
const SIZES: &str = "4K..16M:x16";

/// Completes the entry of a benchmark.
pub(crate) const fn of_files(entry: Benchmark, axes: &'static [&'static Axis]) -> Benchmark {
    entry
        .layout(Layout::Everyone { least: 1 })
        .sizes(SIZES)
        .axes(axes)
        .settings(SETTINGS)
        .made_of(|_, _| 1, check_case)
}

/// Returns an error with the reason if a combination of values does not exist.
fn check_case(case: &Case, _: &Plan) -> std::result::Result<(), String> {
    match (case.choice::<Files>(), case.choice::<Access>()) {
        (Files::Own, Access::Collective) => {
            Err("--files own has one rank in each file: choose --access independent, or --files one".into())
        }
        _ => Ok(()),
    }
}

/// Opens the file of a case. Collective.
pub(crate) fn open(cx: &Context<'_>, case: &Case) -> Result<(File, Slots)> {
    let directory = cx.settings.get(DIRECTORY.name);
    let directory = directory.ok_or_else(|| Error::unsupported("needs --directory DIR"))?;
    let slots = Slots::new(case.bytes.0, case.depth);
    let (files, pointer) = (case.choice::<Files>(), case.choice::<Pointer>());
    Ok((File::open(cx, FileOptions { directory: Path::new(directory), files, pointer, slots })?, slots))
}

/// Returns the work of an iteration: as many blocks of every rank as are in flight.
pub(crate) fn work(case: &Case) -> Work {
    let ops = u64::from(case.depth) * u64::from(case.ranks);
    Work { bytes: case.bytes.0.saturating_mul(ops), ops, legs: 1 }
}
