//! The processes or threads that a node or a phase starts, and its watch on the process that started it.

use std::{
    io,
    os::fd::BorrowedFd,
    sync::mpsc::{self, Receiver},
    thread::JoinHandle,
};

use ombx_core::error::{Error, Result};

use crate::{
    control::{
        Channel, Execution, MessageReader, MessageWriter, ProcessGroup, Started,
        process::{self, Event},
        thread,
    },
    pipeline::{
        failure::Failure,
        message::Message,
        node::node,
        phase::phase,
        task::{Assignment, Plan, Role, RunRole, Task},
        worker::{receiver, sender},
    },
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
            Event::Message(_, Message::Ready) => _ = sender.send(true),
            Event::Message(_, message) => _ = parent.write(&message),
            Event::Exited(_, exit) => {
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
    thread::spawn("parent", move || {
        while let Ok(message) = reader.read() {
            on_message(message);
        }
        on_close();
        if execution == Execution::Process {
            std::process::exit(0);
        }
    })
}

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
