//! Tests of OSU compatibility: the format of OMB, links, and options of job scripts. `matrices` has every program.

use std::path::Path;

use ombx_tests::{
    Files, Job,
    osu::{Links, QUICK, looks_like_omb},
};

#[test]
fn programs_print_the_format_of_omb_alone_and_under_a_launcher() {
    let links = Links::install();
    looks_like_omb("osu_bw", &links.alone("osu_bw").args(QUICK).run().expect(0));
    looks_like_omb("osu_allreduce", &links.launched(2, "osu_allreduce").args(QUICK).run().expect(0));
    looks_like_omb("osu_latency", &Job::ombx("osu latency").args(QUICK).run().expect(0));
}

#[test]
fn options_and_buffers_as_in_job_scripts() {
    let links = Links::install();
    let options = ["-m", "4:1K", "-x", "10", "-i", "100", "-c", "-z50,99", "H", "H"];
    let done = links.launched(2, "osu_latency").args(options).run().expect(0);
    let rows: Vec<Vec<&str>> = done.stdout.lines().skip(4).map(|l| l.split_whitespace().collect()).collect();
    assert_eq!(
        rows.iter().map(|row| row[0]).collect::<Vec<_>>(),
        "4 8 16 32 64 128 256 512 1024".split(' ').collect::<Vec<_>>(),
        "{done}"
    );
    assert!(rows.iter().all(|row| row.len() == 5 && row[2] == "Pass"), "{done}");
    assert!(done.stdout.contains("        Validation  P50 Tail Lat(us)  P99 Tail Lat(us)\n"), "{done}");

    let rate = links
        .alone("osu_mbw_mr")
        .args(QUICK)
        .args(["-R", "0", "-p", "1", "-W", "8", "-b", "multiple"])
        .run()
        .expect(0);
    assert!(
        rate.stdout.contains("# [ pairs: 1 ] [ window size: 8 ]") && !rate.stdout.contains("Messages/s"),
        "{rate}"
    );
    assert!(!rate.stderr.contains("MPI does not allow this"), "{rate}");
}

#[test]
fn nonblocking_collectives_have_a_number_in_every_column() {
    let done = Job::ombx("osu iallreduce -f -m 8:8 -i 4 -x 1").env("OMBX_OMB_TITLE", "1").run().expect(0);
    assert!(done.stdout.starts_with("\n# OSU MPI Non-blocking Allreduce Latency Test v7.4\n"), "{done}");
    let words: Vec<&str> = done.stdout.lines().last().unwrap().split_whitespace().collect();
    assert!(words.len() == 10 && words.iter().all(|word| word.parse::<f64>().is_ok()), "{done}");
}

#[test]
fn numbers_of_ranks_that_omb_refuses_are_refused() {
    let links = Links::install();
    for (ranks, name, says) in [
        (1, "osu_allreduce", "This test requires at least two processes"),
        (3, "osu_latency", "This test requires exactly two processes"),
    ] {
        let number = ranks.to_string();
        for job in [links.launched(ranks, name), links.alone(name).args(["-n", &number])] {
            let done = job.args(QUICK).run().expect(1);
            assert_eq!(done.stderr.matches(says).count(), 1, "{done}");
            assert!(done.stdout.is_empty(), "{done}");
        }
    }
}

#[test]
fn the_version_is_printed_once() {
    let done = Links::install().launched(2, "osu_latency").arg("-v").run().expect(0);
    assert_eq!(done.stdout.matches("# OSU MPI Latency Test v7.4").count(), 1, "{done}");
}

#[test]
fn links_are_created_and_other_files_are_kept() {
    let files = Files::default();
    let bin = files.path("bin");
    let install = || Job::ombx("osu --install-links").arg(&bin).run();
    install().expect(0);
    install().expect(0);
    assert!(Path::new(&bin.join("osu_latency")).is_symlink());
    std::fs::remove_file(bin.join("osu_latency")).unwrap();
    std::fs::write(bin.join("osu_latency"), "mine").unwrap();
    assert!(install().expect(7).sentence().contains("osu_latency"));
    assert_eq!(std::fs::read_to_string(bin.join("osu_latency")).unwrap(), "mine");
}
