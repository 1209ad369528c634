//! Modes of a collective operation: blocking, nonblocking and persistent.

use ombx_core::{benchmark::Method, error::Result, measure::overlap};
use ombx_mpi::collective::{Call, Operation};

/// Calls of the library in one iteration.
pub trait Mode: 'static {
    /// Description of what is timed.
    const METHOD: Method;

    /// Prepares the iterations. Untimed.
    fn prepare<C: Call>(_: &mut Operation<C>) -> Result<()> {
        Ok(())
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

/// The nonblocking call and waiting for it. This is the operation alone, from which overlap is computed.
pub enum Nonblocking {}

impl Mode for Nonblocking {
    const METHOD: Method = overlap::METHOD;

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

    fn prepare<C: Call>(operation: &mut Operation<C>) -> Result<()> {
        operation.make_requests()
    }

    #[inline(always)]
    fn run<C: Call>(operation: &mut Operation<C>) -> Result<()> {
        operation.restart()
    }
}
