//! Senders and receivers: one at each end of every connection. They take turns on the two buffers of their phase.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
};

use ombx_core::{error::Error, system::clock::host_ns};
use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
    net::{RecvFlags, SendFlags, recv, send},
};

use super::{
    failure::Failure,
    member::watch_parent,
    memory::{Counter, Lack, Memory, WaitMode, Waits, pause},
    message::Message,
    shape::{SLOTS, Shape},
    task::Assignment,
};
use crate::control::Channel;

/// Sends block `peer` of every buffer to node `peer`.
pub(super) fn sender(assignment: Assignment, phase: u32, peer: u32) -> std::result::Result<(), Failure> {
    let number = assignment.plan.shape.sender(phase, peer);
    let mut worker = Worker::start(assignment, number)?;
    let (nodes, first) = (worker.shape.nodes, phase == 0);
    worker.repeat(peer, |worker, buffer, waits| {
        let (slot, turn) = (buffer % SLOTS, buffer / SLOTS);
        waits.add(Lack::Data, worker.memory.wait(Counter::Filled(slot), nodes * (turn + 1)));
        if first {
            worker.memory.stamp(buffer, peer);
        }
        waits.add(Lack::Space, worker.send(slot, peer)?);
        worker.memory.advance(Counter::Drained(slot), 1);
        Ok(())
    })
}

/// Receives block `peer` of every buffer from node `peer`.
pub(super) fn receiver(assignment: Assignment, phase: u32, peer: u32) -> std::result::Result<(), Failure> {
    let number = assignment.plan.shape.receiver(phase, peer);
    let mut worker = Worker::start(assignment, number)?;
    let (nodes, last) = (worker.shape.nodes, phase + 1 == worker.shape.phases);
    worker.repeat(nodes + peer, |worker, buffer, waits| {
        let (slot, turn) = (buffer % SLOTS, buffer / SLOTS);
        waits.add(Lack::Space, worker.memory.wait(Counter::Drained(slot), nodes * turn));
        waits.add(Lack::Data, worker.receive(slot, peer)?);
        if last {
            worker.memory.stamp(buffer, peer);
        }
        worker.memory.advance(Counter::Filled(slot), 1);
        Ok(())
    })
}

/// A sender or a receiver.
struct Worker {
    shape: Shape,
    wait_mode: WaitMode,
    name: String,
    memory: Memory,
    socket: OwnedFd,
}

impl Worker {
    /// Binds worker `number` of its node, maps the memory of the phase and reports that it is ready.
    fn start(assignment: Assignment, number: u32) -> std::result::Result<Worker, Failure> {
        let Assignment { plan, name, files, channel, execution, .. } = assignment;
        plan.cpus.bind(plan.earlier_workers.saturating_add(number)).map_err(|e| e.within(&name))?;
        let Channel { reader, writer } = channel;
        let Ok([memory, socket]) = <[OwnedFd; 2]>::try_from(files) else {
            return Err(Error::fabric(format!("{name} received no memory or no connection")).into());
        };
        let memory = Memory::map(memory, &plan.shape, plan.wait_mode)?;
        let gone = |e: io::Error| Failure::broken(&name, "the phase is gone", &e);
        writer.write(&Message::Ready).map_err(gone)?;
        watch_parent(reader, execution, drop, || ())?;
        Ok(Worker { shape: plan.shape, wait_mode: plan.wait_mode, name, memory, socket })
    }

    /// Handles every buffer of every run, until the connection breaks or this process ends.
    fn repeat(
        &mut self,
        place: u32,
        mut each: impl FnMut(&mut Worker, u32, &mut Waits) -> io::Result<()>,
    ) -> std::result::Result<(), Failure> {
        for run in 1.. {
            self.memory.wait(Counter::Start, run);
            let mut waits = Waits::default();
            for buffer in 0..self.shape.buffers {
                each(self, buffer, &mut waits)
                    .map_err(|e| Failure::broken(&self.name, "its connection broke", &e))?;
            }
            self.memory.set_waits(place, waits);
            self.memory.advance(Counter::Done, 1);
        }
        Ok(())
    }

    /// Sends a block; returns the nanoseconds of waiting for space in the socket.
    fn send(&mut self, slot: u32, block: u32) -> io::Result<u64> {
        let Worker { memory, socket, wait_mode, .. } = self;
        let mut left = &*memory.block(slot, block);
        let mut waited = 0;
        while !left.is_empty() {
            match send(&*socket, left, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(sent) => left = &left[sent..],
                Err(Errno::AGAIN) => waited += wait_for(socket, PollFlags::OUT, *wait_mode)?,
                Err(Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(waited)
    }

    /// Receives a block; returns the nanoseconds of waiting for data.
    fn receive(&mut self, slot: u32, block: u32) -> io::Result<u64> {
        let Worker { memory, socket, wait_mode, .. } = self;
        let mut left = memory.block(slot, block);
        let mut waited = 0;
        while !left.is_empty() {
            match recv(&*socket, &mut *left, RecvFlags::DONTWAIT) {
                Ok((0, _)) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok((received, _)) => left = &mut left[received..],
                Err(Errno::AGAIN) => waited += wait_for(socket, PollFlags::IN, *wait_mode)?,
                Err(Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(waited)
    }
}

/// Waits until a socket has data or space; returns the nanoseconds.
fn wait_for(socket: &OwnedFd, event: PollFlags, wait_mode: WaitMode) -> io::Result<u64> {
    let since = host_ns();
    let mut polls = 0;
    loop {
        let limit = match wait_mode {
            WaitMode::Sleep => None,
            WaitMode::Spin => Some(&rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 }),
        };
        match poll(&mut [PollFd::from_borrowed_fd(socket.as_fd(), event)], limit) {
            Ok(0) => polls = pause(polls),
            Ok(_) => return Ok(host_ns().saturating_sub(since)),
            Err(Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
}
