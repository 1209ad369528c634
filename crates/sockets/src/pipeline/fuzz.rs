//! Messages of a pipeline, parsed from any bytes.

use std::io::Cursor;

use super::{
    coordinator::NodeRun,
    failure::Failure,
    hosts::Hosts,
    shape::{MAX_BUFFERS, MAX_NODES, MAX_PHASES, Shape},
    task::Plan,
};
use crate::control::{MAX_PIPELINE_MESSAGE, Message, MessageReader};

/// Reads messages. Checks that each survives encoding and that a task is within the limits.
pub fn pipeline(bytes: &[u8]) {
    let mut reader = MessageReader::pipe(Cursor::new(bytes.to_vec()), MAX_PIPELINE_MESSAGE);
    while let Ok(message) = reader.read() {
        let again = Message::try_from(message.frame()).unwrap();
        assert_eq!(
            (again.kind, &again.numbers, &again.texts),
            (message.kind, &message.numbers, &message.texts)
        );
        assert_eq!(again.data, message.data);
        Failure::of(&message);
        if let Ok((plan, role)) = Plan::of(&message) {
            let Shape { nodes, phases, buffers, block } = plan.shape;
            assert!(nodes <= MAX_NODES && phases <= MAX_PHASES && buffers <= MAX_BUFFERS && block > 0);
            assert_eq!(Plan::of(&plan.task(role)).unwrap(), (plan, role));
        }
        if let Ok(hosts) = Hosts::parse(message.text(0)) {
            hosts.local(3);
        }
        if let Ok(run) = NodeRun::of(message, &Shape { nodes: 2, phases: 2, buffers: 1, block: 1 }) {
            assert_eq!((run.waits.len(), run.left.len(), run.arrived.len()), (2, 1, 1));
        }
    }
}
