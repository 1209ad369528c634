//! Tests of `ombx osu -G`: figures of the iterations of each size, in the terminal and in files.

use std::fs;

use ombx_tests::{Done, Files, Job};

const PROGRAM: &str = "osu osu_latency -m 8:16 -i 200 -x 10";

/// Returns the charts below the table.
fn charts(done: &Done) -> Vec<Vec<&str>> {
    done.stdout.split("\nosu_").skip(1).map(|chart| chart.lines().collect()).collect()
}

/// Returns width and height of a PNG file.
fn png_size(contents: &[u8]) -> [u32; 2] {
    assert!(contents.starts_with(b"\x89PNG"));
    [16, 20].map(|at| u32::from_be_bytes(contents[at..at + 4].try_into().unwrap()))
}

#[test]
fn each_size_has_a_chart_as_wide_as_the_terminal() {
    for (columns, locale) in [(60, "C.UTF-8"), (80, "C"), (120, "C.UTF-8")] {
        let files = Files::default();
        let job = Job::ombx(PROGRAM).args(["-G", "tty"]).directory(files.root());
        let done = job.env("COLUMNS", columns.to_string()).env("LC_ALL", locale).run().expect(0);
        assert!(done.stdout.starts_with("\n# OSU MPI Latency Test v7.4"), "{done}");
        let charts = charts(&done);
        assert_eq!(charts.len(), 2, "{done}");
        for (chart, title) in charts.iter().zip(["latency, 8 bytes", "latency, 16 bytes"]) {
            assert_eq!(chart[0], title, "{done}");
            assert!(chart[1].starts_with("  200 samples in the order measured, us"), "{done}");
            assert_eq!(chart.last().unwrap().split_whitespace().collect::<Vec<_>>(), ["1", "200"], "{done}");
            let widest = chart.iter().map(|line| line.chars().count()).max().unwrap();
            assert!(widest <= columns && widest + 20 > columns, "{widest}: {done}");
            assert!(chart.len() < 16, "{done}");
        }
        assert_eq!(done.stdout.is_ascii(), locale == "C", "{done}");
        assert_eq!(fs::read_dir(files.root()).unwrap().count(), 0, "no file is written: {done}");
    }
}

#[test]
fn files_have_a_figure_for_each_size() {
    let files = Files::default();
    let (png, pdf) = (files.path("osu_latency.png"), files.path("osu_latency.pdf"));
    fs::write(&png, "older").unwrap();
    let done = Job::ombx(PROGRAM).args(["-G", "png,pdf,png"]).directory(files.root()).run().expect(0);
    assert!(charts(&done).is_empty(), "{done}");
    let [width, height] = png_size(&fs::read(&png).unwrap());
    assert!(width > 2 * height && width > 900, "two figures beside each other: {width} x {height}");
    assert!(fs::read(&pdf).unwrap().starts_with(b"%PDF"));
    assert_eq!(fs::read_dir(files.root()).unwrap().count(), 2, "{done}");
}

#[test]
fn rank_0_of_a_launcher_draws() {
    let files = Files::default();
    for (program, options) in [("osu_bw", "-m 1:8"), ("osu_barrier", ""), ("osu_allreduce", "-m 4:4 -z99 -f")]
    {
        let job = Job::mpiexec(2, &format!("osu {program} {options} -i 50 -x 5 -G tty,png"));
        let done = job.directory(files.root()).run().expect(0);
        let charts = charts(&done);
        assert_eq!(charts.len(), if program == "osu_bw" { 4 } else { 1 }, "{done}");
        assert!(charts[0][0].starts_with(&program["osu_".len()..]), "{done}");
        assert!(charts[0][1].starts_with("  50 samples in the order measured, "), "{done}");
        let [width, height] = png_size(&fs::read(files.path(&format!("{program}.png"))).unwrap());
        assert!(width > 900 && height > 600, "{program}: {width} x {height}");
    }
    assert_eq!(fs::read_dir(files.root()).unwrap().count(), 3);
}
