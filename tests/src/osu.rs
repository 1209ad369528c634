//! Links of the OSU programs, and what OMB prints.

use std::path::PathBuf;

use crate::{Done, Files, Job, mpi};

/// Output of OMB 7.4 with masked figures.
const OMB: &str = include_str!("omb-7.4.txt");
/// Options of a short run at 8 bytes.
pub const QUICK: [&str; 6] = ["-m", "8:8", "-i", "100", "-x", "10"];

/// Links of all OSU programs.
pub struct Links(Files);

impl Links {
    /// Creates the links.
    pub fn install() -> Links {
        let files = Files::default();
        Job::ombx("osu --install-links").arg(files.path("bin")).run().expect(0);
        Links(files)
    }

    fn program(&self, name: &str) -> PathBuf {
        self.0.path("bin").join(name)
    }

    /// Returns a job that starts the program without a launcher.
    pub fn alone(&self, name: &str) -> Job {
        Job::new(self.program(name)).env("OMBX_MPIEXEC", mpi::mpiexec()).env("OMPI_MCA_osc", "^rdma,ucx")
    }

    /// Returns a job that starts the program as ranks of a launcher.
    pub fn launched(&self, ranks: u32, name: &str) -> Job {
        Job::on_ranks(ranks, &self.program(name)).env("OMPI_MCA_osc", "^rdma,ucx")
    }
}

/// An output of OMB.
#[derive(Debug, Clone, Copy)]
pub struct Recorded {
    /// Name of the program.
    pub program: &'static str,
    /// Its options, in short; empty for those that every program has.
    pub variant: &'static str,
    /// Its exit code.
    pub code: i32,
    /// What it prints, masked.
    pub output: &'static str,
}

impl Recorded {
    /// Returns the number of ranks.
    pub fn ranks(&self) -> u32 {
        match self.variant {
            "1rank" => 1,
            "3ranks" => 3,
            "4" => 4,
            _ => 2,
        }
    }

    /// Returns the options.
    pub fn options(&self) -> Vec<&'static str> {
        let own = match (self.variant, self.program) {
            ("", _) => "-m 1:64",
            ("4", "osu_bcast") => "-m 8:16 -f -x 2 -i 5",
            ("4", _) => "-m 8:16 -x 2 -i 5",
            ("f", _) => "-m 8:64 -f",
            ("w", _) => "-m 8:8 -w create -s lock",
            ("z", _) => "-m 8:8 -z",
            ("c", _) => "-m 8:8 -c",
            ("T", _) => "-m 8:8 -T mpi_char",
            ("m4", _) => "-m 4",
            ("m00", _) => "-m 0:0",
            ("V", _) => "-m 8:8 -V",
            _ => "-m 8:8",
        };
        let number = if self.variant == "4" { "" } else { "-x 2 -i 20" };
        own.split(' ').chain(number.split_whitespace()).collect()
    }
}

/// Returns all outputs of OMB.
pub fn recorded() -> Vec<Recorded> {
    let read = |text: &'static str| {
        let (head, output) = text.split_once('\n')?;
        let (name, code) = head.split_once(' ')?;
        let (program, variant) = name.split_once('-').unwrap_or((name, ""));
        Some(Recorded { program, variant, code: code.parse().ok()?, output })
    };
    OMB.split("@@@ ").skip(1).map(|text| read(text).expect("a recorded output")).collect()
}

/// Replaces figures with the blanks before them by their width, and the name of ombx in the title. OMB forks two children in
/// osu_latency_mp, ombx one.
pub fn masked(stdout: &str) -> String {
    let mut text = String::new();
    for line in stdout.lines() {
        let line = line.split(" (ombx ").next().unwrap_or(line);
        if line.contains("forked processes") {
            text += &format!("{} N\n", line.rsplit_once(' ').map_or(line, |(line, _)| line));
            continue;
        }
        if line.starts_with("nprocs") {
            let words: Vec<&str> = line.split(' ').collect();
            let is_time = |at: usize| words.get(at + 1).is_some_and(|next| next.starts_with("ms"));
            let words: Vec<&str> =
                words.iter().enumerate().map(|(at, word)| if is_time(at) { "N" } else { word }).collect();
            text += &format!("{}\n", words.join(" "));
            continue;
        }
        text += &if line.starts_with('#') { line.to_owned() } else { with_widths(line) };
        text.push('\n');
    }
    text
}

/// Digits of a column of `-V`, which follow two blanks. A longer number makes the column wider.
const DIGITS_OF_WINDOWS: usize = 10;

/// Replaces each number with decimals and the blanks before it by their width.
fn with_widths(line: &str) -> String {
    let (mut text, mut rest) = (String::new(), line);
    while let Some(at) = rest.find(' ') {
        let (before, after) = rest.split_at(at);
        text += before;
        let blanks = after.len() - after.trim_start_matches(' ').len();
        let word = after[blanks..].split(' ').next().unwrap_or_default();
        let is_figure = word.contains('.') && word.parse::<f64>().is_ok();
        let shown = &after[..blanks + word.len()];
        let width = if blanks == 2 { 2 + word.len().min(DIGITS_OF_WINDOWS) } else { shown.len() };
        text += &if is_figure { format!("<{width}>") } else { shown.to_owned() };
        rest = &after[shown.len()..];
    }
    text + rest
}

/// Returns what ombx prints for an output of OMB, masked, and without what OMB prints above the tables of neighbourhoods.
pub fn expected(stdout: &str) -> String {
    let is_of_graph = |line: &&str| line.starts_with("Dimensions size") || line.starts_with("Time took");
    let text: Vec<&str> = stdout.lines().filter(|line| !is_of_graph(line)).collect();
    masked(&text.join("\n"))
}

/// Panics unless a program has printed what OMB prints.
#[track_caller]
pub fn prints_what_omb_prints(recorded: &Recorded, done: &Done) {
    assert_eq!(masked(&done.stdout), recorded.output, "{recorded:?}\n{done}");
}

/// Panics unless a run with [`QUICK`] has printed what OMB prints. Programs that OMB 7.4 does not have print a title like its own and
/// a figure.
#[track_caller]
pub fn looks_like_omb(name: &str, done: &Done) {
    let is_plain = |one: &Recorded| one.program == name && one.variant.is_empty();
    let Some(plain) = recorded().into_iter().find(is_plain).filter(|_| !name.contains("neighbor")) else {
        let mut lines = done.stdout.lines().filter(|line| !line.is_empty());
        let title = lines.next().unwrap_or_default().split(" (ombx ").next().unwrap_or_default();
        assert!(title.starts_with("# OSU ") && title.ends_with(" v7.4"), "{name}\n{done}");
        let figure = lines.next_back().and_then(|line| line.split_whitespace().nth(1));
        assert!(figure.is_some_and(|figure| figure.parse::<f64>().is_ok()), "{name}\n{done}");
        return;
    };
    let is_other = |line: &&str| line.starts_with(char::is_numeric) && !line.starts_with("8<");
    // One element is the only size of an atomic operation.
    let kept = if plain.output.lines().filter(|line| line.starts_with(char::is_numeric)).count() > 1 {
        plain.output.lines().filter(|line| !is_other(line)).map(|line| format!("{line}\n")).collect()
    } else {
        plain.output.to_owned()
    };
    assert_eq!(masked(&done.stdout), kept, "{name}\n{done}");
}
