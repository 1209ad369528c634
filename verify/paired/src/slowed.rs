//! Kernels with one more load and one more branch in each operation, which a comparison must find.

use std::sync::atomic::{AtomicBool, Ordering};

use ombx_core::{
    benchmark::{
        Benchmark, Context,
        payload::{Fill, Slots},
    },
    two_sided::pattern::{Link, PatternKernel, PingPong},
};
use ombx_mpi::{Channel, Epoch};
use ombx_record::{
    error::{Error, Result},
    result::Check,
};
use ombx_rma::{
    entry::bandwidth,
    memory::Memory,
    op::{Operation, Put},
};

/// Family of these benchmarks.
pub(crate) const FAMILY: &str = "slowed";

/// Always false, which the compiler does not know.
static STOP: AtomicBool = AtomicBool::new(false);

/// Sets what is always false to a value that only the running program has: the compiler would otherwise leave the branch out.
pub(crate) fn prepare() {
    STOP.store(std::env::args_os().next().is_none(), Ordering::Relaxed);
}

#[inline(always)]
fn go_on() -> Result<()> {
    if STOP.load(Ordering::Relaxed) { stopped() } else { Ok(()) }
}

#[cold]
#[inline(never)]
fn stopped() -> Result<()> {
    Err(Error::usage("stopped"))
}

/// A channel that is slower per message.
struct SlowedChannel(Channel);

impl Link for SlowedChannel {
    #[inline(always)]
    fn send(&mut self) -> Result<()> {
        go_on()?;
        self.0.send()
    }

    #[inline(always)]
    fn receive(&mut self) -> Result<()> {
        go_on()?;
        self.0.receive()
    }

    fn push(&mut self) -> Result<()> {
        self.0.push()
    }

    fn pull(&mut self) -> Result<()> {
        self.0.pull()
    }

    fn swap(&mut self) -> Result<()> {
        self.0.swap()
    }

    fn acknowledge(&mut self) -> Result<()> {
        self.0.acknowledge()
    }

    fn acknowledged(&mut self) -> Result<()> {
        self.0.acknowledged()
    }

    fn open(cx: &Context<'_>, slots: Slots) -> Result<Self> {
        Channel::open(cx, slots).map(SlowedChannel)
    }

    fn outgoing(&mut self) -> &mut [u8] {
        self.0.outgoing()
    }

    fn incoming(&mut self) -> &mut [u8] {
        self.0.incoming()
    }
}

/// A put that is slower.
enum SlowedPut {}

impl Operation for SlowedPut {
    const CALLS: &'static [&'static str] = Put::CALLS;

    #[inline(always)]
    fn issue(epoch: &Epoch<'_>, slot: u32) -> Result<()> {
        go_on()?;
        epoch.put(slot)
    }

    fn fill(memory: &mut Memory<'_>, fill: Fill) {
        Put::fill(memory, fill);
    }

    fn check(memory: &mut Memory<'_>, fill: Fill) -> Check {
        Put::check(memory, fill)
    }
}

ombx_core::inventory::submit!(Benchmark::new::<PatternKernel<PingPong, SlowedChannel>>(
    "slowed.latency",
    "a ping-pong with one more load and branch per message"
));
ombx_core::inventory::submit!(bandwidth::<SlowedPut>(
    "slowed.put_bw",
    "puts with one more load and branch each"
));
