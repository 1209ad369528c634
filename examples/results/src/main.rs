//! `acme-results BEFORE AFTER`: the rows of the first result file, and how the cases of the second compare with them.

use std::process::ExitCode;

use ombx_compare::{Comparison, Settings, SideResults};
use ombx_record::file::{self, ResultFile};

fn main() -> ExitCode {
    let paths: Vec<_> = std::env::args_os().skip(1).collect();
    let [before, after] = paths.as_slice() else {
        eprintln!("usage: acme-results BEFORE AFTER");
        return ExitCode::from(2);
    };
    let files = file::open(before).and_then(|before| Ok((before, file::open(after)?)));
    match files {
        Ok((before, after)) => {
            print_rows(&before);
            print_comparison(&before, &after);
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("acme-results: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Prints the median of each row, and its interval in nanoseconds.
fn print_rows(file: &ResultFile) {
    for row in file.runs.iter().flat_map(|run| &run.rows) {
        let Some(summary) = &row.summary else {
            println!("{}: not measured", row.key);
            continue;
        };
        let interval =
            summary.ci95.map_or("no interval".to_owned(), |[low, high]| format!("{low:.1} to {high:.1}"));
        println!("{}: {:.1} ns ({interval})", row.key, summary.median);
    }
}

/// Prints the difference of each case, its interval and the verdict, as `ombx compare` has them.
fn print_comparison(before: &ResultFile, after: &ResultFile) {
    let mut sides = ["before", "after"].map(SideResults::named);
    for (side, file) in sides.iter_mut().zip([before, after]) {
        file.runs.iter().for_each(|run| side.run(run));
    }
    let comparison = Comparison::new(&sides[0], &sides[1], Settings::default());
    for case in &comparison.cases {
        let interval =
            case.change.ci90.map(|[low, high]| format!(" ({:+.1} to {:+.1})", low * 100.0, high * 100.0));
        let (change, interval) = (case.change.estimate * 100.0, interval.unwrap_or_default());
        println!("{}: {change:+.1} %{interval} {}", case.id.key, case.verdict.name());
    }
    println!("{}", ombx_show::compare::sentence(&comparison));
}
