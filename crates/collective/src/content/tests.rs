//! Expected content compared with a simple model of MPI, in which one process executes the operations of all ranks.

use super::*;
use ombx_core::benchmark::{
    ElementType, Groups, Imbalance, Neighbourhood, ParameterValue, ReductionOp, Topology,
    reduction::check_combination,
};
use ombx_mpi::collective::{
    Allgather, Allgatherv, Allreduce, Alltoall, Alltoallv, Bcast, Call, Exscan, Gather, Gatherv,
    NeighborAllgather, NeighborAllgatherv, NeighborAlltoall, NeighborAlltoallv, Options, Reduce,
    ReduceScatter, ReduceScatterBlock, Requests, Scan, Scatter, Scatterv,
};
use ombx_testkit::combine;

const FILL: Fill = Fill { round: 3, bytes: 12, iterations: 0 };

/// One rank and its buffers.
struct ModelRank {
    part: Part,
    from: Vec<u8>,
    to: Vec<u8>,
}

impl ModelRank {
    fn filled(part: Part) -> ModelRank {
        let (mut from, mut to) =
            (vec![0; part.send_bytes() as usize], vec![0; part.receive_bytes() as usize]);
        write(&outgoing(&part), FILL, &mut from);
        write(&incoming(&part, 0).unwrap(), FILL, &mut to);
        ModelRank { part, from, to }
    }

    fn is_in_place(&self, root: u32) -> bool {
        self.part.in_place
            && match self.part.flow.in_place() {
                Some(Participants::Everyone) => true,
                Some(_) => self.part.rank == root,
                None => false,
            }
    }

    /// Returns what the rank sends, from the buffer that the standard specifies.
    fn contribution(&self, root: u32) -> Vec<u8> {
        match self.part.flow.sends.blocks {
            _ if !self.is_in_place(root) || self.part.flow.sends.who == Participants::Root => {
                self.from.clone()
            }
            Blocks::One if self.part.flow.receives.blocks == Blocks::Ranks => {
                let (all, rank) =
                    (positions(&self.part, self.part.flow.receives.blocks, &[]), self.part.rank);
                self.to[all[rank as usize].clone()].to_vec()
            }
            _ => self.to.clone(),
        }
    }
}

/// Returns the bytes of the block that one rank sends to another: lengths grow in equal steps.
fn length(part: &Part, from: u32, to: u32) -> usize {
    let block = match (part.flow.sends.blocks, part.flow.receives.blocks) {
        (Blocks::One, Blocks::One | Blocks::Portion) => return part.bytes as usize,
        (Blocks::One, _) => from,
        (_, Blocks::One) => to,
        _ => (from + to) % part.ranks,
    };
    let width = part.element.width();
    let range = part.imbalance.range(part.bytes / width * u64::from(part.ranks), block, part.ranks);
    if part.flow.vector { ((range.end - range.start) * width) as usize } else { part.bytes as usize }
}

/// Returns where the blocks that a rank sends or receives are in its buffer.
fn positions(part: &Part, blocks: Blocks, neighbours: &[Option<u32>]) -> Vec<Range<usize>> {
    // Where a length depends on one rank only, or on both in the same way, the direction does not matter.
    let gathers = part.flow.sends.blocks == Blocks::One;
    let with =
        |other: u32| if gathers { length(part, other, part.rank) } else { length(part, part.rank, other) };
    let lengths: Vec<usize> = match blocks {
        Blocks::One => vec![length(part, part.rank, part.rank)],
        Blocks::Ranks => (0..part.ranks).map(with).collect(),
        _ => neighbours.iter().map(|rank| rank.map_or(part.bytes as usize, with)).collect(),
    };
    let ends = lengths.iter().scan(0, |end, length| {
        *end += length;
        Some(*end)
    });
    ends.zip(&lengths).map(|(end, length)| end - length..end).collect()
}

/// Executes one iteration with the given root, as the standard describes it.
fn execute(models: &mut [ModelRank], root: u32) {
    let sent: Vec<Vec<u8>> = models.iter().map(|model| model.contribution(root)).collect();
    let all: Vec<Part> = models.iter().map(|model| model.part.clone()).collect();
    for model in models {
        let Part { rank, ranks, bytes, ref neighbours, .. } = model.part;
        let flow = model.part.flow;
        let has = match flow.receives.who {
            Participants::Everyone => {
                flow.in_place() == Some(Participants::Everyone)
                    || !model.is_in_place(root)
                    || flow.sends.who != Participants::Root
            }
            Participants::Root => rank == root,
            Participants::Others => rank != root,
        };
        if !has {
            continue;
        }
        let (rank, size) = (rank as usize, bytes as usize);
        let block = |from: u32, at: usize| {
            let part = &all[from as usize];
            let positions = positions(part, part.flow.sends.blocks, &part.neighbours.destinations);
            sent[from as usize][positions[at].clone()].to_vec()
        };
        let summed = |ranks: std::ops::Range<u32>| {
            let sent = ranks.map(|from| sent[from as usize].clone());
            let combined = sent.reduce(|mut result, term| {
                combine(model.part.element, model.part.op, &mut result, &term);
                result
            });
            combined.expect("at least one rank contributes")
        };
        let arrived: Vec<(usize, Vec<u8>)> = match (flow.reduces, flow.sends.blocks, flow.receives.blocks) {
            (ReductionScope::All, _, Blocks::Portion) => {
                let portion = model.part.portion(rank as u32);
                vec![(0, summed(0..ranks)[portion.start as usize..portion.end as usize].to_vec())]
            }
            (ReductionScope::All, Blocks::Ranks, _) => {
                vec![(0, summed(0..ranks)[rank * size..(rank + 1) * size].to_vec())]
            }
            (ReductionScope::All, ..) => vec![(0, summed(0..ranks))],
            (ReductionScope::Inclusive, ..) => vec![(0, summed(0..rank as u32 + 1))],
            (ReductionScope::Exclusive, ..) if rank == 0 => vec![],
            (ReductionScope::Exclusive, ..) => vec![(0, summed(0..rank as u32))],
            (_, Blocks::Ranks, Blocks::One) => vec![(0, block(root, rank))],
            (_, Blocks::One, Blocks::One) => vec![(0, block(root, 0))],
            (_, Blocks::One, Blocks::Ranks) => {
                (0..ranks).map(|from| (from as usize, block(from, 0))).collect()
            }
            (_, Blocks::Ranks, Blocks::Ranks) => {
                (0..ranks).map(|from| (from as usize, block(from, rank))).collect()
            }
            (_, sends, Blocks::Neighbours) => {
                let from = |(at, from): (usize, &Option<u32>)| {
                    let from = (*from)?;
                    let to_me = |d: &Option<u32>| *d == Some(rank as u32);
                    let slot = all[from as usize].neighbours.destinations.iter().position(to_me).unwrap();
                    Some((at, block(from, if sends == Blocks::One { 0 } else { slot })))
                };
                neighbours.sources.iter().enumerate().filter_map(from).collect()
            }
            other => panic!("{other:?}"),
        };
        let to = positions(&model.part, flow.receives.blocks, &model.part.neighbours.sources);
        for (at, bytes) in arrived {
            let start = to.get(at).map_or(0, |range| range.start);
            model.to[start..start + bytes.len()].copy_from_slice(&bytes);
        }
    }
}

/// Compares the buffers of the model with the expected content, for several numbers of ranks, roots and iterations.
///
/// Also flips one bit of each byte, which the check must find. Returns the number of compared buffers.
fn holds<C: Call>(in_place: bool, topology: Topology) -> usize {
    holds_for::<C>(in_place, topology, (ElementType::Uint32, ReductionOp::Sum), (12, Imbalance::NONE))
}

/// As [`holds`], for unequal blocks.
fn holds_unequal<C: Call>(in_place: bool, topology: Topology) {
    // What is reduced needs numbers.
    let elements = if C::FLOW.reduces() {
        &[ElementType::Uint32][..]
    } else {
        &[ElementType::Byte, ElementType::Uint32]
    };
    for percent in ["0%", "50%", "100%"] {
        for element in elements {
            let bytes = (24, Imbalance::parse(percent).unwrap());
            holds_for::<C>(in_place, topology, (*element, ReductionOp::Sum), bytes);
        }
    }
}

/// As [`holds`], for reductions of elements.
fn holds_for<C: Call>(
    in_place: bool,
    topology: Topology,
    (element, op): (ElementType, ReductionOp),
    (bytes, imbalance): (u64, Imbalance),
) -> usize {
    let mut compared = 0;
    for ranks in 1..=5 {
        let roots = (0..ranks).map(|root| Root::Fixed(Rank(root))).chain([Root::Rotating]);
        for root in roots.take(if C::FLOW.is_rooted() { 9 } else { 1 }) {
            let groups = Groups::ONE;
            let choices = Options {
                bytes,
                blocks: None,
                imbalance,
                root,
                in_place,
                topology,
                neighbourhood: Neighbourhood::DEFAULT,
                groups,
                element,
                op,
                requests: Requests::None,
            };
            let mut models: Vec<ModelRank> =
                (0..ranks).map(|rank| ModelRank::filled(choices.part::<C>(rank, ranks))).collect();
            for iterations in 1..=7 {
                let this = match root {
                    Root::Fixed(root) => root.0,
                    Root::Rotating => (iterations as u32 - 1) % ranks,
                };
                if models.iter().any(|model| incoming(&model.part, iterations).is_none()) {
                    assert!(in_place && iterations > 1, "the content is known after one iteration");
                    break;
                }
                execute(&mut models, this);
                for model in &mut models {
                    let expected = incoming(&model.part, iterations).expect("the content is known");
                    let name = format!("{}, {:?}, after {iterations}", C::NAME, model.part);
                    let (rank, fill) = (Rank(model.part.rank), Fill { iterations, ..FILL });
                    assert_eq!(check(&model.part, fill, &model.to, rank), Check::Passed, "{name}");
                    let covered: u64 = expected.iter().map(|s| s.range.end - s.range.start).sum();
                    let known = covered == model.part.receive_bytes()
                        || in_place
                        || C::FLOW.reduces == ReductionScope::Exclusive;
                    assert!(known, "{name}: every byte is checked");
                    for ExpectedRange { range, .. } in &expected {
                        for at in range.clone() {
                            model.to[at as usize] ^= 4;
                            assert_ne!(
                                check(&model.part, fill, &model.to, rank),
                                Check::Passed,
                                "{name}, byte {at}"
                            );
                            model.to[at as usize] ^= 4;
                        }
                    }
                    compared += 1;
                }
            }
        }
    }
    compared
}

#[test]
fn the_expected_content_follows_the_standard() {
    let grid = Topology::Cartesian;
    for in_place in [false, true] {
        let compared = [
            holds::<Allgather>(in_place, grid),
            holds::<Allreduce>(in_place, grid),
            holds::<Alltoall>(in_place, grid),
            holds::<Exscan>(in_place, grid),
            holds::<Gather>(in_place, grid),
            holds::<Reduce>(in_place, grid),
            holds::<ReduceScatter>(in_place, grid),
            holds::<ReduceScatterBlock>(in_place, grid),
            holds::<Scan>(in_place, grid),
            holds::<Scatter>(in_place, grid),
        ];
        assert!(compared.iter().all(|compared| *compared > 0));
    }
    holds::<Bcast>(false, grid);
    for topology in [grid, Topology::Graph] {
        holds::<NeighborAllgather>(false, topology);
        holds::<NeighborAlltoall>(false, topology);
    }
}

#[test]
fn unequal_blocks_follow_the_standard() {
    let grid = Topology::Cartesian;
    for in_place in [false, true] {
        holds_unequal::<Allgatherv>(in_place, grid);
        holds_unequal::<Alltoallv>(in_place, grid);
        holds_unequal::<Gatherv>(in_place, grid);
        holds_unequal::<ReduceScatter>(in_place, grid);
        holds_unequal::<Scatterv>(in_place, grid);
    }
    for topology in [grid, Topology::Graph] {
        holds_unequal::<NeighborAllgatherv>(false, topology);
        holds_unequal::<NeighborAlltoallv>(false, topology);
    }
}

#[test]
fn reductions_of_every_type_and_operation_follow_the_standard() {
    for element in ElementType::ALL {
        for op in ReductionOp::ALL.iter().filter(|op| check_combination(*element, **op).is_ok()) {
            for in_place in [false, true] {
                let (grid, reduction, bytes) = (Topology::Cartesian, (*element, *op), (48, Imbalance::NONE));
                holds_for::<Allreduce>(in_place, grid, reduction, bytes);
                holds_for::<Exscan>(in_place, grid, reduction, bytes);
                holds_for::<Reduce>(in_place, grid, reduction, bytes);
                holds_for::<ReduceScatter>(in_place, grid, reduction, bytes);
                holds_for::<ReduceScatterBlock>(in_place, grid, reduction, bytes);
                holds_for::<Scan>(in_place, grid, reduction, bytes);
            }
        }
    }
}

/// Checks that every byte differs from its expected value before the operation.
#[test]
fn the_initial_content_differs_in_every_byte() {
    fn fresh<C: Call>() {
        let choices = Options {
            bytes: 16,
            blocks: None,
            imbalance: Imbalance::NONE,
            root: Root::Fixed(Rank(0)),
            in_place: false,
            topology: Topology::Graph,
            neighbourhood: Neighbourhood::DEFAULT,
            groups: Groups::ONE,
            element: ElementType::Float,
            op: ReductionOp::Sum,
            requests: Requests::None,
        };
        for rank in 0..4 {
            let model = ModelRank::filled(choices.part::<C>(rank, 4));
            let expected = incoming(&model.part, 1).unwrap();
            let mut arrived = model.to.clone();
            write(&expected, FILL, &mut arrived);
            let covered = expected.iter().flat_map(|s| s.range.clone());
            assert!(covered.map(|at| at as usize).all(|at| arrived[at] != model.to[at]), "{}", C::NAME);
        }
    }
    fresh::<Allgather>();
    fresh::<Allreduce>();
    fresh::<Alltoall>();
    fresh::<Bcast>();
    fresh::<Gather>();
    fresh::<Scan>();
    fresh::<NeighborAlltoall>();
}
