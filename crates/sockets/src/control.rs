//! The control layer that sessions and the pipeline share.
//!
//! A [`process::ProcessGroup`] starts processes of this binary in another role, watches them and ends them. Processes exchange
//! messages over a channel: a socket or a pair of pipes. A [`listener::Listener`] admits only peers
//! that show the session's [`token::Token`].

pub(crate) mod channel;
pub mod frame;
pub mod listener;
pub mod process;
pub mod remote_shell;
pub(crate) mod thread;
pub mod token;

pub(crate) use self::{
    channel::{Channel, MAX_PIPELINE_MESSAGE, MessageReader, MessageWriter},
    frame::{FrameError, MAX_BODY},
    listener::{Attempt, Peer},
    process::Execution,
};
pub use self::{
    listener::Listener,
    process::{ProcessGroup, Started},
    remote_shell::RemoteShell,
    token::Token,
};
