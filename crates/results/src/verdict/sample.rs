//! Which rows of a sweep are kept. All are, up to a number. Beyond it a random sample of the links is kept, in which every rank has
//! about as many links, and for each rank its slowest links outside the sample. Times of all links of a kind follow from the sample;
//! links that are slow by themselves are among the slowest of their ranks. What is kept depends on the rows, not on their order.

use std::collections::{BTreeMap, HashMap};

use super::{Hosts, Link};

/// Maximum number of rows of one message size that are kept, unless there are more than `ROWS_PER_RANK` for each rank.
pub const MOST_ROWS: usize = 1 << 20;
/// Number of rows per rank that a sample may have.
const ROWS_PER_RANK: usize = 32;
/// Number of slowest links that are kept of each rank and kind.
const SLOWEST_PER_RANK: usize = 8;

/// Returns whether a link is in a sample of one link in 2^`level`. Both directions of a link are, or none. A sample has all links of
/// those with a higher level.
pub(super) fn is_sampled(level: u32, from: u32, to: u32) -> bool {
    // The finaliser of SplitMix64 (Steele et al., OOPSLA 2014).
    let mut x = (u64::from(from.min(to)) << 32 | u64::from(from.max(to))).wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (x ^ (x >> 31)).trailing_zeros() >= level
}

/// Returns the number of rows that may be kept of a sweep over these hosts.
pub(super) fn most_rows(most: usize, hosts: &Hosts) -> usize {
    most.max(ROWS_PER_RANK * hosts.ranks() as usize)
}

/// Link outside the sample. Traffic that is not directed has a row for each of its directions.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Outlier {
    from: u32,
    to: u32,
    /// Time from `from` to `to`, and back.
    ns: [Option<f32>; 2],
    /// Whether ranks waited for a CPU in these rows.
    waited: [bool; 2],
}

impl Outlier {
    fn of(row: Link, waited: bool) -> Outlier {
        Outlier { from: row.from, to: row.to, ns: [Some(row.ns), None], waited: [waited, false] }
    }

    fn rows(self) -> impl Iterator<Item = (Link, bool)> {
        let Outlier { from, to, ns, waited } = self;
        let [forth, back] = ns;
        let forth = forth.map(|ns| (Link { from, to, ns }, waited[0]));
        let back = back.map(|ns| (Link { from: to, to: from, ns }, waited[1]));
        forth.into_iter().chain(back)
    }

    /// Returns the time by which links are compared: the sum of the rows.
    fn time(&self) -> f32 {
        self.ns.iter().flatten().sum()
    }
}

/// Slowest links of each rank outside the sample.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Outliers {
    /// By rank, and by the distance of the other rank.
    slowest: HashMap<(u32, usize), Vec<Outlier>>,
    /// Links of which one direction has arrived.
    pending: HashMap<(u32, u32), Outlier>,
}

impl Outliers {
    /// Takes a row of a link outside the sample. Keeps the link if it is among the slowest of one of its ranks.
    pub(super) fn offer(&mut self, row: Link, waited: bool, directed: bool, hosts: &Hosts) {
        if !row.ns.is_finite() {
            return;
        }
        if directed {
            return self.keep(Outlier::of(row, waited), hosts);
        }
        let ends = (row.from.min(row.to), row.from.max(row.to));
        match self.pending.remove(&ends) {
            Some(first) if first.from == row.to => {
                let [forth, _] = first.ns;
                let ns = [forth, Some(row.ns)];
                self.keep(Outlier { ns, waited: [first.waited[0], waited], ..first }, hosts);
            }
            _ => _ = self.pending.insert(ends, Outlier::of(row, waited)),
        }
    }

    fn keep(&mut self, link: Outlier, hosts: &Hosts) {
        let distance = hosts.distance(link.from, link.to);
        for rank in [link.from, link.to] {
            let slowest = self.slowest.entry((rank, distance)).or_default();
            if slowest.len() < SLOWEST_PER_RANK {
                slowest.push(link);
                continue;
            }
            // Of equally slow links, those of the lowest ranks are kept.
            let order = |a: &Outlier, b: &Outlier| {
                a.time().total_cmp(&b.time()).then_with(|| (b.from, b.to).cmp(&(a.from, a.to)))
            };
            if let Some(fastest) = slowest.iter_mut().min_by(|a, b| order(a, b))
                && order(fastest, &link).is_lt()
            {
                *fastest = link;
            }
        }
    }

    /// Returns the rows of the links that are kept, in the order of their ends, and whether ranks waited in them.
    pub(super) fn rows(&self) -> Vec<(Link, bool)> {
        let links = self.slowest.values().flatten().chain(self.pending.values());
        let rows = links.flat_map(|link| link.rows());
        let by_ends: BTreeMap<(u32, u32), (Link, bool)> =
            rows.map(|(row, waited)| ((row.from, row.to), (row, waited))).collect();
        by_ends.into_values().collect()
    }
}

#[cfg(test)]
mod tests;
