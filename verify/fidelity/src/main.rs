//! `cargo xtask fidelity`: timed loops of ombx against plain C loops that make the same calls, in time and in instructions.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "a program that reports to a person or to a CI log")]

mod alignments;
mod branch;
mod callgrind;
mod comparison;
mod document;
mod options;
mod outside;
mod paired;
mod profile;
mod ratio;
mod sockets;

use std::process::ExitCode;

use clap::Parser as _;

use ombx_toolchain::{Result, Workspace, evidence, exit_code, failed_if, installed, machine};

use callgrind::Rows;
use comparison::Comparison;
use options::Options;
use paired::Paired;
use ratio::Verdict;

fn main() -> ExitCode {
    exit_code(run(&Options::parse()))
}

fn run(options: &Options) -> Result<ExitCode> {
    let workspace = Workspace::read()?;
    if options.sockets {
        return sockets::main(options, &workspace);
    }
    if options.line_rate {
        return sockets::line_rate::main(options, &workspace);
    }
    if options.outside {
        return outside::main(options, &workspace);
    }
    if options.alignments {
        return alignments::main(options, &workspace);
    }
    if options.branch {
        return branch::main(options, &workspace);
    }
    let build = |mpi| Paired::build(mpi, &workspace, !options.no_build);
    let programs = installed(options.mpi)?.iter().map(build).collect::<Result<Vec<_>>>()?;
    if options.instructions {
        return count(options, &workspace, &programs);
    }
    let about = document::circumstances(options.seed);
    println!("\n-- {} launches on {}", options.launches, machine::now());
    let mut compared: Vec<Comparison<'_>> = programs.iter().map(Comparison::new).collect();
    comparison::run(&mut compared, options)?;
    let text = document::times(&compared);
    println!("\n{text}");
    if options.write {
        let libraries: Vec<String> = compared.iter().map(|one| one.library.clone()).collect();
        let heading = document::heading(&about, &libraries);
        let section = document::section(&heading, &compared);
        evidence::write(&workspace, "fidelity", &section, &document::full(&heading, &text))?;
    }
    if options.slowed {
        let found = |one: &Comparison<'_>| one.rows.iter().all(|row| row.verdict() == Verdict::Missed);
        return Ok(failed_if(!compared.iter().all(found)));
    }
    Ok(failed_if(compared.iter().any(|one| one.failed() > 0)))
}

/// Counts the instructions of both sides, and those of kernels that are slower on purpose, which must miss their goal.
fn count(options: &Options, workspace: &Workspace, programs: &[Paired]) -> Result<ExitCode> {
    if let Some(why) = callgrind::unavailable() {
        println!("instructions: skipped, {why}");
        return Ok(ExitCode::SUCCESS);
    }
    let (mut text, mut shorts, mut missed) = (String::new(), Vec::new(), 0);
    let rows = if options.sample { Rows::Sample } else { Rows::Named(&options.row) };
    for paired in programs {
        let counts = callgrind::count(paired, rows)?;
        missed += counts.iter().filter(|(_, count)| !count.faults().is_empty()).count();
        let slowed = callgrind::count(paired, Rows::Slowed)?;
        missed += slowed.iter().filter(|(_, count)| count.faults().is_empty()).count();
        shorts.push(format!("- {}: {}\n", paired.mpi.flavour, callgrind::short_of(&counts)));
        let [counts, slowed] = [counts, slowed].map(|counts| callgrind::table_of(&counts));
        text += &format!(
            "### {}\n\n{counts}\nSlowed on purpose, which must be missed:\n\n{slowed}\n",
            paired.mpi.flavour
        );
    }
    println!("{text}");
    if options.write {
        let libraries: Vec<String> = programs.iter().map(|one| one.mpi.name()).collect();
        let heading = document::heading(&document::circumstances(options.seed), &libraries);
        let section = format!("{heading}\n\n{}", shorts.concat());
        evidence::write(workspace, "fidelity-instructions", &section, &document::full(&heading, &text))?;
    }
    Ok(failed_if(missed > 0))
}
