//! Comparison with programs of OMB and IMB that are built for this MPI, which `OMBX_TEST_OMB` and `OMBX_TEST_IMB` name by their directory.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use ombx_tests::{
    Done, Files, Job, mpi,
    osu::{Links, expected, masked},
    skipped,
};

/// Options of OMB's programs.
const OPTIONS: [&str; 12] = [
    "-m 1:64 -x 2 -i 20",
    "-m 8:16 -x 2 -i 20 -f",
    "-m 8:8 -i 20 -z",
    "-m 8:8 -i 20 -c",
    "-m 8:8 -i 20 -f -c -z50,99",
    "-m 1:8 -i 20 -T all",
    "-m 8:16 -i 5 -V",
    "-m 8:8 -i 5 -W 2",
    "-m 0:0 -i 5",
    "-m 0:4 -i 5",
    "-m 8:8 -i 5 -w create -s lock",
    "-v",
];

/// Returns the programs in the directory that a variable names, and says how to name it.
fn programs(variable: &str, start: &str) -> Option<(PathBuf, Vec<String>)> {
    let Some(directory) = env::var_os(variable).map(PathBuf::from) else {
        skipped(&format!("{variable} names no directory of programs"));
        return None;
    };
    let entries = fs::read_dir(&directory).unwrap_or_else(|e| panic!("{variable}: {e}"));
    let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| name.starts_with(start)).collect();
    names.sort();
    assert!(!names.is_empty(), "{variable}: {} has no programs {start}*", directory.display());
    Some((directory, names))
}

/// Returns why the output of a program differs, if a document says so.
fn documented(program: &str, options: &str, ours: &Done) -> Option<&'static str> {
    let is_validated = options.contains("-c");
    match program {
        "osu_get_mbw" | "osu_get_multi_lat" => Some("the program does not exist"),
        "osu_acc_latency" | "osu_fop_latency" | "osu_cas_latency" if is_validated => {
            Some("OMB finds its own sums wrong")
        }
        "osu_cas_latency" if options.contains("-T all") => Some("MPI compares and swaps no MPI_FLOAT"),
        "osu_multi_lat" if options.contains("-z") => {
            Some("OMB leaves out the percentiles below their titles")
        }
        "osu_init" | "osu_hello" if ours.code == Some(2) || options == "-v" => {
            Some("OMB ignores every option")
        }
        _ if program.ends_with("_persistent") && matches!(ours.code, Some(4 | 5)) => {
            Some("the requests of this MPI are wrong when started again")
        }
        _ => None,
    }
}

#[test]
fn every_option_of_omb() {
    let Some((directory, names)) = programs("OMBX_TEST_OMB", "osu_") else { return };
    let links = Links::install();
    let (mut equal, mut refused, mut known, mut different) = (0, 0, 0, Vec::new());
    for name in &names {
        // A neighbourhood of OMB needs three ranks.
        let ranks = if name.contains("neighbor") { 3 } else { 2 };
        for options in OPTIONS {
            let words = || options.split(' ');
            let theirs = Job::on_ranks(ranks, &directory.join(name))
                .args(words())
                .env("OMPI_MCA_osc", "^rdma,ucx")
                .run();
            if theirs.code != Some(0) || theirs.stdout.contains("ERROR") {
                refused += 1;
                continue;
            }
            let ours = links.launched(ranks, name).args(words()).run();
            if ours.code == Some(0) && masked(&ours.stdout) == expected(name, &theirs.stdout) {
                equal += 1;
            } else if documented(name, options, &ours).is_some() {
                known += 1;
            } else {
                different.push(format!("{name} {options}\n{theirs}\n{ours}"));
            }
        }
    }
    ombx_tests::print_note(&format!(
        "{} programs: {equal} outputs are equal, {known} differ as documented, {} differ, {refused} are errors of OMB",
        names.len(),
        different.len()
    ));
    assert!(different.is_empty(), "{}", different.join("\n\n"));
}

/// Options of each program of IMB; ranks, program, options.
const OF_IMB: [(u32, &str, &str); 20] = [
    (2, "IMB-MPI1", "-iter 4 -msglog 3:4"),
    (2, "IMB-MPI1", "Uniband Biband PingPongAnySource PingPingAnySource -iter 4 -msglog 3:4"),
    (2, "IMB-MPI1", "PingPongSpecificSource PingPingSpecificSource -iter 4 -msglog 3:4"),
    (2, "IMB-MPI1", "PingPong Sendrecv Bcast Uniband -iter 50 -msglog 3:4"),
    (2, "IMB-MPI1", "Bcast Allreduce -data_type int -red_data_type double -iter 4 -msglog 3:3"),
    (2, "IMB-MPI1", "PingPong -zero_size off -iter 4 -msglog 3:4"),
    (2, "IMB-MPI1", "Bcast -npmin 1 -iter 4 -msglog 3:3"),
    (2, "IMB-MPI1", "Bcast -msgsize 8,24 -iter 4"),
    (4, "IMB-MPI1", "Bcast -multi 0 -iter 4 -msglog 3:3"),
    (4, "IMB-MPI1", "Bcast -multi 1 -iter 4 -msglog 3:3"),
    (4, "IMB-MPI1", "Bcast PingPong -npmin 2 -iter 4 -msglog 3:3"),
    (4, "IMB-MPI1", "Bcast -map 2x2 -npmin 4 -iter 4 -msglog 3:3"),
    (1, "IMB-MPI1", "-list"),
    (2, "IMB-NBC", "-iter 4 -msglog 3:4"),
    (2, "IMB-NBC", "Ibcast_pure Ibarrier_pure Iallreduce_pure -iter 4 -msglog 3:4"),
    (1, "IMB-NBC", "-list"),
    // What the document of differences names is left out.
    (2, "IMB-RMA", "-exclude Fetch_and_op,Compare_and_swap -iter 4 -msglog 3:4"),
    (2, "IMB-RMA", "Unidir_put -aggregate_mode aggregate -iter 4 -msglog 3:3"),
    (2, "IMB-P2P", "PingPong PingPing Unirandom Birandom Corandom SendRecv_Replace -iter 4 -msglog 3:4"),
    (2, "IMB-MT", "-repeat 4 -warmup 2 -count 1,2"),
];

/// Replaces figures by their width, and facts of the system and the command line by their names.
fn without_figures(stdout: &str) -> String {
    const FACTS: [&str; 6] = ["# Date", "# Machine", "# System", "# Release", "# Version", "# MPI "];
    let line = |line: &str| {
        if let Some(fact) = FACTS.iter().find(|fact| line.starts_with(**fact)) {
            return (*fact).to_owned();
        }
        if line.starts_with('#') {
            return if line.contains("IMB-") && !line.contains("Benchmarks") {
                "# COMMAND".into()
            } else {
                line.into()
            };
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        // Bytes and repetitions, or repetitions alone, are before the figures.
        let kept = words.iter().take(2).take_while(|word| word.parse::<u64>().is_ok()).count();
        if kept > 0 && words.iter().all(|word| word.parse::<f64>().is_ok()) {
            format!("{} and {} figures in {}", words[..kept].join(" "), words.len() - kept, line.len())
        } else {
            line.into()
        }
    };
    stdout.trim().lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn every_program_of_imb() {
    let Some((directory, names)) = programs("OMBX_TEST_IMB", "IMB-") else { return };
    if mpi::is_open_mpi() {
        return skipped("the programs of Intel need an MPI with the interface of MPICH");
    }
    let files = Files::default();
    Job::ombx("imb --install-links").arg(files.path("bin")).run().expect(0);
    let (mut equal, mut different) = (0, Vec::new());
    for (ranks, name, options) in
        OF_IMB.into_iter().filter(|(_, name, _)| names.iter().any(|known| known == name))
    {
        let run = |program: &Path| {
            Job::on_ranks(ranks, program)
                .args(options.split(' '))
                .env("OMP_NUM_THREADS", "1")
                .directory(files.root())
                .run()
        };
        let (theirs, ours) = (run(&directory.join(name)), run(&files.path("bin").join(name)));
        if without_figures(&theirs.stdout) == without_figures(&ours.stdout) {
            equal += 1;
        } else {
            different.push(format!("{name} {options}\n{theirs}\n{ours}"));
        }
    }
    ombx_tests::print_note(&format!("{equal} outputs are equal, {} differ", different.len()));
    assert!(different.is_empty(), "{}", different.join("\n\n"));
}
