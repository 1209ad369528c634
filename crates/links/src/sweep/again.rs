//! Second measurements: of links that stand out, each alone, and of ordinary links for comparison.

use super::{Sweep, Task, partner_in};
use ombx_core::{
    error::Result,
    measure::plan::Plan,
    unit::{Bytes, Rank},
};
use ombx_results::verdict::{self, LOOKS, Retest, TIMES_AGAIN};

/// Minimum number of rounds before a look, and between two: hosts are compared by at least three links of each.
const ROUNDS_PER_LOOK: usize = 4;

/// Returns the rounds before which rank 0 looks for slow links. A short sweep has none, and each launch of several has none but its
/// end.
pub(super) fn looks(rounds: usize, task: &Task, plan: &Plan) -> Vec<usize> {
    let is_one = plan.launch.is_none_or(|launch| launch.of == 1);
    let is_long = rounds >= (LOOKS + 1) * ROUNDS_PER_LOOK;
    let parts = if task.retest > 0 && is_one && is_long { LOOKS } else { 0 };
    (1..=parts).map(|part| part * rounds / (LOOKS + 1)).collect()
}

impl Sweep<'_> {
    /// Measures the links again that stand out before the end, and ordinary links for comparison.
    pub(super) fn look(&mut self) -> Result<()> {
        let links = match self.team.rank() {
            Rank(0) => verdict::interim_candidates(&self.times.0, &self.hosts),
            _ => Vec::new(),
        };
        self.measure_again(links)
    }

    /// Measures suspicious links and, for comparison, ordinary links again, each alone.
    pub(super) fn retest_slowest(&mut self) -> Result<()> {
        let times = std::mem::take(&mut self.times).0;
        let links = match self.team.rank() {
            Rank(0) => verdict::retest_candidates(&times, &self.hosts, self.task.retest as usize),
            _ => Vec::new(),
        };
        self.measure_again(links)
    }

    /// Measures the links of rank 0's list again, each alone, except those that were. A link that is slow each time is measured several
    /// times, which are apart, so that no short disturbance reaches all of them. Collective over all ranks.
    fn measure_again(&mut self, links: Vec<Retest>) -> Result<()> {
        let mut links = links;
        links.retain(|Retest { from, to, bytes, is_slow }| self.again.insert((*from, *to, *bytes, *is_slow)));
        for attempt in 1..=TIMES_AGAIN {
            for link in self.team.broadcast_message(links.clone())? {
                self.measure_alone(link, attempt)?;
            }
            links = verdict::once_more(links, &self.alone.0, &self.hosts);
        }
        Ok(())
    }

    /// Measures a link while all other ranks sleep. Collective over all ranks.
    fn measure_alone(&mut self, link: Retest, attempt: usize) -> Result<()> {
        let (from, to) = (Rank(link.from), Rank(link.to));
        let value = if link.is_slow { verdict::ALONE } else { verdict::REFERENCE };
        let pair = match partner_in((from, to), self.team.rank()) {
            Some(partner) => Some((partner, self.team.pair(partner, from)?)),
            None => None,
        };
        let pair = pair.as_ref().map(|(partner, pair)| (*partner, &**pair));
        let labels = [(verdict::RETEST, value.into()), (verdict::ATTEMPT, attempt.to_string())];
        self.measure_step(pair, Bytes(link.bytes), &labels)
    }
}
