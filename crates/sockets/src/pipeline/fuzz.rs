//! Messages of a pipeline, parsed from any bytes.

use std::io::Cursor;

use ombx_core::codec;

use super::message::Message;
use crate::{
    control::{MAX_PIPELINE_MESSAGE, MessageReader},
    pipeline::{
        Hosts,
        shape::{MAX_BUFFERS, MAX_NODES, MAX_PHASES, PipelineShape},
    },
};

/// Reads messages. Checks that each survives encoding and that a task is within the limits.
pub fn pipeline(bytes: &[u8]) {
    let mut reader = MessageReader::pipe(Cursor::new(bytes.to_vec()), MAX_PIPELINE_MESSAGE);
    while let Ok(message) = reader.read::<Message>() {
        let encoded = codec::encode(&message);
        let again: Message = codec::decode(&encoded).unwrap();
        assert_eq!(codec::encode(&again), encoded);
        match message {
            Message::Task(task) => {
                if let Ok(task) = task.checked() {
                    let PipelineShape { nodes, phases, buffers, block } = task.plan.shape;
                    assert!(
                        nodes <= MAX_NODES && phases <= MAX_PHASES && buffers <= MAX_BUFFERS && block > 0
                    );
                }
            }
            Message::Peers(peers) => {
                if let Ok(hosts) = Hosts::parse(&peers.join(",")) {
                    hosts.local(3);
                }
            }
            Message::Done(run) => {
                if let Ok(run) = run.complete(&PipelineShape { nodes: 2, phases: 2, buffers: 1, block: 1 }) {
                    assert_eq!((run.waits.len(), run.left.len(), run.arrived.len()), (2, 1, 1));
                }
            }
            _ => {}
        }
    }
}
