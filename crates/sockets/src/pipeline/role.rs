//! Running a role of a pipeline, in a process or a thread.

use std::{io, mem::take};

use super::{
    failure::Failure,
    node::node,
    phase::phase,
    task::{Assignment, Plan, Role},
    worker::{receiver, sender},
};
use crate::control::{Channel, Execution};

/// Receives a task and does it, until the parent closes the channel, or until the role fails and has reported why.
pub(super) fn run_role(mut channel: Channel, execution: Execution) -> io::Result<()> {
    let mut task = channel.reader.read().map_err(|e| io::Error::other(e.to_string()))?;
    let parent = channel.writer.clone();
    let done = Plan::of(&task).map_err(Failure::from).and_then(|(plan, role)| {
        let (files, texts) = (take(&mut task.files), Plan::further_texts(&mut task));
        let assignment = Assignment { plan, name: role.name(), texts, files, channel, execution, run_role };
        match role {
            Role::Node { node: number } => node(assignment, number),
            Role::Phase { node, phase: number } => phase(assignment, node, number),
            Role::Sender { phase, peer, .. } => sender(assignment, phase, peer),
            Role::Receiver { phase, peer, .. } => receiver(assignment, phase, peer),
        }
    });
    done.or_else(|failure| parent.write(&failure.message()))
}
