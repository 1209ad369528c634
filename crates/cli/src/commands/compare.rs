//! `ombx compare`: compares two sets of result files case by case, and fails as a gate in CI with `--fail-on`.

mod files;
pub(crate) mod junit;

use std::{
    io::{self, Write},
    path::PathBuf,
};

use clap::Args;
use ombx_core::error::{Error, Result};
use ombx_results::{
    compare::{Comparison, Side, SideResults},
    render::compare as render,
};

use crate::{
    arguments::output::Color,
    output::{renderers, stdout::is_closed},
};

/// Exit code of a regression beyond the threshold.
const REGRESSION: u8 = 3;

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ombx compare before.jsonl after.jsonl\n  ombx compare --base a1.jsonl a2.jsonl --new b1.jsonl b2.jsonl --fail-on 5%\n  ombx compare 'nightly/*.jsonl' today/ --junit report.xml"
)]
pub(crate) struct CompareArgs {
    /// The two sides; each is a result file, a list a.jsonl,b.jsonl, a glob or a directory, and each run in it is a launch
    #[arg(value_name = "BASE NEW", num_args = 2, required_unless_present = "base")]
    pub(crate) sides: Vec<String>,
    /// Files of the base side, each with one or more launches
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "new", conflicts_with = "sides")]
    pub(crate) base: Vec<String>,
    /// Files of the new side
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "base", conflicts_with = "sides")]
    pub(crate) new: Vec<String>,
    /// Use of colours
    #[arg(long, value_enum, default_value_t = Color::Auto)]
    pub(crate) color: Color,
    #[command(flatten)]
    pub(crate) gate: GateArgs,
}

/// What is done with a comparison.
#[derive(Debug, Args)]
pub(crate) struct GateArgs {
    /// Print one JSON object
    #[arg(long, help_heading = "Comparison")]
    pub(crate) json: bool,
    /// Exit with 3 if a case is worse by more than this, or fails on the new side only, for example: 5%
    #[arg(long, value_name = "PERCENT", allow_hyphen_values = true, value_parser = threshold, help_heading = "Comparison")]
    pub(crate) fail_on: Option<f64>,
    /// JUnit report to write; a case that is worse (by more than --fail-on) is a failure
    #[arg(long, value_name = "FILE", help_heading = "Comparison")]
    pub(crate) junit: Option<PathBuf>,
}

fn threshold(text: &str) -> std::result::Result<f64, String> {
    match ombx_core::unit::percentage(text) {
        Some(percent) if (0.0..=10_000.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err("not a percentage of at least 0, such as 5%".into()),
    }
}

pub(crate) fn compare(args: &CompareArgs) -> Result<u8> {
    let [base, new] = match args.sides.as_slice() {
        [base, new] => [std::slice::from_ref(base), std::slice::from_ref(new)],
        _ => [args.base.as_slice(), args.new.as_slice()],
    };
    let (base, new) = (files::side(base)?, files::side(new)?);
    conclude(&base, &new, &args.gate, args.color)
}

/// Compares two sides, prints the comparison, writes the JUnit report, and returns the exit code.
pub(crate) fn conclude(base: &SideResults, new: &SideResults, gate: &GateArgs, color: Color) -> Result<u8> {
    let comparison = Comparison::of(base, new);
    if comparison.cases.is_empty() && comparison.broken.is_empty() {
        return Err(no_common_case(&comparison));
    }
    if let Some(path) = &gate.junit {
        let report = junit::report(&comparison, gate.fail_on.unwrap_or(0.0));
        std::fs::write(path, report)
            .map_err(|e| Error::storage(format!("cannot write the report to {}: {e}", path.display())))?;
    }
    is_closed(print(&comparison, gate.json, color))?;
    let Some(threshold) = gate.fail_on else { return Ok(0) };
    let (worse, broken) = (comparison.regressions(threshold).count(), comparison.broken.len());
    if worse + broken == 0 {
        return Ok(0);
    }
    let counts = [
        (worse > 0).then(|| format!("{worse} worse by more than {}%", threshold * 100.0)),
        (broken > 0).then(|| format!("{broken} failed on the new side")),
    ];
    let counts = counts.into_iter().flatten().collect::<Vec<_>>().join(", ");
    stderr_line!("ombx: of {} cases {counts}", comparison.cases.len() + broken);
    Ok(REGRESSION)
}

fn no_common_case(comparison: &Comparison) -> Error {
    let first = |side: &str, only| {
        let mut keys = comparison.unmatched.iter().filter(|case| case.only == only);
        keys.next().map_or(format!("{side} has no rows"), |case| {
            format!("{side} has {} and {} others", case.key, keys.count())
        })
    };
    Error::usage(format!(
        "the two sides have no case in common: {}; {}",
        first("base", Side::Base),
        first("new", Side::New)
    ))
}

fn print(comparison: &Comparison, json: bool, color: Color) -> io::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    if json {
        writeln!(out, "{}", render::json(comparison))?;
    } else {
        render::table(&mut out, comparison, renderers::paint(color))?;
    }
    out.flush()
}
