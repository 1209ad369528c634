//! The process of a phase: starts its senders and receivers. The first phase fills the buffers, the last drains them.

use std::{
    os::fd::{AsFd, OwnedFd},
    sync::{Mutex, PoisonError, mpsc},
};

use ombx_core::{
    clock::host_ns,
    error::{Error, Result},
};

use crate::{
    control::Channel,
    pipeline::{
        Failure,
        ends::Ends,
        member::{Members, watch_parent},
        memory::{Counter, PhaseMemory},
        message::{Assignment, Message, Role},
        run::{Data, RunId},
        shape::SLOTS,
    },
};

/// Starts senders and receivers and does the work of the first or the last phase, until the node closes the channel.
pub(super) fn phase(assignment: Assignment, node: u32, phase: u32) -> std::result::Result<(), Failure> {
    let Assignment { plan, name, files, channel, execution, run_role, .. } = assignment;
    let Channel { reader, writer: parent } = channel;
    let shape = plan.shape;
    let (first, last) = (phase == 0, phase + 1 == shape.phases);
    let peers = 0..shape.nodes;
    let mut files = files.into_iter();
    let incomplete = || Error::fabric(format!("{name} received no memory or too few connections"));
    let memory = files.next().ok_or_else(incomplete)?;
    let receivers = peers.clone().filter(|_| !first).map(|peer| Role::Receiver { node, phase, peer });
    let senders = peers.filter(|_| !last).map(|peer| Role::Sender { node, phase, peer });
    let workers: Vec<(Role, OwnedFd)> = receivers.chain(senders).zip(files).collect();
    if workers.len() != shape.nodes as usize * if first || last { 1 } else { 2 } {
        return Err(incomplete().into());
    }
    let mut members = Members::new(parent.clone());
    for (role, connection) in &workers {
        members.start(&plan, *role, run_role, &[memory.as_fd(), connection.as_fd()])?;
    }
    // Senders and receivers hold the only handles: if one dies, its connection breaks.
    drop(workers);
    let ends = (first || last).then(|| Ends::open(shape, node, &plan.source, &plan.sink)).transpose()?;
    let mut memory = PhaseMemory::map(memory, &shape, plan.wait_mode)?;
    if members.are_ready() {
        // Fails if the node has ended: then this process ends too.
        let _ = parent.write(&Message::Ready);
    }
    let group = Mutex::new(members.into_group());
    let end = move || group.into_inner().unwrap_or_else(PoisonError::into_inner).end();
    let (sender, messages) = mpsc::channel();
    let watching = watch_parent(reader, execution, move |message| drop(sender.send(message)), end)?;
    if let Some(mut ends) = ends {
        if last && !plan.source.is_memory() {
            // Fails if the node has ended: then this process ends too.
            let Ok(Message::Expect(expected)) = messages.recv() else { return Ok(()) };
            ends.expect(expected);
        }
        let mut last = 0;
        loop {
            // A run in which it has no work leaves the counter unchanged.
            memory.wait(Counter::StartPhase, 2 * (last + 1));
            let run = run_of(memory.read(Counter::StartPhase));
            last = run.number;
            let worked = if first { fill(&ends, run, &mut memory) } else { drain(&ends, run, &mut memory) };
            if let Err(error) = worked {
                let _ = parent.write(&Message::Failure(Failure::from(error)));
                break;
            }
            memory.advance(Counter::Done, 1);
        }
    }
    let _ = watching.join();
    Ok(())
}

/// Returns the value of [`Counter::StartPhase`] for a run: twice its number, plus 1 for fresh data.
pub(super) fn start_value(run: RunId) -> u32 {
    2 * run.number + u32::from(run.data == Data::Fresh)
}

fn run_of(value: u32) -> RunId {
    RunId { number: value / 2, data: if value.is_multiple_of(2) { Data::Repeated } else { Data::Fresh } }
}

/// Fills a buffer of the first phase as soon as the senders have drained it.
fn fill(ends: &Ends, run: RunId, memory: &mut PhaseMemory) -> Result<()> {
    let nodes = ends.shape.nodes;
    let mut filling_ns = 0;
    for buffer in (0..ends.shape.buffers).take_while(|_| ends.fills(run)) {
        let (slot, turn) = (buffer % SLOTS, buffer / SLOTS);
        memory.wait(Counter::Drained(slot), nodes * turn);
        let since = host_ns();
        ends.fill(run, buffer, memory)?;
        filling_ns += host_ns().saturating_sub(since);
        memory.advance(Counter::Filled(slot), nodes);
    }
    memory.set_end_work(filling_ns);
    Ok(())
}

/// Drains a buffer of the last phase as soon as the receivers have filled it.
fn drain(ends: &Ends, run: RunId, memory: &mut PhaseMemory) -> Result<()> {
    let nodes = ends.shape.nodes;
    let mut reading_ns = 0;
    for buffer in (0..ends.shape.buffers).take_while(|_| ends.drains(run)) {
        let (slot, turn) = (buffer % SLOTS, buffer / SLOTS);
        memory.wait(Counter::Filled(slot), nodes * (turn + 1));
        let since = host_ns();
        let wrong = ends.drain(run, buffer, memory)?;
        reading_ns += host_ns().saturating_sub(since);
        if let Some(wrong) = wrong
            && memory.wrong().is_none()
        {
            memory.set_wrong(wrong);
        }
        memory.advance(Counter::Drained(slot), nodes);
    }
    memory.set_end_work(reading_ns);
    Ok(())
}
