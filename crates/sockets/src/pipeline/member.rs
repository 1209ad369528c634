//! The processes or threads that a node or a phase starts, and its watch on the process that started it.

use std::{
    net::{IpAddr, SocketAddr, ToSocketAddrs},
    os::{
        fd::{BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
    sync::mpsc::{self, Receiver},
    thread::JoinHandle,
    time::Duration,
};

use ombx_core::{
    codec,
    error::{Error, Result},
};
use serde::{Deserialize, Serialize};

use crate::{
    control::{
        Attempt, Execution, Listener, MessageReader, MessageWriter, ProcessGroup, Started, Token, listener,
        process::{self, ProcessEvent},
    },
    pipeline::{
        Failure,
        message::{Message, Plan, Role, RunRole, Task},
        shape::PipelineShape,
    },
    socket::{Address, Deadline, SocketOptions, Stream},
};

/// The hidden subcommand of this binary that runs a role of a pipeline.
pub const SUBCOMMAND: &str = "pipeline-process";

/// Starts a role on this host, without its task.
pub(super) fn start(execution: Execution, name: String, run_role: RunRole) -> Result<Started> {
    match execution {
        Execution::Process => Started::with_socket(process::command(None, SUBCOMMAND, &[&name])?, name),
        Execution::Thread => {
            // A failure to report the role's error means that the parent has ended.
            Started::thread(name, move |channel| drop(run_role(channel, Execution::Thread)))
        }
    }
}

/// Members that a node or a phase has started. Their failures are passed on to its parent.
pub(super) struct Members {
    group: ProcessGroup<Message>,
    ready: Receiver<bool>,
    count: usize,
}

impl Members {
    pub(super) fn new(parent: MessageWriter) -> Members {
        let (sender, ready) = mpsc::channel();
        // Sending fails only if this role is about to end.
        let group = ProcessGroup::new(move |event| match event {
            ProcessEvent::Message(_, Message::Ready) => _ = sender.send(true),
            ProcessEvent::Message(_, message) => _ = parent.write(&message),
            ProcessEvent::Exited(_, exit) => {
                let _ = parent.write(&Message::Failure(Failure::exited(&exit)));
                let _ = sender.send(false);
            }
        });
        Members { group, ready, count: 0 }
    }

    /// Starts a member of the pipeline and sends its task and files.
    pub(super) fn start(
        &mut self,
        plan: &Plan,
        role: Role,
        run_role: RunRole,
        files: &[BorrowedFd<'_>],
    ) -> Result<()> {
        let started = start(plan.workers, role.name(), run_role)?;
        let task = Task { plan: plan.clone(), role, entrance: None };
        started.send(&Message::Task(Box::new(task)), files)?;
        self.count += 1;
        self.group.add(started)
    }

    /// Waits until all members are ready; returns false if one has ended, which has been passed on.
    pub(super) fn are_ready(&self) -> bool {
        (0..self.count).all(|_| self.ready.recv() == Ok(true))
    }

    pub(super) fn into_group(self) -> ProcessGroup<Message> {
        self.group
    }
}

/// Starts a thread that reads the messages of the parent. When the channel closes, it calls `on_close` and ends the process;
/// a role that is a thread returns instead.
pub(super) fn watch_parent(
    mut reader: MessageReader,
    execution: Execution,
    mut on_message: impl FnMut(Message) + Send + 'static,
    on_close: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>> {
    listener::spawn_thread("parent", move || {
        while let Ok(message) = reader.read() {
            on_message(message);
        }
        on_close();
        if execution == Execution::Process {
            std::process::exit(0);
        }
    })
}

/// All nodes connect within this time.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// What a connection between nodes says of itself.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Hello {
    /// Node that connects.
    from: u32,
    /// Phase to which it connects.
    phase: u32,
}

/// A node's ends of its connections, by phase and other node.
pub(super) struct Connections {
    /// From each node to phase `p`; the first phase has none.
    pub(super) incoming: Vec<Vec<OwnedFd>>,
    /// From phase `p` to each node; the last phase has none.
    pub(super) outgoing: Vec<Vec<OwnedFd>>,
}

/// Opens the listener for other nodes: at an address, or `None` for every address.
pub(super) fn listen(at: Option<IpAddr>, options: &SocketOptions, token: Token) -> Result<Listener> {
    match at {
        Some(at) => Listener::tcp(at, options, token),
        None => Listener::on_all_addresses(0, options, token),
    }
}

/// Connects to every phase but the first of every other node, and accepts as many connections.
/// `parent` receives the number of rejected connections.
pub(super) fn connect(
    plan: &Plan,
    node: u32,
    mut listener: Listener,
    token: Token,
    peers: &[String],
    parent: &MessageWriter,
) -> Result<Connections> {
    let Plan { shape, socket, .. } = plan;
    let deadline = Deadline::after(CONNECT_TIMEOUT);
    // All nodes connect and accept at the same time.
    let (own_shape, parent) = (*shape, parent.clone());
    let accepting =
        listener::spawn_thread("accept", move || accept(&own_shape, &mut listener, deadline, &parent))?;
    let steps = shape.phases as usize - 1;
    let mut outgoing: Vec<Vec<OwnedFd>> = Vec::new();
    let mut own = Vec::new();
    for phase in 0..steps {
        let mut ends = Vec::new();
        for peer in 0..shape.nodes {
            if peer == node {
                let (from, to) = UnixStream::pair().map_err(|e| {
                    Error::fabric(format!("node {node}: cannot open a pair of Unix-domain sockets: {e}"))
                })?;
                socket.set_before_connecting(&from)?;
                socket.set_before_connecting(&to)?;
                own.push(to.into());
                ends.push(from.into());
            } else {
                let address = resolve(peers.get(peer as usize).map_or("", String::as_str))?;
                let hello = codec::encode(&Hello { from: node, phase: phase as u32 + 1 });
                let stream = listener::connect(&Address::Tcp(address), &token, &hello, socket, deadline)
                    .map_err(|e| e.within(format!("node {node}, to node {peer}")))?;
                ends.push(for_data(stream)?);
            }
        }
        outgoing.push(ends);
    }
    outgoing.push(Vec::new());
    let accepted =
        accepting.join().map_err(|_| Error::fabric(format!("node {node}: a thread has failed")))?;
    let mut accepted = accepted.map_err(|e| e.within(format!("node {node}")))?;
    let mut incoming: Vec<Vec<OwnedFd>> = vec![Vec::new()];
    for (phase, own) in (1..shape.phases).zip(own) {
        let mut own = Some(own);
        let from = |peer| if peer == node { own.take() } else { accepted[index(shape, peer, phase)].take() };
        incoming.push((0..shape.nodes).filter_map(from).collect());
    }
    Ok(Connections { incoming, outgoing })
}

/// Returns the first address of `HOST:PORT`.
fn resolve(peer: &str) -> Result<SocketAddr> {
    let found = peer.to_socket_addrs().map_err(|e| Error::fabric(format!("{peer}: {e}")))?.next();
    found.ok_or_else(|| Error::fabric(format!("{peer} has no address")))
}

fn index(shape: &PipelineShape, from: u32, phase: u32) -> usize {
    (phase * shape.nodes + from) as usize
}

/// Accepts every connection to a phase of this node. Its hello says from which node and to which phase it is.
fn accept(
    shape: &PipelineShape,
    listener: &mut Listener,
    deadline: Deadline,
    parent: &MessageWriter,
) -> Result<Vec<Option<OwnedFd>>> {
    let mut accepted: Vec<Option<OwnedFd>> = (0..shape.phases * shape.nodes).map(|_| None).collect();
    let expected = (shape.nodes - 1) * (shape.phases - 1);
    let mut missing = expected;
    while missing > 0 {
        let left = deadline.check().map_err(|_| {
            let seconds = deadline.limit().as_secs();
            Error::fabric(format!(
                "{missing} of {expected} connections of other nodes are missing after {seconds} s"
            ))
        })?;
        let attempt = listener.wait(left);
        match attempt.map_err(|e| Error::fabric(format!("cannot accept connections: {e}")))? {
            None => {}
            Some(Attempt::Rejected(count)) => {
                drop(parent.write(&Message::Rejected(count)));
            }
            Some(Attempt::Admitted(peer)) => {
                let hello = codec::decode(&peer.hello);
                let Hello { from, phase } =
                    hello.ok_or_else(|| Error::fabric("unexpected connection from another build of ombx"))?;
                let known = from < shape.nodes && (1..shape.phases).contains(&phase);
                let place = known.then(|| &mut accepted[index(shape, from, phase)]);
                let place = place.filter(|place| place.is_none()).ok_or_else(|| {
                    Error::fabric(format!("unexpected connection from node {from} to phase {phase}"))
                })?;
                *place = Some(for_data(peer.stream)?);
                missing -= 1;
            }
        }
    }
    Ok(accepted)
}

/// Returns a connection without timeout. `TCP_NODELAY`, a default option, lets it send the rest of a block without delay.
fn for_data(stream: Stream) -> Result<OwnedFd> {
    let failed = |e: std::io::Error| Error::fabric(format!("cannot set up a connection between nodes: {e}"));
    stream.set_timeout(None).map_err(failed)?;
    Ok(stream.into())
}

#[cfg(test)]
mod connect_tests {
    use std::thread::scope;

    use rustix::net::{AddressFamily, sockopt};

    use super::*;
    use crate::control::Channel;

    /// Connects two nodes and returns the ends of their connections.
    fn two_nodes(plan: &Plan) -> [Connections; 2] {
        let token = Token::random().unwrap();
        let at = Some(IpAddr::from([127, 0, 0, 1]));
        let listeners = [0, 1].map(|_| listen(at, &plan.socket, token).unwrap());
        let peers = listeners.each_ref().map(|listener| format!("127.0.0.1:{}", listener.port()));
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let parent = Channel::over(OwnedFd::from(ours).into(), 1000).unwrap().writer;
        let [first, second] = listeners;
        scope(|scope| {
            let other = scope.spawn(|| connect(plan, 1, second, token, &peers, &parent).unwrap());
            [connect(plan, 0, first, token, &peers, &parent).unwrap(), other.join().unwrap()]
        })
    }

    #[test]
    fn connections_inside_a_node_are_of_the_unix_domain_and_others_of_tcp() {
        let plan = Plan::of_test(PipelineShape { nodes: 2, phases: 3, buffers: 1, block: 1 });
        for (node, Connections { incoming, outgoing }) in two_nodes(&plan).iter().enumerate() {
            let numbers = [incoming, outgoing].map(|phases| phases.iter().map(Vec::len).collect::<Vec<_>>());
            assert_eq!(numbers, [[0, 2, 2], [2, 2, 0]]);
            for (peer, end) in incoming.iter().chain(outgoing).flat_map(|phase| phase.iter().enumerate()) {
                let is_unix = sockopt::socket_domain(end).unwrap() == AddressFamily::UNIX;
                assert_eq!(is_unix, peer == node, "node {node} and node {peer}");
            }
        }
    }

    #[test]
    fn connections_have_the_options_of_the_plan() {
        let plan = Plan::of_test(PipelineShape { nodes: 2, phases: 2, buffers: 1, block: 1 });
        let buffer = Some(96 << 10);
        let socket = SocketOptions { buffer, congestion: Some("reno".into()), ..SocketOptions::default() };
        let congestions = |plan: &Plan| {
            let nodes = two_nodes(plan);
            let mut found = Vec::new();
            for (node, Connections { incoming, outgoing }) in nodes.iter().enumerate() {
                for (peer, end) in incoming[1].iter().enumerate().chain(outgoing[0].iter().enumerate()) {
                    let sizes = [
                        sockopt::socket_send_buffer_size(end).unwrap(),
                        sockopt::socket_recv_buffer_size(end).unwrap(),
                    ];
                    // The kernel doubles what is asked for.
                    let is_set = sizes == [192 << 10; 2];
                    assert_eq!(is_set, plan.socket.buffer.is_some(), "{sizes:?}");
                    if peer != node {
                        assert!(sockopt::tcp_nodelay(end).unwrap());
                        found.push(sockopt::tcp_congestion(end).unwrap());
                    }
                }
            }
            found
        };
        assert_eq!(congestions(&Plan { socket, ..plan.clone() }), ["reno"; 4]);
        assert_eq!(congestions(&plan).len(), 4);
    }
}
