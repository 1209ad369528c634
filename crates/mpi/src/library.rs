//! The MPI library itself: which it is, starting and finishing it, and ending the job.

use std::time::Duration;

use mpi::environment::Universe;
use ombx_core::{
    error::{Error, Result},
    threads::Threading,
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

/// Whether the library that was started lets several threads call it at the same time.
pub(crate) fn thread_multiple() -> Result<()> {
    match mpi::environment::threading_support() {
        mpi::Threading::Multiple => Ok(()),
        level => Err(Error::unsupported(format!("needs MPI_THREAD_MULTIPLE, the library grants {level:?}"))),
    }
}

/// A started MPI. It is finished when dropped, which every rank must do.
pub struct Mpi {
    // Dropped in this order: communicators, then MPI.
    team: Option<MpiTeam>,
    universe: Option<Universe>,
}

impl Mpi {
    /// Starts MPI on this process, for its main thread alone or for several threads.
    pub fn start(threading: Threading) -> Result<Mpi> {
        if !ext::same_headers() {
            return Err(Error::fabric("two MPIs are mixed in this build: use one target directory for each"));
        }
        let started = mpi::initialize_with_threading(match threading {
            Threading::Single => mpi::Threading::Funneled,
            Threading::Multiple => mpi::Threading::Multiple,
        });
        let (universe, _) = started.ok_or_else(|| Error::fabric("MPI was started twice"))?;
        Ok(Mpi { team: Some(MpiTeam::world()?), universe: Some(universe) })
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
            // MPICH over TCP can hang in MPI_Finalize when ranks arrive apart; together and after a pause it does not.
            let _ = team.comm().barrier();
            std::thread::sleep(Duration::from_millis(5));
        }
        drop(self.universe.take());
    }
}

/// Ends every rank of the job at once.
pub(crate) fn abort(code: u8) -> ! {
    if mpi::environment::is_initialized() && !mpi::environment::is_finalized() {
        ext::abort(code);
    }
    std::process::exit(i32::from(code))
}

impl Mpi {
    /// Makes a panic on any rank end the whole job: unwinding into MPI_Finalize would hang the others.
    pub fn abort_on_panic() {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            usual(info);
            abort(6);
        }));
    }
}
