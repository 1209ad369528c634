//! Senders and receivers: each moves one block of every buffer over one connection.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
};

use ombx_core::{clock::host_ns, error::Error};
use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
    net::{RecvFlags, SendFlags, recv, send},
};

use crate::{
    control::Channel,
    pipeline::{
        Failure,
        member::watch_parent,
        memory::{Counter, Lack, PhaseMemory, WaitMode, Waits, pause},
        message::{Assignment, Message},
        shape::{PipelineShape, SLOTS},
    },
};

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
    shape: PipelineShape,
    wait_mode: WaitMode,
    name: String,
    memory: PhaseMemory,
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
        let memory = PhaseMemory::map(memory, &plan.shape, plan.wait_mode)?;
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

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        os::unix::net::UnixStream,
        time::Duration,
    };

    use super::{
        super::{member::Members, role::run_role},
        *,
    };
    use crate::{
        control::MAX_PIPELINE_MESSAGE,
        pipeline::message::{Plan, Role},
    };

    const SHAPE: PipelineShape = PipelineShape { nodes: 1, phases: 2, buffers: 3, block: 10 };
    /// Time in which a worker that does not wait has handled a block.
    const LIMIT: Duration = Duration::from_secs(60);
    /// Time in which a worker that should wait would go on.
    const SHORT: Duration = Duration::from_millis(20);

    /// A worker in its first run, with the memory of its phase and the other end of its connection.
    struct Phase {
        memory: PhaseMemory,
        connection: UnixStream,
        _members: (Members, UnixStream),
    }

    impl Phase {
        fn with(role: Role) -> Phase {
            let plan = Plan::of_test(SHAPE);
            let (parent, other) = UnixStream::pair().unwrap();
            let parent = Channel::over(OwnedFd::from(parent).into(), MAX_PIPELINE_MESSAGE).unwrap().writer;
            let (connection, of_worker) = UnixStream::pair().unwrap();
            connection.set_read_timeout(Some(LIMIT)).unwrap();
            let memory = PhaseMemory::create(&SHAPE).unwrap();
            let mut members = Members::new(parent);
            members.start(&plan, role, run_role, &[memory.as_fd(), of_worker.as_fd()]).unwrap();
            assert!(members.are_ready());
            let memory = PhaseMemory::map(memory, &SHAPE, plan.wait_mode).unwrap();
            memory.set(Counter::Start, 1);
            Phase { memory, connection, _members: (members, other) }
        }

        /// Asserts that a counter of a buffer reaches a value.
        fn reaches(&self, counter: Counter, value: u32) {
            assert!(self.memory.sleep_at_most(counter, value, LIMIT), "{counter:?} stays below {value}");
        }
    }

    #[test]
    fn a_receiver_fills_two_buffers_in_turn_and_waits_for_their_drain() {
        let mut phase = Phase::with(Role::Receiver { node: 0, phase: 1, peer: 0 });
        // The first two blocks wait for nothing, and no buffer is announced before its block is whole.
        phase.connection.write_all(&[1; 5]).unwrap();
        assert!(!phase.memory.sleep_at_most(Counter::Filled(0), 1, SHORT), "half a block was announced");
        phase.connection.write_all(&[1; 5]).unwrap();
        phase.connection.write_all(&[2; 10]).unwrap();
        phase.reaches(Counter::Filled(0), 1);
        phase.reaches(Counter::Filled(1), 1);
        assert_eq!([0, 1].map(|slot| phase.memory.block(slot, 0).to_vec()), [[1; 10], [2; 10]]);
        // The third needs the first buffer again.
        phase.connection.write_all(&[3; 10]).unwrap();
        assert!(!phase.memory.sleep_at_most(Counter::Filled(0), 2, SHORT), "it was not drained");
        assert_eq!(phase.memory.block(0, 0), [1; 10]);
        phase.memory.advance(Counter::Drained(0), 1);
        phase.reaches(Counter::Filled(0), 2);
        assert_eq!([0, 1].map(|slot| phase.memory.block(slot, 0).to_vec()), [[3; 10], [2; 10]]);
    }

    #[test]
    fn a_sender_drains_two_buffers_in_turn_and_waits_for_their_data() {
        let mut phase = Phase::with(Role::Sender { node: 0, phase: 0, peer: 0 });
        let mut received = [0; 10];
        for (slot, turn, content) in [(0, 1, 1), (1, 1, 2), (0, 2, 3)] {
            assert!(!phase.memory.sleep_at_most(Counter::Drained(slot), turn, SHORT), "it was not filled");
            phase.memory.block(slot, 0).fill(content);
            phase.memory.advance(Counter::Filled(slot), 1);
            phase.connection.read_exact(&mut received).unwrap();
            assert_eq!(received, [content; 10]);
            phase.reaches(Counter::Drained(slot), turn);
        }
    }
}
