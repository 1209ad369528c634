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

    /// Measures the links of rank 0's list again, each alone and several times, except those that were. The times of a link are apart, so
    /// that no short disturbance reaches all of them. Collective over all ranks.
    fn measure_again(&mut self, links: Vec<Retest>) -> Result<()> {
        let (team, me) = (self.team, self.team.rank());
        let mut list: Vec<u8> = Vec::new();
        for Retest { from, to, bytes, is_slow } in links {
            if self.again.insert((from, to, bytes, is_slow)) {
                let numbers = [from.into(), to.into(), bytes, is_slow.into()];
                list.extend(numbers.iter().flat_map(|number: &u64| number.to_le_bytes()));
            }
        }
        list.resize(team.broadcast_value(list.len() as u64)? as usize, 0);
        team.broadcast(&mut list)?;
        let attempts = (1..=TIMES_AGAIN).flat_map(|attempt| list.chunks_exact(32).map(move |link| (attempt, link)));
        for (attempt, link) in attempts {
            let number = |at: usize| link[8 * at..8 * at + 8].try_into().map_or(0, u64::from_le_bytes);
            let (from, to) = (Rank(number(0) as u32), Rank(number(1) as u32));
            let value = if number(3) == 1 { verdict::ALONE } else { verdict::REFERENCE };
            let pair = match partner_in((from, to), me) {
                Some(partner) => Some((partner, team.pair(partner, from)?)),
                None => None,
            };
            let pair = pair.as_ref().map(|(partner, pair)| (*partner, &**pair));
            let labels = [(verdict::RETEST, value.into()), (verdict::ATTEMPT, attempt.to_string())];
            self.measure_step(pair, Bytes(number(2)), &labels)?;
        }
        Ok(())
    }
}
