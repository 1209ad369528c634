//! `cargo xtask faults`: what goes wrong on purpose, where, and whether ombx ends as it must.

mod case;
mod cases;
mod interpose;
mod judge;
mod left;
mod marked;
mod run;
mod stage;
mod table;

use std::{
    fs,
    process::ExitCode,
    sync::{Arc, atomic::AtomicBool},
};

use ombx_core::system::clock::Since;
use signal_hook::{
    consts::{SIGHUP, SIGINT},
    flag::register_conditional_shutdown,
};

use crate::{
    failure::{Failure, Result},
    mpi::{Flavour, Mpi, Places, Which},
    workspace::Workspace,
};
use case::Case;
use judge::Verdict;
use stage::Stage;
use table::Line;

/// Put faults into jobs of ombx and judge how they end
///
/// Each case is a fault at one place of one benchmark. A job has to end before its deadline, with the exit code of its
/// fault and one sentence that names it, keep the rows that it measured, and leave nothing behind: no process, no file
/// of shared memory, no lock. One line for each case; exit 1 when one is wrong.
#[derive(clap::Args)]
#[command(after_help = "Example: cargo xtask faults --mpi mpich --only 'killed'")]
pub(crate) struct Options {
    /// The MPI to put faults into [default: every one that is there]
    #[arg(long, value_enum)]
    mpi: Option<Which>,
    /// Only cases whose line (fault, place, benchmark) contains all these words
    #[arg(long, value_name = "WORDS", default_value = "", hide_default_value = true)]
    only: String,
    /// Only the cases that every change has to pass
    #[arg(long)]
    gate: bool,
    /// Say which cases there are, and run none
    #[arg(long)]
    list: bool,
    /// Show what jobs of wrong cases printed
    #[arg(long, short)]
    verbose: bool,
    /// Put the table into docs/FAULTS.md
    #[arg(long, conflicts_with_all = ["only", "gate", "list"])]
    write: bool,
    /// Take ombx as it is built
    #[arg(long)]
    no_build: bool,
}

pub(crate) fn main(options: &Options) -> Result<ExitCode> {
    let workspace = Workspace::read()?;
    take_signals();
    let since = Since::now();
    let mut lines = Vec::new();
    let mut versions = Vec::new();
    for mpi in mpis(options.mpi)? {
        let stage = Stage::set(&mpi, &workspace, !options.no_build)?;
        versions.push(format!("{} {}", mpi.flavour, mpi.version));
        let chosen: Vec<Case> = cases::all(&stage)
            .into_iter()
            .filter(|case| case.matches(&options.only) && (case.gate || !options.gate))
            .collect();
        let count = chosen.len();
        for (number, case) in (1..).zip(chosen) {
            if options.list {
                println!("{}: {case}", mpi.flavour);
                continue;
            }
            let verdict = case.verdict(&stage, options.verbose);
            if matches!(verdict, Verdict::Wrong(_)) || options.verbose {
                println!("   {} {number} of {count}: {case}: {verdict}", mpi.flavour);
            }
            lines.push(Line::of(&case, mpi.flavour, verdict));
        }
    }
    if options.list {
        return Ok(ExitCode::SUCCESS);
    }
    if lines.is_empty() {
        return Err(Failure::Usage(format!(
            "no case contains {:?}; --list says which there are",
            options.only
        )));
    }
    let sums = table::sums(&lines, since.elapsed());
    println!("{}\n{sums}", table::shown(&lines));
    if options.write {
        let path = workspace.root.join("docs/FAULTS.md");
        fs::write(&path, table::page(&lines, &versions, &sums)).map_err(Failure::file(path))?;
        println!("Written: docs/FAULTS.md");
    }
    Ok(if lines.iter().any(Line::is_wrong) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// What a script starts in the background ignores SIGINT, and so does all that it starts; what a program handles is
/// default in the programs that it starts.
fn take_signals() {
    let always = Arc::new(AtomicBool::new(true));
    for signal in [SIGINT, SIGHUP] {
        let _ = register_conditional_shutdown(signal, 128 + signal, Arc::clone(&always));
    }
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
