//! The MPI library of this build: its family, version, known defects, and the end of a job.

use std::{
    env,
    ffi::{CStr, CString, OsStr, c_char, c_int},
    fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    ptr,
    sync::OnceLock,
    time::Duration,
};

use mpi::ffi;
use ombx_core::{
    benchmark::{Initialization, ParameterValue, Threading, memory::Api, payload::Blocks},
    error::{Error, Result},
    fact::{Fact, Facts},
};
use ombx_host::{
    loaded::{MPI_LIBRARIES, is_communicating, is_one_of},
    since::Since,
};

use crate::{
    Comm, MpiTeam, WindowKind,
    runtime::device_support,
    sys::{self, error, session},
};

ombx_core::named! {
    /// MPI implementations that differ in launcher and defects.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Family {
        /// MPICH and its derivatives, with the Hydra launcher.
        Mpich = "MPICH",
        /// Open MPI.
        OpenMpi = "Open MPI",
        /// Any other library.
        Other = "MPI",
    }
}

/// Returns the family of the library that this process runs with, as the library names itself.
pub fn family() -> Family {
    static FAMILY: OnceLock<Family> = OnceLock::new();
    *FAMILY.get_or_init(|| {
        let version = library_version();
        let is = |word: &str| version.contains(word);
        if is("Open MPI") {
            Family::OpenMpi
        } else if ["MPICH", "Intel(R) MPI", "MVAPICH"].into_iter().any(is) {
            Family::Mpich
        } else {
            Family::Other
        }
    })
}

/// Returns the whole text of `MPI_Get_library_version`; empty if the call fails.
pub(crate) fn version_text() -> String {
    let mut text = vec![0u8; ffi::MPI_MAX_LIBRARY_VERSION_STRING as usize + 1];
    let mut length = 0;
    // SAFETY: MPI writes at most MPI_MAX_LIBRARY_VERSION_STRING bytes; the buffer has one more, which stays zero. The call is legal at
    // any time (MPI 4.1, 9.1.1).
    let code = unsafe { ffi::MPI_Get_library_version(text.as_mut_ptr().cast(), &raw mut length) };
    match CStr::from_bytes_until_nul(&text) {
        Ok(text) if code == ffi::MPI_SUCCESS as c_int => text.to_string_lossy().into_owned(),
        _ => String::new(),
    }
}

/// Returns the first line of `MPI_Get_library_version`, which may be called before MPI is initialised.
pub fn library_version() -> String {
    let text = version_text();
    let line = text.lines().next().unwrap_or_default();
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns a function of the libraries that this process has loaded.
pub(super) fn function(name: &std::ffi::CStr) -> Option<*mut std::ffi::c_void> {
    // SAFETY: the name is terminated by zero.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// Returns the paths of the files that this process has mapped, sorted.
pub(super) fn mapped() -> std::collections::BTreeSet<String> {
    paths(&std::fs::read_to_string("/proc/self/maps").unwrap_or_default())
}

/// Returns the paths in the text of `/proc/self/maps`.
pub(super) fn paths(maps: &str) -> std::collections::BTreeSet<String> {
    maps.lines().filter_map(|line| line.find('/').map(|at| line[at..].to_owned())).collect()
}

/// Returns the library's name and version without build details.
pub(crate) fn library_name() -> String {
    library_version().split(',').next().unwrap_or_default().to_owned()
}

/// Checks that `MPI_Compare_and_swap` of elements of a width can be used on a kind of window.
///
/// # Errors
/// The library is Open MPI 4 with its component `osc/rdma`, which crashes on one host if the library allocates the window and an element has
/// 8 bytes (open-mpi/ompi#11349). The message names the environment variable that excludes the component.
pub fn compare_and_swap_works(kind: WindowKind, width: u64) -> Result<()> {
    let version = library_version();
    let without_rdma = env::var("OMPI_MCA_osc").is_ok_and(|v| match v.strip_prefix('^') {
        Some(excluded) => excluded.split(',').any(|c| c == "rdma"),
        None => !v.split(',').any(|c| c == "rdma"),
    });
    if kind == WindowKind::Allocate && width == 8 && version.starts_with("Open MPI v4.") && !without_rdma {
        return Err(Error::unsupported(format!(
            "{} crashes in MPI_Compare_and_swap of 8 bytes on a window that it allocates; set OMPI_MCA_osc=^rdma,ucx",
            library_name()
        )));
    }
    Ok(())
}

/// Refuses persistent collective calls that end the job: a scatter on at least 3 ranks in MPICH 4.0 and 4.1 (pmodels/mpich#7078), and in
/// Intel MPI, which comes from it, also an allgather. Other persistent calls deliver no data there, which verification detects.
pub(crate) fn persistent_call_works(call: &str, ranks: u32, blocks: Option<Blocks>) -> Result<()> {
    let version = library_version();
    let is = |start: &str| version.starts_with(start);
    let is_intel = is("Intel(R) MPI Library 2021");
    if !(is_intel || is("MPICH Version: 4.0") || is("MPICH Version: 4.1")) {
        return Ok(());
    }
    if blocks.is_some() && matches!(call, "MPI_Allgather" | "MPI_Gather" | "MPI_Scatter") {
        return Err(Error::unsupported(format!(
            "a persistent {call} of a derived datatype delivers wrong data or ends the job in {version}"
        )));
    }
    if call == "MPI_Scatter" && ranks > 2 || call == "MPI_Allgather" && ranks > 1 && is_intel {
        return Err(Error::unsupported(format!(
            "{version} ends the job when a persistent {call} on {ranks} ranks is started again"
        )));
    }
    Ok(())
}

/// Refuses `MPI_Neighbor_alltoallw` on a rank with more sources than destinations in MPICH 4.0, where the call returns before all data
/// has arrived.
pub(crate) fn neighbour_call_works(call: &str, sources: usize, destinations: usize) -> Result<()> {
    let version = library_version();
    if call == "MPI_Neighbor_alltoallw" && sources > destinations && version.starts_with("MPICH Version: 4.0")
    {
        Err(Error::unsupported(format!(
            "{version} returns from {call} before all data has arrived if a rank has more sources than \
             destinations: give ranks as many destinations"
        )))
    } else {
        Ok(())
    }
}

/// Returns the level of thread support that the initialised library or the session grants; `None` if it does not name one.
pub(crate) fn threading() -> Option<Threading> {
    if session::is_open() {
        return session::threading();
    }
    let mut granted = -1;
    // SAFETY: MPI is initialised, and `granted` outlives the call.
    let code = unsafe { ffi::MPI_Query_thread(&raw mut granted) };
    let is_granted =
        |threading: &Threading| code == ffi::MPI_SUCCESS as c_int && level(*threading) == granted;
    Threading::ALL.iter().copied().find(is_granted)
}

/// Returns MPI's number of a level of thread support.
fn level(threading: Threading) -> c_int {
    // SAFETY: these statics of mpi-sys are never written.
    unsafe {
        match threading {
            Threading::Single => ffi::RSMPI_THREAD_SINGLE,
            Threading::Funneled => ffi::RSMPI_THREAD_FUNNELED,
            Threading::Serialized => ffi::RSMPI_THREAD_SERIALIZED,
            Threading::Multiple => ffi::RSMPI_THREAD_MULTIPLE,
        }
    }
}

/// Refuses a library that grants less than a level of thread support.
///
/// # Errors
/// The level that the library or the session grants.
pub fn grants(level: Threading) -> Result<()> {
    match threading() {
        Some(granted) if granted >= level => Ok(()),
        Some(granted) => Err(Error::unsupported(format!(
            "needs MPI_THREAD_{}, the library grants {}",
            level.name().to_uppercase(),
            granted.name()
        ))),
        None if session::is_open() => Err(Error::unsupported(format!(
            "needs MPI_THREAD_{}, the session does not say what it grants",
            level.name().to_uppercase()
        ))),
        None => Err(Error::fabric(
            "the MPI library grants a level of thread support that does not exist: install it again",
        )),
    }
}

/// Ends every rank of the job at once.
pub(crate) fn abort(code: u8) -> ! {
    if session::is_open() || mpi::environment::is_initialized() && !mpi::environment::is_finalized() {
        error::abort(code);
    }
    if !session::was_open() && !mpi::environment::is_initialized() && std::env::var_os("PMI_RANK").is_some() {
        // The other ranks wait in MPI_Init for this one. Hydra ignores the exit code of a process that has not initialised
        // MPI, but ends the job when such a process dies by a signal.
        std::process::abort();
    }
    std::process::exit(i32::from(code))
}

/// Lines of `MPI_Get_library_version` of MPICH and its derivatives, and the names of their facts.
const LINES: [(&str, &str); 3] = [
    ("MPICH Device:", "device"),
    ("MPICH CC:", "library_compiler"),
    ("MPICH configure:", "library_configuration"),
];
/// Returns the file of the MPI library that this process has loaded; `None` if MPI is linked statically.
pub fn library_file() -> Option<PathBuf> {
    mapped().into_iter().find(|path| is_one_of(path, &MPI_LIBRARIES)).map(PathBuf::from)
}

/// Returns the facts.
pub(crate) fn facts() -> Facts {
    let text = version_text();
    let mut facts = of_text(text.trim_matches('\0'));
    let files: Vec<String> = mapped().into_iter().filter(|path| is_communicating(path)).collect();
    let files = Some(files.join(", ")).filter(|files| !files.is_empty());
    facts.insert(
        "library_files".into(),
        Fact::new(files, "MPI is linked statically, or /proc/self/maps cannot be read"),
    );
    let granted = threading().map(|level| level.name().to_owned());
    facts.insert("thread_level".into(), Fact::new(granted, "the library does not say what it grants"));
    facts.extend(device_support::facts());
    facts
}

fn of_text(text: &str) -> Facts {
    let value = |start: &str| {
        let value = text.lines().find_map(|line| line.trim_start().strip_prefix(start))?;
        Some(value.split_whitespace().collect::<Vec<_>>().join(" ")).filter(|value| !value.is_empty())
    };
    LINES.iter().filter_map(|(start, name)| Some(((*name).to_owned(), Fact::Known(value(start)?)))).collect()
}

/// Names of the two modules: transports, and hooks that notice allocations.
const TRANSPORTS: &str = "uct";
const HOOKS: &str = "ucm";

/// Returns why UCX does not recognise memory of devices, if the library communicates over UCX and this can be known.
pub(super) fn ucx_problem(api: Api) -> Option<String> {
    if !is_used() {
        return None;
    }
    let tls = env::var("UCX_TLS").unwrap_or_default();
    let (name, copy) = match api {
        Api::Cuda => ("cuda", "cuda_copy"),
        Api::Rocm => ("rocm", "rocm_copy"),
    };
    if !allows(&tls, name, copy) {
        return Some(format!(
            "UCX_TLS={tls} excludes {copy}, without which UCX takes it for memory of the host"
        ));
    }
    // The table of allocations needs the hooks. Without it UCX asks the driver about each address.
    let has_table = !env::var("UCX_MEMTYPE_CACHE")
        .is_ok_and(|value| ["n", "no", "off", "0"].contains(&&*value.to_lowercase()));
    let kinds = [Some(TRANSPORTS), has_table.then_some(HOOKS)];
    let directories = directories();
    let modules = kinds.into_iter().flatten().map(|kind| format!("lib{kind}_{name}.so"));
    let missing =
        modules.filter(|_| !directories.is_empty()).find(|module| !can_load(&directories, module))?;
    Some(format!(
        "its UCX cannot load the module {missing}, without which UCX takes it for memory of the host"
    ))
}

/// Returns whether messages of the library go through UCX.
fn is_used() -> bool {
    match selected_pml() {
        Some(pml) => pml == "ucx",
        None => version_text().contains("ch4:ucx"),
    }
}

/// Returns the component of Open MPI for messages; `None` of another library.
fn selected_pml() -> Option<String> {
    /// Beginning of `mca_base_component_t` of Open MPI 1.7 to 5.
    #[repr(C)]
    struct Component {
        version: [i32; 3],
        project: [c_char; 16],
        project_version: [i32; 3],
        kind: [c_char; 32],
        kind_version: [i32; 3],
        name: [c_char; 64],
    }
    let found = function(c"mca_pml_base_selected_component")?;
    // SAFETY: Open MPI, the only library with this symbol, has a component there, whose texts end with zero.
    let (kind, name) = unsafe {
        let component = &*found.cast::<Component>();
        (CStr::from_ptr(component.kind.as_ptr()), CStr::from_ptr(component.name.as_ptr()))
    };
    (kind == c"pml").then(|| name.to_string_lossy().into_owned())
}

/// Returns whether a value of `UCX_TLS` has the transport that copies from and to devices.
fn allows(tls: &str, all: &str, copy: &str) -> bool {
    let (names, excludes) = tls.strip_prefix('^').map_or((tls, false), |names| (names, true));
    let mut names = names.split(',');
    if excludes {
        names.all(|name| name != all && name != copy)
    } else {
        names.any(|name| ["", "all", all, copy].contains(&name))
    }
}

/// Returns the directories in which UCX looks for modules; none if its libraries are not files of their own.
fn directories() -> Vec<PathBuf> {
    let files = mapped();
    let own = files.iter().find(|path| path.contains("/libucs.so")).map(Path::new).and_then(Path::parent);
    let Some(own) = own else { return Vec::new() };
    [Some(own.join("ucx")), env::var_os("UCX_MODULE_DIR").map(PathBuf::from)].into_iter().flatten().collect()
}

/// Returns whether a file of a module exists and its libraries do too.
fn can_load(directories: &[PathBuf], module: &str) -> bool {
    let of_module =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.as_bytes().starts_with(module.as_bytes()));
    let files = directories.iter().filter_map(|directory| fs::read_dir(directory).ok()).flatten();
    let mut files = files.filter_map(|entry| Some(entry.ok()?.path())).filter(of_module);
    files.any(|path| is_library(path.as_os_str()))
}

fn is_library(path: &OsStr) -> bool {
    let Ok(path) = CString::new(path.as_bytes()) else { return false };
    // SAFETY: UCX loads this module in the same way, or has done so.
    unsafe {
        let library = libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_LOCAL);
        !library.is_null() && libc::dlclose(library) == 0
    }
}

/// Duration of the calls that initialise MPI on this process.
static INITIALIZATION_TIME: OnceLock<Duration> = OnceLock::new();

/// An initialised MPI. Dropping it finalises MPI, which every rank must do.
pub struct Mpi {
    /// Taken out before MPI is finalised.
    team: Option<MpiTeam>,
}

impl Mpi {
    /// Initialises MPI as a world.
    ///
    /// # Errors
    /// As [`Mpi::start_as`].
    pub fn start(threading: Threading) -> Result<Mpi> {
        Mpi::start_as(Initialization::World, threading)
    }

    /// Initialises MPI as a world or as a session, for a level of thread support: by `MPI_Init` for one thread, as most programs do,
    /// otherwise by `MPI_Init_thread`. The library may grant another level.
    ///
    /// # Errors
    /// MPI is initialised already, its headers do not match the build, it has no sessions, or a call fails.
    pub fn start_as(initialization: Initialization, threading: Threading) -> Result<Mpi> {
        if !sys::same_headers() {
            return Err(Error::fabric(
                "this binary mixes two MPI libraries: build with one target directory per MPI",
            ));
        }
        if mpi::environment::is_initialized() || session::was_open() {
            return Err(Error::fabric("MPI is already initialised: call Mpi::start once per process"));
        }
        let since = Since::now();
        if initialization == Initialization::Session {
            sessions_exist().map_err(Error::unsupported)?;
            let comm = Comm::of_session(threading)?;
            error::watch_crashes();
            INITIALIZATION_TIME.get_or_init(|| since.elapsed());
            return Ok(Mpi { team: Some(MpiTeam::new(comm)) });
        }
        let mut provided = 0;
        let (argc, argv) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: MPI is not initialised yet, as checked above. Null arguments are allowed (MPI 4.1, 11.2.1), and `provided`
        // outlives the call. The `mpi` crate's own functions ignore the return code.
        let (call, code) = unsafe {
            match threading {
                Threading::Single => ("MPI_Init", ffi::MPI_Init(argc, argv)),
                more => {
                    let code = ffi::MPI_Init_thread(argc, argv, level(more), &raw mut provided);
                    ("MPI_Init_thread", code)
                }
            }
        };
        if code != ffi::MPI_SUCCESS as i32 {
            // MPI_Error_string may not work before initialisation.
            return Err(Error::fabric(format!("{call}: error {code}")));
        }
        INITIALIZATION_TIME.get_or_init(|| since.elapsed());
        let team = MpiTeam::world()?;
        error::watch_crashes();
        Ok(Mpi { team: Some(team) })
    }

    /// Returns the team of all ranks.
    pub fn team(&self) -> &MpiTeam {
        self.team.as_ref().unwrap_or_else(|| unreachable!("the team lives as long as MPI"))
    }

    /// Returns how long the initialisation took on this process; `None` before [`Mpi::start`].
    pub fn initialization_time() -> Option<Duration> {
        INITIALIZATION_TIME.get().copied()
    }

    /// Sets the line that this process prints if it fails from now on: what is then not measured.
    pub fn name_rest(line: &str) {
        error::name_rest(line);
    }

    /// Ends every rank of the job, whether MPI is initialised on this process or not.
    pub fn abort(code: u8) -> ! {
        abort(code)
    }

    /// Makes a panic on any rank end the whole job: unwinding into `MPI_Finalize` would hang the other ranks.
    pub fn abort_on_panic() {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            usual(info);
            abort(6);
        }));
    }
}

/// Returns an error with the reason if this MPI has no sessions.
///
/// # Errors
/// The library has no `MPI_Session_init`.
pub fn sessions_exist() -> std::result::Result<(), String> {
    if session::exist() {
        Ok(())
    } else {
        Err(format!(
            "{} has no MPI_Session_init: choose a library of MPI 4, or leave out --init session",
            library_name()
        ))
    }
}

impl Drop for Mpi {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // MPI_Finalize would wait for ranks that never call it.
            abort(6);
        }
        if let Some(team) = self.team.take() {
            // MPICH over TCP can hang in MPI_Finalize when ranks enter it at different times or with messages in transit.
            // A barrier, and a pause of four times its duration, prevent that.
            let since = Since::now();
            let _ = team.comm().barrier();
            std::thread::sleep(
                (since.elapsed() * 4).clamp(Duration::from_millis(5), Duration::from_millis(500)),
            );
        }
        if session::is_open() {
            session::end();
            return;
        }
        // SAFETY: `start` has initialised MPI, and the team's communicator was freed above. The return code is ignored:
        // all results are written by now.
        let _ = unsafe { ffi::MPI_Finalize() };
    }
}

unsafe extern "C" {
    fn ombx_fork_child() -> c_int;
    fn ombx_end_child(child: c_int) -> c_int;
}

/// A forked copy of this process. It sleeps until this value is dropped or the parent dies.
#[derive(Debug)]
pub struct ForkedChild(c_int);

impl ForkedChild {
    /// Forks this process.
    ///
    /// # Errors
    /// The kernel refuses the fork.
    pub fn fork() -> Result<ForkedChild> {
        // SAFETY: the child never returns to Rust code. It calls only async-signal-safe functions (prctl, getppid, pause,
        // _exit), so locks that other threads held at the fork do no harm.
        match unsafe { ombx_fork_child() } {
            child @ 1.. => Ok(ForkedChild(child)),
            _ => Err(Error::unsupported("this process could not be forked")),
        }
    }

    /// Ends the child.
    ///
    /// # Errors
    /// The child has ended before.
    pub fn end(self) -> Result<()> {
        let child = self.0;
        std::mem::forget(self);
        // SAFETY: no code has waited for this child, so its process id is not reused.
        match unsafe { ombx_end_child(child) } {
            0 => Ok(()),
            _ => Err(Error::fabric("a forked child ended before its case did")),
        }
    }
}

impl Drop for ForkedChild {
    fn drop(&mut self) {
        // SAFETY: no code has waited for this child: `end` forgets the value instead of dropping it.
        unsafe { ombx_end_child(self.0) };
    }
}

#[cfg(test)]
mod software_tests {
    use super::*;

    #[test]
    fn the_text_of_mpich_is_split_into_facts() {
        let facts = of_text(
            "MPICH Version:    \t4.0.2\nMPICH Device:    \tch4:ucx\nMPICH CC: \tgcc  -O2\nMPICH CXX: \tg++",
        );
        assert_eq!(facts["device"].known(), Some("ch4:ucx"));
        assert_eq!(facts["library_compiler"].known(), Some("gcc -O2"));
        assert_eq!(facts.len(), 2);
        assert!(of_text("Open MPI v4.1.4, package: Debian OpenMPI").is_empty());
    }

    #[test]
    fn loaded_libraries_are_listed_once() {
        let maps = "7f00-7f01 r--p 0 fe:01 1 /usr/lib/libmpich.so.12.2.2\n\
                    7f01-7f02 r-xp 0 fe:01 1 /usr/lib/libmpich.so.12.2.2\n\
                    7f03-7f04 r--p 0 fe:01 2 /opt/a b/libucp.so.0\n\
                    7f05-7f06 r--p 0 fe:01 3 /usr/lib/libc.so.6\n7f07-7f08 rw-p 0 0 0 [heap]\n";
        let found: Vec<String> = paths(maps).into_iter().filter(|path| is_communicating(path)).collect();
        assert_eq!(found, ["/opt/a b/libucp.so.0", "/usr/lib/libmpich.so.12.2.2"]);
    }
}

#[cfg(test)]
mod ucx_tests {
    use super::*;

    #[test]
    fn transports_are_lists() {
        let found = ["", "all", "tcp,cuda", "self,cuda_copy", "^tcp", "tcp,self", "^cuda", "cuda_ipc"]
            .map(|tls| allows(tls, "cuda", "cuda_copy"));
        assert_eq!(found, [true, true, true, true, true, false, false, false]);
    }
}

#[cfg(test)]
mod forked_child_tests {
    use super::*;

    /// Returns whether a process is a child of this one. Another program may get the number of one that has ended.
    fn is_child(process: c_int) -> bool {
        let parent = format!("\nPPid:\t{}\n", std::process::id());
        std::fs::read_to_string(format!("/proc/{process}/status"))
            .is_ok_and(|status| status.contains(&parent))
    }

    #[test]
    fn a_child_lives_until_it_is_ended() {
        let child = ForkedChild::fork().unwrap();
        let process = child.0;
        assert!(is_child(process));
        child.end().unwrap();
        assert!(!is_child(process));
    }

    #[test]
    fn dropping_a_child_ends_it() {
        let child = ForkedChild::fork().unwrap();
        let process = child.0;
        drop(child);
        assert!(!is_child(process));
    }
}
