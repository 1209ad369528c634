//! Every pattern over every link, with losses and with wrong data. Ranks are threads of a session on this host.

mod request;
mod streams;

use std::{
    cell::{Cell, RefCell},
    sync::{
        atomic::{AtomicU32, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use ombx_core::{
    benchmark::{Benchmark, Choice, Chosen, Context, Depth, Figure, ParameterValue, payload::Slots},
    clock::Clock,
    error::Result,
    measure::{
        plan::{Effort, Plan},
        runner,
        session::Memory,
    },
    result::{Check, Measurement, Outcome},
    team::{BYTES_OF_TURN, Team},
    two_sided::pattern::{
        BiStream, Bidirectional, Buffers, Link, Pattern, PatternKernel, PingPong, Stream, Unidirectional,
    },
    unit::{Bytes, Rank},
};

use super::{datagrams::Datagrams, stream::StreamLink};
use crate::{
    control::Token,
    link::{SocketKind, Tcp, Unix, ZeroCopyTcp},
    options::LinkOptions,
    session::{Coordinator, Reach, SessionEvent, SocketTeam, listen},
    socket::SocketOptions,
};

thread_local! {
    /// One in this number of datagrams of this thread is lost; 0: none.
    static LOSSES: Cell<u64> = const { Cell::new(0) };
    static SENT: RefCell<u64> = const { RefCell::new(0) };
}

/// Returns whether the next datagram of this thread is lost.
pub(super) fn loses() -> bool {
    let sent = SENT.with_borrow_mut(|sent| {
        *sent = sent.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        *sent >> 33
    });
    LOSSES.get() > 0 && sent.is_multiple_of(LOSSES.get())
}

/// Runs a body on every rank of a session.
pub(super) fn on_ranks<R: Send>(ranks: u32, body: impl Fn(&SocketTeam) -> R + Sync) -> Vec<R> {
    let token = Token::random().unwrap();
    let listener = listen(token, Reach::ThisHost).unwrap();
    let address = ([127, 0, 0, 1], listener.port()).into();
    let (sender, events) = mpsc::channel();
    Coordinator::start(listener, ranks, Box::new(move |event| drop(sender.send(event)))).unwrap();
    let results = thread::scope(|scope| {
        let threads: Vec<_> = (0..ranks)
            .map(|rank| {
                let body = &body;
                scope.spawn(move || {
                    let team = SocketTeam::join(&[address], token, rank, |_, _| ()).unwrap();
                    let result = body(&team);
                    team.barrier().unwrap();
                    team.leave();
                    result
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    let mut done = 0;
    while done < ranks {
        match events.recv().unwrap() {
            SessionEvent::Done(_) => done += 1,
            SessionEvent::Complete => {}
            other => panic!("{other:?}"),
        }
    }
    results
}

fn plan(sizes: &[u64], iterations: u64, depth: u32) -> Plan {
    Plan {
        sizes: Some(sizes.iter().copied().map(Bytes).collect()),
        chosen: Chosen::default().with(Depth(depth)),
        effort: Effort::Fixed { iterations, warmup: 2 },
        batch: Some(1),
        ..Plan::default()
    }
}

/// Returns what rank 0 records of a pattern over a link.
fn measure<P: Pattern, L: Link + 'static>(plan: &Plan, losses: u64) -> Memory {
    measure_bench(bench::<P, L>(), plan, losses)
}

fn bench<P: Pattern, L: Link + 'static>() -> &'static Benchmark {
    let bench = Benchmark::new::<PatternKernel<P, L>>("test.link", "a test");
    Box::leak(Box::new(bench.streaming().with(&[Buffers::PARAMETER])))
}

/// Returns what rank 0 records of a benchmark.
fn measure_bench(bench: &'static Benchmark, plan: &Plan, losses: u64) -> Memory {
    measure_over(LinkOptions::default(), bench, plan, losses)
}

/// Returns what rank 0 records of a benchmark over links with these options.
fn measure_over(options: LinkOptions, bench: &'static Benchmark, plan: &Plan, losses: u64) -> Memory {
    let mut all = on_ranks(2, |team| {
        LOSSES.set(losses);
        team.set_link_options(options.clone());
        let mut sink = Memory::default();
        let clock = Clock::measured();
        let part = runner::Part { choices: vec![Choice { bench, preset: &[] }], plan: plan.clone() };
        runner::run_all(team, &[part], &clock, &mut sink, vec!["test".into()]).unwrap();
        sink
    });
    all.swap_remove(0)
}

fn passes<P: Pattern, L: Link + 'static>(sizes: &[u64], losses: u64) -> f64 {
    let memory = measure::<P, L>(&plan(sizes, 6, 8), losses);
    assert_eq!(memory.rows.len(), sizes.len());
    for row in &memory.rows {
        assert_eq!((&row.outcome, &row.check), (&Outcome::Ok, &Check::Passed), "{}", row.key);
    }
    let lost = memory.rows.iter().filter_map(|row| match row.figures.get("lost_messages") {
        Some(Figure::Value(lost)) => Some(*lost),
        _ => None,
    });
    lost.sum()
}

fn every_pattern_passes<K: SocketKind>() {
    // The largest exceeds the socket buffers: two blocking sends would deadlock.
    let sizes = [1, 3, 1000, 3 << 20];
    passes::<PingPong, StreamLink<K>>(&sizes, 0);
    passes::<Stream, StreamLink<K>>(&sizes, 0);
    passes::<BiStream, StreamLink<K>>(&sizes, 0);
    passes::<Bidirectional, StreamLink<K>>(&sizes, 0);
    passes::<Unidirectional, StreamLink<K>>(&sizes, 0);
}

#[test]
fn a_congestion_control_is_refused_by_other_protocols() {
    let socket = SocketOptions { congestion: Some("reno".into()), ..SocketOptions::default() };
    let options = LinkOptions { socket, ..LinkOptions::default() };
    let plan = plan(&[8], 6, 8);
    for bench in [bench::<PingPong, StreamLink<Unix>>(), bench::<PingPong, Datagrams>()] {
        let rows = measure_over(options.clone(), bench, &plan, 0).rows;
        let [Outcome::Skipped(why)] = rows.iter().map(|row| &row.outcome).collect::<Vec<_>>()[..] else {
            panic!("{rows:?}")
        };
        assert!(why.contains("leave out --congestion"), "{why}");
    }
    assert_eq!(
        measure_over(options, bench::<PingPong, StreamLink<Tcp>>(), &plan, 0).rows[0].outcome,
        Outcome::Ok
    );
}

fn all_pass(rows: &[Measurement]) {
    assert!(!rows.is_empty());
    for row in rows {
        assert_eq!((&row.outcome, &row.check), (&Outcome::Ok, &Check::Passed), "{}", row.key);
    }
}

/// The rest of a window is less than the mark, and must wake the receiver all the same. The first size has
/// the default mark, if this host has BBR.
#[test]
fn windows_arrive_with_every_low_water_mark() {
    let plan = plan(&[9000, 1000, 1], 4, 33);
    let mut single = plan.clone();
    single.chosen = single.chosen.with(Buffers::Single);
    for (low_water, buffer) in [
        (None, None),
        (Some(1), None),
        (Some(1000), None),
        (Some(100_000), None),
        (None, Some(4096)),
        (Some(1000), Some(4096)),
    ] {
        let socket = SocketOptions { buffer, ..SocketOptions::default() };
        let options = LinkOptions { low_water, socket, ..LinkOptions::default() };
        for plan in [&plan, &single] {
            all_pass(&measure_over(options.clone(), bench::<Stream, StreamLink<Tcp>>(), plan, 0).rows);
            // Sends without copying make no progress with the smallest buffers.
            if buffer.is_none() {
                let bench = bench::<Stream, StreamLink<ZeroCopyTcp>>();
                all_pass(&measure_over(options.clone(), bench, plan, 0).rows);
            }
        }
    }
}

#[test]
fn a_low_water_mark_above_the_limit_of_the_host_is_refused() {
    let socket = SocketOptions { buffer: Some(4096), ..SocketOptions::default() };
    let options = LinkOptions { low_water: Some(100_000), socket, ..LinkOptions::default() };
    let rows = measure_over(options, bench::<Stream, StreamLink<Tcp>>(), &plan(&[9000], 4, 33), 0).rows;
    let Outcome::Skipped(why) = &rows[0].outcome else { panic!("{rows:?}") };
    assert!(why.contains("limits --rcvlowat to"), "{why}");
}

#[test]
fn a_low_water_mark_is_refused_by_other_protocols() {
    let options = LinkOptions { low_water: Some(4096), ..LinkOptions::default() };
    for bench in [bench::<Stream, StreamLink<Unix>>(), bench::<Stream, Datagrams>()] {
        let rows = measure_over(options.clone(), bench, &plan(&[8], 6, 8), 0).rows;
        let [Outcome::Skipped(why)] = rows.iter().map(|row| &row.outcome).collect::<Vec<_>>()[..] else {
            panic!("{rows:?}")
        };
        assert!(why.contains("--rcvlowat is for TCP"), "{why}");
    }
}

#[test]
fn every_pattern_passes_over_streams() {
    every_pattern_passes::<Tcp>();
    every_pattern_passes::<ZeroCopyTcp>();
    every_pattern_passes::<Unix>();
}

#[test]
fn every_pattern_passes_over_datagrams() {
    let sizes = [0, 1, 1000, 60_000];
    passes::<PingPong, Datagrams>(&sizes, 0);
    passes::<Stream, Datagrams>(&sizes, 0);
    passes::<BiStream, Datagrams>(&sizes, 0);
    passes::<Bidirectional, Datagrams>(&sizes, 0);
    passes::<Unidirectional, Datagrams>(&sizes, 0);
}

#[test]
fn lost_datagrams_are_sent_again_and_counted() {
    let sizes = [64, 2000];
    assert!(passes::<PingPong, Datagrams>(&sizes, 7) > 0.0);
    assert!(passes::<Stream, Datagrams>(&sizes, 7) > 0.0);
    assert!(passes::<BiStream, Datagrams>(&sizes, 7) > 0.0);
    assert!(passes::<Bidirectional, Datagrams>(&sizes, 7) > 0.0);
    assert!(passes::<Unidirectional, Datagrams>(&sizes, 7) > 0.0);
}

#[test]
fn sizes_that_do_not_fit_are_skipped_with_the_reason() {
    let too_long = measure::<PingPong, Datagrams>(&plan(&[1 << 20], 1, 1), 0);
    assert_eq!(too_long.rows[0].outcome, Outcome::Skipped("a datagram carries at most 65499 bytes".into()));
    let empty = measure::<PingPong, StreamLink<Tcp>>(&plan(&[0], 1, 1), 0);
    assert_eq!(empty.rows[0].outcome, Outcome::Skipped("a stream carries no empty message".into()));
}

/// Flips a bit of one message that arrives on one rank.
struct Flip<L, const RANK: u32, const SLOT: u32> {
    link: L,
    /// Position of the byte in the incoming buffer; `None` on other ranks.
    byte: Option<usize>,
}

impl<L: Link, const RANK: u32, const SLOT: u32> Flip<L, RANK, SLOT> {
    fn flip(&mut self) -> Result<()> {
        if let Some(byte) = self.byte {
            self.link.incoming()[byte] ^= 4;
        }
        Ok(())
    }
}

impl<L: Link, const RANK: u32, const SLOT: u32> Link for Flip<L, RANK, SLOT> {
    fn send(&mut self) -> Result<()> {
        self.link.send()
    }
    fn receive(&mut self) -> Result<()> {
        self.link.receive()?;
        self.flip()
    }
    fn push(&mut self) -> Result<()> {
        self.link.push()
    }
    fn pull(&mut self) -> Result<()> {
        self.link.pull()?;
        self.flip()
    }
    fn swap(&mut self) -> Result<()> {
        self.link.swap()?;
        self.flip()
    }
    fn acknowledge(&mut self) -> Result<()> {
        self.link.acknowledge()
    }
    fn acknowledged(&mut self) -> Result<()> {
        self.link.acknowledged()
    }
    fn open(cx: &Context<'_>, slots: Slots) -> Result<Self> {
        let byte = (cx.rank() == Rank(RANK)).then(|| slots.offset(SLOT) + 5);
        Ok(Flip { link: L::open(cx, slots)?, byte })
    }
    fn outgoing(&mut self) -> &mut [u8] {
        self.link.outgoing()
    }
    fn incoming(&mut self) -> &mut [u8] {
        self.link.incoming()
    }
}

fn is_caught<P: Pattern, L: Link + 'static, const RANK: u32, const SLOT: u32>() {
    let memory = measure::<P, Flip<L, RANK, SLOT>>(&plan(&[64], 5, 3), 0);
    let Check::Failed(mismatch) = &memory.rows[0].check else { panic!("{:?}", memory.rows[0].check) };
    assert_eq!((mismatch.rank, mismatch.slot), (Rank(RANK), SLOT.into()));
    assert_eq!((mismatch.byte, mismatch.expected ^ mismatch.actual), (5, 4));
    assert!(matches!(&memory.rows[0].outcome, Outcome::Failed(_)));
}

/// Checks every pattern, every receiving rank, and the first and last message.
fn is_caught_everywhere<L: Link + 'static>() {
    is_caught::<PingPong, L, 0, 0>();
    is_caught::<PingPong, L, 1, 0>();
    is_caught::<Stream, L, 1, 0>();
    is_caught::<Stream, L, 1, 2>();
    is_caught::<BiStream, L, 0, 0>();
    is_caught::<BiStream, L, 0, 2>();
    is_caught::<BiStream, L, 1, 0>();
    is_caught::<BiStream, L, 1, 2>();
    is_caught::<Bidirectional, L, 0, 0>();
    is_caught::<Bidirectional, L, 1, 0>();
    is_caught::<Unidirectional, L, 1, 0>();
}

#[test]
fn a_flipped_bit_is_caught_everywhere() {
    is_caught_everywhere::<StreamLink<Tcp>>();
    is_caught_everywhere::<StreamLink<ZeroCopyTcp>>();
    is_caught_everywhere::<StreamLink<Unix>>();
    is_caught_everywhere::<Datagrams>();
}

#[test]
fn a_team_gathers_broadcasts_and_pairs() {
    let found = on_ranks(4, |team| {
        let mine = vec![team.rank().0 as u8; 3 * team.rank().0 as usize];
        let all = team.gather(&mine).unwrap();
        // Longer than a frame.
        let mut long = vec![if team.rank() == Rank(0) { 7 } else { 0 }; 3 << 20];
        team.broadcast(&mut long).unwrap();
        assert!(long.iter().all(|byte| *byte == 7));
        let part = team.subteam(3).unwrap();
        assert_eq!(part.is_some(), team.rank().0 < 3);
        if let Some(part) = part {
            part.barrier().unwrap();
        }
        let partner = Rank(team.rank().0 ^ 1);
        let pair = team.pair(partner, Rank(team.rank().0.max(partner.0))).unwrap();
        assert_eq!(pair.rank().0, u32::from(team.rank().0 < partner.0));
        let mut word = [if pair.rank() == Rank(0) { 9 } else { 0 }];
        pair.broadcast(&mut word).unwrap();
        assert_eq!(word, [9]);
        let wrong = if team.rank() == Rank(2) { Err(ombx_core::error::Error::usage("no")) } else { Ok(()) };
        assert_eq!((team as &dyn Team).agree(wrong).unwrap_err().to_string(), "rank 2: no");
        all
    });
    let all = found[0].as_ref().unwrap();
    assert_eq!(all.iter().map(Vec::len).collect::<Vec<_>>(), [0, 3, 6, 9]);
    assert!(found[1..].iter().all(Option::is_none));
}

/// Ranks of three levels of the tree, and rows of more than one turn.
#[test]
fn many_ranks_gather_in_turns() {
    const RANKS: u32 = 70;
    let length = |rank: u32| match rank {
        5 | 40 => 0,
        69 => BYTES_OF_TURN as usize + 1,
        _ => 1 << 18,
    };
    let found = on_ranks(RANKS, |team| {
        let rank = team.rank().0;
        let mut all = Vec::new();
        let mut take = |bytes: Vec<u8>| {
            assert!(bytes.iter().all(|byte| u32::from(*byte) == u32::from(bytes[0])));
            all.push((u32::from(bytes[0]), bytes.len()));
            Ok(())
        };
        team.gather_each(&vec![rank as u8; length(rank)], &mut take).unwrap();
        team.gather_each(&[], &mut |_| panic!("nobody has sent anything")).unwrap();
        team.gather_each(&[rank as u8; 1][..usize::from(rank == 33)], &mut |bytes| {
            assert_eq!(bytes, [33]);
            Ok(())
        })
        .unwrap();
        assert_eq!((team as &dyn Team).broadcast_value(u64::from(rank) + 8).unwrap(), 8);
        all
    });
    let expected: Vec<_> =
        (0..RANKS).map(|rank| (rank, length(rank))).filter(|(_, length)| *length > 0).collect();
    assert_eq!(found[0], expected);
    assert!(found[1..].iter().all(Vec::is_empty));
}

/// Ranks of three levels of the tree. Those of the load exchange messages before the barrier is complete, some with their parents in it.
#[test]
fn a_barrier_that_some_ranks_only_enter_ends_for_all() {
    const RANKS: u32 = 70;
    let is_measured = |rank: &u32| [0, 3, 4, 68].contains(rank);
    let left = AtomicU32::new(0);
    on_ranks(RANKS, |team| {
        let (measured, load): (Vec<u32>, Vec<u32>) = (0..RANKS).partition(is_measured);
        let part = |ranks: &[u32]| team.subset(&ranks.iter().copied().map(Rank).collect::<Vec<_>>()).unwrap();
        let measured = part(&measured);
        if let Some(load) = part(&load) {
            let mut entered = team.enter_barrier().unwrap();
            while load.broadcast_value(u64::from(!entered.is_complete().unwrap())).unwrap() == 1 {
                load.barrier().unwrap();
            }
            while !entered.is_complete().unwrap() {
                thread::yield_now();
            }
            assert_eq!(left.load(Ordering::SeqCst), 4);
        } else {
            measured.unwrap().barrier().unwrap();
            thread::sleep(Duration::from_millis(20));
            left.fetch_add(1, Ordering::SeqCst);
            team.sleeping_barrier().unwrap();
        }
        team.sleeping_barrier().unwrap();
        team.barrier().unwrap();
    });
}
