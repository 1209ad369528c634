//! The one-way time of an empty message over a mesh.

use ombx_record::{error::Result, stats::Summary, unit::Rank};

use crate::{
    benchmark::Context, clock::Clock, measure::timed_loop::round_trips, pacing::mesh::Mesh, team::Team,
};

/// Round trips per sample.
const BATCH: u64 = 4;
/// Samples per block.
const SAMPLES: usize = 5;
/// Maximum number of blocks per rank; the first one warms up.
const MAX_BLOCKS: u32 = 8;
/// Time limit per rank.
const MAX_NS: u64 = 5_000_000;

/// Returns on rank 0 half the median round trip with the farthest rank, in nanoseconds; `None` on other ranks. Collective.
pub fn one_way_ns<M: Mesh>(team: &dyn Team, clock: &Clock) -> Result<Option<f64>> {
    let mut mesh = M::open(&Context::new(team))?;
    let mut farthest: Option<f64> = None;
    team.barrier()?;
    for other in (1..team.size()).map(Rank) {
        if team.rank() == Rank(0) {
            farthest = farthest.into_iter().chain(measure(&mut mesh, clock, other)?).reduce(f64::max);
        } else if team.rank() == other {
            answer(&mut mesh)?;
        }
    }
    Ok(farthest)
}

/// Measures the one-way time to another rank, which calls [`answer`].
fn measure<M: Mesh>(mesh: &mut M, clock: &Clock, other: Rank) -> Result<Option<f64>> {
    let (mut times, start) = (Vec::new(), clock.mark());
    for block in 0..MAX_BLOCKS {
        let mut stamps = [0; SAMPLES + 1];
        round_trips(mesh, other, clock, BATCH, &mut stamps)?;
        if block > 0 {
            times.extend(stamps.windows(2).map(|w| clock.nanos(w[0], w[1]) as f64 / BATCH as f64));
        }
        let last = block + 1 == MAX_BLOCKS || block > 0 && start.elapsed_ns() > MAX_NS;
        mesh.send(other, &[u8::from(last)])?;
        if last {
            break;
        }
    }
    Ok(Summary::new(&times).map(|summary| summary.median / 2.0))
}

/// Answers the round trips of rank 0 until it announces the last block.
fn answer<M: Mesh>(mesh: &mut M) -> Result<()> {
    let mut last = [0];
    while last == [0] {
        for _ in 0..BATCH * SAMPLES as u64 {
            mesh.receive(Rank(0), &mut [])?;
            mesh.send(Rank(0), &[])?;
        }
        mesh.receive(Rank(0), &mut last)?;
    }
    Ok(())
}
