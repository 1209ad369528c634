//! One benchmark on the ranks of a team that it needs.

use std::collections::BTreeMap;

use crate::{
    benchmark::{Benchmark, Choice, Layout, Threading},
    error::{Error, Kind, Result},
    measure::{
        plan::{Plan, RowName},
        session::Session,
        sink::Sink,
    },
    result::{Mark, Measurement, Outcome},
    system::clock::Clock,
    team::{Place, Team},
    trust,
    unit::Rank,
};

/// The ranks of a team, of which a benchmark uses some.
pub(super) struct Ranks<'a> {
    pub(super) team: &'a dyn Team,
    pub(super) clock: &'a Clock,
    /// Places of all ranks of the team on its rank 0; empty on other ranks.
    pub(super) places: &'a [Place],
    /// Marks of every row.
    pub(super) standing: &'a [Mark],
    /// Thread support with which the library of this run was started.
    pub(super) threading: Threading,
    /// Last case of the benchmark that earlier ranks have measured.
    pub(super) after: Option<RowName>,
}

impl Ranks<'_> {
    /// Measures one benchmark on the ranks that it needs; the others return at once. Collective.
    ///
    /// `under` is what its rows name as the load.
    pub(super) fn measure(
        &self,
        choice: Choice,
        plan: &Plan,
        under: Option<&str>,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        let (bench, team) = (choice.bench, self.team);
        let available = (bench.available)().map_err(Error::unsupported);
        let ranks = plan.ranks.map_or(team.size(), |most| most.min(team.size()));
        let assignment = available.and_then(|()| bench.ranks.layout.assign(ranks, plan.pairs()));
        let assignment = match bench.ranks.layout {
            Layout::Fan(_) => {
                let nodes = self.nodes()?;
                assignment.and_then(|assignment| assignment.on_nodes(&nodes))
            }
            _ => assignment,
        };
        let assignment = match team.agree(assignment) {
            Ok(assignment) => assignment,
            Err(e) if e.kind() == Kind::Unsupported => {
                if team.rank() == Rank(0) {
                    sink.case(&skipped(bench, under, team.size(), e.to_string()))?;
                }
                return Ok(());
            }
            Err(e) => return Err(e),
        };
        let mut standing = self.standing.to_vec();
        // Idle ranks sleep.
        let places = self.places.get(..assignment.ranks as usize).unwrap_or_default();
        match bench.threads_of(plan) {
            Some(threads) => standing.extend(trust::crowded_threads(places, threads)),
            None if self.threading > plan.chosen.get() => standing.push(trust::thread_multiple()),
            None => {}
        }
        let part;
        let team = if assignment.ranks == team.size() {
            team
        } else {
            standing.push(trust::idle_ranks(assignment.ranks, team.size()));
            part = team.subteam(assignment.ranks)?;
            match &part {
                Some(part) => &**part,
                None => return Ok(()),
            }
        };
        let mut session = Session::new(team, assignment, (plan, self.clock, &standing), choice, sink);
        session.under = under.map(str::to_owned);
        session.after = self.after;
        (bench.run)(&mut session)?;
        // The rows of all loads arrive together, so that those of the first may be done without the last.
        if session.after.is_some() && under.is_none() {
            return Err(Error::fabric(format!(
                "{} has no case after which these ranks could go on",
                bench.name
            )));
        }
        Ok(())
    }

    /// Returns the lowest rank on the host of each rank. Collective.
    fn nodes(&self) -> Result<Vec<u32>> {
        let mut first: BTreeMap<&str, u32> = BTreeMap::new();
        let mut bytes = Vec::new();
        for (rank, place) in (0u32..).zip(self.places) {
            bytes.extend(first.entry(&place.host).or_insert(rank).to_le_bytes());
        }
        bytes.resize(4 * self.team.size() as usize, 0);
        self.team.broadcast(&mut bytes)?;
        Ok(bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect())
    }
}

/// Returns the row of a benchmark that cannot run here.
pub(super) fn skipped(bench: &Benchmark, under: Option<&str>, ranks: u32, reason: String) -> Measurement {
    let axes = under.map(|under| ("under".to_owned(), under.to_owned()));
    let key = axes.iter().map(|(name, value)| format!("{name}={value}")).collect::<String>();
    Measurement {
        axes: axes.into_iter().collect(),
        aggregation: bench.ranks.layout.aggregation(),
        outcome: Outcome::Skipped(reason),
        ..Measurement::new(bench.name, format!("{}/{key}", bench.name), bench.described.metric, ranks)
    }
}
