//! Tests of the order in which iterations use copies, and of their number and distance.

use std::collections::BTreeSet;

use super::*;
use crate::benchmark::payload::LEAST_STEP;

/// Least distance between copies.
const GAP: u64 = 128;

/// Returns the offsets of consecutive iterations, one round through all copies.
fn visited(copies: Copies) -> Vec<u64> {
    let mut walk = Walk::new(copies);
    let mut next = || {
        let at = walk.at;
        walk.advance();
        at
    };
    (0..copies.count).map(|_| next()).collect()
}

#[test]
fn copies_exceed_twice_the_cache_and_share_no_line() {
    for cache in [4096, 1 << 20, 32 << 20] {
        for bytes in [64, 128, 192, 4096, 65_536, 1 << 20] {
            let copies = Copies::beyond(cache, bytes);
            assert!(copies.total(bytes) >= 2 * cache, "{cache} {bytes} {copies:?}");
            // Two copies more than needed at most: memory is not wasted.
            assert!(
                copies.total(bytes) <= (2 * cache).max(bytes) + 3 * (bytes + 2 * GAP),
                "{cache} {bytes} {copies:?}"
            );
            if copies.count > 1 {
                assert!(copies.pitch >= bytes + GAP && copies.pitch.is_multiple_of(64), "{copies:?}");
            }
        }
    }
}

#[test]
fn messages_beyond_twice_the_cache_have_one_copy() {
    let copies = Copies::beyond(1 << 20, 2 << 20);
    assert_eq!((copies.count, copies.total(2 << 20)), (1, 2 << 20));
    assert!(Copies::beyond(1 << 20, (2 << 20) - 64).count > 1);
    assert_eq!((Copies::ONE.total(100), Copies::beyond(1 << 20, 64).total(0)), (100, 0));
}

#[test]
fn every_copy_is_visited_once_in_a_round_and_far_from_the_one_before() {
    for bytes in [64, 200, 5000, 65_536, 300_000] {
        let copies = Copies::beyond(1 << 20, bytes);
        let offsets = visited(copies);
        let distinct: BTreeSet<u64> = offsets.iter().copied().collect();
        assert_eq!(distinct.len() as u64, copies.count, "{bytes}");
        assert!(
            distinct.iter().all(|at| at % copies.pitch == 0 && at + bytes <= copies.total(bytes)),
            "{bytes}"
        );
        assert!(offsets.windows(2).all(|pair| pair[0].abs_diff(pair[1]) >= LEAST_STEP), "{bytes}");
    }
}

#[test]
fn the_last_copy_and_its_visits_follow_the_iterations() {
    let copies = Copies::beyond(4096, 1024);
    let mut walk = Walk::new(copies);
    let mut visits = std::collections::BTreeMap::new();
    for iteration in 1..=5 * copies.count {
        *visits.entry(walk.at).or_insert(0) += 1;
        let used = walk.at;
        walk.advance();
        assert_eq!((walk.last(), walk.visits(iteration)), (used, visits[&used]), "{iteration}");
    }
    assert_eq!(walk.visits(0), 0);
}

#[test]
fn all_copies_are_filled_for_many_iterations_and_one_for_a_single() {
    let copies = Copies::beyond(4096, 1024);
    let mut walk = Walk::new(copies);
    walk.advance();
    let all: BTreeSet<usize> = walk.filled(0).collect();
    assert_eq!(all, visited(copies).into_iter().map(|at| at as usize).collect());
    assert_eq!(walk.filled(3).collect::<Vec<_>>(), [walk.at as usize]);
}
