//! Modes of a collective operation: blocking, nonblocking and persistent.

use ombx_core::{
    benchmark::{Context, Method},
    error::Result,
    measure::overlap,
};
use ombx_mpi::collective::{Call, Operation, Requests};

/// Calls of the library in one iteration.
pub trait Mode: 'static {
    /// Description of what is timed.
    const METHOD: Method;
    /// Requests that the operation needs.
    const REQUESTS: Requests = Requests::None;

    /// Prepares the iterations. Untimed.
    fn prepare<C: Call>(_: &Context<'_>, _: &mut Operation<C>) -> Result<()> {
        Ok(())
    }
    /// Makes the copies of the buffers at an offset those of the next iteration.
    #[inline(always)]
    fn move_to<C: Call>(operation: &mut Operation<C>, offset: usize) {
        operation.move_to(offset);
    }
    /// Runs an iteration.
    fn run<C: Call>(operation: &mut Operation<C>) -> Result<()>;
}

const UNTIMED: &str =
    "synchronising the ranks between iterations; buffers, communicators of neighbours, filling and checking";

/// The blocking call.
pub enum Blocking {}

impl Mode for Blocking {
    const METHOD: Method = Method {
        timed: "one blocking call on every rank; the figure is the time of the slowest rank of each iteration",
        untimed: UNTIMED,
        like: "the OSU program of the same name, which prints the mean of the ranks; IMB-MPI1",
    };

    #[inline(always)]
    fn run<C: Call>(operation: &mut Operation<C>) -> Result<()> {
        operation.call()
    }
}

/// The blocking call on memory of the host, after a copy from a device and before a copy to it.
pub enum Staged {}

impl Mode for Staged {
    const METHOD: Method = Method {
        timed: "on every rank, a copy of what it sends from the device to the host, one blocking call, and a copy of what it has received \
                to the device; the figure is the time of the slowest rank of each iteration",
        ..Blocking::METHOD
    };

    fn prepare<C: Call>(cx: &Context<'_>, operation: &mut Operation<C>) -> Result<()> {
        operation.stage(cx)
    }

    #[inline(always)]
    fn run<C: Call>(operation: &mut Operation<C>) -> Result<()> {
        operation.staged_call()
    }
}

/// The nonblocking call and waiting for it. This is the operation alone, from which overlap is computed.
pub enum Nonblocking {}

impl Mode for Nonblocking {
    const METHOD: Method = overlap::METHOD;

    fn prepare<C: Call>(cx: &Context<'_>, _: &mut Operation<C>) -> Result<()> {
        Operation::<C>::may_start(cx)
    }

    #[inline(always)]
    fn run<C: Call>(operation: &mut Operation<C>) -> Result<()> {
        operation.overlapped(0, || ())
    }
}

/// A persistent request, which each iteration starts and waits for.
pub enum Persistent {}

impl Mode for Persistent {
    const METHOD: Method = Method {
        timed: "starting a persistent request and waiting for it, on every rank; the figure is the time of the slowest rank",
        untimed: "creating the request; synchronising the ranks between iterations; buffers, filling and checking",
        like: "osu_*_persistent, which prints the mean of the ranks",
    };
    const REQUESTS: Requests = Requests::Persistent;

    fn prepare<C: Call>(cx: &Context<'_>, operation: &mut Operation<C>) -> Result<()> {
        operation.make_requests(cx)
    }

    #[inline(always)]
    fn move_to<C: Call>(operation: &mut Operation<C>, offset: usize) {
        operation.move_to(offset);
        operation.move_request(offset);
    }

    #[inline(always)]
    fn run<C: Call>(operation: &mut Operation<C>) -> Result<()> {
        operation.restart()
    }
}
