//! Windows that are divided over several streams: their data, wrong data, and a stream that dies.

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use super::*;
use crate::{link::streams::Streams, transport::Unix};

/// Returns what rank 0 records of a pattern over this number of streams.
fn divided<P: Pattern, L: Link + 'static>(streams: u32, plan: &Plan) -> Memory {
    let bench: &'static Benchmark = Box::leak(Box::new(
        Benchmark::of::<PatternKernel<P, L>>("test.link", "a test").streaming().with(&[Buffers::PARAMETER]),
    ));
    measure_over(LinkOptions { streams, ..LinkOptions::default() }, bench, plan, 0)
}

struct EveryWindowArrives;

impl StreamKindTest for EveryWindowArrives {
    fn run<K: SocketKind>(&self) {
        // The largest exceeds the socket buffers. Eight messages are not divided evenly by three.
        let plan = plan(&[1, 1000, 3 << 20], 4, 8);
        for streams in [1, 3, 8] {
            for memory in [
                divided::<Stream, Streams<K>>(streams, &plan),
                divided::<BiStream, Streams<K>>(streams, &plan),
            ] {
                assert_eq!(memory.rows.len(), 3);
                for row in &memory.rows {
                    assert_eq!((&row.outcome, &row.check), (&Outcome::Ok, &Check::Passed), "{}", row.key);
                }
            }
        }
    }
}

#[test]
fn every_window_arrives_over_several_streams() {
    EveryWindowArrives.run::<Tcp>();
    EveryWindowArrives.run::<Unix>();
}

#[test]
fn a_flipped_bit_of_every_stream_is_caught() {
    fn is_caught<P: Pattern, const RANK: u32, const SLOT: u32>() {
        let memory = divided::<P, Flip<Streams<Tcp>, RANK, SLOT>>(3, &plan(&[64], 5, 4));
        let Check::Failed(mismatch) = &memory.rows[0].check else { panic!("{:?}", memory.rows[0].check) };
        assert_eq!((mismatch.rank, mismatch.slot, mismatch.byte), (Rank(RANK), SLOT.into(), 5));
    }
    is_caught::<Stream, 1, 0>();
    is_caught::<Stream, 1, 2>();
    is_caught::<Stream, 1, 3>();
    is_caught::<BiStream, 0, 1>();
    is_caught::<BiStream, 1, 1>();
}

#[test]
fn more_streams_than_messages_are_a_skipped_row() {
    let memory = divided::<Stream, Streams<Tcp>>(9, &plan(&[64], 1, 8));
    assert_eq!(memory.rows[0].outcome, Outcome::Skipped("8 messages do not occupy 9 streams".into()));
}

#[test]
fn a_stream_that_dies_is_named() {
    let pairs = [(); 3].map(|()| {
        socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).expect("sockets")
    });
    let (here, mut there): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
    let slots = Slots::new(64, 3);
    let mut link = Streams::<Unix>::over(here, slots);
    drop(there.remove(1));
    assert_eq!(link.push().unwrap_err().to_string(), "stream 2 of 3: the other rank closed the connection");
    let why = link.pull().unwrap_err().to_string();
    assert_eq!(why, "stream 2 of 3: the other rank closed the connection");
}
