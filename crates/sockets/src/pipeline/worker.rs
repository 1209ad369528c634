//! Senders and receivers: one at each end of every connection, taking turns on the two buffers of their phase.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    thread,
};

use ombx_core::{error::Error, system::clock::host_ns};
use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
    net::{RecvFlags, SendFlags, recv, send},
};

use super::{
    failure::Failure,
    memory::{Counter, Lack, Memory, Waiting, Waits, pause},
    note::{Kind, Note},
    process::Orphan,
    shape::{SLOTS, Shape},
    task::Told,
};

/// Sends block `peer` of every buffer to node `peer`.
pub(super) fn sender(told: Told, phase: u32, peer: u32) -> std::result::Result<(), Failure> {
    let mut worker = Worker::ready(told)?;
    let (nodes, first) = (worker.shape.nodes, phase == 0);
    worker.every_run(peer, |worker, buffer, waits| {
        let (slot, turn) = (buffer % SLOTS, buffer / SLOTS);
        waits.add(Lack::Data, worker.memory.wait(Counter::Filled(slot), nodes * (turn + 1)));
        if first {
            worker.memory.stamp(buffer, peer);
        }
        waits.add(Lack::Room, worker.send(slot, peer)?);
        worker.memory.advance(Counter::Drained(slot), 1);
        Ok(())
    })
}

/// Receives block `peer` of every buffer from node `peer`.
pub(super) fn receiver(told: Told, phase: u32, peer: u32) -> std::result::Result<(), Failure> {
    let mut worker = Worker::ready(told)?;
    let (nodes, last) = (worker.shape.nodes, phase + 1 == worker.shape.phases);
    worker.every_run(nodes + peer, |worker, buffer, waits| {
        let (slot, turn) = (buffer % SLOTS, buffer / SLOTS);
        waits.add(Lack::Room, worker.memory.wait(Counter::Drained(slot), nodes * turn));
        waits.add(Lack::Data, worker.receive(slot, peer)?);
        if last {
            worker.memory.stamp(buffer, peer);
        }
        worker.memory.advance(Counter::Filled(slot), 1);
        Ok(())
    })
}

/// A sender or a receiver with its end of a connection.
struct Worker {
    shape: Shape,
    waiting: Waiting,
    name: String,
    memory: Memory,
    socket: OwnedFd,
}

impl Worker {
    fn ready(told: Told) -> std::result::Result<Worker, Failure> {
        let Told { plan, name, files, mut line, orphan, .. } = told;
        let Ok([memory, socket]) = <[OwnedFd; 2]>::try_from(files) else {
            return Err(
                Error::fabric(format!("{name} was started without its memory and its connection")).into()
            );
        };
        let memory = Memory::map(memory, &plan.shape, plan.waiting)?;
        let lost = |e: io::Error| Failure::broken(&name, "who started it", &e);
        line.outlet.send(&Note::new(Kind::Ready)).map_err(lost)?;
        let watch = move || {
            while line.inlet.receive().is_ok() {}
            if orphan == Orphan::Ends {
                std::process::exit(0);
            }
        };
        thread::Builder::new().stack_size(64 << 10).spawn(watch).map_err(lost)?;
        Ok(Worker { shape: plan.shape, waiting: plan.waiting, name, memory, socket })
    }

    /// Handles every buffer of every run, until this process is ended.
    fn every_run(
        &mut self,
        place: u32,
        mut each: impl FnMut(&mut Worker, u32, &mut Waits) -> io::Result<()>,
    ) -> std::result::Result<(), Failure> {
        for run in 1.. {
            self.memory.wait(Counter::Go, run);
            let mut waits = Waits::default();
            for buffer in 0..self.shape.buffers {
                each(self, buffer, &mut waits)
                    .map_err(|e| Failure::broken(&self.name, "its connection broke", &e))?;
            }
            self.memory.note_waits(place, waits);
            self.memory.advance(Counter::Done, 1);
        }
        Ok(())
    }

    /// Sends a block; returns for how long there was no room, in nanoseconds.
    fn send(&mut self, slot: u32, block: u32) -> io::Result<u64> {
        let Worker { memory, socket, waiting, .. } = self;
        let mut left = &*memory.block(slot, block);
        let mut waited = 0;
        while !left.is_empty() {
            match send(&*socket, left, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(sent) => left = &left[sent..],
                Err(Errno::AGAIN) => waited += until(socket, PollFlags::OUT, *waiting)?,
                Err(Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(waited)
    }

    /// Receives a block; returns for how long there was nothing to receive, in nanoseconds.
    fn receive(&mut self, slot: u32, block: u32) -> io::Result<u64> {
        let Worker { memory, socket, waiting, .. } = self;
        let mut left = memory.block(slot, block);
        let mut waited = 0;
        while !left.is_empty() {
            match recv(&*socket, &mut *left, RecvFlags::DONTWAIT) {
                Ok((0, _)) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok((received, _)) => left = &mut left[received..],
                Err(Errno::AGAIN) => waited += until(socket, PollFlags::IN, *waiting)?,
                Err(Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(waited)
    }
}

/// Waits until a socket has something, or room for something; returns how long that took, in nanoseconds.
fn until(socket: &OwnedFd, what: PollFlags, waiting: Waiting) -> io::Result<u64> {
    let since = host_ns();
    let mut looks = 0;
    loop {
        let limit = match waiting {
            Waiting::Asleep => None,
            Waiting::Spinning => Some(&rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 }),
        };
        match poll(&mut [PollFd::from_borrowed_fd(socket.as_fd(), what)], limit) {
            Ok(0) => looks = pause(looks),
            Ok(_) => return Ok(host_ns().saturating_sub(since)),
            Err(Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
}
