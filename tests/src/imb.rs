//! Reader of the tables of IMB.
//!
//! It accepts what the regular expressions of Ramble's application `intel-mpi-benchmarks` match: a line begins with
//! blanks, two integers, and then two, three or four numbers with a decimal point to its end; the text contains
//! "All processes entering MPI_Finalize".

use std::collections::BTreeMap;

use crate::Done;

/// Figures by benchmark and number of processes, each row with its size and repetitions.
pub type Tables = BTreeMap<(String, u32), Vec<(u64, u64, Vec<f64>)>>;

/// Reads the tables of an output as Ramble does.
pub fn tables(stdout: &str) -> Tables {
    let (mut tables, mut name, mut processes) = (Tables::new(), String::new(), 0);
    for line in stdout.lines() {
        if let Some(benchmark) = line.strip_prefix("# Benchmarking ") {
            name = benchmark.trim().to_owned();
        } else if let Some(number) = line.strip_prefix("# #processes = ") {
            // With -map, the order of the processes follows.
            processes = number.split(';').next().unwrap_or_default().trim().parse().unwrap();
        }
        let fields: Vec<&str> = line.split_whitespace().collect();
        let is_decimal = |field: &&&str| {
            let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
            field.split_once('.').is_some_and(|(whole, part)| digits(whole) && digits(part))
        };
        let [bytes, repetitions, figures @ ..] = &fields[..] else { continue };
        let (Ok(bytes), Ok(repetitions)) = (bytes.parse(), repetitions.parse()) else { continue };
        if line.starts_with(' ') && figures.iter().filter(is_decimal).count() == figures.len() {
            let figures = figures.iter().map(|figure| figure.parse().unwrap()).collect();
            tables.entry((name.clone(), processes)).or_default().push((bytes, repetitions, figures));
        }
    }
    tables
}

/// Reads the tables of an output.
///
/// # Panics
/// The output has no end.
#[track_caller]
pub fn read(done: &Done) -> Tables {
    assert!(done.stdout.contains("# All processes entering MPI_Finalize"), "{done}");
    tables(&done.stdout)
}

/// Reads tables whose last column is a message rate, which is an integer.
///
/// # Panics
/// The output has no end.
#[track_caller]
pub fn read_with_rates(done: &Done) -> Tables {
    assert!(done.stdout.contains("# All processes entering MPI_Finalize"), "{done}");
    let with_point =
        |line: &str| if line.starts_with(' ') { format!("{line}.0\n") } else { format!("{line}\n") };
    tables(&done.stdout.lines().map(with_point).collect::<String>())
}
