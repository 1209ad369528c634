//! The program `reframe`, and its checks in `packaging/reframe`.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::Value;

use crate::{Job, missing};

/// Time limit of an installation of ReFrame from the package index.
const INSTALLATION: Duration = Duration::from_secs(300);

/// Returns `reframe` of the search path, else of an environment that is installed once below `directory`. An error is the reason why
/// there is none.
pub fn program(directory: &Path) -> Result<PathBuf, String> {
    if missing(&["reframe"]).is_empty() {
        return Ok("reframe".into());
    }
    let directory = directory.join("reframe");
    let program = directory.join("bin/reframe");
    // The mark is the last file that is written: an installation that was interrupted has none.
    let installed = directory.join("installed");
    if installed.exists() {
        return Ok(program);
    }
    if !missing(&["python3"]).is_empty() {
        return Err("python3 is not installed".into());
    }
    let _ = fs::remove_dir_all(&directory);
    let environment = Job::new("python3").args(["-m", "venv"]).arg(&directory).limit(INSTALLATION).run();
    let pip = ["-q", "--no-input", "--retries=1", "--timeout=20", "install", "reframe-hpc>=4.8,<5"];
    let done = match environment.code {
        Some(0) => Job::new(directory.join("bin/pip")).args(pip).limit(INSTALLATION).run(),
        _ => environment,
    };
    if done.code != Some(0) {
        let line = done.stderr.lines().chain(done.stdout.lines()).find(|line| !line.trim().is_empty());
        return Err(format!("ReFrame cannot be installed: {}", line.unwrap_or("no reason was printed")));
    }
    fs::write(installed, "").map_err(|e| e.to_string())?;
    Ok(program)
}

/// Returns the directory of the checks.
pub fn checks() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/reframe")
}

/// Results of one run, as ReFrame reports them.
pub struct Report(Vec<Value>);

impl Report {
    /// Reads the file of `--report-file`.
    ///
    /// # Panics
    /// Panics if the file has another form.
    #[track_caller]
    pub fn read(file: &Path) -> Report {
        let text = fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        let report: Value = serde_json::from_str(&text).expect("a report");
        Report(report["runs"][0]["testcases"].as_array().expect("test cases").clone())
    }

    /// Returns how many checks ran.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns a check by its name with its parameters.
    ///
    /// # Panics
    /// Panics if no check has this name.
    #[track_caller]
    pub fn case(&self, name: &str) -> &Value {
        let found = self.0.iter().find(|case| case["name"] == name);
        found.unwrap_or_else(|| panic!("ReFrame has run no check {name}"))
    }

    /// Panics unless the check failed for this reason.
    #[track_caller]
    pub fn fails(&self, name: &str, why: &str) {
        let case = self.case(name);
        assert_eq!(case["result"], "fail", "{name}: {case}");
        let reason = case["fail_reason"].as_str().unwrap_or_default();
        assert!(reason.contains(why), "{name}: {reason}");
    }

    /// Panics unless the check passed with this many performance variables. On a busy machine a row may have no interval, and then
    /// two variables fewer.
    #[track_caller]
    pub fn passes(&self, name: &str, variables: usize) {
        let case = self.case(name);
        assert_eq!(case["result"], "pass", "{name}: {case}");
        let count = case["perfvalues"].as_object().map_or(0, |values| values.len());
        assert!(count == variables || count == 1, "{case}");
    }
}
