//! Queue of frames: arrival times by delay, rate and backlog of each wire.

use std::{cmp::Reverse, collections::BinaryHeap};

use crate::shape::Shape;

/// Least backlog of a wire, in bytes.
const LEAST_BACKLOG: u64 = 512 << 10;

/// Frames by which the damaged ones are counted.
const MILLION: u32 = 1_000_000;

/// Frame on its way to a port.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Frame {
    /// Arrival time, in nanoseconds.
    pub(crate) due: u64,
    /// Order of sending, which decides between frames with the same arrival time.
    turn: u64,
    pub(crate) to: usize,
    pub(crate) bytes: Vec<u8>,
}

/// Direction of a link.
#[derive(Debug)]
struct Line {
    delay: u64,
    /// Nanoseconds per byte.
    per_byte: f64,
    /// Number of the port or uplink that it shares with other lines.
    shared: usize,
    /// Nanoseconds per byte of it.
    shared_per_byte: f64,
    /// Time when the last frame is completely sent.
    free: f64,
    /// Backlog in nanoseconds above which frames are dropped.
    max_backlog: f64,
    cut: bool,
    /// Frames of a million that arrive damaged, and the sum of this over the frames since the last such frame.
    damaged: [u32; 2],
}

impl Line {
    /// Returns the line from one port to another.
    fn new(shape: &Shape, from: usize, to: usize) -> Self {
        let wire = shape.wire(from, to);
        let delay = wire.delay.as_nanos() as u64;
        let per_byte = wire.rate.map_or(0.0, |rate| 8e9 / rate as f64);
        // Four times the bandwidth-delay product: TCP reaches the rate of the wire without losses.
        let filling = wire.rate.map_or(0, |rate| (rate as f64 * 8.0 * delay as f64 / 8e9) as u64);
        let max_backlog = filling.max(LEAST_BACKLOG) as f64 * per_byte;
        Line {
            delay,
            per_byte,
            shared: wire.shared.map_or(0, |shared| shared.number),
            shared_per_byte: wire.shared.map_or(0.0, |shared| 8e9 / shared.rate as f64),
            free: 0.0,
            max_backlog,
            cut: false,
            damaged: [wire.damaged, 0],
        }
    }
}

/// All wires and their frames.
#[derive(Debug)]
pub(crate) struct Queue {
    pub(crate) ports: usize,
    lines: Vec<Line>,
    /// Time when each port or uplink has sent its last frame.
    shared_free: Vec<f64>,
    frames: BinaryHeap<Reverse<Frame>>,
    turn: u64,
    pub(crate) dropped: u64,
}

impl Queue {
    /// Makes wires between all hosts and the head, which is the last port.
    pub(crate) fn new(shape: &Shape) -> Self {
        let ports = shape.hosts + 1;
        let lines: Vec<Line> =
            (0..ports * ports).map(|at| Line::new(shape, at / ports, at % ports)).collect();
        let shared = lines.iter().map(|line| line.shared + 1).max().unwrap_or(0);
        Self { ports, lines, shared_free: vec![0.0; shared], frames: BinaryHeap::new(), turn: 0, dropped: 0 }
    }

    /// Cuts the links of these pairs of hosts, and restores all others.
    pub(crate) fn cut(&mut self, pairs: &[[usize; 2]]) {
        for (at, line) in self.lines.iter_mut().enumerate() {
            let (from, to) = (at / self.ports, at % self.ports);
            line.cut = pairs.iter().any(|&[a, b]| (a, b) == (from, to) || (a, b) == (to, from));
        }
    }

    /// Sends a frame at this time.
    pub(crate) fn send(&mut self, now: u64, from: usize, to: usize, bytes: &[u8]) {
        let line = &mut self.lines[from * self.ports + to];
        let (now, length) = (now as f64, bytes.len() as f64);
        // What has no rate delays nothing.
        let (shared_begins, leaves) = if line.shared_per_byte > 0.0 {
            let begins = self.shared_free[line.shared].max(now);
            (begins, begins + line.shared_per_byte * length)
        } else {
            (now, now)
        };
        let begins = line.free.max(leaves);
        if line.cut
            || begins - leaves > line.max_backlog
            || shared_begins - now > LEAST_BACKLOG as f64 * line.shared_per_byte
        {
            self.dropped += 1;
            return;
        }
        if line.shared_per_byte > 0.0 {
            self.shared_free[line.shared] = leaves;
        }
        line.free = begins + line.per_byte * length;
        let due = line.free as u64 + line.delay;
        self.turn += 1;
        let mut bytes = bytes.to_vec();
        line.damaged[1] += line.damaged[0];
        if line.damaged[1] >= MILLION
            && let Some(last) = bytes.last_mut()
        {
            line.damaged[1] -= MILLION;
            *last ^= 1;
        }
        self.frames.push(Reverse(Frame { due, turn: self.turn, to, bytes }));
    }

    /// Sends a frame to every port except that of the sender.
    pub(crate) fn send_to_all(&mut self, now: u64, from: usize, bytes: &[u8]) {
        for to in (0..self.ports).filter(|to| *to != from) {
            self.send(now, from, to, bytes);
        }
    }

    /// Returns the arrival time of the next frame.
    pub(crate) fn next_due(&self) -> Option<u64> {
        self.frames.peek().map(|frame| frame.0.due)
    }

    /// Removes and returns the next frame, if it has arrived by `now`.
    pub(crate) fn arrived(&mut self, now: u64) -> Option<Frame> {
        if self.next_due()? > now {
            return None;
        }
        self.frames.pop().map(|frame| frame.0)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{
        super::shape::{Shape, Wire},
        *,
    };

    fn queue(delay_us: u64, rate: Option<u64>) -> Queue {
        let wire = Wire { delay: Duration::from_micros(delay_us), rate, ..Wire::default() };
        Queue::new(&Shape::new(3, wire, []).unwrap())
    }

    fn dues(queue: &mut Queue) -> Vec<u64> {
        std::iter::from_fn(|| queue.arrived(u64::MAX)).map(|frame| frame.due).collect()
    }

    #[test]
    fn frames_follow_each_other_at_the_rate_of_the_wire() {
        let mut queue = queue(1000, Some(100_000_000));
        for _ in 0..3 {
            queue.send(5000, 0, 1, &[0; 1250]);
        }
        assert_eq!(queue.next_due(), Some(5000 + 100_000 + 1_000_000));
        assert!(queue.arrived(1_104_999).is_none());
        assert_eq!(dues(&mut queue), [1_105_000, 1_205_000, 1_305_000]);
    }

    #[test]
    fn wires_do_not_delay_each_other() {
        let mut queue = queue(0, Some(8_000_000));
        for (from, to) in [(0, 1), (1, 0), (0, 2), (2, 1)] {
            queue.send(0, from, to, &[0; 1000]);
        }
        assert_eq!(dues(&mut queue), [1_000_000; 4]);
    }

    #[test]
    fn wires_share_the_port_of_their_sender() {
        let wire = Wire { delay: Duration::from_millis(2), ..Wire::default() };
        let mut queue = Queue::new(&Shape::new(3, wire, []).unwrap().with_ports(Some(8_000_000)));
        for (from, to) in [(0, 1), (0, 2), (1, 0), (0, 3)] {
            queue.send(0, from, to, &[0; 1000]);
        }
        // The head is not behind the port.
        assert_eq!(dues(&mut queue), [0, 3_000_000, 3_000_000, 4_000_000]);
    }

    #[test]
    fn every_so_many_frames_are_damaged() {
        let wire = Wire { damaged: 250_000, ..Wire::default() };
        let mut queue = Queue::new(&Shape::new(2, wire, []).unwrap());
        for _ in 0..8 {
            queue.send(0, 0, 1, &[0; 60]);
        }
        let frames = std::iter::from_fn(|| queue.arrived(u64::MAX));
        let damaged: Vec<bool> = frames.map(|frame| frame.bytes[59] != 0).collect();
        assert_eq!(damaged, [false, false, false, true].repeat(2));
    }

    #[test]
    fn a_full_wire_drops_the_last() {
        let mut queue = queue(0, Some(8_000_000));
        for _ in 0..600 {
            queue.send(0, 0, 1, &[0; 1024]);
        }
        assert_eq!((dues(&mut queue).len(), queue.dropped), (513, 87));
    }

    #[test]
    fn a_cut_link_carries_nothing_until_it_is_mended() {
        let mut queue = queue(0, None);
        queue.cut(&[[1, 0]]);
        queue.send_to_all(0, 0, &[0; 60]);
        assert_eq!(dues(&mut queue).len(), 2);
        queue.cut(&[]);
        queue.send(0, 0, 1, &[0; 60]);
        assert_eq!(dues(&mut queue).len(), 1);
    }
}
