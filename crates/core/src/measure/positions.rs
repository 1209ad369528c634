//! Rows for single alignments: one pass takes the samples at all positions of a list, because messages of the engine between them would move
//! the queues by an unknown number.

use std::time::Duration;

use ombx_host::environment::Counters;
use ombx_record::{
    error::Result,
    result::{Measurement, Samples},
    unit::Rank,
};

use crate::{
    benchmark::{ALIGNMENT, Position},
    measure::{
        alignment::{POSITIONS, Part},
        collect::{Pass, collect, extend},
        rounds::{OpenCase, Sampling, WarmUp},
        stop,
    },
    team::Shift,
};

/// Returns the parts of a pass: one for each position, in ascending order. Each has at least `least` samples after one that does not count.
///
/// A part has as many iterations as a ring of every power of two up to [`POSITIONS`] needs to be where it was, whatever number of messages
/// an iteration sends: 256, or fewer if it is known to send `messages`, which `batch` iterations repeat.
fn parts(positions: &[u64], least: u64, [batch, messages]: [u64; 2], neighbours: [Rank; 2]) -> Vec<Part> {
    let twos = (batch.max(1) * messages.max(1)).trailing_zeros().min(POSITIONS.trailing_zeros());
    let all = (least + 1).next_multiple_of(POSITIONS >> twos);
    let [to, from] = neighbours;
    // An exchange has at least one message: the first position is one after the start.
    let before = [None].into_iter().chain(positions.iter().map(|at| Some(*at)));
    let distances =
        positions.iter().zip(before).map(|(at, before)| before.map_or(at + 1, |before| at - before));
    let part = |messages: u64| Part {
        shift: Some(Shift { to, sent: messages, from, received: messages }),
        dropped: 1,
        samples: all - 1,
    };
    distances.map(part).collect()
}

impl OpenCase<'_, '_> {
    /// Returns the samples of one position. The first row of a pass takes those of all. Collective.
    pub(crate) fn sample_at(
        &mut self,
        Position { at, pass: key }: Position,
        messages: u64,
        warm_up: &WarmUp,
    ) -> Result<Sampling> {
        let mut iterations = 0;
        if !self.session.passes.contains_key(&key) {
            let pass = self.pass(messages, warm_up)?;
            iterations = pass.iterations;
            self.session.passes.insert(key.clone(), pass);
        }
        let Some(pass) = self.session.passes.get_mut(&key) else { return Ok(Sampling::default()) };
        let samples = pass.samples.remove(&at).unwrap_or_default();
        let facts = self.session.clock.facts();
        let mut summary = Measurement::summarise(&samples, self.legs, facts);
        if let Some(summary) = &mut summary {
            Measurement::take_percentiles(summary, [&*samples, &[]], self.legs, facts);
        }
        let Pass { spent, wall, batch, counters, .. } = *pass;
        let (one_stamp_each, precision) = (self.kernel.batch().is_some(), self.effort.precision());
        Ok(Sampling {
            samples,
            summary,
            iterations,
            spent,
            wall,
            batch,
            one_stamp_each,
            precision,
            counters: Some(counters),
            ..Sampling::default()
        })
    }

    /// Takes the samples at all positions.
    fn pass(&mut self, messages: u64, warm_up: &WarmUp) -> Result<Pass> {
        let team = self.session.team;
        let positions: Vec<u64> =
            self.session.plan.chosen.texts(&ALIGNMENT).iter().filter_map(|text| text.parse().ok()).collect();
        let (batch, first) = self.first_round(warm_up);
        let sample_ns = warm_up.sample_ns / warm_up.batch as f64 * batch as f64;
        let each = stop::LONGEST_ROUND / positions.len().max(1) as u32;
        let least = team.broadcast_value(first.min(stop::samples_within(each, sample_ns)).max(1))?;
        let parts = parts(&positions, least, [batch, messages], self.alignment.neighbours());
        let before = Counters::now();
        let (round, wall) = self.round(batch, &parts)?;
        let counters = Counters::now().since(before);
        let mut all = Vec::new();
        extend(&mut all, batch, None, collect(team, self.aggregation, round)?);
        let samples = positions
            .iter()
            .enumerate()
            .map(|(number, at)| (*at, part_of(&all, number, positions.len())))
            .collect();
        let total: u64 = parts.iter().map(Part::all).sum();
        let wall = Duration::from_nanos(wall);
        let spent = wall / positions.len().max(1) as u32;
        Ok(Pass { samples, iterations: total * batch, spent, wall, batch, counters })
    }
}

/// Returns one of several equally long parts of samples.
fn part_of(all: &[Samples], number: usize, count: usize) -> Vec<Samples> {
    let part = |samples: &Samples| {
        let length = samples.elapsed_ns.len() / count;
        Samples {
            elapsed_ns: samples.elapsed_ns[number * length..(number + 1) * length].to_vec(),
            ..samples.clone()
        }
    };
    all.iter().map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_visits_each_position_whatever_an_iteration_sends() {
        let positions = [0, 1, 5, 300];
        for (batch, known, sent) in [(1, 1, 1), (1, 64, 64), (3, 1, 7), (4, 1, 3), (1, 1, 64)] {
            let parts = parts(&positions, 20, [batch, known], [Rank(1); 2]);
            let mut at = u64::MAX;
            for (part, wanted) in parts.iter().zip(positions) {
                let shift = part.shift.unwrap();
                assert_eq!((shift.sent, shift.to), (shift.received, Rank(1)));
                assert!(part.samples >= 20 && part.samples < 20 + 256);
                at = at.wrapping_add(shift.sent);
                for ring in [2, 32, 64, 256] {
                    assert_eq!(at % ring, wanted % ring, "{batch} {known} {sent}");
                }
                at += part.all() * batch * sent;
            }
        }
    }
}
