//! The MPI with which this package was built and which is under test: its launcher, and `ombx`.

use std::{
    collections::BTreeSet,
    env,
    ffi::{OsStr, OsString},
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
    thread,
};

use ombx_mpi::Family;

use crate::Files;

/// Returns the binary under test: `OMBX_BIN`, or the one beside the tests.
pub fn ombx() -> &'static Path {
    static OMBX: OnceLock<PathBuf> = OnceLock::new();
    OMBX.get_or_init(|| {
        let beside = || {
            let own = env::current_exe().expect("the path of the test");
            own.parent().and_then(Path::parent).expect("a test is in target/debug/deps").join("ombx")
        };
        let path = env::var_os("OMBX_BIN").map_or_else(beside, PathBuf::from);
        assert!(path.is_file(), "{} is missing: build it with `cargo build -p ombx-cli`", path.display());
        path
    })
}

/// Returns the launcher: `OMBX_MPIEXEC`, or the first on `PATH` that belongs to this MPI.
pub fn mpiexec() -> &'static Path {
    static MPIEXEC: OnceLock<PathBuf> = OnceLock::new();
    MPIEXEC.get_or_init(|| {
        let named = env::var_os("OMBX_MPIEXEC").map(PathBuf::from);
        named.or_else(|| launcher_of(ombx_mpi::family())).unwrap_or_else(|| {
            panic!("no mpiexec of {} is installed; set OMBX_MPIEXEC", ombx_mpi::family().name())
        })
    })
}

/// Returns a launcher of the other MPI, if it is installed.
pub fn other_mpiexec() -> Option<PathBuf> {
    launcher_of(if is_open_mpi() { Family::Mpich } else { Family::OpenMpi })
}

/// Returns the name of the MPI.
pub fn name() -> &'static str {
    ombx_mpi::family().name()
}

/// Returns whether it is Open MPI; otherwise it is MPICH or derives from it.
pub fn is_open_mpi() -> bool {
    ombx_mpi::family() == Family::OpenMpi
}

fn launcher_of(family: Family) -> Option<PathBuf> {
    let (names, words): (&[&str], &[&str]) = match family {
        Family::OpenMpi => (&["mpiexec.openmpi", "orterun", "prterun", "mpiexec"], &["open", "prrte"]),
        Family::Mpich | Family::Other => {
            (&["mpiexec.mpich", "mpiexec.hydra", "mpiexec"], &["hydra", "intel"])
        }
    };
    let path = env::var_os("PATH")?;
    let directories: Vec<PathBuf> = env::split_paths(&path).collect();
    let candidates = names.iter().flat_map(|name| directories.iter().map(move |d| d.join(name)));
    candidates.filter(|path| path.is_file()).find(|path| says(path, words))
}

fn says(program: &Path, words: &[&str]) -> bool {
    let Ok(output) = Command::new(program).arg("--version").stdin(Stdio::null()).output() else {
        return false;
    };
    let text = String::from_utf8_lossy(&output.stdout).to_lowercase();
    words.iter().any(|word| text.contains(word))
}

/// Returns the number of cores of this host; hardware threads of a core count once.
pub fn cores() -> usize {
    let siblings = |cpu: usize| {
        let file = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
        fs::read_to_string(file).unwrap_or_else(|_| cpu.to_string())
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    (0..threads).map(siblings).collect::<BTreeSet<_>>().len()
}

/// Returns a launcher that writes a line into the file `starts` of this directory each time it starts ranks.
///
/// # Panics
/// The launcher cannot be written.
pub fn counting_launcher(files: &Files) -> PathBuf {
    let (note, real) = (files.path("starts"), mpiexec());
    let script = format!(
        "#!/bin/sh\n[ \"$1\" = --version ] || echo start >> '{}'\nexec '{}' \"$@\"\n",
        note.display(),
        real.display()
    );
    let launcher = files.write("mpiexec", script);
    fs::set_permissions(&launcher, fs::Permissions::from_mode(0o755)).expect("a script");
    launcher
}

/// Returns options of `mpiexec` for ranks on this host. Ranks are bound if there is a core for each.
pub fn launch_options(ranks: u32) -> Vec<OsString> {
    let bound = ranks as usize <= cores();
    let mut words = vec!["-n".to_owned(), ranks.to_string()];
    let more: &[&str] = match (is_open_mpi(), bound) {
        (true, true) => &["--oversubscribe", "--bind-to", "core"],
        (true, false) => &["--oversubscribe", "--bind-to", "none"],
        (false, true) => &["-bind-to", "core"],
        (false, false) => &[],
    };
    words.extend(more.iter().map(|&word| word.to_owned()));
    words.into_iter().map(Into::into).collect()
}

/// Returns environment variables that `mpiexec` needs as root and without a remote shell.
pub fn launch_environment() -> impl Iterator<Item = (&'static str, &'static str)> {
    let open_mpi = [
        ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
        ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
        ("PRTE_ALLOW_RUN_AS_ROOT", "1"),
        ("PRTE_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
        ("OMPI_MCA_plm_rsh_agent", "sh"),
    ];
    open_mpi.into_iter().filter(|_| is_open_mpi())
}

/// Returns the environment variable with which Open MPI takes the component that it chooses on a machine without a fabric, unless the
/// caller's environment names one. The search for fabrics sleeps: it is two thirds of the start of a job, 0.2 s.
pub fn without_search_for_fabrics() -> Option<(&'static str, &'static str)> {
    let (name, component) = ("OMPI_MCA_pml", "ob1");
    (is_open_mpi() && env::var_os(name).is_none()).then_some((name, component))
}

/// Returns arguments of `ombx run` that set an environment variable in the ranks, but not in their launcher.
pub fn variable_of_ranks(name: &str, value: impl AsRef<OsStr>) -> Vec<OsString> {
    let word = |word: &OsStr| {
        let mut argument = OsString::from("--launcher-arg=");
        argument.push(word);
        argument
    };
    if is_open_mpi() {
        let mut pair = OsString::from(format!("{name}="));
        pair.push(value);
        vec![word("-x".as_ref()), word(&pair)]
    } else {
        vec![word("-genv".as_ref()), word(name.as_ref()), word(value.as_ref())]
    }
}
