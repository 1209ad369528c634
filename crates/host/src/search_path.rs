//! The search path of programs.

use std::{env, path::PathBuf};

/// Returns the first file of this name in the directories of `PATH`, or the file of this path.
pub fn find(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|file| file.is_file());
    }
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|directory| directory.join(name)).find(|file| file.is_file())
}

/// Returns whether there is such a program.
pub fn has(program: &str) -> bool {
    find(program).is_some()
}
