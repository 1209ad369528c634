//! How ranks over MPI initialise it.

use crate::{
    benchmark::{Heading, Named, Parameter, ParameterValue, if_chosen},
    error::{Error, Result},
};

/// Calls that initialise MPI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Initialization {
    /// `MPI_Init` or `MPI_Init_thread`, and a duplicate of `MPI_COMM_WORLD`.
    World,
    /// `MPI_Session_init` of MPI 4, and a communicator of the ranks in the process set `mpi://WORLD`.
    Session,
}

impl Initialization {
    /// Returns the name on the command line and in results.
    pub const fn name(self) -> &'static str {
        match self {
            Initialization::World => "world",
            Initialization::Session => "session",
        }
    }
}

impl ParameterValue for Initialization {
    const PARAMETER: &'static Parameter = &Parameter::listed(
        "init",
        "How MPI starts: as the world that every MPI has, or as a session of MPI 4 with a communicator of its own",
        (
            &["world", "session"],
            &["MPI_Init or MPI_Init_thread, and a duplicate of MPI_COMM_WORLD", "MPI_Session_init of MPI 4"],
        ),
        ("world", Named::First(if_chosen::<Initialization>)),
    )
    .under(Heading::General);
    const DEFAULT: Initialization = Initialization::World;
    const ALL: &'static [Initialization] = &[Initialization::World, Initialization::Session];

    fn parse(text: &str) -> Result<Initialization> {
        Initialization::ALL
            .iter()
            .find(|way| way.name() == text)
            .copied()
            .ok_or_else(|| Error::usage("not a way to initialise MPI: give world or session"))
    }

    fn text(self) -> String {
        self.name().to_owned()
    }
}
