//! Earlier messages: figures of ombx after 0 to 28 of them, beside a C program that measures every position of the queue.

use std::{path::PathBuf, process::ExitCode};

use ombx_record::stats::median;

use ombx_toolchain::{
    Failure, Flavour, Mpi, Result, Workspace, compile, evidence, failed_if, installed, output, release,
    shown, table,
};

use crate::{document, options::Options, paired::launcher};

const BEFORE: &str = include_str!("alignments/before.c");
const POSITIONS: &str = include_str!("alignments/positions.c");
/// Numbers of earlier messages.
const EARLIER: [u32; 8] = [0, 4, 8, 12, 16, 20, 24, 28];
/// Bytes of a window of 64 messages of 8 bytes.
const BYTES_OF_WINDOW: f64 = 512.0;
/// Largest quotient of two figures, and largest distance of their mean from that of the C program.
const APART: f64 = 1.05;
const FROM_MEAN: f64 = 0.03;

/// What prints a bandwidth in MB/s.
const COMMANDS: [(&str, &[&str]); 3] = [
    ("osu osu_bw", &["osu", "osu_bw", "-m", "8:8"]),
    ("run --quick", &["run", "p2p.bw", "--sizes", "8", "--quick", "--format", "csv"]),
    ("run", &["run", "p2p.bw", "--sizes", "8", "--launches", "9", "--format", "csv"]),
];

/// If the times of the C program at different positions differ by more than the first factor, it must show that the earlier messages matter: one
/// position after different numbers of them must differ by more than the second.
const MATTERS: [f64; 2] = [1.2, 1.1];

/// Compares the commands on each MPI. Fails if a figure depends on the number of earlier messages, or differs from the C program.
pub(crate) fn main(options: &Options, workspace: &Workspace) -> Result<ExitCode> {
    let about = document::circumstances(options.seed);
    let (mut failed, mut versions, mut section) = (false, Vec::new(), String::new());
    for mpi in installed(options.mpi)? {
        let ombx = release::ombx(&mpi, workspace, !options.no_build)?;
        let directory = mpi.target(&workspace.target).join("alignments");
        let options_of_library = ["-O2", "-shared", "-fPIC"];
        let library = compile(&mpi.mpicc, &options_of_library, &directory, "before.c", BEFORE)?;
        let positions = compile(&mpi.mpicc, &["-O2"], &directory, "positions.c", POSITIONS)?;
        println!("-- {mpi}");
        let trial = Trial { mpi, ombx, library, positions };
        let found = trial.measured(options.launches as usize)?;
        println!("{}", found.text);
        failed |= !found.is_right;
        versions.push(trial.mpi.name());
        section += &format!("\n{}:\n\n{}\n", trial.mpi.name(), found.text);
    }
    if options.write {
        let heading = document::heading(&about, &versions);
        let text = section.trim();
        let section = format!("{heading}\n\n{text}\n");
        evidence::write(workspace, "fidelity-alignments", &section, &document::full(&heading, text))?;
    }
    Ok(failed_if(failed))
}

/// The programs of one MPI.
struct Trial {
    mpi: Mpi,
    ombx: PathBuf,
    library: PathBuf,
    positions: PathBuf,
}

struct Found {
    text: String,
    is_right: bool,
}

impl Trial {
    /// Measures all commands after each number of messages, in turns.
    fn measured(&self, turns: usize) -> Result<Found> {
        let mut figures = vec![[const { Vec::new() }; COMMANDS.len()]; EARLIER.len()];
        let (mut by_c, mut controls) = (Vec::new(), vec![Vec::new(); EARLIER.len()]);
        for _ in 0..turns {
            by_c.push(self.by_c(None)?);
            for (earlier, control) in EARLIER.iter().zip(&mut controls) {
                control.push(BYTES_OF_WINDOW * 1e3 / self.by_c(Some(*earlier))?[0]);
            }
            for (earlier, row) in EARLIER.iter().zip(&mut figures) {
                for ((_, words), figures) in COMMANDS.iter().zip(row) {
                    figures.push(self.bandwidth(words, *earlier)?);
                }
            }
        }
        let means: Vec<f64> = by_c.iter().map(|[mean, ..]| BYTES_OF_WINDOW * 1e3 / mean).collect();
        let mean = middle(&means);
        // The last column is the C program at one position.
        let row = |(row, control): (&[Vec<f64>; COMMANDS.len()], &Vec<f64>)| {
            row.iter().chain([control]).map(|figures| middle(figures)).collect::<Vec<f64>>()
        };
        let rows: Vec<Vec<f64>> = figures.iter().zip(&controls).map(row).collect();
        let line = |(earlier, row): (&u32, &Vec<f64>)| {
            let cells: Vec<String> = row.iter().map(|figure| format!("{figure:.1}")).collect();
            format!("{earlier} | {}", cells.join(" | "))
        };
        let mut lines: Vec<String> = EARLIER.iter().zip(&rows).map(line).collect();
        let column = |at: usize| rows.iter().map(move |row| row[at]);
        let apart = |at: usize| column(at).fold(0.0, f64::max) / column(at).fold(f64::INFINITY, f64::min);
        let from_mean = |at: usize| column(at).sum::<f64>() / EARLIER.len() as f64 / mean;
        let shown = |of: &dyn Fn(usize) -> f64| {
            (0..=COMMANDS.len()).map(|at| format!("{:.3}", of(at))).collect::<Vec<_>>().join(" | ")
        };
        lines.push(format!("largest over smallest | {}", shown(&apart)));
        lines.push(format!("mean over that of C | {}", shown(&from_mean)));
        let names: Vec<&str> = COMMANDS.iter().map(|(name, _)| *name).collect();
        let head = format!("earlier messages | {} | C at one position", names.join(" | "));
        let [least, largest] = [1, 2].map(|at| middle(&by_c.iter().map(|one| one[at]).collect::<Vec<_>>()));
        let text = format!(
            "{}\nC, each position: {mean:.1} MB/s as the mean of windows of {least:.0} to {largest:.0} ns.\n",
            table(&head, lines)
        );
        let shows_it = largest / least <= MATTERS[0] || apart(COMMANDS.len()) > MATTERS[1];
        let is_right = shows_it
            && (0..COMMANDS.len()).all(|at| apart(at) <= APART && (from_mean(at) - 1.0).abs() <= FROM_MEAN);
        Ok(Found { text, is_right })
    }

    /// Returns mean, least and largest time of a window over positions, in nanoseconds: all positions, or the one after earlier messages.
    fn by_c(&self, earlier: Option<u32>) -> Result<[f64; 3]> {
        let mut command = launcher(&self.mpi);
        command.args(["-n", "2"]);
        if let Some(earlier) = earlier {
            command.args(["env".into(), format!("LD_PRELOAD={}", self.library.display())]);
            command.arg(format!("EARLIER={earlier}")).arg(&self.positions).arg("one");
        } else {
            command.arg(&self.positions);
        }
        let text = output(&mut command)?;
        let numbers: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        numbers.try_into().map_err(|_| Failure::Command { command: shown(&command), detail: text })
    }

    /// Returns the bandwidth that a command prints after some earlier messages.
    fn bandwidth(&self, words: &[&str], earlier: u32) -> Result<f64> {
        let mut command = std::process::Command::new(&self.ombx);
        command.args(words).env("EARLIER", earlier.to_string()).env("LD_PRELOAD", &self.library);
        self.mpi.launch_with(&mut command);
        if self.mpi.flavour == Flavour::OpenMpi {
            command.env("OMPI_MCA_plm_rsh_agent", "sh");
        }
        let text = output(&mut command)?;
        read(&text).ok_or_else(|| Failure::Command { command: shown(&command), detail: text })
    }
}

/// Reads the bandwidth of the row of 8 bytes: from CSV, else from the output of the OSU programs.
fn read(text: &str) -> Option<f64> {
    let mut lines = text.lines();
    let head: Vec<&str> = lines.next()?.split(',').collect();
    let Some(at) = head.iter().position(|name| *name == "mb_per_s") else {
        let row = text.lines().find_map(|line| line.strip_prefix("8 "))?;
        return row.trim().parse().ok();
    };
    // A key with a comma is in quotation marks; no column before the figure has others.
    let row = lines.next()?;
    let mut is_quoted = false;
    let cells = row.split(|c| {
        is_quoted ^= c == '"';
        c == ',' && !is_quoted
    });
    cells.into_iter().nth(at)?.parse().ok()
}

fn middle(values: &[f64]) -> f64 {
    median(values).unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bandwidths_are_read_from_both_outputs() {
        assert_eq!(
            read(
                "# OSU MPI Bandwidth Test v7.4\n# Size      Bandwidth (MB/s)\n8                     152.93\n"
            ),
            Some(152.93)
        );
        assert_eq!(read("run,key,mb_per_s,levels\na,\"p2p.bw/bytes=8,depth=64\",171.5,\n"), Some(171.5));
        assert_eq!(read("run,key,mb_per_s\na,b,\n"), None);
    }
}
