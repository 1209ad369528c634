//! `p2p.halo`: every rank of a grid exchanges messages with its neighbours, as stencils exchange their halos.

use ombx_core::{
    benchmark::{
        Benchmark, Case, Context, Kernel, Layout, Method, Metric, ParameterValue, Work,
        derived::{self, by_datatype},
        memory::{BufferMemory, Cache, Copies, Movable},
        payload::{Check, Datatype, Fill, Slots},
        reduction::MESSAGE_TYPE,
    },
    error::Result,
    unit::Rank,
};
use ombx_mpi::{Dimensions, HaloChannel};

use crate::{neighbours::to_side, run_cached};

const METHOD: Method = Method {
    timed: "on every rank of a periodic grid, nonblocking receives from the neighbours in each dimension, nonblocking sends to them, \
            and the wait for all",
    untimed: "buffers, filling and checking them",
    like: "IMB-P2P Stencil2D and Stencil3D; none in OMB",
};

/// An exchange with the neighbours of a rank.
struct Halo {
    channel: HaloChannel,
    slots: Slots,
    rank: Rank,
    neighbours: Vec<Rank>,
}

impl Kernel for Halo {
    const METRIC: Metric = Metric::Latency;
    const METHOD: Method = METHOD;

    fn work(case: &Case) -> Work {
        // Every rank has the same number of neighbours.
        let sides = case.get::<Dimensions>().neighbours(Rank(0), case.ranks).len() as u64;
        let messages = sides * u64::from(case.ranks);
        Work { bytes: case.bytes.0 * messages, ops: messages, legs: 1 }
    }

    fn open(cx: &Context<'_>, case: &Case) -> Result<Self> {
        let neighbours = case.get::<Dimensions>().neighbours(cx.rank(), cx.team.size());
        let slots = derived::typed(Slots::new(case.bytes.0, 1), case)?.copied(cx, neighbours.len() as u64)?;
        Ok(Halo { channel: HaloChannel::open(cx, &neighbours, slots)?, slots, rank: cx.rank(), neighbours })
    }

    fn fill(&mut self, fill: Fill) -> Result<()> {
        let (slots, rank, each) = (self.slots, self.rank, self.slots.total() as usize);
        for (side, buffer) in self.channel.outgoing().chunks_exact_mut(each).enumerate() {
            to_side(fill, side).write(rank, slots, buffer);
        }
        let arriving = self.channel.incoming().chunks_exact_mut(each).zip(&self.neighbours);
        for (side, (buffer, neighbour)) in arriving.enumerate() {
            to_side(fill, side ^ 1).poison(*neighbour, slots, buffer);
        }
        Ok(())
    }

    #[inline(always)]
    fn active(&mut self) -> Result<()> {
        self.channel.exchange()
    }

    #[inline(always)]
    fn passive(&mut self) -> Result<()> {
        self.channel.exchange()
    }

    fn check(&mut self, fill: Fill) -> Result<Check> {
        let (slots, rank) = (self.slots, self.rank);
        let arrived = self.channel.incoming().chunks_exact(slots.total() as usize).zip(&self.neighbours);
        let found = arrived.enumerate().map(|(side, (buffer, neighbour))| {
            to_side(fill, side ^ 1).check(*neighbour, slots, buffer, rank)
        });
        Ok(found.fold(Check::Passed, Check::and))
    }
}

impl Movable for Halo {
    fn copies(&self) -> Copies {
        self.slots.copies
    }

    #[inline(always)]
    fn move_to(&mut self, offset: usize) {
        self.channel.move_to(offset);
    }
}

ombx_core::inventory::submit! {
    Benchmark::custom(
        "p2p.halo",
        "every rank of a periodic grid exchanges messages with its neighbours in each dimension",
        Metric::Latency,
        METHOD,
        |session| by_datatype(session, run_cached::<Halo>),
    )
    .iterates(&["MPI_Irecv", "MPI_Isend", "MPI_Waitall"], "t of the slowest rank")
    .sizes("0,1..4M").layout(Layout::Everyone { least: 2 }).with(&[Dimensions::PARAMETER, Cache::PARAMETER, Datatype::PARAMETER, MESSAGE_TYPE, BufferMemory::PARAMETER])
    .made_of(derived::block_bytes, derived::check)
}
