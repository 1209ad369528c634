//! Broadcast operations of any fabric, and the kernels of a single broadcast and of broadcasts back to back.

use std::{iter::successors, marker::PhantomData};

use ombx_core::{
    benchmark::{
        BusTraffic, Case, Context, Kernel, Method, Metric, Root, Work, memory,
        payload::{Fill, Slots},
        reduction::message_type,
    },
    error::Result,
    measure::{
        engine::OneThread,
        open_kernel::{self, OpenKernel},
        row::{self, KernelFactory, KernelKind},
        session::Session,
    },
    pacing::{mesh::Mesh, one_way::one_way_ns},
    result::Check,
    unit::Rank,
};
use ombx_mpi::collective::DataFlow;

/// One rank's endpoint of a broadcast of one message.
pub trait Broadcast: Sized + 'static {
    /// Minimum size that is really sent. `MPI_Bcast` of 0 bytes may return at once.
    const MIN_BYTES: u64 = 1;

    /// Opens the endpoint of this rank; `slots` is one message. Collective, untimed.
    fn open(cx: &Context<'_>, slots: Slots) -> Result<Self>;
    /// Broadcasts the message of `root`.
    fn broadcast(&mut self, root: Rank) -> Result<()>;
    /// Returns the buffer that the message is sent from or received in.
    fn buffer(&mut self) -> &mut [u8];
}

/// `MPI_Bcast`.
impl Broadcast for ombx_mpi::Broadcast {
    fn open(cx: &Context<'_>, slots: Slots) -> Result<Self> {
        ombx_mpi::Broadcast::open(cx, slots)
    }

    #[inline(always)]
    fn broadcast(&mut self, root: Rank) -> Result<()> {
        self.broadcast(root)
    }

    fn buffer(&mut self) -> &mut [u8] {
        self.buffer()
    }
}

/// A broadcast, with what is needed to fill and check its buffer.
pub(crate) struct Endpoint<B> {
    pub(crate) operation: B,
    slots: Slots,
    rank: Rank,
    /// Rank that has the message at first.
    source: Rank,
}

/// Returns the work of one broadcast.
pub(crate) fn work(case: &Case) -> Work {
    Work { bytes: case.bytes.0, ops: 1, legs: 1 }
}

impl<B: Broadcast> Endpoint<B> {
    /// Opens a broadcast of `bytes` bytes, in elements of the case's type, that `source` has at first.
    pub(crate) fn open(cx: &Context<'_>, case: &Case, bytes: u64, source: Rank) -> Result<Endpoint<B>> {
        memory::only_warm(cx, "broadcasts that ombx makes of messages: choose --by library")?;
        let element = message_type(case).of_size(bytes);
        let slots = Slots { element, ..Slots::new(bytes, 1) };
        cx.afford(slots.total())?;
        Ok(Endpoint { operation: B::open(cx, slots)?, slots, rank: cx.rank(), source })
    }

    /// Fills the buffer: on the source with its pattern, elsewhere with bytes that differ from it.
    pub(crate) fn fill(&mut self, fill: Fill) {
        let buffer = self.operation.buffer();
        if self.rank == self.source {
            fill.write(self.source, self.slots, buffer)
        } else {
            fill.poison(self.source, self.slots, buffer)
        }
    }

    pub(crate) fn check(&mut self, fill: Fill) -> Check {
        fill.check(self.source, self.slots, self.operation.buffer(), self.rank)
    }
}

/// Kernel whose iteration is one broadcast. Ranks are synchronised before it. If the root `ROTATES`, the next rank is the root of
/// the next iteration.
pub struct SingleBroadcast<B, const ROTATES: bool = false> {
    endpoint: Endpoint<B>,
    ranks: u32,
    /// Root of the next iteration.
    root: Rank,
}

impl<B: Broadcast, const ROTATES: bool> Kernel for SingleBroadcast<B, ROTATES> {
    const METRIC: Metric = Metric::Latency;
    const METHOD: Method = Method {
        timed: "one broadcast after the ranks were synchronised; with a window, from the first rank's \
                start to the last rank's end",
        untimed: "synchronising the ranks; buffers, filling and checking them",
        like: "ReproMPI's broadcast; with a barrier, osu_bcast",
    };

    fn work(case: &Case) -> Work {
        work(case)
    }

    fn bus_traffic(case: &Case) -> Option<BusTraffic> {
        DataFlow::BCAST.bus_traffic(case.bytes.0, case.ranks)
    }

    fn open(cx: &Context<'_>, case: &Case) -> Result<Self> {
        let (choice, ranks) = (case.get::<Root>(), cx.team.size());
        cx.agree(choice.is_among(ranks))?;
        let root = choice.first();
        Ok(SingleBroadcast { endpoint: Endpoint::open(cx, case, case.bytes.0, root)?, ranks, root })
    }

    fn fill(&mut self, fill: Fill) -> Result<()> {
        // Only the source has the pattern, so it must be the first root.
        self.root = self.endpoint.source;
        self.endpoint.fill(fill);
        Ok(())
    }

    #[inline(always)]
    fn active(&mut self) -> Result<()> {
        self.endpoint.operation.broadcast(self.root)?;
        if ROTATES {
            let next = self.root.0 + 1;
            self.root = Rank(if next == self.ranks { 0 } else { next });
        }
        Ok(())
    }

    fn check(&mut self, fill: Fill) -> Result<Check> {
        Ok(self.endpoint.check(fill))
    }
}

/// Number of times that each rank is root per sample.
const ROTATIONS: u64 = 4;

/// Kernel whose iterations are broadcasts from rank 0, 1, .., as in goptest's `BroadcastRound`.
pub struct BackToBack<B> {
    endpoint: Endpoint<B>,
    root: u32,
    ranks: u32,
}

impl<B: Broadcast> Kernel for BackToBack<B> {
    const METRIC: Metric = Metric::Latency;
    const METHOD: Method = Method {
        timed: "broadcasts back to back, each from the next root, without synchronisation; the figure is \
                the time per broadcast",
        untimed: "buffers, filling and checking them",
        like: "goptest's BroadcastRound; broadcasts overlap, so the figure is too low",
    };

    fn work(case: &Case) -> Work {
        work(case)
    }

    fn open(cx: &Context<'_>, case: &Case) -> Result<Self> {
        Ok(BackToBack {
            endpoint: Endpoint::open(cx, case, case.bytes.0, Rank(0))?,
            root: 0,
            ranks: cx.team.size(),
        })
    }

    fn fill(&mut self, fill: Fill) -> Result<()> {
        // Only rank 0 has the pattern, so it must be the first root.
        self.root = 0;
        self.endpoint.fill(fill);
        Ok(())
    }

    #[inline(always)]
    fn active(&mut self) -> Result<()> {
        let root = Rank(self.root);
        self.root = (self.root + 1) % self.ranks;
        self.endpoint.operation.broadcast(root)
    }

    fn check(&mut self, fill: Fill) -> Result<Check> {
        Ok(self.endpoint.check(fill))
    }
}

/// Runs a kernel of broadcasts back to back. Rows are marked when their time is below an empty message one way.
pub fn run_back_to_back<K: Kernel, M: Mesh>(session: &mut Session<'_>) -> Result<()> {
    let floor_ns = one_way_ns::<M>(session.team, session.clock)?;
    let batch = ROTATIONS * u64::from(session.team.size());
    let open = |cx: &Context<'_>, case: &Case| -> Result<Box<dyn OpenKernel + '_>> {
        Ok(Box::new(OneThread::chained(open_kernel::open::<K>(cx, case)?, Some(batch))))
    };
    row::every_case(session, &KernelFactory { floor_ns, ..KernelFactory::new(KernelKind::new::<K>(), &open) })
}

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
pub trait TreeShape: 'static {
    /// Returns the parent of a rank other than the root.
    fn parent(rank: u32) -> u32;
    /// Returns the children of a rank in the order of its messages. The root has the most.
    fn children(rank: u32, ranks: u32) -> impl Iterator<Item = u32>;
}

/// The root sends n - 1 messages.
pub enum Linear {}

/// A message needs at most ceil(log2 n) hops. A rank sends to its largest subtree first.
pub enum Binomial {}

impl TreeShape for Linear {
    fn parent(_: u32) -> u32 {
        0
    }

    fn children(rank: u32, ranks: u32) -> impl Iterator<Item = u32> {
        let end = if rank == 0 { ranks } else { 1 };
        1..end
    }
}

impl TreeShape for Binomial {
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

impl<S: TreeShape, M> Tree<S, M> {
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

impl<S: TreeShape, M: Mesh> Broadcast for Tree<S, M> {
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
    fn hops<S: TreeShape>() -> Vec<u32> {
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
