//! The MPI library itself: which it is, starting and finishing it, and ending the job.

use std::{ptr, time::Duration};

use mpi::ffi;
use ombx_core::{
    benchmark::threads::Threading,
    error::{Error, Result},
    system::clock::Since,
};

use crate::{MpiTeam, ext};

/// The families of MPI that differ in launcher and habits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// MPICH and those made from it, with a Hydra launcher.
    Mpich,
    /// Open MPI.
    OpenMpi,
    /// Something else.
    Other,
}

impl Family {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Family::Mpich => "MPICH",
            Family::OpenMpi => "Open MPI",
            Family::Other => "MPI",
        }
    }
}

/// The family that this binary was built with.
pub const fn family() -> Family {
    if cfg!(mpi_family = "mpich") {
        Family::Mpich
    } else if cfg!(mpi_family = "openmpi") {
        Family::OpenMpi
    } else {
        Family::Other
    }
}

/// The library's own words about its version, on one line; legal before it is started.
pub fn library_version() -> String {
    let text = mpi::environment::library_version().unwrap_or_default();
    let line = text.trim_matches('\0').lines().next().unwrap_or_default();
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Its name and version alone.
pub(crate) fn library_name() -> String {
    library_version().split(',').next().unwrap_or_default().to_owned()
}

/// Open MPI 4's compare_and_swap crashes on one host unless its `rdma` component is left out (open-mpi/ompi#11349).
pub fn compare_and_swap_works() -> std::result::Result<(), String> {
    let version = library_version();
    let without_rdma = std::env::var("OMPI_MCA_osc").is_ok_and(|v| match v.strip_prefix('^') {
        Some(excluded) => excluded.split(',').any(|c| c == "rdma"),
        None => !v.split(',').any(|c| c == "rdma"),
    });
    match version.starts_with("Open MPI v4.") && !without_rdma {
        true => Err(format!(
            "{} crashes in MPI_Compare_and_swap; set OMPI_MCA_osc=^rdma,ucx",
            &version[.."Open MPI v4.1.4".len().min(version.len())]
        )),
        false => Ok(()),
    }
}

/// MPICH up to 4.1 ends the job in the second start of a persistent scatter on three ranks or more, now and then in that of an
/// allgather on two or more, and delivers nothing in that of others (pmodels/mpich#7078), which verification catches.
pub(crate) fn persistent_call_works(call: &str, ranks: u32) -> Result<()> {
    let version = library_version();
    let fails = ["MPICH Version: 4.0", "MPICH Version: 4.1"].iter().any(|v| version.starts_with(v));
    let most = match call {
        "MPI_Scatter" => 2,
        "MPI_Allgather" => 1,
        _ => u32::MAX,
    };
    match fails && ranks > most {
        true => Err(Error::unsupported(format!(
            "{version} ends the job when a persistent {call} on {ranks} ranks is started again"
        ))),
        false => Ok(()),
    }
}

/// Whether the library that was started lets several threads call it at the same time.
pub(crate) fn thread_multiple() -> Result<()> {
    match mpi::environment::threading_support() {
        mpi::Threading::Multiple => Ok(()),
        level => Err(Error::unsupported(format!("needs MPI_THREAD_MULTIPLE, the library grants {level:?}"))),
    }
}

/// A started MPI. It is finished when dropped, which every rank must do.
pub struct Mpi {
    // Gone before MPI is.
    team: Option<MpiTeam>,
}

impl Mpi {
    /// Starts MPI on this process, for its main thread alone or for several threads.
    pub fn start(threading: Threading) -> Result<Mpi> {
        if !ext::same_headers() {
            return Err(Error::fabric("two MPIs are mixed in this build: use one target directory for each"));
        }
        if mpi::environment::is_initialized() {
            return Err(Error::fabric("MPI was started twice"));
        }
        let mut provided = 0;
        // SAFETY: not started before; constants of the library; MPI takes no arguments. The `mpi` crate would not look at the code.
        let code = unsafe {
            let wish = match threading {
                Threading::Single => ffi::RSMPI_THREAD_FUNNELED,
                Threading::Multiple => ffi::RSMPI_THREAD_MULTIPLE,
            };
            ffi::MPI_Init_thread(ptr::null_mut(), ptr::null_mut(), wish, &raw mut provided)
        };
        if code != ffi::MPI_SUCCESS as i32 {
            // Without MPI nobody can ask it for words.
            return Err(Error::fabric(format!("MPI_Init_thread: error {code}")));
        }
        Ok(Mpi { team: Some(MpiTeam::world()?) })
    }

    /// All ranks.
    pub fn team(&self) -> &MpiTeam {
        self.team.as_ref().unwrap_or_else(|| unreachable!("the team lives as long as MPI"))
    }
}

impl Drop for Mpi {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // MPI_Finalize would wait for ranks that do not come.
            abort(6);
        }
        if let Some(team) = self.team.take() {
            // MPICH over TCP can hang in MPI_Finalize when ranks arrive apart, or while messages are under way: together and
            // after a pause longer than those take it does not.
            let since = Since::now();
            let _ = team.comm().barrier();
            std::thread::sleep(
                (since.elapsed() * 4).clamp(Duration::from_millis(5), Duration::from_millis(500)),
            );
        }
        // SAFETY: started, and all that is ours is freed. All was measured and written by now: nobody minds the code.
        let _ = unsafe { ffi::MPI_Finalize() };
    }
}

/// Ends every rank of the job at once.
pub(crate) fn abort(code: u8) -> ! {
    if mpi::environment::is_initialized() && !mpi::environment::is_finalized() {
        ext::abort(code);
    }
    if !mpi::environment::is_initialized() && std::env::var_os("PMI_RANK").is_some() {
        // Hydra does not mind how a process without MPI exits, and the others wait for it to start: a signal it minds.
        std::process::abort();
    }
    std::process::exit(i32::from(code))
}

impl Mpi {
    /// Ends every rank of the job, of which this one could not even start.
    pub fn abort(code: u8) -> ! {
        abort(code)
    }

    /// Makes a panic on any rank end the whole job: unwinding into MPI_Finalize would hang the others.
    pub fn abort_on_panic() {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            usual(info);
            abort(6);
        }));
    }
}
