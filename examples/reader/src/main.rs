//! `acme-reader FILE..`: the median of each row of result files, its interval, and its marks.

use std::process::ExitCode;

use ombx_record::{
    file::{self, ReadError},
    result::Measurement,
};

fn main() -> ExitCode {
    let files: Vec<_> = std::env::args_os().skip(1).collect();
    if files.is_empty() {
        eprintln!("usage: acme-reader FILE..");
        return ExitCode::from(2);
    }
    for path in files {
        if let Err(error) = print(&path) {
            eprintln!("acme-reader: {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn print(path: &std::ffi::OsStr) -> Result<(), ReadError> {
    for row in file::open(path)?.runs.iter().flat_map(|run| run.each_row()) {
        println!("{}", line(&row));
    }
    Ok(())
}

/// Returns a row in words: `p2p.latency/bytes=8: 357.7 ns (355.1 to 360.2), crowded`.
fn line(row: &Measurement) -> String {
    let Some(summary) = &row.summary else { return format!("{}: not measured", row.key) };
    let interval =
        summary.ci95.map_or("no interval".to_owned(), |[low, high]| format!("{low:.1} to {high:.1}"));
    let marks: Vec<String> = row.trust.iter().map(|mark| format!(", {}", mark.code.name())).collect();
    format!("{}: {:.1} ns ({interval}){}", row.key, summary.median, marks.concat())
}
