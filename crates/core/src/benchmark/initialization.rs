//! How ranks over MPI initialise it.

use std::str::FromStr;

use crate::error::{Error, Result};

/// Calls that initialise MPI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Initialization {
    /// `MPI_Init` or `MPI_Init_thread`, and a duplicate of `MPI_COMM_WORLD`.
    #[default]
    World,
    /// `MPI_Session_init` of MPI 4, and a communicator of the ranks in the process set `mpi://WORLD`.
    Session,
}

impl Initialization {
    /// Name of the option, and of the label of rows.
    pub const NAME: &'static str = "init";

    /// Returns the name on the command line and in results.
    pub const fn name(self) -> &'static str {
        match self {
            Initialization::World => "world",
            Initialization::Session => "session",
        }
    }

    /// Returns the label of rows: none for the default.
    pub fn label(self) -> Option<(&'static str, &'static str)> {
        (self != Initialization::default()).then(|| (Initialization::NAME, self.name()))
    }
}

impl FromStr for Initialization {
    type Err = Error;

    fn from_str(text: &str) -> Result<Initialization> {
        match text {
            "world" => Ok(Initialization::World),
            "session" => Ok(Initialization::Session),
            _ => Err(Error::usage("not a way to initialise MPI: give world or session")),
        }
    }
}
