//! The MPI library of this build: its family, version, known defects, and the end of a job.

use std::{
    ffi::{CStr, c_int},
    sync::OnceLock,
};

use mpi::ffi;
use ombx_core::{
    benchmark::Threading,
    error::{Error, Result},
};

use crate::sys::{error, session};

/// MPI implementations that differ in launcher and defects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// MPICH and its derivatives, with the Hydra launcher.
    Mpich,
    /// Open MPI.
    OpenMpi,
    /// Any other library.
    Other,
}

impl Family {
    /// Returns the name for messages.
    pub const fn name(self) -> &'static str {
        match self {
            Family::Mpich => "MPICH",
            Family::OpenMpi => "Open MPI",
            Family::Other => "MPI",
        }
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

/// Checks that `MPI_Compare_and_swap` can be used.
///
/// # Errors
/// The library is Open MPI 4 with its component `osc/rdma`, which crashes in this call on one host (open-mpi/ompi#11349).
/// The message names the environment variable that excludes the component.
pub fn compare_and_swap_works() -> std::result::Result<(), String> {
    let version = library_version();
    let without_rdma = std::env::var("OMPI_MCA_osc").is_ok_and(|v| match v.strip_prefix('^') {
        Some(excluded) => excluded.split(',').any(|c| c == "rdma"),
        None => !v.split(',').any(|c| c == "rdma"),
    });
    match version.starts_with("Open MPI v4.") && !without_rdma {
        true => Err(format!(
            "{} crashes in MPI_Compare_and_swap; set OMPI_MCA_osc=^rdma,ucx",
            version.chars().take("Open MPI v4.1.4".len()).collect::<String>()
        )),
        false => Ok(()),
    }
}

/// Refuses persistent collective calls that end the job in MPICH 4.0 and 4.1 (pmodels/mpich#7078), and in Intel MPI, which comes from it.
///
/// There the second start of a persistent scatter on at least 3 ranks, or of an allgather on at least 2, sometimes ends the
/// job. Other persistent calls sometimes deliver no data, which verification detects.
pub(crate) fn persistent_call_works(call: &str, ranks: u32, is_derived: bool) -> Result<()> {
    let version = library_version();
    let versions = ["MPICH Version: 4.0", "MPICH Version: 4.1", "Intel(R) MPI Library 2021"];
    let fails = versions.iter().any(|v| version.starts_with(v));
    let most = match call {
        "MPI_Scatter" => 2,
        "MPI_Allgather" => 1,
        _ => u32::MAX,
    };
    if fails && is_derived && matches!(call, "MPI_Allgather" | "MPI_Gather" | "MPI_Scatter") {
        return Err(Error::unsupported(format!(
            "a persistent {call} of a derived datatype delivers wrong data or ends the job in {version}"
        )));
    }
    match fails && ranks > most {
        true => Err(Error::unsupported(format!(
            "{version} ends the job when a persistent {call} on {ranks} ranks is started again"
        ))),
        false => Ok(()),
    }
}

/// Refuses `MPI_Neighbor_alltoallw` on a rank with more sources than destinations in MPICH 4.0, where the call returns before all data
/// has arrived.
pub(crate) fn neighbour_call_works(call: &str, sources: usize, destinations: usize) -> Result<()> {
    let version = library_version();
    match call == "MPI_Neighbor_alltoallw"
        && sources > destinations
        && version.starts_with("MPICH Version: 4.0")
    {
        true => Err(Error::unsupported(format!(
            "{version} returns from {call} before all data has arrived if a rank has more sources than destinations: give ranks as many \
             destinations"
        ))),
        false => Ok(()),
    }
}

/// Returns the level of thread support that the initialised library or the session grants; `None` if it does not name one.
pub(crate) fn threading() -> Option<Threading> {
    if session::is_open() {
        return session::threading();
    }
    let mut granted = -1;
    // SAFETY: MPI is initialised, and `granted` outlives the call. The levels are statics of mpi-sys that are never written.
    let (code, levels) = unsafe {
        let code = ffi::MPI_Query_thread(&raw mut granted);
        let levels = [
            (ffi::RSMPI_THREAD_SINGLE, Threading::Single),
            (ffi::RSMPI_THREAD_FUNNELED, Threading::Funneled),
            (ffi::RSMPI_THREAD_SERIALIZED, Threading::Serialized),
            (ffi::RSMPI_THREAD_MULTIPLE, Threading::Multiple),
        ];
        (code, levels)
    };
    let of_code = |(level, threading): &(c_int, Threading)| (*level == granted).then_some(*threading);
    levels.iter().find_map(of_code).filter(|_| code == ffi::MPI_SUCCESS as c_int)
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
