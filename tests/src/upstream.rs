//! Sources of other programs, of which a test runs a part.

use std::{
    env, fs,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{Job, missing};

/// Time limit of a clone.
const CLONE: Duration = Duration::from_secs(120);

/// Returns the directory that a variable names, or a clone of a tag that is made once below `directory`. An error is the reason why there is
/// none.
pub fn sources(variable: &str, directory: &Path, address: &str, tag: &str) -> Result<PathBuf, String> {
    if let Some(sources) = env::var_os(variable) {
        return Ok(sources.into());
    }
    let sources = directory.join(variable);
    if sources.join(".git/HEAD").exists() {
        return Ok(sources);
    }
    if !missing(&["git"]).is_empty() {
        return Err("git is not installed".into());
    }
    let clone = ["clone", "--quiet", "--depth=1", "--branch", tag, address];
    let done = Job::new("git").args(clone).arg(&sources).env("GIT_TERMINAL_PROMPT", "0").limit(CLONE).run();
    if done.code != Some(0) {
        let _ = fs::remove_dir_all(&sources);
        return Err(format!("{address} cannot be cloned, and {variable} names no directory"));
    }
    Ok(sources)
}
