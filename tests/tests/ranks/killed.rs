//! SIGKILL at any moment: of ombx, a rank or the launcher. What had been written is read, up to the last whole row.

use std::{fs, thread, time::Duration};

use ombx_results::file;
use ombx_tests::{Job, mpi, results, tell};
use rustix::process::Signal;

use crate::Kept;

/// Rows of about ten milliseconds.
const ROWS: &str = "p2p.latency p2p.bw --sizes 1..64K --precision 0.0001% --max-time 10ms --format";
const MOMENTS: u64 = 30;
/// Formats of the screen, which is a file here.
const FORMATS: [&str; 4] = ["csv", "osu", "jsonl", "table"];

#[test]
fn whatever_is_killed_whenever_the_file_is_read() {
    let mut rows = 0;
    for moment in 0..MOMENTS {
        let kept = Kept::new();
        let format = FORMATS[moment as usize % FORMATS.len()];
        let mut job = kept.job(&format!("{ROWS} {format}")).start();
        // From the first process to the end of such a run, at moments that never are the same.
        let out = kept.out();
        if moment >= 3 {
            job.until("a row is there", |_| results::rows_so_far(&out) >= 1);
        }
        thread::sleep(Duration::from_micros((moment * 7_919) % 250_000));
        let victims = job.processes();
        match moment % 3 {
            0 => job.signal(Signal::KILL),
            1 => victims
                .iter()
                .find(|p| p.is_rank_of(mpi::ombx()))
                .into_iter()
                .for_each(|p| p.signal(Signal::KILL)),
            _ => {
                let launcher =
                    victims.iter().find(|p| p.is_called(&["mpiexec", "mpirun", "orterun", "prterun"]));
                launcher.into_iter().for_each(|p| p.signal(Signal::KILL));
            }
        }
        let done = job.wait();
        done.leaves_nothing();
        assert!(done.signal == Some(9) || [Some(0), Some(6)].contains(&done.code), "moment {moment}: {done}");
        // It may have been too early for a file.
        let Ok(text) = fs::read(&out) else { continue };
        let whole = results::rows_so_far(&out);
        let file = file::read(text.as_slice()).unwrap_or_else(|e| panic!("moment {moment}: {e}\n{done}"));
        let read: usize = file.runs.iter().map(|run| run.rows.len()).sum();
        assert_eq!(read, whole, "moment {moment}: {done}");
        Job::ombx("show --format csv").arg(&out).run().expect(0);
        if format == "jsonl" && !done.stdout.is_empty() {
            file::read(done.stdout.as_bytes())
                .unwrap_or_else(|e| panic!("moment {moment}, the screen: {e}\n{done}"));
        }
        if format == "csv" {
            let widths: Vec<usize> = done.stdout.lines().map(|line| line.matches(',').count()).collect();
            assert!(widths.windows(2).all(|w| w[0] <= w[1] || w[1] == 0), "moment {moment}: {done}");
        }
        rows += read;
    }
    tell(&format!("{MOMENTS} moments, {rows} rows read"));
}
