//! Properties of the clock with which rows were measured.

/// Properties of a clock, which are part of every result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockProperties {
    /// `tsc`, `monotonic` or `manual`.
    pub source: &'static str,
    /// Step by which readings grow, in nanoseconds, rounded up. It can be smaller than the cost of a reading.
    pub resolution_ns: u64,
    /// Cost of one reading, in nanoseconds, rounded up.
    pub overhead_ns: u64,
}
