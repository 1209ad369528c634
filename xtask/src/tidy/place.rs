//! Files in which unsafe code and readings of clocks may be.

use super::violation::Violation;
use crate::source::Source;

/// Directories of crates with unsafe code. Clippy requires a `SAFETY` comment for every block.
const UNSAFE_CRATES: &[&str] = &["accelerator", "mpi"];

/// Files of other crates with unsafe code: the fence before a reading of the clock, the timer of the watchdog, an ioctl for firmware versions
/// and statistics, what signals do, memory shared by processes, and a queue without a safe interface.
const UNSAFE_FILES: &[Place] = &[
    CLOCK,
    WATCHDOG,
    ("cli", "dispositions.rs"),
    ("host", "driver_information.rs"),
    ("host", "signals.rs"),
    ("sockets", "shared_memory.rs"),
    ("sockets", "tcp_info.rs"),
    ("sockets", "zero_copy.rs"),
];

/// File of the calls of C loops that are compared with those of ombx.
const C_LOOPS: &str = "verify/fidelity/src/bin/paired/reference.rs";

/// File that reads time around the work of a benchmark.
const CLOCK: Place = ("core", "clock.rs");

/// File of time spans outside timed regions.
const SPANS: Place = ("host", "since.rs");

/// File of the watchdog, which reads the clock in a signal handler.
const WATCHDOG: Place = ("host", "watchdog.rs");

/// File of the timed loops, which take raw readings of the clock.
const TIMED_LOOPS: Place = ("core", "timed_loop.rs");

/// File that reads the date of a run.
const DATE: Place = ("host", "environment.rs");

/// Directory of a crate below `crates/`, and name of a file in it.
type Place = (&'static str, &'static str);

/// Ways to read a monotonic clock.
const CLOCKS: &[&[&str]] = &[&["Instant", ":", ":", "now"], &["clock_gettime"], &["quanta"]];

/// Ways to read the date.
const DATES: &[&[&str]] =
    &[&["SystemTime", ":", ":", "now"], &["Timestamp", ":", ":", "now"], &["Zoned", ":", ":", "now"]];

pub(super) fn check(source: &Source) -> Vec<Violation> {
    [unsafe_code(source), clocks(source)].concat()
}

fn is(source: &Source, (directory, file): Place) -> bool {
    source.is_crate()
        && source.crate_directory() == Some(directory)
        && source.path.rsplit('/').next() == Some(file)
}

fn shown((directory, file): Place) -> String {
    format!("{file} of crates/{directory}")
}

fn unsafe_code(source: &Source) -> Vec<Violation> {
    let in_crate = source.crate_directory().is_some_and(|directory| UNSAFE_CRATES.contains(&directory));
    if in_crate || source.path == C_LOOPS || UNSAFE_FILES.iter().any(|place| is(source, *place)) {
        return Vec::new();
    }
    let files: Vec<String> = UNSAFE_FILES.iter().map(|place| shown(*place)).collect();
    let what = format!(
        "unsafe code is permitted only in crates/{}, {C_LOOPS}, {}",
        UNSAFE_CRATES.join(", crates/"),
        files.join(" and ")
    );
    source.find(&["unsafe"]).map(|token| Violation::new(&source.path, token.line, what.clone())).collect()
}

fn clocks(source: &Source) -> Vec<Violation> {
    if !source.is_crate() || is(source, CLOCK) || is(source, SPANS) {
        return Vec::new();
    }
    let mut readings: Vec<(&[&str], Place)> = CLOCKS.iter().map(|&clock| (clock, CLOCK)).collect();
    // Other types have a method `raw` too. In core, and in files that name a clock, it is the method of the clock.
    let near_a_clock = source.crate_directory() == Some("core") || source.find(&["clock"]).next().is_some();
    if near_a_clock && !is(source, TIMED_LOOPS) {
        readings.push((&[".", "raw", "("], TIMED_LOOPS));
    }
    if !is(source, DATE) {
        readings.extend(DATES.iter().map(|&date| (date, DATE)));
    }
    readings
        .iter()
        .flat_map(|(pattern, place)| {
            let what = format!("`{}` is permitted only in {}", pattern.concat(), shown(*place));
            let code = source.find(pattern).filter(|token| !token.test);
            code.map(move |token| Violation::new(&source.path, token.line, what.clone()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(&Source::parse(path, text).unwrap()).iter().map(|violation| violation.line).collect()
    }

    #[test]
    fn unsafe_code_is_permitted_only_in_listed_files() {
        let text = "//! x\nfn f() { unsafe { g() } }";
        assert_eq!(lines("crates/rma/src/window.rs", text), [2]);
        assert_eq!(lines("tests/src/lib.rs", text), [2]);
        assert_eq!(lines("verify/fidelity/src/bin/paired/main.rs", text), [2]);
        assert!(lines("verify/fidelity/src/bin/paired/reference.rs", text).is_empty());
        assert!(lines("crates/mpi/src/window.rs", text).is_empty());
        assert!(lines("crates/sockets/src/pipeline/shared_memory.rs", text).is_empty());
        assert!(lines("crates/core/src/clock.rs", text).is_empty());
        assert_eq!(lines("crates/core/src/measure/timed_loop.rs", text), [2]);
        assert_eq!(lines("crates/sockets/src/pipeline/memory.rs", text), [2]);
    }

    #[test]
    fn clock_readings_are_permitted_only_in_listed_files() {
        let text = "use std::time;\nfn f() { let _ = time::Instant::now(); }";
        assert_eq!(lines("crates/cli/src/launch.rs", text), [2]);
        assert!(lines("crates/core/src/clock.rs", text).is_empty());
        assert!(lines("crates/mpi/tests/ranks.rs", text).is_empty());
        assert!(lines("verify/toolchain/src/step.rs", text).is_empty());
        let test = "#[cfg(test)]\nmod tests { fn f() { Instant::now(); } }";
        assert!(lines("crates/core/src/measure/stop.rs", test).is_empty());
    }

    #[test]
    fn raw_readings_are_permitted_only_in_the_timed_loops() {
        let reads = "use quanta::Clock;\nfn f(c: &C) { c.raw(); }";
        assert_eq!(lines("crates/core/src/measure/stop.rs", reads), [1, 2]);
        assert_eq!(lines("crates/core/src/measure/timed_loop.rs", reads), [1]);
        let other = "use ombx_core::clock;\nfn f(c: &clock::Clock) { c.raw(); }";
        assert_eq!(lines("crates/p2p/src/a.rs", other), [2]);
        assert!(lines("crates/mpi/src/comm.rs", "fn f(c: &C) { c.raw(); }").is_empty());
    }

    #[test]
    fn the_date_is_read_only_in_listed_files() {
        assert_eq!(lines("crates/record/src/result.rs", "fn f() { jiff::Timestamp::now(); }"), [1]);
        let both = "fn f() { jiff::Timestamp::now(); SystemTime::now(); }";
        assert!(lines("crates/host/src/environment.rs", both).is_empty());
    }
}
