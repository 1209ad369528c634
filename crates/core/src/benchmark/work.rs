//! What an iteration moves, what its headline is, and what each rank does.

/// What a benchmark's headline is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    /// Time of one leg, in microseconds.
    Latency,
    /// Bytes by time, in MB/s (10^6), and messages per second.
    Bandwidth,
}

impl Metric {
    /// Lower-case name, as in results.
    pub const fn name(self) -> &'static str {
        match self {
            Metric::Latency => "latency",
            Metric::Bandwidth => "bandwidth",
        }
    }

    /// Unit of the headline.
    pub const fn unit(self) -> &'static str {
        match self {
            Metric::Latency => "us",
            Metric::Bandwidth => "MB/s",
        }
    }
}

/// What one iteration does. Figures are derived from this: no benchmark halves a time itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work {
    /// Payload bytes moved in one iteration, over all its operations, both directions and all pairs.
    pub bytes: u64,
    /// Operations (messages) of one iteration.
    pub ops: u64,
    /// Equal legs, one after the other: 2 in a ping-pong.
    pub legs: u64,
}

/// What a rank does in a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It is timed.
    Active,
    /// It answers.
    Passive,
}

/// The method of a kernel in three sentences, from which the catalogue of benchmarks is generated.
#[derive(Debug, Clone, Copy)]
pub struct Method {
    /// What is between two readings of the clock.
    pub timed: &'static str,
    /// What is deliberately outside.
    pub untimed: &'static str,
    /// Its counterpart in OMB, IMB or LinkTest, and how it differs.
    pub like: &'static str,
}
