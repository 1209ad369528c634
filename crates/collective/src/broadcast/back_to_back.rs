//! Broadcasts back to back from rotating roots. They overlap, so their time is lower than that of one broadcast.

use ombx_core::{
    benchmark::{
        Case, Context, Kernel, Method, Metric, Work,
        payload::{Check, Fill},
    },
    error::Result,
    measure::{
        engine::{self, OneThread, OpenKernel},
        row::{self, KernelFactory, KernelKind},
        session::Session,
    },
    pacing::mesh::{Mesh, one_way_ns},
    unit::Rank,
};

use crate::broadcast::kernel::{Broadcast, Endpoint, work};

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
        timed: "broadcasts back to back, each from the next root, without synchronisation; the figure is the time per broadcast",
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
        Ok(Box::new(OneThread::chained(engine::open::<K>(cx, case)?, Some(batch))))
    };
    row::every_case(session, &KernelFactory { floor_ns, ..KernelFactory::new(KernelKind::new::<K>(), &open) })
}
