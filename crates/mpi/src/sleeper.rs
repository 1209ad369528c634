//! A forked child that does nothing, to see whether MPI survives forks.

use std::ffi::c_int;

use ombx_core::error::{Error, Result};

unsafe extern "C" {
    fn ombx_fork_sleeper() -> c_int;
    fn ombx_end_sleeper(child: c_int) -> c_int;
}

/// A copy of this process that sleeps until this is dropped, or until the rank that made it dies.
#[derive(Debug)]
pub struct Sleeper(c_int);

impl Sleeper {
    /// Forks this process.
    pub fn fork() -> Result<Sleeper> {
        // SAFETY: the child returns to no Rust code: it makes only calls that are safe after a fork of a process with
        // threads (prctl, getppid, pause, _exit), so that no lock or allocator is met in the state of the fork.
        match unsafe { ombx_fork_sleeper() } {
            child @ 1.. => Ok(Sleeper(child)),
            _ => Err(Error::unsupported("this process could not be forked")),
        }
    }

    /// Ends the child and says whether it lived until now.
    pub fn end(self) -> Result<()> {
        let child = self.0;
        std::mem::forget(self);
        // SAFETY: a child of ours that nobody has waited for.
        match unsafe { ombx_end_sleeper(child) } {
            0 => Ok(()),
            _ => Err(Error::fabric("a forked child did not live as long as its case")),
        }
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        // SAFETY: a child of ours that nobody has waited for.
        unsafe { ombx_end_sleeper(self.0) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleeper_lives_until_it_is_ended() {
        let sleeper = Sleeper::fork().unwrap();
        let stat = format!("/proc/{}/stat", sleeper.0);
        assert!(std::fs::exists(&stat).unwrap());
        sleeper.end().unwrap();
        assert!(!std::fs::exists(&stat).unwrap());
    }

    #[test]
    fn a_sleeper_that_is_dropped_is_gone() {
        let sleeper = Sleeper::fork().unwrap();
        let stat = format!("/proc/{}/stat", sleeper.0);
        drop(sleeper);
        assert!(!std::fs::exists(&stat).unwrap());
    }
}
