//! The command that starts ranks: the mpiexec of the MPI that this program was built with, or srun.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use ombx_core::{
    error::{Error, Result},
    threads::Threading,
};

use crate::args::{Launcher, StartArgs};

/// A program in the search path.
pub(crate) fn in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(name)).find(|file| file.is_file())
}

#[cfg(not(feature = "mpi"))]
pub(crate) fn command(_: &StartArgs, _: Launcher, _: u32, _: Threading, _: Vec<OsString>) -> Result<Command> {
    Err(Error::usage("this build has no benchmarks that need ranks"))
}

/// The command line for `ranks` ranks of `program`, whose first word is the program itself.
#[cfg(feature = "mpi")]
pub(crate) fn command(
    args: &StartArgs,
    launcher: Launcher,
    ranks: u32,
    threading: Threading,
    program: Vec<OsString>,
) -> Result<Command> {
    use ombx_mpi::Family;
    let family = ombx_mpi::family();
    let mut command = match (launcher, family) {
        (Launcher::Srun, _) => srun(args, family, ranks)?,
        (_, Family::OpenMpi) => open_mpi(args, ranks, threading)?,
        (_, Family::Mpich | Family::Other) => hydra(args, ranks, threading)?,
    };
    command.args(&args.launcher_arg).args(program).stdin(Stdio::null());
    Ok(command)
}

/// Cores that ranks on this host could have, hardware threads of one core counted once; hosts of a job are taken to be alike.
#[cfg(feature = "mpi")]
fn cores() -> usize {
    let sibling = |cpu: u32| {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
        let list = std::fs::read_to_string(path).unwrap_or_default();
        ombx_core::env::parse_cpus(list.trim()).first().copied().unwrap_or(cpu)
    };
    let cores: std::collections::BTreeSet<u32> =
        ombx_core::team::Place::here().cpu_numbers().into_iter().map(sibling).collect();
    cores.len().min(std::thread::available_parallelism().map_or(1, usize::from)).max(1)
}

/// One core each while cores last, but for ranks whose threads would then share it; MPICH binds nothing by itself.
#[cfg(feature = "mpi")]
fn bindable(args: &StartArgs, ranks: u32, threading: Threading) -> bool {
    let hosts = args.hosts.len().max(1);
    threading == Threading::Single && (args.hostfile.is_some() || (ranks as usize).div_ceil(hosts) <= cores())
}

#[cfg(feature = "mpi")]
fn hydra(args: &StartArgs, ranks: u32, threading: Threading) -> Result<Command> {
    let names = ["mpiexec.mpich", "mpiexec.hydra", "mpiexec", "mpirun"];
    let mut command = Command::new(find(&names, &["hydra", "intel(r) mpi", "mpich"])?);
    command.arg("-n").arg(ranks.to_string());
    if bindable(args, ranks, threading) {
        command.args(["-bind-to", "core"]);
    }
    if !args.hosts.is_empty() {
        command.arg("-hosts").arg(args.hosts.join(","));
    } else if let Some(file) = &args.hostfile {
        command.arg("-f").arg(file);
    }
    Ok(command)
}

#[cfg(feature = "mpi")]
fn open_mpi(args: &StartArgs, ranks: u32, threading: Threading) -> Result<Command> {
    let names = ["mpiexec.openmpi", "mpirun.openmpi", "mpiexec", "mpirun", "orterun", "prterun"];
    let mut command = Command::new(find(&names, &["openrte", "open mpi", "prrte", "prte"])?);
    command.arg("-n").arg(ranks.to_string());
    command.args(["--bind-to", if bindable(args, ranks, threading) { "core" } else { "none" }]);
    if !args.hosts.is_empty() {
        command.arg("--host").arg(args.hosts.join(","));
        for name in ombx_core::env::kept_variables().keys().filter(|n| !n.starts_with("OMPI_MCA_")) {
            command.arg("-x").arg(name);
        }
    } else if let Some(file) = &args.hostfile {
        command.arg("--hostfile").arg(file);
    } else {
        // More ranks than cores is the user's choice; the trust column says so.
        command.arg("--oversubscribe");
        if in_path("ssh").is_none() && in_path("rsh").is_none() {
            // Open MPI looks for a remote shell even where it needs none.
            command.args(["--mca", "plm_rsh_agent", "sh"]);
        }
    }
    if rustix::process::geteuid().is_root() {
        // Containers and CI run as root; Open MPI wants to be told twice.
        for prefix in ["OMPI", "PRTE"] {
            command.env(format!("{prefix}_ALLOW_RUN_AS_ROOT"), "1");
            command.env(format!("{prefix}_ALLOW_RUN_AS_ROOT_CONFIRM"), "1");
        }
    }
    Ok(command)
}

#[cfg(feature = "mpi")]
fn srun(args: &StartArgs, family: ombx_mpi::Family, ranks: u32) -> Result<Command> {
    let program = in_path("srun").ok_or_else(|| Error::fabric("srun is not in the search path"))?;
    let mut command = Command::new(program);
    // Slurm's name for what each MPI speaks; the wrong one starts singletons.
    let speaks = if family == ombx_mpi::Family::OpenMpi { "--mpi=pmix" } else { "--mpi=pmi2" };
    command.arg("-n").arg(ranks.to_string()).args(["-K1", speaks, "--cpu-bind=cores"]);
    if !args.hosts.is_empty() {
        command.arg("-w").arg(args.hosts.join(","));
    } else if let Some(file) = &args.hostfile {
        command.arg("-w").arg(file);
    }
    Ok(command)
}

/// The first of `names` whose `--version` has one of `words`: several MPIs share the name mpiexec. `OMBX_MPIEXEC` overrides.
#[cfg(feature = "mpi")]
fn find(names: &[&str], words: &[&str]) -> Result<PathBuf> {
    let beside = |name: &&str| beside_compiler().map(|dir| dir.join(name)).filter(|file| file.is_file());
    let chosen = std::env::var_os("OMBX_MPIEXEC").map(PathBuf::from);
    let candidates: Vec<PathBuf> = match chosen {
        Some(path) => vec![path],
        None => names.iter().filter_map(beside).chain(names.iter().filter_map(|n| in_path(n))).collect(),
    };
    candidates.iter().find(|path| says(path, words)).cloned().ok_or_else(|| {
        let library = ombx_mpi::library_version();
        let tried = match candidates.as_slice() {
            [] => format!("none of {} is installed", names.join(", ")),
            some => format!(
                "{} belongs to another MPI",
                some.iter().map(|p| p.display().to_string()).collect::<Vec<_>>().join(", ")
            ),
        };
        Error::fabric(format!(
            "no mpiexec for {library}: {tried}; install it, or set OMBX_MPIEXEC to its path"
        ))
    })
}

/// Where the compiler that built this program lives: its MPI's launcher is usually there too.
#[cfg(feature = "mpi")]
fn beside_compiler() -> Option<PathBuf> {
    Path::new(ombx_mpi::COMPILER).parent().filter(|dir| dir.is_absolute()).map(Path::to_path_buf)
}

#[cfg(feature = "mpi")]
fn says(path: &Path, words: &[&str]) -> bool {
    let Ok(output) = Command::new(path).arg("--version").stdin(Stdio::null()).output() else { return false };
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).to_lowercase();
    words.iter().any(|word| text.contains(word))
}
