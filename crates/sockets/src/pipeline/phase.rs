//! The process of a phase: starts its senders and receivers; the first fills the buffers, the last drains them.

use std::{
    os::fd::{AsFd, OwnedFd},
    sync::Mutex,
    thread,
};

use ombx_core::error::Error;

use super::{
    ends::{Data, Ends, Pass},
    failure::Failure,
    memory::{Counter, Memory},
    note::{Kind, Note},
    process::{Crewed, Member, Orphan},
    shape::SLOTS,
    task::{Role, Told},
};

/// Starts senders and receivers and does the work of the first or the last phase, until it is ended.
pub(super) fn phase(told: Told, node: u32, phase: u32) -> Result<(), Failure> {
    let Told { plan, name, files, mut line, orphan, .. } = told;
    let shape = plan.shape;
    let (first, last) = (phase == 0, phase + 1 == shape.phases);
    let peers = 0..shape.nodes;
    let mut files = files.into_iter();
    let short = || Error::fabric(format!("{name} was started without its memory or its connections"));
    let memory = files.next().ok_or_else(short)?;
    // Where data comes from first, then where it goes to.
    let receivers = peers.clone().filter(|_| !first).map(|peer| Role::Receiver { node, phase, peer });
    let senders = peers.filter(|_| !last).map(|peer| Role::Sender { node, phase, peer });
    let workers: Vec<(Role, OwnedFd)> = receivers.chain(senders).zip(files).collect();
    if workers.len() != shape.nodes as usize * if first || last { 1 } else { 2 } {
        return Err(short().into());
    }
    let mut members = Vec::new();
    for (role, connection) in &workers {
        let member = Member::start(plan.crew, role.name())?;
        member.task(&plan.task(*role), &[memory.as_fd(), connection.as_fd()])?;
        members.push(member);
    }
    // Only the workers keep their connections: if one dies, its connection breaks.
    drop(workers);
    let crewed = Crewed::watch(members, &line.outlet);
    let ends = (first || last).then(|| Ends::open(shape, node, &plan.source, &plan.sink)).transpose()?;
    let mut memory = Memory::map(memory, &shape, plan.waiting)?;
    if crewed.ready() {
        // Who started it is gone if this fails, and then it is ended too.
        let _ = line.outlet.send(&Note::new(Kind::Ready));
    }
    let family = Mutex::new(crewed.into_family());
    let up = line.outlet.clone();
    let watch = move || {
        while line.inlet.receive().is_ok() {}
        family.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner).end();
        if orphan == Orphan::Ends {
            std::process::exit(0);
        }
    };
    let watching = thread::Builder::new().spawn(watch).map_err(|e| Failure::broken(&name, "a thread", &e))?;
    if let Some(ends) = ends {
        let mut last = 0;
        loop {
            // It has no work in every run.
            memory.wait(Counter::GoPhase, 2 * (last + 1));
            let pass = pass_of(memory.read(Counter::GoPhase));
            last = pass.number;
            let worked = if first { fill(&ends, pass, &mut memory) } else { drain(&ends, pass, &mut memory) };
            if let Err(error) = worked {
                let _ = up.send(&Failure::from(error).note());
                break;
            }
            memory.advance(Counter::Done, 1);
        }
    }
    // In the middle it steps aside.
    let _ = watching.join();
    Ok(())
}

/// What the counter says that tells the process of a phase to begin: the run, and whether it has fresh data.
pub(super) fn go_phase(pass: Pass) -> u32 {
    2 * pass.number + u32::from(pass.data == Data::Fresh)
}

fn pass_of(go: u32) -> Pass {
    Pass { number: go / 2, data: if go.is_multiple_of(2) { Data::Standing } else { Data::Fresh } }
}

/// The first phase: puts a buffer there as soon as the senders have drained it.
fn fill(ends: &Ends, pass: Pass, memory: &mut Memory) -> Result<(), Error> {
    let nodes = ends.shape.nodes;
    for buffer in (0..ends.shape.buffers).take_while(|_| ends.fills(pass)) {
        let (slot, turn) = (buffer % SLOTS, buffer / SLOTS);
        memory.wait(Counter::Drained(slot), nodes * turn);
        ends.fill(pass, buffer, memory)?;
        memory.advance(Counter::Filled(slot), nodes);
    }
    Ok(())
}

/// The last phase: takes a buffer away as soon as the receivers have filled it.
fn drain(ends: &Ends, pass: Pass, memory: &mut Memory) -> Result<(), Error> {
    let nodes = ends.shape.nodes;
    for buffer in (0..ends.shape.buffers).take_while(|_| ends.drains(pass)) {
        let (slot, turn) = (buffer % SLOTS, buffer / SLOTS);
        memory.wait(Counter::Filled(slot), nodes * (turn + 1));
        if let Some(wrong) = ends.drain(pass, buffer, memory)?
            && memory.wrong().is_none()
        {
            memory.note_wrong(wrong);
        }
        memory.advance(Counter::Drained(slot), nodes);
    }
    Ok(())
}
