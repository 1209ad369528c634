//! Paths of the machine that built a binary.

use std::{env, fs, path::Path};

use ombx_toolchain::{Failure, Result};

/// Fails if a binary contains the path of one of these directories, or of the user's home directory.
pub(super) fn check(binary: &Path, directories: &[&Path]) -> Result<()> {
    let content = fs::read(binary).map_err(Failure::file(binary))?;
    let home = env::var("HOME").unwrap_or_default();
    let searched = directories.iter().map(|directory| directory.display().to_string());
    for directory in searched.chain([home]).filter(|directory| directory.len() > 1) {
        if let Some(found) = find(&content, format!("{directory}/").as_bytes()) {
            return Err(Failure::Missing(format!(
                "{} contains a path of this machine: {found}. Add its directory to xtask/src/install/shipped.rs",
                binary.display()
            )));
        }
    }
    Ok(())
}

/// Returns the text that begins with a path, if the content has it.
fn find(content: &[u8], path: &[u8]) -> Option<String> {
    let at = content.windows(path.len()).position(|window| window == path)?;
    let text = content[at..].iter().take(200).take_while(|byte| byte.is_ascii_graphic());
    Some(text.map(|byte| char::from(*byte)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_the_build_is_found() {
        let directory = tempfile::tempdir().unwrap();
        let binary = directory.path().join("binary");
        let path = directory.path().join("work");
        fs::write(&binary, b"\0/rustc/library/core\0workspace\0").unwrap();
        assert!(check(&binary, &[&path]).is_ok());
        fs::write(&binary, format!("\0{}/src/main.rs\0", path.display())).unwrap();
        let why = check(&binary, &[&path]).unwrap_err().to_string();
        assert!(why.contains("/work/src/main.rs. Add"), "{why}");
    }
}
