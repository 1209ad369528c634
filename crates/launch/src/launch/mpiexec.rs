//! The command that starts MPI ranks: the mpiexec of the MPI that ombx was built with, or srun.

use std::{
    collections::BTreeSet,
    env,
    ffi::OsString,
    iter::repeat_n,
    net::IpAddr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
    time::Duration,
};

use ombx_core::benchmark::Threading;
use ombx_estimate::text::plain;
use ombx_host::{
    environment::kept_variables,
    remote_shell::{self, RemoteShell},
    search_path,
};
use ombx_mpi::Family;
use ombx_record::{
    error::{Error, Result},
    regular_file::read_named,
};

use crate::launch::{
    core_to_core::cores,
    detection,
    finite_run::{VERSION_LIMIT, Version},
    hosts::{Host, hosts, ranks_by_host},
    start::{Bind, Launcher, LauncherCommand, Start},
};

/// Variable in every process of a job on every host. The processes that a job leaves behind are found by it.
const JOB_VARIABLE: &str = "OMBX_JOB";

/// Words in the output of `--version` of each family of launchers.
const HYDRA: &[&str] = &["hydra", "intel(r) mpi", "mpich"];
const OPEN_MPI: &[&str] = &["openrte", "open mpi", "prrte", "prte"];
/// Part of the message about a launcher that cannot start ranks of this build.
const OF_ANOTHER_MPI: &str = "belongs to another MPI";

/// Returns the name and version of the MPI of this build.
pub fn library() -> String {
    ombx_mpi::library_version()
}

/// Rejects a build whose MPI has no sessions.
pub fn sessions_exist() -> Result<()> {
    ombx_mpi::sessions_exist().map_err(Error::usage)
}

/// Returns whether an error says that the launcher belongs to another MPI.
pub fn is_of_another_mpi(error: &Error) -> bool {
    error.to_string().contains(OF_ANOTHER_MPI)
}

/// Returns whether a launcher, by its name in [`detection`], starts ranks of this build's MPI. `None`: it starts ranks of several.
pub fn is_of_this_mpi(launcher: &str) -> Option<bool> {
    let open_mpi = ombx_mpi::family() == Family::OpenMpi;
    match launcher {
        detection::OPEN_MPI => Some(open_mpi),
        detection::HYDRA => Some(!open_mpi),
        _ => None,
    }
}

/// Returns the mpiexec or mpirun of the search path if it belongs to another MPI than this build.
pub fn of_another_mpi_in_path() -> Option<String> {
    let mut found = ["mpiexec", "mpirun"].into_iter().filter_map(search_path::find);
    found.find(|path| belongs_to_another_mpi(path)).map(|path| path.display().to_string())
}

/// Returns whether a launcher belongs to another MPI than this build, by its version.
pub(super) fn belongs_to_another_mpi(path: &Path) -> bool {
    // Other programs may take --version for work.
    let is_starter = path.file_name().is_some_and(|name| detection::is_starter(&name.to_string_lossy()));
    let open_mpi = ombx_mpi::family() == Family::OpenMpi;
    let (ours, theirs) = if open_mpi { (OPEN_MPI, HYDRA) } else { (HYDRA, OPEN_MPI) };
    is_starter
        && Version::new(path, VERSION_LIMIT).is_ok_and(|version| version.has(theirs) && !version.has(ours))
}

/// Returns the command that starts `ranks` ranks of `program`, whose first word is the executable.
pub fn command(args: &Start, ranks: u32, threading: Threading, program: Vec<OsString>) -> Result<Command> {
    let family = ombx_mpi::family();
    let mut command = if let Launcher::Command(launcher) = &args.launcher {
        other(args, launcher, ranks)?
    } else if uses_srun(args) {
        srun(args, family, ranks)?
    } else if family == Family::OpenMpi {
        open_mpi(args, ranks, threading)?
    } else {
        hydra(args, ranks, threading)?
    };
    if matches!(args.launcher, Launcher::Auto | Launcher::Mpiexec) && !uses_srun(args) {
        do_without_srun(args, &mut command)?;
    }
    // UCX's own handler of crashes can hang while it frees memory. Without it the launcher sees the signal.
    if env::var_os("UCX_HANDLE_ERRORS").is_none() {
        command.env("UCX_HANDLE_ERRORS", "none");
    }
    command.args(&args.launcher_arg).args(program).stdin(Stdio::null());
    Ok(command)
}

/// Returns the program with which the launcher starts processes on other hosts, with its arguments before the host; `None` if the
/// launcher has another way, or if that cannot be known.
pub fn remote_shell(args: &Start) -> Option<RemoteShell> {
    if uses_srun(args) || user_starts(args) || matches!(args.launcher, Launcher::Command(_)) {
        return None;
    }
    if let Some(program) = remote_shell::replacement(args.ssh.as_deref()) {
        return Some(RemoteShell::new(program, remote_shell::OPTIONS));
    }
    let variable =
        |names: &[&str]| names.iter().find_map(|name| env::var(name).ok()).filter(|v| !v.is_empty());
    let (way, program) = match ombx_mpi::family() {
        Family::OpenMpi if parameter_files().any(|file| names_launcher(&file)) => return None,
        Family::OpenMpi => (
            variable(&["OMPI_MCA_plm", "PRTE_MCA_plm"]),
            variable(&[
                "OMPI_MCA_plm_rsh_agent",
                "OMPI_MCA_orte_rsh_agent",
                "PRTE_MCA_plm_ssh_agent",
                "PRTE_MCA_prte_ssh_agent",
            ]),
        ),
        Family::Mpich | Family::Other => (
            variable(&["HYDRA_LAUNCHER", "HYDRA_BOOTSTRAP", "I_MPI_HYDRA_BOOTSTRAP"]),
            variable(&["HYDRA_LAUNCHER_EXEC", "HYDRA_BOOTSTRAP_EXEC", "I_MPI_HYDRA_BOOTSTRAP_EXEC"]),
        ),
    };
    if way.as_deref().is_some_and(|way| !["ssh", "rsh"].contains(&way)) {
        return None;
    }
    // Open MPI takes the first program of a list that is installed: `ssh : rsh`.
    let list = program.or(way.filter(|way| way == "rsh")).unwrap_or_else(|| "ssh : rsh".into());
    let words = |shell| Vec::from_iter(str::split_whitespace(shell));
    let installed = |words: &Vec<&str>| words.first().is_some_and(|program| search_path::has(program));
    let words = list.split(':').map(words).find(installed)?;
    // Programs of the user may know no option of ssh.
    let is_ssh = words[0].rsplit('/').next() == Some("ssh");
    let options: &[&str] = if is_ssh { &remote_shell::OPTIONS } else { &[] };
    Some(RemoteShell::new(words[0], [&words[1..], options].concat()))
}

/// Returns the files in which administrators and users set parameters of Open MPI.
fn parameter_files() -> impl Iterator<Item = PathBuf> {
    let home = env::var_os("HOME").map(PathBuf::from);
    let beside = prefixes().into_iter().map(|prefix| prefix.join("etc"));
    let in_home =
        home.into_iter().flat_map(|home| [".openmpi", ".prte"].map(|directory| home.join(directory)));
    let in_system =
        beside.chain([PathBuf::from("/etc/openmpi"), PathBuf::from("/etc/prte"), PathBuf::from("/etc")]);
    let names = ["mca-params.conf", "openmpi-mca-params.conf", "prte-mca-params.conf"];
    in_home.chain(in_system).flat_map(move |directory| names.map(|name| directory.join(name)))
}

/// Returns whether a file of parameters says how processes are started on other hosts.
fn names_launcher(file: &Path) -> bool {
    let text = read_named(file).unwrap_or_default();
    let names =
        |line: &str| line.starts_with("plm") || line.contains("rsh_agent") || line.contains("ssh_agent");
    text.lines().map(str::trim).any(names)
}

/// Returns whether srun starts the ranks of a job.
pub(super) fn uses_srun(args: &Start) -> bool {
    args.launcher == Launcher::Srun || args.launcher == Launcher::Auto && in_slurm_allocation()
}

/// Returns whether the launcher knows the hosts of an allocation by their numbers, as `+n0`.
pub(super) fn knows_numbers_of_hosts(args: &Start) -> bool {
    ombx_mpi::family() == Family::OpenMpi
        && !uses_srun(args)
        && matches!(args.launcher, Launcher::Auto | Launcher::Mpiexec)
}

/// Returns whether srun can start ranks here.
fn in_slurm_allocation() -> bool {
    env::var_os("SLURM_JOB_ID").is_some()
        && detection::launcher().is_none()
        && search_path::find("srun").is_some()
}

/// Variables that make mpiexec start ranks on this host alone or by ssh, although those of a Slurm job are set, by
/// family.
const NOT_SLURM: [(Family, &str, &str); 7] = [
    (Family::OpenMpi, "OMPI_MCA_plm", "^slurm"),
    (Family::OpenMpi, "OMPI_MCA_ras", "^slurm"),
    (Family::OpenMpi, "PRTE_MCA_plm", "^slurm"),
    (Family::OpenMpi, "PRTE_MCA_ras", "^slurm"),
    (Family::Mpich, "HYDRA_RMK", "user"),
    (Family::Mpich, "HYDRA_LAUNCHER", "ssh"),
    (Family::Mpich, "I_MPI_HYDRA_BOOTSTRAP", "ssh"),
];

/// Lets mpiexec start ranks in a Slurm job without srun, as in a container: on this host, if the job has no other, or
/// on the hosts of the user. mpiexec itself would fail or wait for ever.
///
/// # Errors
/// The job has several hosts, and the user names none.
fn do_without_srun(args: &Start, command: &mut Command) -> Result<()> {
    let job = ["SLURM_JOB_ID", "SLURM_JOBID", "SLURM_JOB_NODELIST", "SLURM_NODELIST"];
    let Some((name, value)) = job.iter().find_map(|name| Some((name, env::var(name).ok()?))) else {
        return Ok(());
    };
    let ours = if ombx_mpi::family() == Family::OpenMpi { Family::OpenMpi } else { Family::Mpich };
    let variables = || NOT_SLURM.iter().filter(|(family, ..)| *family == ours);
    // Those of the user say how ranks start.
    let is_chosen = variables().any(|(_, name, _)| env::var_os(name).is_some());
    if search_path::has("srun") || is_chosen || user_starts(args) {
        return Ok(());
    }
    let nodes = ["SLURM_JOB_NUM_NODES", "SLURM_NNODES"].iter().find_map(|name| env::var(name).ok());
    if let Some(nodes) = nodes.filter(|nodes| nodes != "1")
        && args.hosts.is_empty()
        && args.hostfile.is_none()
    {
        return Err(Error::usage(format!(
            "{name}={value} belongs to a Slurm job on {nodes} nodes, but this host has no srun, which starts \
             ranks there: start ombx where srun is, or give --hosts (--hosts localhost: all ranks on this host)"
        )));
    }
    command.envs(variables().map(|(_, name, value)| (name, value)));
    Ok(())
}

/// Hosts of a job with their numbers of ranks. Hosts without ranks are left out.
struct Placed(Vec<(Host, u32)>);

impl Placed {
    /// Returns the hosts of a job, in the form in which each of these launchers gets them on its command line. None if they are left to
    /// the launcher.
    fn new(args: &Start, ranks: u32) -> Result<Placed> {
        let hosts = hosts(args)?;
        // Hydra and Open MPI would take the rest of an address for a number of ranks.
        if let Some(address) = hosts.iter().find(|host| host.address().contains(':')) {
            return Err(Error::usage(format!(
                "{}: launchers take no address of IPv6, because a colon stands before a number of ranks: give the host's name",
                address.name
            )));
        }
        let counts = ranks_by_host(&hosts, ranks)?;
        Ok(Placed(hosts.into_iter().zip(counts).filter(|(_, count)| *count > 0).collect()))
    }

    /// Returns the program in place of ssh. That of the environment is for hosts that the user gives: elsewhere the launcher knows how to
    /// start ranks.
    fn remote_shell(&self, args: &Start) -> Option<OsString> {
        remote_shell::replacement(args.ssh.as_deref()).filter(|_| args.ssh.is_some() || !self.0.is_empty())
    }

    /// Returns the number of ranks of each host, if it is the same.
    fn each(&self) -> Option<u32> {
        let (_, first) = self.0.first()?;
        self.0.iter().all(|(_, count)| count == first).then_some(*first)
    }

    /// Returns the user's name on the hosts, for a launcher that knows one name for all hosts.
    fn user(&self) -> Result<Option<&str>> {
        self.same("user name", ": give the others in the configuration of ssh", |host| {
            host.name.split_once('@').map(|(user, _)| user)
        })
    }

    /// Returns a property of the hosts, for a launcher that takes one value for all hosts.
    fn same<'a>(
        &'a self,
        what: &str,
        advice: &str,
        of_host: impl Fn(&'a Host) -> Option<&'a str>,
    ) -> Result<Option<&'a str>> {
        let mut values = self.0.iter().map(|(host, _)| of_host(host));
        let first = values.next().flatten();
        if values.all(|value| value == first) {
            Ok(first)
        } else {
            Err(Error::usage(format!("this launcher takes one {what} for all hosts{advice}")))
        }
    }
}

/// Returns whether each rank is bound to a core. By default, ranks are bound if there are enough cores and ranks have no threads
/// that would share the core. All hosts are assumed to be like this one.
fn binds_to_core(args: &Start, placed: &Placed, ranks: u32, threading: Threading) -> bool {
    let most = placed.0.iter().map(|(_, count)| *count).max().unwrap_or(ranks);
    match args.bind {
        Bind::Core => true,
        Bind::None => false,
        Bind::Auto => threading == Threading::Single && most as usize <= cores().len(),
    }
}

/// Returns whether the user's own launcher arguments choose the binding.
fn user_binds(args: &Start) -> bool {
    args.launcher_arg.iter().any(|arg| arg.trim_start_matches('-').starts_with("bind-to"))
}

/// Returns whether the user's own launcher arguments choose how processes start on hosts.
fn user_starts(args: &Start) -> bool {
    let own_way = ["plm", "agent", "launcher", "bootstrap", "rmk"];
    args.launcher_arg.iter().any(|arg| own_way.iter().any(|word| arg.contains(word)))
}

fn hydra(args: &Start, ranks: u32, threading: Threading) -> Result<Command> {
    let placed = Placed::new(args, ranks)?;
    let names = ["mpiexec.mpich", "mpiexec.hydra", "mpiexec", "mpirun"];
    let mut command = Command::new(find(&names, HYDRA, args.timeout)?);
    command.arg("-n").arg(ranks.to_string());
    let binding = placed.same("binding", "", |host| host.binding.as_deref())?;
    let binding = binding.filter(|_| args.bind == Bind::Auto);
    if (binding.is_some() || binds_to_core(args, &placed, ranks, threading)) && !user_binds(args) {
        command.args(["-bind-to", binding.unwrap_or("core")]);
    }
    if !placed.0.is_empty() {
        let each = placed.each();
        let host = |(host, count): &(Host, u32)| match each {
            Some(_) => host.name.clone(),
            None => format!("{}:{count}", host.name),
        };
        command.arg("-hosts").arg(placed.0.iter().map(host).collect::<Vec<_>>().join(","));
        if let Some(count) = each {
            command.arg("-ppn").arg(count.to_string());
        }
    }
    if let Some(ssh) = placed.remote_shell(args) {
        command.args(["-launcher", "ssh", "-launcher-exec"]).arg(ssh);
    }
    let interface = placed.same("interface", "", |host| host.interface.as_deref())?;
    if let Some(interface) = args.interface.as_deref().or(interface) {
        command.args(["-iface", interface]);
    }
    Ok(command)
}

fn open_mpi(args: &Start, ranks: u32, threading: Threading) -> Result<Command> {
    let placed = Placed::new(args, ranks)?;
    let names = ["mpiexec.openmpi", "mpirun.openmpi", "mpiexec", "mpirun", "orterun", "prterun"];
    let mut command = Command::new(find(&names, OPEN_MPI, args.timeout)?);
    command.arg("-n").arg(ranks.to_string());
    if !user_binds(args) {
        let bind = if binds_to_core(args, &placed, ranks, threading) { "core" } else { "none" };
        command.args(["--bind-to", bind]);
    }
    if !placed.0.is_empty() {
        // A number of ranks behind the number of a host is not read.
        let host = |(host, count): &(Host, u32)| {
            if host.is_relative() {
                vec![host.name.as_str(); *count as usize].join(",")
            } else {
                format!("{}:{count}", host.address())
            }
        };
        command.arg("--host").arg(placed.0.iter().map(host).collect::<Vec<_>>().join(","));
        if let Some(user) = placed.user()? {
            command.args(["--mca", "plm_rsh_args", &format!("-l {user}")]);
        }
        if placed.0.iter().any(|(host, _)| has_domain(host.address())) {
            keep_domains(&mut command);
        }
        forward(&mut command);
    } else {
        // The user may start more ranks than cores; the trust column reports it.
        command.arg("--oversubscribe");
        if search_path::find("ssh").is_none() && search_path::find("rsh").is_none() {
            // Open MPI looks for a remote shell even if it needs none.
            command.args(["--mca", "plm_rsh_agent", "sh"]);
        }
    }
    if let Some(ssh) = placed.remote_shell(args) {
        command.args(["--mca", "plm_rsh_agent"]).arg(ssh);
    }
    if let Some(interface) = &args.interface {
        // The launcher of Open MPI 5 does not start with the loopback interface alone.
        if interface != "lo" {
            command.args(["--mca", "oob_tcp_if_include", interface]);
        }
        command.args(["--mca", "btl_tcp_if_include", interface]);
    }
    if rustix::process::geteuid().is_root() {
        // Containers and CI run as root, which Open MPI allows only with both variables.
        for prefix in ["OMPI", "PRTE"] {
            command.env(format!("{prefix}_ALLOW_RUN_AS_ROOT"), "1");
            command.env(format!("{prefix}_ALLOW_RUN_AS_ROOT_CONFIRM"), "1");
        }
    }
    Ok(command)
}

/// Returns whether a host is named with its domain.
fn has_domain(name: &str) -> bool {
    name.contains('.') && name.parse::<IpAddr>().is_err()
}

/// Keeps Open MPI from shortening `n01.cluster` to `n01`, which may not resolve.
fn keep_domains(command: &mut Command) {
    for name in ["OMPI_MCA_orte_keep_fqdn_hostnames", "PRTE_MCA_prte_keep_fqdn_hostnames"] {
        if env::var_os(name).is_none() {
            command.env(name, "1");
        }
    }
}

/// Passes variables to ranks on other hosts. Open MPI itself passes only its own.
fn forward(command: &mut Command) {
    let kept = kept_variables().into_keys().filter(|name| !name.starts_with("OMPI_MCA_"));
    let job = env::var_os(JOB_VARIABLE).map(|_| JOB_VARIABLE.to_owned());
    for name in kept.chain(job) {
        command.arg("-x").arg(name);
    }
}

/// Returns the command of a launcher that the user describes.
fn other(args: &Start, launcher: &LauncherCommand, ranks: u32) -> Result<Command> {
    let program = search_path::find(launcher.program()).ok_or_else(|| {
        Error::usage(format!("--launcher: {} is neither a file nor in the search path", launcher.program()))
    })?;
    let of_mpiexec = [
        ("--ssh", args.ssh.is_some()),
        ("--interface", args.interface.is_some()),
        ("--bind", args.bind != Bind::Auto),
    ];
    for (option, is_given) in of_mpiexec {
        if is_given {
            return Err(Error::usage(format!(
                "{option} is for mpiexec and srun: write it into --launcher as this launcher takes it"
            )));
        }
    }
    let placed = Placed::new(args, ranks)?;
    let hosts: BTreeSet<&str> = placed.0.iter().map(|(host, _)| host.name.as_str()).collect();
    let per_host = placed.each().filter(|_| hosts.len() == placed.0.len());
    let words = launcher.arguments(ranks, &Vec::from_iter(hosts), per_host);
    let mut command = Command::new(program);
    command.args(words.map_err(Error::usage)?);
    Ok(command)
}

fn srun(args: &Start, family: Family, ranks: u32) -> Result<Command> {
    let placed = Placed::new(args, ranks)?;
    let program = search_path::find("srun").ok_or_else(|| Error::fabric("srun is not in the search path"))?;
    let mut command = Command::new(program);
    // With the wrong protocol each process is rank 0 of 1.
    let protocol = if family == Family::OpenMpi { "--mpi=pmix" } else { "--mpi=pmi2" };
    command.arg("-n").arg(ranks.to_string()).args(["-K1", protocol]);
    command.arg(if args.bind == Bind::None { "--cpu-bind=none" } else { "--cpu-bind=cores" });
    if let Some((host, _)) = placed.0.iter().find(|(host, _)| host.name.contains('@')) {
        return Err(Error::usage(format!(
            "{}: srun starts ranks under your own name: leave out the user's name",
            host.name
        )));
    }
    let names = || placed.0.iter().map(|(host, _)| host.name.as_str());
    let distinct: BTreeSet<&str> = names().collect();
    if placed.0.is_empty() {
        return Ok(command);
    }
    command.arg("-N").arg(distinct.len().to_string());
    match placed.each().filter(|_| distinct.len() == placed.0.len()) {
        Some(count) => {
            command.arg("-w").arg(names().collect::<Vec<_>>().join(","));
            command.arg(format!("--ntasks-per-node={count}"));
        }
        // Each host is named once for each of its ranks.
        None => {
            let each =
                placed.0.iter().flat_map(|(host, count)| repeat_n(host.name.as_str(), *count as usize));
            command.arg("-w").arg(each.collect::<Vec<_>>().join(",")).arg("--distribution=arbitrary");
        }
    }
    Ok(command)
}

/// Returns the first program of these names whose version has one of these words, since several MPIs share the name mpiexec.
/// `OMBX_MPIEXEC` takes precedence. Later launches use what the first one found. `timeout` is the time limit of the job.
fn find(names: &[&str], words: &[&str], timeout: Option<Duration>) -> Result<PathBuf> {
    static FOUND: OnceLock<PathBuf> = OnceLock::new();
    if let Some(path) = FOUND.get() {
        return Ok(path.clone());
    }
    let chosen = env::var_os("OMBX_MPIEXEC").map(PathBuf::from);
    let candidates: Vec<PathBuf> = match chosen {
        Some(path) => vec![path],
        None => {
            beside_library(names).chain(names.iter().filter_map(|name| search_path::find(name))).collect()
        }
    };
    let limit = timeout.unwrap_or(VERSION_LIMIT).min(VERSION_LIMIT);
    let (mut found, mut late, mut strange, mut others) = (None, None, None, Vec::new());
    for path in &candidates {
        match Version::new(path, limit)? {
            Version::Late => late = late.or(Some(path)),
            version if version.has(words) => {
                found = Some(path);
                break;
            }
            version if !version.has(HYDRA) && !version.has(OPEN_MPI) => {
                strange = strange.or(version.first_line().map(|line| (path, plain(line))));
            }
            Version::None => {}
            Version::Printed(_) => others.push(path.display().to_string()),
        }
    }
    if let (None, Some(path)) = (found, late) {
        return Err(Error::fabric(format!(
            "{} --version did not answer within {} s. Check this launcher, or set OMBX_MPIEXEC to another",
            path.display(),
            limit.as_secs_f64()
        )));
    }
    if let (None, Some((path, line))) = (found, strange) {
        return Err(Error::fabric(format!(
            "{} is no mpiexec that works: its --version prints \"{line}\". Repair it, or set OMBX_MPIEXEC to another",
            path.display()
        )));
    }
    found.map(|path| FOUND.get_or_init(|| path.clone()).clone()).ok_or_else(|| {
        let library = ombx_mpi::library_version();
        let tried = match candidates.as_slice() {
            [] => format!("none of {} is installed", names.join(", ")),
            [first, ..] if others.is_empty() => format!("{} cannot be started", first.display()),
            _ => format!("{} {OF_ANOTHER_MPI}", others.join(", ")),
        };
        Error::fabric(format!(
            "cannot find the mpiexec of {library}: {tried}. Install it, or set OMBX_MPIEXEC to its path"
        ))
    })
}

/// Returns the launchers of these names below the directory in which the loaded MPI library is installed: `/opt/mpich/bin/mpiexec` for
/// `/opt/mpich/lib/libmpi.so.12`.
fn beside_library(names: &[&str]) -> impl Iterator<Item = PathBuf> {
    let files = |prefix: PathBuf| names.iter().map(move |name| prefix.join("bin").join(name));
    let files: Vec<PathBuf> = prefixes().into_iter().flat_map(files).collect();
    files.into_iter().filter(|file| file.is_file())
}

/// Returns the directories in which the loaded MPI library may be installed, the nearest first.
fn prefixes() -> Vec<PathBuf> {
    let file = ombx_mpi::library_file();
    // A library lies in lib, lib/release or lib/x86_64-linux-gnu/openmpi/lib below the prefix.
    file.iter().flat_map(|file| file.ancestors().skip(2).take(4)).map(Path::to_path_buf).collect()
}
