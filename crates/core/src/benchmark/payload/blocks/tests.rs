//! Tests of the places of blocks, and of the verification of payload and gaps.

use ombx_record::{result::Mismatch, unit::Rank};
use proptest::prelude::*;

use super::*;
use crate::benchmark::{
    Chosen, ParameterValue,
    payload::{Fill, Slots},
};

fn chosen(length: Option<u64>, stride: Option<u64>) -> Chosen {
    let mut chosen = Chosen::default();
    chosen.set("block-length", length.map(|length| length.to_string()));
    chosen.set("stride", stride.map(|stride| stride.to_string()));
    chosen
}

fn blocks(datatype: Datatype, length: u64, stride: u64) -> Blocks {
    Blocks::chosen(datatype, &chosen(Some(length), Some(stride))).unwrap().unwrap()
}

proptest! {
    #![proptest_config(crate::testkit::seeded())]
    #[test]
    fn places_are_apart_and_hold_the_payload(length in 13u64..200, more in 0u64..100, count in 0u64..40) {
        for datatype in [Datatype::Vector, Datatype::Indexed, Datatype::Struct] {
            let stride = (length + 4 + more).next_multiple_of(8);
            let (blocks, bytes) = (blocks(datatype, length, stride), length * count);
            let mut end = 0;
            let mut payload = 0;
            for place in blocks.places(bytes) {
                prop_assert!(place.start >= end && !place.is_empty());
                payload += place.end - place.start;
                end = place.end;
            }
            prop_assert_eq!(payload, bytes);
            prop_assert!(end <= blocks.span(bytes));
        }
    }

    #[test]
    fn one_flipped_bit_of_payload_or_gap_is_detected(pick in any::<prop::sample::Index>(), bit in 0u8..8) {
        for datatype in [Datatype::Vector, Datatype::Indexed, Datatype::Struct] {
            let blocks = blocks(datatype, 24, 48);
            let slots = Slots::new(240, 2).of_blocks(Some(blocks));
            let fill = Fill { round: 3, bytes: 240, iterations: 0 };
            let mut received = received(blocks, slots, fill);
            prop_assert_eq!(fill.check(Rank(1), slots, &received, Rank(0)), Check::Passed);
            let at = pick.index(2 * 480);
            let (slot, byte) = ((at / 480) as u64, (at % 480) as u64);
            received[(slot * slots.stride + byte) as usize] ^= 1 << bit;
            match fill.check(Rank(1), slots, &received, Rank(0)) {
                Check::Failed(m) => prop_assert_eq!((m.rank, m.slot, m.byte), (Rank(0), slot, byte)),
                other => prop_assert!(false, "{:?}", other),
            }
        }
    }
}

/// Returns a buffer that was poisoned and in which the payload of rank 1 arrived.
fn received(blocks: Blocks, slots: Slots, fill: Fill) -> Vec<u8> {
    let (mut sent, mut received) = (vec![0; slots.total() as usize], vec![0; slots.total() as usize]);
    fill.write(Rank(1), slots, &mut sent);
    fill.poison(Rank(1), slots, &mut received);
    for slot in 0..slots.count {
        for place in blocks.places(slots.bytes) {
            let [from, to] = [place.start, place.end].map(|at| slots.offset(slot) + at as usize);
            received[from..to].copy_from_slice(&sent[from..to]);
        }
    }
    received
}

#[test]
fn gaps_that_arrive_too_are_detected() {
    let blocks = blocks(Datatype::Vector, 8, 16);
    let slots = Slots::new(64, 1).of_blocks(Some(blocks));
    assert_eq!((slots.total(), slots.bytes), (128, 64));
    let fill = Fill { round: 0, bytes: 64, iterations: 0 };
    let mut whole = vec![0; 128];
    fill.write(Rank(1), slots, &mut whole);
    assert!(matches!(fill.check(Rank(1), slots, &whole, Rank(0)), Check::Failed(Mismatch { byte: 8, .. })));
}

#[test]
fn a_struct_has_the_gaps_of_c() {
    #[repr(C)]
    struct Members {
        number: i32,
        real: f64,
        bytes: [u8; 13],
    }
    let blocks = Blocks::chosen(Datatype::Struct, &chosen(Some(25), None)).unwrap().unwrap();
    let at = [
        std::mem::offset_of!(Members, number)..4,
        std::mem::offset_of!(Members, real)..16,
        std::mem::offset_of!(Members, bytes)..29,
    ];
    let places: Vec<_> = blocks.places(25).map(|place| place.start as usize..place.end as usize).collect();
    assert_eq!(places, at);
    assert_eq!(blocks.stride, size_of::<Members>() as u64);
}

#[test]
fn indexed_blocks_have_several_lengths_and_distances() {
    let places: Vec<_> = blocks(Datatype::Indexed, 64, 128).places(64 * 64).collect();
    let mut lengths: Vec<u64> = places.iter().map(|place| place.end - place.start).collect();
    let mut gaps: Vec<u64> = places.windows(2).map(|pair| pair[1].start - pair[0].end).collect();
    for numbers in [&mut lengths, &mut gaps] {
        assert!(numbers.iter().all(|number| number.is_multiple_of(8)));
        numbers.sort_unstable();
        numbers.dedup();
        assert!(numbers.len() > 5, "{numbers:?}");
    }
}

#[test]
fn defaults_and_refusals() {
    let none = chosen(None, None);
    let shown = Datatype::ALL.iter().map(|datatype| Blocks::chosen(*datatype, &none).unwrap());
    let shown: Vec<_> = shown.map(|blocks| blocks.map(|blocks| blocks.to_string())).collect();
    assert_eq!(shown, [None, Some("64/128".into()), Some("64/128".into()), Some("64/72".into())]);
    let refusals = [
        (Datatype::Vector, Some(64), Some(63), "choose --stride 64"),
        (Datatype::Indexed, None, Some(8), "choose --stride 64"),
        (Datatype::Struct, Some(12), None, "choose --block-length 13"),
        (Datatype::Struct, Some(24), Some(33), "choose --stride 40"),
        (Datatype::Struct, Some(24), Some(24), "choose --stride 32"),
    ];
    for (datatype, length, stride, words) in refusals {
        let refusal = Blocks::chosen(datatype, &chosen(length, stride)).unwrap_err();
        assert_eq!(refusal.kind(), ombx_record::error::Kind::Usage);
        assert!(refusal.to_string().contains(words), "{refusal}");
    }
    for text in ["0", "2G", "x"] {
        assert!(BLOCK_LENGTH.read(text).is_err() && STRIDE.read(text).is_err());
    }
    let vector = blocks(Datatype::Vector, 64, 128);
    assert_eq!(vector.count(128).unwrap(), 2);
    assert!(vector.count(100).unwrap_err().to_string().contains("multiple of 64"));
    assert!(vector.count(1 << 31).unwrap_err().to_string().contains("less than 2 GiB"));
}

#[test]
fn listed_blocks_repeat() {
    let of = |stride| {
        let mut given = chosen(None, stride);
        given.set("blocks", ["16:4,0:8"]);
        Blocks::chosen(Datatype::Indexed, &given)
    };
    let blocks = of(None).unwrap().unwrap();
    assert_eq!(blocks.places(24).collect::<Vec<_>>(), [16..20, 0..8, 36..40, 20..28]);
    assert_eq!(
        (blocks.length, blocks.span(24), blocks.count(24).unwrap(), blocks.divided()),
        (12, 40, 2, 12 | 20 | 16 | 8 | 4)
    );
    assert_eq!(of(Some(32)).unwrap().unwrap().span(24), 64);
    assert!(of(Some(19)).unwrap_err().to_string().contains("choose --stride 20"));
    assert!(blocks.to_string().starts_with("2:12/20:"), "{blocks}");
    let slots = Slots::new(24, 2).of_blocks(Some(blocks));
    let fill = Fill { round: 3, bytes: 24, iterations: 0 };
    let mut received = received(blocks, slots, fill);
    assert_eq!(fill.check(Rank(1), slots, &received, Rank(0)), Check::Passed);
    received[9] ^= 1;
    assert!(matches!(
        fill.check(Rank(1), slots, &received, Rank(0)),
        Check::Failed(Mismatch { byte: 9, .. })
    ));
}
