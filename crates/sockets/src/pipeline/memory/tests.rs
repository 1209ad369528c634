//! Counters and blocks of a phase: between threads, between processes, and in every order of steps.

use std::{
    collections::BTreeSet,
    process::{Command, Stdio},
    thread::{self, JoinHandle},
};

use super::*;

const SHAPE: PipelineShape = PipelineShape { nodes: 3, phases: 3, buffers: 5, block: 100 };

fn two(wait_mode: WaitMode) -> [PhaseMemory; 2] {
    let fd = PhaseMemory::create(&SHAPE).unwrap();
    [(); 2].map(|()| PhaseMemory::map(&fd, &SHAPE, wait_mode).unwrap())
}

/// Time in which a process wakes up that no signal is lost for.
const LIMIT: Duration = Duration::from_secs(60);

/// Waits for a thread. It would sleep for ever after a lost signal.
fn joined<T>(thread: JoinHandle<T>) -> T {
    let deadline = Deadline::after(LIMIT);
    while !thread.is_finished() {
        assert!(deadline.left().is_some(), "a thread is still asleep");
        thread::sleep(Duration::from_millis(1));
    }
    thread.join().unwrap()
}

/// Waits until this many processes sleep on a counter.
fn until_asleep(memory: &PhaseMemory, counter: Counter, processes: u32) {
    let sleepers = memory.shared.word(counter.place() + SLEEPERS);
    let deadline = Deadline::after(LIMIT);
    while sleepers.load(SeqCst) < processes {
        assert!(deadline.left().is_some(), "{processes} processes are not counted as asleep");
        thread::yield_now();
    }
}

#[test]
fn a_wait_ends_when_the_counter_is_reached() {
    for wait_mode in [WaitMode::Sleep, WaitMode::Spin] {
        let [a, b] = two(wait_mode);
        let waiter = thread::spawn(move || {
            let (began, mut waited) = (host_ns(), 0);
            for turn in 1..=2000 {
                waited += a.wait(Counter::Filled(1), turn);
                a.advance(Counter::Drained(1), 1);
            }
            (waited, host_ns() - began)
        });
        let other = thread::spawn(move || {
            for turn in 1..=2000 {
                b.advance(Counter::Filled(1), 1);
                b.wait(Counter::Drained(1), turn);
            }
        });
        joined(other);
        let (waited, all) = joined(waiter);
        assert!(waited <= all, "{wait_mode:?}: {waited} of {all} ns");
    }
}

/// One signal wakes all processes that sleep, and signals are counted.
#[test]
fn a_signal_wakes_every_sleeper() {
    let fd = PhaseMemory::create(&SHAPE).unwrap();
    let memory = || PhaseMemory::map(&fd, &SHAPE, WaitMode::Sleep).unwrap();
    let waiters = [(); 3].map(|()| {
        let memory = memory();
        thread::spawn(move || memory.wait(Counter::Filled(0), 2))
    });
    let memory = memory();
    until_asleep(&memory, Counter::Filled(0), 3);
    memory.advance(Counter::Filled(0), 1);
    until_asleep(&memory, Counter::Filled(0), 3);
    assert!(waiters.iter().all(|waiter| !waiter.is_finished()), "one of two signals has arrived");
    memory.advance(Counter::Filled(0), 1);
    waiters.into_iter().for_each(|waiter| _ = joined(waiter));
    assert_eq!(memory.read(Counter::Filled(0)), 2);
}

#[test]
fn the_time_asleep_is_counted() {
    let [a, b] = two(WaitMode::Sleep);
    let waiter = thread::spawn(move || a.wait(Counter::Filled(1), 1));
    until_asleep(&b, Counter::Filled(1), 1);
    let asleep = host_ns();
    thread::sleep(Duration::from_millis(1));
    let least = host_ns() - asleep;
    b.advance(Counter::Filled(1), 1);
    let waited = joined(waiter);
    assert!(waited >= least, "{waited} of {least} ns");
}

#[test]
fn a_wait_with_a_limit_ends_without_the_counter() {
    let [a, b] = two(WaitMode::Sleep);
    assert!(!a.sleep_at_most(Counter::Done, 1, Duration::from_millis(20)));
    let waiter = thread::spawn(move || a.sleep_at_most(Counter::Done, 2, LIMIT));
    (0..2).for_each(|_| b.advance(Counter::Done, 1));
    assert!(joined(waiter));
}

#[test]
fn no_regions_overlap() {
    let [mut a, mut b] = two(WaitMode::Sleep);
    a.reset();
    for slot in 0..SLOTS {
        (0..3).for_each(|block| a.block(slot, block).fill(0xFF));
    }
    (0..6).for_each(|worker| a.set_waits(worker, Waits([u64::from(worker), 77])));
    (0..5).for_each(|buffer| (0..3).for_each(|block| a.stamp(buffer, block)));
    let wrong = Wrong { slot: 1, byte: 2, expected: 3, actual: 4 };
    a.set_wrong(wrong);
    a.set_end_work(55);
    a.set(Counter::Start, 9);
    for counter in [Counter::StartPhase, Counter::Done, Counter::Filled(0), Counter::Drained(1)] {
        assert_eq!(b.read(counter), 0, "{counter:?}");
    }
    assert!((0..6).all(|worker| b.waits(worker) == Waits([u64::from(worker), 77])));
    assert_eq!((b.read(Counter::Start), b.wrong(), b.end_work()), (9, Some(wrong), 55));
    assert!((0..5).all(|buffer| b.stamps(buffer).all(|ns| ns > 0)));
    a.kept().fill(0xAA);
    assert!((0..3).all(|block| b.block(1, block).iter().all(|byte| *byte == 0xFF)));
    assert_eq!(b.kept(), [0xAA; 100]);
    b.reset();
    assert_eq!((a.read(Counter::Start), a.wrong(), a.end_work(), a.waits(5)), (9, None, 0, Waits::default()));
}

/// Environment variable that marks the second process of a test.
const OTHER: &str = "OMBX_TEST_OTHER_PROCESS";
/// Buffers that pass through the memory of two processes.
const BUFFERS: u32 = 3000;

/// Returns the content of a block; it differs from the previous content of the same memory.
fn mark(buffer: u32, block: u32) -> u8 {
    (buffer * 7 + block * 3 + 1) as u8
}

/// Calls `each` for every buffer, on one thread for each block. Each thread has its own mapping, as senders and receivers have.
fn in_threads(fd: impl AsFd + Sync, wait_mode: WaitMode, each: impl Fn(&mut PhaseMemory, u32, u32) + Sync) {
    thread::scope(|scope| {
        for block in 0..SHAPE.nodes {
            let (fd, each) = (&fd, &each);
            scope.spawn(move || {
                let mut memory = PhaseMemory::map(fd, &SHAPE, wait_mode).unwrap();
                (0..BUFFERS).for_each(|buffer| each(&mut memory, buffer, block));
            });
        }
    });
}

#[test]
fn no_block_is_seen_before_it_is_whole() {
    let nodes = SHAPE.nodes;
    if let Ok(wait_mode) = std::env::var(OTHER) {
        let wait_mode = if wait_mode == "asleep" { WaitMode::Sleep } else { WaitMode::Spin };
        // This process ends with the first one.
        let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
        // The memory is standard input. This process drains what the first one fills.
        return in_threads(rustix::stdio::stdin(), wait_mode, |memory, buffer, block| {
            let (slot, turn) = (buffer % SLOTS, buffer / SLOTS);
            memory.wait(Counter::Filled(slot), nodes * (turn + 1));
            // Another block than the thread of the same number wrote.
            let block = (block + buffer) % nodes;
            let expected = mark(buffer, block);
            assert!(
                memory.block(slot, block).iter().all(|byte| *byte == expected),
                "block {block} of {buffer}"
            );
            memory.advance(Counter::Drained(slot), 1);
        });
    }
    for (wait_mode, name) in [(WaitMode::Sleep, "asleep"), (WaitMode::Spin, "spinning")] {
        let fd = PhaseMemory::create(&SHAPE).unwrap();
        let test = "pipeline::memory::tests::no_block_is_seen_before_it_is_whole";
        let mut other = Command::new(std::env::current_exe().unwrap());
        other.args(["--exact", test]).env(OTHER, name).stdout(Stdio::null());
        let mut other = other.stdin(fd.try_clone().unwrap()).spawn().unwrap();
        let freed = PhaseMemory::map(&fd, &SHAPE, wait_mode).unwrap();
        let ended = thread::spawn(move || {
            let good = other.wait().unwrap().success();
            // After a failure no thread may wait for the other process.
            (0..SLOTS).filter(|_| !good).for_each(|slot| freed.set(Counter::Drained(slot), AHEAD));
            good
        });
        in_threads(fd, wait_mode, |memory, buffer, block| {
            let (slot, turn) = (buffer % SLOTS, buffer / SLOTS);
            memory.wait(Counter::Drained(slot), nodes * turn);
            memory.block(slot, block).fill(mark(buffer, block));
            memory.advance(Counter::Filled(slot), 1);
        });
        assert!(ended.join().unwrap(), "{name}");
    }
}

/// The steps of `sleep` and `advance`: each is one atomic access or one system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum At {
    Count,
    Look,
    Sleep { seen: u32 },
    Asleep,
    Uncount,
    LookAgain,
    Add,
    AskForSleepers,
    Wake,
    Done,
}

/// The counter, the number of sleepers, and the step of each process.
type State = (u32, u32, Vec<At>);

/// Returns the state after the next step of process `who`; `None` if it is asleep or done.
fn step((word, sleepers, places): &State, who: usize, least: u32) -> Option<State> {
    let (mut word, mut sleepers, mut next) = (*word, *sleepers, places.clone());
    next[who] = match places[who] {
        At::Count => {
            sleepers += 1;
            At::Look
        }
        At::Look if word < least => At::Sleep { seen: word },
        At::Look => At::Uncount,
        // The kernel compares and sleeps atomically.
        At::Sleep { seen } if seen == word => At::Asleep,
        At::Sleep { .. } => At::Uncount,
        At::Uncount => {
            sleepers -= 1;
            At::LookAgain
        }
        At::LookAgain if word < least => At::Count,
        At::LookAgain => At::Done,
        At::Add => {
            word += 1;
            At::AskForSleepers
        }
        At::AskForSleepers if sleepers > 0 => At::Wake,
        At::AskForSleepers => At::Done,
        At::Wake => {
            next.iter_mut().filter(|at| **at == At::Asleep).for_each(|at| *at = At::Uncount);
            At::Done
        }
        At::Asleep | At::Done => return None,
    };
    Some((word, sleepers, next))
}

/// Tries every order of the steps of two processes that wait and two that advance.
#[test]
fn no_wake_up_is_lost() {
    let mut open: Vec<State> = vec![(0, 0, vec![At::Count, At::Count, At::Add, At::Add])];
    let mut known = BTreeSet::new();
    while let Some(state) = open.pop() {
        if !known.insert(state.clone()) {
            continue;
        }
        let next: Vec<State> = (0..4).filter_map(|who| step(&state, who, 2)).collect();
        assert!(!next.is_empty() || state.2.iter().all(|at| *at == At::Done), "asleep for ever: {state:?}");
        open.extend(next);
    }
    assert!(known.len() > 100);
}
