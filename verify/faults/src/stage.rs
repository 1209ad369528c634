//! Setup for the cases of one MPI: ombx, the library between ombx and MPI in the ranks (`LD_PRELOAD`), and the registered benchmarks.

use std::path::{Path, PathBuf};

use ombx_toolchain::registry::{self, Bench};
use ombx_toolchain::{Flavour, Mpi, Result, Workspace, compile, release};

/// Source of the library. `interpose.c` describes the rules that control it.
const SOURCE: &str =
    concat!(include_str!("datatypes.c"), include_str!("interpose.c"), include_str!("system_calls.c"));

/// Setup for the cases of one MPI.
pub(crate) struct Stage {
    pub(crate) mpi: Mpi,
    pub(crate) ombx: PathBuf,
    /// Path of the interposed library.
    pub(crate) library: PathBuf,
    pub(crate) benches: Vec<Bench>,
    /// Whether only the cases of the gate run.
    pub(crate) gate: bool,
}

impl Stage {
    /// Builds the interposed library, and also ombx if `build` is set.
    pub(crate) fn set(mpi: &Mpi, workspace: &Workspace, build: bool) -> Result<Self> {
        let target = mpi.target(&workspace.target);
        let ombx = if build {
            release::built_for_tests(mpi, workspace, release::OF_EACH_MPI)?
        } else {
            release::existing(target.join("debug/ombx"))?
        };
        let options = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-pthread"];
        let library = compile(&mpi.mpicc, &options, &target.join("faults"), "interpose.c", SOURCE)?;
        let benches = registry::read(&ombx)?;
        Ok(Self { mpi: mpi.clone(), ombx, library, benches, gate: false })
    }

    /// Returns arguments of `ombx run` that set environment variables in the ranks, and in the ranks alone.
    pub(crate) fn variables(&self, variables: &[(&str, &str)]) -> Vec<String> {
        let words = variables.iter().flat_map(|(name, value)| match self.mpi.flavour {
            Flavour::Mpich => vec!["-genv".to_owned(), (*name).to_owned(), (*value).to_owned()],
            Flavour::OpenMpi => vec!["-x".to_owned(), format!("{name}={value}")],
        });
        words.map(|word| format!("--launcher-arg={word}")).collect()
    }

    /// Returns arguments of `ombx run` that apply rules in the ranks.
    pub(crate) fn arguments(&self, rules: &[String], log: &Path) -> Vec<String> {
        if rules.is_empty() {
            return Vec::new();
        }
        let [library, log] = [&*self.library, log].map(Path::to_string_lossy);
        let rules = rules.join(";");
        self.variables(&[("LD_PRELOAD", &library), ("OMBX_FAULTS", &rules), ("OMBX_FAULTS_LOG", &log)])
    }

    /// Finds a benchmark by its name.
    pub(crate) fn bench(&self, name: &str) -> Option<&Bench> {
        self.benches.iter().find(|bench| bench.name == name)
    }

    /// Returns why a benchmark cannot run with this MPI, if it cannot.
    pub(crate) fn unavailable(&self, bench: &str) -> Option<String> {
        self.bench(bench)?.unavailable.clone()
    }

    /// Returns why cases without MPI are not run here: one run is enough.
    pub(crate) fn needs_no_mpi(&self) -> Option<String> {
        (self.mpi.flavour != Flavour::Mpich).then(|| "needs no MPI: run only with the MPICH build".to_owned())
    }
}

/// Compiles a library (`LD_PRELOAD`) without MPI into the directory of a job, and returns its path.
pub(crate) fn preloaded(directory: &Path, name: &str, source: &str) -> std::result::Result<String, String> {
    let library = compile(Path::new("cc"), &["-shared", "-fPIC", "-O1"], directory, name, source);
    library.map(|path| path.display().to_string()).map_err(|e| e.to_string())
}
