//! The MPIs of this machine: compiler wrappers, their launchers and versions.

use std::{
    env, fmt,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::failure::Failure;

/// MPI implementation that ombx is built and tested with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// MPICH.
    Mpich,
    /// Open MPI.
    OpenMpi,
}

/// Choice of MPIs on a command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Which {
    /// MPICH alone.
    Mpich,
    /// Open MPI alone.
    Openmpi,
    /// Both.
    All,
}

/// Usable MPI: a compiler wrapper that proved to be of its flavour, and its launcher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mpi {
    /// Its implementation.
    pub flavour: Flavour,
    /// Its compiler wrapper.
    pub mpicc: PathBuf,
    /// Its launcher.
    pub mpiexec: PathBuf,
    /// Its version, as the wrapper reports it.
    pub version: String,
}

/// Search path of programs.
#[derive(Clone, Debug)]
pub struct Places {
    /// `$MPICC`, if set.
    pub mpicc: Option<PathBuf>,
    /// Directories, in order.
    pub directories: Vec<PathBuf>,
}

impl Flavour {
    /// All implementations.
    pub const ALL: [Self; 2] = [Self::Mpich, Self::OpenMpi];

    /// Returns MPICH, unless only Open MPI is installed.
    pub fn preferred(places: &Places) -> Self {
        Self::ALL.into_iter().find(|&flavour| Mpi::find(flavour, places).is_ok()).unwrap_or(Self::Mpich)
    }

    /// Returns the name of the MPI in paths and options.
    pub fn key(self) -> &'static str {
        match self {
            Self::Mpich => "mpich",
            Self::OpenMpi => "openmpi",
        }
    }

    fn launchers(self) -> &'static [&'static str] {
        match self {
            Self::Mpich => &["mpiexec.mpich", "mpiexec.hydra", "mpiexec", "mpirun"],
            Self::OpenMpi => &["mpiexec.openmpi", "mpiexec", "mpirun"],
        }
    }
}

impl fmt::Display for Flavour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Mpich => "MPICH",
            Self::OpenMpi => "Open MPI",
        })
    }
}

impl Which {
    /// Returns the chosen implementations.
    pub fn flavours(self) -> &'static [Flavour] {
        match self {
            Self::Mpich => &[Flavour::Mpich],
            Self::Openmpi => &[Flavour::OpenMpi],
            Self::All => &Flavour::ALL,
        }
    }
}

impl Places {
    /// Returns `PATH`, and directories of MPIs that distributions put on it only through environment modules.
    pub fn here() -> Self {
        let mut directories: Vec<PathBuf> =
            env::var_os("PATH").map(|path| env::split_paths(&path).collect()).unwrap_or_default();
        // The first two are of Fedora and its derivatives; openSUSE has the version in the directory name.
        for flavour in Flavour::ALL {
            directories.push(Path::new("/usr/lib64").join(flavour.key()).join("bin"));
        }
        for entry in std::fs::read_dir("/usr/lib64/mpi/gcc").into_iter().flatten().flatten() {
            directories.push(entry.path().join("bin"));
        }
        Self { mpicc: env::var_os("MPICC").filter(|v| !v.is_empty()).map(PathBuf::from), directories }
    }

    /// Returns the first program of this name.
    pub fn program(&self, name: &str) -> Option<PathBuf> {
        self.programs(name).next()
    }

    fn programs<'a>(&'a self, name: &'a str) -> impl Iterator<Item = PathBuf> + 'a {
        self.directories.iter().map(move |directory| directory.join(name)).filter(|path| is_executable(path))
    }
}

/// Returns the chosen MPIs, each once, or without a choice those that are installed. An error if one is missing.
pub fn installed(which: impl IntoIterator<Item = Which>) -> crate::failure::Result<Vec<Mpi>> {
    let places = Places::here();
    let advice = |why: String| Failure::Missing(format!("{why} (cargo xtask setup installs one)"));
    let mut chosen: Vec<Flavour> = Vec::new();
    for flavour in which.into_iter().flat_map(Which::flavours) {
        if !chosen.contains(flavour) {
            chosen.push(*flavour);
        }
    }
    if !chosen.is_empty() {
        return chosen.into_iter().map(|flavour| Mpi::find(flavour, &places).map_err(advice)).collect();
    }
    let found: Vec<Mpi> =
        Flavour::ALL.iter().filter_map(|&flavour| Mpi::find(flavour, &places).ok()).collect();
    if found.is_empty() { Err(advice("no MPI is installed".into())) } else { Ok(found) }
}

impl Mpi {
    /// Finds one flavour. The error says what is missing.
    pub fn find(flavour: Flavour, places: &Places) -> Result<Self, String> {
        let chosen = places.mpicc.iter().flat_map(|mpicc| {
            if mpicc.components().count() > 1 {
                vec![mpicc.clone()]
            } else {
                places.programs(&mpicc.to_string_lossy()).collect()
            }
        });
        let debian = format!("mpicc.{}", flavour.key());
        let candidates = chosen.chain(places.programs(&debian)).chain(places.programs("mpicc"));
        let mut others = Vec::new();
        for mpicc in candidates {
            match identify(&mpicc) {
                Some((proven, version)) if proven == flavour => {
                    let mpiexec = launcher(flavour, &mpicc, places).ok_or_else(|| {
                        format!("{} has no launcher (mpiexec) beside it or on PATH", mpicc.display())
                    })?;
                    return Ok(Self { flavour, mpicc, mpiexec, version });
                }
                Some((other, _)) => others.push(format!("{} is {other}", mpicc.display())),
                None => {
                    others.push(format!("{} is neither MPICH nor Open MPI, or does not run", mpicc.display()))
                }
            }
        }
        others.dedup();
        let tried = if others.is_empty() { String::new() } else { format!(": {}", others.join(", ")) };
        Err(format!("no compiler wrapper of {flavour}{tried}"))
    }

    /// Returns name and version.
    pub fn name(&self) -> String {
        format!("{} {}", self.flavour, self.version)
    }

    /// Sets this MPI and its own target directory for a cargo command. The build script of the `mpi` crate does not
    /// notice a changed `MPICC`: two MPIs in one directory would give a binary with parts of both.
    pub fn build_with(&self, command: &mut Command, target: &Path) {
        command
            .env("MPICC", &self.mpicc)
            .env("CARGO_TARGET_DIR", self.target(target))
            // Both take precedence over MPICC.
            .env_remove("MPI_PKG_CONFIG")
            .env_remove("CRAY_MPICH_DIR");
    }

    /// Sets the environment in which a program starts ranks with this MPI.
    pub fn launch_with(&self, command: &mut Command) {
        command.env("OMBX_MPIEXEC", &self.mpiexec);
        if self.flavour == Flavour::OpenMpi {
            command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        }
    }

    /// Returns the directory of this MPI below a target directory.
    pub fn target(&self, target: &Path) -> PathBuf {
        target.join(self.flavour.key())
    }
}

impl fmt::Display for Mpi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<16} {}  {}", self.name(), self.mpicc.display(), self.mpiexec.display())
    }
}

/// Identifies a compiler wrapper by its answers, not by its name: a plain `mpicc` can be of either flavour.
fn identify(mpicc: &Path) -> Option<(Flavour, String)> {
    // Only the wrapper of Open MPI has --showme; that of MPICH passes it to the compiler, which rejects it.
    if let Some(text) = output(mpicc, "--showme:version")
        && let Some(version) = after(&text, "Open MPI ")
    {
        return Some((Flavour::OpenMpi, version));
    }
    output(mpicc, "-show").filter(|line| line.contains("-lmpi"))?;
    // MVAPICH and Intel MPI derive from MPICH and answer -show, but print another name here.
    let version = after(&output(mpicc, "-v")?, "for MPICH version ")?;
    Some((Flavour::Mpich, version))
}

/// Finds the launcher beside the wrapper or on PATH. Its version text must name the same MPI.
fn launcher(flavour: Flavour, mpicc: &Path, places: &Places) -> Option<PathBuf> {
    let beside = mpicc.parent().map(Path::to_path_buf);
    let resolved = mpicc.canonicalize().ok().and_then(|path| path.parent().map(Path::to_path_buf));
    let directories: Vec<PathBuf> =
        beside.into_iter().chain(resolved).chain(places.directories.iter().cloned()).collect();
    directories
        .iter()
        .flat_map(|directory| flavour.launchers().iter().map(|name| directory.join(name)))
        .filter(|path| is_executable(path))
        .find(|path| output(path, "--version").is_some_and(|text| launches(&text) == Some(flavour)))
}

fn launches(version: &str) -> Option<Flavour> {
    let says = |words: &[&str]| words.iter().any(|word| version.contains(word));
    if says(&["HYDRA", "Hydra"]) {
        Some(Flavour::Mpich)
    } else if says(&["Open MPI", "OpenRTE", "PRRTE", "prterun"]) {
        Some(Flavour::OpenMpi)
    } else {
        None
    }
}

/// Returns both output streams of a program that succeeds.
fn output(program: &Path, argument: &str) -> Option<String> {
    let output = Command::new(program).arg(argument).stdin(Stdio::null()).output().ok()?;
    let text = [output.stdout, output.stderr].concat();
    output.status.success().then(|| String::from_utf8_lossy(&text).into_owned())
}

fn after(text: &str, marker: &str) -> Option<String> {
    let (_, rest) = text.split_once(marker)?;
    rest.split_whitespace().next().map(str::to_owned)
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MPICH_CC: &str = "case $1 in -show) echo gcc -lmpich;; -v) echo 'mpicc for MPICH version 4.0.2' \
                            >&2;; *) exit 1;; esac";
    const OPEN_CC: &str = "case $1 in --showme:version) echo \"$0: Open MPI 4.1.4 (Language: C)\" >&2;; \
                           -show) echo gcc -lmpi;; *) exit 1;; esac";
    const INTEL_CC: &str = "case $1 in -show) echo gcc -lmpi;; -v) echo 'mpigcc for the Intel(R) MPI \
                            Library 2021';; *) exit 1;; esac";
    const HYDRA: &str = "echo 'HYDRA build details:'";
    const ORTE: &str = "echo 'mpiexec (OpenRTE) 4.1.4'";

    /// Makes a directory with these programs, the only one on the search path.
    fn machine(programs: &[(&str, &str)]) -> (tempfile::TempDir, Places) {
        let directory = tempfile::tempdir().unwrap();
        for (name, script) in programs {
            // Another process writes the file. A descriptor of this process could leak into a process that another test
            // starts, and the kernel does not execute a file that is open for writing.
            let write = r#"printf '#!/bin/sh\n%s\n' "$1" > "$2" && chmod +x "$2""#;
            let path = directory.path().join(name);
            let status = Command::new("sh").args(["-c", write, "sh", script]).arg(path).status().unwrap();
            assert!(status.success());
        }
        let places = Places { mpicc: None, directories: vec![directory.path().into()] };
        (directory, places)
    }

    #[test]
    fn debian_with_both_finds_each_with_its_own_launcher() {
        let (directory, places) = machine(&[
            ("mpicc", OPEN_CC),
            ("mpicc.mpich", MPICH_CC),
            ("mpicc.openmpi", OPEN_CC),
            ("mpiexec", ORTE),
            ("mpiexec.mpich", HYDRA),
            ("mpiexec.openmpi", ORTE),
        ]);
        let mpich = Mpi::find(Flavour::Mpich, &places).unwrap();
        assert_eq!(mpich.version, "4.0.2");
        assert_eq!(mpich.mpiexec, directory.path().join("mpiexec.mpich"));
        let open = Mpi::find(Flavour::OpenMpi, &places).unwrap();
        assert_eq!((open.version.as_str(), open.mpicc), ("4.1.4", directory.path().join("mpicc.openmpi")));
    }

    #[test]
    fn a_plain_mpicc_is_identified_by_its_output() {
        let (_directory, places) = machine(&[("mpicc", MPICH_CC), ("mpiexec", HYDRA)]);
        assert!(Mpi::find(Flavour::Mpich, &places).is_ok());
        let reason = Mpi::find(Flavour::OpenMpi, &places).unwrap_err();
        assert!(reason.contains("is MPICH"), "{reason}");
    }

    #[test]
    fn the_name_of_a_wrapper_does_not_identify_the_mpi() {
        let (_directory, places) = machine(&[("mpicc.mpich", INTEL_CC), ("mpiexec", HYDRA)]);
        let reason = Mpi::find(Flavour::Mpich, &places).unwrap_err();
        assert!(reason.contains("neither"), "{reason}");
    }

    #[test]
    fn a_launcher_of_the_other_mpi_is_not_taken() {
        let (_directory, places) = machine(&[("mpicc", MPICH_CC), ("mpiexec", ORTE)]);
        assert!(Mpi::find(Flavour::Mpich, &places).unwrap_err().contains("launcher"));
    }

    #[test]
    fn mpicc_in_the_environment_comes_first() {
        let (_directory, mut places) = machine(&[("mpicc.mpich", MPICH_CC), ("mpiexec.mpich", HYDRA)]);
        let (own, _) = machine(&[("mine", MPICH_CC), ("mpiexec.hydra", HYDRA)]);
        places.mpicc = Some(own.path().join("mine"));
        let mpich = Mpi::find(Flavour::Mpich, &places).unwrap();
        assert_eq!(mpich.mpicc, own.path().join("mine"));
        assert_eq!(mpich.mpiexec, own.path().join("mpiexec.hydra"));
    }

    #[test]
    fn a_missing_mpicc_is_reported() {
        let (directory, places) = machine(&[]);
        assert_eq!(Flavour::preferred(&places), Flavour::Mpich);
        let absent = directory.path().join("mpicc");
        let places = Places { mpicc: Some(absent), directories: Vec::new() };
        assert!(Mpi::find(Flavour::Mpich, &places).unwrap_err().contains("does not run"));
    }

    #[test]
    fn every_build_has_its_own_target_directory() {
        let mpi = Mpi {
            flavour: Flavour::OpenMpi,
            mpicc: "m".into(),
            mpiexec: "x".into(),
            version: "4.1.4".into(),
        };
        let mut command = Command::new("cargo");
        mpi.build_with(&mut command, Path::new("target"));
        let set: Vec<_> = command.get_envs().collect();
        assert!(set.contains(&("CARGO_TARGET_DIR".as_ref(), Some("target/openmpi".as_ref()))));
        assert!(set.contains(&("MPI_PKG_CONFIG".as_ref(), None)));
    }
}
