//! Messages from other ranks, in the order in which each rank has sent them.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::{
        Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use super::protocol::{End, Message, Part};
use crate::control::{FrameError, MessageReader};

/// Interval at which a waiting rank runs its idle task.
const IDLE_INTERVAL: Duration = Duration::from_millis(5);

/// Function that a rank calls when the session ends before the rank has left it: with an exit code and a sentence.
pub type OnEnd = fn(u8, &str);

/// Work that a rank repeats while it waits for a message.
pub(crate) trait IdleTask {
    fn run(&self);
}

/// Messages from other ranks, filled by the threads that read connections.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    arrived: Mutex<HashMap<u32, FromRank>>,
    changed: Condvar,
    /// Whether this rank has left. From then on the end of the session is no failure.
    left: AtomicBool,
    /// Whether nobody waits for messages any more.
    closed: AtomicBool,
}

/// Messages from one rank. They may arrive by different connections, in any order.
#[derive(Debug, Default)]
struct FromRank {
    /// Messages without a gap before them.
    complete: VecDeque<Vec<u8>>,
    /// Number of the message after these.
    next: u64,
    /// Later messages, by number.
    early: BTreeMap<u64, Vec<u8>>,
    /// Messages of which parts are missing, by number.
    partial: BTreeMap<u64, Vec<u8>>,
}

impl FromRank {
    fn add(&mut self, Part { more, number, bytes, .. }: Part) {
        let partial = self.partial.entry(number).or_default();
        if partial.is_empty() {
            *partial = bytes;
        } else {
            partial.extend(bytes);
        }
        if more {
            return;
        }
        let message = self.partial.remove(&number).unwrap_or_default();
        self.early.insert(number, message);
        while let Some(message) = self.early.remove(&self.next) {
            self.complete.push_back(message);
            self.next += 1;
        }
    }
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, HashMap<u32, FromRank>> {
        self.arrived.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads messages of the coordinator until the session ends.
    pub(super) fn read_coordinator(&self, mut reader: MessageReader, on_end: OnEnd) {
        let on_end = |code: u8, why: &str| {
            if !self.has_left() {
                on_end(code, why);
            }
        };
        loop {
            match reader.read() {
                Ok(Message::End(End { code, why })) => return on_end(code, &why),
                Ok(Message::Data(part)) => self.put(part),
                Ok(other) => {
                    return on_end(6, &format!("the coordinator sent an invalid message ({})", other.name()));
                }
                Err(FrameError::TimedOut) => {}
                Err(error) => return on_end(6, &format!("the coordinator of the session is gone: {error}")),
            }
        }
    }

    /// Reads messages of another rank until it closes the connection. The coordinator reports a rank that is lost.
    pub(super) fn read_rank(&self, sender: u32, mut reader: MessageReader) {
        while let Ok(Message::Data(part)) = reader.read() {
            if part.other != sender {
                return;
            }
            self.put(part);
        }
    }

    /// Adds a part of a message; its other rank is the sender.
    pub(super) fn put(&self, part: Part) {
        let more = part.more;
        self.lock().entry(part.other).or_default().add(part);
        if !more {
            self.changed.notify_all();
        }
    }

    /// Waits for the next message of a rank; repeats the idle task meanwhile.
    pub(super) fn receive(&self, from: u32, idle_task: Option<&dyn IdleTask>) -> Vec<u8> {
        let mut arrived = self.lock();
        loop {
            if let Some(message) = arrived.get_mut(&from).and_then(|from| from.complete.pop_front()) {
                return message;
            }
            arrived = match idle_task {
                None => self.changed.wait(arrived).unwrap_or_else(PoisonError::into_inner),
                Some(task) => {
                    let waited = self.changed.wait_timeout(arrived, IDLE_INTERVAL);
                    let arrived = waited.unwrap_or_else(PoisonError::into_inner).0;
                    task.run();
                    arrived
                }
            };
        }
    }

    /// Marks that this rank has left.
    pub(super) fn leave(&self) {
        self.left.store(true, Ordering::SeqCst);
    }

    fn has_left(&self) -> bool {
        self.left.load(Ordering::SeqCst)
    }

    /// Marks that nobody waits for messages any more.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_received_in_the_order_of_sending() {
        let inbox = Inbox::default();
        let put = |other, number, more, byte| inbox.put(Part { other, more, number, bytes: vec![byte] });
        put(1, 1, false, 10);
        put(1, 2, true, 20);
        put(2, 0, false, 99);
        put(1, 0, true, 1);
        put(1, 0, false, 2);
        put(1, 2, false, 21);
        let received = [1, 1, 2, 1].map(|from| inbox.receive(from, None));
        assert_eq!(received, [vec![1, 2], vec![10], vec![99], vec![20, 21]]);
    }
}
