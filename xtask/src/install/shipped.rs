//! Release builds that leave this machine: stripped, and without paths of the machine.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use ombx_toolchain::{Mpi, Result, Step, cargo, output, release};

/// Separator of the options in `CARGO_ENCODED_RUSTFLAGS`.
const SEPARATOR: &str = "\u{1f}";

/// Sources of ombx, and where their builds go.
pub(crate) struct Sources {
    pub(crate) root: PathBuf,
    /// Directory of builds.
    pub(crate) target: PathBuf,
    /// Directory in place of the user's cargo directory, if the sources contain all dependencies.
    vendored: Option<PathBuf>,
}

impl Sources {
    /// Returns sources whose dependencies come from the cargo directory of the user.
    pub(crate) fn new(root: &Path, target: &Path) -> Self {
        Self { root: root.into(), target: target.into(), vendored: None }
    }

    /// Returns sources that contain their dependencies. They are built offline and with an empty cargo directory.
    pub(crate) fn vendored(root: &Path, target: &Path, cargo_home: &Path) -> Self {
        Self { vendored: Some(cargo_home.into()), ..Self::new(root, target) }
    }

    /// Builds ombx with each MPI and returns the binaries with the names of the MPIs in paths.
    pub(crate) fn build_all(&self, mpis: &[Mpi]) -> Result<Vec<(String, PathBuf)>> {
        mpis.iter().map(|mpi| Ok((mpi.flavour.key().to_owned(), self.build(mpi)?))).collect()
    }

    fn build(&self, mpi: &Mpi) -> Result<PathBuf> {
        let mut command = self.release_build("build")?;
        mpi.build_with(&mut command, &self.target);
        Step::run(format!("{} ombx", mpi.flavour), &mut command).built()?;
        Ok(mpi.target(&self.target).join("release/ombx"))
    }

    /// Returns a command that makes a stripped release build of ombx without paths of this machine.
    pub(crate) fn release_build(&self, verb: &str) -> Result<Command> {
        let mut command = self.cargo();
        command.args([verb, "--release", "--locked", "-p", "ombx-cli"]).args(release::INSTALLED);
        command.env("CARGO_ENCODED_RUSTFLAGS", self.flags()?);
        // A C compiler writes names of files too, in assertions and debug information.
        let map = format!("-ffile-prefix-map={}=ombx", self.root.display());
        command.env("CFLAGS", [env::var("CFLAGS").unwrap_or_default(), map].join(" ").trim());
        Ok(command)
    }

    /// Returns a cargo command in the sources.
    pub(crate) fn cargo(&self) -> Command {
        let mut command = cargo();
        command.current_dir(&self.root);
        // The directory of a build of xtask itself is not that of these sources.
        command.env_remove("CARGO_MANIFEST_DIR").env_remove("CARGO_MANIFEST_PATH");
        if let Some(home) = &self.vendored {
            command.env("CARGO_HOME", home).env("CARGO_NET_OFFLINE", "true");
        }
        command
    }

    /// Returns the compiler options of the user, and those that replace paths of this machine.
    fn flags(&self) -> Result<String> {
        let own = match (env::var("CARGO_ENCODED_RUSTFLAGS"), env::var("RUSTFLAGS")) {
            (Ok(encoded), _) => encoded.split(SEPARATOR).map(str::to_owned).collect(),
            (_, Ok(flags)) => flags.split_whitespace().map(str::to_owned).collect(),
            _ => Vec::new(),
        };
        let flags = own.into_iter().filter(|flag| !flag.is_empty());
        Ok(flags.chain(self.replacements(&sysroot(&self.root)?)).collect::<Vec<_>>().join(SEPARATOR))
    }

    /// Returns an option for each directory. If a path is in several, the last one counts.
    fn replacements(&self, sysroot: &Path) -> Vec<String> {
        let home = env::var_os("HOME").map(PathBuf::from);
        let cargo_home = self.vendored.clone().or_else(|| env::var_os("CARGO_HOME").map(PathBuf::from));
        let cargo_home = cargo_home.or_else(|| Some(home.as_ref()?.join(".cargo")));
        let directories = [
            (home, "home"),
            (Some(sysroot.into()), "rust"),
            (cargo_home, "cargo"),
            (Some(self.root.clone()), "ombx"),
            (Some(self.target.clone()), "target"),
        ];
        let known = directories.into_iter().filter_map(|(from, to)| Some((from?, to)));
        known.map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display())).collect()
    }
}

/// Returns the directory of the toolchain that compiles in a directory.
pub(super) fn sysroot(root: &Path) -> Result<PathBuf> {
    let printed = output(Command::new(rustc()).args(["--print", "sysroot"]).current_dir(root))?;
    Ok(printed.trim().into())
}

pub(super) fn rustc() -> PathBuf {
    env::var_os("RUSTC").map_or_else(|| PathBuf::from("rustc"), PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_specific_directory_is_the_last_option() {
        let sources =
            Sources::vendored(Path::new("/home/x/ombx"), Path::new("/home/x/ombx/target"), Path::new("/c"));
        let options = sources.replacements(Path::new("/home/x/.rustup/stable"));
        let last = options.iter().rev().take(3).map(String::as_str).collect::<Vec<_>>();
        assert_eq!(
            last,
            [
                "--remap-path-prefix=/home/x/ombx/target=target",
                "--remap-path-prefix=/home/x/ombx=ombx",
                "--remap-path-prefix=/c=cargo",
            ]
        );
    }
}
