//! Programs that read OMB and IMB find in the output of ombx what they find in that of OMB and IMB.

use std::os::unix::fs::symlink;

use ombx_tests::{
    Files, Job, missing, mpi,
    old_scripts::{OldScript, Reader, SCRIPTS},
    osu::{Links, Recorded, recorded},
    parsers, print_note,
};
use regex::Regex;

/// Programs with options, and how many numbers a row has.
const PROGRAMS: [(&str, &str, usize); 9] = [
    ("osu_latency", "-m 8:1K -z", 5),
    ("osu_bw", "-m 8:1K", 2),
    ("osu_mbw_mr", "-m 8:1K", 3),
    ("osu_latency_mt", "-m 8:16", 2),
    ("osu_put_latency", "-m 8:1K", 2),
    ("osu_allreduce", "-m 8:1K -f", 5),
    ("osu_barrier", "", 1),
    ("osu_iallreduce", "-m 8:1K", 5),
    ("osu_iallreduce", "-m 8:1K -f", 10),
];

#[test]
fn every_parser_finds_each_row_and_nothing_else() {
    let links = Links::install();
    for (name, options, numbers) in PROGRAMS {
        let words = options.split_whitespace().chain(["-i", "20", "-x", "2"]);
        let stdout = links.launched(2, name).args(words).run().expect(0).stdout;
        let rows = parsers::perfkit(&stdout);
        assert!(!rows.is_empty() && rows.iter().all(|row| row.len() == numbers), "{name}\n{stdout}");
        assert_eq!(parsers::perfkit_facts(&stdout).len(), facts(name), "{name}\n{stdout}");
        // Ramble has no heading of -f.
        if !options.contains("-f") {
            let (version, found) = parsers::ramble(&stdout).unwrap_or_else(|| panic!("{name}\n{stdout}"));
            assert_eq!((version.as_str(), &found), ("v7.4", &rows), "{name}\n{stdout}");
        }
        if options.is_empty() {
            continue;
        }
        let sizes = |row: &Vec<f64>| (row[0] as u64, row[1].trunc() as u64);
        let pairs = parsers::parallelcluster(&stdout);
        assert!(rows.iter().map(sizes).all(|pair| pairs.contains(&pair)), "{name}\n{stdout}");
        // In longer rows it also finds the decimals of a figure and the next figure, as in those of OMB.
        assert!(numbers > 2 || pairs.len() == rows.len(), "{name}\n{stdout}");
        for row in &rows {
            let size = row[0] as u64;
            assert_eq!(parsers::reframe(&stdout, size), Some(row[1]), "{name} {size}\n{stdout}");
            assert_eq!(
                parsers::azurehpc(&stdout, &format!("{size} "), 2),
                Some(row[1]),
                "{name} {size}\n{stdout}"
            );
        }
    }
}

/// Returns how many facts PerfKitBenchmarker reads.
fn facts(program: &str) -> usize {
    if ["osu_mbw_mr", "osu_latency_mt", "osu_put_latency"].contains(&program) { 2 } else { 0 }
}

#[test]
fn startup_has_the_numbers_that_ramble_reads() {
    let links = Links::install();
    for (name, numbers) in [("osu_init", 4), ("osu_hello", 1)] {
        let stdout = links.launched(2, name).run().expect(0).stdout;
        let found = parsers::ramble_startup(&stdout);
        assert!(found.len() == numbers && found[0] == 2.0, "{name}\n{stdout}");
    }
}

#[test]
fn tables_of_imb_are_read_line_by_line() {
    let stdout = Job::ombx("imb IMB-MPI1 PingPong -n 2 -iter 5 -msglog 9:10").run().expect(0).stdout;
    let time = parsers::azurehpc(&stdout, "         1024 ", 4);
    assert!(time.is_some_and(|time| time > 0.0), "{stdout}");
    let stdout = Job::ombx("imb IMB-MPI1 Allreduce -n 2 -iter 5 -msglog 3:4").run().expect(0).stdout;
    let rows = parsers::azurehpc_allreduce(&stdout, 3).unwrap_or_else(|| panic!("{stdout}"));
    assert!(rows.iter().map(|row| (row[0], row[1])).eq([(0.0, 5.0), (8.0, 5.0), (16.0, 5.0)]), "{stdout}");
    assert!(rows.iter().all(|[.., least, most, mean]| least <= mean && mean <= most), "{stdout}");
    // An editor of Windows has written the file of sizes.
    let files = Files::default();
    let sizes = files.write("sizes", "\u{feff}8\r\n64\r\n");
    let stdout = Job::ombx("imb IMB-MPI1 PingPong -n 2 -iter 5 -msglen").arg(sizes).run().expect(0).stdout;
    assert!(parsers::azurehpc(&stdout, "           64 ", 4).is_some(), "{stdout}");
}

#[test]
fn old_scripts_find_what_they_look_for() {
    let files = Files::default();
    for suite in ["osu", "imb"] {
        Job::ombx(suite).arg("--install-links").arg(files.path("bin")).run().expect(0);
    }
    let lacking = missing(&["perl", "python3"]);
    if !lacking.is_empty() {
        print_note(&format!("readers in {} are left out", lacking.join(" and ")));
    }
    let mut wrong = Vec::new();
    for OldScript { command, readers } in SCRIPTS {
        let (program, options) = command.split_once(' ').unwrap_or((command, ""));
        let link = files.path("bin").join(program);
        if !link.exists() {
            symlink(mpi::ombx(), &link).unwrap();
        }
        let job = Job::on_ranks(2, &link).env("OMPI_MCA_osc", "^rdma,ucx");
        let stdout = job.args(options.split_whitespace()).run().expect(0).stdout;
        let output = files.write("output", &stdout);
        let installed = |reader: &&Reader| !lacking.iter().any(|program| reader.shell.contains(program));
        for Reader { shell, prints } in readers.iter().filter(installed) {
            let line = format!("exec <'{}'\n{shell}", output.display());
            let printed = Job::new("sh").args(["-c", &line]).run().stdout;
            let expected = Regex::new(&format!("^(?:{})$", prints.replace('N', "[0-9]+\\.[0-9]+"))).unwrap();
            if !expected.is_match(&printed) {
                wrong.push(format!("{command}\n{stdout}\n| {shell}\n{printed}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// What the parsers find in outputs of OMB itself: they are rebuilt correctly if they find every row there.
#[test]
fn the_parsers_read_omb_itself() {
    let is_table =
        |one: &Recorded| one.code == 0 && ["osu_latency", "osu_bw", "osu_allreduce"].contains(&one.program);
    let mut read = 0;
    for one in recorded().into_iter().filter(|one| is_table(one) && one.variant.is_empty()) {
        // The record has the width of a figure with its blanks.
        let stdout = one.output.replace('<', " 1.").replace('>', "");
        let (version, rows) = parsers::ramble(&stdout).unwrap_or_else(|| panic!("{stdout}"));
        assert_eq!((version.as_str(), rows.len()), ("v7.4", 7), "{stdout}");
        assert_eq!(parsers::perfkit(&stdout), rows, "{stdout}");
        assert_eq!(parsers::parallelcluster(&stdout).len(), 7, "{stdout}");
        read += 1;
    }
    assert_eq!(read, 3);
}
