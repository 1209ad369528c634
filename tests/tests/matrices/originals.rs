//! Comparison with programs of OMB and IMB that are built for this MPI, which `OMBX_TEST_OMB` and `OMBX_TEST_IMB` name by their directory.
//!
//! `OMBX_TEST_ONLY` chooses programs by parts of their names, separated by commas. After `OMBX_TEST_MINUTES` no comparison with OMB
//! begins; the next run with the same programs goes on there, and repeats those that differed or reached the limit.

use std::{
    env,
    fs::{self, File},
    io::Write,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::Duration,
};

use ombx_host::since::Since;
use ombx_tests::{
    Done, Files, Job, mpi,
    osu::{Links, expected, masked},
    skipped,
};

/// Parts of the names of programs that are compared.
const ONLY: &str = "OMBX_TEST_ONLY";
/// Minutes after which no further comparison begins, and their default.
const MINUTES: &str = "OMBX_TEST_MINUTES";
const USUAL_MINUTES: u64 = 30;
/// Time limit of one program.
const LIMIT: Duration = Duration::from_secs(60);

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

/// Returns the programs below the directory that a variable names, by their names, and says how to name it.
fn programs(variable: &str, start: &str) -> Option<Vec<PathBuf>> {
    let Some(directory) = env::var_os(variable).map(PathBuf::from) else {
        skipped(&format!("{variable} names no directory of programs"));
        return None;
    };
    let mut programs = below(&directory, start);
    programs.sort_by(|one, other| one.file_name().cmp(&other.file_name()));
    programs.dedup_by(|one, other| one.file_name() == other.file_name());
    assert!(!programs.is_empty(), "{variable}: {} has no programs {start}*", directory.display());
    let parts = env::var(ONLY).unwrap_or_default();
    programs.retain(|program| parts.split(',').any(|part| name(program).contains(part)));
    Some(programs)
}

/// Returns the programs whose names begin so, without sources, objects and hidden directories of a build.
fn below(directory: &Path, start: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap_or_else(|e| panic!("{}: {e}", directory.display()));
    let found = |path: PathBuf| {
        if path.is_dir() && !name(&path).starts_with('.') {
            return below(&path, start);
        }
        let is_program = name(&path).starts_with(start) && !name(&path).contains('.');
        let is_executable =
            || fs::metadata(&path).is_ok_and(|file| file.is_file() && file.mode() & 0o111 != 0);
        if is_program && is_executable() { vec![path] } else { Vec::new() }
    };
    entries.flat_map(|entry| found(entry.unwrap().path())).collect()
}

fn name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

/// What a comparison has shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Equal,
    /// The output differs as a document says.
    Documented,
    /// The program of OMB fails with these options.
    Refused,
    /// The program of OMB reaches the limit.
    Unfinished,
    Different,
}

impl Outcome {
    const KEPT: [(&str, Outcome); 3] =
        [("equal", Outcome::Equal), ("documented", Outcome::Documented), ("refused", Outcome::Refused)];
}

/// Comparisons that an earlier run has made with the same ombx and the same test, one a line. Those that differed are made again.
struct Earlier {
    file: PathBuf,
    text: String,
}

impl Earlier {
    fn read() -> Earlier {
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("originals.txt");
        let first = format!("{}, {}\n", version(mpi::ombx()), version(&env::current_exe().unwrap()));
        let text = fs::read_to_string(&file).ok().filter(|text| text.starts_with(&first));
        if text.is_none() {
            fs::write(&file, &first).unwrap();
        }
        Earlier { file, text: text.unwrap_or(first) }
    }

    fn outcome(&self, program: &Path, options: &str) -> Option<Outcome> {
        let is_kept = |(word, _): &&(&str, Outcome)| {
            let line = format!("{word} {} {options}", version(program));
            self.text.lines().any(|kept| kept == line)
        };
        Outcome::KEPT.iter().find(is_kept).map(|(_, outcome)| *outcome)
    }

    fn add(&self, program: &Path, options: &str, outcome: Outcome) {
        let Some((word, _)) = Outcome::KEPT.iter().find(|(_, kept)| *kept == outcome) else { return };
        let mut file = File::options().append(true).open(&self.file).unwrap();
        writeln!(file, "{word} {} {options}", version(program)).unwrap();
    }
}

/// Returns the path of a program with its size and the time of its last change.
fn version(program: &Path) -> String {
    let file = fs::metadata(program).unwrap_or_else(|e| panic!("{}: {e}", program.display()));
    let path = program.display();
    format!("{path} ({} bytes, {}.{:09})", file.len(), file.mtime(), file.mtime_nsec())
}

/// Returns why the output of a program differs, if a document says so.
fn documented(program: &str, options: &str, ours: &Done) -> Option<&'static str> {
    let is_validated = options.contains("-c");
    let code = ours.code?;
    match program {
        "osu_get_mbw" | "osu_get_multi_lat" if code != 0 => Some("the program does not exist"),
        "osu_init" | "osu_hello" if code == 2 => Some("OMB ignores every option"),
        _ if program.ends_with("_persistent") && matches!(code, 4 | 5) => {
            Some("the requests of this MPI are wrong when started again")
        }
        _ if code != 0 => None,
        "osu_acc_latency" | "osu_fop_latency" | "osu_cas_latency" if is_validated => {
            Some("OMB finds its own sums wrong")
        }
        "osu_cas_latency" if options.contains("-T all") => Some("MPI compares and swaps no MPI_FLOAT"),
        "osu_multi_lat" if options.contains("-z") => {
            Some("OMB leaves out the percentiles below their titles")
        }
        "osu_init" | "osu_hello" if options == "-v" => Some("OMB ignores every option"),
        _ => None,
    }
}

/// Compares a program of OMB with ombx. A difference has the text of both.
fn compared(links: &Links, program: &Path, options: &str) -> (Outcome, String) {
    let name = name(program);
    // A neighbourhood of OMB needs three ranks.
    let ranks = if name.contains("neighbor") { 3 } else { 2 };
    let words = || options.split(' ');
    let theirs = Job::on_ranks(ranks, program).args(words()).env("OMPI_MCA_osc", "^rdma,ucx").limit(LIMIT);
    let theirs = theirs.run_to_limit();
    if theirs.code.is_none() && theirs.signal.is_none() {
        return (Outcome::Unfinished, String::new());
    }
    if theirs.code != Some(0) || theirs.stdout.contains("ERROR") {
        return (Outcome::Refused, String::new());
    }
    let ours = links.launched(ranks, name).args(words()).limit(LIMIT).run_to_limit();
    if ours.code == Some(0) && masked(&ours.stdout) == expected(&theirs.stdout) {
        (Outcome::Equal, String::new())
    } else if documented(name, options, &ours).is_some() {
        (Outcome::Documented, String::new())
    } else {
        (Outcome::Different, format!("{name} {options}\n{theirs}\n{ours}"))
    }
}

#[test]
fn every_option_of_omb() {
    let Some(programs) = programs("OMBX_TEST_OMB", "osu_") else { return };
    let minutes = env::var(MINUTES).ok().and_then(|minutes| minutes.parse().ok()).unwrap_or(USUAL_MINUTES);
    let (links, earlier, start) = (Links::install(), Earlier::read(), Since::now());
    let (mut outcomes, mut different, mut left) = (Vec::new(), Vec::new(), 0);
    for (program, options) in programs.iter().flat_map(|program| OPTIONS.map(|options| (program, options))) {
        let outcome = if let Some(outcome) = earlier.outcome(program, options) {
            outcome
        } else if start.elapsed() > Duration::from_secs(60 * minutes) {
            left += 1;
            continue;
        } else {
            let (outcome, texts) = compared(&links, program, options);
            earlier.add(program, options, outcome);
            different.extend(Some(texts).filter(|texts| !texts.is_empty()));
            outcome
        };
        outcomes.push(outcome);
    }
    let count = |wanted| outcomes.iter().filter(|outcome| **outcome == wanted).count();
    let counted = format!(
        "{} programs: {} outputs are equal, {} differ as documented, {} differ, {} are errors of OMB, {} \
         reach the limit",
        programs.len(),
        count(Outcome::Equal),
        count(Outcome::Documented),
        count(Outcome::Different),
        count(Outcome::Refused),
        count(Outcome::Unfinished)
    );
    if left == 0 {
        ombx_tests::print_note(&counted);
    } else {
        skipped(&format!("{counted}; {left} comparisons are left, which the same command makes"));
    }
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

/// Replaces figures by their width, and facts of the system, the release of IMB and the command line by their names.
fn without_figures(stdout: &str) -> String {
    const TITLE: &str = "Intel(R) MPI Benchmarks ";
    const FACTS: [&str; 6] = ["# Date", "# Machine", "# System", "# Release", "# Version", "# MPI "];
    let line = |line: &str| {
        if let Some(fact) = FACTS.iter().find(|fact| line.starts_with(**fact)) {
            return (*fact).to_owned();
        }
        if let Some((before, release)) = line.split_once(TITLE) {
            return format!(
                "{before}{TITLE}{}",
                release.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.')
            );
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
    let Some(programs) = programs("OMBX_TEST_IMB", "IMB-") else { return };
    if mpi::is_open_mpi() {
        return skipped("the programs of Intel need an MPI with the interface of MPICH");
    }
    let files = Files::default();
    Job::ombx("imb --install-links").arg(files.path("bin")).run().expect(0);
    let (mut equal, mut different) = (0, Vec::new());
    let known = |wanted: &str| programs.iter().find(|program| name(program) == wanted);
    let found =
        OF_IMB.into_iter().filter_map(|(ranks, name, options)| Some((ranks, name, known(name)?, options)));
    for (ranks, name, program, options) in found {
        let run = |program: &Path| {
            Job::on_ranks(ranks, program)
                .args(options.split(' '))
                .env("OMP_NUM_THREADS", "1")
                .directory(files.root())
                .limit(LIMIT)
                .run_to_limit()
        };
        let (theirs, ours) = (run(program), run(&files.path("bin").join(name)));
        let succeeded = theirs.code == Some(0) && ours.code == Some(0);
        if succeeded && without_figures(&theirs.stdout) == without_figures(&ours.stdout) {
            equal += 1;
        } else {
            different.push(format!("{name} {options}\n{theirs}\n{ours}"));
        }
    }
    ombx_tests::print_note(&format!("{equal} outputs are equal, {} differ", different.len()));
    assert!(different.is_empty(), "{}", different.join("\n\n"));
}
