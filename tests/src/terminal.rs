//! A terminal of tmux: a program on a screen of a chosen size, the keys that a user presses, and what the screen shows.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use ombx_host::since::Since;
use tempfile::TempDir;

/// Time limit of what a test waits for.
const LIMIT: Duration = Duration::from_secs(60);
/// Interval between two looks at the screen.
const POLL: Duration = Duration::from_millis(50);

/// Server of tmux with one screen. Dropping it ends the server and the program.
pub struct Terminal {
    socket: PathBuf,
    directory: TempDir,
}

impl Terminal {
    /// Starts a program on a screen with this many columns and 50 lines. `path` is searched for programs first.
    pub fn start(columns: u32, program: &[&str], path: &Path) -> Terminal {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let terminal = Terminal { socket: directory.path().join("tmux"), directory };
        let mut searched = vec![path.to_owned()];
        searched.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
        let searched = std::env::join_paths(searched).expect("a search path");
        let mut tmux = terminal.tmux(&["new-session", "-d", "-x", &columns.to_string(), "-y", "50"]);
        for name in ["NO_COLOR", "CLICOLOR_FORCE", "CLICOLOR", "COLUMNS"] {
            tmux.env_remove(name);
        }
        tmux.env("PATH", searched).args(program);
        assert!(tmux.status().expect("tmux can be started").success(), "{tmux:?}");
        let copy = format!("cat >'{}'", terminal.directory.path().join("output").display());
        terminal.command(&["pipe-pane", &copy]);
        terminal
    }

    fn tmux(&self, words: &[impl AsRef<OsStr>]) -> Command {
        let mut tmux = Command::new("tmux");
        tmux.arg("-S").arg(&self.socket).args(["-f", "/dev/null"]).args(words).stdin(Stdio::null());
        tmux
    }

    /// Types a text.
    pub fn types(&self, text: &str) {
        self.keys(&["-l", text]);
    }

    /// Presses keys by their names, such as `Enter`, `Tab` and `C-c`.
    pub fn presses(&self, keys: &[&str]) {
        self.keys(keys);
    }

    fn keys(&self, words: &[&str]) {
        self.command(&[&["send-keys"], words].concat());
    }

    fn command(&self, words: &[&str]) {
        let status = self.tmux(words).status().expect("tmux can be started");
        assert!(status.success(), "tmux refuses {words:?}");
    }

    /// Returns everything that was written to the terminal so far, also what the screen shows no more.
    pub fn output(&self) -> String {
        let output = fs::read(self.directory.path().join("output")).unwrap_or_default();
        String::from_utf8_lossy(&output).into_owned()
    }

    /// Returns the lines on the screen without blanks at their ends, up to the last one that is not empty.
    pub fn screen(&self) -> String {
        let shown = self.tmux(&["capture-pane", "-p"]).output().expect("tmux can be started");
        let text = String::from_utf8_lossy(&shown.stdout).into_owned();
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        lines.join("\n").trim_end().to_owned()
    }

    /// Returns the lines on the screen as they were printed: a line that the terminal broke is one line.
    pub fn printed(&self) -> Vec<String> {
        let shown = self.tmux(&["capture-pane", "-p", "-J"]).output().expect("tmux can be started");
        let text = String::from_utf8_lossy(&shown.stdout).into_owned();
        text.lines().map(|line| line.trim_end().to_owned()).collect()
    }

    /// Waits until the screen fulfils a condition, and returns it. Panics at the time limit.
    #[track_caller]
    pub fn until(&self, what: &str, condition: impl Fn(&str) -> bool) -> String {
        let since = Since::now();
        loop {
            let screen = self.screen();
            if condition(&screen) {
                return screen;
            }
            assert!(since.elapsed() < LIMIT, "this did not happen: {what}\n{screen}");
            thread::sleep(POLL);
        }
    }

    /// Waits until the screen shows a text.
    #[track_caller]
    pub fn until_shown(&self, text: &str) -> String {
        self.until(text, |screen| screen.contains(text))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.tmux(&["kill-server"]).status();
    }
}
