//! Limits of verdicts on links.

/// Probability of a false verdict on a healthy machine with normally distributed times.
pub(super) const LEVEL: f64 = 0.01;
/// Smallest ratio with a verdict.
pub(super) const MIN_FACTOR: f64 = 1.15;
/// Smallest ratio that confirms a slow link when it is measured again alone.
pub(super) const MIN_RETEST_FACTOR: f64 = 1.1;
/// The same limit in standard deviations of the shortest of the rows that measure a link again.
pub(super) const MIN_RETEST_SPREADS: f64 = 4.0;
/// Smallest standard deviation of logarithms: repeated runs differ by as much.
pub(super) const MIN_SPREAD: f64 = 0.01;
/// Minimum number of links of a kind for tests of single links, and for the verdict that nothing is slow.
pub(super) const MIN_LINKS: usize = 10;
/// Minimum number of hosts, ranks or groups for tests of hosts, ranks or groups. Each needs one partner fewer.
pub(super) const MIN_UNITS: usize = 4;
/// Probability with which a slow part is not named although it has the factor that is printed.
pub(super) const MISSED: f64 = 0.05;
