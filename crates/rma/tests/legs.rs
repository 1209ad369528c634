//! Tests of the legs of every synchronisation, on a probe window that logs its calls. Each call takes a known virtual time.

use std::{cell::RefCell, marker::PhantomData, sync::Mutex};

use ombx_core::{
    benchmark::{Benchmark, Case, Chosen, Context, Depth, Kernel, Method, Metric, Role, Work},
    error::Result,
    measure::plan::{Effort, Plan},
    result::Measurement,
    unit::{Rank, parse_sizes},
};
use ombx_mpi::{Epochs, LockKind};
use ombx_rma::{
    kernel::{Bandwidth, BidirectionalBandwidth, Latency, Mode},
    sync::{Fence, Flush, FlushLocal, Lock, LockAll, LockExclusive, Pscw, Synchronization},
};
use ombx_testkit::{SimMessage, ThreadTeam, measure};

/// Virtual time of an operation, in nanoseconds.
const OP: u64 = 1000;
/// Virtual time of a signal between ranks, in nanoseconds.
const SIGNAL: u64 = 100;

/// A window that logs calls instead of making them.
struct Probe {
    team: ThreadTeam,
    peer: Rank,
    log: RefCell<Vec<&'static str>>,
}

/// An open epoch of the probe.
struct Inside<'w>(&'w Probe);

impl Probe {
    fn call(&self, name: &'static str) {
        self.log.borrow_mut().push(name);
    }

    fn signal(&self) {
        self.team
            .send_message(self.peer, SimMessage { bytes: vec![], arrives_at: self.team.time.now() + SIGNAL });
    }

    fn await_signal(&self) -> Result<()> {
        let arrives_at = self.team.receive_message(self.peer)?.arrives_at;
        self.team.time.advance(arrives_at.saturating_sub(self.team.time.now()));
        Ok(())
    }
}

impl Inside<'_> {
    fn op(&self) -> Result<()> {
        self.0.call("op");
        self.0.team.time.advance(OP);
        Ok(())
    }
}

impl Epochs for Probe {
    type Epoch<'w> = Inside<'w>;

    fn fence(&self) -> Result<()> {
        self.call("fence");
        self.signal();
        self.await_signal()
    }

    fn last_fence(&self) -> Result<()> {
        Ok(())
    }

    fn after_fence(&self, issue: impl FnOnce(&Inside<'_>) -> Result<()>) -> Result<()> {
        self.fence()?;
        issue(&Inside(self))
    }

    fn start_complete(&self, issue: impl FnOnce(&Inside<'_>) -> Result<()>) -> Result<()> {
        self.call("start");
        self.await_signal()?;
        issue(&Inside(self))?;
        self.call("complete");
        self.signal();
        Ok(())
    }

    fn post_wait(&self, meanwhile: impl FnOnce() -> Result<()>) -> Result<()> {
        self.call("post");
        self.signal();
        meanwhile()?;
        self.call("wait");
        self.await_signal()
    }

    fn lock_unlock(&self, kind: LockKind, issue: impl FnOnce(&Inside<'_>) -> Result<()>) -> Result<()> {
        self.call(if kind == LockKind::Shared { "lock" } else { "lock_exclusive" });
        issue(&Inside(self))?;
        self.call("unlock");
        Ok(())
    }

    fn lock_all_unlock_all(&self, issue: impl FnOnce(&Inside<'_>) -> Result<()>) -> Result<()> {
        self.call("lock_all");
        issue(&Inside(self))?;
        self.call("unlock_all");
        Ok(())
    }

    fn hold(&self) -> Result<()> {
        Ok(())
    }

    fn release(&self) -> Result<()> {
        Ok(())
    }

    fn then_flush(&self, issue: impl FnOnce(&Inside<'_>) -> Result<()>) -> Result<()> {
        issue(&Inside(self))?;
        self.call("flush");
        Ok(())
    }

    fn then_flush_local(&self, issue: impl FnOnce(&Inside<'_>) -> Result<()>) -> Result<()> {
        issue(&Inside(self))?;
        self.call("flush_local");
        Ok(())
    }
}

/// The calls of a mode on a probe: the same as `ombx_rma::mode` makes on a real window.
trait Calls: Mode {
    fn active<S: Synchronization>(probe: &Probe, depth: u32) -> Result<()>;
    fn passive<S: Synchronization>(probe: &Probe, depth: u32) -> Result<()>;
}

/// Issues `depth` operations.
fn all(inside: &Inside<'_>, depth: u32) -> Result<()> {
    (0..depth).try_for_each(|_| inside.op())
}

impl Calls for Latency {
    fn active<S: Synchronization>(probe: &Probe, _: u32) -> Result<()> {
        S::ping(probe, |inside| inside.op())
    }

    fn passive<S: Synchronization>(probe: &Probe, _: u32) -> Result<()> {
        S::pong(probe, |inside| inside.op())
    }
}

impl Calls for Bandwidth {
    fn active<S: Synchronization>(probe: &Probe, depth: u32) -> Result<()> {
        S::access(probe, |inside| all(inside, depth))
    }

    fn passive<S: Synchronization>(probe: &Probe, _: u32) -> Result<()> {
        S::expose(probe)
    }
}

impl Calls for BidirectionalBandwidth {
    fn active<S: Synchronization>(probe: &Probe, depth: u32) -> Result<()> {
        S::both(probe, |inside| all(inside, depth))
    }

    fn passive<S: Synchronization>(probe: &Probe, depth: u32) -> Result<()> {
        S::both(probe, |inside| all(inside, depth))
    }
}

struct Legs<S, M> {
    probe: Probe,
    role: Role,
    depth: u32,
    types: PhantomData<fn() -> (S, M)>,
}

/// The calls of the last iteration on the timed rank and on the other rank.
static LAST: Mutex<[Vec<&str>; 2]> = Mutex::new([Vec::new(), Vec::new()]);
/// Lock of the test that uses `LAST`.
static TURN: Mutex<()> = Mutex::new(());

impl<S: Synchronization, M: Calls> Kernel for Legs<S, M> {
    const METRIC: Metric = M::METRIC;
    const METHOD: Method = M::METHOD;

    fn work(case: &Case) -> Work {
        M::work::<S>(case)
    }

    fn open(cx: &Context<'_>, case: &Case) -> Result<Self> {
        let probe =
            Probe { team: cx.fabric::<ThreadTeam>()?.clone(), peer: cx.peer, log: RefCell::default() };
        Ok(Legs { probe, role: cx.role, depth: case.depth(), types: PhantomData })
    }

    fn active(&mut self) -> Result<()> {
        self.probe.log.borrow_mut().clear();
        <M as Calls>::active::<S>(&self.probe, self.depth)
    }

    fn passive(&mut self) -> Result<()> {
        self.probe.log.borrow_mut().clear();
        <M as Calls>::passive::<S>(&self.probe, self.depth)
    }

    fn close(self) -> Result<()> {
        let at = if self.role == Role::Active { 0 } else { 1 };
        LAST.lock().unwrap()[at] = self.probe.log.take();
        Ok(())
    }
}

/// Measures a kernel, and returns the row and the calls of an iteration on each rank.
fn legs(bench: &'static Benchmark) -> (Measurement, [String; 2]) {
    let _turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let plan = Plan {
        sizes: Some(parse_sizes("1000").unwrap()),
        chosen: Chosen::default().with(Depth(4)),
        effort: Effort::Fixed { iterations: 60, warmup: 3 },
        ..Plan::default()
    };
    let row = measure(2, bench, &plan).unwrap().rows.remove(0);
    let calls = LAST.lock().unwrap().clone();
    (row, calls.map(|calls| calls.join(" ")))
}

macro_rules! latency {
    ($test:ident, $sync:ty, $ns:expr, $origin:literal, $target:literal) => {
        #[test]
        fn $test() {
            static BENCH: Benchmark = Benchmark::new::<Legs<$sync, Latency>>("probe.latency", "x");
            let (row, calls) = legs(&BENCH);
            assert_eq!(calls, [$origin, $target]);
            assert_eq!(row.summary.unwrap().median, $ns as f64);
        }
    };
}

// Active target: an iteration has two operations and two signals. The figure is half of that.
latency!(pscw, Pscw, OP + SIGNAL, "start op complete post wait", "post wait start op complete");
// A fence ends at once on the rank that enters it last, and a signal later on the other rank. So each leg takes an operation
// and a signal.
latency!(fence, Fence, OP + SIGNAL, "fence op fence fence", "fence fence op fence");
// Passive target: the figure is the time of the origin's access.
latency!(lock, Lock, OP, "lock op unlock", "");
latency!(lock_exclusive, LockExclusive, OP, "lock_exclusive op unlock", "");
latency!(lock_all, LockAll, OP, "lock_all op unlock_all", "");
latency!(flush, Flush, OP, "op flush", "");
latency!(flush_local, FlushLocal, OP, "op flush_local", "");

#[test]
fn many_operations_are_one_leg() {
    static ACTIVE: Benchmark = Benchmark::new::<Legs<Pscw, Bandwidth>>("probe.bw", "x").streaming();
    let (row, calls) = legs(&ACTIVE);
    assert_eq!(calls, ["start op op op op complete", "post wait"]);
    // The target posts again after the origin's completion has arrived: an iteration has a signal in each direction.
    let iteration = (4 * OP + 2 * SIGNAL) as f64;
    assert_eq!(row.summary.as_ref().unwrap().median, iteration);
    assert!((row.mb_per_s().unwrap().median - 4.0 * 1000.0 / iteration * 1e3).abs() < 1e-9);

    static PASSIVE: Benchmark = Benchmark::new::<Legs<Flush, Bandwidth>>("probe.bw", "x").streaming();
    let (row, calls) = legs(&PASSIVE);
    assert_eq!(calls, ["op op op op flush", ""]);
    assert!((row.mb_per_s().unwrap().median - 1000.0 / OP as f64 * 1e3).abs() < 1e-9);
}

#[test]
fn bidirectional_bandwidth_counts_both_directions() {
    static PSCW: Benchmark =
        Benchmark::new::<Legs<Pscw, BidirectionalBandwidth>>("probe.bibw", "x").streaming();
    static FENCE: Benchmark =
        Benchmark::new::<Legs<Fence, BidirectionalBandwidth>>("probe.bibw", "x").streaming();
    for (bench, each) in
        [(&PSCW, "post start op op op op complete wait"), (&FENCE, "fence op op op op fence")]
    {
        let (row, calls) = legs(bench);
        assert_eq!(calls, [each, each]);
        let iteration = (4 * OP + 2 * SIGNAL) as f64;
        assert_eq!(row.summary.as_ref().unwrap().median, iteration);
        assert!((row.mb_per_s().unwrap().median - 2.0 * 4.0 * 1000.0 / iteration * 1e3).abs() < 1e-9);
    }
}
