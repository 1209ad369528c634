//! What a process of a pipeline does: its role.

use std::io;

use ombx_core::error::Error;

use crate::{
    control::{Channel, Execution},
    pipeline::{
        Failure,
        message::{Assignment, Message, Role},
        node::node,
        phase::phase,
        worker::{receiver, sender},
    },
};

/// Receives a task and does it, until the parent closes the channel, or until the role fails and has reported why.
pub(super) fn run_role(mut channel: Channel, execution: Execution) -> io::Result<()> {
    let (message, files) = channel.reader.read_with_files().map_err(|e| io::Error::other(e.to_string()))?;
    let parent = channel.writer.clone();
    let task = match message {
        Message::Task(task) => task.checked().map_err(Failure::from),
        _ => Err(Failure::from(Error::fabric("a process of a pipeline received no task"))),
    };
    let done = task.and_then(|task| {
        let role = task.role;
        let assignment = Assignment {
            plan: task.plan,
            name: role.name(),
            entrance: task.entrance,
            files,
            channel,
            execution,
            run_role,
        };
        match role {
            Role::Node { node: number } => node(assignment, number),
            Role::Phase { node, phase: number } => phase(assignment, node, number),
            Role::Sender { phase, peer, .. } => sender(assignment, phase, peer),
            Role::Receiver { phase, peer, .. } => receiver(assignment, phase, peer),
        }
    });
    done.or_else(|failure| parent.write(&Message::Failure(failure)))
}
