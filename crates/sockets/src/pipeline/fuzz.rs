//! Notes, and what processes of a pipeline make of them, from any bytes.

use std::io::Cursor;

use super::{
    coordinator::NodeRun,
    failure::Failure,
    hosts::Hosts,
    note::{Inlet, Note},
    shape::{MOST_BUFFERS, MOST_NODES, MOST_PHASES, Shape},
    task::Plan,
};

/// Every note that can be read: who is told to be someone has a task that some machine could do.
pub fn pipeline(bytes: &[u8]) {
    let mut inlet = Inlet::Pipe(Box::new(Cursor::new(bytes.to_vec())));
    while let Ok(note) = inlet.receive() {
        let Note { kind, numbers, words, .. } = Note::of(&note.frame()).unwrap();
        assert_eq!((kind, &numbers, &words), (note.kind, &note.numbers, &note.words));
        Failure::of(&note);
        if let Ok((plan, role)) = Plan::of(&note) {
            let Shape { nodes, phases, buffers, block } = plan.shape;
            assert!(nodes <= MOST_NODES && phases <= MOST_PHASES && buffers <= MOST_BUFFERS && block > 0);
            assert_eq!(Plan::of(&plan.task(role)).unwrap(), (plan, role));
        }
        if let Ok(hosts) = Hosts::parse(note.word(0)) {
            hosts.local(3);
        }
        if let Ok(run) = NodeRun::of(note, &Shape { nodes: 2, phases: 2, buffers: 1, block: 1 }) {
            assert_eq!((run.waits.len(), run.left.len(), run.arrived.len()), (2, 1, 1));
        }
    }
}
