//! Neighbourhoods that the user describes: a list of edges, or a periodic grid and a radius.

use std::collections::BTreeSet;

use super::{Case, CaseValues, Named, Parameter};
use crate::{
    benchmark::groups::{KnownLists, code, pairs},
    error::{Error, Result},
    measure::plan::Plan,
    unit::digits,
};

crate::parameter! {
    /// Topology of neighbourhood collectives
    pub enum Topology: "topology", Always, default Cartesian, refined by [&NEIGHBOURS, &TORUS] {
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

/// The edges of [`Topology::Edges`]. Rows name their number and a code.
pub static NEIGHBOURS: Parameter = Parameter::free(
    "neighbours",
    "LIST|@FILE",
    "Edges of --topology edges: the rank that sends and the rank that receives, as 0:1,1:0; @FILE has a \
     line for each, as 0,1",
    |text| edges(text).map(drop),
)
.named(Named::AfterSize(|values, _| {
    let edges =
        Neighbourhood::from_values(values).edges.filter(|_| values.get::<Topology>() == Topology::Edges)?;
    let code = code(edges.iter().flat_map(|(from, to)| [*from, *to]).map(u64::from));
    Some(format!("{}:{code:04x}", edges.len()))
}));

/// The periodic grid of [`Topology::Torus`].
pub static TORUS: Parameter = Parameter::free(
    "torus",
    "DIMENSIONS:RADIUS",
    "Dimensions of the periodic grid of --topology torus, and how far away in each of them neighbours are \
     [default: 1:1]",
    |text| torus(text).map(drop),
)
.named(Named::AfterSize(|values, _| {
    let torus @ (dimensions, radius) = Neighbourhood::from_values(values).torus;
    let is_named = values.get::<Topology>() == Topology::Torus && torus != Neighbourhood::DEFAULT.torus;
    is_named.then(|| format!("{dimensions}:{radius}"))
}));

/// Most dimensions of a grid.
const MOST_DIMENSIONS: u32 = 4;
/// Largest radius.
const MOST_RADIUS: u32 = 8;

/// Edges of a directed graph: the rank that sends, then the rank that receives.
pub type Edges = &'static [(u32, u32)];

/// The neighbourhood of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Neighbourhood {
    /// Edges of a graph, if the user lists them.
    pub edges: Option<Edges>,
    /// Dimensions and radius of a periodic grid.
    pub torus: (u32, u32),
}

impl Neighbourhood {
    /// The neighbourhood of a case whose user describes none.
    pub const DEFAULT: Neighbourhood = Neighbourhood { edges: None, torus: (1, 1) };

    /// Returns the neighbourhood that the values of a case describe.
    pub fn from_values(values: &CaseValues) -> Neighbourhood {
        let edges = values.text(&NEIGHBOURS).and_then(|text| edges(text).ok());
        let torus = values.text(&TORUS).and_then(|text| torus(text).ok());
        Neighbourhood { edges, torus: torus.unwrap_or(Neighbourhood::DEFAULT.torus) }
    }
}

static KNOWN: KnownLists<[(u32, u32)]> = KnownLists::new();

/// Returns why the topology of a case does not exist under a plan, if so.
///
/// # Errors
/// The reason and what to choose.
pub fn check(case: &Case, plan: &Plan) -> std::result::Result<(), String> {
    let chosen = |topology: Topology| plan.chosen.includes(topology);
    let given = |parameter: &Parameter| plan.chosen.has(parameter);
    let reasons = [
        (
            case.get::<Topology>() == Topology::Edges && !given(&NEIGHBOURS),
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

/// Reads edges. They live as long as the process.
fn edges(text: &str) -> Result<Edges> {
    KNOWN.get_or_parse(text, |text| parse_edges(text).map(Vec::into_boxed_slice))
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
            "--torus {text}: give 1 to {MOST_DIMENSIONS} dimensions and a radius of 1 to {MOST_RADIUS}, as \
             in --torus 2:1"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_describe_a_neighbourhood() {
        let of = |parameter: &'static Parameter, text: &str| {
            Neighbourhood::from_values(&CaseValues::NONE.with(parameter, text))
        };
        assert_eq!(of(&NEIGHBOURS, "0:1,2:0").edges, Some(&[(0, 1), (2, 0)][..]));
        assert_eq!(of(&TORUS, "3:2").torus, (3, 2));
        assert_eq!(Neighbourhood::from_values(CaseValues::NONE), Neighbourhood::DEFAULT);
    }

    #[test]
    fn rows_name_what_their_topology_has() {
        let key = |topology: Topology| {
            let case = Case::of_pair(8).with(topology);
            let values = case.values.with(&NEIGHBOURS, "0:1,1:0").with(&TORUS, "2:1");
            Case { values, ..case }.key("x.y", None)
        };
        assert_eq!(key(Topology::Torus), "x.y/topology=torus,bytes=8,torus=2:1");
        assert_eq!(key(Topology::Graph), "x.y/topology=graph,bytes=8");
        assert!(key(Topology::Edges).starts_with("x.y/topology=edges,bytes=8,neighbours=2:"));
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
