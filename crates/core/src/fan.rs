//! Many ranks to one and one to many, each with a window in flight: written once for every link with several partners.

use std::marker::PhantomData;

use crate::{
    case::Case,
    error::Result,
    kernel::{Cx, Kernel, Method, Metric, Role, Work},
    pattern::{BUFFERS, Link},
    payload::{Check, Fill, Slots},
    unit::Rank,
};

/// Which way data flows.
pub trait Direction: 'static {
    /// What is timed.
    const METHOD: Method;
    /// Who receives.
    const RECEIVER: Role;

    /// An iteration of the one rank.
    fn one<L: Link>(link: &mut L) -> Result<()>;
    /// The same iteration of each of the many.
    fn many<L: Link>(link: &mut L) -> Result<()>;
}

/// From many to one.
pub enum In {}

impl Direction for In {
    const METHOD: Method = Method {
        timed: "on rank 0 a window of nonblocking receives from every other rank, waiting for all, and a receipt to each, \
                which sent its window and waited",
        untimed: "connections, buffers, filling and checking them",
        like: "the fan-in bandwidth of OMB 7.4, which needs several nodes",
    };
    const RECEIVER: Role = Role::Active;

    #[inline(always)]
    fn one<L: Link>(link: &mut L) -> Result<()> {
        link.pull()?;
        link.acknowledge()
    }

    #[inline(always)]
    fn many<L: Link>(link: &mut L) -> Result<()> {
        link.push()?;
        link.acknowledged()
    }
}

/// From one to many.
pub enum Out {}

impl Direction for Out {
    const METHOD: Method = Method {
        timed: "on rank 0 a window of nonblocking sends to every other rank, waiting for all, and the receipt of each, \
                which posted its receives and waited",
        untimed: "connections, buffers, filling and checking them",
        like: "the fan-out bandwidth of OMB 7.4, which needs several nodes",
    };
    const RECEIVER: Role = Role::Passive;

    #[inline(always)]
    fn one<L: Link>(link: &mut L) -> Result<()> {
        link.push()?;
        link.acknowledged()
    }

    #[inline(always)]
    fn many<L: Link>(link: &mut L) -> Result<()> {
        link.pull()?;
        link.acknowledge()
    }
}

/// A direction over a link. Its buffers hold the messages of one partner behind those of the other.
pub struct Fan<D, L> {
    link: L,
    slots: Slots,
    rank: Rank,
    role: Role,
    partners: Vec<Rank>,
    direction: PhantomData<fn() -> D>,
}

/// The pattern of messages from one rank to another: no two ranks get the same.
fn to(fill: Fill, receiver: Rank) -> Fill {
    Fill { round: fill.round ^ (u64::from(receiver.0) << 24), ..fill }
}

impl<D: Direction, L: Link> Kernel for Fan<D, L> {
    const METRIC: Metric = Metric::Bandwidth;
    const METHOD: Method = D::METHOD;

    fn work(case: &Case) -> Work {
        let messages = u64::from(case.depth) * u64::from(case.ranks - 1);
        Work { bytes: case.bytes.0 * messages, ops: messages, legs: 1 }
    }

    fn open(cx: &Cx<'_>, case: &Case) -> Result<Self> {
        let slots = match case.axis(&BUFFERS) {
            "single" => Slots::shared(case.bytes.0, case.depth),
            _ => Slots::new(case.bytes.0, case.depth),
        };
        let partners = cx.partners();
        cx.afford(2 * slots.total() * partners.len() as u64)?;
        let link = L::open(cx, slots)?;
        Ok(Fan { link, slots, rank: cx.rank(), role: cx.role, partners, direction: PhantomData })
    }

    fn fill(&mut self, fill: Fill) -> Result<()> {
        let (rank, slots, each) = (self.rank, self.slots, self.slots.total() as usize);
        for (partner, buffer) in self.partners.iter().zip(self.link.outgoing().chunks_exact_mut(each)) {
            to(fill, *partner).write(rank, slots, buffer);
        }
        for (partner, buffer) in self.partners.iter().zip(self.link.incoming().chunks_exact_mut(each)) {
            to(fill, rank).poison(*partner, slots, buffer);
        }
        Ok(())
    }

    #[inline]
    fn active(&mut self) -> Result<()> {
        D::one(&mut self.link)
    }

    #[inline]
    fn passive(&mut self) -> Result<()> {
        D::many(&mut self.link)
    }

    fn check(&mut self, fill: Fill) -> Result<Check> {
        if self.role != D::RECEIVER {
            return Ok(Check::Passed);
        }
        let (rank, slots, each) = (self.rank, self.slots, self.slots.total() as usize);
        let arrived = self.partners.iter().zip(self.link.incoming().chunks_exact(each));
        let found = arrived.map(|(partner, buffer)| to(fill, rank).check(*partner, slots, buffer, rank));
        Ok(found.fold(Check::Passed, Check::and))
    }
}
