//! Tests of `ombx osu -G`: figures in the terminal and in files. `matrices` has every width and format.

use std::fs;

use ombx_tests::{Files, Job};

#[test]
fn rank_0_of_a_launcher_draws() {
    let files = Files::default();
    let job = Job::mpiexec(2, "osu osu_latency -m 8:16 -i 20 -x 2 -G tty,png,pdf").env("COLUMNS", "80");
    let done = job.directory(files.root()).run().expect(0);
    let charts: Vec<&str> = done.stdout.split("\nosu_").skip(1).collect();
    assert_eq!(charts.len(), 2, "{done}");
    for (chart, title) in charts.iter().zip(["latency, 8 bytes\n", "latency, 16 bytes\n"]) {
        assert!(
            chart.starts_with(title) && chart.contains("  20 samples in the order measured, us"),
            "{done}"
        );
        assert!(chart.lines().all(|line| line.chars().count() <= 80), "{done}");
    }
    assert!(fs::read(files.path("osu_latency.png")).unwrap().starts_with(b"\x89PNG"));
    assert!(fs::read(files.path("osu_latency.pdf")).unwrap().starts_with(b"%PDF"));
    assert_eq!(fs::read_dir(files.root()).unwrap().count(), 2, "{done}");
}

#[test]
fn a_file_that_cannot_be_written_is_an_error_before_anything_starts() {
    let files = Files::default();
    fs::create_dir(files.path("osu_latency.png")).unwrap();
    let done = Job::ombx("osu osu_latency -m 8:16").args(["-G", "png"]).directory(files.root()).run();
    assert_ne!(done.code, Some(0), "{done}");
    assert!(done.stdout.is_empty(), "{done}");
    done.complains(&["cannot write the figure of -G to osu_latency.png"]);
}
