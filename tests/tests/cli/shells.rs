//! Completion in real shells: each is started in a terminal, reads the script of ombx, and gets keys.

use ombx_tests::{missing, mpi, skipped, terminal::Terminal};

/// Starts a shell with the script of ombx. Returns `None` with a note if a program is missing.
fn shell(program: &[&str], setup: &str) -> Option<Terminal> {
    let missing = missing(&["tmux", program[0]]);
    if !missing.is_empty() {
        skipped(&format!("not installed: {}", missing.join(", ")));
        return None;
    }
    let path = mpi::ombx().parent().expect("a directory");
    let terminal = Terminal::start(150, program, path);
    terminal.until("a prompt", |screen| !screen.is_empty());
    terminal.types(setup);
    terminal.types("; echo re''ady");
    terminal.presses(&["Enter"]);
    terminal.until("the script is read", |screen| screen.lines().any(|line| line == "ready"));
    Some(terminal)
}

/// Types the beginning of a command line, presses Tab, and waits for a text on the screen. Then it clears both.
fn complete(terminal: &Terminal, typed: &str, expected: &str) -> String {
    terminal.types(typed);
    terminal.presses(&["Tab"]);
    let screen = terminal.until_shown(expected);
    terminal.presses(&["C-u"]);
    terminal.types(" clear");
    terminal.presses(&["Enter"]);
    terminal.until("an empty screen", |screen| !screen.contains(expected));
    screen
}

/// Completes names of every kind.
fn complete_names(terminal: &Terminal) {
    complete(terminal, "ombx run p2p.latency_pe", "ombx run p2p.latency_persistent");
    complete(terminal, "ombx run suite:sm", "ombx run suite:smoke");
    complete(terminal, "ombx osu osu_put_bi", "ombx osu osu_put_bibw");
    complete(terminal, "ombx run osu_put_bi", "ombx run osu_put_bibw");
    complete(terminal, "ombx run rma.put_bw --sync=fen", "ombx run rma.put_bw --sync=fence");
    complete(terminal, "ombx run rma.put_bw --sync lock,fen", "--sync lock,fence");
    complete(terminal, "ombx run 'rma.cas", "ombx run 'rma.cas_latency'");
    complete(terminal, "ombx run rma.put_bw --hin", "ombx run rma.put_bw --hints");
    complete(terminal, "ombx help exit", "ombx help exit-codes");
}

#[test]
fn bash_completes() {
    let Some(bash) = shell(&["bash", "--norc", "--noprofile"], "source <(ombx completions bash)") else {
        return;
    };
    complete_names(&bash);
    bash.types("ombx ");
    bash.presses(&["Tab", "Tab"]);
    let screen = bash.until_shown("completions");
    assert!(
        screen.contains("doctor") && !screen.contains("worker") && !screen.contains("codegen"),
        "{screen}"
    );
}

#[test]
fn zsh_completes() {
    let setup = "autoload -U compinit; compinit -u -D; source <(ombx completions zsh)";
    let Some(zsh) = shell(&["zsh", "-f"], setup) else { return };
    complete_names(&zsh);
    let screen = complete(&zsh, "ombx ", "Compare two MPI libraries");
    assert!(!screen.contains("worker") && !screen.contains("codegen"), "{screen}");
}

#[test]
fn fish_completes() {
    let Some(fish) = shell(&["fish", "--no-config"], "ombx completions fish | source") else { return };
    complete_names(&fish);
    let screen = complete(&fish, "ombx ", "Compare two MPI libraries");
    assert!(!screen.contains("worker") && !screen.contains("codegen"), "{screen}");
}
