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

/// Command lines of the checks of OMB in ReFrame's library and in EESSI's test suite, one with other words, and the size of the row that is
/// read. OMB without support for devices ignores the last two words.
const COMMAND_LINES: [(&str, u64); 6] = [
    ("osu_alltoall -m 8 -x 10 -i 1000 -c", 8),
    ("osu_allreduce -m 8 -x 10 -i 1000 -c", 8),
    ("osu_bw -m 4194304 -x 10 -i 10 -c D D", 4_194_304),
    ("osu_latency -m 8 -x 10 -i 1000 -c D D", 8),
    ("osu_latency -m 8 -x 5 -i 10 -c", 8),
    ("osu_get_latency -m 8 -x 5 -i 10 -c D H", 8),
];

#[test]
fn words_for_devices_mean_the_host_where_there_is_no_device() {
    let links = Links::install();
    for (line, size) in COMMAND_LINES {
        let (name, options) = line.split_once(' ').unwrap();
        for job in [links.launched(2, name), links.alone(name)] {
            // A driver then sees no device.
            let job = job.env("CUDA_VISIBLE_DEVICES", "");
            let done = job.args(options.split_whitespace()).run().expect(0);
            let start = size.to_string();
            let read = done.stdout.lines().find(|row| row.split_whitespace().next() == Some(&start));
            assert!(read.is_some_and(|row| row.to_lowercase().contains("pass")), "{line}\n{done}");
            let has_words = line.contains(" D ");
            assert_eq!(
                done.stderr.contains("D has no effect") || done.stderr.contains("H has no effect"),
                has_words,
                "{line}\n{done}"
            );
        }
    }
    for words in ["-d cuda D H", "-d CUDA D D"] {
        let done = links.alone("osu_latency").args(words.split(' ')).env("CUDA_VISIBLE_DEVICES", "").run();
        assert!(done.code == Some(2) && !done.stderr.contains("--memory"), "{words}\n{done}");
    }
}

/// Options as OMB reads them, and a part of what standard error says; nothing for values that are read as they are typed.
const AS_OMB: [(&str, &str); 12] = [
    ("osu_latency -m 8:8x -i 10x", "\"10x\" is read as \"10\": OMB ignores what follows a number"),
    ("osu_latency -m +8:8 -i 1e1 -x 1.5", "\"1.5\" is read as \"1\""),
    ("osu_latency -m 8:8 -i 4 -z50.5,99", "\"50.5,99\" is read as \"50,99\""),
    ("osu_bw -m 8:8 -i 4 -W 4k", "\"4k\" is read as \"4\""),
    ("osu_put_latency -m 8:8 -i 4 -s FLUSH -w Allocate", ""),
    ("osu_bcast -m 8:8 -i 4 -k FIXED:1", ""),
    ("osu_neighbor_alltoall -m 8:8 -i 4 -N CART:1:1", ""),
    ("osu_latency -m 8:8 -i 4 -T MPI_CHAR -b SINGLE -D CONT", ""),
    (
        "osu_allgather -m 524288:1M -i 1 -x 0 -M 1",
        "sizes above 512K are left out, as in OMB: the limit is 1M",
    ),
    ("osu_bcast -m 1M:2M -i 1 -x 0 -M 1", "-M 1 is read as 1M, the least limit of OMB"),
    ("osu_mbw_mr -m 8:8 -i 4 -p 7 -n 2", "-p 7: the ranks make 1 pair, as many as OMB measures"),
    ("osu_mbw_mr -m 8:8 -i 4 -p 0", ""),
];

#[test]
fn values_are_read_as_omb_reads_them() {
    for (line, note) in AS_OMB {
        let done = Job::ombx(&format!("osu {line}")).run().expect(0);
        let rows = done.stdout.lines().filter(|row| row.starts_with(|c: char| c.is_ascii_digit())).count();
        assert_eq!(rows, 1, "{line}\n{done}");
        assert!(done.stderr.contains(note), "{line}\n{done}");
        assert!(!note.is_empty() || !done.stderr.contains("is read as"), "{line}\n{done}");
    }
}

#[test]
fn messages_name_the_program_that_was_typed() {
    let done = Job::ombx("osu osu_put_latency -n 1 -p 1").run().expect(1);
    assert!(done.stderr.contains("osu_put_latency") && !done.stderr.contains("rma."), "{done}");
}

/// As in OMB, a swap is one of 1 byte, which works with every component of Open MPI 4 and kind of window.
#[test]
fn a_swap_has_the_size_that_omb_has() {
    for options in ["", "-w create", "-s LOCK"] {
        let done = Job::ombx(&format!("osu osu_cas_latency -i 100 -x 10 {options}")).run().expect(0);
        let last = done.stdout.lines().last().unwrap_or_default();
        assert!(last.starts_with("1 "), "{done}");
    }
}
