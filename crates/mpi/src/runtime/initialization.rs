//! Initialisation and finalisation of MPI on this process: as the world that every MPI has, or as a session of MPI 4.

use std::{ffi::c_int, ptr, sync::OnceLock, time::Duration};

use mpi::ffi;
use ombx_core::{
    benchmark::{Initialization, Threading},
    error::{Error, Result},
    system::clock::Since,
};

use crate::{
    Comm, MpiTeam,
    runtime::library,
    sys::{constants, error, session},
};

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
        if !constants::same_headers() {
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
            return Ok(Mpi { team: Some(MpiTeam::of(comm)) });
        }
        let mut provided = 0;
        // SAFETY: MPI is not initialised yet, as checked above. Null arguments are allowed (MPI 4.1, 11.2.1), and `provided`
        // outlives the call. The levels are statics of mpi-sys that are never written. The `mpi` crate's own functions ignore the
        // return code.
        let (call, code) = unsafe {
            let wish = match threading {
                Threading::Single => None,
                Threading::Funneled => Some(ffi::RSMPI_THREAD_FUNNELED),
                Threading::Serialized => Some(ffi::RSMPI_THREAD_SERIALIZED),
                Threading::Multiple => Some(ffi::RSMPI_THREAD_MULTIPLE),
            };
            let (argc, argv) = (ptr::null_mut(), ptr::null_mut());
            match wish {
                None => ("MPI_Init", ffi::MPI_Init(argc, argv)),
                Some(wish) => ("MPI_Init_thread", ffi::MPI_Init_thread(argc, argv, wish, &raw mut provided)),
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
        library::abort(code)
    }

    /// Makes a panic on any rank end the whole job: unwinding into `MPI_Finalize` would hang the other ranks.
    pub fn abort_on_panic() {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            usual(info);
            library::abort(6);
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
            library::library_name()
        ))
    }
}

impl Drop for Mpi {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // MPI_Finalize would wait for ranks that never call it.
            library::abort(6);
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
