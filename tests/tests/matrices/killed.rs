//! Tests of SIGKILL for ombx, a rank or the launcher. The result file must be readable up to the last complete row.

use std::{fs, thread, time::Duration};

use ombx_record::file;
use ombx_tests::{Job, kept::Kept, mpi, print_note, results};
use rustix::process::Signal;

/// Options for rows of about 10 ms.
const ROWS: &str = "p2p.latency p2p.bw --sizes 1..64K --precision 0.0001% --max-time 10ms --format";
const MOMENTS: u64 = 30;
/// Formats of standard output, which is a file here.
const FORMATS: [&str; 4] = ["csv", "osu", "jsonl", "table"];

#[test]
fn the_file_is_readable_after_any_kill() {
    let mut rows = 0;
    for moment in 0..MOMENTS {
        let kept = Kept::new();
        let format = FORMATS[moment as usize % FORMATS.len()];
        let mut job = kept.job(&format!("{ROWS} {format}")).start();
        // Moments between the first process and the end of the run, each at a different time.
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
        // The file may not exist yet.
        let Ok(text) = fs::read(&out) else { continue };
        let whole = results::rows_so_far(&out);
        let file = file::read(text.as_slice()).unwrap_or_else(|e| panic!("moment {moment}: {e}\n{done}"));
        let read: usize = file.runs.iter().map(|run| run.rows.len()).sum();
        assert_eq!(read, whole, "moment {moment}: {done}");
        Job::ombx("show --format csv").arg(&out).run().expect(0);
        if format == "jsonl" && !done.stdout.is_empty() {
            file::read(done.stdout.as_bytes())
                .unwrap_or_else(|e| panic!("moment {moment}, standard output: {e}\n{done}"));
        }
        if format == "csv" {
            let widths: Vec<usize> = done.stdout.lines().map(|line| line.matches(',').count()).collect();
            assert!(widths.windows(2).all(|w| w[0] <= w[1] || w[1] == 0), "moment {moment}: {done}");
        }
        rows += read;
    }
    print_note(&format!("{MOMENTS} moments, {rows} rows read"));
}
