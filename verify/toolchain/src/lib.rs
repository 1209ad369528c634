//! What `xtask` and the verification programs share: the workspace, its MPIs, builds, steps with a summary, tables.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a library of programs that report to a person or to a CI log"
)]

pub mod command;
pub mod consent;
pub mod evidence;
pub mod failure;
pub mod machine;
pub mod mpi;
pub mod omb;
pub mod process;
pub mod registry;
pub mod release;
pub mod step;
pub mod table;
pub mod tally;
pub mod testbed;
pub mod workspace;
