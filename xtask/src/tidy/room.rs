//! Where unsafe code, clocks and printing may be.

use super::{Violation, source::Source};

/// The crates with unsafe code. Clippy sees to it that every block there says why it is sound.
const UNSAFE_ROOMS: &[&str] = &["mpi"];

/// The files of other crates with unsafe code: memory that processes share, and a queue that has no safe interface.
const UNSAFE_FILES: &[&str] =
    &["crates/sockets/src/pipeline/shared_memory.rs", "crates/sockets/src/link/zero_copy.rs"];

/// The one file that reads time around benchmark work.
const CLOCK_ROOM: &str = "crates/core/src/system/clock.rs";

/// The file with the one timed loop, which takes the clock's raw readings.
const TIMED_LOOP: &str = "crates/core/src/measure/timed_loop.rs";

/// The file that asks for the date of a run.
const DATE_ROOM: &str = "crates/core/src/system/environment.rs";

/// Crates that never print: a library that does breaks the parsers of its user's output.
const SILENT: &[&str] =
    &["core", "results", "links", "mpi", "p2p", "rma", "collective", "sockets", "report", "cluster"];

/// Ways to read a monotonic clock.
const CLOCKS: &[&[&str]] = &[&["Instant", ":", ":", "now"], &["clock_gettime"], &["quanta"]];

/// Ways to read the date.
const DATES: &[&[&str]] =
    &[&["SystemTime", ":", ":", "now"], &["Timestamp", ":", ":", "now"], &["Zoned", ":", ":", "now"]];

pub(super) fn check(source: &Source) -> Vec<Violation> {
    [unsafe_code(source), clocks(source), printing(source)].concat()
}

fn unsafe_code(source: &Source) -> Vec<Violation> {
    if source.room().is_some_and(|room| UNSAFE_ROOMS.contains(&room)) || UNSAFE_FILES.contains(&&*source.path)
    {
        return Vec::new();
    }
    let rooms = format!("crates/{}", UNSAFE_ROOMS.join(", crates/"));
    let what = format!("unsafe code belongs in {rooms} and {} alone", UNSAFE_FILES.join(", "));
    source.find(&["unsafe"]).map(|token| Violation::new(&source.path, token.line, what.clone())).collect()
}

fn clocks(source: &Source) -> Vec<Violation> {
    if !source.is_crate() || source.path == CLOCK_ROOM {
        return Vec::new();
    }
    let mut read: Vec<(&[&str], &str)> = CLOCKS.iter().map(|&clock| (clock, CLOCK_ROOM)).collect();
    // `.raw()` is a common name for handles; it is the clock's in core, and wherever a clock is named.
    let near_a_clock = source.room() == Some("core") || source.find(&["clock"]).next().is_some();
    if near_a_clock && source.path != TIMED_LOOP {
        read.push((&[".", "raw", "("], TIMED_LOOP));
    }
    if source.path != DATE_ROOM {
        read.extend(DATES.iter().map(|&date| (date, DATE_ROOM)));
    }
    read.iter()
        .flat_map(|(pattern, room)| {
            let what = format!("`{}` belongs in {room} alone", pattern.concat());
            let code = source.find(pattern).filter(|token| !token.test);
            code.map(move |token| Violation::new(&source.path, token.line, what.clone()))
        })
        .collect()
}

fn printing(source: &Source) -> Vec<Violation> {
    if !source.is_crate() || !source.room().is_some_and(|room| SILENT.contains(&room)) {
        return Vec::new();
    }
    ["println", "eprintln", "print", "eprint", "dbg"]
        .iter()
        .flat_map(|name| {
            let pattern = [*name, "!"];
            let code: Vec<usize> =
                source.find(&pattern).filter(|token| !token.test).map(|token| token.line).collect();
            code.into_iter()
                .map(move |line| Violation::new(&source.path, line, format!("a library prints: `{name}!`")))
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
    fn unsafe_code_has_one_room() {
        let text = "//! x\nfn f() { unsafe { g() } }";
        assert_eq!(lines("crates/rma/src/window.rs", text), [2]);
        assert_eq!(lines("tests/src/lib.rs", text), [2]);
        assert!(lines("crates/mpi/src/window.rs", text).is_empty());
        assert!(lines("crates/sockets/src/pipeline/shared_memory.rs", text).is_empty());
        assert_eq!(lines("crates/sockets/src/pipeline/shared.rs", text), [2]);
    }

    #[test]
    fn clocks_have_one_room() {
        let text = "use std::time;\nfn f() { let _ = time::Instant::now(); }";
        assert_eq!(lines("crates/cli/src/launch.rs", text), [2]);
        assert!(lines(CLOCK_ROOM, text).is_empty());
        assert!(lines("crates/mpi/tests/ranks.rs", text).is_empty());
        assert!(lines("xtask/src/step.rs", text).is_empty());
        assert!(
            lines("crates/core/src/stop.rs", "#[cfg(test)]\nmod tests { fn f() { Instant::now(); } }")
                .is_empty()
        );
    }

    #[test]
    fn raw_readings_are_for_the_timed_loop() {
        let reads = "use quanta::Clock;\nfn f(c: &C) { c.raw(); }";
        assert_eq!(lines("crates/core/src/stop.rs", reads), [1, 2]);
        assert_eq!(lines(TIMED_LOOP, reads), [1]);
        assert_eq!(
            lines(
                "crates/p2p/src/a.rs",
                "use ombx_core::system::clock;\nfn f(c: &clock::Clock) { c.raw(); }"
            ),
            [2]
        );
        assert!(lines("crates/mpi/src/comm.rs", "fn f(c: &C) { c.raw(); }").is_empty());
    }

    #[test]
    fn the_date_is_asked_for_in_one_file() {
        assert_eq!(lines("crates/core/src/result.rs", "fn f() { jiff::Timestamp::now(); }"), [1]);
        assert!(lines(DATE_ROOM, "fn f() { jiff::Timestamp::now(); SystemTime::now(); }").is_empty());
    }

    #[test]
    fn libraries_are_silent() {
        let text =
            "fn f() {\n println!(\"x\");\n let print = 1;\n}\n#[cfg(test)]\nmod t { fn g() { dbg!(1); } }";
        assert_eq!(lines("crates/core/src/render.rs", text), [2]);
        assert!(lines("crates/cli/src/main.rs", text).is_empty());
        assert!(lines("crates/core/tests/api.rs", text).is_empty());
    }
}
