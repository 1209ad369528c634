//! `cargo xtask benches`: cost of the work of ombx itself, measured by criterion, or in instructions.
#![expect(clippy::print_stdout, reason = "a program that reports to a person or to a CI log")]

mod instructions;

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Parser as _;
use ombx_host::environment;
use ombx_toolchain::{
    Failure, Result, Step, Workspace, cargo, emptied, evidence, exit_code, machine, output, release,
};
use serde_json::Value;

/// Options of criterion.
const EFFORT: &str = "--warm-up-time 0.3 --measurement-time 1 --sample-size 30";
/// Benches of docs/EVIDENCE.md, by the beginnings of their names: those inside a timed region, statistics and files of a large run.
const SHORT: &str = "stamp timed_loop/ summary/independent/10000 summary/dependent read write estimate judge";

/// Measure the cost of the work of ombx itself: clock, statistics, registry, files, schedules, frames
#[derive(clap::Parser)]
#[command(bin_name = "cargo xtask benches", after_help = "Example: cargo xtask benches summary")]
struct Options {
    /// Run only benches whose name contains this
    filter: Option<String>,
    /// Write the results to docs/EVIDENCE.md, and all figures to target/evidence
    #[arg(long, conflicts_with = "filter")]
    write: bool,
    /// Count instructions of reading, writing, estimates and verdicts instead: none may need more than 1.2 times its recorded count
    #[arg(long, conflicts_with_all = ["filter", "write"])]
    instructions: bool,
    /// Record the counts
    #[arg(long, requires = "instructions")]
    record: bool,
    /// Number of the work, and how often this process does it
    #[arg(long, hide = true, value_name = "NUMBER,REPEATS", value_delimiter = ',')]
    work: Vec<usize>,
}

fn main() -> ExitCode {
    exit_code(run(&Options::parse()))
}

fn run(options: &Options) -> Result<ExitCode> {
    if let [number, repeats] = options.work[..] {
        instructions::repeat([number, repeats]);
        return Ok(ExitCode::SUCCESS);
    }
    let workspace = Workspace::read()?;
    if options.instructions && cfg!(debug_assertions) {
        return release::become_release(env!("CARGO_PKG_NAME"), &workspace);
    }
    if options.instructions {
        return instructions::check(&workspace, options.record);
    }
    let directory = workspace.target.join("criterion");
    if options.write {
        // Removes results of benches that no longer exist.
        emptied(&directory)?;
    }
    let bench = || {
        let mut bench = cargo();
        bench.args(["bench", "-p", "ombx-benches", "--benches", "--"]).args(&options.filter);
        bench.current_dir(&workspace.root).env("CARGO_TARGET_DIR", &workspace.target);
        bench
    };
    if let Some(filter) = &options.filter
        && !output(bench().arg("--list"))?.lines().any(|line| line.ends_with(": benchmark"))
    {
        return Err(Failure::Usage(format!("no bench has {filter:?} in its name")));
    }
    let mut bench = bench();
    bench.args(EFFORT.split(' '));
    if Step::run("benches", &mut bench).failed() {
        return Ok(ExitCode::FAILURE);
    }
    if options.write {
        let figures = read(&directory)?;
        let heading = format!("{} on {}; {}.", environment::timestamp(), machine::now(), machine::compiler());
        let all: Vec<&Figure> = figures.iter().collect();
        let is_short = |figure: &&Figure| SHORT.split(' ').any(|name| figure.name.starts_with(name));
        let short: Vec<&Figure> = figures.iter().filter(is_short).collect();
        let [section, tables] = [short, all].map(|figures| format!("{heading}\n\n{}", table(&figures)));
        evidence::write(&workspace, "benches", &section, &tables)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Median and interval of a bench, in nanoseconds.
#[derive(Debug, PartialEq)]
struct Figure {
    name: String,
    ns: [f64; 3],
}

/// Reads the results in the directory of criterion.
fn read(directory: &Path) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    let mut directories = vec![directory.to_path_buf()];
    while let Some(directory) = directories.pop() {
        let entries = fs::read_dir(&directory).map_err(Failure::file(&*directory))?;
        directories.extend(entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()));
        if directory.ends_with("new") {
            let json = |name: &str| -> Result<Value> {
                let path: PathBuf = directory.join(name);
                let text = fs::read_to_string(&path).map_err(Failure::file(path))?;
                serde_json::from_str(&text).map_err(|source| Failure::Output { program: "criterion", source })
            };
            figures.extend(figure(&json("benchmark.json")?, &json("estimates.json")?));
        }
    }
    figures.sort_by(|a, b| natural(&a.name).cmp(&natural(&b.name)));
    Ok(figures)
}

fn figure(benchmark: &Value, estimates: &Value) -> Option<Figure> {
    let median = &estimates["median"];
    let interval = &median["confidence_interval"];
    let ns = [&median["point_estimate"], &interval["lower_bound"], &interval["upper_bound"]];
    let [Some(middle), Some(low), Some(high)] = ns.map(Value::as_f64) else { return None };
    Some(Figure { name: benchmark["full_id"].as_str()?.to_owned(), ns: [middle, low, high] })
}

/// Returns a sorting key that orders numbers in names by value.
fn natural(name: &str) -> Vec<(u64, &str)> {
    name.split(['/', ' ']).map(|word| (word.parse().unwrap_or(0), word)).collect()
}

fn table(figures: &[&Figure]) -> String {
    let line = |Figure { name, ns }: &&Figure| {
        let [middle, low, high] = ns.map(time);
        format!("`{name}` | {middle} | {low} to {high}")
    };
    ombx_toolchain::table("bench | median | 95 % interval", figures.iter().map(line))
}

fn time(ns: f64) -> String {
    match ns {
        1e6.. => format!("{:.2} ms", ns / 1e6),
        1e3.. => format!("{:.2} us", ns / 1e3),
        _ => format!("{ns:.2} ns"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn figures_are_read_in_the_order_of_their_numbers_and_shown() {
        let estimates = |ns: f64| json!({"median": {"point_estimate": ns, "confidence_interval": {"lower_bound": ns - 1.0, "upper_bound": ns + 1.0}}});
        let figure = |name: &str, ns| figure(&json!({"full_id": name}), &estimates(ns)).unwrap();
        let mut all = [figure("summary/1000", 2e6), figure("summary/20", 1500.0), figure("stamp", 9.5)];
        all.sort_by(|a, b| natural(&a.name).cmp(&natural(&b.name)));
        let text = table(&all.each_ref());
        let places = [
            "`stamp`",
            "| 9.50 ns | 8.50 ns to 10.50 ns",
            "`summary/20`",
            "| 1.50 us",
            "`summary/1000`",
            "| 2.00 ms",
        ]
        .map(|part| text.find(part).unwrap_or_else(|| panic!("{part} in {text}")));
        assert!(places.is_sorted());
        assert!(super::figure(&json!({}), &json!({})).is_none());
    }
}
