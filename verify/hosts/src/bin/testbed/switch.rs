//! Emulated network: a switch between TAP devices that delays each frame as its wire does.

use std::{
    fs,
    num::NonZeroU64,
    path::Path,
    process::Command,
    sync::{Arc, atomic::AtomicBool},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    mm::{MlockAllFlags, mlockall},
    thread::set_current_timer_slack,
    time::{ClockId, clock_gettime},
};
use signal_hook::consts::{SIGTERM, SIGUSR1};
use tappers::{Interface, Tap};

use crate::{
    bed::Bed,
    queue::Queue,
    shape::{Shape, host_name, parse_link},
};
use ombx_toolchain::{Failure, Result, output};

/// Size of the buffer, larger than any frame of these devices.
const LONGEST: usize = 65_536;
/// Wake-ups that are measured before the first frame.
const TRIALS: usize = 25;
/// Step of the estimates of lateness, in nanoseconds per wake-up.
const STEP: u64 = 100;
/// Upper bound of the estimates, in nanoseconds.
const LATEST: u64 = 150_000;
/// The switch may spin for this fraction (1 / n) of the time that it sleeps: hosts need the cores too.
const AWAKE_PART: u64 = 5;

/// Lateness of the wake-ups of this process, and of frames.
#[derive(Default)]
struct Lateness {
    /// 90th and 10th percentile of the lateness of wake-ups, in nanoseconds.
    high: u64,
    low: u64,
    frames: u64,
    worst: u64,
    over_100us: u64,
}

/// Wake-up for a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Alarm {
    at: u64,
    /// End of spinning.
    until: u64,
}

impl Lateness {
    /// Returns the wake-up for a frame. With time to sleep, it is earlier by the 90th percentile, and the switch spins until the
    /// frame is due. Otherwise it is earlier by the 10th percentile.
    fn alarm(&self, due: u64, now: u64) -> Alarm {
        let soon = due.saturating_sub(self.low);
        if due.saturating_sub(now) > AWAKE_PART * self.high {
            Alarm { at: due.saturating_sub(self.high), until: due }
        } else {
            Alarm { at: soon, until: soon }
        }
    }

    /// Updates the estimates by a wake-up. Steps up and down in the ratio 9:1 give the 90th percentile, 1:9 the 10th.
    fn woke(&mut self, at: u64, now: u64) {
        let late = now.saturating_sub(at);
        let follow = |estimate: u64, up: u64, down: u64| {
            if late > estimate {
                (estimate + up * STEP).min(LATEST)
            } else {
                estimate.saturating_sub(down * STEP)
            }
        };
        (self.high, self.low) = (follow(self.high, 9, 1), follow(self.low, 1, 9));
    }

    /// Estimates the arrival of a frame that ended a sleep: earlier by the 10th percentile, at most by the length of the sleep.
    fn came(&self, slept: u64, now: u64) -> u64 {
        now - self.low.min(slept)
    }

    /// Records a frame that is delivered.
    fn saw(&mut self, due: u64, now: u64) {
        let after = now.saturating_sub(due);
        self.frames += 1;
        self.worst = self.worst.max(after);
        self.over_100us += u64::from(after > 100_000);
    }

    fn line(&self, dropped: u64) -> String {
        format!(
            "{} frames; a wake-up takes {:.0} to {:.0} us; {} frames were more than 100 us late, the \
             latest {:.0} us; {dropped} dropped",
            self.frames,
            self.low as f64 / 1e3,
            self.high as f64 / 1e3,
            self.over_100us,
            self.worst as f64 / 1e3
        )
    }
}

/// Runs until SIGTERM, in the network namespace of the switch.
pub(crate) fn run(bed: &Bed) -> Result<()> {
    let shape = fs::read_to_string(bed.file("shape")).map_err(Failure::file(bed.file("shape")))?;
    let shape = Shape::from_text(&shape).ok_or_else(|| Failure::Missing("the shape is damaged".into()))?;
    let taps = devices(bed, shape.hosts)?;
    let (stop, news) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    for (signal, flag) in [(SIGTERM, &stop), (SIGUSR1, &news)] {
        signal_hook::flag::register(signal, Arc::clone(flag)).map_err(Failure::file("signals"))?;
    }
    // Both may not be permitted: more frames are late then.
    let _ = mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE);
    let _ = set_current_timer_slack(NonZeroU64::new(1));

    let mut queue = Queue::new(&shape);
    let mut lateness = measured();
    fs::write(bed.file("switch.ready"), "").map_err(Failure::file(bed.file("switch.ready")))?;
    let mut buffer = vec![0; LONGEST];
    use std::sync::atomic::Ordering::Relaxed;
    while !stop.load(Relaxed) {
        if news.swap(false, Relaxed) {
            queue.cut(&cuts(&bed.file("cuts"), shape.hosts));
            let _ = fs::write(bed.file("switch.stats"), lateness.line(queue.dropped));
        }
        let before = now();
        let alarm = queue.next_due().map(|due| lateness.alarm(due, before));
        let wait = alarm.map(|alarm| alarm.at.saturating_sub(before));
        if wait != Some(0) {
            let timeout = timespec(wait.unwrap_or(1_000_000_000));
            let mut fds: Vec<PollFd<'_>> = taps.iter().map(|tap| PollFd::new(tap, PollFlags::IN)).collect();
            let came = poll(&mut fds, Some(&timeout));
            let woken = now();
            match (came, alarm) {
                // No frame arrived before the wake-up.
                (Ok(0), Some(alarm)) => {
                    lateness.woke(alarm.at, woken);
                    while now() < alarm.until {
                        std::hint::spin_loop();
                    }
                }
                (Ok(_) | Err(Errno::INTR), _) => {}
                (Err(e), _) => return Err(Failure::Missing(format!("the switch cannot poll: {e}"))),
            }
            let came = lateness.came(woken - before, woken);
            for (port, fd) in fds.iter().enumerate() {
                if fd.revents().contains(PollFlags::IN) {
                    read(&taps[port], (came, port), &mut queue, &mut buffer);
                }
            }
        }
        while let Some(frame) = queue.arrived(now() + lateness.low) {
            lateness.saw(frame.due, now());
            // A device that is down or full loses the frame, as in a real network.
            let _ = taps[frame.to].send(&frame.bytes);
        }
    }
    Ok(())
}

/// Reads all frames that a host has sent; the first arrived at the given time.
fn read(tap: &Tap, (mut came, port): (u64, usize), queue: &mut Queue, buffer: &mut [u8]) {
    while let Ok(length) = tap.recv(buffer) {
        let frame = &buffer[..length];
        match frame {
            // Addresses of the bed end with the port number, from 1.
            [2, b'o', b'm', b'b', b'x', to, ..] if *to > 0 => {
                let to = usize::from(*to) - 1;
                if to != port && to < queue.ports {
                    queue.send(came, port, to, frame);
                }
            }
            [first, ..] if first & 1 == 1 => queue.send_to_all(came, port, frame),
            _ => {}
        }
        came = now();
    }
}

/// Makes a TAP device for each host and moves it there, and one for the head, which stays here.
fn devices(bed: &Bed, hosts: usize) -> Result<Vec<Tap>> {
    let mut taps = Vec::new();
    for port in 0..=hosts {
        let name = format!("tap{port}");
        let named = Interface::new(&*name).map_err(Failure::file("/dev/net/tun"))?;
        let mut tap = Tap::new_named(named).map_err(Failure::file("/dev/net/tun"))?;
        tap.set_nonblocking(true).map_err(Failure::file("/dev/net/tun"))?;
        let mut ip = Command::new("ip");
        ip.args(["link", "set", &name]);
        if port < hosts {
            ip.args(["netns", &bed.namespace(&host_name(port)), "name", "eth0"])
        } else {
            ip.args(["name", "head"])
        };
        output(&mut ip)?;
        taps.push(tap);
    }
    Ok(taps)
}

/// Reads the pairs without a link: a host or a link per line.
fn cuts(path: &Path, hosts: usize) -> Vec<[usize; 2]> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let mut pairs = Vec::new();
    for line in text.lines() {
        match (parse_link(line), super::shape::host_number(line)) {
            (Ok(pair), _) => pairs.push(pair),
            (_, Ok(host)) => pairs.extend((0..=hosts).map(|other| [host, other])),
            _ => {}
        }
    }
    pairs
}

/// Measures the lateness of wake-ups on this machine.
fn measured() -> Lateness {
    let mut late: Vec<u64> = (0..TRIALS)
        .map(|_| {
            let due = now() + 1_000_000;
            let _ = poll(&mut [], Some(&timespec(1_000_000)));
            now().saturating_sub(due).min(LATEST)
        })
        .collect();
    late.sort_unstable();
    Lateness { low: late[TRIALS / 10], high: late[TRIALS * 9 / 10], ..Lateness::default() }
}

fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn timespec(ns: u64) -> Timespec {
    Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_hold_nearly_all_wake_ups_between_them() {
        let mut lateness = Lateness::default();
        for turn in 0..20_000_u64 {
            // From 10 to 50 us, in no order.
            lateness.woke(1_000_000, 1_010_000 + turn.wrapping_mul(7919) % 40_000);
        }
        assert!((12_000..=16_000).contains(&lateness.low), "{}", lateness.low);
        assert!((44_000..=48_000).contains(&lateness.high), "{}", lateness.high);
        assert_eq!(
            (lateness.came(5000, 90_000), lateness.came(80_000, 90_000)),
            (85_000, 90_000 - lateness.low)
        );
    }

    #[test]
    fn no_frame_is_sent_before_it_is_due() {
        let lateness = Lateness { low: 10_000, high: 40_000, ..Lateness::default() };
        assert_eq!(lateness.alarm(2_000_000, 0), Alarm { at: 1_960_000, until: 2_000_000 });
        assert_eq!(lateness.alarm(100_000, 0), Alarm { at: 90_000, until: 90_000 });
    }
}
