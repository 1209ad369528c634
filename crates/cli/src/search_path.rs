//! The search path of programs.

use std::{
    env,
    path::{Path, PathBuf},
};

/// Returns the first file of this name in the directories of `PATH`.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|directory| directory.join(name)).find(|file| file.is_file())
}

pub(crate) fn has(program: &str) -> bool {
    if program.contains('/') { Path::new(program).is_file() } else { find(program).is_some() }
}
