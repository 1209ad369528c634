//! What `xtask` and the verification programs share: the workspace, its MPIs, builds, steps with a summary, tables.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a library of programs that report to a person or to a CI log"
)]

mod command;
pub mod consent;
pub mod counts;
pub mod evidence;
mod failure;
pub mod machine;
mod mpi;
mod named;
mod omb;
pub mod process;
pub mod registry;
pub mod release;
mod share;
mod step;
mod table;
mod tally;
pub mod testbed;
mod workspace;

pub use command::{cannot_run, compile, failed, output, output_and_failure, shown, succeeds, this_program};
pub use failure::{Failure, Result, exit_code, failed_if};
pub use mpi::{Flavour, Mpi, Places, Which, installed};
pub use named::named;
pub use omb::Omb;
pub use share::Share;
pub use step::{NO_TEST, Outcome, Step, Summary};
pub use table::table;
pub use tally::Tally;
pub use workspace::{Dependency, Kind, Package, Workspace, cargo, emptied};
