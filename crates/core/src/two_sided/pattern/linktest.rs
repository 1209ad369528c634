//! The patterns of LinkTest.

use super::{Link, Pattern, PingPong};
use crate::{
    benchmark::{Method, Metric, Work},
    error::Result,
};

crate::parameter! {
    /// Pattern of LinkTest that loads a link
    pub enum LinkPattern: "pattern", Always, default Semidirectional {
        /// Ping-pong
        Semidirectional = "semidirectional",
        /// Two ping-pongs at once
        Bidirectional = "bidirectional",
        /// Messages one way and one acknowledgement
        Unidirectional = "unidirectional",
    }
}

/// LinkTest's semidirectional test: a ping-pong, reported as bandwidth.
pub enum Semidirectional {}

impl Pattern for Semidirectional {
    const METRIC: Metric = Metric::Bandwidth;
    const METHOD: Method = Method {
        timed: "a ping-pong of blocking messages; the figure is one message divided by half the time",
        untimed: "connections, buffers, filling and checking them",
        like: "LinkTest, semidirectional",
    };
    const BOTH_WAYS: bool = true;

    fn messages(_: u32) -> u32 {
        1
    }

    fn work(bytes: u64, depth: u64) -> Work {
        PingPong::work(bytes, depth)
    }

    #[inline(always)]
    fn active<L: Link>(link: &mut L, depth: u32) -> Result<()> {
        PingPong::active(link, depth)
    }

    #[inline(always)]
    fn passive<L: Link>(link: &mut L, depth: u32) -> Result<()> {
        PingPong::passive(link, depth)
    }
}

/// LinkTest's bidirectional test: two ping-pongs at once, one started by each rank. Two legs.
pub enum Bidirectional {}

impl Pattern for Bidirectional {
    const METRIC: Metric = Metric::Bandwidth;
    const METHOD: Method = Method {
        timed: "two ping-pongs at once, one started by each rank; the figure is two messages divided by half the time",
        untimed: "connections, buffers, filling and checking them",
        like: "LinkTest, bidirectional",
    };
    const BOTH_WAYS: bool = true;

    fn messages(_: u32) -> u32 {
        1
    }

    fn work(bytes: u64, _: u64) -> Work {
        Work { bytes: 4 * bytes, ops: 4, legs: 2 }
    }

    #[inline(always)]
    fn active<L: Link>(link: &mut L, _: u32) -> Result<()> {
        link.swap()?;
        link.swap()
    }

    #[inline(always)]
    fn passive<L: Link>(link: &mut L, _: u32) -> Result<()> {
        link.swap()?;
        link.swap()
    }
}

/// LinkTest's unidirectional test: a window of blocking messages back to back, then an acknowledgement. Each message is a leg, so that
/// the time of a leg is (t1 - t0) / n.
pub enum Unidirectional {}

impl Pattern for Unidirectional {
    const METRIC: Metric = Metric::Bandwidth;
    const METHOD: Method = Method {
        timed: "a window of blocking sends back to back and one acknowledgement; the figure is the window divided by the time, and the time of a message is that of the window divided by its messages",
        untimed: "connections, buffers, filling and checking them",
        like: "LinkTest, unidirectional",
    };
    const BOTH_WAYS: bool = false;

    fn messages(_: u32) -> u32 {
        1
    }

    fn work(bytes: u64, depth: u64) -> Work {
        Work { bytes: bytes * depth, ops: depth, legs: depth }
    }

    #[inline(always)]
    fn active<L: Link>(link: &mut L, depth: u32) -> Result<()> {
        for _ in 0..depth {
            link.send()?;
        }
        link.acknowledged()
    }

    #[inline(always)]
    fn passive<L: Link>(link: &mut L, depth: u32) -> Result<()> {
        for _ in 0..depth {
            link.receive()?;
        }
        link.acknowledge()
    }
}
