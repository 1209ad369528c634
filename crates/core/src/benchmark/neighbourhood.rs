//! Neighbourhoods that the user describes: a list of edges, or a periodic grid and a radius.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    AxisValue, Case, Setting,
    pairs::{KnownLists, code, pairs},
};
use crate::{
    error::{Error, Result},
    measure::plan::Plan,
    unit::digits,
};

crate::axis! {
    /// Topology of neighbourhood collectives
    pub enum Topology: "topology", Always, default Cartesian {
        /// Two-dimensional grid, as square as possible, not periodic
        Cartesian = "cartesian",
        /// Directed graph: each rank sends to the next two
        Graph = "graph",
        /// Periodic grid of --torus, as cubic as possible: each rank sends to all within a radius
        Torus = "torus",
        /// Directed graph of --neighbours
        Edges = "edges",
    }
}

/// The setting `--neighbours`.
pub const NEIGHBOURS: Setting = Setting {
    name: "neighbours",
    value: "LIST|@FILE",
    about: "Edges of --topology edges: the rank that sends and the rank that receives, as 0:1,1:0; @FILE has a line for each, as 0,1",
    default: None,
    check: |text| edges(text).map(drop),
};

/// The setting `--torus`.
pub const TORUS: Setting = Setting {
    name: "torus",
    value: "DIMENSIONS:RADIUS",
    about: "Dimensions of the periodic grid of --topology torus, and how far away in each of them neighbours are [default: 1:1]",
    default: None,
    check: |text| torus(text).map(drop),
};

/// Most dimensions of a grid.
const MOST_DIMENSIONS: u32 = 4;
/// Largest radius.
const MOST_RADIUS: u32 = 8;

/// Edges of a directed graph: the rank that sends, then the rank that receives.
pub type Edges = &'static [(u32, u32)];

/// The neighbourhood of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Neighbourhood {
    /// Edges of a graph, if the user lists them.
    pub edges: Option<Edges>,
    /// Dimensions and radius of a periodic grid.
    pub torus: (u32, u32),
}

impl Neighbourhood {
    /// The neighbourhood of a plan without settings.
    pub const DEFAULT: Neighbourhood = Neighbourhood { edges: None, torus: (1, 1) };

    /// Returns the neighbourhood under the settings of a plan, which have been checked.
    pub fn of(settings: &BTreeMap<String, String>) -> Neighbourhood {
        let edges = settings.get(NEIGHBOURS.name).and_then(|text| edges(text).ok());
        let torus = settings.get(TORUS.name).and_then(|text| torus(text).ok());
        Neighbourhood { edges, torus: torus.unwrap_or(Neighbourhood::DEFAULT.torus) }
    }
}

static KNOWN: KnownLists<[(u32, u32)]> = KnownLists::new();

/// Returns why the topology of a case does not exist under a plan, if so.
///
/// # Errors
/// The reason and what to choose.
pub fn check(case: &Case, plan: &Plan) -> std::result::Result<(), String> {
    let chosen = |topology: Topology| {
        plan.axes.get(Topology::AXIS.name).is_some_and(|chosen| chosen.contains(&topology.name()))
    };
    let given = |setting: &Setting| plan.settings.contains_key(setting.name);
    let reasons = [
        (
            case.choice::<Topology>() == Topology::Edges && !given(&NEIGHBOURS),
            "--topology edges needs a list of edges: add --neighbours, as in --neighbours 0:1,1:0",
        ),
        (given(&NEIGHBOURS) && !chosen(Topology::Edges), "--neighbours lists edges: add --topology edges"),
        (
            given(&TORUS) && !chosen(Topology::Torus),
            "--torus describes a periodic grid: add --topology torus",
        ),
    ];
    match reasons.into_iter().find(|(hit, _)| *hit) {
        Some((_, why)) => Err(why.to_owned()),
        None => Ok(()),
    }
}

impl Case {
    /// Returns what the user describes of its neighbourhood: name and value.
    pub fn chosen_neighbourhood(&self) -> Option<(&'static str, String)> {
        let Neighbourhood { edges, torus: (dimensions, radius) } = self.neighbourhood;
        match (self.choice(), edges) {
            (Topology::Edges, Some(edges)) => {
                let code = code(edges.iter().flat_map(|(from, to)| [*from, *to]).map(u64::from));
                Some((NEIGHBOURS.name, format!("{}:{code:04x}", edges.len())))
            }
            (Topology::Torus, _) if self.neighbourhood.torus != Neighbourhood::DEFAULT.torus => {
                Some((TORUS.name, format!("{dimensions}:{radius}")))
            }
            _ => None,
        }
    }
}

/// Reads edges. They live as long as the process.
fn edges(text: &str) -> Result<Edges> {
    KNOWN.of(text, |text| parse_edges(text).map(Vec::into_boxed_slice))
}

fn parse_edges(text: &str) -> Result<Vec<(u32, u32)>> {
    let mut found = BTreeSet::new();
    let mut all = Vec::new();
    for (from, to) in pairs("--neighbours", text)? {
        let refusal = |why: &str| Error::usage(format!("--neighbours {from}:{to}: {why}"));
        let ranks = u32::try_from(from).ok().zip(u32::try_from(to).ok());
        let ranks = ranks.ok_or_else(|| refusal("these are no ranks"))?;
        if from == to {
            return Err(refusal("a rank is no neighbour of itself"));
        }
        if !found.insert(ranks) {
            return Err(refusal("the edge is listed twice"));
        }
        all.push(ranks);
    }
    Ok(all)
}

/// Reads dimensions and radius.
fn torus(text: &str) -> Result<(u32, u32)> {
    let numbers = text.split_once(':').and_then(|(one, other)| Some((digits(one)?, digits(other)?)));
    let fits = |(dimensions, radius): &(u32, u32)| {
        (1..=MOST_DIMENSIONS).contains(dimensions) && (1..=MOST_RADIUS).contains(radius)
    };
    numbers.filter(fits).ok_or_else(|| {
        Error::usage(format!(
            "--torus {text}: give 1 to {MOST_DIMENSIONS} dimensions and a radius of 1 to {MOST_RADIUS}, as in --torus 2:1"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_describe_a_neighbourhood() {
        let of = |name: &str, text: &str| Neighbourhood::of(&[(name.to_owned(), text.to_owned())].into());
        assert_eq!(of("neighbours", "0:1,2:0").edges, Some(&[(0, 1), (2, 0)][..]));
        assert_eq!(of("torus", "3:2").torus, (3, 2));
        assert_eq!(Neighbourhood::of(&BTreeMap::new()), Neighbourhood::DEFAULT);
    }

    #[test]
    fn mistakes_are_refused() {
        for (text, why) in
            [("0:0", "itself"), ("0:1,0:1", "twice"), ("0:99999999999", "no ranks"), ("x", "pair")]
        {
            assert!(edges(text).unwrap_err().to_string().contains(why), "{text}");
        }
        for text in ["", "2", "0:1", "1:0", "5:1", "2:9", "-1:1"] {
            assert!(torus(text).is_err(), "{text}");
        }
    }
}
