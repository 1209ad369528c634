//! Broadcasts along trees of blocking messages: references for the broadcast of a library.
//!
//! They send 0 bytes as empty messages, where a library may send nothing.

use std::{iter::successors, marker::PhantomData};

use crate::broadcast::kernel::Broadcast;
use ombx_core::{
    benchmark::{Context, payload::Slots},
    error::Result,
    pacing::mesh::Mesh,
    unit::Rank,
};

ombx_core::parameter! {
    /// Implementation of the broadcast
    pub enum Algorithm: "by", IfChosen, default Library {
        /// MPI_Bcast
        Library = "library",
        /// Blocking messages by ombx from the root to every rank, one after the other; also of 0 bytes
        Linear = "linear",
        /// Blocking messages by ombx along a binomial tree; also of 0 bytes
        Binomial = "binomial",
    }
}

/// Shape of a tree. Ranks are counted from the root, which is 0.
pub trait Shape: 'static {
    /// Returns the parent of a rank other than the root.
    fn parent(rank: u32) -> u32;
    /// Returns the children of a rank in the order of its messages. The root has the most.
    fn children(rank: u32, ranks: u32) -> impl Iterator<Item = u32>;
}

/// The root sends n - 1 messages.
pub enum Linear {}

/// A message needs at most ceil(log2 n) hops. A rank sends to its largest subtree first.
pub enum Binomial {}

impl Shape for Linear {
    fn parent(_: u32) -> u32 {
        0
    }

    fn children(rank: u32, ranks: u32) -> impl Iterator<Item = u32> {
        let end = if rank == 0 { ranks } else { 1 };
        1..end
    }
}

impl Shape for Binomial {
    /// The lowest set bit of a rank gives the parent, the bits below it give the children.
    fn parent(rank: u32) -> u32 {
        rank & (rank - 1)
    }

    fn children(rank: u32, ranks: u32) -> impl Iterator<Item = u32> {
        let bit = if rank == 0 { ranks.next_power_of_two() } else { 1 << rank.trailing_zeros() };
        let below = successors(Some(bit / 2), |bit| Some(bit / 2)).take_while(|bit| *bit > 0);
        below.map(move |bit| rank + bit).filter(move |child| *child < ranks)
    }
}

/// One rank of a tree of shape `S`.
pub struct Tree<S, M> {
    mesh: M,
    me: u32,
    ranks: u32,
    /// Root for which `parent` and `children` are valid.
    root: Rank,
    parent: Option<Rank>,
    children: Vec<Rank>,
    buffer: Vec<u8>,
    bytes: usize,
    shape: PhantomData<fn() -> S>,
}

impl<S: Shape, M> Tree<S, M> {
    fn new(mesh: M, me: u32, ranks: u32, slots: Slots) -> Tree<S, M> {
        let (buffer, bytes) = (vec![0; slots.total() as usize], slots.bytes as usize);
        let children = Vec::with_capacity(S::children(0, ranks).count());
        let mut tree = Tree {
            mesh,
            me,
            ranks,
            root: Rank(0),
            parent: None,
            children,
            buffer,
            bytes,
            shape: PhantomData,
        };
        tree.turn_to(Rank(0));
        tree
    }

    /// Sets parent and children for another root, without allocation.
    #[cold]
    #[inline(never)]
    fn turn_to(&mut self, root: Rank) {
        let Tree { me, ranks, .. } = *self;
        let at = |relative: u32| Rank((relative + root.0) % ranks);
        let relative = (me + ranks - root.0) % ranks;
        self.root = root;
        self.parent = (relative != 0).then(|| at(S::parent(relative)));
        self.children.clear();
        self.children.extend(S::children(relative, ranks).map(at));
    }
}

impl<S: Shape, M: Mesh> Broadcast for Tree<S, M> {
    const MIN_BYTES: u64 = 0;

    fn open(cx: &Context<'_>, slots: Slots) -> Result<Tree<S, M>> {
        let mut tree = Tree::new(M::open(cx)?, cx.rank().0, cx.team.size(), slots);
        tree.mesh.describe(cx, &mut tree.buffer[..tree.bytes]);
        Ok(tree)
    }

    #[inline(always)]
    fn broadcast(&mut self, root: Rank) -> Result<()> {
        if root != self.root {
            self.turn_to(root);
        }
        let message = &mut self.buffer[..self.bytes];
        if let Some(parent) = self.parent {
            self.mesh.receive(parent, message)?;
        }
        self.children.iter().try_for_each(|child| self.mesh.send(*child, message))
    }

    fn buffer(&mut self) -> &mut [u8] {
        &mut self.buffer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the trees of all ranks and roots. Returns the largest number of hops by number of ranks, from 1.
    fn hops<S: Shape>() -> Vec<u32> {
        let deepest = |ranks: u32| {
            let mut deepest = 0;
            for root in (0..ranks).map(Rank) {
                let tree = |me| {
                    let mut tree = Tree::<S, ()>::new((), me, ranks, Slots::new(0, 1));
                    let capacity = tree.children.capacity();
                    tree.turn_to(root);
                    assert_eq!(tree.children.capacity(), capacity, "no allocation");
                    tree
                };
                let trees: Vec<Tree<S, ()>> = (0..ranks).map(tree).collect();
                for (me, tree) in (0..).map(Rank).zip(&trees) {
                    assert_eq!(tree.parent.is_none(), me == root);
                    let is_child = |parent: Rank| trees[parent.0 as usize].children.contains(&me);
                    assert!(tree.parent.is_none_or(is_child), "{me} of {ranks} under {root}");
                    let up = successors(tree.parent, |rank| trees[rank.0 as usize].parent);
                    deepest = deepest.max(up.count() as u32);
                }
                let children: usize = trees.iter().map(|tree| tree.children.len()).sum();
                assert_eq!(children as u32, ranks - 1);
            }
            deepest
        };
        (1..18).map(deepest).collect()
    }

    #[test]
    fn a_linear_broadcast_has_one_hop() {
        let hops = hops::<Linear>();
        assert_eq!(hops[0], 0);
        assert!(hops[1..].iter().all(|hops| *hops == 1), "{hops:?}");
    }

    #[test]
    fn a_binomial_broadcast_has_as_many_hops_as_a_rank_has_bits() {
        for (ranks, hops) in (1..).zip(hops::<Binomial>()) {
            // The largest number of set bits of a rank below n. It is at most ceil(log2 n).
            let bits = (0..ranks).map(u32::count_ones).max();
            assert_eq!(Some(hops), bits, "{ranks} ranks");
            assert!(2u32.pow(hops) <= ranks, "{ranks} ranks");
        }
    }
}
