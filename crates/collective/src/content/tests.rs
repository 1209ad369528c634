//! Every operation played through by ranks in one process: what a plain model of MPI leaves in their buffers is what is expected.

use super::*;
use ombx_mpi::collective::{
    Allgather, Allreduce, Alltoall, Bcast, Call, Exscan, Gather, NeighborAllgather, NeighborAlltoall,
    Options, Reduce, ReduceScatter, ReduceScatterBlock, Scan, Scatter, Topology,
};

const FILL: Fill = Fill { round: 3, bytes: 12, iterations: 0 };

/// A rank's buffers.
struct Player {
    part: Part,
    from: Vec<u8>,
    to: Vec<u8>,
}

impl Player {
    fn filled(part: Part) -> Player {
        let (mut from, mut to) =
            (vec![0; part.send_bytes() as usize], vec![0; part.receive_bytes() as usize]);
        write(&outgoing(&part), FILL, &mut from);
        write(&incoming(&part, 0).unwrap(), FILL, &mut to);
        Player { part, from, to }
    }

    fn is_in_place(&self, root: u32) -> bool {
        self.part.in_place
            && match self.part.flow.in_place() {
                Some(Participants::Everyone) => true,
                Some(_) => self.part.rank == root,
                None => false,
            }
    }

    /// What it contributes: where it lies is where the standard says.
    fn contribution(&self, root: u32) -> Vec<u8> {
        let (bytes, rank) = (self.part.bytes as usize, self.part.rank as usize);
        match self.part.flow.sends.blocks {
            _ if !self.is_in_place(root) || self.part.flow.sends.who == Participants::Root => {
                self.from.clone()
            }
            Blocks::One if self.part.flow.receives.blocks == Blocks::Ranks => {
                self.to[rank * bytes..(rank + 1) * bytes].to_vec()
            }
            _ => self.to.clone(),
        }
    }
}

fn add(sum: &mut [u8], term: &[u8], width: usize) {
    for (sum, term) in sum.chunks_exact_mut(width).zip(term.chunks_exact(width)) {
        let mut carry = 0;
        for (s, t) in sum.iter_mut().zip(term) {
            let total = u16::from(*s) + u16::from(*t) + carry;
            (*s, carry) = (total as u8, total >> 8);
        }
    }
}

/// One iteration of an operation with a root, as the standard describes it.
fn play(players: &mut [Player], root: u32) {
    let sent: Vec<Vec<u8>> = players.iter().map(|player| player.contribution(root)).collect();
    let all: Vec<Part> = players.iter().map(|player| player.part.clone()).collect();
    for player in players {
        let Part { rank, ranks, bytes, ref neighbours, .. } = player.part;
        let flow = player.part.flow;
        let has = match flow.receives.who {
            Participants::Everyone => {
                flow.in_place() == Some(Participants::Everyone)
                    || !player.is_in_place(root)
                    || flow.sends.who != Participants::Root
            }
            Participants::Root => rank == root,
            Participants::Others => rank != root,
        };
        if !has {
            continue;
        }
        let (rank, size) = (rank as usize, bytes as usize);
        let block = |from: u32, at: usize| sent[from as usize][at * size..(at + 1) * size].to_vec();
        let summed = |ranks: std::ops::Range<u32>| {
            let mut sum = vec![0; sent[0].len()];
            ranks.for_each(|from| add(&mut sum, &sent[from as usize], player.part.width()));
            sum
        };
        let arrived: Vec<(usize, Vec<u8>)> = match (flow.reduces, flow.sends.blocks, flow.receives.blocks) {
            (ReductionScope::All, _, Blocks::Portion) => {
                let portion = player.part.portion(rank as u32);
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
        for (at, bytes) in arrived {
            player.to[at * size..at * size + bytes.len()].copy_from_slice(&bytes);
        }
    }
}

/// In every number of ranks, with every root, for some iterations: what stands there is what is expected, and one flipped
/// bit is found wherever it is. Returns the number of buffers that were looked at.
fn holds<C: Call>(in_place: bool, topology: Topology) -> usize {
    let mut looked = 0;
    for (ranks, bytes) in [(1, 12), (2, 12), (3, 12), (4, 7), (5, 12), (3, 2)] {
        let roots = (0..ranks).map(|root| Root::Fixed(Rank(root))).chain([Root::Rotating]);
        for root in roots.take(if C::FLOW.is_rooted() { 9 } else { 1 }) {
            let choices = Options { bytes, root, in_place, topology };
            let mut players: Vec<Player> =
                (0..ranks).map(|rank| Player::filled(choices.part::<C>(rank, ranks))).collect();
            for iterations in 1..=7 {
                let this = match root {
                    Root::Fixed(root) => root.0,
                    Root::Rotating => (iterations as u32 - 1) % ranks,
                };
                play(&mut players, this);
                for player in &mut players {
                    let Some(expected) = incoming(&player.part, iterations) else {
                        assert!(in_place && iterations > 1, "after one iteration all is known");
                        continue;
                    };
                    let name = format!("{}, {:?}, after {iterations}", C::NAME, player.part);
                    let rank = Rank(player.part.rank);
                    assert_eq!(check(&expected, FILL, &player.to, rank), Check::Passed, "{name}");
                    let covered: u64 = expected.iter().map(|s| s.range.end - s.range.start).sum();
                    let known = covered == player.part.receive_bytes()
                        || in_place
                        || C::FLOW.reduces == ReductionScope::Exclusive;
                    assert!(known, "{name}: every byte is checked");
                    for Stretch { range, .. } in &expected {
                        for at in range.clone() {
                            player.to[at as usize] ^= 4;
                            assert_ne!(
                                check(&expected, FILL, &player.to, rank),
                                Check::Passed,
                                "{name}, byte {at}"
                            );
                            player.to[at as usize] ^= 4;
                        }
                    }
                    looked += 1;
                }
            }
        }
    }
    looked
}

#[test]
fn what_is_expected_is_what_the_standard_says() {
    let grid = Topology::Cartesian;
    for in_place in [false, true] {
        let looked = [
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
        assert!(looked.iter().all(|looked| *looked > 0));
    }
    holds::<Bcast>(false, grid);
    for topology in [grid, Topology::Graph] {
        holds::<NeighborAllgather>(false, topology);
        holds::<NeighborAlltoall>(false, topology);
    }
}

/// Where nothing has arrived no byte looks as if it had.
#[test]
fn nothing_stands_there_before_it_arrives() {
    fn fresh<C: Call>() {
        let choices =
            Options { bytes: 16, root: Root::default(), in_place: false, topology: Topology::Graph };
        for rank in 0..4 {
            let player = Player::filled(choices.part::<C>(rank, 4));
            let expected = incoming(&player.part, 1).unwrap();
            let mut arrived = player.to.clone();
            write(&expected, FILL, &mut arrived);
            let covered = expected.iter().flat_map(|s| s.range.clone());
            assert!(covered.map(|at| at as usize).all(|at| arrived[at] != player.to[at]), "{}", C::NAME);
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
