//! A forked child that does nothing, to see whether MPI survives a fork.

use std::ffi::c_int;

use ombx_core::error::{Error, Result};

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
mod tests {
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
