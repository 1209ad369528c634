//! `cargo xtask sanitize`: unsafe code under memcheck of valgrind.

use std::{
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
};

use serde_json::Value;

use ombx_toolchain::{
    Failure, Flavour, Mpi, Places, Result, Step, Summary, Which, Workspace, cannot_run, cargo, failed_if,
    installed, output, release,
};

/// Option for the exit code of an error.
const ERROR_CODE: &str = "--error-exitcode=99";
/// Most threads at a time. A session of sockets with 70 ranks has more than the 500 that valgrind allows.
const THREADS: &str = "--max-threads=2000";
/// Suppressions of errors in libraries.
const SUPPRESSIONS: &str = "xtask/src/mpi.supp";
/// Suppressions of Open MPI, below its prefix.
const OPEN_MPI_SUPPRESSIONS: &str = "share/openmpi/openmpi-valgrind.supp";
/// Tests of ombx-sockets that run unsafe code, by parts of their names: each part selects tests. Those of `memory` are left out:
/// rustix reads the vDSO, which valgrind moves, and a spinning thread starves others under valgrind.
const OF_SOCKETS: [&str; 2] = ["shared_memory::", "link::tests::a_"];
/// Tests of ombx-core that run unsafe code and need no clock.
const OF_CORE: [&str; 1] = ["driver_information::"];
/// All tests of ombx-mpi: those that start no ranks.
const OF_MPI: [&str; 1] = ["::"];
/// Benchmarks that together run every file of ombx-mpi with unsafe code.
const BENCHMARKS: &str = "p2p.latency p2p.bw p2p.latency_persistent rma.put_bw rma.cas_latency \
                          collective.allreduce collective.iallgather collective.bcast_acked";

/// Run unsafe code under valgrind: tests of ombx-core, ombx-mpi and ombx-sockets, tests on ranks, and a short run on two ranks
///
/// Errors inside MPI libraries are suppressed: xtask/src/mpi.supp, and the list of Open MPI.
#[derive(clap::Args)]
#[command(after_help = "Example: cargo xtask sanitize --mpi mpich")]
pub(crate) struct Options {
    /// MPI to test [default: every installed one]
    #[arg(long, value_enum)]
    mpi: Option<Which>,
}

pub(crate) fn main(options: &Options) -> Result<ExitCode> {
    Ok(failed_if(failures(&Workspace::read()?, &installed(options.mpi)?)? > 0))
}

/// Runs everything with these MPIs and prints a summary. Returns the number of steps that failed.
pub(crate) fn failures(workspace: &Workspace, mpis: &[Mpi]) -> Result<usize> {
    let Some(valgrind) = Places::here().program("valgrind") else {
        return Err(Failure::Missing("valgrind is not installed (Debian: apt-get install valgrind)".into()));
    };
    let mut steps = Vec::new();
    for (at, mpi) in mpis.iter().enumerate() {
        let valgrind = Memcheck { workspace, mpi, valgrind: &valgrind };
        steps.extend(valgrind.check(at == 0)?);
    }
    println!("\n{}", Summary(&steps));
    Ok(steps.iter().filter(|step| step.failed()).count())
}

/// Runs of one MPI under valgrind.
struct Memcheck<'a> {
    workspace: &'a Workspace,
    mpi: &'a Mpi,
    valgrind: &'a Path,
}

impl Memcheck<'_> {
    fn check(&self, first: bool) -> Result<Vec<Step>> {
        let name = |what: &str| format!("{}: {what}", self.mpi.flavour);
        let mut steps = Vec::new();
        if first {
            steps.extend(self.unit_tests("ombx-core", &OF_CORE)?);
            steps.extend(self.unit_tests("ombx-sockets", &OF_SOCKETS)?);
            steps.extend(self.unit_tests("ombx-mpi", &OF_MPI)?);
        }
        let harness = self.test("rank_harness")?;
        let on_two = self.tests_on_two_ranks(&harness)?;
        if on_two.is_empty() {
            return Err(Failure::Missing("no test of the rank harness needs two ranks".into()));
        }
        for test in on_two {
            let mut command = self.on_ranks();
            steps.push(Step::run(name(&test), command.arg(&harness).env("OMBX_RANK_TEST", &test)));
        }
        let ombx = release::built_for_tests(self.mpi, self.workspace, release::OF_EACH_MPI)?;
        let mut run = self.on_ranks();
        run.arg(ombx).arg("run").args(BENCHMARKS.split(' '));
        run.args(["--sizes", "8,9000", "--iterations", "3", "--window", "4", "--quiet", "--timeout", "5m"]);
        // Operations that an MPI does not support are skipped.
        run.arg("--allow-skips");
        steps.push(Step::run(name("a run"), &mut run));
        Ok(steps)
    }

    /// Runs tests of a crate whose names contain these parts, one at a time. A part that selects no test fails.
    fn unit_tests(&self, package: &str, parts: &[&str]) -> Result<Vec<Step>> {
        let tests = self.test(&package.replace('-', "_"))?;
        let run = |part: &&str| {
            let mut command = self.under_valgrind();
            command.arg(&tests).args([part, "--test-threads=1"]);
            Step::count(format!("{}: {package}, {part}", self.mpi.flavour), &mut command)
        };
        Ok(parts.iter().map(run).collect())
    }

    fn valgrind_words(&self) -> Vec<String> {
        let mut words =
            vec![self.valgrind.display().to_string(), "--quiet".into(), ERROR_CODE.into(), THREADS.into()];
        let mut suppressions = vec![self.workspace.root.join(SUPPRESSIONS)];
        let prefix = self.mpi.mpicc.parent().and_then(Path::parent).unwrap_or(Path::new("/usr"));
        suppressions.extend(Some(prefix.join(OPEN_MPI_SUPPRESSIONS)).filter(|file| file.is_file()));
        words.extend(suppressions.iter().map(|file| format!("--suppressions={}", file.display())));
        words
    }

    fn under_valgrind(&self) -> Command {
        let words = self.valgrind_words();
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stdin(Stdio::null());
        self.mpi.launch_with(&mut command);
        command
    }

    /// Returns a launcher command for two ranks, each under valgrind.
    fn on_ranks(&self) -> Command {
        let mut command = Command::new(&self.mpi.mpiexec);
        command.args(["-n", "2"]);
        if self.mpi.flavour == Flavour::OpenMpi {
            command.arg("--oversubscribe");
        }
        command.args(self.valgrind_words()).stdin(Stdio::null()).env("MPIEXEC_TIMEOUT", "600");
        self.mpi.launch_with(&mut command);
        command
    }

    /// Builds tests with the selection of packages that every check has, and returns the program of one crate.
    fn test(&self, name: &str) -> Result<PathBuf> {
        let mut build = cargo();
        build.args(["test", "--no-run", "--message-format=json"]).args(release::TESTED);
        build.current_dir(&self.workspace.root).stderr(Stdio::inherit());
        if name == "rank_harness" {
            build.args(["--test", name]);
        } else {
            build.arg("--lib");
        }
        self.mpi.build_with(&mut build, &self.workspace.target);
        let output = build.output().map_err(|source| cannot_run(&build, source))?;
        let program = |line: &str| {
            let message: Value = serde_json::from_str(line).ok()?;
            let is_it = message["target"]["name"] == name && message["profile"]["test"] == true;
            is_it.then(|| message["executable"].as_str().map(PathBuf::from)).flatten()
        };
        let found = String::from_utf8_lossy(&output.stdout).lines().find_map(program);
        found.ok_or_else(|| Failure::Missing(format!("the tests of {name} were not built (see above)")))
    }

    /// Returns the tests of the rank harness that need two ranks and must succeed.
    fn tests_on_two_ranks(&self, harness: &Path) -> Result<Vec<String>> {
        let listed = output(Command::new(harness).args(["--list", "--format", "terse"]))?;
        Ok(listed.lines().filter_map(on_two).collect())
    }
}

/// Parses `window::put_on_2: test` to its name without `_on_2`; `None` for tests that must fail.
fn on_two(line: &str) -> Option<String> {
    let name = line.strip_suffix(": test")?.strip_suffix("_on_2")?;
    (!name.starts_with("ending::")).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_of_two_ranks_are_found() {
        assert_eq!(on_two("a_window_on_2: test").as_deref(), Some("a_window"));
        assert_eq!(on_two("a_window_on_4: test"), None);
        assert_eq!(on_two("a_window_on_2: benchmark"), None);
        assert_eq!(on_two("ending::a_panic_on_2: test"), None);
    }
}
