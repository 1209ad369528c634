//! A broadcast along a binomial tree of messages: a reference for the broadcast of a library.
//!
//! It sends 0 bytes as empty messages, where a library may send nothing.

use crate::broadcast::kernel::Broadcast;
use ombx_core::{
    benchmark::{Context, payload::Slots},
    error::Result,
    pacing::mesh::Mesh,
    unit::Rank,
};

ombx_core::axis! {
    /// Implementation of the broadcast
    pub enum Algorithm: "by", IfChosen, default Library {
        /// MPI_Bcast
        Library = "library",
        /// Binomial tree of blocking messages by ombx, which also sends 0 bytes
        Tree = "tree",
    }
}

/// One rank of the tree.
pub struct Tree<M> {
    mesh: M,
    me: u32,
    ranks: u32,
    /// Root for which `parent` and `children` are valid.
    root: Rank,
    parent: Option<Rank>,
    children: Vec<Rank>,
    buffer: Vec<u8>,
    bytes: usize,
}

impl<M> Tree<M> {
    /// Sets parent and children for another root, without allocation.
    #[cold]
    #[inline(never)]
    fn turn_to(&mut self, root: Rank) {
        let Tree { me, ranks, .. } = *self;
        let at = |relative: u32| Rank((relative + root.0) % ranks);
        let relative = (me + ranks - root.0) % ranks;
        // The lowest set bit of the rank gives the parent, the bits below it give the children.
        let bit = if relative == 0 { ranks.next_power_of_two() } else { 1 << relative.trailing_zeros() };
        self.root = root;
        self.parent = (relative != 0).then(|| at(relative - bit));
        self.children.clear();
        let below = std::iter::successors(Some(bit / 2), |bit| Some(bit / 2)).take_while(|bit| *bit > 0);
        self.children.extend(below.filter(|bit| relative + bit < ranks).map(|bit| at(relative + bit)));
    }
}

impl<M: Mesh> Broadcast for Tree<M> {
    const MIN_BYTES: u64 = 0;

    fn open(cx: &Context<'_>, slots: Slots) -> Result<Tree<M>> {
        let (buffer, bytes) = (vec![0; slots.total() as usize], slots.bytes as usize);
        let (mesh, children) = (M::open(cx)?, Vec::with_capacity(u32::BITS as usize));
        let (me, ranks) = (cx.rank().0, cx.team.size());
        let mut tree = Tree { mesh, me, ranks, root: Rank(0), parent: None, children, buffer, bytes };
        tree.turn_to(Rank(0));
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

    #[test]
    fn every_rank_but_the_root_is_a_child_of_its_parent() {
        for ranks in 1..18 {
            for root in (0..ranks).map(Rank) {
                let tree = |me: u32| {
                    let (children, buffer) = (Vec::new(), Vec::new());
                    let mut tree =
                        Tree { mesh: (), me, ranks, root: Rank(0), parent: None, children, buffer, bytes: 0 };
                    tree.turn_to(root);
                    tree
                };
                let trees: Vec<Tree<()>> = (0..ranks).map(tree).collect();
                for (me, tree) in (0..).map(Rank).zip(&trees) {
                    assert_eq!(tree.parent.is_none(), me == root);
                    let is_child = |parent: Rank| trees[parent.0 as usize].children.contains(&me);
                    assert!(tree.parent.is_none_or(is_child), "{me} of {ranks} under {root}");
                }
                let children: usize = trees.iter().map(|tree| tree.children.len()).sum();
                assert_eq!(children as u32, ranks - 1);
            }
        }
    }
}
