//! Links of the OSU programs, and the format of OMB.

use std::path::PathBuf;

use crate::{Done, Files, Job, mpi};

/// Header lines of each OMB 7.4 program.
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
        Job::of(self.program(name)).env("OMBX_MPIEXEC", mpi::mpiexec()).env("OMPI_MCA_osc", "^rdma,ucx")
    }

    /// Returns a job that starts the program as ranks of a launcher.
    pub fn launched(&self, ranks: u32, name: &str) -> Job {
        Job::on_ranks(ranks, &self.program(name)).env("OMPI_MCA_osc", "^rdma,ucx")
    }
}

/// Returns the figure for 8 bytes, as the pattern `^8\s+(\S+)` finds it; for 1 byte of the program with one element of MPI_CHAR.
/// A barrier has one figure and no size, and the programs that start MPI print a sentence.
fn figure<'a>(name: &str, stdout: &'a str) -> Option<&'a str> {
    let mut rows = stdout.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    match name {
        "osu_init" => return rows.next()?.strip_prefix("nprocs: 2, min: ")?.split(' ').next(),
        "osu_hello" => return rows.next()?.strip_prefix("This is a test with ")?.strip_suffix(" processes"),
        _ => {}
    }
    if name.contains("barrier") {
        return rows.next_back().and_then(|line| line.split_whitespace().next());
    }
    let size = if name == "osu_fop_latency" { '1' } else { '8' };
    let mut rest = rows.filter_map(|line| line.strip_prefix(size));
    rest.find(|rest| rest.starts_with(char::is_whitespace)).and_then(|rest| rest.split_whitespace().next())
}

/// Returns the header lines, without the ombx version in the first.
fn headers(stdout: &str) -> Vec<String> {
    let lines =
        stdout.lines().filter(|line| line.starts_with("# ") && !line.starts_with("# Number of forked"));
    let lines = lines.filter(|line| !line.contains(" FAILED: "));
    lines.map(|line| line.split(" (ombx ").next().unwrap_or(line).trim_end().to_owned()).collect()
}

/// Returns the header lines of OMB 7.4, if it has the program.
fn expected(name: &str) -> Option<Vec<String>> {
    let program = OMB.split("== ").find(|program| program.lines().next() == Some(name))?;
    Some(program.lines().skip(1).map(str::to_owned).collect())
}

/// Panics unless the output has the header of OMB and a figure.
#[track_caller]
pub fn looks_like_omb(name: &str, done: &Done) {
    let found = figure(name, &done.stdout);
    assert!(found.is_some_and(|f| f.parse::<f64>().is_ok()), "{name}: {found:?}\n{done}");
    let headers = headers(&done.stdout);
    match expected(name) {
        Some(expected) => assert_eq!(headers, expected, "{name}\n{done}"),
        None => assert!(headers[0].starts_with("# OSU ") && headers[0].ends_with(" v7.4"), "{name}\n{done}"),
    }
}
