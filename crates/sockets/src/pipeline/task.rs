//! What a process of a pipeline is told when it starts, and becoming that.

use std::os::fd::OwnedFd;

use ombx_core::error::{Error, Result};

use super::{
    ends::End,
    failure::Failure,
    memory::Waiting,
    node,
    note::{Kind, Note},
    phase,
    process::{Crew, Line, Orphan},
    shape::Shape,
    worker,
};

/// What all processes of a pipeline know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) shape: Shape,
    pub(super) crew: Crew,
    pub(super) waiting: Waiting,
    pub(super) source: End,
    pub(super) sink: End,
}

/// Which process this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// A node.
    Node { node: u32 },
    /// A phase of a node.
    Phase { node: u32, phase: u32 },
    /// Sends block `peer` of every buffer to node `peer`.
    Sender { node: u32, phase: u32, peer: u32 },
    /// Receives block `peer` of every buffer from node `peer`.
    Receiver { node: u32, phase: u32, peer: u32 },
}

impl Role {
    /// As failures and `ps` show it. Phases are counted from 1, nodes from 0.
    pub(super) fn name(self) -> String {
        match self {
            Role::Node { node } => format!("node {node}"),
            Role::Phase { node, phase } => format!("phase {} of node {node}", phase + 1),
            Role::Sender { node, phase, peer } => {
                format!("sender to node {peer} in phase {} of node {node}", phase + 1)
            }
            Role::Receiver { node, phase, peer } => {
                format!("receiver from node {peer} in phase {} of node {node}", phase + 1)
            }
        }
    }

    /// Whether a pipeline of this shape has it.
    fn is_of(self, shape: &Shape) -> bool {
        let (node, phase, peer) = match self {
            Role::Node { node } => (node, 0, 0),
            Role::Phase { node, phase } => (node, phase, 0),
            Role::Sender { node, phase, peer } | Role::Receiver { node, phase, peer } => (node, phase, peer),
        };
        node < shape.nodes && phase < shape.phases && peer < shape.nodes
    }
}

impl Plan {
    /// The note that makes a process of this plan someone.
    pub(super) fn task(&self, role: Role) -> Note {
        let (kind, place) = match role {
            Role::Node { node } => (0, [node, 0, 0]),
            Role::Phase { node, phase } => (1, [node, phase, 0]),
            Role::Sender { node, phase, peer } => (2, [node, phase, peer]),
            Role::Receiver { node, phase, peer } => (3, [node, phase, peer]),
        };
        let Shape { nodes, phases, buffers, block } = self.shape;
        Note::new(Kind::Task)
            .numbers([kind].into_iter().chain(place.map(u64::from)))
            .numbers([nodes, phases, buffers].map(u64::from))
            .numbers([block, self.crew as u64, self.waiting as u64])
            .words([self.source.text(), self.sink.text()])
    }

    pub(super) fn of(note: &Note) -> Result<(Plan, Role)> {
        // What does not fit is beyond every limit.
        let short = |at| u32::try_from(note.number(at)).unwrap_or(u32::MAX);
        let (node, phase, peer) = (short(1), short(2), short(3));
        let role = match note.number(0) {
            0 => Role::Node { node },
            1 => Role::Phase { node, phase },
            2 => Role::Sender { node, phase, peer },
            _ => Role::Receiver { node, phase, peer },
        };
        let shape = Shape { nodes: short(4), phases: short(5), buffers: short(6), block: note.number(7) };
        if note.kind != Kind::Task
            || note.numbers.len() < 10
            || !shape.is_within_limits()
            || !role.is_of(&shape)
        {
            return Err(Error::fabric("a process of a pipeline was told something else than its task"));
        }
        let crew = if note.number(8) == 0 { Crew::Processes } else { Crew::Threads };
        let waiting = if note.number(9) == 0 { Waiting::Asleep } else { Waiting::Spinning };
        let (source, sink) = (End::parse(note.word(0))?, End::parse(note.word(1))?);
        Ok((Plan { shape, crew, waiting, source, sink }, role))
    }
}

/// A process with what it was told.
pub(super) struct Told {
    pub(super) plan: Plan,
    pub(super) name: String,
    /// The rest of the note: what came behind the plan.
    pub(super) words: Vec<String>,
    pub(super) files: Vec<OwnedFd>,
    pub(super) line: Line,
    pub(super) orphan: Orphan,
}

/// Waits for the task and does it, until whoever started this process ends it or is gone, or until it fails and has said so.
pub(super) fn serve(mut line: Line, orphan: Orphan) -> std::io::Result<()> {
    let mut note = line.inlet.receive()?;
    let up = line.outlet.clone();
    let done = Plan::of(&note).map_err(Failure::from).and_then(|(plan, role)| {
        let files = std::mem::take(&mut note.files);
        let told = Told { plan, name: role.name(), words: note.words, files, line, orphan };
        match role {
            Role::Node { node } => node::node(told, node),
            Role::Phase { node, phase } => phase::phase(told, node, phase),
            Role::Sender { phase, peer, .. } => worker::sender(told, phase, peer),
            Role::Receiver { phase, peer, .. } => worker::receiver(told, phase, peer),
        }
    });
    done.or_else(|failure| up.send(&failure.note()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_survives_the_way() {
        let shape = Shape { nodes: 3, phases: 4, buffers: 5, block: 1 << 40 };
        let sink = End::File("/tmp/a:b c".into());
        let plan = Plan { shape, crew: Crew::Threads, waiting: Waiting::Spinning, source: End::Memory, sink };
        for role in [
            Role::Node { node: 2 },
            Role::Phase { node: 1, phase: 3 },
            Role::Sender { node: 2, phase: 0, peer: 1 },
            Role::Receiver { node: 0, phase: 3, peer: 2 },
        ] {
            assert_eq!(Plan::of(&plan.task(role)).unwrap(), (plan.clone(), role));
        }
        assert!(Plan::of(&Note::new(Kind::Ready)).is_err());
        assert!(Plan::of(&Note::new(Kind::Task)).is_err());
    }
}
