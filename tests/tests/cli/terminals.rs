//! Terminals of 60, 80 and 120 columns: tables without broken rows, and progress that leaves nothing behind.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use ombx_tests::{Job, missing, mpi, skipped, terminal::Terminal};

/// Starts a shell in a terminal. Returns `None` with a note if tmux is missing.
fn terminal(columns: u32) -> Option<Terminal> {
    if !missing(&["tmux"]).is_empty() {
        skipped("not installed: tmux");
        return None;
    }
    Some(Terminal::start(columns, &["sh"], mpi::ombx().parent().expect("a directory")))
}

/// Types a command and returns the screen at its end. The number of the end is another one for each command, because the screen
/// still shows the end of the command before until the shell has cleared it.
fn run(terminal: &Terminal, command: &str) -> String {
    static COMMANDS: AtomicU32 = AtomicU32::new(0);
    let number = COMMANDS.fetch_add(1, Relaxed);
    let mpiexec = mpi::mpiexec().display();
    terminal.types(&format!(" clear; OMBX_MPIEXEC={mpiexec} {command}; echo en''ded {number}"));
    terminal.presses(&["Enter"]);
    let ended = format!("ended {number}");
    terminal.until("the end", |screen| screen.lines().any(|line| line == ended))
}

#[test]
fn tables_fit_and_progress_is_erased() {
    for columns in [60, 80, 120] {
        let Some(terminal) = terminal(columns) else { return };
        let options = "--sizes 8,64K --launches 3 --max-time 20ms --no-verify";
        let screen = run(&terminal, &format!("ombx run p2p.latency {options}"));
        assert!(!screen.contains("left ·") && !screen.contains("launch 1 of"), "{columns} columns\n{screen}");
        let printed = terminal.printed();
        let broken = printed.iter().find(|line| line.chars().count() > columns as usize);
        assert_eq!(broken, None, "{columns} columns\n{screen}");
        let title = printed.iter().find(|line| line.trim_start().starts_with("bytes")).expect("a table");
        assert_eq!(title.contains("min launch"), columns == 120, "{columns} columns\n{screen}");
        for size in ["8 ", "64K "] {
            let row = printed.iter().filter(|line| line.trim_start().starts_with(size));
            assert_eq!(row.count(), 1, "{columns} columns\n{screen}");
        }
    }
}

#[test]
fn progress_of_all_launches_has_one_line() {
    let Some(terminal) = terminal(60) else { return };
    let options = "--sizes 8..1K --launches 4 --duration 100ms --no-verify";
    let command = format!("OMBX_MPIEXEC={} ombx run p2p.latency {options}", mpi::mpiexec().display());
    terminal.types(&format!(" clear; {command}; echo en''ded"));
    terminal.presses(&["Enter"]);
    let screen = terminal.until("the end", |screen| {
        let bars = screen.lines().filter(|line| line.contains("launch ")).count();
        assert!(bars <= 1 && screen.lines().all(|line| line.chars().count() <= 60), "{screen}");
        screen.lines().any(|line| line == "ended")
    });
    assert!(!screen.contains("launch 4 of 4"), "{screen}");
    // A screen may be shown for too short a time to be seen.
    terminal.until("a bar of each launch", |_| {
        let output = terminal.output();
        ["launch 1 of 4", "launch 3 of 4"].iter().all(|launch| output.contains(launch))
    });
}

#[test]
fn a_map_of_links_fills_and_is_erased() {
    let Some(terminal) = terminal(80) else { return };
    // The first map is drawn after half a second, so that the rows must last longer on any machine.
    let command = "ombx links -n 4 --fabric tcp --sizes 8 --min-time 300ms --max-time 500ms --no-verify \
                   --retest 0 --follow --fail-on nothing";
    terminal.types(&format!(" clear; {command}; echo en''ded"));
    terminal.presses(&["Enter"]);
    let screen = terminal.until("the end", |screen| screen.lines().any(|line| line == "ended"));
    assert!(!screen.contains("so far"), "{screen}");
    // The bar is above the map.
    terminal.until("a map", |_| {
        let output = terminal.output();
        let map = output.find("links so far, 8 bytes: ");
        map.is_some_and(|map| output[..map].contains("left ·"))
    });
}

#[test]
fn a_map_of_links_is_printed_after_each_quarter_without_a_terminal() {
    let line = "links -n 4 --fabric tcp --sizes 8 --max-time 20ms --retest 0 --follow --fail-on nothing";
    let done = Job::ombx(line).run().expect(0);
    let maps: Vec<&str> = done.stderr.lines().filter(|line| line.starts_with("links so far")).collect();
    assert_eq!(maps, [2, 4, 5, 6].map(|links| format!("links so far, 8 bytes: {links}")), "{done}");
    assert!(!done.stdout.contains("so far"), "{done}");
    Job::ombx("links -n 4 --fabric tcp --follow --quiet").run().expect(2);
}

#[test]
fn dumb_terminals_and_variables_turn_colours_off_and_on() {
    let Some(terminal) = terminal(120) else { return };
    let command = "ombx run p2p.latency --sizes 8 --quick --iterations 10 -q | grep -c \"$(printf '\\033')\"";
    for (variables, coloured) in
        [("CLICOLOR_FORCE=1", true), ("NO_COLOR=1 CLICOLOR_FORCE=1", false), ("", false)]
    {
        let screen = run(&terminal, &format!("env {variables} {command}"));
        let lines = screen.lines().find_map(|line| line.trim().parse::<u32>().ok()).expect("a count");
        assert_eq!(lines > 0, coloured, "{variables}\n{screen}");
    }
    let screen = run(&terminal, "env TERM=dumb ombx run p2p.latency --sizes 8 --launches 2 --max-time 100ms");
    assert!(!screen.contains("left ·"), "{screen}");
}

/// Open MPI's mpirun gives ranks a pseudo-terminal, wherever the user's output goes.
#[test]
fn ranks_of_a_launcher_print_no_escape_sequences_into_a_pipe() {
    for (ranks, arguments) in [(2, "run p2p.latency --sizes 8 --iterations 10"), (1, "help run"), (1, "list")]
    {
        let done = Job::mpiexec(ranks, arguments).run().expect(0);
        assert!(!done.stdout.contains('\x1b') && !done.stderr.contains('\x1b'), "{done}");
    }
}

#[test]
fn lists_are_as_wide_as_the_terminal() {
    for columns in [60usize, 80, 120] {
        for arguments in
            ["list", "list --long rma.put_bw collective.iallreduce", "help marks", "help exit-codes"]
        {
            let list = Job::ombx(arguments).env("COLUMNS", columns.to_string()).run().expect(0).stdout;
            let long = list.lines().find(|line| line.chars().count() > columns);
            assert_eq!(long, None, "{arguments}, {columns} columns");
        }
    }
}
