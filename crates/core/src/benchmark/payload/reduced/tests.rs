//! Results compared with those of combining every contribution.

use super::*;
use crate::{
    benchmark::{ParameterValue, reduction::check_combination},
    testkit::combine,
};

/// Calls `each` for every reduction over some numbers of ranks.
fn each_reduction(mut each: impl FnMut(Reduction)) {
    for element in ElementType::ALL {
        for op in ReductionOp::ALL {
            for ranks in [1, 2, 3, 7, 64, 300, 5000] {
                if check_combination(*element, *op).is_ok() {
                    each(Reduction { element: *element, op: *op, ranks });
                }
            }
        }
    }
}

fn fill(round: u64) -> Fill {
    Fill { round, bytes: 64, iterations: 0 }
}

fn written(reduced: Reduced) -> Vec<u8> {
    let mut message = vec![0; 64];
    reduced.write(&mut message);
    message
}

/// Combines the contributions of some ranks in their order.
fn combined(reduction: Reduction, round: u64, ranks: impl Iterator<Item = u32>) -> Option<Vec<u8>> {
    let contribution = |rank| written(fill(round).reduced(reduction, Contributors::one(rank), 0));
    ranks.map(contribution).reduce(|mut result, term| {
        combine(reduction.element, reduction.op, &mut result, &term);
        result
    })
}

#[test]
fn results_are_exact_in_any_order() {
    each_reduction(|reduction| {
        let ranks = reduction.ranks;
        for count in [1, ranks / 2, ranks].into_iter().filter(|count| *count > 0) {
            let expected = fill(9).reduced(reduction, Contributors::first(count), 0);
            for found in [combined(reduction, 9, 0..count), combined(reduction, 9, (0..count).rev())] {
                let found = found.unwrap();
                assert_eq!(
                    expected.check(&found, MessageId { rank: Rank(0), slot: 0 }),
                    Check::Passed,
                    "{reduction:?}, {count}"
                );
                assert_eq!(written(expected), found);
            }
        }
    });
}

#[test]
fn a_missing_contribution_is_found() {
    each_reduction(|reduction| {
        let ranks = reduction.ranks;
        if !(2..=7).contains(&ranks) {
            return;
        }
        for missing in 0..ranks {
            let differs = |round| {
                let found = combined(reduction, round, (0..ranks).filter(|rank| *rank != missing)).unwrap();
                let expected = fill(round).reduced(reduction, Contributors::first(ranks), 0);
                expected.check(&found, MessageId { rank: Rank(0), slot: 0 }) != Check::Passed
            };
            assert!((0..64).any(differs), "{reduction:?} without rank {missing}");
        }
    });
}

#[test]
fn contributions_of_repeated_iterations_are_counted() {
    each_reduction(|reduction| {
        let ranks = reduction.ranks;
        let contributors = Contributors::first(ranks).repeated_but(3, 1);
        if !(2..=7).contains(&ranks) || !reduction.is_known(contributors) {
            return;
        }
        let repeated = (0..ranks).flat_map(|rank| vec![rank; if rank == 1 { 1 } else { 3 }]);
        let found = combined(reduction, 4, repeated).unwrap();
        let expected = fill(4).reduced(reduction, contributors, 0);
        assert_eq!(
            expected.check(&found, MessageId { rank: Rank(0), slot: 0 }),
            Check::Passed,
            "{reduction:?}"
        );
    });
}

#[test]
fn every_wrong_byte_is_named_and_every_inverted_byte_differs() {
    each_reduction(|reduction| {
        let expected = fill(5).reduced(reduction, Contributors::first(reduction.ranks), 0);
        let mut message = written(expected);
        let inverted = written(expected.flipped());
        assert!(message.iter().zip(&inverted).all(|(one, other)| *one == !*other));
        for at in 0..message.len() {
            message[at] ^= 16;
            let Check::Failed(found) = expected.check(&message, MessageId { rank: Rank(3), slot: 5 }) else {
                panic!("{reduction:?}: byte {at} is not found")
            };
            assert_eq!((found.rank, found.slot, found.byte), (Rank(3), 5, at as u64));
            assert_eq!(found.expected ^ found.actual, 16);
            message[at] ^= 16;
        }
    });
}

#[test]
fn data_of_another_round_or_message_is_found() {
    each_reduction(|reduction| {
        let all = Contributors::first(reduction.ranks);
        let expected = fill(5).reduced(reduction, all, 1);
        let others = [fill(6).reduced(reduction, all, 1), fill(5).reduced(reduction, all, 2)];
        let logical = [ReductionOp::LogicalAnd, ReductionOp::LogicalOr, ReductionOp::LogicalXor]
            .contains(&reduction.op);
        // A logical result has one bit, and few elements of many ranks are distinguished.
        if !logical && reduction.ranks <= 7 {
            let found = |other| {
                expected.check(&written(other), MessageId { rank: Rank(0), slot: 0 }) != Check::Passed
            };
            assert!(others.into_iter().all(found), "{reduction:?}");
        }
    });
}
