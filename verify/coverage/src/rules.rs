//! Simulation of every rule between launches and runs, with the code that ships: each constant beside what it must give.

mod alignments;
mod causes;
mod comparing;
mod launches;
mod percentiles;
mod runs;

use std::process::ExitCode;

use clap::Parser;
use ombx_toolchain::{Result, Workspace, failed_if};

use crate::document;

/// Simulate intervals, states, earlier runs and comparisons, and print each constant beside what it must give
///
/// Fails if a line is certainly outside of what it must give. Times and states are drawn from models; the code that judges them is that of
/// ombx. Nothing is measured.
#[derive(Parser)]
#[command(after_help = "Example: cargo xtask coverage rules --times 500")]
pub(crate) struct Options {
    /// Simulated runs for each line; comparisons and percentiles have a tenth
    #[arg(long, value_name = "N", default_value_t = 4000, value_parser = clap::value_parser!(u64).range(100..=1_000_000))]
    times: u64,
    /// Seed of the simulation
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,
    /// Write the results to docs/EVIDENCE.md, and all lines to target/evidence
    #[arg(long)]
    write: bool,
}

pub(crate) fn main(options: &Options, workspace: &Workspace) -> Result<ExitCode> {
    let Options { times, seed, write } = *options;
    let few = times.div_ceil(10);
    let mut lines = Lines::default();
    alignments::simulate(&mut lines, few, seed);
    launches::simulate(&mut lines, times, seed);
    runs::simulate(&mut lines, times, seed);
    comparing::simulate(&mut lines, few, seed);
    percentiles::simulate(&mut lines, few, seed);
    causes::simulate(&mut lines, times, few, seed);
    let Lines(lines) = lines;
    let wrong: Vec<Line> = lines.iter().filter(|line| !line.is_right()).cloned().collect();
    let sum = format!("{} of {} lines are as they must be", lines.len() - wrong.len(), lines.len());
    println!("{}\n{sum}", table(&lines));
    if write {
        let what =
            format!("{times} runs a line, and a tenth as many comparisons and percentiles, seed {seed}");
        let short = match wrong.as_slice() {
            [] => format!("{sum}.\n"),
            wrong => format!("{sum}. Wrong:\n\n{}", table(wrong)),
        };
        document::write(workspace, "coverage-rules", &what, &short, &table(&lines))?;
    }
    Ok(failed_if(!wrong.is_empty()))
}

/// One simulated figure.
#[derive(Debug, Clone)]
struct Line {
    /// The rule, with its constant.
    rule: &'static str,
    /// What is simulated.
    model: String,
    /// What was found, in percent.
    found: f64,
    /// Half of its interval of 95 %, by chance.
    chance: f64,
    /// Least and most that it must be, in percent.
    must: [f64; 2],
}

impl Line {
    /// Returns whether the figure is as it must be, within chance.
    fn is_right(&self) -> bool {
        self.must[0] - self.chance <= self.found && self.found <= self.must[1] + self.chance
    }

    /// Returns the line as text.
    fn shown(&self) -> String {
        let Line { rule, model, found, chance, must: [low, high] } = self;
        let chance = if *chance > 0.0 { format!(" ± {chance:.1}") } else { String::new() };
        let verdict = if self.is_right() { "" } else { "WRONG" };
        format!("{rule} | {model} | {found:.1}{chance} | {low} to {high} | {verdict}")
    }
}

/// Lines of the table.
#[derive(Default)]
struct Lines(Vec<Line>);

impl Lines {
    /// Adds the line of a share that must lie in a range of percentages.
    fn share(&mut self, rule: &'static str, model: &str, [hits, of]: [u64; 2], must: [f64; 2]) {
        let share = hits as f64 / of.max(1) as f64;
        // The chance at the nearer end of what must be: a share of 0 or 1 has some too.
        let at = (must[0] / 100.0).max(share.min(must[1] / 100.0)).clamp(0.5 / of.max(1) as f64, 0.995);
        let chance = 196.0 * (at * (1.0 - at) / of.max(1) as f64).sqrt();
        self.0.push(Line { rule, model: model.to_owned(), found: share * 100.0, chance, must });
    }

    /// Adds the line of a figure that is not a share.
    fn figure(&mut self, rule: &'static str, model: &str, found: f64, must: [f64; 2]) {
        self.0.push(Line { rule, model: model.to_owned(), found, chance: 0.0, must });
    }
}

fn table(lines: &[Line]) -> String {
    ombx_toolchain::table("rule | model | found % | must be % | ", lines.iter().map(Line::shown))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_simulations_already_find_rules_right() {
        let mut lines = Lines::default();
        alignments::simulate(&mut lines, 40, 5);
        launches::simulate(&mut lines, 200, 5);
        runs::simulate(&mut lines, 600, 5);
        comparing::simulate(&mut lines, 10, 5);
        causes::simulate(&mut lines, 200, 40, 5);
        let Lines(lines) = lines;
        // By chance one line in twenty is a little outside; none is far.
        let far = |line: &&Line| {
            let Line { found, chance, must, .. } = line;
            *found < must[0] - 3.0 * chance - 1.0 || *found > must[1] + 3.0 * chance + 1.0
        };
        let wrong: Vec<&Line> = lines.iter().filter(far).collect();
        assert!(wrong.is_empty(), "{wrong:?}");
        assert!(lines.iter().filter(|line| !line.is_right()).count() <= lines.len() / 5);
    }
}
