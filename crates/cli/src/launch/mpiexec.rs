//! The command that starts ranks: the mpiexec of the MPI that this program was built with, or srun.

use std::{ffi::OsString, path::PathBuf, process::Command};
#[cfg(feature = "mpi")]
use std::{path::Path, process::Stdio};

use ombx_core::{
    benchmark::threads::Threading,
    error::{Error, Result},
};

#[cfg(feature = "mpi")]
use crate::args::{Bind, Launcher, StartArgs};

/// The variable that marks every process of a job, wherever it runs: what is left of a job is found by it.
#[cfg(feature = "mpi")]
const MARK: &str = "OMBX_JOB";

/// What launchers of each family say of themselves.
#[cfg(feature = "mpi")]
const HYDRA: &[&str] = &["hydra", "intel(r) mpi", "mpich"];
#[cfg(feature = "mpi")]
const OPEN_MPI: &[&str] = &["openrte", "open mpi", "prrte", "prte"];
/// What is said of a launcher that cannot start ranks of this program.
const FOREIGN: &str = "belongs to another MPI";

/// Whether ranks could not be started because the launcher is of another MPI.
pub(crate) fn is_foreign(error: &Error) -> bool {
    error.to_string().contains(FOREIGN)
}

/// The MPI of this build.
#[cfg(feature = "mpi")]
pub(crate) fn library() -> String {
    ombx_mpi::library_version()
}

/// The MPI of this build.
#[cfg(not(feature = "mpi"))]
pub(crate) fn library() -> String {
    "no MPI".into()
}

/// Whether a launcher, as detection calls it, starts ranks of this build's MPI; `None` where several MPIs share it.
pub(crate) fn speaks_to(by: &str) -> Option<bool> {
    #[cfg(feature = "mpi")]
    {
        use crate::launch::detect;
        let open_mpi = ombx_mpi::family() == ombx_mpi::Family::OpenMpi;
        match by {
            detect::OPEN_MPI => Some(open_mpi),
            detect::HYDRA => Some(!open_mpi),
            _ => None,
        }
    }
    #[cfg(not(feature = "mpi"))]
    {
        let _ = by;
        None
    }
}

/// The mpiexec or mpirun that a user would get by name, if it is of another MPI than this build.
pub(crate) fn foreign_in_path() -> Option<String> {
    #[cfg(feature = "mpi")]
    {
        let open_mpi = ombx_mpi::family() == ombx_mpi::Family::OpenMpi;
        let (ours, theirs) = if open_mpi { (OPEN_MPI, HYDRA) } else { (HYDRA, OPEN_MPI) };
        let mut found = ["mpiexec", "mpirun"].into_iter().filter_map(in_path);
        found.find(|path| says(path, theirs) && !says(path, ours)).map(|path| path.display().to_string())
    }
    #[cfg(not(feature = "mpi"))]
    None
}

/// A program in the search path.
pub(crate) fn in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(name)).find(|file| file.is_file())
}

#[cfg(not(feature = "mpi"))]
pub(crate) fn command(_: &StartArgs, _: Launcher, _: u32, _: Threading, _: Vec<OsString>) -> Result<Command> {
    Err(Error::usage(
        "this needs ranks over MPI, which this build has not: build it with the feature `mpi` of ombx-cli",
    ))
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
    if let Some(file) = &args.hostfile {
        crate::plain::hostfile(file)?;
    }
    let family = ombx_mpi::family();
    let mut command = match (launcher, family) {
        (Launcher::Srun, _) => srun(args, family, ranks)?,
        (_, Family::OpenMpi) => open_mpi(args, ranks, threading)?,
        (_, Family::Mpich | Family::Other) => hydra(args, ranks, threading)?,
    };
    // UCX's own handler of crashes can hang while it frees memory; without it the launcher sees the signal.
    if std::env::var_os("UCX_HANDLE_ERRORS").is_none() {
        command.env("UCX_HANDLE_ERRORS", "none");
    }
    command.args(&args.launcher_arg).args(program).stdin(Stdio::null());
    Ok(command)
}

/// One core each while cores last, but for ranks whose threads would then share it; MPICH binds nothing by itself.
#[cfg(feature = "mpi")]
fn bindable(args: &StartArgs, ranks: u32, threading: Threading) -> bool {
    let hosts = args.hosts.len().max(1);
    match args.bind {
        Bind::Core => return true,
        Bind::None => return false,
        Bind::Auto => {}
    }
    threading == Threading::Single
        && (args.hostfile.is_some() || (ranks as usize).div_ceil(hosts) <= super::cores::cores().len())
}

/// Ranks on each of the hosts, where they have to share them and the user has not said how.
#[cfg(feature = "mpi")]
fn per_host(args: &StartArgs, ranks: u32) -> Option<u32> {
    let hosts = u32::try_from(args.hosts.len()).ok().filter(|n| *n > 0)?;
    let said = args.hosts.iter().any(|host| host.contains(':'));
    (!said && ranks > hosts).then(|| ranks.div_ceil(hosts))
}

/// Whether the user's own arguments bind ranks, or leave them unbound.
#[cfg(feature = "mpi")]
fn binds(args: &StartArgs) -> bool {
    args.launcher_arg.iter().any(|arg| arg.trim_start_matches('-').starts_with("bind-to"))
}

#[cfg(feature = "mpi")]
fn hydra(args: &StartArgs, ranks: u32, threading: Threading) -> Result<Command> {
    let names = ["mpiexec.mpich", "mpiexec.hydra", "mpiexec", "mpirun"];
    let mut command = Command::new(find(&names, HYDRA)?);
    command.arg("-n").arg(ranks.to_string());
    if bindable(args, ranks, threading) && !binds(args) {
        command.args(["-bind-to", "core"]);
    }
    if !args.hosts.is_empty() {
        command.arg("-hosts").arg(args.hosts.join(","));
        if let Some(ranks) = per_host(args, ranks) {
            command.arg("-ppn").arg(ranks.to_string());
        }
    } else if let Some(file) = &args.hostfile {
        command.arg("-f").arg(file);
    }
    if let Some(ssh) = &args.ssh {
        command.args(["-launcher", "ssh", "-launcher-exec", ssh]);
    }
    if let Some(interface) = &args.interface {
        command.args(["-iface", interface]);
    }
    Ok(command)
}

#[cfg(feature = "mpi")]
fn open_mpi(args: &StartArgs, ranks: u32, threading: Threading) -> Result<Command> {
    let names = ["mpiexec.openmpi", "mpirun.openmpi", "mpiexec", "mpirun", "orterun", "prterun"];
    let mut command = Command::new(find(&names, OPEN_MPI)?);
    command.arg("-n").arg(ranks.to_string());
    if !binds(args) {
        command.args(["--bind-to", if bindable(args, ranks, threading) { "core" } else { "none" }]);
    }
    if !args.hosts.is_empty() {
        let slots = per_host(args, ranks).map_or(String::new(), |ranks| format!(":{ranks}"));
        let hosts: Vec<String> = args.hosts.iter().map(|host| format!("{host}{slots}")).collect();
        command.arg("--host").arg(hosts.join(","));
        forward(&mut command);
    } else if let Some(file) = &args.hostfile {
        command.arg("--hostfile").arg(file);
        forward(&mut command);
    } else {
        // More ranks than cores is the user's choice; the trust column says so.
        command.arg("--oversubscribe");
        if in_path("ssh").is_none() && in_path("rsh").is_none() {
            // Open MPI looks for a remote shell even where it needs none.
            command.args(["--mca", "plm_rsh_agent", "sh"]);
        }
    }
    if let Some(ssh) = &args.ssh {
        command.args(["--mca", "plm_rsh_agent", ssh]);
    }
    if let Some(interface) = &args.interface {
        command.args(["--mca", "oob_tcp_if_include", interface, "--mca", "btl_tcp_if_include", interface]);
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

/// Open MPI gives ranks on other hosts its own variables and those that are named.
#[cfg(feature = "mpi")]
fn forward(command: &mut Command) {
    let kept = ombx_core::system::environment::kept_variables()
        .into_keys()
        .filter(|name| !name.starts_with("OMPI_MCA_"));
    let mark = std::env::var_os(MARK).map(|_| MARK.to_owned());
    for name in kept.chain(mark) {
        command.arg("-x").arg(name);
    }
}

#[cfg(feature = "mpi")]
fn srun(args: &StartArgs, family: ombx_mpi::Family, ranks: u32) -> Result<Command> {
    let program = in_path("srun").ok_or_else(|| Error::fabric("srun is not in the search path"))?;
    let mut command = Command::new(program);
    // Slurm's name for what each MPI speaks; the wrong one starts singletons.
    let speaks = if family == ombx_mpi::Family::OpenMpi { "--mpi=pmix" } else { "--mpi=pmi2" };
    command.arg("-n").arg(ranks.to_string()).args(["-K1", speaks]);
    command.arg(if args.bind == Bind::None { "--cpu-bind=none" } else { "--cpu-bind=cores" });
    if !args.hosts.is_empty() {
        command.arg("-w").arg(args.hosts.join(","));
        let hosts = args.hosts.len();
        if ranks as usize >= hosts {
            command.arg("-N").arg(hosts.to_string());
        }
        if let Some(ranks) = per_host(args, ranks) {
            command.arg(format!("--ntasks-per-node={ranks}"));
        }
    } else if let Some(file) = &args.hostfile {
        // What has no slash would be the name of a host.
        command.arg("-w").arg(std::path::absolute(file).unwrap_or_else(|_| file.clone()));
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
                "{} {FOREIGN}",
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
