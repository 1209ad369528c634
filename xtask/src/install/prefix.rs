//! The files below the prefix of an installation.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::{Path, PathBuf},
    process::Command,
};

use ombx_toolchain::{Failure, Result, emptied, output};

use super::{links, parts::Parts};

/// Folder with one build of ombx per MPI.
const BUILDS: &str = "libexec/ombx";
/// Folder with the terms of what others have written of the binaries.
pub(crate) const LICENSES: &str = "share/doc/ombx/licenses";
/// List of it, in the form of CycloneDX.
pub(crate) const BILL: &str = "share/doc/ombx/ombx.cdx.json";
/// Script in `bin` that starts one of them.
const SCRIPT: &str = "packaging/ombx.sh";
/// Version of ombx, which is that of the whole workspace.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Shells, and the files in which they search the completions of a command.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/ombx"),
    ("zsh", "share/zsh/site-functions/_ombx"),
    ("fish", "share/fish/vendor_completions.d/ombx.fish"),
];
/// Zsh reads the file when the first completion is asked for, and then calls nothing. This line answers the first one too.
const FIRST_IN_ZSH: &str = "\n[[ $funcstack[1] != _ombx ]] || _clap_dynamic_completer_ombx \"$@\"\n";

/// Directory of an installation.
pub(crate) struct Prefix(PathBuf);

/// What is installed.
pub(crate) struct Contents<'a> {
    /// Root of the sources.
    pub(crate) root: &'a Path,
    /// Binaries of ombx, each with the name of its MPI in paths.
    pub(crate) builds: &'a [(String, PathBuf)],
    pub(crate) parts: &'a Parts,
    /// Whether a module file is installed. A package has none, because its programs are in the search path.
    pub(crate) modulefile: bool,
}

impl Prefix {
    /// Takes a directory that is missing, empty, or an earlier installation. Others hold files of somebody else.
    pub(crate) fn claim(directory: &Path) -> Result<Self> {
        let is_ours = directory.join(BUILDS).is_dir();
        let mut entries = fs::read_dir(directory).into_iter().flatten().flatten();
        // Spack keeps its records in a hidden folder of the prefix.
        let is_empty = entries.all(|entry| entry.file_name().as_encoded_bytes().starts_with(b"."));
        if is_ours || is_empty {
            return Ok(Self(directory.into()));
        }
        Err(Failure::Usage(format!(
            "{} holds other files: choose a directory for ombx alone, which can be deleted as a whole",
            directory.display()
        )))
    }

    /// Writes all files. Builds of an earlier installation are removed.
    pub(crate) fn fill(&self, contents: &Contents<'_>) -> Result<()> {
        let Contents { root, builds, parts, modulefile } = contents;
        let Some((first, _)) = builds.first() else { return Ok(()) };
        let first = &self.binary(first);
        emptied(&self.0.join(BUILDS))?;
        for (name, binary) in *builds {
            self.copy(binary, &format!("{BUILDS}/{name}/ombx"), 0o755)?;
        }
        self.copy(&root.join(SCRIPT), "bin/ombx", 0o755)?;
        links::create(&self.0, first)?;
        self.manual_pages(first)?;
        self.copy_folder(&root.join("suites"), "share/ombx/suites")?;
        for name in ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"] {
            self.copy(&root.join(name), &format!("share/doc/ombx/{name}"), 0o644)?;
        }
        self.terms(parts)?;
        for (shell, path) in COMPLETIONS {
            // The script asks the program of this name.
            let mut script = output(Command::new(first).arg0("ombx").args(["completions", shell]))?;
            script += if shell == "zsh" { FIRST_IN_ZSH } else { "" };
            self.write(path, &script)?;
        }
        if *modulefile {
            let template = root.join("packaging/modulefile.tcl");
            let text = fs::read_to_string(&template).map_err(Failure::file(template))?;
            self.write(&format!("share/modulefiles/ombx/{VERSION}"), &text.replace("@VERSION@", VERSION))?;
        }
        Ok(())
    }

    /// Writes the terms of what others have written of the binaries, and its list.
    fn terms(&self, parts: &Parts) -> Result<()> {
        for (name, text) in parts.licenses() {
            self.write(&format!("{LICENSES}/{name}"), &text)?;
        }
        self.write(BILL, &parts.bill(VERSION))
    }

    /// Returns the path of the binary for an MPI.
    pub(crate) fn binary(&self, name: &str) -> PathBuf {
        self.0.join(BUILDS).join(name).join("ombx")
    }

    /// Writes a manual page for each command, as this build of ombx describes them.
    fn manual_pages(&self, ombx: &Path) -> Result<()> {
        let printed = output(Command::new(ombx).args(["codegen", "man"]))?;
        let pages: BTreeMap<String, String> = serde_json::from_str(&printed)
            .map_err(|source| Failure::Output { program: "ombx codegen man", source })?;
        pages.iter().try_for_each(|(name, text)| {
            self.write(&format!("share/man/man1/{name}"), &format!("{}\n", text.trim_end()))
        })
    }

    fn copy_folder(&self, from: &Path, to: &str) -> Result<()> {
        for entry in fs::read_dir(from).map_err(Failure::file(from))? {
            let entry = entry.map_err(Failure::file(from))?;
            self.copy(&entry.path(), &format!("{to}/{}", entry.file_name().to_string_lossy()), 0o644)?;
        }
        Ok(())
    }

    fn copy(&self, from: &Path, to: &str, mode: u32) -> Result<()> {
        let content = fs::read(from).map_err(Failure::file(from))?;
        self.place(to, &content, mode)
    }

    fn write(&self, to: &str, text: &str) -> Result<()> {
        self.place(to, text.as_bytes(), 0o644)
    }

    /// Writes a file beside its place and renames it: a program that runs cannot be overwritten.
    fn place(&self, to: &str, content: &[u8], mode: u32) -> Result<()> {
        let path = self.0.join(to);
        let new = path.with_extension("new");
        let written = || {
            path.parent().map_or(Ok(()), fs::create_dir_all)?;
            fs::write(&new, content)?;
            fs::set_permissions(&new, fs::Permissions::from_mode(mode))?;
            fs::rename(&new, &path)
        };
        written().map_err(Failure::file(&path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_of_others_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        assert!(Prefix::claim(&path.join("new")).is_ok() && Prefix::claim(path).is_ok());
        fs::create_dir(path.join(".spack")).unwrap();
        assert!(Prefix::claim(path).is_ok());
        fs::write(path.join("file"), "").unwrap();
        let refused = Prefix::claim(path).err().unwrap();
        assert_eq!(refused.code(), 2);
        fs::create_dir_all(path.join(BUILDS)).unwrap();
        assert!(Prefix::claim(path).is_ok());
    }

    #[test]
    fn a_file_is_replaced_with_its_mode() {
        let directory = tempfile::tempdir().unwrap();
        let prefix = Prefix(directory.path().into());
        prefix.place("bin/ombx", b"old", 0o644).unwrap();
        prefix.place("bin/ombx", b"new", 0o755).unwrap();
        let file = directory.path().join("bin/ombx");
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o755);
        assert_eq!(fs::read_dir(directory.path().join("bin")).unwrap().count(), 1);
    }
}
