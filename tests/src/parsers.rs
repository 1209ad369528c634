//! What programs that read OMB and IMB find in an output, by the patterns that they match. The sources are named in each function.

use regex::Regex;

/// Compiles a pattern, whose `^` and `$` are the ends of lines.
fn pattern(text: &str) -> Regex {
    Regex::new(&format!("(?m){text}")).expect("a pattern")
}

/// Returns the figure of a size as checks of ReFrame read it (`examples/tutorial/mpi/osu.py`): the word after the size at the beginning of
/// a line.
pub fn reframe(stdout: &str, size: u64) -> Option<f64> {
    let found = pattern(&format!(r"^{size}\s+(\S+)")).captures(stdout)?;
    found[1].parse().ok()
}

/// Returns the rows as PerfKitBenchmarker reads them (`linux_packages/omb.py`): each word of each line is a number, but for comments,
/// empty lines and titles of overlap.
///
/// # Panics
/// A word is no number, as in PerfKitBenchmarker.
#[track_caller]
pub fn perfkit(stdout: &str) -> Vec<Vec<f64>> {
    let is_row = |line: &&str| !line.is_empty() && !line.starts_with('#') && !line.contains("Overall");
    let number = |word: &str| word.parse().unwrap_or_else(|_| panic!("{word} is no number\n{stdout}"));
    stdout.lines().filter(is_row).map(|line| line.split_whitespace().map(number).collect()).collect()
}

/// Returns what PerfKitBenchmarker reads above the rows: window creation, synchronisation, threads, pairs and window size.
pub fn perfkit_facts(stdout: &str) -> Vec<String> {
    let patterns = [
        r"^# Window creation: (.*)",
        r"^# Synchronization: (.*)",
        r"^# Number of Sender threads: (\d+)",
        r"^# Number of Receiver threads: (\d+)",
        r"^# \[ pairs: (\d+) \] \[ window size: \d+ \]",
        r"^# \[ pairs: \d+ \] \[ window size: (\d+) \]",
    ];
    let find = |text: &&str| pattern(text).captures(stdout).map(|found| found[1].to_owned());
    patterns.iter().filter_map(find).collect()
}

/// Returns the version and the rows as Ramble reads them (`osu-micro-benchmarks/application.py`): the heading decides how many numbers a
/// row has.
pub fn ramble(stdout: &str) -> Option<(String, Vec<Vec<f64>>)> {
    const TAIL: &str = r"\s+P50 Tail (Lat\(us\)|BW\(MB/s\))\s+P90 Tail (Lat\(us\)|BW\(MB/s\))\s+P99 Tail (Lat\(us\)|BW\(MB/s\))";
    let headings = [
        (r"#\s+Size\s+Latency \(us\)", 2),
        (r"#\s+Size\s+Avg Latency\(us\)", 2),
        (r"#\s+Size\s+Overall\(us\)\s+Compute\(us\)\s+Pure Comm\.\(us\)\s+Overlap\(%\)", 5),
        (r"# Size\s+Bandwidth \(MB/s\)", 2),
        (r"# Size\s+MB/s\s+Messages/s", 3),
        (r"# Avg Latency\(us\)", 1),
    ];
    let version = pattern(r"# OSU.*Test (v[0-9.]+)").captures(stdout)?[1].to_owned();
    let find = |(heading, numbers): &(&str, usize)| {
        let is_plain = pattern(&format!(r"^{heading}\s*$")).is_match(stdout);
        let has_tail = pattern(&format!(r"^{heading}{TAIL}\s*$")).is_match(stdout);
        (is_plain || has_tail).then_some(numbers + if has_tail { 3 } else { 0 })
    };
    let numbers = headings.iter().find_map(find)?;
    let row = pattern(&format!(r"^\s*([0-9]+[0-9.]*(\s+[0-9.]+){{{}}})\s*$", numbers - 1));
    let numbers = |line: &str| line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    Some((version, row.captures_iter(stdout).map(|found| numbers(&found[1])).collect()))
}

/// Returns the times in milliseconds that Ramble reads from `osu_init`, and the number of processes from `osu_hello`.
pub fn ramble_startup(stdout: &str) -> Vec<f64> {
    let init = r"nprocs: ([0-9]+), min: ([0-9.]+) ms, max: ([0-9.]+) ms, avg: ([0-9.]+) ms";
    let hello = r"This is a test with ([0-9]+) processes";
    let find = |text: &&str| pattern(text).captures(stdout);
    let found = [init, hello].iter().find_map(find);
    let numbers = |found: regex::Captures<'_>| -> Vec<f64> {
        found.iter().skip(1).filter_map(|word| word?.as_str().parse().ok()).collect()
    };
    found.map(numbers).unwrap_or_default()
}

/// Returns sizes and whole microseconds as the tests of aws-parallelcluster read them (`common/osu_common.py`): two numbers, of which the
/// second has a point, anywhere in the output.
pub fn parallelcluster(stdout: &str) -> Vec<(u64, u64)> {
    let found = pattern(r"(\d+)\s+(\d+)\.");
    let pairs = found.captures_iter(stdout).map(|found| (found[1].parse().ok(), found[2].parse().ok()));
    pairs.filter_map(|(size, figure)| Some((size?, figure?))).collect()
}

/// Returns the word at a place of a line that begins with a text, as `grep`, `tr -s ' '` and `cut -d ' ' -f` of azurehpc find it
/// (`apps/osu/hpcx_ring_pt2pt.sh`, `apps/imb-mpi/ringpingpong.sh`).
pub fn azurehpc(stdout: &str, start: &str, field: usize) -> Option<f64> {
    let line = stdout.lines().find(|line| line.starts_with(start))?;
    pattern(" +").replace_all(line, " ").split(' ').nth(field - 1)?.parse().ok()
}

/// Returns the first rows of a collective of IMB as azurehpc reads them (`apps/imb-mpi/parser_allreduce.sh`): bytes, repetitions and three
/// times below the line with `t_min`.
pub fn azurehpc_allreduce(stdout: &str, rows: usize) -> Option<Vec<[f64; 5]>> {
    let below = stdout.lines().skip_while(|line| !line.contains("t_min")).skip(1).take(rows);
    let row = |line: &str| -> Option<[f64; 5]> {
        let squeezed = pattern(" +").replace_all(line, " ").into_owned();
        let words: Vec<f64> = squeezed.split(' ').skip(1).map_while(|word| word.parse().ok()).collect();
        words.try_into().ok()
    };
    below.map(row).collect()
}
