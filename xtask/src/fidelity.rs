//! `cargo xtask fidelity`: ombx against plain C loops that make the same MPI calls, in time and in instructions.

mod callgrind;
mod document;
mod launch;
mod profile;
mod ratio;
mod row;

use std::{fs, process::ExitCode};

use crate::{
    failure::{Failure, Result},
    mpi::{Flavour, Mpi, Places, Which},
    workspace::Workspace,
};
use document::{Circumstances, Compared, Group, Pair};
use launch::{Programs, Told};
use ratio::Launch;
use row::Row;

/// Compare ombx with plain C loops: time of an iteration, and instructions added to it
///
/// Builds both with each MPI, runs them in pairs, bound to cores and in random order, and prints the ratio of their
/// medians with its 95 % interval. Fails when a ratio lies above its goal with certainty. Leave the machine alone while
/// it runs: a pair of all rows takes about 12 seconds for each MPI.
#[derive(clap::Args)]
#[command(after_help = "Example: cargo xtask fidelity --mpi mpich --row p2p")]
pub(crate) struct Options {
    /// The MPI to compare with [default: every one that is there]
    #[arg(long, value_enum)]
    mpi: Option<Which>,
    /// Pairs of launches; an interval needs 6
    #[arg(long, value_name = "N", default_value_t = 15, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pairs: u16,
    /// Only rows whose name contains this
    #[arg(long, value_name = "PATTERN", default_value = "", hide_default_value = true)]
    row: String,
    /// Count instructions too, where valgrind is installed
    #[arg(long)]
    callgrind: bool,
    /// Put the result into docs/FIDELITY.md
    #[arg(long, conflicts_with = "row")]
    write: bool,
    /// Take ombx as it is built
    #[arg(long)]
    no_build: bool,
    /// For the random order of launches
    #[arg(long, value_name = "SEED", default_value_t = 2012)]
    seed: u64,
}

pub(crate) fn main(options: &Options) -> Result<ExitCode> {
    let rows = row::matching(&options.row);
    if rows.is_empty() {
        let names: Vec<&str> = row::ROWS.iter().map(|row| row.name).collect();
        return Err(Failure::Missing(format!(
            "no row contains {:?}; rows: {}",
            options.row,
            names.join(", ")
        )));
    }
    let workspace = Workspace::read()?;
    let build = |mpi: &Mpi| Programs::build(mpi, &workspace, !options.no_build);
    let programs = mpis(options.mpi)?.iter().map(build).collect::<Result<Vec<_>>>()?;

    let mut about = document::machine(options.seed);
    println!("\n-- {} pairs; load average {} on {} CPUs", options.pairs, about.load, about.cpus);
    let mut compared = measure(&programs, &rows, options, &mut about)?;
    if options.callgrind {
        count(&programs, &mut compared)?;
    }

    println!("\n{}", document::times(&compared));
    if let Some(table) = document::instructions(&compared) {
        println!("Instructions of an iteration on rank 0, without the library's:\n\n{table}");
    }
    if options.write {
        let path = workspace.root.join("docs/FIDELITY.md");
        fs::write(&path, document::page(&compared, &about))
            .map_err(|source| Failure::File { path, source })?;
        println!("Written: docs/FIDELITY.md");
    }
    Ok(if compared.iter().any(Compared::missed) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The chosen MPIs, or those that are there.
fn mpis(which: Option<Which>) -> Result<Vec<Mpi>> {
    let places = Places::here();
    let advice = |why: String| Failure::Missing(format!("{why} (cargo xtask setup installs one)"));
    if let Some(which) = which {
        return which.flavours().iter().map(|&flavour| Mpi::find(flavour, &places).map_err(advice)).collect();
    }
    let found: Vec<Mpi> =
        Flavour::ALL.iter().filter_map(|&flavour| Mpi::find(flavour, &places).ok()).collect();
    if found.is_empty() { Err(advice("no MPI is installed".into())) } else { Ok(found) }
}

/// Pairs outside and rows within, so that a slow change of the machine meets every row alike.
fn measure(
    programs: &[Programs],
    rows: &[&'static Row],
    options: &Options,
    about: &mut Circumstances,
) -> Result<Vec<Compared>> {
    let mut seed = options.seed;
    let mut compared = Vec::new();
    for programs in programs {
        let start = compared.len();
        let flavour = programs.mpi.flavour;
        compared.extend(rows.iter().map(|&row| Compared { flavour, row, groups: Vec::new(), count: None }));
        let batches = rows.iter().map(|row| Ok(programs.run_default(row)?.batch));
        let mut batches = batches.collect::<Result<Vec<u64>>>()?;
        for pair in 1..=options.pairs {
            println!("   {flavour}: pair {pair} of {}", options.pairs);
            for (compared, batch) in compared[start..].iter_mut().zip(&mut batches) {
                let (group, told) = group(programs, compared.row, *batch, &mut seed)?;
                compared.groups.push(group);
                *batch = told.batch;
                if about.started.is_empty() {
                    about.started.clone_from(&told.started);
                }
                if !about.libraries.contains(&told.library) {
                    about.libraries.push(told.library);
                }
            }
        }
    }
    Ok(compared)
}

/// A launch of each: both programs with the same counts, ombx by itself, and the C loop with the batches of ombx's
/// previous launch.
fn group(programs: &Programs, row: &Row, batch: u64, seed: &mut u64) -> Result<(Group, Told)> {
    let mut order = [0, 1, 2, 3];
    ratio::shuffle(&mut order, seed);
    let (mut plain, mut fixed, mut batched, mut default) = (None, None, None, None);
    for which in order {
        match which {
            0 => plain = Some(programs.run_reference(row, row::CHUNK)?),
            1 => fixed = Some(programs.run_fixed(row)?),
            2 => batched = Some(programs.run_reference(row, batch)?),
            _ => default = Some(programs.run_default(row)?),
        }
    }
    let unequal = || Failure::Missing(format!("{}: the programs did not run the same iterations", row.name));
    let (Some(plain), Some(fixed), Some(batched), Some(default)) = (plain, fixed, batched, default) else {
        return Err(unequal());
    };
    if fixed.batch != row::CHUNK || fixed.samples.len() != plain.len() {
        return Err(unequal());
    }
    let of = |samples: &[f64]| {
        let legs: Vec<f64> = samples.iter().map(|ns| ns / row.legs as f64).collect();
        Launch::of(&legs).ok_or_else(unequal)
    };
    let pair =
        |reference: &[f64], ombx: &Told| Ok(Pair { reference: of(reference)?, ombx: of(&ombx.samples)? });
    Ok((Group { same: pair(&plain, &fixed)?, default: pair(&batched, &default)? }, default))
}

fn count(programs: &[Programs], compared: &mut [Compared]) -> Result<()> {
    if let Some(why) = callgrind::unavailable() {
        println!("\n-- instructions: skipped, {why}");
        return Ok(());
    }
    println!("\n-- instructions");
    for compared in compared {
        let Some(programs) = programs.iter().find(|programs| programs.mpi.flavour == compared.flavour) else {
            continue;
        };
        println!("   {}: {}", compared.flavour, compared.row.name);
        compared.count = Some(callgrind::count(programs, compared.row)?);
    }
    Ok(())
}
