//! Windows that are divided over several streams, each with a thread: their data, wrong data, and a stream that dies.

use super::*;
use crate::{
    link::{Streams, Unix, ZeroCopyTcp},
    transport::over_streams,
};

/// Returns what rank 0 records of a pattern over this number of streams.
fn divided<P: Pattern, L: Link + Send + 'static>(streams: u32, plan: &Plan) -> Memory {
    let run = over_streams::<P, L>;
    let bench: &'static Benchmark = Box::leak(Box::new(
        Benchmark::custom("test.link", "a test", P::METRIC, P::METHOD, run)
            .streaming()
            .with(&[Buffers::PARAMETER, Streams::PARAMETER]),
    ));
    let plan = Plan { chosen: plan.chosen.clone().with(Streams(streams)), ..plan.clone() };
    measure_over(LinkOptions { streams, ..LinkOptions::default() }, bench, &plan, 0)
}

fn every_window_arrives<K: SocketKind>() {
    // The largest exceeds the socket buffers. Eight messages are not divided evenly by three.
    let plan = plan(&[1, 1000, 3 << 20], 4, 8);
    for streams in [1, 3, 8] {
        for memory in [
            divided::<Stream, StreamLink<K>>(streams, &plan),
            divided::<BiStream, StreamLink<K>>(streams, &plan),
        ] {
            assert_eq!(memory.rows.len(), 3);
            for row in &memory.rows {
                assert_eq!((&row.outcome, &row.check), (&Outcome::Ok, &Check::Passed), "{}", row.key);
                let bytes = 8 * row.bytes.unwrap();
                let work = row.work.unwrap().bytes;
                assert!([bytes, 2 * bytes].contains(&work), "{work} are all bytes of a window");
            }
        }
    }
}

#[test]
fn every_window_arrives_over_several_streams() {
    every_window_arrives::<Tcp>();
    every_window_arrives::<ZeroCopyTcp>();
    every_window_arrives::<Unix>();
}

#[test]
fn a_flipped_bit_of_a_stream_is_caught() {
    fn is_caught<P: Pattern, const RANK: u32, const SLOT: u32>() {
        let memory = divided::<P, Flip<StreamLink<Tcp>, RANK, SLOT>>(3, &plan(&[64], 5, 6));
        let Check::Failed(mismatch) = &memory.rows[0].check else { panic!("{:?}", memory.rows[0].check) };
        assert_eq!((mismatch.rank, mismatch.slot, mismatch.byte), (Rank(RANK), SLOT.into(), 5));
    }
    is_caught::<Stream, 1, 0>();
    is_caught::<Stream, 1, 1>();
    is_caught::<BiStream, 0, 1>();
    is_caught::<BiStream, 1, 1>();
}

#[test]
fn more_streams_than_messages_are_a_skipped_row() {
    let memory = divided::<Stream, StreamLink<Tcp>>(9, &plan(&[64], 1, 8));
    assert_eq!(memory.rows[0].outcome, Outcome::Skipped("8 messages do not occupy 9 streams".into()));
}
