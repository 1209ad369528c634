//! Modes: how an operation is completed.

use crate::overlap;
use ombx_core::{benchmark::work::Method, error::Result};
use ombx_mpi::collective::{Call, Operation};

/// What an iteration calls.
pub trait Mode: 'static {
    /// What is timed.
    const METHOD: Method;

    /// Before the first iteration, untimed.
    fn prepare<C: Call>(_: &mut Operation<C>) -> Result<()> {
        Ok(())
    }
    /// An iteration.
    fn run<C: Call>(operation: &mut Operation<C>) -> Result<()>;
}

const UNTIMED: &str =
    "what paces the ranks between iterations; buffers, communicators of neighbours, filling and checking";

/// The blocking call.
pub enum Blocking {}

impl Mode for Blocking {
    const METHOD: Method = Method {
        timed: "one blocking call on every rank; the figure is that of the slowest rank of each iteration",
        untimed: UNTIMED,
        like: "the OSU program of the same name, which prints the mean of the ranks; IMB-MPI1",
    };

    #[inline(always)]
    fn run<C: Call>(operation: &mut Operation<C>) -> Result<()> {
        operation.call()
    }
}

/// The nonblocking call, waited for at once: the pure operation, beside which overlap is measured.
pub enum Nonblocking {}

impl Mode for Nonblocking {
    const METHOD: Method = overlap::METHOD;

    #[inline(always)]
    fn run<C: Call>(operation: &mut Operation<C>) -> Result<()> {
        operation.overlapped(0, || ())
    }
}

/// A request that is made once and started each time.
pub enum Persistent {}

impl Mode for Persistent {
    const METHOD: Method = Method {
        timed: "starting a persistent request and waiting for it, on every rank; the figure is that of the slowest rank",
        untimed: "making the request; what paces the ranks between iterations; buffers, filling and checking",
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
